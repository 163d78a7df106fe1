//! Signals that ask to stop.
//!
//! While we work, long loops ask [`check`] now and then and leave by the error path, which removes half-written
//! output. Where that takes too long for the user, a later signal ends the process at once. While a program runs for
//! us, signals are its own: they are handed on, and its end is ours.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use et_names::escape::OneLine;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use thiserror::Error;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The program that runs for us, 0 if there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
static HANDLE: OnceLock<Handle> = OnceLock::new();
/// Files and folders that are to go if the process ends before they are complete.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Signals that come sooner after the first belong to it: `timeout` sends one to its child and then one to the group,
/// a supervisor may send SIGINT and SIGTERM.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Catches SIGINT, SIGTERM and SIGHUP. A second one that comes later than [`SAME_REQUEST`] ends the process at once.
pub fn install() {
    let caught = caught(&[SIGINT, SIGTERM, SIGHUP]);
    let giving_up = Arc::new(AtomicBool::new(false));
    for &signal in &caught {
        // Should the removal of half-written output hang as well, one more signal ends the process.
        let _ = flag::register_conditional_default(signal, giving_up.clone());
    }
    // Without a handler the default action applies: worse, but no reason to stop.
    let Ok(mut signals) = SignalsInfo::<WithOrigin>::new(caught) else { return };
    let _ = HANDLE.set(signals.handle());
    std::thread::spawn(move || {
        let mut requests = Requests::default();
        for origin in signals.forever() {
            match Pid::from_raw(CHILD.load(Ordering::SeqCst)) {
                None => {
                    INTERRUPTED.store(true, Ordering::SeqCst);
                    if requests.is_repeated(Instant::now()) {
                        giving_up.store(true, Ordering::SeqCst);
                        let line = format!("{}\n", OneLine(remove_all(&unfinished())));
                        // If nobody reads it there is nobody to tell.
                        let _ = std::io::stderr().write_all(line.as_bytes());
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

/// When the user asked to stop.
#[derive(Debug, Default)]
struct Requests {
    first: Option<Instant>,
}

impl Requests {
    /// Whether a signal that comes now asks again, and is not just another part of the first request.
    fn is_repeated(&mut self, now: Instant) -> bool {
        now.duration_since(*self.first.get_or_insert(now)) >= SAME_REQUEST
    }
}

/// Removes what is half-written, as far as that can be done while other threads still write, and says what is left.
fn remove_all(unfinished: &BTreeSet<PathBuf>) -> String {
    match unfinished.iter().filter(|path| !is_removed(path)).min() {
        None => "et-instrument: interrupted twice, nothing was written".to_owned(),
        Some(left) => {
            format!("et-instrument: interrupted twice, half-written output may be left in {}", left.display())
        }
    }
}

fn is_removed(path: &Path) -> bool {
    // Threads that still write may add files between the removal of a folder's content and of the folder.
    const ATTEMPTS: usize = 5;
    (0..ATTEMPTS).any(|_| {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        path.symlink_metadata().is_err()
    })
}

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as this lives, its path is removed should the process end at once.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// For a file or folder that is about to be made.
    pub fn new(path: PathBuf) -> Self {
        unfinished().insert(path.clone());
        Self(path)
    }

    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
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

/// The user asked to stop.
#[derive(Clone, Copy, Debug, Error)]
#[error("interrupted, nothing was written")]
pub struct Interrupted;

/// An error once the user asked to stop.
pub fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(Interrupted) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_signals_in_a_row_are_one_request() {
        let mut requests = Requests::default();
        let first = Instant::now();
        assert!(!requests.is_repeated(first));
        assert!(!requests.is_repeated(first));
        assert!(!requests.is_repeated(first + SAME_REQUEST / 2));
        // Counted from the first: whoever keeps pressing the keys is heard.
        assert!(requests.is_repeated(first + SAME_REQUEST));
    }

    #[test]
    fn what_is_half_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("class"), "").unwrap();
        let unfinished = BTreeSet::from([out.clone(), folder.path().join("not-begun")]);
        assert_eq!(remove_all(&unfinished), "et-instrument: interrupted twice, nothing was written");
        assert!(!out.exists());

        // Nobody can remove this.
        let line = remove_all(&BTreeSet::from([PathBuf::from("/proc/self/status")]));
        assert_eq!(line, "et-instrument: interrupted twice, half-written output may be left in /proc/self/status");
    }

    #[test]
    fn output_is_known_as_half_written_until_it_is_complete() {
        let path = Path::new("/a/folder/of/this/test");
        let guard = Unfinished::new(path.to_owned());
        assert!(unfinished().contains(path));
        drop(guard);
        assert!(!unfinished().contains(path));
    }
}
