//! Where the program waits during a collection. One thread executes the operations of all threads of the trace, so
//! there is one to stop.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    /// When the program began to wait.
    since: Option<Instant>,
    /// Number of collections that have ended.
    over: u64,
    waited: Duration,
}

/// Closed by a collector during a collection.
#[derive(Debug, Default)]
pub struct Door {
    closing: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

impl Door {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether the program has to wait. Polled between operations: some plans begin a pause without an allocation.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Waits until the next collection has ended. Called by the program.
    pub fn wait(&self) {
        let begun = Instant::now();
        let mut state = self.state();
        let over = state.over;
        state.since = Some(begun);
        self.changed.notify_all();
        while state.over == over {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        state.since = None;
        state.waited += begun.elapsed();
    }

    /// Waits until the program has stopped, and returns since when. Called by the collector.
    pub fn close(&self) -> Instant {
        self.closing.store(true, Relaxed);
        let mut state = self.state();
        loop {
            match state.since {
                Some(since) => return since,
                None => state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            }
        }
    }

    /// Lets the program continue after a collection.
    pub fn open(&self) {
        self.closing.store(false, Relaxed);
        let mut state = self.state();
        state.over += 1;
        // Otherwise the next collection could take the program for already waiting.
        state.since = None;
        self.changed.notify_all();
    }

    /// Total time that the program has waited.
    pub fn waited(&self) -> Duration {
        self.state().waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Program and collector meet at each pause, whichever arrives first.
    #[test]
    fn the_program_waits_for_each_collection() {
        let door: &'static Door = Box::leak(Box::default());
        let (told, collections) = std::sync::mpsc::channel();
        let collector = std::thread::spawn(move || {
            for number in collections {
                door.close();
                assert!(door.is_closing());
                door.open();
                if number == 1000 {
                    break;
                }
            }
        });
        for number in 1..=1000 {
            told.send(number).unwrap();
            if number % 3 == 0 {
                std::thread::yield_now();
            }
            door.wait();
        }
        collector.join().unwrap();
        assert!(door.waited() > Duration::ZERO);
        assert!(!door.is_closing());
    }
}
