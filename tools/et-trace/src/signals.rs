//! Signals that end the process: first, what it has made goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level};

/// While this lives they do not end the process, but can be asked for.
#[derive(Debug)]
pub(crate) struct Signals {
    caught: Arc<AtomicUsize>,
    /// Whether signals have their default effect.
    let_be: Arc<AtomicBool>,
}

impl Signals {
    pub(crate) fn catch() -> Self {
        let (caught, let_be) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            // A signal that was ignored when we were started (`nohup`) must stay ignored.
            if is_ignored(&status, signal) {
                continue;
            }
            // Where they cannot be caught the process ends at once, as it always would.
            let _ = flag::register_conditional_default(signal, let_be.clone());
            let _ = flag::register_usize(signal, caught.clone(), signal as usize);
        }
        Self { caught, let_be }
    }

    pub(crate) fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::SeqCst) as i32).filter(|&signal| signal != 0)
    }

    /// Ends the process by the signal that was caught, if one was.
    pub(crate) fn obey(&self) {
        if let Some(signal) = self.caught() {
            // This does not come back. If it does, the signal is one that does not end processes.
            let _ = low_level::emulate_default_handler(signal);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.let_be.store(true, Ordering::SeqCst);
        // One may have come since it was last asked for.
        self.obey();
    }
}

/// By what `/proc/PID/status` says.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_shows_in_the_status() {
        let status =
            "Name:\tet-trace\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT) && !is_ignored("", SIGHUP));
    }
}
