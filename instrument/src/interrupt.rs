//! Signals that request termination.
//!
//! Our own long loops call [`check`] now and then, and on a signal take the error path, which removes partial output.
//! If that takes too long for the user, a later signal ends the process at once. While a program runs as a child,
//! signals are forwarded to it, and we end when it ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use et_names::escape;
use et_names::units::counted;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use thiserror::Error;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Process id of the child program; 0 if there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
static HANDLE: OnceLock<Handle> = OnceLock::new();
static OUTPUTS: Mutex<Outputs> = Mutex::new(Outputs { unfinished: BTreeSet::new(), written: Vec::new() });

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
    let without_thread = giving_up.clone();
    let waiting = et_system::threads::spawn(move || {
        let mut requests = Requests::default();
        for origin in signals.forever() {
            match Pid::from_raw(CHILD.load(Ordering::SeqCst)) {
                None => {
                    INTERRUPTED.store(true, Ordering::SeqCst);
                    if requests.is_repeated(Instant::now()) {
                        giving_up.store(true, Ordering::SeqCst);
                        // Outputs that are just put in their places are waited for: either they are written, or nothing is.
                        escape::say(&mut std::io::stderr(), outputs().give_up());
                        std::process::exit(130);
                    }
                }
                // A signal from a terminal goes to the whole process group, so the program already has it.
                Some(child) if origin.process.is_some() => hand_on(child, origin.signal),
                Some(_) => {}
            }
        }
    });
    if waiting.is_err() {
        // No loop is checking for signals: the first one ends the process.
        without_thread.store(true, Ordering::SeqCst);
    }
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

/// The outputs of the process so far.
#[derive(Debug, Default)]
struct Outputs {
    /// Files and folders that are to go if the process ends before they are complete.
    unfinished: BTreeSet<PathBuf>,
    /// Outputs that have been put in place.
    written: Vec<PathBuf>,
}

impl Outputs {
    /// Removes what is half-written, as far as that can be done while other threads still write, and says what is left.
    fn give_up(&self) -> String {
        let mut line = "et-instrument: interrupted twice, ".to_owned();
        line += &match &self.written[..] {
            [] => "nothing was written".to_owned(),
            [one] => format!("{} was written before", one.display()),
            [first, ..] => format!(
                "{} and {} were written before",
                first.display(),
                counted(self.written.len() as u64 - 1, "other output")
            ),
        };
        match self.unfinished.iter().filter(|path| !is_removed(path)).min() {
            None => line,
            Some(left) if self.written.is_empty() => {
                format!("et-instrument: interrupted twice, half-written output may be left in {}", left.display())
            }
            Some(left) => format!("{line}, something may be left in {}", left.display()),
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

fn outputs() -> MutexGuard<'static, Outputs> {
    OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `look` with the files that a second signal would remove.
#[cfg(test)]
pub fn as_a_signal<T>(look: impl FnOnce(&BTreeSet<PathBuf>) -> T) -> T {
    look(&outputs().unfinished)
}

/// Puts outputs in their places: to a signal that ends the process all of `put` is one step. It returns what was written, and what
/// is to be removed from now on.
pub fn put_in_place<E>(
    put: impl FnOnce() -> Result<(Vec<PathBuf>, Option<PathBuf>), E>,
) -> Result<Option<Unfinished>, E> {
    let mut outputs = outputs();
    let (written, left) = put()?;
    outputs.written.extend(written);
    if let Some(left) = &left {
        outputs.unfinished.insert(left.clone());
    }
    Ok(left.map(Unfinished))
}

/// As long as this lives, its path is removed should the process end at once.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// For a file or folder that is about to be made.
    pub fn new(path: PathBuf) -> Self {
        outputs().unfinished.insert(path.clone());
        Self(path)
    }

    /// Path of the file or folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        outputs().unfinished.remove(&self.0);
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

/// The user requested termination.
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
    // Handles a signal that arrived just before.
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
        // Measured from the first request, so that keeping the keys pressed has an effect.
        assert!(requests.is_repeated(first + SAME_REQUEST));
    }

    #[test]
    fn what_is_half_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("class"), "").unwrap();
        let unfinished = BTreeSet::from([out.clone(), folder.path().join("not-begun")]);
        let outputs = Outputs { unfinished, written: Vec::new() };
        assert_eq!(outputs.give_up(), "et-instrument: interrupted twice, nothing was written");
        assert!(!out.exists());

        // This file cannot be removed.
        let unfinished = BTreeSet::from([PathBuf::from("/proc/self/status")]);
        let line = Outputs { unfinished, written: Vec::new() }.give_up();
        assert_eq!(line, "et-instrument: interrupted twice, half-written output may be left in /proc/self/status");
    }

    #[test]
    fn what_was_written_is_not_denied() {
        let written = |count: usize| (0..count).map(|index| PathBuf::from(format!("/out/{index}"))).collect();
        let line = |count, unfinished| Outputs { unfinished, written: written(count) }.give_up();
        assert_eq!(line(1, BTreeSet::new()), "et-instrument: interrupted twice, /out/0 was written before");
        assert_eq!(
            line(3, BTreeSet::from(["/proc/self/status".into()])),
            "et-instrument: interrupted twice, /out/0 and 2 other outputs were written before, \
             something may be left in /proc/self/status"
        );
    }

    #[test]
    fn output_is_known_as_half_written_until_it_is_complete() {
        let path = Path::new("/a/folder/of/this/test");
        let guard = Unfinished::new(path.to_owned());
        assert!(outputs().unfinished.contains(path));
        drop(guard);
        assert!(!outputs().unfinished.contains(path));
    }

    #[test]
    fn outputs_are_never_seen_between_their_places() {
        let is_locked = || OUTPUTS.try_lock().is_err();
        let places = || (vec![PathBuf::from("/in/its/place")], Some(PathBuf::from("/the/old/one")));
        let old =
            put_in_place(|| if is_locked() { Ok(places()) } else { Err("a signal could see it") }).unwrap().unwrap();
        assert!(outputs().written.contains(&places().0[0]));
        assert!(outputs().unfinished.contains(old.path()));
        let path = old.path().to_owned();
        drop(old);
        assert!(!outputs().unfinished.contains(&path));
        assert!(put_in_place(|| Err(())).is_err());
    }
}
