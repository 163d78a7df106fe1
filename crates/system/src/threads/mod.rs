//! Threads, where the system may have none to give (`ulimit -u`, `pids.max` of a container): what can be done with fewer is done with fewer, and
//! the rest is an error of one line. `std::thread::spawn`, `Scope::spawn` and rayon's global pool panic there.

#[cfg(feature = "pool")]
mod pool;

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use thiserror::Error;

#[cfg(feature = "pool")]
pub use pool::Pool;

/// The system gives no thread.
#[derive(Debug, Error)]
#[error("cannot start a thread: {0}: raise the limit of processes (ulimit -u, or pids.max of the container)")]
pub struct NoThread(io::Error);

impl From<NoThread> for io::Error {
    fn from(no_thread: NoThread) -> Self {
        Self::new(no_thread.0.kind(), no_thread)
    }
}

/// As [`std::thread::spawn`].
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, NoThread> {
    Builder::new().spawn(work).map_err(NoThread)
}

/// As [`Scope::spawn`].
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
