//! What is told once: one thread does it, and others wait until the agent has come back from that.

use std::sync::atomic::{AtomicU8, Ordering};

const UNTOLD: u8 = 0;
const CLAIMED: u8 = 1;
const TOLD: u8 = 2;

/// Whether the agent was told of a class or a thread.
#[derive(Debug, Default)]
pub struct Told(AtomicU8);

impl Told {
    /// The current thread is to tell of it, unless another has or is about to.
    pub fn claim(&self) -> bool {
        self.0.compare_exchange(UNTOLD, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// It was told, or somebody is about to.
    pub fn is_claimed(&self) -> bool {
        self.0.load(Ordering::Acquire) != UNTOLD
    }

    /// It was told, and the agent has come back from that.
    pub fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire) == TOLD
    }

    /// The agent has come back.
    pub fn done(&self) {
        self.0.store(TOLD, Ordering::Release);
    }

    /// What this belongs to is used again, for something that nobody was told of.
    pub fn forget(&self) {
        self.0.store(UNTOLD, Ordering::Release);
    }
}
