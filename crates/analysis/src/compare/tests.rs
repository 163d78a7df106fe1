use et_format::collector::Fate;
use et_format::event::{Event, ObjectHash, Ticket};
use et_format::{ClassRecord, GcRecord, HeapWalk, ThreadRecord};
use et_names::{FieldRefId, MethodId, SiteId};

use super::{CompareError, Report, compare, render};
use et_reader::Trace;
use et_reader::TraceFile;
use et_reader::lifetimes::Limits;
use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};

const INIT: MethodId = MethodId(5_000_000);
const GROW: MethodId = MethodId(5_000_001);
const MAIN: MethodId = MethodId(5_000_002);
const NEXT: FieldRefId = FieldRefId(5_000_000);
const KEPT: FieldRefId = FieldRefId(5_000_001);
const REFERENT: FieldRefId = FieldRefId(1);
const STRING: u32 = 0x12;
const SOFT: u32 = 0x14;
const BOX: u32 = 0x15;

/// A program with boxes that refer to boxes.
fn boxes() -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    builder.names(&table(
        "jdk",
        1,
        &[
            class("java/lang/Object", "", &["<init> ()V"]),
            class("java/lang/ref/Reference", "java/lang/Object", &[]).with_fields(&["referent"]),
            class("java/lang/ref/SoftReference", "java/lang/ref/Reference", &[]),
        ],
    ));
    let app = class("shop/Box", "java/lang/Object", &["<init> ()V", "grow ()V", "static main ()V"]);
    builder.names(&table("shop.jar", 5_000_000, &[app.with_fields(&["next", "static kept"])]));
    for (mirror, superclass, signature) in [
        (0x10, 0, "Ljava/lang/Object;"),
        (0x11, 0x10, "Ljava/lang/Class;"),
        (STRING, 0x10, "Ljava/lang/String;"),
        (0x13, 0x10, "Ljava/lang/ref/Reference;"),
        (SOFT, 0x13, "Ljava/lang/ref/SoftReference;"),
        (BOX, 0x10, "Lshop/Box;"),
    ] {
        builder.class(&ClassRecord {
            class: ObjectHash(mirror),
            superclass: ObjectHash(superclass),
            instance_size: 16,
            mirror_size: 96,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }
    builder.first_thread(1, "main", Vec::new());
    builder
}

fn new(object: u32, class: u32) -> Event<'static> {
    Event::New { site: SiteId(0), object: ObjectHash(object), class: ObjectHash(class), known: false }
}

fn put(field: FieldRefId, origin: u32, target: u32) -> Event<'static> {
    Event::PutField { field, origin: ObjectHash(origin), target: ObjectHash(target), if_changed: false }
}

fn keep(target: u32) -> Event<'static> {
    Event::PutStatic { field: KEPT, target: ObjectHash(target) }
}

fn call(object: u32) -> [Event<'static>; 2] {
    [Event::EntryOn { method: GROW, receiver: ObjectHash(object) }, Event::Exit { method: GROW }]
}

fn made_by_vm(object: u32, class: u32) -> Event<'static> {
    Event::Made { object: ObjectHash(object), class: ObjectHash(class), length: -1, fresh: true, constant: true }
}

/// Collections that start there.
fn collections(builder: &mut TraceBuilder, starts: &[u64]) {
    for &start in starts {
        builder.gc(&GcRecord { start: Ticket(start), finish: Ticket(start + 1), ..GcRecord::default() });
    }
}

fn compared(bytes: Vec<u8>) -> Report {
    let trace = Trace::from_file(TraceFile::from_bytes(bytes, None).unwrap()).unwrap();
    compare(&trace, Limits::default(), 5).unwrap().0
}

/// Adds what the last collection held: the mirrors of all classes, and these.
fn hold(builder: &mut TraceBuilder, by: u64, objects: &[u32]) {
    let held: Vec<u32> = (0x10..=BOX).chain(objects.iter().copied()).collect();
    builder.collected(Fate::Held, by, &held);
}

/// Objects by cause, those held through others in brackets.
fn causes(groups: &[super::Group]) -> Vec<String> {
    let mut causes: Vec<_> =
        groups.iter().map(|group| format!("{} {} ({})", group.cause, group.objects, group.through)).collect();
    causes.sort();
    causes
}

/// A trace with one object for each case.
fn cases() -> TraceBuilder {
    let mut builder = boxes();
    let mut first = vec![Event::Entry { method: MAIN }];
    // Dropped at once; dropped, and freed late.
    first.extend([new(0xa1, BOX), new(0xa2, BOX)]);
    // Alive in both, and what it holds as the trace has it.
    first.extend([new(0xb1, BOX), new(0xc1, BOX), new(0xc2, BOX), keep(0xb1)]);
    first.extend([put(NEXT, 0xb1, 0xc1), put(NEXT, 0xc1, 0xc2)]);
    // Mentioned again.
    first.push(new(0xc3, BOX));
    first.push(made_by_vm(0xd1, STRING));
    // Held by the collector for an unknown reason, another held by it, and one softly.
    first.extend([new(0xe1, BOX), new(0xe2, BOX), put(NEXT, 0xe1, 0xe2)]);
    first.extend([new(0xe3, SOFT), new(0xe4, BOX), put(REFERENT, 0xe3, 0xe4), put(NEXT, 0xb1, 0xe3)]);
    first.extend([put(NEXT, 0xe3, 0xc1)]);
    // Not reported.
    first.push(new(0xf1, BOX));
    // The receiver of a method that has not returned.
    first.push(new(0xd2, BOX));
    first.push(Event::EntryOn { method: GROW, receiver: ObjectHash(0xd2) });
    builder.events(1, 3, &first);
    let mut second = vec![Event::Exit { method: GROW }];
    second.extend(call(0xc3));
    builder.events(1, 12, &second);
    builder.events(1, 22, &[new(0xa3, BOX), Event::Exit { method: MAIN }]);
    collections(&mut builder, &[10, 20, 30]);
    builder.collected(Fate::Freed, 10, &[0xa1, 0xc1, 0xc2, 0xc3, 0xd1, 0xd2, 0x77]);
    builder.collected(Fate::Freed, 20, &[0xa2]);
    builder.collected(Fate::Freed, 30, &[0xa3]);
    builder
}

#[test]
fn each_object_gets_its_cause() {
    let mut builder = cases();
    hold(&mut builder, 30, &[0xb1, 0xe1, 0xe2, 0xe3, 0xe4]);
    let report = compared(builder.finish());
    insta::assert_snapshot!(render(&report));
    assert!(!report.is_clean());
    assert_eq!(causes(&report.errors), ["held by shop.Box.next 2 (1)", "mentioned again 1 (0)"]);
}

#[test]
fn a_holder_in_the_next_part_is_no_error() {
    // d1 is held by the receiver of a method that runs; d2 by it, d3 by that.
    let chain = |told_late: &[u32], later: u64| {
        let mut builder = boxes();
        let mut events = vec![Event::Entry { method: MAIN }, new(0xd1, BOX), new(0xd2, BOX), new(0xd3, BOX)];
        events.extend([put(NEXT, 0xd1, 0xd2), put(NEXT, 0xd2, 0xd3)]);
        events.push(Event::EntryOn { method: GROW, receiver: ObjectHash(0xd1) });
        builder.events(1, 3, &events);
        builder.events(1, 62, &[Event::Exit { method: GROW }, Event::Exit { method: MAIN }]);
        collections(&mut builder, &[10, 20, 30]);
        let first: Vec<u32> = [0xd1, 0xd2, 0xd3].into_iter().filter(|object| !told_late.contains(object)).collect();
        builder.collected(Fate::Freed, 10, &first);
        builder.collected(Fate::Freed, later, told_late);
        hold(&mut builder, 30, &[]);
        compared(builder.finish())
    };
    for told_late in [&[0xd1][..], &[0xd2], &[0xd1, 0xd2], &[0xd3]] {
        let report = chain(told_late, 20);
        assert_eq!(causes(&report.errors), [""; 0], "{told_late:x?}");
    }
    // A collection further on it is one: the holder was there when its part was freed.
    assert_eq!(causes(&chain(&[0xd1], 30).errors), ["held by shop.Box.next 2 (1)"]);
}

#[test]
fn without_a_last_word_nothing_is_said_to_be_held() {
    let report = compared(cases().without_end());
    assert!(!report.asked_at_end && report.kept.is_empty());
    assert!(report.not_freed > 0 && report.not_told == 0, "{report:?}");
}

#[test]
fn what_all_agree_on_is_clean() {
    let mut builder = boxes();
    let mut events = vec![Event::Entry { method: MAIN }, new(0xa1, BOX), new(0xb1, BOX), keep(0xb1)];
    events.extend([Event::Entry { method: INIT }, new(0xa2, BOX), Event::Exit { method: INIT }]);
    builder.events(1, 3, &events).events(1, 12, &[Event::Exit { method: MAIN }]);
    collections(&mut builder, &[10]);
    builder.collected(Fate::Freed, 10, &[0xa1, 0xa2]);
    hold(&mut builder, 10, &[0xb1]);
    let report = compared(builder.finish());
    assert!(report.is_clean() && report.by_definition.is_empty() && report.kept.is_empty(), "{report:?}");
    assert_eq!((report.freed_at_once, report.alive, report.not_told), (2, 7, 0));
}

#[test]
fn what_is_made_at_the_very_end_is_not_asked_about() {
    let mut builder = boxes();
    builder.events(1, 3, &[Event::Entry { method: MAIN }, new(0xa1, BOX), new(0xb1, BOX), keep(0xb1)]);
    // Threads run on while the collector is asked: one object goes, one stays, one was seen.
    let last = [new(0xc1, BOX), keep(0xc1), new(0xc2, BOX), put(NEXT, 0xc1, 0xc2), new(0xc3, BOX), keep(0xc2)];
    builder.events(1, 12, &last).events(1, 22, &[put(NEXT, 0xc2, 0xc3), Event::Exit { method: MAIN }]);
    collections(&mut builder, &[10]);
    builder.collected(Fate::Freed, 10, &[0xa1]);
    hold(&mut builder, 10, &[0xb1, 0xc3]);
    let report = compared(builder.finish());
    assert_eq!((report.made_after, report.not_told, report.died_after), (2, 0, 1), "{report:?}");
}

#[test]
fn ids_that_are_used_again_are_left_out() {
    let mut builder = boxes();
    builder.events(1, 3, &[new(0xa1, BOX), keep(0xa1), keep(0), new(0xa1, BOX), keep(0xa1)]);
    collections(&mut builder, &[10]);
    builder.collected(Fate::Freed, 10, &[0xa1]);
    hold(&mut builder, 10, &[0xa1]);
    let report = compared(builder.finish());
    assert!(report.is_clean());
    assert_eq!((report.unclear, report.freed_at_once, report.alive), (1, 0, 6));
}

#[test]
fn objects_outside_the_sample_are_no_errors() {
    let mut builder = boxes();
    builder.events(1, 3, &[new(0xa1, BOX), new(0xa2, BOX), put(NEXT, 0xa1, 0xa2), keep(0xa1)]);
    collections(&mut builder, &[10]);
    builder.collected_of(Fate::Freed, 2, 10, &[0xa2]);
    let report = compared(builder.finish());
    assert!(report.is_clean());
    assert_eq!(causes(&report.by_definition), ["held by an object that the collector was not asked about 1 (0)"]);
}

#[test]
fn deaths_behind_the_last_collection_cannot_be_compared() {
    let mut builder = boxes();
    builder.events(1, 3, &[new(0xa1, BOX), keep(0xa1)]).events(1, 12, &[keep(0)]);
    collections(&mut builder, &[10]);
    hold(&mut builder, 10, &[0xa1]);
    let report = compared(builder.finish());
    assert!(report.kept.is_empty());
    assert_eq!(report.died_after, 1);
}

#[test]
fn what_nothing_can_have_held_is_shown() {
    let mut builder = boxes();
    builder.events(1, 3, &[new(0xa1, BOX), new(0xa2, BOX), put(NEXT, 0xa1, 0xa2)]);
    builder.thread(&ThreadRecord::End { ticket: Ticket(5), thread: 1 });
    collections(&mut builder, &[10]);
    hold(&mut builder, 10, &[0xa1, 0xa2]);
    let report = compared(builder.finish());
    assert!(report.is_clean());
    assert_eq!(causes(&report.kept), ["unknown (native code, the VM) 2 (1)"]);
    assert_eq!(report.kept_examples.len(), 1);
    assert_eq!(report.kept_examples[0].history, "record 7, last mentioned by U at 9");
}

#[test]
fn a_trace_that_did_not_ask_says_how_to() {
    let trace = Trace::from_file(TraceFile::from_bytes(boxes().finish(), None).unwrap()).unwrap();
    let error = compare(&trace, Limits::default(), 5).unwrap_err();
    assert!(matches!(error, CompareError::NotAsked(_)));
    assert!(error.to_string().ends_with("run the program with -Det.deaths=gc or -Det.survival=5"), "{error}");
}

#[test]
fn walks_stand_in_for_the_collector() {
    let walked = |found: &[u32], is_exact| {
        let mut builder = boxes();
        let events = [new(0xa1, BOX), keep(0xa1), new(0xa2, BOX), new(0xa3, BOX), keep(0xa3), keep(0)];
        builder.events(1, 3, &events[..4]);
        let walk = |begin: u64, at_the_end| HeapWalk {
            begin: Ticket(begin),
            end: Ticket(begin + 1),
            at_the_end,
            is_exact,
            ..HeapWalk::default()
        };
        let mirrors = [0x10, 0x11, STRING, 0x13, SOFT, BOX];
        let with = |objects: &[u32]| {
            let mut all = [&mirrors[..], objects].concat();
            all.sort_unstable();
            all
        };
        builder.survivors(walk(10, false), &with(found));
        builder.events(1, 12, &events[4..]);
        builder.survivors(walk(20, true), &with(&[]));
        compared(builder.finish())
    };
    // The third is held by nothing that the trace knows when the walk looks, and stored afterwards.
    let report = walked(&[0xa1, 0xa3], true);
    assert!(report.is_clean(), "{:?}", report.errors);
    assert!(report.freed_at_once >= 2 && report.asked_at_end && report.collections == 2, "{report:?}");
    // The first was in a static field then.
    assert!(!walked(&[0xa3], true).is_clean());
    // Where the collector freed nothing at the end, what is found is not held.
    assert!(!walked(&[0xa1, 0xa3], false).asked_at_end);
}
