//! Signals that ask to stop.
//!
//! While we work, long loops ask [`check`] now and then and leave by the error path, which removes half-written
//! output. While a program runs for us, signals are its own: they are handed on, and its end is ours.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};

use crate::error::Error;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The program that runs for us, 0 if there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
static HANDLE: OnceLock<Handle> = OnceLock::new();

/// Catches SIGINT, SIGTERM and SIGHUP. A second one ends the process at once.
pub fn install() {
    // Without a handler the default action applies: worse, but no reason to stop.
    let Ok(mut signals) = SignalsInfo::<WithOrigin>::new(caught(&[SIGINT, SIGTERM, SIGHUP])) else { return };
    let _ = HANDLE.set(signals.handle());
    std::thread::spawn(move || {
        for origin in signals.forever() {
            match Pid::from_raw(CHILD.load(Ordering::SeqCst)) {
                None => {
                    if INTERRUPTED.swap(true, Ordering::SeqCst) {
                        std::process::exit(130);
                    }
                }
                // What a terminal sends goes to the whole group: the program has it already.
                Some(child) if origin.process.is_some() => hand_on(child, origin.signal),
                Some(_) => {}
            }
        }
    });
}

/// Signals but those that we were started to ignore (`nohup`): the program is to ignore them as well, and a handler
/// would turn that into their default action.
fn caught(signals: &[i32]) -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signals.iter().copied().filter(|signal| mask >> (signal - 1) & 1 == 0).collect()
}

fn hand_on(child: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // It may just have ended.
        let _ = kill_process(child, signal);
    }
}

/// An error once the user asked to stop.
pub fn check() -> Result<(), Error> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(Error::Interrupted) } else { Ok(()) }
}

/// As long as this lives, signals go to a program.
#[derive(Debug)]
pub struct HandedOn(());

/// Hands signals on to the process `child` from now on, also those that mean something to a JVM only.
pub fn hand_on_to(child: u32) -> HandedOn {
    let child = child.cast_signed();
    CHILD.store(child, Ordering::SeqCst);
    if let Some(handle) = HANDLE.get() {
        for signal in caught(&[SIGQUIT, SIGUSR1, SIGUSR2]) {
            let _ = handle.add_signal(signal);
        }
    }
    // One that came just before.
    if let (Err(_), Some(child)) = (check(), Pid::from_raw(child)) {
        hand_on(child, SIGTERM);
    }
    HandedOn(())
}

impl Drop for HandedOn {
    fn drop(&mut self) {
        CHILD.store(0, Ordering::SeqCst);
    }
}
