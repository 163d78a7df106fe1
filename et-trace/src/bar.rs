//! How far a command has come, on standard error if that is a terminal: for what takes longer than people wait.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use et_trace::watch::Watcher;

/// What is done sooner is not told of.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(100);

/// The bar of one command. Goes away when it is dropped.
#[derive(Debug)]
pub struct Bar {
    watcher: Watcher,
    drawn: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// To be drawn if there is a terminal to draw it on, and if `wanted`.
    pub fn new(wanted: bool) -> Self {
        if !wanted || !stderr().is_terminal() {
            return Self { watcher: Watcher::default(), drawn: None };
        }
        let watcher = Watcher::watched();
        let (stop, stopped) = channel();
        let watched = watcher.clone();
        let thread = et_threads::spawn(move || draw(&watched, &stopped));
        // A bar that nobody draws is no reason to fail.
        Self { watcher, drawn: thread.ok().map(|thread| (stop, thread)) }
    }

    /// What is to be told of the work.
    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.drawn.take() {
            drop(stop);
            // A bar that could not be drawn is no reason to fail.
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
        if let Some(signal) = signals.caught() {
            bar.finish_and_clear();
            // This does not come back. If it does, the signal is one that does not end processes.
            let _ = low_level::emulate_default_handler(signal);
        }
        if stopped.recv_timeout(BETWEEN) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// Signals that end the process: not before the bar is gone from the terminal.
struct Signals {
    caught: Arc<AtomicUsize>,
    /// They do as they always do.
    let_be: Arc<AtomicBool>,
}

impl Signals {
    fn catch() -> Self {
        let (caught, let_be) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Where they cannot be caught the bar stays behind, nothing else.
            let _ = flag::register_conditional_default(signal, let_be.clone());
            let _ = flag::register_usize(signal, caught.clone(), signal as usize);
        }
        Self { caught, let_be }
    }

    fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::SeqCst) as i32).filter(|&signal| signal != 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.let_be.store(true, Ordering::SeqCst);
    }
}
