//! Reads the records of traces by blocks and in order, without deaths and with those of a life table, and compares all of
//! them, with their clocks and places. With `TIME` set, only reads by blocks, without deaths, and only counts them.

use std::ops::ControlFlow;
use std::time::Instant;

use et_lives::{attach_passing, observe_rows};
use et_reader::Trace;
use et_reader::lifetimes::{AllKnown, Replay, replay_known};
use et_reader::place::Place;
use et_reader::record::{Clock, Record};
use et_reader::source::{Deaths, Reading, Source, TraceSource};
use et_reader::told::Told;

/// Number of records that share a sum.
const TOGETHER: u64 = 1024;

/// Sums of records.
#[derive(Default)]
struct Sums {
    all: Vec<u64>,
    sum: u64,
    count: u64,
    tick: u64,
}

impl Sums {
    fn add(&mut self, record: &Record, tick: Option<u64>, place: Place, is_clearing: bool) {
        if let Some(tick) = tick {
            assert_eq!(tick, self.tick, "the clock before record {}", self.count);
        }
        self.tick += record.ticks(Clock::default());
        let mut word = |word: u64| self.sum = (self.sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        word(record.kind() as u64 | u64::from(is_clearing) << 8 | u64::from(record.thread().0) << 32);
        record.objects().iter().for_each(|object| word(object.0));
        word(place.ticket().map_or(u64::MAX, |ticket| ticket.0));
        word(place.wall().map_or(0, |wall| wall.begin.0));
        match *record {
            Record::Alloc(alloc) => {
                word(alloc.size);
                word(u64::from(alloc.ty.0) << 32 | u64::from(alloc.site.0));
                word(u64::from(alloc.length) << 32 | u64::from(alloc.stack.0));
            }
            Record::Update { slot, .. } => word(slot.number().into()),
            Record::Entry { method, .. }
            | Record::Exit { method, .. }
            | Record::ExitThrow { method, .. }
            | Record::Throw { method, .. }
            | Record::Handle { method, .. } => word(method.0.into()),
            Record::Death { .. } | Record::Use { .. } => {}
        }
        self.count += 1;
        if self.count.is_multiple_of(TOGETHER) {
            self.all.push(self.sum);
        }
    }

    fn end(mut self) -> (Vec<u64>, u64) {
        self.all.push(self.sum);
        (self.all, self.count)
    }
}

impl Replay for &mut Sums {
    fn told(&mut self, told: Told, place: Place) -> ControlFlow<()> {
        if let Told::Record(record) = told {
            self.add(&record, None, place, false);
        }
        ControlFlow::Continue(())
    }
    fn found(&mut self, record: Record, place: Place) -> ControlFlow<()> {
        self.add(&record, None, place, matches!(record, Record::Update { .. }));
        ControlFlow::Continue(())
    }
}

fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn timed<R>(what: &str, read: impl FnOnce() -> (R, u64)) -> R {
    let (start, before) = (Instant::now(), cpu());
    let (result, records) = read();
    let (wall, used, count) = (start.elapsed().as_secs_f64(), cpu() - before, records as f64);
    println!("  {what}: {wall:.2} s, {:.1} M records/s, {:.1} CPU ns a record", count / wall / 1e6, used / count * 1e9);
    result
}

fn sums(source: &Source, reading: Reading) -> (Sums, u64) {
    let mut sums = Sums::default();
    let add = |record: &Record, at: &et_reader::source::At<'_>| {
        sums.add(record, Some(at.tick.0), at.place, at.is_clearing);
        ControlFlow::Continue(())
    };
    source.for_each(reading, add).unwrap();
    let count = sums.count;
    (sums, count)
}

fn in_order(trace: &Trace, known: Option<AllKnown<'_>>) -> (Sums, u64) {
    let mut sums = Sums::default();
    replay_known(trace, known.unwrap_or_else(|| Box::new(std::iter::empty())), &mut sums).unwrap();
    let count = sums.count;
    (sums, count)
}

fn main() {
    for path in std::env::args().skip(1) {
        println!("{path}");
        let mut trace = TraceSource::open(path.as_ref()).unwrap();
        let table = attach_passing(&mut trace, Clock::default());
        let source = Source::from(trace);
        let Source::Trace(trace) = &source else { panic!("a text") };
        let knows = et_reader::deaths_unknown(trace.events).is_none();
        let is_timed = std::env::var("TIME").is_ok();
        if knows && !is_timed {
            timed("life table", || {
                let (_, observed) = observe_rows(&source, Some(&table), Reading::default()).unwrap();
                ((), observed.totals.sum())
            });
        }
        for deaths in [Deaths::None, Deaths::Trace].into_iter().take(1 + usize::from(knows)) {
            let reading = Reading { deaths, places: true, ..Reading::default() };
            timed("counted", || {
                let mut count = 0;
                let visit = |_: &Record, _: &et_reader::source::At<'_>| {
                    count += 1;
                    ControlFlow::Continue(())
                };
                source.for_each(reading, visit).unwrap();
                ((), count)
            });
            if is_timed {
                break;
            }
            let found = timed("by blocks", || sums(&source, reading));
            let known = (deaths == Deaths::Trace).then(|| trace.lives.as_ref().unwrap().earlier().unwrap().found);
            let expected = timed("in order", || in_order(trace, known));
            let ((found, count), (expected, expected_count)) = (found.end(), expected.end());
            let other = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            match other {
                None if count == expected_count => println!("  {deaths:?}: {count} records, all the same"),
                other => println!(
                    "  {deaths:?}: {count} and {expected_count} records DIFFER, first about {:?}",
                    other.map(|at| at as u64 * TOGETHER)
                ),
            }
        }
    }
}
