//! The progress bar of long work.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use et_cli::{Heartbeat, Program};
use et_names::escape::OneLine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};

/// A bar over the classes, drawn on stderr if that is a terminal; if not, a line now and then.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Arc<Lines>>,
    heartbeat: Option<Arc<Mutex<Beat>>>,
}

/// Periodic lines for users without a terminal, from the first stage to the end.
#[derive(Debug)]
enum Beat {
    Waiting,
    Beating { _lines: Heartbeat },
    Over,
}

/// Prefix of lines for programs: all other lines on stderr are messages.
const MARK: &str = "progress: ";

/// Prefix of other messages.
const PROGRAM: Program = Program("et-instrument");

/// Time between two lines for a program.
const BETWEEN: Duration = Duration::from_secs(2);
/// Time between two turns of the spinner.
const TURN: Duration = Duration::from_millis(200);

/// Progress for a program to show: lines on stderr, none for what is soon done.
#[derive(Debug)]
struct Lines {
    started: Instant,
    /// When the next one may be written, in milliseconds from the start.
    due: AtomicU64,
}

impl Lines {
    fn new() -> Self {
        Self { started: Instant::now(), due: AtomicU64::new(millis(BETWEEN)) }
    }

    /// Whether it is time for a line; true for one thread of those that ask.
    fn is_due(&self, elapsed: Duration) -> bool {
        let (now, due) = (millis(elapsed), self.due.load(Ordering::Relaxed));
        let next = now + millis(BETWEEN);
        now >= due && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Progress {
    /// With `quiet`, or without a terminal, nothing is drawn.
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{spinner} {msg} [{wide_bar}] {pos}/{len} classes {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let heartbeat = (!quiet && !shown).then(|| Arc::new(Mutex::new(Beat::Waiting)));
        Self { bar, lines: None, heartbeat }
    }

    /// For a program that reads stderr: lines that begin with `progress: `.
    pub fn lines() -> Self {
        Self { lines: Some(Arc::new(Lines::new())), ..Self::new(true) }
    }

    /// For people a bar if stderr is a terminal, for programs lines, with `quiet` neither.
    pub fn new_or_lines(quiet: bool) -> Self {
        if quiet || std::io::stderr().is_terminal() { Self::new(quiet) } else { Self::lines() }
    }

    /// Starts a stage. Before the first one, nothing is drawn.
    pub fn stage(&self, what: impl Into<String>) {
        let is_first = self.bar.message().is_empty();
        self.bar.set_message(what.into());
        if is_first && !self.bar.is_hidden() {
            turn(self.bar.downgrade());
        }
        if let Some(heartbeat) = &self.heartbeat {
            let mut heartbeat = heartbeat.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*heartbeat, Beat::Waiting) {
                let bar = self.bar.clone();
                *heartbeat = Beat::Beating { _lines: Heartbeat::new(PROGRAM, move || at(&bar)) };
            }
        }
        self.tell();
    }

    /// Says what takes its time: a line above the bar, or one of the lines.
    pub fn news(&self, line: &str) {
        let mark = if self.lines.is_some() { MARK } else { "et-instrument: " };
        self.say(&format!("{mark}{line}"));
    }

    fn tell(&self) {
        if self.lines.as_ref().is_some_and(|lines| lines.is_due(lines.started.elapsed())) {
            self.say(&format!("{MARK}{}", at(&self.bar)));
        }
    }

    /// Prints a line above the bar. Errors are ignored.
    pub fn say(&self, line: &str) {
        // In one piece: other processes may write to the same place.
        let _ = self.bar.suspend(|| std::io::stderr().write_all(format!("{}\n", OneLine(line)).as_bytes()));
    }

    /// More classes have been found.
    pub fn expect(&self, classes: usize) {
        self.bar.inc_length(classes as u64);
    }

    /// Counts a finished class.
    pub fn done(&self) {
        self.bar.inc(1);
        self.tell();
    }

    /// Removes the bar, and says no more.
    pub fn finish(&self) {
        if let Some(heartbeat) = &self.heartbeat {
            *heartbeat.lock().unwrap_or_else(PoisonError::into_inner) = Beat::Over;
        }
        self.bar.finish_and_clear();
    }
}

/// Animates the bar. indicatif needs a thread for that; without one, the bar only moves when work is done.
fn turn(bar: WeakProgressBar) {
    let _ = et_system::threads::spawn(move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(TURN);
        }
    });
}

/// Description of the current stage and its progress.
fn at(bar: &ProgressBar) -> String {
    let (done, all) = (bar.position(), bar.length().unwrap_or_default());
    let classes = if done < all { format!(", {done} of {all} classes") } else { String::new() };
    format!("{}{classes}", bar.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_what_is_worked_on_until_it_is_done() {
        // There is no terminal in tests.
        let progress = Progress::new(false);
        let Some(heartbeat) = progress.heartbeat.clone() else { return };
        let is = |beat: fn(&Beat) -> bool| beat(&heartbeat.lock().unwrap());
        assert!(is(|beat| matches!(beat, Beat::Waiting)), "nothing has begun");
        progress.stage("rewriting app.jar");
        progress.expect(300);
        progress.done();
        assert!(is(|beat| matches!(beat, Beat::Beating { .. })));
        assert_eq!(at(&progress.bar), "rewriting app.jar, 1 of 300 classes");
        // The program that runs then has standard error for itself.
        progress.finish();
        progress.stage("");
        assert!(is(|beat| matches!(beat, Beat::Over)));
        assert!(Progress::new(true).heartbeat.is_none());
    }

    #[test]
    fn lines_come_at_intervals() {
        let lines = Lines::new();
        let at = |seconds| lines.is_due(Duration::from_secs(seconds));
        assert_eq!([0, 1, 2, 3, 7, 8, 9].map(at), [false, false, true, false, true, false, true]);
    }
}
