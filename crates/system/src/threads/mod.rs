//! Starts threads where the system may refuse (`ulimit -u`, `pids.max` of a container): work continues with fewer
//! threads if possible, and otherwise there is a one-line error. `std::thread::spawn`, `Scope::spawn` and rayon's
//! global pool panic in that case.

#[cfg(feature = "pool")]
mod pool;
mod tasks;

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use thiserror::Error;

#[cfg(feature = "pool")]
pub use pool::Pool;
pub use tasks::{at_once, on_all_cores};

/// The system refused to start a thread.
#[derive(Debug, Error)]
#[error("cannot start a thread: {0}: raise the limit of processes (ulimit -u, or pids.max of the container)")]
pub struct NoThread(io::Error);

impl From<NoThread> for io::Error {
    fn from(no_thread: NoThread) -> Self {
        Self::new(no_thread.0.kind(), no_thread)
    }
}

/// Like [`std::thread::spawn`], but returns an error.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, NoThread> {
    Builder::new().spawn(work).map_err(NoThread)
}

/// Like [`Scope::spawn`], but returns an error.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, NoThread> {
    Builder::new().spawn_scoped(scope, work).map_err(NoThread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let error = io::Error::from(NoThread(io::ErrorKind::WouldBlock.into()));
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let said = error.to_string();
        assert!(said.starts_with("cannot start a thread: ") && said.contains("ulimit -u"), "{said}");
    }
}
