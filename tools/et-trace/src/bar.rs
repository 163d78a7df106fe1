//! Progress of a command on standard error: a bar on a terminal, otherwise a line now and then. For anything that takes
//! longer than users like to wait.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::PROGRAM;
use crate::signals::Signals;
use et_cli::Heartbeat;
use et_reader::watch::Watcher;

/// Anything faster than this displays no progress.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(100);

/// The bar of one command. Goes away when it is dropped.
#[derive(Debug)]
pub struct Bar {
    watcher: Watcher,
    drawn: Option<(Sender<()>, JoinHandle<()>)>,
    _lines: Option<Heartbeat>,
}

impl Bar {
    /// If `wanted`, displays a bar on a terminal and lines elsewhere.
    pub fn new(wanted: bool) -> Self {
        if !wanted {
            return Self { watcher: Watcher::default(), drawn: None, _lines: None };
        }
        let watcher = Watcher::watched();
        let watched = watcher.clone();
        if !stderr().is_terminal() {
            return Self { watcher, drawn: None, _lines: Some(Heartbeat::new(PROGRAM, move || watched.line())) };
        }
        let (stop, stopped) = channel();
        let thread = et_system::threads::spawn(move || draw(&watched, &stopped));
        // Failure to draw the bar is ignored.
        Self { watcher, drawn: thread.ok().map(|thread| (stop, thread)), _lines: None }
    }

    /// The watcher that receives the progress.
    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawn.take() {
            drop(stop);
            // Failure to draw the bar is ignored.
            let _ = thread.join();
        }
    }
}

fn draw(watcher: &Watcher, stopped: &Receiver<()>) {
    if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let signals = Signals::catch();
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style("{spinner} opening the trace"));
    let mut has_stage = false;
    loop {
        match watcher.stage() {
            None => bar.tick(),
            Some((stage, done)) => {
                if !std::mem::replace(&mut has_stage, true) {
                    bar.set_style(style("{prefix} [{wide_bar}] {msg}"));
                }
                bar.set_prefix(stage.what);
                bar.set_length(stage.total);
                bar.set_position(done.min(stage.total));
                bar.set_message(stage.text(done, stage.begun.elapsed()));
            }
        }
        if signals.caught().is_some() {
            bar.finish_and_clear();
            signals.obey();
        }
        if stopped.recv_timeout(BETWEEN) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}
