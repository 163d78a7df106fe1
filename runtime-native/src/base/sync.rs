//! Locks for the hand-over of chunks: the system's, or those of loom, which tries all interleavings of threads (`cargo
//! xtask loom`).

pub use et_jvm::sync::unpoisoned;

#[cfg(not(loom))]
pub use et_jvm::sync::lock;
#[cfg(not(loom))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard};

/// Locks a mutex, poisoned or not.
#[cfg(loom)]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}
