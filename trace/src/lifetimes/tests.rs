//! Merlin against brute force: what is reachable after every step, written as the definition says it.

mod generate;
mod oracle;

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::{Limits, Recorder, Step};
use crate::record::Record;
use crate::text::push_record;
use crate::types::Types;
use generate::{Program, program, special};
use oracle::deaths;

/// The records that readers see, with the deaths between them.
fn replayed(program: &Program, limits: Limits) -> Vec<Record> {
    let mut recorder = Recorder::new(special(), limits);
    for step in &program.steps {
        assert!(match *step {
            Step::Initial { origin, target, slot, .. } => recorder.initial(origin, slot, target),
            Step::Held { object, thread } => recorder.held(object, thread),
            _ => recorder.record(&step.record().unwrap()),
        });
    }
    program.held_at_end.iter().for_each(|&object| recorder.held_to_the_end(object));
    let mut records = Vec::new();
    let recording = recorder.finish().unwrap();
    recording
        .replay(|record| {
            records.push(*record);
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

/// Lists what should come out: deaths of one step in the order of their ids, since their order says nothing.
fn expected(program: &Program) -> Vec<Record> {
    let deaths = deaths(program);
    let mut records = Vec::new();
    for (number, step) in program.steps.iter().enumerate() {
        records.extend(deaths.seen_by_readers(number, step));
        records.extend(deaths.clearings(number));
        records.extend(deaths.after(number));
    }
    records
}

fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    let is_death = |record: &Record| matches!(record, Record::Death { .. });
    for run in records.chunk_by_mut(|a, b| is_death(a) && is_death(b)) {
        run.sort_by_key(|record| record.objects());
    }
    records
}

/// Records as text, which reads better than a dump of theirs.
fn shown(records: &[Record]) -> String {
    let mut text = Vec::new();
    for record in records {
        push_record(&mut text, record, &Types::default());
        text.push(b'\n');
    }
    String::from_utf8_lossy(&text).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn every_death_is_where_brute_force_finds_it(
        program in program(),
        piece_bytes in prop_oneof![Just(1usize), 1..400usize],
        window_steps in prop_oneof![Just(1u64), 1..60u64],
        on_disk: bool,
    ) {
        let memory_bytes = if on_disk { 0 } else { u64::MAX };
        let limits = Limits { piece_bytes, memory_bytes, window_steps };
        let (found, expected) = (sorted(replayed(&program, limits)), sorted(expected(&program)));
        prop_assert_eq!(shown(&found), shown(&expected));
    }
}
