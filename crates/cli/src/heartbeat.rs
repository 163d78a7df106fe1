//! Periodic lines that show that a command is working, where there is no progress bar: in a log or an IDE.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use et_names::units;

use crate::Program;

/// Interval between lines: build servers abort what is silent for minutes, users become impatient after seconds.
const BETWEEN: Duration = Duration::from_secs(10);

/// Writes lines to standard error until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Heartbeat(Option<(Sender<()>, JoinHandle<()>)>);

impl Heartbeat {
    /// Starts writing a line every ten seconds with the current result of `what`.
    pub fn new(program: Program, what: impl Fn() -> String + Send + 'static) -> Self {
        Self::every(BETWEEN, move |seconds| {
            program.say(format_args!("after {}: {}", units::duration(seconds), what()));
        })
    }

    fn every(between: Duration, say: impl Fn(u64) + Send + 'static) -> Self {
        let (stop, stopped) = channel();
        // Without a thread, the work is done without these lines.
        let thread = Builder::new().name("heartbeat".into()).spawn(move || beat(between, &stopped, say));
        Self(thread.ok().map(|thread| (stop, thread)))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // Failure to write these lines is ignored.
            let _ = thread.join();
        }
    }
}

fn beat(between: Duration, stopped: &Receiver<()>, say: impl Fn(u64)) {
    let mut waited = Duration::ZERO;
    while stopped.recv_timeout(between) == Err(RecvTimeoutError::Timeout) {
        waited += between;
        say(waited.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn lines_come_until_the_work_is_done() {
        let (said, lines) = channel();
        let heartbeat = Heartbeat::every(Duration::from_millis(1), move |_| said.send(()).unwrap());
        assert_eq!((lines.recv(), lines.recv(), lines.recv()), (Ok(()), Ok(()), Ok(())));
        drop(heartbeat);
        while lines.try_recv().is_ok() {}
        assert!(lines.recv().is_err(), "nobody is left who says anything");
    }

    #[test]
    fn what_is_soon_done_is_not_waited_for() {
        let begun = Instant::now();
        drop(Heartbeat::new(Program("et-test"), || unreachable!("it is done at once")));
        assert!(begun.elapsed() < BETWEEN);
    }
}
