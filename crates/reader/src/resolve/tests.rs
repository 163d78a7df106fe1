//! One test for each rule of `docs/semantics.md`, on traces of a few events.

use std::ops::ControlFlow;

use et_format::event::{Event, ObjectHash, Targets, Ticket};
use et_format::{
    ClassRecord, InitialField, InitialFrame, InitialObject, InitialReference, InitialReferences, InitialSlot,
    ThreadRecord, class_flags,
};
use et_names::{FieldRefId, MethodId, SiteId};

use crate::TraceFile;
use crate::record::ThreadId;
use crate::resolve::{Anomalies, CutOffThread, Outcome};
use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
use crate::text::push_record;
use crate::trace::Trace;

/// Methods of the test program.
mod m {
    use et_names::MethodId;
    pub const A_INIT: MethodId = MethodId(1000);
    pub const RUN: MethodId = MethodId(1001);
    pub const MAIN: MethodId = MethodId(1002);
    pub const B_INIT: MethodId = MethodId(1003);
    pub const C_INIT: MethodId = MethodId(1004);
    pub const D_INIT: MethodId = MethodId(1005);
}

/// Mirrors of its classes.
mod c {
    use et_format::event::ObjectHash;
    pub const CLASS: ObjectHash = ObjectHash(0x10);
    pub const OBJECT: ObjectHash = ObjectHash(0x11);
    pub const A: ObjectHash = ObjectHash(0x12);
    pub const B: ObjectHash = ObjectHash(0x13);
    pub const C: ObjectHash = ObjectHash(0x14);
    pub const D: ObjectHash = ObjectHash(0x15);
    pub const ERROR: ObjectHash = ObjectHash(0x16);
    pub const INTS: ObjectHash = ObjectHash(0x17);
}

const SITE_A: SiteId = SiteId(1000);
const SITE_B: SiteId = SiteId(1001);
const SITE_INTS: SiteId = SiteId(1002);
const SITE_GRID: SiteId = SiteId(1003);
const FIELD_NEXT: FieldRefId = FieldRefId(1000);
const FIELD_ROOT: FieldRefId = FieldRefId(1001);

/// `B` and `C` extend `A` and `B`; `D` extends `Object`. All classes exist from the start.
fn world() -> TraceBuilder {
    world_with_c("LC;", 0)
}

fn world_with_c(signature_of_c: &str, flags_of_c: u32) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    builder.names(&table(
        "jdk",
        1,
        &[
            class("java/lang/Object", "", &["<init> ()V"]),
            class("java/lang/Class", "java/lang/Object", &[]),
            class("java/lang/Error", "java/lang/Object", &[]),
        ],
    ));
    builder.names(&table(
        "app.jar",
        1000,
        &[
            class("A", "java/lang/Object", &["<init> ()V", "run ()V", "static main ()V"])
                .with_fields(&["next LA;", "static root LA;"])
                .with_sites(&[(2, "LA;", 5), (2, "LB;", 6), (2, "[I", 7), (2, "[[LA;", 8)]),
            class("B", "A", &["<init> ()V"]),
            class("C", "B", &["<init> ()V"]),
            class("D", "java/lang/Object", &["<init> ()V"]),
        ],
    ));
    for (mirror, superclass, size, signature) in [
        (c::OBJECT, ObjectHash::NULL, 16, "Ljava/lang/Object;"),
        (c::CLASS, c::OBJECT, 0, "Ljava/lang/Class;"),
        (c::A, c::OBJECT, 16, "LA;"),
        (c::B, c::A, 24, "LB;"),
        (c::C, c::B, 32, signature_of_c),
        (c::D, c::OBJECT, 16, "LD;"),
        (c::ERROR, c::OBJECT, 40, "Ljava/lang/Error;"),
        (c::INTS, c::OBJECT, 0, "[I"),
    ] {
        builder.class(&ClassRecord {
            class: mirror,
            superclass,
            instance_size: size,
            mirror_size: 112,
            signature: signature.into(),
            flags: if mirror == c::C { flags_of_c } else { 0 },
            ..ClassRecord::default()
        });
        builder.initial_objects(&[InitialObject { object: mirror, class: c::CLASS, size: 112, length: -1 }]);
    }
    builder
}

fn open(builder: &mut TraceBuilder) -> Trace {
    Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap()
}

/// The records as text, without the I records of mirrors.
fn run(builder: &mut TraceBuilder) -> (Vec<String>, Outcome) {
    let bytes = builder.finish();
    let (lines, outcome) = lines_of(&Trace::from_file(TraceFile::from_bytes(bytes.clone(), None).unwrap()).unwrap());
    let report = et_validate::bytes(bytes, 10).unwrap();
    assert!(report.is_clean(), "{:#?}\n{lines:#?}", report.violations);
    (lines, outcome)
}

fn lines_of(trace: &Trace) -> (Vec<String>, Outcome) {
    let mut lines = Vec::new();
    let outcome = trace
        .for_each(|record, _| {
            let mut line = Vec::new();
            push_record(&mut line, record, &trace.types);
            let line = String::from_utf8(line).unwrap();
            if !line.starts_with("I 1") {
                lines.push(line);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    (lines, outcome)
}

/// Records of one thread's events, which must cause no anomalies.
fn records(events: &[Event<'_>]) -> Vec<String> {
    let (lines, outcome) = run(world().first_thread(1, "main", Vec::new()).events(1, 1, events));
    assert_eq!(outcome.anomalies, Anomalies::default(), "{lines:#?}");
    lines
}

fn entry(method: MethodId) -> Event<'static> {
    Event::Entry { method }
}
fn exit(method: MethodId) -> Event<'static> {
    Event::Exit { method }
}
fn new(site: SiteId, object: u32, class: ObjectHash) -> Event<'static> {
    Event::New { site, object: ObjectHash(object), class, known: false }
}
fn init(method: MethodId) -> Event<'static> {
    Event::EntryInit { method, site: SiteId(0) }
}
fn super_call(method: MethodId) -> Event<'static> {
    Event::SuperCall { method }
}
fn throw_out(method: MethodId, exception: u32, receiver: u32) -> Event<'static> {
    Event::ExitThrow { method, exception: ObjectHash(exception), receiver: ObjectHash(receiver) }
}
fn handle(method: MethodId, exception: u32) -> Event<'static> {
    Event::Handle { method, exception: ObjectHash(exception) }
}
fn found_error(object: u32) -> Event<'static> {
    Event::Found { object: ObjectHash(object), class: c::ERROR, length: -1 }
}

#[test]
fn the_allocation_comes_before_the_outermost_constructor() {
    let lines = records(&[
        entry(m::MAIN),
        entry(m::C_INIT),
        entry(m::B_INIT),
        entry(m::A_INIT),
        new(SiteId(0), 0xaa, c::C),
        exit(m::A_INIT),
        exit(m::B_INIT),
        exit(m::C_INIT),
        exit(m::MAIN),
    ]);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "N aa 20 LC; 0 0 1",
            "M 3ec aa 1",
            "M 3eb aa 1",
            "M 3e8 aa 1",
            "E 3e8 aa 1",
            "E 3eb aa 1",
            "E 3ec aa 1",
            "E 3ea 0 1",
        ]
    );
}

#[test]
fn objects_made_in_super_arguments_are_distinguished() {
    // new B(new A()), where B's constructor creates the A before super(…), although A is a superclass of B.
    let lines = records(&[
        entry(m::MAIN),
        Event::EntryInit { method: m::B_INIT, site: SITE_B },
        entry(m::A_INIT),
        new(SITE_A, 0xaa, c::A),
        exit(m::A_INIT),
        super_call(m::B_INIT),
        entry(m::A_INIT),
        new(SITE_B, 0xbb, c::B),
        exit(m::A_INIT),
        exit(m::B_INIT),
        exit(m::MAIN),
    ]);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "N bb 18 LB; 3e9 0 1",
            "M 3eb bb 1",
            "N aa 10 LA; 3e8 0 1",
            "M 3e8 aa 1",
            "E 3e8 aa 1",
            "M 3e8 bb 1",
            "E 3e8 bb 1",
            "E 3eb bb 1",
            "E 3ea 0 1",
        ]
    );
}

#[test]
fn a_class_may_have_another_name_than_its_hooks() {
    // C's class file, defined as a hidden class and under another name, with the constructors of B and A as before.
    for (signature, flags) in [("LC.0x00007f0011223344;", class_flags::HIDDEN), ("LCC;", 0)] {
        let mut builder = world_with_c(signature, flags);
        builder.events(
            1,
            1,
            &[entry(m::C_INIT), entry(m::B_INIT), new(SiteId(0), 0xcc, c::C), exit(m::B_INIT), exit(m::C_INIT)],
        );
        let (lines, _) = run(&mut builder);
        let new = format!("N cc 20 {signature} 0 0 1");
        assert_eq!(lines, [&new, "M 3ec cc 1", "M 3eb cc 1", "E 3eb cc 1", "E 3ec cc 1"]);
    }
}

#[test]
fn an_object_of_another_class_is_not_the_constructors() {
    // D's superclass, which has no hooks, creates an A before Object.<init> runs for the D.
    let lines = records(&[entry(m::D_INIT), new(SiteId(0), 0xaa, c::A), new(SiteId(0), 0xdd, c::D), exit(m::D_INIT)]);
    assert_eq!(lines, ["N dd 10 LD; 0 0 1", "M 3ed dd 1", "N aa 10 LA; 0 0 1", "E 3ed dd 1"]);
}

#[test]
fn a_constructor_that_fails_before_its_allocation_still_made_an_object() {
    // The arguments of B's super(…) fail; C's frame leaves without an event; main catches.
    let lines = records(&[
        entry(m::MAIN),
        entry(m::C_INIT),
        init(m::B_INIT),
        found_error(0xee),
        throw_out(m::B_INIT, 0xee, 0),
        handle(m::MAIN, 0xee),
        exit(m::MAIN),
    ]);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "N 4000000100000000 20 LC; 0 0 1",
            "M 3ec 4000000100000000 1",
            "M 3eb 4000000100000000 1",
            "P ee 28 Ljava/lang/Error; 0 0 1",
            "T 3eb 4000000100000000 ee 1",
            "X 3eb 4000000100000000 ee 1",
            "X 3ec 4000000100000000 ee 1",
            "H 3ea 0 ee 1",
            "E 3ea 0 1",
        ]
    );
}

#[test]
fn an_exception_out_of_super_pops_the_frame_that_could_not_catch_it() {
    let lines = records(&[
        entry(m::MAIN),
        entry(m::B_INIT),
        entry(m::A_INIT),
        new(SITE_B, 0xbb, c::B),
        found_error(0xee),
        Event::Throw { method: m::A_INIT, exception: ObjectHash(0xee) },
        throw_out(m::A_INIT, 0xee, 0xbb),
        throw_out(m::MAIN, 0xee, 0),
    ]);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "N bb 18 LB; 3e9 0 1",
            "M 3eb bb 1",
            "M 3e8 bb 1",
            "P ee 28 Ljava/lang/Error; 0 0 1",
            "T 3e8 bb ee 1",
            "X 3e8 bb ee 1",
            "X 3eb bb ee 1",
            "X 3ea 0 ee 1",
        ]
    );
}

#[test]
fn an_exception_of_the_vm_is_thrown_where_it_first_shows() {
    let run = |exception| Event::ExitThrow { method: m::RUN, exception, receiver: ObjectHash::NULL };
    let enter = Event::EntryOn { method: m::RUN, receiver: ObjectHash(0xaa) };
    let error = ObjectHash(0xee);
    let lines = records(&[
        entry(m::MAIN),
        new(SITE_A, 0xaa, c::A),
        found_error(0xee),
        enter,
        run(error),
        handle(m::MAIN, 0xee),
        // Caught at once, in the frame where it was thrown; the first one is no longer in flight.
        handle(m::MAIN, 0xee),
        exit(m::MAIN),
    ]);
    assert_eq!(
        lines[3..],
        ["M 3e9 aa 1", "T 3e9 aa ee 1", "X 3e9 aa ee 1", "H 3ea 0 ee 1", "T 3ea 0 ee 1", "H 3ea 0 ee 1", "E 3ea 0 1"]
    );
}

#[test]
fn recursion_is_matched_from_the_inside() {
    let enter = |receiver| Event::EntryOn { method: m::RUN, receiver: ObjectHash(receiver) };
    let out = |receiver| throw_out(m::RUN, 0xee, receiver);
    let lines = records(&[
        new(SITE_A, 0xa1, c::A),
        new(SITE_A, 0xa2, c::A),
        found_error(0xee),
        enter(0xa1),
        enter(0xa2),
        enter(0xa2),
        exit(m::RUN),
        out(0),
        out(0xa1),
    ]);
    assert_eq!(
        lines[3..],
        ["M 3e9 a1 1", "M 3e9 a2 1", "M 3e9 a2 1", "E 3e9 a2 1", "T 3e9 a2 ee 1", "X 3e9 a2 ee 1", "X 3e9 a1 ee 1"]
    );
}

#[test]
fn what_the_vm_made_is_a_v_record_and_its_constructor_makes_no_second_one() {
    let made =
        |object, fresh| Event::Made { object: ObjectHash(object), class: c::C, length: -1, fresh, constant: false };
    let lines = records(&[
        made(0xaa, true),
        // Another thread has seen it, too.
        made(0xaa, false),
        entry(m::C_INIT),
        entry(m::B_INIT),
        entry(m::A_INIT),
        Event::New { site: SiteId(0), object: ObjectHash(0xaa), class: c::C, known: true },
        exit(m::A_INIT),
        exit(m::B_INIT),
        exit(m::C_INIT),
        // Another object that reuses the id of the first.
        made(0xaa, true),
        Event::Made { object: ObjectHash(0xab), class: c::INTS, length: 5, fresh: false, constant: false },
    ]);
    assert_eq!(
        lines,
        [
            "V aa 20 LC; 0 0 1",
            "M 3ec aa 1",
            "M 3eb aa 1",
            "M 3e8 aa 1",
            "E 3e8 aa 1",
            "E 3eb aa 1",
            "E 3ec aa 1",
            "V 800000aa 20 LC; 0 0 1",
            "V ab 28 [I 0 5 1",
        ]
    );
}

#[test]
fn an_object_that_is_said_to_be_known_and_is_not_gets_its_record() {
    let known = Event::New { site: SITE_A, object: ObjectHash(0xaa), class: c::A, known: true };
    assert_eq!(records(&[entry(m::A_INIT), known, exit(m::A_INIT)])[0], "N aa 10 LA; 3e8 0 1");
}

#[test]
fn slots_in_a_row_that_keep_their_targets_are_not_reported() {
    let words = |targets: &[u32]| targets.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let (first, second) = (words(&[0xa1, 0, 0xa1]), words(&[0xa1, 0xa1, 0]));
    let array = ObjectHash(0xcc);
    let put = |start, bytes| Event::PutElements { start, array, targets: Targets::new(bytes).unwrap() };
    let field =
        Event::PutField { field: FIELD_NEXT, origin: ObjectHash(0xa1), target: ObjectHash(0xa1), if_changed: true };
    let lines = records(&[
        new(SITE_A, 0xa1, c::A),
        Event::NewArray { depth: 0, site: SITE_GRID, object: array, length: 9 },
        put(5, &first),
        put(5, &second),
        field,
        field,
    ]);
    assert_eq!(lines[2..], ["U 0 cc a1 5 1", "U 0 cc a1 7 1", "U 0 cc a1 6 1", "U a1 cc 0 7 1", "U 0 a1 a1 3e8 1",]);
}

/// In a damaged trace, null may be allocated, thrown or caught. Bits above an id are ignored.
#[test]
fn what_comes_of_nothing_is_left_out() {
    let mut builder = world();
    let nothing = [0, 1 << 31];
    let made = nothing.map(|object| new(SITE_A, object, c::A));
    let arrays =
        nothing.map(|object| Event::NewArray { depth: 0, site: SITE_INTS, object: ObjectHash(object), length: 1 });
    let handled = nothing.map(|exception| handle(m::MAIN, exception));
    let thrown = nothing.map(|exception| throw_out(m::MAIN, exception, 0));
    builder.events(1, 1, &[&[entry(m::MAIN), entry(m::MAIN)], &made[..], &arrays, &handled, &thrown].concat());
    let (lines, outcome) = lines_of(&open(&mut builder));
    assert_eq!(lines, ["M 3ea 0 1", "M 3ea 0 1", "E 3ea 0 1", "E 3ea 0 1"]);
    assert_eq!(outcome.anomalies, Anomalies { unmatched_exceptions: 4, ..Anomalies::default() });
    assert_eq!((outcome.lost.undecodable_pieces, outcome.lost.undecodable_bytes), (4, 64));
}

/// No array is that long, but a damaged trace may say so.
#[test]
fn a_row_of_slots_may_go_past_the_last_index() {
    let targets: Vec<u8> = [0xa1_u32, 0xa1].iter().flat_map(|word| word.to_le_bytes()).collect();
    let targets = Targets::new(&targets).unwrap();
    let row = Event::PutElements { start: u32::MAX, array: ObjectHash(0xa1), targets };
    let lines = records(&[new(SITE_A, 0xa1, c::A), row]);
    assert_eq!(lines[1..], ["U 0 a1 a1 ffffffff 1", "U 0 a1 a1 0 1"]);
}

#[test]
fn old_targets_follow_each_slot() {
    let put = |origin, target| Event::PutField {
        field: FIELD_NEXT,
        origin: ObjectHash(origin),
        target: ObjectHash(target),
        if_changed: false,
    };
    let element = |index, target| Event::PutElement { index, array: ObjectHash(0xcc), target: ObjectHash(target) };
    let lines = records(&[
        new(SITE_A, 0xa1, c::A),
        new(SITE_A, 0xa2, c::A),
        Event::NewArray { depth: 0, site: SITE_GRID, object: ObjectHash(0xcc), length: 2 },
        Event::NewArray { depth: 1, site: SITE_GRID, object: ObjectHash(0xcd), length: 3 },
        put(0xa1, 0xa2),
        put(0xa1, 0xa1),
        put(0xa2, 0xa1),
        put(0xa1, 0),
        put(0xa1, 0xa2),
        element(1, 0xcd),
        element(0, 0xcd),
        element(1, 0),
        Event::PutStatic { field: FIELD_ROOT, target: ObjectHash(0xa1) },
        Event::PutStatic { field: FIELD_ROOT, target: ObjectHash(0) },
    ]);
    assert_eq!(
        lines[2..],
        [
            "A cc 18 [[LA; 3eb 2 1",
            "A cd 20 [LA; 3eb 3 1",
            "U 0 a1 a2 3e8 1",
            "U a2 a1 a1 3e8 1",
            "U 0 a2 a1 3e8 1",
            "U a1 a1 0 3e8 1",
            "U 0 a1 a2 3e8 1",
            "U 0 cc cd 1 1",
            "U 0 cc cd 0 1",
            "U cd cc 0 1 1",
            "U 0 0 a1 3e9 1",
            "U a1 0 0 3e9 1"
        ]
    );
}

#[test]
fn an_id_used_again_is_another_object() {
    let put = |origin: u32, target: u32| Event::PutField {
        field: FIELD_NEXT,
        origin: ObjectHash(origin),
        target: ObjectHash(target),
        if_changed: false,
    };
    let lines =
        records(&[new(SITE_A, 0xa1, c::A), put(0xa1, 0xa1), new(SITE_A, 0xa1, c::A), put(0xa1, 0xa1), put(0xa1, 0)]);
    assert_eq!(
        lines,
        [
            "N a1 10 LA; 3e8 0 1",
            "U 0 a1 a1 3e8 1",
            "N 800000a1 10 LA; 3e8 0 1",
            "U 0 800000a1 800000a1 3e8 1",
            "U 800000a1 800000a1 0 3e8 1",
        ]
    );
}

#[test]
fn the_receiver_of_an_exit_is_that_of_its_entry_even_if_its_id_was_used_again() {
    let lines = records(&[
        new(SITE_A, 0xa1, c::A),
        Event::EntryOn { method: m::RUN, receiver: ObjectHash(0xa1) },
        new(SITE_A, 0xa1, c::A),
        exit(m::RUN),
    ]);
    assert_eq!(lines[1..], ["M 3e9 a1 1", "N 800000a1 10 LA; 3e8 0 1", "E 3e9 a1 1"]);
}

#[test]
fn threads_are_merged_by_ticket_even_while_a_constructor_waits_for_its_object() {
    let mut builder = world();
    builder.first_thread(1, "main", Vec::new()).first_thread(2, "other", Vec::new());
    let ticket = |ticket| Event::Ticket(Ticket(ticket));
    builder.events(
        1,
        1,
        &[
            entry(m::MAIN),
            init(m::B_INIT),
            ticket(3),
            super_call(m::B_INIT),
            new(SITE_B, 0xbb, c::B),
            ticket(5),
            exit(m::B_INIT),
            exit(m::MAIN),
        ],
    );
    builder.events(2, 2, &[entry(m::MAIN), ticket(4), exit(m::MAIN)]);
    let (lines, outcome) = run(&mut builder);
    assert_eq!(
        lines,
        ["M 3ea 0 1", "N bb 18 LB; 3e9 0 1", "M 3eb bb 1", "M 3ea 0 2", "E 3ea 0 2", "E 3eb bb 1", "E 3ea 0 1",]
    );
    assert_eq!(outcome.anomalies, Anomalies::default());
}

#[test]
fn witnesses_are_root_records() {
    let mut builder = world();
    let used = |object| Event::Used { object: ObjectHash(object) };
    builder.first_thread(1, "main", Vec::new()).events(
        1,
        1,
        &[
            entry(m::MAIN),
            Event::NewArray { depth: 0, site: SITE_INTS, object: ObjectHash(0xa1), length: 3 },
            used(0xa1),
            used(0),
            used(c::A.0),
            used(0xbad),
            exit(m::MAIN),
        ],
    );
    let (lines, outcome) = run(&mut builder);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "A a1 20 [I 3ea 3 1",
            "R a1 1",
            "R 12 1",
            "P bad 0 Ljava/lang/Object; 0 0 1",
            "R bad 1",
            "E 3ea 0 1",
        ]
    );
    assert_eq!(outcome.anomalies, Anomalies { unknown_objects: 1, unknown_sizes: 1, ..Anomalies::default() });
}

#[test]
fn mirrors_come_to_be_with_their_class_or_at_first_sight() {
    let mut builder = world();
    let late = |ticket, mirror, signature: &str| ClassRecord {
        ticket: Ticket(ticket),
        class: ObjectHash(mirror),
        superclass: c::OBJECT,
        mirror_size: 96,
        instance_size: 16,
        signature: signature.into(),
        ..ClassRecord::default()
    };
    builder.class(&late(2, 0x50, "LLate;")).class(&late(9, 0x51, "LSeenBefore;"));
    builder.first_thread(1, "main", Vec::new()).events(
        1,
        1,
        &[
            entry(m::MAIN),
            Event::Ticket(Ticket(3)),
            Event::PutStatic { field: FIELD_ROOT, target: ObjectHash(0x51) },
            exit(m::MAIN),
        ],
    );
    let (lines, outcome) = run(&mut builder);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "V 50 60 Ljava/lang/Class; 0 0 0",
            "V 51 60 Ljava/lang/Class; 0 0 1",
            "U 0 0 51 3e9 1",
            "E 3ea 0 1",
        ]
    );
    assert_eq!(outcome.anomalies, Anomalies::default());
}

#[test]
fn what_was_there_at_the_start_has_its_slots_and_frames() {
    let objects =
        [0xa1, 0xa2].map(|object| InitialObject { object: ObjectHash(object), class: c::A, size: 16, length: -1 });
    let field = |name: &str| InitialField { class: c::A, name: name.into(), descriptor: "LA;".into() };
    let (origin, target) = (ObjectHash(0xa1), ObjectHash(0xa2));
    let (root, next) = (field("root"), field("next"));
    let held = |slot| InitialReference { origin: ObjectHash::NULL, target: origin, slot };
    let holds = |slot| InitialReference { origin, target, slot };
    let block = |fields: &[&InitialField], references: &[InitialReference]| InitialReferences {
        fields: fields.iter().copied().cloned().collect(),
        references: references.to_vec(),
    };
    let together = [block(&[&root, &next], &[held(InitialSlot::Static(0)), holds(InitialSlot::Field(1))])];
    // A large heap takes several blocks, each with its own list of fields.
    let apart = [block(&[&root], &[held(InitialSlot::Static(0))]), block(&[&next], &[holds(InitialSlot::Field(0))])];
    let blocks: [(usize, &[InitialReferences]); 2] = [(2, &together), (1, &apart)];
    for (objects_of_block, references) in blocks {
        let mut builder = world();
        objects.chunks(objects_of_block).for_each(|objects| _ = builder.initial_objects(objects));
        references.iter().for_each(|references| _ = builder.initial_references(references));
        initial_slots_and_frames(&mut builder);
    }
}

/// Initial references and frames, as above.
fn initial_slots_and_frames(builder: &mut TraceBuilder) {
    let (origin, target) = (ObjectHash(0xa1), ObjectHash(0xa2));
    let frame = |class: &str, method: &str, receiver| InitialFrame {
        class: class.into(),
        method: method.into(),
        descriptor: "()V".into(),
        receiver: ObjectHash(receiver),
    };
    builder.first_thread(
        1,
        "main",
        vec![frame("LUnknown;", "start", 0), frame("LA;", "main", 0), frame("LA;", "run", 0xa2)],
    );
    builder.events(
        1,
        1,
        &[
            Event::PutField { field: FIELD_NEXT, origin, target: ObjectHash(0), if_changed: false },
            Event::PutStatic { field: FIELD_ROOT, target },
            exit(m::RUN),
            exit(m::MAIN),
        ],
    );
    let (lines, outcome) = run(builder);
    assert_eq!(
        lines,
        [
            "I a1 10 LA; 0 0 0",
            "I a2 10 LA; 0 0 0",
            "M 3ea 0 1",
            "M 3e9 a2 1",
            "U a2 a1 0 3e8 1",
            "U a1 0 a2 3e9 1",
            "E 3e9 a2 1",
            "E 3ea 0 1",
        ]
    );
    assert_eq!(outcome.anomalies, Anomalies::default());
}

#[test]
fn a_found_object_counts_once_and_only_if_new() {
    let found = |object| Event::Found { object: ObjectHash(object), class: c::INTS, length: 3 };
    let lines = records(&[
        found(0xf1),
        found(0xf1),
        Event::NewArray { depth: 0, site: SITE_INTS, object: ObjectHash(0xf2), length: 1 },
        found(0xf2),
    ]);
    assert_eq!(lines, ["P f1 20 [I 0 3 1", "A f2 18 [I 3ea 1 1"]);
}

#[test]
fn what_does_not_fit_is_counted_and_leaves_a_sound_trace() {
    let mut builder = world();
    builder.first_thread(1, "main", Vec::new()).events(
        1,
        1,
        &[
            exit(m::MAIN),
            handle(m::MAIN, 0xee),
            entry(m::MAIN),
            // The site allocates a B, but the class is A.
            new(SITE_B, 0xa1, c::A),
            // Object 0xa9 is unknown.
            Event::EntryOn { method: m::RUN, receiver: ObjectHash(0xa9) },
            Event::EntryOn { method: m::RUN, receiver: ObjectHash(0xa1) },
            exit(m::MAIN),
            entry(m::MAIN),
        ],
    );
    builder.thread(&ThreadRecord::End { ticket: Ticket(9), thread: 1 });
    let (lines, outcome) = run(&mut builder);
    assert_eq!(
        lines,
        [
            "M 3ea 0 1",
            "N a1 10 LA; 0 0 1",
            "P a9 0 LA; 0 0 1",
            "M 3e9 a9 1",
            "M 3e9 a1 1",
            "E 3e9 a1 1",
            "E 3e9 a9 1",
            "E 3ea 0 1",
            "M 3ea 0 1",
        ]
    );
    assert_eq!(
        outcome.anomalies,
        Anomalies {
            unmatched_exits: 1,
            unmatched_exceptions: 1,
            site_mismatches: 1,
            unknown_objects: 1,
            unknown_sizes: 1,
            frames_lost: 2,
            frames_at_thread_end: 1,
            ..Anomalies::default()
        }
    );
    assert_eq!(outcome.cut_off.len(), 1);
}

#[test]
fn virtual_threads_keep_their_stacks_across_carriers() {
    let mut builder = world();
    builder.first_thread(1, "carrier-1", Vec::new()).first_thread(2, "carrier-2", Vec::new());
    let switch = |owner| Event::Switch { owner: ObjectHash(owner) };
    let object = |object| Event::Found { object: ObjectHash(object), class: c::A, length: -1 };
    builder.events(1, 1, &[entry(m::MAIN), object(0xa1), switch(0xa1), entry(m::MAIN), switch(0), exit(m::MAIN)]);
    builder.events(2, 2, &[switch(0xa1), exit(m::MAIN), switch(0)]);
    let (lines, outcome) = run(&mut builder);
    assert_eq!(lines, ["M 3ea 0 1", "P a1 10 LA; 0 0 1", "M 3ea 0 80000000", "E 3ea 0 1", "E 3ea 0 80000000",]);
    assert_eq!(outcome.anomalies, Anomalies::default());
}

/// Thread 1 is read ahead to find the object of its constructor, and has unmounted the continuation by then. Thread 2
/// cannot have mounted it at an earlier ticket, but a damaged trace may say so.
#[test]
fn a_stack_may_be_left_before_it_was_entered() {
    let mut builder = world();
    let switch = |owner| Event::Switch { owner: ObjectHash(owner) };
    let init = Event::EntryInit { method: m::A_INIT, site: SiteId(0) };
    builder.events(1, 5, &[switch(0x77), init, Event::Ticket(Ticket(20)), entry(m::MAIN), switch(0)]);
    builder.events(2, 10, &[switch(0x77), exit(m::MAIN), exit(m::A_INIT)]);
    let (lines, outcome) = run(&mut builder);
    assert!(!lines.iter().any(|line| line.starts_with("E 0 ")), "{lines:?}");
    assert_eq!(outcome.anomalies.unmatched_exits, 1, "{lines:?}");
}

/// `System.exit` leaves the frames of its caller on the stack, and other threads may still end after it.
#[test]
fn the_thread_that_ends_the_program_has_frames_left() {
    let read = |ended: &[u32]| {
        let mut builder = world();
        builder.first_thread(1, "main", Vec::new()).events(1, 1, &[entry(m::MAIN)]);
        builder.first_thread(2, "late", Vec::new()).events(2, 2, &[entry(m::MAIN), exit(m::MAIN)]);
        for (ticket, &thread) in (8..).zip(ended) {
            builder.thread(&ThreadRecord::End { ticket: Ticket(ticket), thread });
        }
        run(&mut builder).1
    };
    let outcome = read(&[2]);
    assert_eq!(outcome.anomalies, Anomalies::default());
    assert_eq!(outcome.cut_off, [CutOffThread { thread: ThreadId(1), frames: 1 }]);
    // A thread that has ended should have no frames left, whether or not it was the last to end.
    for ended in [[1, 2], [2, 1]] {
        assert_eq!(read(&ended).anomalies, Anomalies { frames_at_thread_end: 1, ..Anomalies::default() });
    }
}

/// Creates `count` threads, each of which has the events `events(thread)` at their tickets and ends.
fn many_threads(count: u32, events: impl Fn(u32) -> Vec<(u64, Vec<Event<'static>>)>) -> TraceBuilder {
    let mut builder = world();
    let start = |thread| ThreadRecord::Start {
        ticket: Ticket(1),
        thread,
        object: ObjectHash::NULL,
        flags: 0,
        name: format!("worker-{thread}"),
        frames: Vec::new(),
    };
    let records: Vec<_> = (1..=count).map(start).collect();
    builder.threads(&records);
    for thread in 1..=count {
        for (ticket, events) in events(thread) {
            builder.events(thread, ticket, &events);
        }
    }
    let end = |thread| ThreadRecord::End { ticket: Ticket(u64::from(count) * 4), thread };
    let records: Vec<_> = (1..=count).map(end).collect();
    builder.threads(&records);
    builder
}

/// Reads a trace and counts its records.
fn read(builder: &mut TraceBuilder) -> Outcome {
    let trace = open(builder);
    let outcome = trace.for_each(|_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(outcome.anomalies, Anomalies::default());
    assert_eq!((outcome.lost.total(), outcome.cut_off.len()), (0, 0));
    outcome
}

/// What is kept depends on how many threads run at once, not on how many there are.
#[test]
fn threads_are_read_from_their_first_word_to_their_last() {
    let in_turn = |thread: u32| {
        let ticket = u64::from(thread) * 2;
        // It is still running when the next one begins.
        vec![(ticket, vec![entry(m::MAIN)]), (ticket + 3, vec![exit(m::MAIN)])]
    };
    let [few, many] = [1_000, 100_000].map(|count| {
        let outcome = read(&mut many_threads(count, in_turn));
        assert_eq!(outcome.totals.of('M'), u64::from(count));
        outcome.kept
    });
    assert_eq!(few, many);
    assert!(few.stacks <= 3 && few.event_bytes < 200, "{few:?}");
}

/// If many threads run at once, inactive ones keep little in memory, and the result is the same.
#[test]
fn quiet_threads_hold_little() {
    const THREADS: u32 = 40;
    const ROUNDS: u64 = 60;
    let mut builder = many_threads(THREADS, |thread| {
        let mut events = vec![entry(m::MAIN)];
        for round in 1..=ROUNDS {
            for element in 0..20 {
                let object = thread * 1_000_000 + round as u32 * 100 + element;
                events.push(Event::Found { object: ObjectHash(object), class: c::A, length: -1 });
            }
            events.push(Event::Ticket(Ticket(round * u64::from(THREADS) + u64::from(thread))));
        }
        events.push(exit(m::MAIN));
        vec![(u64::from(thread), events)]
    });
    let trace = open(&mut builder);
    let piece = trace.file.event_bytes(&trace.file.threads()[0], 0) as usize;
    assert!(piece * THREADS as usize > 10 * (64 << 10), "pieces of {piece} bytes");
    let mut found = Vec::new();
    let outcome = trace
        .for_each(|record, context| {
            if record.letter() == 'P' {
                found.push((context.ticket(), record.objects()[0].0));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((&outcome.anomalies, outcome.lost.total()), (&Anomalies::default(), 0));
    assert!(outcome.kept.event_bytes <= (64 << 10) + 2 * piece, "{:?}", outcome.kept);
    let expected = (0..ROUNDS).flat_map(|round| {
        (1..=u64::from(THREADS)).flat_map(move |thread| {
            let ticket = Ticket(round * u64::from(THREADS) + thread);
            (0..20).map(move |element| (ticket, thread * 1_000_000 + (round + 1) * 100 + element))
        })
    });
    assert!(found.into_iter().eq(expected));
}

/// The arguments of a `super(…)` may run a whole program: only a limited part is kept until their object is known.
#[test]
fn arguments_of_a_super_call_are_not_read_ahead_without_end() {
    const EACH: usize = 100;
    let ends = [super_call(m::B_INIT), entry(m::A_INIT), new(SITE_B, 0xbb, c::B), exit(m::A_INIT), exit(m::B_INIT)];
    let [short, long] = [20, 2_000].map(|pieces| {
        let mut builder = world();
        builder.first_thread(1, "main", Vec::new());
        builder.events(1, 1, &[entry(m::MAIN), init(m::B_INIT)]);
        let calls: Vec<_> = (0..EACH).flat_map(|_| [entry(m::RUN), exit(m::RUN)]).collect();
        (0..pieces).for_each(|piece| {
            builder.events(1, 2 + piece, &calls);
        });
        builder.events(1, 2 + pieces, &ends);
        builder.events(1, 3 + pieces, &[exit(m::MAIN)]);
        let (lines, outcome) = run(&mut builder);
        assert_eq!(lines.len(), 2 * pieces as usize * EACH + 7 + outcome.anomalies.constructors_too_far as usize);
        (lines, outcome)
    });
    assert_eq!(short.1.anomalies, Anomalies::default());
    assert_eq!(short.0[1..3], ["N bb 18 LB; 3e9 0 1", "M 3eb bb 1"]);
    // An object that was made up takes its place.
    assert_eq!(long.1.anomalies, Anomalies { constructors_too_far: 1, ..Anomalies::default() });
    assert_eq!(long.0[1..3], ["N 4000000100000000 18 LB; 0 0 1", "M 3eb 4000000100000000 1"]);
    assert_eq!(long.0[long.0.len() - 5..][..2], ["N bb 18 LB; 3e9 0 1", "M 3e8 bb 1"]);
    assert!(long.1.kept.ahead <= 10_000 + 3 * EACH, "{:?}", long.1.kept);
}

/// A million virtual threads, one after the other, must not leave a million stacks.
#[test]
fn virtual_threads_that_have_ended_are_forgotten() {
    const EACH: u32 = 50;
    let switch = |owner| Event::Switch { owner: ObjectHash(owner) };
    let on_carrier = |block: u32| {
        let mut events = vec![entry(m::MAIN)];
        for owner in 0x1000 + block * EACH..0x1000 + (block + 1) * EACH {
            events.push(new(SITE_A, owner, c::A));
            // It is unmounted once while it runs.
            events.extend([switch(owner), entry(m::MAIN), switch(0), switch(owner), exit(m::MAIN), switch(0)]);
        }
        events.push(exit(m::MAIN));
        events
    };
    let [few, many] = [10, 400].map(|blocks: u32| {
        let mut builder = world();
        builder.first_thread(1, "carrier-1", Vec::new()).first_thread(2, "carrier-2", Vec::new());
        // One that waits all the time keeps its stack.
        builder.events(1, 1, &[new(SITE_A, 0x500, c::A), switch(0x500), entry(m::MAIN), switch(0)]);
        for block in 0..blocks {
            builder.events(1 + block % 2, 2 + u64::from(block), &on_carrier(block));
        }
        builder.events(1, 10_000, &[switch(0x500), exit(m::MAIN), switch(0)]);
        let outcome = read(&mut builder);
        assert_eq!(outcome.totals.of('M'), u64::from(1 + blocks * (EACH + 1)));
        outcome.kept
    });
    assert!(many.continuations <= 3 * EACH as usize && many.stacks <= 4, "{many:?}");
    assert_eq!(few, many);
}

#[test]
fn a_cut_at_any_block_leaves_a_readable_trace() {
    let mut builder = world();
    builder.first_thread(1, "main", Vec::new());
    for ticket in 0..6 {
        builder.events(1, ticket * 2 + 1, &[entry(m::MAIN), init(m::B_INIT)]);
        builder.events(1, ticket * 2 + 2, &[super_call(m::B_INIT), new(SITE_B, 0x100 + ticket as u32, c::B)]);
    }
    let bytes = builder.finish();
    for cut in (16..bytes.len()).step_by(7) {
        let file = TraceFile::from_bytes(bytes[..cut].to_vec(), None).unwrap();
        let trace = Trace::from_file(file).unwrap();
        let outcome = trace.for_each(|_, _| ControlFlow::Continue(())).unwrap();
        assert!(trace.file.cut_off().is_some());
        assert_eq!(outcome.lost.total(), 0);
    }
}

#[test]
fn damaged_events_are_counted_as_lost() {
    let mut builder = world();
    builder.first_thread(1, "main", Vec::new());
    builder.events(1, 1, &[entry(m::MAIN)]);
    let before = builder.without_end().len();
    builder.events(1, 2, &[exit(m::MAIN), entry(m::MAIN), exit(m::MAIN)]);
    let mut bytes = builder.finish();
    bytes[before + 40] ^= 0xff;
    let trace = Trace::from_file(TraceFile::from_bytes(bytes.clone(), None).unwrap()).unwrap();
    let outcome = trace.for_each(|_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!((outcome.lost.total(), outcome.lost.undecodable_bytes), (1, 20));
    assert!(!et_validate::bytes(bytes, 5).unwrap().is_clean(), "a trace that lost something is not clean");
}

/// The single event of a leaf results in the same records as its entry and exit.
#[test]
fn a_leaf_is_entered_and_left() {
    let on = |receiver| (m::RUN, ObjectHash(receiver));
    let class_method = (m::MAIN, ObjectHash::NULL);
    let both = |(method, receiver): (MethodId, ObjectHash)| {
        let entry = match receiver.is_null() {
            true => Event::Entry { method },
            false => Event::EntryOn { method, receiver },
        };
        vec![entry, exit(method)]
    };
    let leaf = |(method, receiver)| vec![Event::Leaf { method, receiver }];
    let events = |call: &dyn Fn((MethodId, ObjectHash)) -> Vec<Event<'static>>| {
        [
            vec![entry(m::MAIN)],
            call(class_method),
            vec![new(SITE_A, 0xa1, c::A)],
            call(on(0xa1)),
            // While a constructor waits for its object.
            vec![init(m::B_INIT)],
            call(on(0xa1)),
            call(class_method),
            vec![super_call(m::B_INIT), entry(m::A_INIT), new(SITE_B, 0xbb, c::B)],
            call(on(0xbb)),
            vec![exit(m::A_INIT), exit(m::B_INIT)],
            // While an exception is in flight, which it ends.
            vec![found_error(0xee), Event::Throw { method: m::MAIN, exception: ObjectHash(0xee) }],
            call(on(0xa1)),
            vec![handle(m::MAIN, 0xee), exit(m::MAIN)],
        ]
        .concat()
    };
    let lines = records(&events(&leaf));
    assert_eq!(lines, records(&events(&both)));
    assert_eq!(lines[..3], ["M 3ea 0 1", "M 3ea 0 1", "E 3ea 0 1"]);
    assert_eq!(lines[4..6], ["M 3e9 a1 1", "E 3e9 a1 1"]);
}

/// Its event comes after what the method reads, and tracing may have begun in between.
#[test]
fn a_leaf_that_ran_when_tracing_began_is_left_once() {
    let object = ObjectHash(0xa1);
    let frame = |method: &str, receiver| InitialFrame {
        class: "LA;".into(),
        method: method.into(),
        descriptor: "()V".into(),
        receiver,
    };
    let leaf = Event::Leaf { method: m::RUN, receiver: object };
    let (lines, outcome) = run(world()
        .initial_objects(&[InitialObject { object, class: c::A, size: 16, length: -1 }])
        .first_thread(1, "main", vec![frame("main", ObjectHash::NULL), frame("run", object)])
        .events(1, 1, &[leaf, leaf, exit(m::MAIN)]));
    let expected =
        ["I a1 10 LA; 0 0 0", "M 3ea 0 1", "M 3e9 a1 1", "E 3e9 a1 1", "M 3e9 a1 1", "E 3e9 a1 1", "E 3ea 0 1"];
    assert_eq!(lines, expected);
    assert_eq!(outcome.anomalies, Anomalies::default());
}

#[test]
fn an_array_that_was_there_may_have_more_than_4_gib() {
    let (length, small) = (1_200_000_000, 1_073_741_800);
    let array = |object, size, length| InitialObject { object: ObjectHash(object), class: c::INTS, size, length };
    let (lines, outcome) =
        run(world().initial_objects(&[array(0xa1, u32::MAX, length), array(0xa2, 4_294_967_216, small)]));
    assert_eq!(
        lines,
        [format!("I a1 {:x} [I 0 {length:x} 0", 16 + 4 * i64::from(length)), format!("I a2 ffffffb0 [I 0 {small:x} 0")]
    );
    assert_eq!(outcome.anomalies, Anomalies::default());
}

#[test]
fn names_do_not_take_more_than_a_trace_of_that_size_may_have() {
    // Eight megabytes that pack to a few thousand bytes, forty times.
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    });
    let long: String = noise.take(8000).chain(std::iter::repeat_n('x', 8 << 20)).collect();
    let mut builder = world();
    for at in 0..40 {
        let mut table = table("bomb.jar", 100_000 + at, &[class("p/Bomb", "java/lang/Object", &[])]);
        table.artifact.name.clone_from(&long);
        builder.names(&table);
    }
    let trace = open(&mut builder);
    assert!(trace.file.size() < 1 << 20, "{}", trace.file.size());
    let problem = trace.problems.iter().find(|problem| problem.what.starts_with("tables of names")).unwrap();
    assert!((5..20).contains(&problem.count), "{}", problem.count);
    // The table of the program came before and is there.
    assert!(trace.names.tables().any(|table| table.artifact.name == "app.jar"));
}
