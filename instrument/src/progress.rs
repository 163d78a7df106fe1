//! The progress bar of long work.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over the classes, drawn on stderr if that is a terminal.
#[derive(Clone, Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// With `quiet`, or without a terminal, nothing is drawn.
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{spinner} {msg} [{wide_bar}] {pos}/{len} classes {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// What is being worked on. Before the first stage nothing is drawn.
    pub fn stage(&self, what: impl Into<String>) {
        let is_first = self.0.message().is_empty();
        self.0.set_message(what.into());
        if is_first && !self.0.is_hidden() {
            self.0.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// Prints a line above the bar. If nobody reads it any more, so be it.
    pub fn say(&self, line: &str) {
        let _ = self.0.suspend(|| writeln!(std::io::stderr(), "{line}"));
    }

    /// More classes have been found.
    pub fn expect(&self, classes: usize) {
        self.0.inc_length(classes as u64);
    }

    /// One class is done.
    pub fn done(&self) {
        self.0.inc(1);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
