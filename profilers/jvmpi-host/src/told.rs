//! Reports that are made exactly once: one thread makes it, and others wait until the agent has returned from it.

use std::sync::atomic::{AtomicU8, Ordering};

const UNTOLD: u8 = 0;
const CLAIMED: u8 = 1;
const TOLD: u8 = 2;

/// Whether a class or a thread has been reported to the agent.
#[derive(Debug, Default)]
pub struct Told(AtomicU8);

impl Told {
    /// Returns whether the current thread has to report it: no other thread has, or is about to.
    pub fn claim(&self) -> bool {
        self.0.compare_exchange(UNTOLD, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether it was reported or is about to be.
    pub fn is_claimed(&self) -> bool {
        self.0.load(Ordering::Acquire) != UNTOLD
    }

    /// Whether it was reported and the agent has returned.
    pub fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire) == TOLD
    }

    /// The agent has returned.
    pub fn done(&self) {
        self.0.store(TOLD, Ordering::Release);
    }

    /// Resets the state for reuse with something that has not been reported.
    pub fn forget(&self) {
        self.0.store(UNTOLD, Ordering::Release);
    }
}
