//! Progress messages.

use std::sync::{Arc, Mutex, PoisonError};

use et_cli::Heartbeat;
use et_reader::watch::Watcher;

use super::PROGRAM;

/// Shows progress until it is dropped.
pub(super) struct Progress {
    doing: Arc<Mutex<Doing>>,
    _lines: Heartbeat,
}

enum Doing {
    /// Reading a trace.
    Reading(Watcher),
    Replaying(String),
}

impl Progress {
    pub(super) fn new() -> Self {
        let doing = Arc::new(Mutex::new(Doing::Reading(Watcher::watched())));
        let told = Arc::clone(&doing);
        let line = move || match &*told.lock().unwrap_or_else(PoisonError::into_inner) {
            Doing::Reading(watcher) => watcher.line(),
            Doing::Replaying(what) => what.clone(),
        };
        Self { doing, _lines: Heartbeat::new(PROGRAM, line) }
    }

    /// A watcher for reading the trace.
    pub(super) fn watcher(&self) -> Watcher {
        match &*self.doing.lock().unwrap_or_else(PoisonError::into_inner) {
            Doing::Reading(watcher) => watcher.clone(),
            Doing::Replaying(_) => Watcher::default(),
        }
    }

    /// Sets the message for a replay.
    pub(super) fn begin(&self, what: String) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = Doing::Replaying(what);
    }
}
