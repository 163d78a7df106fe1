//! Virtual threads, as few events tell of them.

use et_format::event::{Event, ObjectHash, Targets, Ticket};
use et_format::{ClassRecord, InitialObject};
use et_names::{MethodId, SiteId, hashes};

use super::*;
use crate::TraceFile;
use crate::blocks::parts::PARTS_AHEAD;
use crate::lifetimes::{Limits, record};
use crate::resolve::Anomalies;
use crate::testing::{ClassNamesExt, TraceBuilder, class, table};

const INIT: MethodId = MethodId(1);
const RUN: MethodId = MethodId(2);
const MAIN: MethodId = MethodId(3);
const CLASS: ObjectHash = ObjectHash(0x10);
const PLAIN: ObjectHash = ObjectHash(0x11);

fn entry(method: MethodId) -> Event<'static> {
    Event::Entry { method }
}

fn exit(method: MethodId) -> Event<'static> {
    Event::Exit { method }
}

fn init() -> Event<'static> {
    Event::EntryInit { method: INIT, site: SiteId(0) }
}

fn super_call() -> Event<'static> {
    Event::SuperCall { method: INIT }
}

fn new(object: u32) -> Event<'static> {
    Event::New { site: SiteId(0), object: ObjectHash(object), class: PLAIN, known: false }
}

fn on(method: MethodId, receiver: u32) -> Event<'static> {
    Event::EntryOn { method, receiver: ObjectHash(receiver) }
}

fn throw(method: MethodId, exception: u32) -> Event<'static> {
    Event::Throw { method, exception: ObjectHash(exception) }
}

fn exit_throw(method: MethodId, exception: u32) -> Event<'static> {
    Event::ExitThrow { method, exception: ObjectHash(exception), receiver: ObjectHash::NULL }
}

fn switch(owner: u32) -> Event<'static> {
    Event::Switch { owner: ObjectHash(owner) }
}

fn ticket(ticket: u64) -> Event<'static> {
    Event::Ticket(Ticket(ticket))
}

/// A trace of these blocks: thread, first ticket, events.
fn trace_of(blocks: &[(u32, u64, &[Event<'static>])]) -> Trace {
    let mut builder = TraceBuilder::new();
    let plain = class("Plain", "java/lang/Object", &["<init> ()V", "run ()V", "static main ()V"])
        .with_sites(&[(2, "LPlain;", 1)]);
    builder.names(&table("app.jar", 1, &[plain]));
    for (mirror, signature) in [(CLASS, "Ljava/lang/Class;"), (PLAIN, "LPlain;")] {
        builder.class(&ClassRecord {
            class: mirror,
            instance_size: 16,
            mirror_size: 112,
            signature: signature.into(),
            ..ClassRecord::default()
        });
        builder.initial_objects(&[InitialObject { object: mirror, class: CLASS, size: 112, length: -1 }]);
    }
    for thread in 1..=3 {
        builder.first_thread(thread, "", Vec::new());
    }
    for &(thread, ticket, events) in blocks {
        builder.events(thread, ticket, events);
    }
    Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap()
}

/// Reads the trace in both ways, which must agree. Returns what both say besides.
fn read_both(blocks: &[(u32, u64, &[Event<'static>])]) -> Outcome {
    let (trace, by_records) = (trace_of(blocks), trace_of(blocks).into());
    let (recording, outcome) = record(&trace, Limits::default()).unwrap();
    for threads in 1..=3 {
        for (by_events, in_order) in [(false, false), (false, true), (true, false), (true, true)] {
            for most_rows in [1, 100] {
                let way = (by_events, in_order, threads, most_rows);
                agrees(&trace, &recording, &by_records, &outcome, way)
                    .unwrap_or_else(|error| panic!("{way:?}: {error}"));
            }
        }
    }
    outcome
}

#[test]
fn carriers_take_turns_with_a_stack() {
    let outcome = read_both(&[
        (1, 1, &[entry(MAIN), new(0xa1), switch(0xa1), on(RUN, 0xa1), new(0xa2), switch(0), exit(MAIN), ticket(7)]),
        (2, 2, &[switch(0xa1), new(0xa3), throw(RUN, 0xa2), switch(0), ticket(9), entry(MAIN), exit(MAIN)]),
        (3, 4, &[switch(0xa1), exit_throw(RUN, 0xa2), switch(0)]),
    ]);
    assert_eq!(outcome.totals.of('T'), 1, "the exception was in flight when the stack was left");
    assert_eq!(outcome.anomalies, Anomalies::default());
}

#[test]
fn one_virtual_thread_follows_another_at_once() {
    let outcome = read_both(&[
        (1, 1, &[switch(0xa1), entry(RUN), switch(0xa2), entry(MAIN), new(0xb1), switch(0xa1)]),
        (1, 2, &[new(0xb2), exit(RUN), switch(0xa2), exit(MAIN), switch(0), new(0xb3)]),
    ]);
    assert_eq!((outcome.anomalies, outcome.cut_off), (Anomalies::default(), Vec::new()));
}

#[test]
fn a_switch_to_the_stack_that_is_mounted_is_none() {
    let outcome = read_both(&[
        (1, 1, &[switch(0), entry(MAIN), switch(0), switch(0xa1), switch(0xa1)]),
        (1, 2, &[switch(0xa1), init(), switch(0xa1), super_call(), new(0xb1), exit(INIT), switch(0), exit(MAIN)]),
        (1, 3, &[switch(0xa1), switch(0)]),
    ]);
    assert_eq!((outcome.anomalies, outcome.cut_off), (Anomalies::default(), Vec::new()));
}

/// The constructor gets an object that is made up. The thread is read ahead until then, past tickets of others.
#[test]
fn a_stack_is_left_while_a_constructor_waits() {
    let outcome = read_both(&[
        (1, 1, &[switch(0xa1), init(), new(0xb0), ticket(4), entry(MAIN), new(0xb1), ticket(6), switch(0), ticket(9)]),
        (2, 2, &[new(0xc0), ticket(5), new(0xc1), ticket(7), switch(0xa1), exit(MAIN), super_call(), new(0xc2)]),
        (2, 8, &[exit(INIT), switch(0)]),
    ]);
    assert_eq!(outcome.anomalies, Anomalies { constructors_split: 1, ..Anomalies::default() });
    assert!(outcome.cut_off.is_empty());
}

/// Thread 1 mounts while a constructor on its own stack waits: that shows before its turn, so it gets the first number.
#[test]
fn a_stack_is_mounted_while_a_constructor_waits() {
    let outcome = read_both(&[
        (1, 1, &[init(), ticket(5), switch(0xa1), new(0xb1), entry(MAIN), switch(0), exit(INIT)]),
        (2, 2, &[switch(0xa2), entry(RUN), new(0xb2), switch(0)]),
    ]);
    assert_eq!(outcome.anomalies.constructors_split, 1);
    let left: Vec<u32> = outcome.cut_off.iter().map(|left| left.thread.0).collect();
    assert_eq!(left, [1 << 31, (1 << 31) + 1]);
}

#[test]
fn a_constructor_waits_across_blocks_behind_a_switch() {
    let outcome = read_both(&[
        (1, 1, &[new(0xb0), switch(0xa1), entry(RUN), init(), entry(MAIN)]),
        (1, 2, &[exit(MAIN), new(0xb1)]),
        (1, 4, &[super_call(), new(0xb2), exit(INIT), switch(0), new(0xb3), switch(0xa1), init()]),
        (1, 5, &[super_call(), new(0xb4), exit(INIT), exit(RUN), switch(0)]),
        (2, 3, &[new(0xc1)]),
    ]);
    assert_eq!((outcome.anomalies, outcome.cut_off), (Anomalies::default(), Vec::new()));
}

#[test]
fn a_continuation_whose_hash_is_used_again_is_another_one() {
    let outcome = read_both(&[
        (1, 1, &[new(0xa1), switch(0xa1), entry(RUN), switch(0)]),
        (1, 2, &[new(0xa1), switch(0xa1), entry(MAIN), exit(MAIN), switch(0)]),
    ]);
    assert_eq!(outcome.anomalies, Anomalies::default());
    assert_eq!(outcome.cut_off.len(), 1, "the first one is still in its method");
}

/// More parts than are planned ahead.
#[test]
fn a_block_may_have_very_many_switches() {
    let mut events = vec![entry(MAIN)];
    for turn in 0..PARTS_AHEAD as u32 {
        events.extend([switch(0xa1 + turn % 3), new(0x1000 + turn), switch(0)]);
    }
    events.push(exit(MAIN));
    let outcome = read_both(&[(1, 1, &events), (2, 2, &[new(0xb1)])]);
    assert_eq!(outcome.totals.of('N'), PARTS_AHEAD as u64 + 1);
}

/// Thread 2 cannot have mounted the stack before thread 1 has left it, but a damaged trace may say so. Then it is read
/// by records.
#[test]
fn a_stack_that_is_continued_before_it_is_left_is_an_error() {
    let trace = trace_of(&[
        (1, 5, &[switch(0x77), init(), ticket(20), entry(MAIN), switch(0)]),
        (2, 10, &[switch(0x77), exit(MAIN), exit(INIT)]),
    ]);
    let error = read_with(&trace, Wanted::Deaths, Collected::default(), &Options::default()).unwrap_err();
    assert!(matches!(error, BlocksError::Stack { found: 1, expected: 2, .. }), "{error}");
}

/// No block stores the hash of the array, or of what it holds, but that of thread 1, which ends first: in their own block they are
/// predicted. Yet what the array holds is needed until that ends.
#[test]
fn what_slots_hold_is_known_while_the_block_that_made_their_objects_goes_on() {
    let mut hash = hashes::SEED;
    let [target, array]: [ObjectHash; 2] = std::array::from_fn(|_| {
        hash = hashes::next(hash);
        ObjectHash(hash)
    });
    let targets = target.0.to_le_bytes();
    let store = || Event::PutElements { start: 0, array, targets: Targets::new(&targets).unwrap() };
    let made = |object| Event::NewArray { depth: 1, site: SiteId(0), object, length: 1 };
    for (object, is_stored_before) in [(array, true), (target, true), (array, false), (target, false)] {
        let mut events = vec![made(target), made(array)];
        events.extend(is_stored_before.then(store));
        events.extend([ticket(3), store()]);
        let mut builder = TraceBuilder::new();
        builder.pack_events();
        for thread in 1..=2 {
            builder.first_thread(thread, "", Vec::new());
        }
        builder.events(1, 2, &[Event::Used { object }]);
        builder.events(2, 1, &events);
        let bytes = builder.finish();
        let read = || Trace::from_file(TraceFile::from_bytes(bytes.clone(), None).unwrap()).unwrap();
        let (trace, by_records) = (read(), read().into());
        let (recording, outcome) = record(&trace, Limits::default()).unwrap();
        assert_eq!(outcome.totals.of('U'), 1, "one store changes something");
        for in_order in [false, true] {
            // It is not read again.
            let options = Options { in_order, most_rows: Some(1), ..Options::default() };
            let (_, births) = read_with(&trace, Wanted::Births, Collected::default(), &options).unwrap();
            assert_eq!(births.outcome.totals, outcome.totals, "{object:?} {is_stored_before} {in_order}");
            agrees(&trace, &recording, &by_records, &outcome, (false, in_order, 1, 1)).unwrap();
        }
    }
}
