//! The locks of the hand-over of chunks: the system's, or those of loom, which tries all orders in which threads may come
//! (`cargo xtask loom`).

#[cfg(not(loom))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard};
