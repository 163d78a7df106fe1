//! Where the program waits while there is a collection. One thread plays all threads of the trace, so there is one to stop.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    /// Since when the program waits.
    since: Option<Instant>,
    /// Collections that are over.
    over: u64,
    waited: Duration,
}

/// A collector closes it, and opens it again.
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

    /// Whether the program is to wait. Asked between operations: some plans begin a pause by themselves.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// The program waits for a collection to begin and to end.
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

    /// The collector waits until the program does; since when.
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

    /// The collection is over.
    pub fn open(&self) {
        self.closing.store(false, Relaxed);
        let mut state = self.state();
        state.over += 1;
        // The next collection is not to find the door as the last has left it.
        state.since = None;
        self.changed.notify_all();
    }

    /// How long the program has waited in all.
    pub fn waited(&self) -> Duration {
        self.state().waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the program or the collector comes first, each pause has both.
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
