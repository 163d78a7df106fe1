//! Blocking work, outside of the async tasks.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Runs blocking work on another thread. If none can be started, it runs here and blocks other tasks. `None` if it
/// panics.
///
/// Tokio's `spawn_blocking` panics without a thread.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (done, result) = oneshot::channel();
    let theirs = work.clone();
    let started = et_system::threads::spawn(move || {
        if let Some(work) = take(&theirs) {
            // The receiver may be gone.
            let _ = done.send(work());
        }
    });
    match started {
        Ok(_) => result.await.ok(),
        Err(_) => take(&work).map(|work| work()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_aside_comes_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(aside(|| 7)), Some(7));
        assert_eq!(runtime.block_on(aside(|| -> u32 { panic!("as wanted") })), None);
    }
}
