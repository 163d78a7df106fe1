//! Limits how long the program waits for the reader of its trace: the command of `traceFile`, a pipe, or the tool that
//! makes the text.
//!
//! A running program waits for a slow reader by design: no event is dropped. But it must not wait forever for a reader
//! that takes nothing.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::base::signals;

/// Length of one step of a wait. If the process is stopped (`Ctrl-Z`), that counts as one step, however long it was.
const PIECE: Duration = Duration::from_millis(20);
/// Limit after `SIGTERM` and similar signals, unless the normal limit is shorter.
const WHEN_ASKED_TO_END: Duration = Duration::from_secs(2);

/// The limits of waits for the reader.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    /// The final deadline, set when the program has ended.
    deadline: OnceLock<Instant>,
}

impl Patience {
    /// `limit` is the maximum wait without progress, and the maximum of all waits after the program's end.
    pub fn new(limit: Duration) -> Self {
        Self { limit, deadline: OnceLock::new() }
    }

    /// The limit, for messages.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Call when the program has ended: the rest must be done within the limit.
    pub fn program_ends(&self) {
        self.deadline.get_or_init(|| Instant::now() + self.limit);
    }

    /// Starts a wait.
    pub fn wait(&self) -> Wait<'_> {
        Wait { patience: self, waited: Duration::ZERO, since_asked: Duration::ZERO }
    }

    /// Writes all bytes to a file in non-blocking mode.
    pub fn write(&self, out: &mut (impl Write + AsRawFd), mut bytes: &[u8]) -> io::Result<()> {
        let mut wait = self.wait();
        while !bytes.is_empty() {
            match out.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    wait = self.wait();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let Some(piece) = wait.piece() else { return Err(wait.error()) };
                    writable(out, piece);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the reader of a named pipe has taken everything: unread data would vanish with this process.
    #[allow(unsafe_code, reason = "a system call")]
    pub fn drain(&self, pipe: &impl AsRawFd) -> io::Result<()> {
        let mut wait = self.wait();
        loop {
            let mut left: libc::c_int = 0;
            // SAFETY: an open file, and a valid place for the result.
            let result = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut left) };
            if result != 0 || left == 0 {
                return Ok(());
            }
            let Some(piece) = wait.piece() else { return Err(wait.error()) };
            std::thread::sleep(piece);
        }
    }

    /// Waits until a process has ended; `None` on timeout.
    pub fn reap(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        // Most are about to end.
        let mut pause = Duration::from_micros(200);
        let mut wait = self.wait();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            let Some(piece) = wait.of(pause) else { return Ok(None) };
            std::thread::sleep(piece);
            pause = (pause * 2).min(PIECE);
        }
    }
}

/// A wait for one event.
#[derive(Debug)]
pub struct Wait<'a> {
    patience: &'a Patience,
    waited: Duration,
    since_asked: Duration,
}

impl Wait<'_> {
    /// How long to wait before the next check; `None` on timeout.
    pub fn piece(&mut self) -> Option<Duration> {
        self.of(PIECE)
    }

    fn of(&mut self, piece: Duration) -> Option<Duration> {
        let asked = signals::program_is_to_end();
        let over = self.waited >= self.patience.limit
            || asked && self.since_asked >= WHEN_ASKED_TO_END
            || self.patience.deadline.get().is_some_and(|deadline| Instant::now() >= *deadline);
        if over {
            return None;
        }
        self.waited += piece;
        if asked {
            self.since_asked += piece;
        }
        Some(piece)
    }

    fn error(&self) -> io::Error {
        let why = if signals::program_is_to_end() {
            "nobody takes it, and the program was asked to end".to_owned()
        } else {
            format!("nothing of it was taken for {} (option patience)", shown(self.patience.limit))
        };
        io::Error::new(io::ErrorKind::TimedOut, why)
    }
}

/// A duration in the form of options: `90s`, `250ms`.
pub fn shown(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// Makes writes to a file non-blocking.
#[allow(unsafe_code, reason = "a system call")]
pub fn unblock(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: system calls on an open file.
    unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        if flags < 0 || libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Waits until the file is writable, at most for that long.
#[allow(unsafe_code, reason = "a system call")]
fn writable(file: &impl AsRawFd, piece: Duration) {
    let mut one = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry, valid during the call.
    unsafe { libc::poll(&mut one, 1, piece.as_millis() as i32) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn reader(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn who_takes_nothing_is_not_waited_for_longer_than_said() {
        let mut child = reader("exec sleep 1000");
        let mut pipe = child.stdin.take().unwrap();
        unblock(&pipe).unwrap();
        let patience = Patience::new(Duration::from_millis(300));
        let start = Instant::now();
        let error = patience.write(&mut pipe, &vec![0; 1 << 20]).unwrap_err();
        assert!(start.elapsed() >= Duration::from_millis(250));
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "nothing of it was taken for 300ms (option patience)");
        assert_eq!(patience.reap(&mut child).unwrap(), None);
        child.kill().unwrap();
        assert!(patience.reap(&mut child).unwrap().is_some());
    }

    #[test]
    fn who_takes_a_little_now_and_then_is_waited_for_until_the_program_ends() {
        let mut child = reader("for i in 1 2 3 4 5 6; do sleep 0.2; head -c 65536 > /dev/null; done; cat > /dev/null");
        let mut pipe = child.stdin.take().unwrap();
        unblock(&pipe).unwrap();
        let patience = Patience::new(Duration::from_secs(5));
        patience.write(&mut pipe, &vec![0; 400_000]).unwrap();
        drop(pipe);
        assert!(patience.reap(&mut child).unwrap().unwrap().success());

        let mut child = reader("while :; do sleep 0.05; head -c 4096 > /dev/null; done");
        let mut pipe = child.stdin.take().unwrap();
        unblock(&pipe).unwrap();
        let patience = Patience::new(Duration::from_millis(400));
        patience.program_ends();
        let error = patience.write(&mut pipe, &vec![0; 16 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
