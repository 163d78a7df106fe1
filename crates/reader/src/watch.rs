//! Progress of long work.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use et_names::units;

/// The unit of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of the trace.
    Bytes,
    /// Records, and other items between them.
    Records,
}

/// A stage of the work.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Description for display.
    pub what: &'static str,
    /// Total amount of work, in units.
    pub total: u64,
    pub unit: Unit,
    pub begun: Instant,
}

#[derive(Debug, Default)]
struct State {
    done: AtomicU64,
    stage: Mutex<Option<Stage>>,
    #[cfg(test)]
    all: Mutex<Vec<(&'static str, u64, u64)>>,
}

/// Receives the progress of the work. The default instance ignores it.
#[derive(Clone, Debug, Default)]
pub struct Watcher(Option<Arc<State>>);

impl Watcher {
    /// Creates an instance that keeps the progress.
    pub fn watched() -> Self {
        Self(Some(Arc::default()))
    }

    /// Begins a stage.
    pub fn begin(&self, what: &'static str, unit: Unit, total: u64) {
        let Some(watched) = &self.0 else { return };
        self.note_end();
        let mut stage = watched.stage.lock().unwrap_or_else(PoisonError::into_inner);
        watched.done.store(0, Ordering::Relaxed);
        *stage = Some(Stage { what, total, unit, begun: Instant::now() });
    }

    /// Reports more work done, in units.
    #[inline]
    pub fn add(&self, amount: u64) {
        if let Some(watched) = &self.0 {
            watched.done.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// The current stage, and how much of it is done.
    pub fn stage(&self) -> Option<(Stage, u64)> {
        let watched = self.0.as_ref()?;
        let stage = (*watched.stage.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some((stage, watched.done.load(Ordering::Relaxed)))
    }

    /// The progress of the current stage in one line: `finding deaths, 45 %, 12.3 MiB/s, 42 s left`.
    pub fn line(&self) -> String {
        let Some((stage, done)) = self.stage() else { return "opening the trace".to_owned() };
        match stage.text(done, stage.begun.elapsed()) {
            text if text.is_empty() => stage.what.to_owned(),
            text => format!("{}, {text}", stage.what),
        }
    }

    #[cfg(not(test))]
    fn note_end(&self) {}

    #[cfg(test)]
    fn note_end(&self) {
        if let (Some(watched), Some((stage, done))) = (&self.0, self.stage()) {
            watched.all.lock().unwrap().push((stage.what, done, stage.total));
        }
    }

    /// All stages with the work done and the total work, in units.
    #[cfg(test)]
    pub fn all(&self) -> Vec<(&'static str, u64, u64)> {
        self.note_end();
        self.0.as_ref().unwrap().all.lock().unwrap().clone()
    }
}

impl Stage {
    /// Formats the progress after some time: `45 %, 12.3 MiB/s, 42 s left`.
    pub fn text(&self, done: u64, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64();
        if self.total == 0 || done == 0 || seconds <= 0.0 {
            return String::new();
        }
        let done = done.min(self.total);
        let rate = done as f64 / seconds;
        let percent = 100.0 * done as f64 / self.total as f64;
        let rate_text = match self.unit {
            Unit::Bytes => format!("{}/s", units::bytes(rate as u64)),
            Unit::Records => format!("{:.1} million records/s", rate / 1e6),
        };
        format!(
            "{percent:.0} %, {rate_text}, {} left",
            units::duration(((self.total - done) as f64 / rate).ceil() as u64)
        )
    }
}

/// A text that reports how far it has been read.
#[derive(Debug)]
pub struct Watched<'a> {
    rest: &'a [u8],
    watcher: Watcher,
}

impl<'a> Watched<'a> {
    /// Begins a stage that reads the whole text.
    pub fn new(text: &'a [u8], watcher: &Watcher) -> Self {
        watcher.begin("reading records", Unit::Bytes, text.len() as u64);
        Self { rest: text, watcher: watcher.clone() }
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(into)?;
        self.watcher.add(read as u64);
        Ok(read)
    }
}

impl BufRead for Watched<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.rest)
    }

    fn consume(&mut self, amount: usize) {
        self.rest = &self.rest[amount..];
        self.watcher.add(amount as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use et_names::MethodId;

    use super::*;
    use crate::source::{Deaths, Reading, Source};
    use crate::testing::TraceBuilder;
    use crate::text::{Dialect, TextTrace};
    use crate::{Trace, TraceFile};
    use et_format::event::Event;

    #[test]
    fn rate_and_time_left_are_for_people() {
        let text = |unit, total, done, seconds| {
            Stage { what: "", total, unit, begun: Instant::now() }.text(done, Duration::from_secs(seconds))
        };
        assert_eq!(text(Unit::Bytes, 100_000_000, 25_000_000, 10), "25 %, 2.4 MiB/s, 30 s left");
        assert_eq!(text(Unit::Records, 90_000_000, 10_000_000, 25), "11 %, 0.4 million records/s, 3 min 20 s left");
        assert_eq!(text(Unit::Bytes, 1 << 40, 1 << 30, 10), "0 %, 102.4 MiB/s, 2 h 50 min left");
        assert_eq!(text(Unit::Bytes, 10, 12, 1), "100 %, 10 B/s, 0 s left");
        assert_eq!(text(Unit::Bytes, 10, 0, 1), "");
        assert_eq!(text(Unit::Bytes, 0, 5, 1), "");
    }

    #[test]
    fn a_line_says_what_is_done() {
        let watcher = Watcher::watched();
        assert_eq!(watcher.line(), "opening the trace");
        watcher.begin("finding deaths", Unit::Bytes, 100);
        assert_eq!(watcher.line(), "finding deaths");
        watcher.add(100);
        let line = watcher.line();
        assert!(line.starts_with("finding deaths, 100 %, ") && line.ends_with(", 0 s left"), "{line}");
    }

    /// Every stage is reported, and each reaches its end.
    #[test]
    fn stages_come_to_their_ends() {
        let mut builder = TraceBuilder::new();
        let call = [Event::Entry { method: MethodId(5) }, Event::Exit { method: MethodId(5) }];
        builder.first_thread(1, "one", Vec::new()).first_thread(2, "two", Vec::new());
        for ticket in 1..20 {
            builder.events(1 + ticket as u32 % 2, ticket, &call);
        }
        let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
        let read = |mut source: Source| {
            let watcher = Watcher::watched();
            source.watch(&watcher);
            source.for_each(Reading::default(), |_, _| ControlFlow::Continue(())).unwrap();
            let stages = watcher.all();
            assert!(stages.iter().all(|&(_, done, total)| done == total && total > 0), "{stages:?}");
            stages.into_iter().map(|(what, ..)| what).collect::<Vec<_>>()
        };
        let mut text = Vec::new();
        let source = Source::from(trace);
        crate::text_writer::write(
            &source,
            Dialect::Et,
            Reading { deaths: Deaths::None, ..Reading::default() },
            &mut text,
        )
        .unwrap();
        assert_eq!(read(source), ["looking ahead", "reading events", "finding last uses", "finding deaths"]);
        let text = TextTrace::from_text(std::str::from_utf8(&text).unwrap(), None);
        assert_eq!(read(Source::from(text)), ["reading records", "finding last uses", "finding deaths"]);
    }
}
