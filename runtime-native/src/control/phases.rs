//! How far a run has come. The lock is never held while the VM is called: who calls it may be stopped there, by a debugger for ever, and
//! all others would stand still with it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an end waits for a beginning. It takes seconds with a large heap; who is stopped in the midst of it takes for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// For what tracing begins with.
    #[default]
    Waiting,
    /// What there is is being written down.
    Beginning,
    /// Hooks are on.
    Tracing {
        /// When that began.
        since: Instant,
    },
    /// For good.
    Ended,
}

/// The phase, and those who wait for another.
#[derive(Debug, Default)]
pub struct Phases {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Phases {
    /// Whether it is the caller's turn to begin.
    pub fn begin(&self) -> bool {
        let mut phase = self.lock();
        let is_waiting = *phase == Phase::Waiting;
        if is_waiting {
            *phase = Phase::Beginning;
        }
        is_waiting
    }

    /// Whoever [began](Self::begin) has done so, or could not. Whether events are wanted now.
    pub fn began(&self, is_done: bool) -> bool {
        let mut phase = self.lock();
        if *phase == Phase::Beginning {
            *phase = if is_done { Phase::Tracing { since: Instant::now() } } else { Phase::Waiting };
        }
        self.changed.notify_all();
        matches!(*phase, Phase::Tracing { .. })
    }

    /// From now on all is over; how far it had come. A beginning is waited for.
    pub fn end(&self) -> Phase {
        self.end_within(PATIENCE)
    }

    fn end_within(&self, patience: Duration) -> Phase {
        let is_beginning = |phase: &mut Phase| *phase == Phase::Beginning;
        let waited = self.changed.wait_timeout_while(self.lock(), patience, is_beginning);
        let mut phase = waited.unwrap_or_else(PoisonError::into_inner).0;
        let was = std::mem::replace(&mut *phase, Phase::Ended);
        self.changed.notify_all();
        was
    }

    /// How far it has come so long from now; at once if all is over.
    pub fn wait(&self, time: Duration) -> Phase {
        let goes_on = |phase: &mut Phase| *phase != Phase::Ended;
        let waited = self.changed.wait_timeout_while(self.lock(), time, goes_on);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// How far it has come.
    pub fn now(&self) -> Phase {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const MOMENT: Duration = Duration::from_millis(20);

    #[test]
    fn nobody_waits_for_a_beginning_but_the_end() {
        let phases = Phases::default();
        assert!(phases.begin());
        // Of whoever else comes to what tracing is to begin with, and of the thread that watches.
        assert!(!phases.begin());
        assert_eq!((phases.now(), phases.wait(MOMENT)), (Phase::Beginning, Phase::Beginning));
        let (send, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| send.send(phases.end()));
            assert!(ended.recv_timeout(MOMENT).is_err());
            phases.began(true);
            assert!(matches!(ended.recv_timeout(PATIENCE), Ok(Phase::Tracing { .. })));
        });
        assert_eq!((phases.wait(PATIENCE), phases.begin()), (Phase::Ended, false));
    }

    #[test]
    fn a_beginning_that_never_comes_to_its_end_is_given_up() {
        let phases = Phases::default();
        assert!(phases.begin());
        assert_eq!(phases.end_within(MOMENT), Phase::Beginning);
        assert!(!phases.began(true), "it is too late");
        assert_eq!(phases.now(), Phase::Ended);
    }

    #[test]
    fn who_could_not_begin_may_try_again() {
        let phases = Phases::default();
        assert!(phases.begin() && !phases.began(false) && phases.begin() && phases.began(true));
        assert!(matches!(phases.end(), Phase::Tracing { .. }));
        assert_eq!(phases.end(), Phase::Ended);
    }
}
