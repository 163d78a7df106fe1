//! Compares Merlin with brute force: what is reachable after every step, written as the definition says it.

mod binary;
mod generate;
mod oracle;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use et_names::EventSet;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{Limits, Recorder, Step};
use crate::record::{Alloc, AllocKind, ObjectId, Record, RecordKind};
use crate::source::{Deaths, Reading, Source};
use crate::text::{Dialect, TextNames, TextTrace, push_record};
use crate::text_writer;
use crate::types::Types;
use generate::{Program, STRING, program, program_of_events, special};
use oracle::deaths;

/// The violations that validation reports for a text.
fn violations(text: &str) -> Vec<String> {
    et_validate::bytes(text.as_bytes().to_vec(), 5).unwrap().violations
}

/// This number of cases, unless PROPTEST_CASES is set.
fn cases(count: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig::with_cases(wanted.unwrap_or(count))
}

/// The records that readers see, with the deaths inserted, and what only stacks hold at the end.
fn replayed(program: &Program, limits: Limits) -> (Vec<Record>, BTreeSet<ObjectId>) {
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
    let cost = recording
        .replay(|record| {
            records.push(*record);
            ControlFlow::Continue(())
        })
        .unwrap();
    let held: Vec<ObjectId> = cost.held_by_stacks.into_iter().flat_map(|held| held.objects).collect();
    let once = BTreeSet::from_iter(held.iter().copied());
    assert_eq!(once.len(), held.len(), "each is of one");
    (records, once)
}

/// The expected records; deaths at the same step are in the order of their ids, since their order is not defined.
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

/// Like [`sorted`], but also sorts clearings at the same step by id, since ids in a trace differ from those in the
/// program.
fn sorted_by_place(mut records: Vec<Record>) -> Vec<Record> {
    let clears = |record: &Record| match *record {
        Record::Update { target: ObjectId::NULL, slot, .. } => Some(slot),
        _ => None,
    };
    for run in records.chunk_by_mut(|a, b| clears(a).is_some() && clears(a) == clears(b)) {
        run.sort_by_key(|record| record.objects());
    }
    sorted(records)
}

/// Records as text, which is easier to read than their debug output.
fn shown(records: &[Record]) -> String {
    let mut text = Vec::new();
    for record in records {
        push_record(&mut text, record, &Types::default());
        text.push(b'\n');
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The names file of the program's types and fields.
const NAMES: &str = "\
C 0x1 Plain 0x0 I:
C 0x2 java/lang/Class 0x0 I:
C 0x3 java/lang/String 0x0 I:
C 0x7 java/lang/ref/Reference 0x0 I:
C 0x4 java/lang/ref/WeakReference 0x7 I:
C 0x5 java/lang/ref/FinalReference 0x7 I:
C 0x6 [LPlain; 0x0 I:
F I 0x9 referent 0x7 java/lang/ref/Reference Ljava/lang/Object;
";

fn types() -> Types {
    let mut types = Types::default();
    for name in ["Plain", "java/lang/Class", "java/lang/String", "java/lang/ref/WeakReference"] {
        types.intern_class(name);
    }
    types.intern_class("java/lang/ref/FinalReference");
    types.intern("[LPlain;");
    types
}

fn written(records: &[Record]) -> String {
    let (types, mut text) = (types(), Vec::new());
    for record in records {
        push_record(&mut text, record, &types);
        text.push(b'\n');
    }
    String::from_utf8(text).unwrap()
}

/// The whole program as text in dialect et, including what holds objects.
fn told(program: &Program) -> String {
    let (types, mut text) = (types(), b"# Elephant Tracks, dialect et\n# with holders\n".to_vec());
    for step in &program.steps {
        match *step {
            Step::Initial { origin, target, slot, .. } => {
                text.extend(format!("# ref {:x} {:x} {:x}\n", origin.0, slot.number(), target.0).bytes());
            }
            Step::Held { object, thread } => text.extend(format!("# held {:x} {:x}\n", object.0, thread.0).bytes()),
            _ => {
                let record = step.record().unwrap();
                push_record(&mut text, &record, &types);
                text.push(b'\n');
                // The oracle takes all strings created by the VM for constants.
                if let Record::Alloc(Alloc { kind: AllocKind::Vm, ty: STRING, object, .. }) = record {
                    text.extend(format!("# held {:x}\n", object.0).bytes());
                }
            }
        }
    }
    text.extend(program.held_at_end.iter().flat_map(|object| format!("# held {:x}\n", object.0).into_bytes()));
    String::from_utf8(text).unwrap()
}

fn read(text: &str) -> Source {
    let names = TextNames::read(NAMES.as_bytes()).unwrap().unwrap();
    TextTrace::from_text(text, Some(names)).into()
}

fn converted(source: &Source, dialect: Dialect, deaths: Deaths) -> String {
    let mut text = Vec::new();
    text_writer::write(source, dialect, Reading { deaths, ..Reading::default() }, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Lines without comments, with deaths at the same place sorted.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.chunk_by_mut(|a, b| a.starts_with("D ") && b.starts_with("D ")).for_each(<[&str]>::sort);
    lines
}

/// Object, thread and time of each death.
fn deaths_of(replayer: &str) -> Vec<&str> {
    let mut deaths: Vec<_> = replayer.lines().filter(|line| line.starts_with("D ")).collect();
    deaths.sort();
    deaths
}

proptest! {
    #![proptest_config(cases(64))]
    /// Without deaths in the input, with deaths in the output, and through both dialects.
    #[test]
    fn texts_have_the_same_deaths(program in program()) {
        let program = program.without_vm();
        let plain: Vec<Record> = program.steps.iter().filter_map(Step::record).collect();
        let expected = written(&expected(&program));
        let header = "# Elephant Tracks, dialect et\n";
        let et = converted(&read(&format!("{header}{}", written(&plain))), Dialect::Et, Deaths::Trace);
        prop_assert_eq!(lines(&et), lines(&expected));
        let source = read(&et);
        prop_assert_eq!(&converted(&source, Dialect::Et, Deaths::Trace), &et, "read back it is the same");
        prop_assert_eq!(violations(&et), Vec::<String>::new());
        let replayer = converted(&source, Dialect::Replayer, Deaths::Trace);
        let back = read(&replayer);
        prop_assert_eq!(violations(&replayer), Vec::<String>::new());
        prop_assert_eq!(&converted(&back, Dialect::Et, Deaths::Trace), &et, "the replayer's dialect loses nothing");
        prop_assert_eq!(&converted(&back, Dialect::Replayer, Deaths::Trace), &replayer);
        // Deaths that are dropped and computed again are the same in either dialect. (Clearings of weak references stay
        // when deaths are dropped, and are then duplicated.)
        for dialect in [Dialect::Et, Dialect::Replayer] {
            let again = converted(&read(&converted(&source, dialect, Deaths::None)), Dialect::Replayer, Deaths::Trace);
            prop_assert_eq!(deaths_of(&again), deaths_of(&replayer));
        }
    }

    /// Holds survive both dialects, so that deaths are the same.
    #[test]
    fn texts_say_what_holds_objects(program in program()) {
        let source = read(&told(&program));
        let et = converted(&source, Dialect::Et, Deaths::Trace);
        let expected = written(&expected(&program));
        prop_assert_eq!(lines(&et), lines(&expected));
        let deaths = converted(&source, Dialect::Replayer, Deaths::Trace);
        for dialect in [Dialect::Et, Dialect::Replayer] {
            let plain = converted(&source, dialect, Deaths::None);
            let back = read(&plain);
            prop_assert_eq!(&converted(&back, dialect, Deaths::None), &plain, "read back it is the same");
            let again = converted(&back, Dialect::Replayer, Deaths::Trace);
            prop_assert_eq!(deaths_of(&again), deaths_of(&deaths));
            let again = converted(&back, Dialect::Et, Deaths::Trace);
            prop_assert_eq!(lines(&again), lines(&et));
        }
    }

    /// A death in the wrong place is detected.
    #[test]
    fn deaths_too_early_are_violations(program in program(), which: prop::sample::Index) {
        let program = program.without_vm();
        let records = expected(&program);
        // Deaths, each with the last mention before it unless that is the allocation.
        let moves: Vec<(usize, usize)> = (0..records.len())
            .filter(|&at| matches!(records[at], Record::Death { .. }))
            .filter_map(|at| {
                let object = records[at].objects()[0];
                let last = records[..at].iter().rposition(|record| record.objects().contains(&object))?;
                (!matches!(records[last], Record::Alloc(_))).then_some((at, last))
            })
            .collect();
        if moves.is_empty() {
            return Ok(());
        }
        let (at, last) = moves[which.index(moves.len())];
        let mut early = records.clone();
        let death = early.remove(at);
        early.insert(last, death);
        let text = format!("# Elephant Tracks, dialect et\n{}# lost 0\n", written(&early));
        let violations = violations(&text);
        prop_assert!(violations.iter().any(|line| line.contains("is dead") || line.contains("died while")), "{violations:?}");
    }
}

proptest! {
    #![proptest_config(cases(2_000))]
    /// From the bytes of a trace to its deaths: events of many threads, and objects whose hashes are reused.
    #[test]
    fn deaths_in_a_trace_are_where_brute_force_finds_them(
        story in binary::story(program_of_events()),
        piece_bytes in prop_oneof![Just(1usize), 1..400usize],
        window_steps in prop_oneof![Just(1u64), 1..60u64],
        way in crate::blocks::tests::ways(),
        tells_calls in any::<bool>(),
        packed in any::<bool>(),
    ) {
        let (mut trace, original) = binary::written(&story, packed);
        if !tells_calls {
            // As if classes had no hooks for calls, so that the clock counts bytes. What is there is read all the same.
            trace.events = EventSet::ALLOC.or(EventSet::UPDATE);
        }
        let limits = Limits { piece_bytes, memory_bytes: u64::MAX, window_steps };
        let (recording, outcome) = super::record(&trace, limits).unwrap();
        let odd: Vec<_> = outcome.anomalies.iter().collect();
        prop_assert_eq!(odd, vec![]);
        let mut found = Vec::new();
        recording
            .replay(|record| {
                found.extend(binary::translated(record, &trace, &original));
                ControlFlow::Continue(())
            })
            .unwrap();
        prop_assert_eq!(shown(&sorted_by_place(found)), shown(&sorted_by_place(expected(&story.program))));
        let (mut again, _) = binary::written(&story, packed);
        again.events = trace.events;
        let by_records = again.into();
        crate::blocks::tests::agrees(&trace, &recording, &by_records, &outcome, way)?;
        crate::blocks::tests::fates_agree(&trace, &by_records, way)?;
    }
}

proptest! {
    #![proptest_config(cases(256))]
    #[test]
    fn every_death_is_where_brute_force_finds_it(
        program in program(),
        piece_bytes in prop_oneof![Just(1usize), 1..400usize],
        window_steps in prop_oneof![Just(1u64), 1..60u64],
        on_disk: bool,
    ) {
        let memory_bytes = if on_disk { 0 } else { u64::MAX };
        let limits = Limits { piece_bytes, memory_bytes, window_steps };
        let (found, on_stacks) = replayed(&program, limits);
        prop_assert_eq!(shown(&sorted(found)), shown(&sorted(expected(&program))));
        prop_assert_eq!(on_stacks, deaths(&program).only_on_stacks);
    }
}

/// Brute force proves nothing about kinds of records that are in no program.
#[test]
fn programs_have_all_kinds_of_records() {
    let mut runner = TestRunner::deterministic();
    // Deaths are what is computed.
    let mut made = BTreeSet::from([RecordKind::Death]);
    for _ in 0..100 {
        for strategy in [program().boxed(), program_of_events().boxed()] {
            let program = strategy.new_tree(&mut runner).unwrap().current();
            made.extend(program.steps.iter().filter_map(Step::record).map(|record| record.kind()));
        }
    }
    let missing: Vec<RecordKind> = RecordKind::ALL.into_iter().filter(|kind| !made.contains(kind)).collect();
    assert!(missing.is_empty(), "lifetimes/tests/generate.rs makes no {missing:?}");
}
