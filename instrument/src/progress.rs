//! The progress bar of long work.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use et_names::escape::OneLine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};

/// A bar over the classes, drawn on stderr if that is a terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Arc<Lines>>,
}

/// What each line for a program begins with: all else on stderr is a message.
const MARK: &str = "progress: ";

/// Time between two lines.
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
        Self { bar, lines: None }
    }

    /// For a program that reads stderr: lines that begin with `progress: `.
    pub fn lines() -> Self {
        Self { lines: Some(Arc::new(Lines::new())), ..Self::new(true) }
    }

    /// For people a bar if stderr is a terminal, for programs lines, with `quiet` neither.
    pub fn new_or_lines(quiet: bool) -> Self {
        if quiet || std::io::stderr().is_terminal() { Self::new(quiet) } else { Self::lines() }
    }

    /// What is being worked on. Before the first stage nothing is drawn.
    pub fn stage(&self, what: impl Into<String>) {
        let is_first = self.bar.message().is_empty();
        self.bar.set_message(what.into());
        if is_first && !self.bar.is_hidden() {
            turn(self.bar.downgrade());
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
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
            let classes = if done < all { format!(", {done} of {all} classes") } else { String::new() };
            self.say(&format!("{MARK}{}{classes}", self.bar.message()));
        }
    }

    /// Prints a line above the bar. If nobody reads it any more, so be it.
    pub fn say(&self, line: &str) {
        // In one piece: other processes may write to the same place.
        let _ = self.bar.suspend(|| std::io::stderr().write_all(format!("{}\n", OneLine(line)).as_bytes()));
    }

    /// More classes have been found.
    pub fn expect(&self, classes: usize) {
        self.bar.inc_length(classes as u64);
    }

    /// One class is done.
    pub fn done(&self) {
        self.bar.inc(1);
        self.tell();
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows that something is going on, as long as there is a bar. indicatif's own way needs a thread; if there is none the bar moves
/// with the work only.
fn turn(bar: WeakProgressBar) {
    let _ = et_threads::spawn(move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(TURN);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_at_intervals() {
        let lines = Lines::new();
        let at = |seconds| lines.is_due(Duration::from_secs(seconds));
        assert_eq!([0, 1, 2, 3, 7, 8, 9].map(at), [false, false, true, false, true, false, true]);
    }
}
