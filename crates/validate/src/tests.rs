//! A well-formed trace validates, and each way of spoiling it is found.

use et_format::event::{Event, ObjectHash};
use et_names::{FieldId, MethodId, SiteId};
use proptest::prelude::*;

use super::{Checker, validate};
use et_reader::TraceFile;
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, Slot, ThreadId};
use et_reader::recover::recover;
use et_reader::source::{Deaths, Reading, Source};
use et_reader::testing::TraceBuilder;
use et_reader::text::Dialect;
use et_reader::text_writer;
use et_reader::types::{TypeId, Types};

/// The next step of a generated program.
#[derive(Clone, Copy, Debug)]
enum Step {
    New,
    Enter,
    Exit,
    Throw,
    Handle,
    Update,
}

fn steps() -> impl Strategy<Value = Vec<(Step, u32, u32)>> {
    let step = prop_oneof![
        Just(Step::New),
        Just(Step::Enter),
        Just(Step::Exit),
        Just(Step::Throw),
        Just(Step::Handle),
        Just(Step::Update)
    ];
    prop::collection::vec((step, any::<u32>(), any::<u32>()), 1..150)
}

fn alloc(object: u64, thread: ThreadId) -> Record {
    Record::Alloc(Alloc {
        kind: AllocKind::New,
        object: ObjectId(object),
        size: 16,
        ty: TypeId(1),
        site: SiteId(0),
        length: 0,
        stack: Default::default(),
        thread,
    })
}

/// Plays the steps in three threads; a separate model keeps the records well-formed.
fn play(steps: &[(Step, u32, u32)]) -> Vec<Record> {
    let mut records = vec![alloc(1, ThreadId(1))];
    let mut objects = 1;
    let mut stacks: Vec<Vec<(MethodId, ObjectId)>> = vec![Vec::new(); 3];
    let mut in_flight = [None; 3];
    let mut slots = std::collections::HashMap::new();
    for &(step, a, b) in steps {
        let at = a as usize % 3;
        let thread = ThreadId(at as u32 + 1);
        let some = |n: u32| ObjectId(1 + u64::from(n) % objects);
        match step {
            Step::New => {
                objects += 1;
                records.push(alloc(objects, thread));
            }
            Step::Enter => {
                let frame = (MethodId(b % 5 + 1), if b % 2 == 0 { ObjectId::NULL } else { some(b / 2) });
                stacks[at].push(frame);
                records.push(Record::Entry { method: frame.0, receiver: frame.1, thread });
            }
            Step::Exit => {
                let Some((method, receiver)) = stacks[at].pop() else { continue };
                records.push(match in_flight[at] {
                    Some(exception) => Record::ExitThrow { method, receiver, exception, thread },
                    None => Record::Exit { method, receiver, thread },
                });
            }
            Step::Throw => {
                let Some(&(method, receiver)) = stacks[at].last() else { continue };
                let exception = some(b);
                in_flight[at] = Some(exception);
                records.push(Record::Throw { method, receiver, exception, thread });
            }
            Step::Handle => {
                let Some(&(method, receiver)) = stacks[at].last() else { continue };
                let Some(exception) = in_flight[at].take() else { continue };
                records.push(Record::Handle { method, receiver, exception, thread });
            }
            Step::Update => {
                let target = if b % 3 == 0 { ObjectId::NULL } else { some(b / 3) };
                let (origin, field) = (some(a / 3), FieldId(b % 4 + 1));
                let old = slots.insert((origin, field), target).unwrap_or_default();
                records.push(Record::Update { old, origin, target, slot: Slot::Field(field), thread });
            }
        }
    }
    for (at, stack) in stacks.iter_mut().enumerate() {
        let thread = ThreadId(at as u32 + 1);
        while let Some((method, receiver)) = stack.pop() {
            records.push(Record::Exit { method, receiver, thread });
        }
    }
    records
}

fn violations(records: &[Record], cut_off: &[(ThreadId, usize)]) -> Vec<String> {
    let mut types = Types::default();
    types.intern("LA;");
    let mut checker = Checker::new(10);
    records.iter().for_each(|record| checker.record(record, &types));
    checker.finish(cut_off, false);
    checker.report().violations
}

fn position(records: &[Record], from: usize, wanted: impl Fn(&Record) -> bool) -> Option<usize> {
    let count = records.len();
    (0..count).map(|i| (i + from) % count).find(|&i| wanted(&records[i]))
}

proptest! {
    #[test]
    fn a_well_formed_trace_validates(steps in steps()) {
        prop_assert_eq!(violations(&play(&steps), &[]), Vec::<String>::new());
    }

    #[test]
    fn every_mutilation_is_found(steps in steps(), from: prop::sample::Index, which in 0..9) {
        let mut records = play(&steps);
        let from = from.index(records.len());
        let stranger = ObjectId(1 << 40);
        let spoiled = match which {
            0 => position(&records, from, |r| matches!(r, Record::Alloc(_))).map(|at| {
                let twice = records[at];
                records.insert(at, twice);
            }),
            1 => position(&records, from, |r| matches!(r, Record::Exit { .. } | Record::ExitThrow { .. })).map(|at| {
                records.remove(at);
            }),
            2 => position(&records, from, |r| matches!(r, Record::Entry { .. })).map(|at| {
                records.remove(at);
            }),
            3 => position(&records, from, |r| matches!(r, Record::Update { .. })).map(|at| {
                if let Record::Update { old, .. } = &mut records[at] {
                    *old = if old.is_null() { ObjectId(1) } else { ObjectId::NULL };
                }
            }),
            4 => position(&records, from, |r| matches!(r, Record::Exit { .. })).map(|at| {
                if let Record::Exit { receiver, .. } = &mut records[at] {
                    *receiver = if receiver.is_null() { ObjectId(1) } else { ObjectId::NULL };
                }
            }),
            5 => position(&records, from, |r| matches!(r, Record::Handle { .. } | Record::ExitThrow { .. })).map(|at| {
                if let Record::Handle { exception, .. } | Record::ExitThrow { exception, .. } = &mut records[at] {
                    *exception = ObjectId::NULL;
                }
            }),
            6 => position(&records, from, |r| matches!(r, Record::Update { .. })).map(|at| {
                if let Record::Update { target, .. } = &mut records[at] {
                    *target = stranger;
                }
            }),
            7 => position(&records, from, |r| matches!(r, Record::Entry { .. } | Record::Exit { .. })).map(|at| {
                if let Record::Entry { thread, .. } | Record::Exit { thread, .. } = &mut records[at] {
                    *thread = ThreadId(9);
                }
            }),
            _ => position(&records, from, |r| matches!(r, Record::Alloc(_))).map(|at| {
                if let Record::Alloc(alloc) = &mut records[at] {
                    alloc.ty = TypeId::UNKNOWN;
                }
            }),
        };
        if spoiled.is_some() {
            prop_assert!(!violations(&records, &[]).is_empty());
        }
    }
}

#[test]
fn a_thread_may_be_cut_off_if_that_is_said() {
    let records = [Record::Entry { method: MethodId(1), receiver: ObjectId::NULL, thread: ThreadId(4) }];
    assert_eq!(violations(&records, &[(ThreadId(4), 1)]), Vec::<String>::new());
    assert_eq!(violations(&records, &[(ThreadId(4), 2)]).len(), 1);
    assert_eq!(
        violations(&records, &[]),
        ["end: thread 4 ends with 1 frames, the top one entered at 1, and is not said to be cut off"]
    );
}

/// As a VM left one that was killed while it started: the class's record would have come.
#[test]
fn a_type_may_lack_where_the_trace_is_cut_off() {
    let mut record = alloc(1, ThreadId(1));
    if let Record::Alloc(alloc) = &mut record {
        (alloc.kind, alloc.ty, alloc.length) = (AllocKind::Vm, TypeId::UNKNOWN, 31);
    }
    for (is_cut_off, expected) in [(true, 0), (false, 1)] {
        let mut checker = Checker::new(10);
        checker.record(&record, &Types::default());
        checker.finish(&[], is_cut_off);
        assert_eq!(checker.report().violation_count, expected);
    }
}

/// Neither names tables nor records of classes had been written: that is nothing to find fault with where the trace says that it was
/// cut off, be it recovered or made a text of.
#[test]
fn what_was_killed_at_its_start_keeps_its_excuse() {
    let mut builder = TraceBuilder::new();
    let string = Event::Made { object: ObjectHash(5), class: ObjectHash(9), length: 31, fresh: false, constant: false };
    builder.events(1, 1, &[string, Event::Entry { method: MethodId(7) }, Event::Exit { method: MethodId(7) }]);
    let cut = builder.without_end();
    let ended = builder.finish();
    let mut recovered = Vec::new();
    recover(&TraceFile::from_bytes(cut.clone(), None).unwrap(), &mut recovered).unwrap();
    for (name, trace, is_excused) in [("cut", cut, true), ("recovered", recovered, true), ("ended", ended, false)] {
        let source = Source::from_bytes(trace).unwrap();
        let mut text = Vec::new();
        let reading = Reading { deaths: Deaths::None, ..Reading::default() };
        text_writer::write(&source, Dialect::Et, reading, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("? "), "the type is not known: {text}");
        let violations = |source: &Source| validate(source, Deaths::None, 10).unwrap().violations;
        let found = [violations(&source), violations(&Source::from_bytes(text.into_bytes()).unwrap())];
        assert_eq!(found.each_ref().map(Vec::is_empty), [is_excused; 2], "{name}: {found:?}");
    }
}

#[test]
fn slots_that_were_there_before_may_hold_anything_once() {
    let thread = ThreadId(1);
    let mut first = alloc(1, thread);
    if let Record::Alloc(alloc) = &mut first {
        alloc.kind = AllocKind::Initial;
    }
    let put = |old: u64, target: u64| Record::Update {
        old: ObjectId(old),
        origin: ObjectId(1),
        target: ObjectId(target),
        slot: Slot::Element(0),
        thread,
    };
    let good = [first, alloc(2, thread), put(2, 0), put(0, 1), put(1, 0)];
    assert_eq!(violations(&good, &[]), Vec::<String>::new());
    let bad = [first, alloc(2, thread), put(2, 0), put(2, 1)];
    assert_eq!(violations(&bad, &[]).len(), 1);
}
