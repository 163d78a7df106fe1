//! HotSpot's attach mechanism, implemented without a JVM: loads an agent into a running VM.
//!
//! The VM listens on the socket `/tmp/.java_pidPID`, in its own view of the file system, after being triggered by a
//! file `.attach_pidPID` in its working directory or `/tmp`, and SIGQUIT. A request consists of a version and four
//! strings, each terminated by a zero; the reply is text whose first line is 0 or an error number.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use thiserror::Error;

/// How long a VM may take to open its socket.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to load the agent.
const LOADING: Duration = Duration::from_secs(60);
/// Maximum length of a reply in bytes.
const MOST_REPLY: u64 = 1 << 20;

/// Why an agent is not in a VM.
#[derive(Debug, Error)]
pub enum AttachError {
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("process {pid} belongs to another user: attach as user {uid}")]
    OtherUser { pid: u32, uid: u32 },
    #[error("process {0} is not a JVM: it has not loaded libjvm.so")]
    NoJvm(u32),
    #[error("process {0} does not accept agents: it runs with -XX:+DisableAttachMechanism")]
    Disabled(u32),
    #[error("process {pid} did not open {socket} within {seconds} s: it is stopped, or a JVM without the attach mechanism", socket = socket.display(), seconds = PATIENCE.as_secs())]
    Silent { pid: u32, socket: PathBuf },
    #[error("{path} is not a socket of process {pid}: remove it", path = path.display())]
    Foreign { pid: u32, path: PathBuf },
    #[error("process {pid} could not load {library}: {reply}", library = library.display())]
    Refused { pid: u32, library: PathBuf, reply: String },
    #[error("the path {path} cannot be passed to a JVM: {why}", path = path.display())]
    Path { path: PathBuf, why: &'static str },
    #[error("cannot attach to process {pid}: {what}: {source}")]
    Io { pid: u32, what: String, source: io::Error },
}

/// Loads an agent library, named by its absolute path as the VM sees it, with options.
pub fn load(pid: u32, library: &Path, options: &str) -> Result<(), AttachError> {
    let absolute = library.to_str().ok_or(AttachError::Path { path: library.to_owned(), why: "it is not UTF-8" })?;
    if !library.is_absolute() {
        return Err(AttachError::Path { path: library.to_owned(), why: "it is not absolute" });
    }
    let vm = Vm::find(pid)?;
    let mut socket = vm.connect()?;
    let reply = vm.ask(&mut socket, &["load", absolute, "true", options])?;
    succeeded(&reply).map_err(|why| AttachError::Refused { pid, library: library.to_owned(), reply: why })
}

/// Parses the reply to `load`: 0 in the first line, then, in the same or the next one, the agent's return value.
fn succeeded(reply: &str) -> Result<(), String> {
    let mut lines = reply.lines();
    match lines.next().map(str::trim) {
        Some("0") => {}
        _ => return Err(one_line(reply)),
    }
    let Some(line) = lines.next() else { return Ok(()) };
    let code = line.strip_prefix("return code:").unwrap_or(line).trim();
    match code.parse::<i64>() {
        Ok(0) => Ok(()),
        Ok(code) => Err(format!("the agent returned {code}; what it printed says why")),
        // From 21 on there may be text here, such as why a library cannot be opened.
        Err(_) if line.trim().is_empty() => Ok(()),
        Err(_) => Err(one_line(line)),
    }
}

fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "it said nothing".into() } else { text }
}

/// A running JVM.
struct Vm {
    pid: u32,
    /// The number that it has in its own namespace: a container may give it another.
    inner: u32,
    uid: u32,
    gid: u32,
    proc: PathBuf,
}

impl Vm {
    fn find(pid: u32) -> Result<Self, AttachError> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let Ok(folder) = fs::metadata(&proc) else { return Err(AttachError::NoProcess(pid)) };
        let (uid, gid) = (folder.uid(), folder.gid());
        let me = geteuid().as_raw();
        if me != uid && me != 0 {
            return Err(AttachError::OtherUser { pid, uid });
        }
        let maps = fs::read_to_string(proc.join("maps")).unwrap_or_default();
        if !maps.contains("libjvm.so") {
            return Err(AttachError::NoJvm(pid));
        }
        let arguments = fs::read(proc.join("cmdline")).unwrap_or_default();
        if arguments.split(|&byte| byte == 0).any(|word| word == b"-XX:+DisableAttachMechanism") {
            return Err(AttachError::Disabled(pid));
        }
        let status = fs::read_to_string(proc.join("status")).unwrap_or_default();
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let inner = inner.and_then(|pids| pids.split_whitespace().next_back()?.parse().ok()).unwrap_or(pid);
        Ok(Self { pid, inner, uid, gid, proc })
    }

    fn fail(&self, what: impl Into<String>) -> impl FnOnce(io::Error) -> AttachError {
        let (pid, what) = (self.pid, what.into());
        move |source| AttachError::Io { pid, what, source }
    }

    fn socket(&self) -> PathBuf {
        self.proc.join("root/tmp").join(format!(".java_pid{}", self.inner))
    }

    /// Whether the socket is there, and the VM's own: anybody may make files in `/tmp`.
    fn has_socket(&self) -> Result<bool, AttachError> {
        let path = self.socket();
        match fs::symlink_metadata(&path) {
            Ok(there) if there.file_type().is_socket() && there.uid() == self.uid => Ok(true),
            Ok(_) => Err(AttachError::Foreign { pid: self.pid, path }),
            Err(_) => Ok(false),
        }
    }

    fn connect(&self) -> Result<UnixStream, AttachError> {
        let path = self.socket();
        if self.has_socket()?
            && let Ok(stream) = UnixStream::connect(&path)
        {
            return Ok(stream);
        }
        // A socket without a listener was left by another VM with the same process id; this one creates its own.
        let trigger = self.pull_trigger()?;
        let opened = self.wait_for(&path);
        let _ = fs::remove_file(trigger);
        opened
    }

    fn wait_for(&self, path: &Path) -> Result<UnixStream, AttachError> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(10);
        while begun.elapsed() < PATIENCE {
            if self.has_socket()?
                && let Ok(stream) = UnixStream::connect(path)
            {
                return Ok(stream);
            }
            if !self.proc.exists() {
                return Err(AttachError::NoProcess(self.pid));
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(200));
        }
        Err(AttachError::Silent { pid: self.pid, socket: path.to_owned() })
    }

    /// Asks the VM to listen. Without the file SIGQUIT prints a thread dump; a process that does not handle it would end.
    fn pull_trigger(&self) -> Result<PathBuf, AttachError> {
        let status = fs::read_to_string(self.proc.join("status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if caught & (1 << (Signal::QUIT.as_raw() - 1)) == 0 {
            return Err(AttachError::Silent { pid: self.pid, socket: self.socket() });
        }
        let name = format!(".attach_pid{}", self.inner);
        let places = [self.proc.join("cwd").join(&name), self.proc.join("root/tmp").join(&name)];
        let mut failed = None;
        for place in places {
            match fs::File::options().write(true).create_new(true).open(&place) {
                Ok(file) => {
                    // The VM only accepts files of its own user.
                    if geteuid().as_raw() != self.uid {
                        let _ = std::os::unix::fs::fchown(&file, Some(self.uid), Some(self.gid));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    failed = Some((place, error));
                    continue;
                }
            }
            let pid = Pid::from_raw(self.pid.cast_signed()).ok_or(AttachError::NoProcess(self.pid))?;
            kill_process(pid, Signal::QUIT).map_err(|error| self.fail("SIGQUIT")(error.into()))?;
            return Ok(place);
        }
        let (place, error) = failed.unwrap_or_else(|| (PathBuf::from("/tmp"), io::ErrorKind::NotFound.into()));
        Err(self.fail(format!("cannot write {}", place.display()))(error))
    }

    fn ask(&self, socket: &mut UnixStream, words: &[&str; 4]) -> Result<String, AttachError> {
        let io = |error| self.fail("the VM does not answer")(error);
        socket.set_read_timeout(Some(LOADING)).map_err(io)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(io)?;
        let mut request = b"1\0".to_vec();
        words.iter().for_each(|word| request.extend(word.bytes().filter(|&byte| byte != 0).chain([0])));
        socket.write_all(&request).map_err(io)?;
        let mut reply = Vec::new();
        socket.take(MOST_REPLY).read_to_end(&mut reply).map_err(io)?;
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_all_versions() {
        // 8 and 11 to 17 say the code alone or with words; 21 and later only the latter.
        for good in ["0\n0\n", "0\nreturn code: 0\n", "0\n"] {
            assert_eq!(succeeded(good), Ok(()), "{good}");
        }
        assert_eq!(succeeded("0\nreturn code: -1\n").unwrap_err(), "the agent returned -1; what it printed says why");
        let refused = succeeded("0\n/no/such.so was not loaded.\n/no/such.so: cannot open\n").unwrap_err();
        assert_eq!(refused, "/no/such.so was not loaded.");
        assert_eq!(succeeded("101\nProtocol mismatch\n").unwrap_err(), "101 Protocol mismatch");
        assert_eq!(succeeded("").unwrap_err(), "it said nothing");
    }

    #[test]
    fn what_is_no_jvm_is_left_alone() {
        let library = Path::new("/lib/agent.so");
        // A process without libjvm.so gets no signal: this one would not survive SIGQUIT.
        assert!(matches!(load(std::process::id(), library, ""), Err(AttachError::NoJvm(_))));
        assert!(matches!(load(0x7fff_fff0, library, ""), Err(AttachError::NoProcess(_))));
        assert!(matches!(load(1, Path::new("agent.so"), ""), Err(AttachError::Path { .. })));
    }
}
