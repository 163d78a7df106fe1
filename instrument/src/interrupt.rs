//! Ctrl-C: long loops ask [`check`] now and then and leave by the error path, which removes half-written output.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Catches SIGINT, SIGTERM and SIGHUP. A second one ends the process at once.
pub fn install() {
    // Without a handler the default action applies: worse, but no reason to stop.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// An error once the user asked to stop.
pub fn check() -> Result<(), Error> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}
