//! Compares the deaths of a trace with those that its heap alone tells (`docs/semantics.md`, "Without calls"): what the same run
//! recorded without calls would say.

use std::fmt::Write;
use std::ops::ControlFlow;

use et_names::units::{bytes, counted, number, percent};
use et_reader::Trace;
use et_reader::amount::Amount;
use et_reader::lifetimes::{self, LifetimesError, Limits, Played, Recording, Step};
use et_reader::record::{AllocKind, ObjectId, Record};
use et_reader::resolve::Outcome;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::table::table;

/// How much sooner objects die, in bytes allocated: upper bounds of the groups.
const SOONER: [u64; 5] = [1, 1 << 10, 1 << 16, 1 << 20, 1 << 24];

/// How far deaths are from those that the heap alone tells. Of all objects that were made while tracing was on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ByHeap {
    /// All of them.
    pub made: Amount,
    /// Alive at the end in both.
    pub alive: Amount,
    /// Alive at the end; dead by the heap alone.
    pub alive_otherwise: Amount,
    /// Dead in both, by how many bytes were allocated between the two moments.
    pub sooner: Vec<Sooner>,
    /// Dead by the heap alone later than with calls. There is none, unless something is wrong.
    pub later: Amount,
}

/// Objects that die sooner by the heap alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sooner {
    /// By less than so many bytes; `None`: by any number.
    pub less_than: Option<u64>,
    #[serde(flatten)]
    pub died: Amount,
}

impl Default for ByHeap {
    /// Of no objects.
    fn default() -> Self {
        let groups = SOONER.iter().map(|bound| Some(*bound)).chain([None]);
        let none = Amount::default();
        let sooner = groups.map(|less_than| Sooner { less_than, died: none }).collect();
        Self { made: none, alive: none, alive_otherwise: none, sooner, later: none }
    }
}

/// Still alive at the end.
const ALIVE: u64 = u64::MAX;

/// Calls `died` with the number of each object that died, in the order of births, its size, and the bytes allocated by
/// then; those alive at the end follow.
fn deaths(recording: &Recording, mut died: impl FnMut(usize, u64, u64)) -> Result<(), LifetimesError> {
    let (mut alive, mut number, mut made) = (FxHashMap::<ObjectId, (usize, u64)>::default(), 0, 0u64);
    recording.replay_steps(|played| {
        match played {
            Played::Step(_, Step::Record(Record::Alloc(alloc))) if alloc.kind != AllocKind::Initial => {
                alive.insert(alloc.object, (number, alloc.size));
                number += 1;
                made += alloc.size;
            }
            Played::Found(Record::Death { object, .. }) => {
                if let Some((number, size)) = alive.remove(object) {
                    died(number, size, made);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    for (number, size) in alive.into_values() {
        died(number, size, ALIVE);
    }
    Ok(())
}

/// Compares them. Takes eight bytes of memory for each object, and reads the trace twice.
///
/// # Errors
/// The trace cannot be read, or a temporary file cannot be written.
pub fn by_heap(trace: &Trace, limits: Limits) -> Result<(ByHeap, Outcome), LifetimesError> {
    let mut with_calls = Vec::new();
    let (recording, outcome) = lifetimes::record(trace, limits)?;
    deaths(&recording, |number, _, at| {
        if with_calls.len() <= number {
            with_calls.resize(number + 1, ALIVE);
        }
        with_calls[number] = at;
    })?;
    drop(recording);
    let mut found = ByHeap::default();
    // Both readings have the same objects, unless the file changes meanwhile.
    deaths(&lifetimes::record_heap(trace, limits)?, |number, size, at| {
        found.add(size, with_calls.get(number).copied().unwrap_or(ALIVE), at);
    })?;
    Ok((found, outcome))
}

impl ByHeap {
    fn add(&mut self, size: u64, with_calls: u64, by_heap: u64) {
        self.made.add(size);
        let group = match (with_calls, by_heap) {
            (ALIVE, ALIVE) => &mut self.alive,
            (ALIVE, _) => &mut self.alive_otherwise,
            (with_calls, by_heap) if by_heap > with_calls => &mut self.later,
            (with_calls, by_heap) => {
                let group = SOONER.partition_point(|bound| *bound <= with_calls - by_heap);
                &mut self.sooner[group].died
            }
        };
        group.add(size);
    }

    /// Whether no object dies later without calls than with them.
    pub fn is_clean(&self) -> bool {
        self.later.objects == 0
    }

    /// As text.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let made = self.made;
        let _ = writeln!(
            out,
            "{}, {}: deaths with calls, and those that the heap alone tells",
            counted(made.objects, "object"),
            bytes(made.bytes)
        );
        let sooner = self.sooner.iter().scan(0, |from, group| {
            let text = match (*from, group.less_than) {
                (0, _) => "dead at the same time in both".to_owned(),
                (_, Some(to)) => format!("dead sooner by the heap, less than {} of allocation apart", bytes(to)),
                (from, None) => format!("dead sooner by the heap, {} of allocation apart or more", bytes(from)),
            };
            *from = group.less_than.unwrap_or(0);
            Some((group.died, text))
        });
        let all = sooner.chain([
            (self.alive_otherwise, "alive at the end, dead by the heap: only local variables hold them".to_owned()),
            (self.alive, "alive at the end in both".to_owned()),
            (self.later, "dead later by the heap: errors".to_owned()),
        ]);
        let rows: Vec<_> = all
            .map(|(amount, text)| {
                vec![
                    number(amount.objects),
                    percent(amount.objects, made.objects),
                    percent(amount.bytes, made.bytes),
                    text,
                ]
            })
            .collect();
        table(&mut out, 3, &["objects", "", "of bytes", ""], &rows);
        out
    }
}

#[cfg(test)]
mod tests {
    use et_names::EventSet;
    use et_reader::source::{Reading, Source};

    use super::*;

    const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

    #[test]
    fn without_calls_nothing_dies_later() {
        let trace = Trace::open(REAL.as_ref()).unwrap();
        let (found, _) = by_heap(&trace, Limits::default()).unwrap();
        assert!(found.is_clean(), "{found:?}");
        let sum = found.sooner.iter().map(|group| group.died).chain([found.alive, found.alive_otherwise]);
        assert_eq!(sum.map(|amount| amount.objects).sum::<u64>(), found.made.objects);
        assert!(found.made.objects > 0 && found.sooner[0].died.objects > 0, "{found:?}");
        insta::assert_snapshot!(found.render());
    }

    #[test]
    fn groups_are_by_distance() {
        let mut found = ByHeap::default();
        for (with_calls, by_heap) in
            [(5, 5), (6, 5), (1 << 10, 0), (1 << 25, 1), (ALIVE, 3), (ALIVE, ALIVE), (3, 4), (3, ALIVE)]
        {
            found.add(8, with_calls, by_heap);
        }
        let by_distance: Vec<u64> = found.sooner.iter().map(|group| group.died.objects).collect();
        assert_eq!(by_distance, [1, 1, 1, 0, 0, 1]);
        assert_eq!((found.alive_otherwise.objects, found.alive.objects, found.later.objects), (1, 1, 2));
        assert!(!found.is_clean());
    }

    #[test]
    fn the_clock_of_a_trace_without_calls_counts_bytes() {
        let (found, _) = by_heap(&Trace::open(REAL.as_ref()).unwrap(), Limits::default()).unwrap();
        let mut trace = Trace::open(REAL.as_ref()).unwrap();
        trace.events = EventSet::ALLOC.or(EventSet::UPDATE);
        let source = Source::from(trace);
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        assert!(population.has_deaths && !population.has_uses);
        assert_eq!(population.end.tick, found.made.bytes, "its clock counts bytes");
    }
}
