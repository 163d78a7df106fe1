//! The phase of a run. The lock is never held while the VM is called: a debugger may stop a thread there forever, and
//! all others would wait for it.

use et_jvm::sync::{lock, unpoisoned};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long an end waits for a beginning. With a large heap, a beginning takes seconds; if its thread is stopped, it
/// never completes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for the event of option `start`.
    #[default]
    Waiting,
    /// Recording what exists.
    Beginning,
    /// Tracing could not begin. The caller of [`Phases::begin`] reports the reason; there is no second attempt.
    Failed,
    /// The hooks are on.
    Tracing {
        /// When they were switched on.
        since: Instant,
    },
    /// Tracing is over.
    Ended,
}

/// The current phase, with a condition variable to wait for the next.
#[derive(Debug, Default)]
pub struct Phases {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Phases {
    /// Begins, if no other thread has; the end waits for the result.
    pub fn begin(&self) -> Option<Beginning<'_>> {
        let mut phase = lock(&self.phase);
        (*phase == Phase::Waiting).then(|| {
            *phase = Phase::Beginning;
            Beginning(self)
        })
    }

    /// Advances from `Beginning` to `next`. False if the end has stopped waiting.
    fn began(&self, next: Phase) -> bool {
        let mut phase = lock(&self.phase);
        let is_in_time = *phase == Phase::Beginning;
        if is_in_time {
            *phase = next;
        }
        self.changed.notify_all();
        is_in_time
    }

    /// Ends, and returns the phase before. Waits up to `PATIENCE` for a beginning.
    pub fn end(&self) -> Phase {
        self.end_within(PATIENCE)
    }

    fn end_within(&self, patience: Duration) -> Phase {
        let is_beginning = |phase: &mut Phase| *phase == Phase::Beginning;
        let waited = self.changed.wait_timeout_while(lock(&self.phase), patience, is_beginning);
        let mut phase = unpoisoned(waited).0;
        let was = std::mem::replace(&mut *phase, Phase::Ended);
        self.changed.notify_all();
        was
    }

    /// Waits for that time and returns the phase; returns at once when tracing is over.
    pub fn wait(&self, time: Duration) -> Phase {
        let goes_on = |phase: &mut Phase| *phase != Phase::Ended;
        let waited = self.changed.wait_timeout_while(lock(&self.phase), time, goes_on);
        *unpoisoned(waited).0
    }

    /// The current phase.
    pub fn now(&self) -> Phase {
        *lock(&self.phase)
    }
}

/// A beginning in progress. Dropping it without [`done`](Self::done), by an error or a panic, means failure: the end
/// must not wait for a thread that has left.
#[derive(Debug)]
pub struct Beginning<'a>(&'a Phases);

impl Beginning<'_> {
    /// Tracing has begun. False if the end has stopped waiting.
    pub fn done(self) -> bool {
        self.0.began(Phase::Tracing { since: Instant::now() })
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.0.began(Phase::Failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    const MOMENT: Duration = Duration::from_millis(20);

    #[test]
    fn nobody_waits_for_a_beginning_but_the_end() {
        let phases = Phases::default();
        let beginning = phases.begin().unwrap();
        // By another thread with the same event, or by the watching thread.
        assert!(phases.begin().is_none());
        assert_eq!((phases.now(), phases.wait(MOMENT)), (Phase::Beginning, Phase::Beginning));
        let (send, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| send.send(phases.end()));
            assert!(ended.recv_timeout(MOMENT).is_err());
            assert!(beginning.done());
            assert!(matches!(ended.recv_timeout(PATIENCE), Ok(Phase::Tracing { .. })));
        });
        assert_eq!(phases.wait(PATIENCE), Phase::Ended);
        assert!(phases.begin().is_none());
    }

    #[test]
    fn a_beginning_that_never_comes_to_its_end_is_given_up() {
        let phases = Phases::default();
        let beginning = phases.begin().unwrap();
        assert_eq!(phases.end_within(MOMENT), Phase::Beginning);
        assert!(!beginning.done(), "it is too late");
        assert_eq!(phases.now(), Phase::Ended);
    }

    #[test]
    fn the_end_does_not_wait_for_a_beginning_that_failed() {
        let error = |phases: &Phases| drop(phases.begin().unwrap());
        let panic = |phases: &Phases| {
            let _beginning = phases.begin().unwrap();
            std::panic::resume_unwind(Box::new("a bug"));
        };
        for fail in [error as fn(&Phases), panic] {
            let phases = Phases::default();
            let began = catch_unwind(AssertUnwindSafe(|| fail(&phases)));
            // If the end waited for it, the result would be `Beginning`, and much later.
            assert_eq!(phases.end_within(Duration::ZERO), Phase::Failed, "{began:?}");
            assert_eq!(phases.end(), Phase::Ended);
        }
    }

    #[test]
    fn what_failed_is_not_tried_again() {
        let phases = Phases::default();
        drop(phases.begin());
        assert_eq!(phases.wait(MOMENT), Phase::Failed);
        assert!(phases.begin().is_none());
    }
}
