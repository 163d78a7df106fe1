//! The records of a trace as an iterator of batches.

use std::sync::Arc;
use std::thread::JoinHandle;

use et_system::threads::{NoThread, spawn};

use crate::batch::{Batch, Batches, batches};
use crate::source::{Ending, Reading, Source, SourceError, ending_of_stopped};

/// Reads a trace on other threads and returns its content in batches. Dropping it stops the threads soon after, except
/// in the middle of the search for last uses, if deaths are computed.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use et_reader::record::Record;
/// use et_reader::source::{Reading, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = Arc::new(Source::open("app.ettrace".as_ref(), None)?);
/// let mut records = source.records(Reading::default());
/// for batch in &mut records {
///     for (record, at) in batch?.records() {
///         if let Record::Death { object, .. } = record {
///             println!("{object:?} died at tick {}", at.tick.0);
///         }
///     }
/// }
/// let ending = records.into_ending()?;
/// println!("{} events lost", ending.outcome.lost.total());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Records {
    /// `None` once all batches have been returned.
    batches: Option<Batches>,
    filling: Option<Filling>,
    ending: Option<Ending>,
}

/// The reading thread, or why it could not be started.
type Filling = Result<JoinHandle<Result<Ending, SourceError>>, NoThread>;

impl Source {
    /// Starts reading on other threads and returns the content in batches.
    pub fn records(self: &Arc<Self>, reading: Reading) -> Records {
        Records::new(Arc::clone(self), reading)
    }
}

impl Records {
    fn new(source: Arc<Source>, reading: Reading) -> Self {
        let (filler, batches) = batches(&source.types(), source.clock(reading.clock));
        let filling = spawn(move || source.fill(reading, filler));
        Self { batches: Some(batches), filling: Some(filling), ending: None }
    }

    /// Results at the end of the trace. If not all batches were consumed, the outcome is marked as stopped; its totals
    /// then include some of what was read ahead, and errors in that part are ignored.
    ///
    /// # Errors
    ///
    /// Fails if the trace cannot be read, unless the iterator has already returned the error.
    pub fn into_ending(mut self) -> Result<Ending, SourceError> {
        let stopped = self.batches.take().is_some();
        let ending = self.finish();
        if stopped { Ok(ending_of_stopped(ending)) } else { ending }
    }

    /// Waits for the reading thread.
    fn finish(&mut self) -> Result<Ending, SourceError> {
        match self.filling.take().transpose()?.map(JoinHandle::join) {
            Some(Ok(ending)) => ending,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(self.ending.take().unwrap_or_default()),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Batch, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.batches.as_mut()?.next() {
            return Some(Ok(batch));
        }
        self.batches = None;
        match self.finish() {
            Ok(ending) => {
                self.ending = Some(ending);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::source::Deaths;
    use crate::testing::TraceBuilder;
    use crate::text::TextTrace;
    use et_format::event::{Event, Ticket};
    use et_format::{Nanos, Wall};
    use et_names::MethodId;
    use std::ops::ControlFlow;

    /// A trace with many calls, in this number of pieces.
    fn calls(pieces: u64) -> Vec<u8> {
        let mut builder = TraceBuilder::new();
        let call = [Event::Entry { method: MethodId(7) }, Event::Exit { method: MethodId(7) }];
        for piece in 0..pieces {
            builder.events(1, 2 * piece + 1, &call.repeat(500));
        }
        builder.finish()
    }

    fn ticks(source: &Arc<Source>, reading: Reading) -> (Vec<(u64, Option<Ticket>)>, Ending) {
        let (mut all, mut records) = (Vec::new(), source.records(reading));
        for batch in &mut records {
            all.extend(batch.unwrap().records().map(|(_, at)| (at.tick.0, at.place.ticket())));
        }
        (all, records.into_ending().unwrap())
    }

    #[test]
    fn batches_are_the_records_in_order() {
        let source = Arc::new(Source::from_bytes(calls(20)).unwrap());
        let places: Vec<_> = (0..20_000).map(|tick| (tick, Some(Ticket(2 * (tick / 1000) + 1)))).collect();
        for (deaths, kept, expected) in [
            (Deaths::None, false, places.clone()),
            (Deaths::Trace, true, places.clone()),
            (Deaths::Trace, false, places.iter().map(|&(tick, _)| (tick, None)).collect()),
        ] {
            let (all, ending) = ticks(&source, Reading { deaths, places: kept, ..Reading::default() });
            assert_eq!(all, expected);
            assert_eq!((ending.outcome.totals.sum(), ending.outcome.stopped), (20_000, false));
        }
    }

    #[test]
    fn dropping_the_records_stops_the_reading() {
        let source = Arc::new(Source::from_bytes(calls(200)).unwrap());
        let mut records = source.records(Reading::default());
        assert!(!records.next().unwrap().unwrap().is_empty());
        let ending = records.into_ending().unwrap();
        assert!(ending.outcome.stopped && ending.outcome.totals.sum() < 200_000);
        // The reading thread releases the trace.
        let mut dropped = source.records(Reading::default());
        dropped.next();
        drop(dropped);
        while Arc::strong_count(&source) > 1 {
            std::thread::yield_now();
        }
    }

    /// Deaths take several passes; dropping the iterator must not wait for them.
    #[test]
    fn dropping_the_records_stops_the_first_pass() {
        let source = Arc::new(Source::from_bytes(calls(400)).unwrap());
        let records = source.records(Reading::default());
        let ending = records.into_ending().unwrap();
        assert!(ending.outcome.stopped && ending.cost.is_none());
    }

    /// Errors after the place where reading was stopped only concern what was read ahead.
    #[test]
    fn errors_after_a_break_are_not_reported() {
        let text: String = "M 1 0 1\n".repeat(10) + "M 1 0 zzz\n";
        let source = Arc::new(Source::from(TextTrace::from_text(&text, None)));
        let reading = Reading { deaths: Deaths::None, ..Reading::default() };
        assert!(source.for_each(reading, |_, _| ControlFlow::Continue(())).is_err());
        let ending = source.for_each(reading, |_, _| ControlFlow::Break(())).unwrap();
        assert!(ending.outcome.stopped);
        let mut records = source.records(reading);
        records.next();
        assert!(records.into_ending().unwrap().outcome.stopped);
    }

    /// Threads that read ahead must not wait for one that is gone.
    #[test]
    fn a_visitor_that_panics_ends_the_reading() {
        let source = Source::from_bytes(calls(200)).unwrap();
        for deaths in [Deaths::None, Deaths::Trace] {
            let panics = std::panic::AssertUnwindSafe(|| {
                let mut left = 10_000;
                source.for_each(Reading { deaths, ..Reading::default() }, |_, _| {
                    left -= 1;
                    assert!(left > 0, "enough");
                    ControlFlow::Continue(())
                })
            });
            assert!(std::panic::catch_unwind(panics).is_err());
        }
        let Source::Trace(trace) = &source else { unreachable!() };
        let panics = std::panic::AssertUnwindSafe(|| trace.for_each(|_, _| panic!("at once")));
        assert!(std::panic::catch_unwind(panics).is_err());
    }

    /// The types of a text are added as it is read.
    #[test]
    fn batches_of_a_text_have_their_types() {
        let lines: String = (1..9000u32).map(|n| format!("N {n:x} 10 Lshop/C{}; 0 0 1\n", n / 3)).collect();
        let source = Arc::new(Source::from(TextTrace::from_text(&lines, None)));
        let name = |record: &Record, types: &crate::types::Types| match record {
            Record::Alloc(alloc) => format!("{:x} {}", alloc.object.0, types.descriptor(alloc.ty)),
            other => panic!("{other:?}"),
        };
        let expected: Vec<String> = (1..9000u32).map(|n| format!("{n:x} Lshop/C{};", n / 3)).collect();
        let reading = Reading { deaths: Deaths::None, ..Reading::default() };
        // Keeps all, which costs a copy of the types for each.
        let kept: Vec<Batch> = source.records(reading).map(Result::unwrap).collect();
        let of_kept = kept.iter().flat_map(|batch| batch.records().map(|(record, at)| name(record, at.types)));
        assert!(of_kept.eq(expected.iter().cloned()));
        let mut visited = Vec::new();
        source
            .for_each(reading, |record, at| {
                visited.push(name(record, at.types));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(visited, expected);
    }

    #[test]
    fn what_cannot_be_read_is_said_at_the_end() {
        let source = Arc::new(Source::from(TextTrace::from_text("M 1 0 1\nM 1 0 zzz\n", None)));
        let mut records = source.records(Reading { deaths: Deaths::None, ..Reading::default() });
        assert_eq!(records.next().unwrap().unwrap().len(), 1);
        assert!(records.next().unwrap().unwrap_err().to_string().contains("line 2"));
        assert!(records.next().is_none());
    }

    #[test]
    fn records_have_the_time_of_their_chunk() {
        let mut builder = TraceBuilder::new();
        let wall = Wall { begin: Nanos(5), end: Some(Nanos(9)) };
        builder.timed_events(1, 1, wall, &[Event::Entry { method: MethodId(7) }]);
        let source = Arc::new(Source::from_bytes(builder.finish()).unwrap());
        for deaths in [Deaths::None, Deaths::Trace] {
            let reading = Reading { deaths, places: true, ..Reading::default() };
            let walls: Vec<_> = source
                .records(reading)
                .flat_map(|batch| batch.unwrap().records().map(|(_, at)| at.place.wall()).collect::<Vec<_>>())
                .collect();
            assert_eq!(walls, [Some(wall)]);
        }
    }
}
