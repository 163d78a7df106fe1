//! What the rows of objects do not tell of a trace, in a few numbers: with both, a summary needs no records.

pub(crate) mod held;
mod locals;
pub mod usage;

use et_names::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::made_in::MadeIn;
use crate::record::{Record, ThreadId, Totals};
use crate::resolve::{Anomalies, CutOffThread};
use crate::source::{At, Deaths, Ending, Reading, Source};
use crate::types::TypeId;
use locals::Locals;
use usage::{Usage, UsageObserver};

/// Small aggregates over the records of a whole trace. They do not depend on the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    /// Number of records by kind, computed ones included.
    pub totals: Totals,
    /// Threads with records, in the order of their ids.
    pub threads: Vec<ThreadRecords>,
    /// Methods that were entered, in ascending order.
    pub entered: Vec<MethodId>,
    /// If deaths are known: objects that local variables of methods running at the end may have held.
    pub held_by_locals: Vec<HeldByLocal>,
    /// If deaths are known: how objects were used.
    pub usage: Usage,
    /// Threads whose stacks were not empty at the end.
    pub cut_off: Vec<CutOffThread>,
    pub anomalies: Anomalies,
}

/// Number of records of a thread. Computed ones do not count: the thread in which an object died has not necessarily
/// done anything with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecords {
    pub thread: ThreadId,
    pub records: u64,
}

/// Dead objects of one place that a method running at the end may hold in a local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldByLocal {
    /// The method whose variable it would be.
    pub method: MethodId,
    /// Where the object was allocated.
    pub made_in: MadeIn,
    pub ty: TypeId,
    /// Number of objects: it, and what died with it.
    pub objects: u64,
    pub bytes: u64,
}

/// Computes [`Observed`] from the records, in their order.
#[derive(Debug)]
pub struct Observer<'a> {
    source: &'a Source,
    threads: Vec<ThreadRecords>,
    thread_numbers: FxHashMap<ThreadId, usize>,
    /// Number of the thread of the last record.
    current: usize,
    looks: Looks<'a>,
}

/// What is looked at.
#[derive(Debug)]
enum Looks<'a> {
    Everything(Box<Locals<'a>>, Box<UsageObserver<'a>>),
    /// If deaths are unknown: only which methods are entered.
    Entries(FxHashSet<MethodId>),
}

impl<'a> Observer<'a> {
    /// Starts for a trace that is read with these options.
    pub fn new(source: &'a Source, reading: Reading) -> Self {
        let looks = match source.deaths(reading.deaths) {
            Deaths::None => Looks::Entries(FxHashSet::default()),
            Deaths::Trace => {
                Looks::Everything(Box::new(Locals::of(source)), Box::new(UsageObserver::new(source.naming())))
            }
        };
        Self {
            source,
            threads: vec![ThreadRecords::default()],
            thread_numbers: FxHashMap::from_iter([(ThreadId::default(), 0)]),
            current: 0,
            looks,
        }
    }

    /// The next record, in the order of the trace, with what is known there.
    pub fn record(&mut self, record: &Record, at: &At<'_>) {
        let is_computed = at.is_clearing || matches!(record, Record::Death { .. });
        if let Looks::Everything(locals, usage) = &mut self.looks {
            usage.record(record, at.types, true);
            if let Record::Death { object, .. } = *record {
                locals.died(object);
            }
        }
        if is_computed {
            return;
        }
        let thread = record.thread();
        if thread != self.threads[self.current].thread {
            self.switch_to(thread);
        }
        self.threads[self.current].records += 1;
        match (&mut self.looks, record) {
            (Looks::Everything(locals, _), _) => locals.record(record, at.types),
            (Looks::Entries(entered), Record::Entry { method, .. }) => _ = entered.insert(*method),
            (Looks::Entries(_), _) => {}
        }
    }

    fn switch_to(&mut self, thread: ThreadId) {
        let threads = &mut self.threads;
        self.current = *self.thread_numbers.entry(thread).or_insert_with(|| {
            threads.push(ThreadRecords { thread, records: 0 });
            threads.len() - 1
        });
    }

    /// The trace has ended.
    pub fn finish(self, ending: &Ending) -> Observed {
        let mut threads = self.threads;
        threads.retain(|thread| thread.records > 0);
        threads.sort_unstable_by_key(|thread| thread.thread);
        let types = self.source.types_at(ending);
        let (mut entered, held_by_locals, usage): (Vec<MethodId>, _, _) = match self.looks {
            Looks::Everything(locals, usage) => (locals.entered().collect(), locals.held(), usage.finish(types)),
            Looks::Entries(entered) => (entered.into_iter().collect(), Vec::new(), Usage::default()),
        };
        entered.sort_unstable();
        let outcome = &ending.outcome;
        Observed {
            totals: outcome.totals,
            threads,
            entered,
            held_by_locals,
            usage,
            cut_off: outcome.cut_off.clone(),
            anomalies: outcome.anomalies.clone(),
        }
    }
}
