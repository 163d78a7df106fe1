use et_names::{FieldRefId, MethodId, SiteId};

use super::{render, summarize};
use crate::TraceFile;
use crate::event::{Event, ObjectHash, Ticket};
use crate::file::format::{
    ClassRecord, GcRecord, InitialField, InitialObject, InitialReference, InitialReferences, InitialSlot, ThreadRecord,
    class_flags,
};
use crate::source::{Deaths, Reading, Source};
use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
use crate::text::{self, Dialect, TextNames, TextTrace, write_names};
use crate::trace::Trace;

/// A program that fills a cache, and a lambda class that nobody instrumented.
fn cache() -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let mut app =
        class("shop/Cache", "java/lang/Object", &["<init> ()V", "put (Ljava/lang/Object;)V", "static main ()V"])
            .with_fields(&["first Lshop/Cache;", "static all Lshop/Cache;"])
            .with_sites(&[(2, "Lshop/Cache;", 21), (1, "[B", 33)]);
    app.shortfalls.push(et_names::ShortfallNames {
        method: 1,
        hooks: "array updates".into(),
        why: "the method would pass 8000 bytes".into(),
    });
    builder.names(&table(
        "jdk",
        1,
        &[class("java/lang/Object", "", &["<init> ()V"]), class("java/lang/Class", "java/lang/Object", &[])],
    ));
    builder.names(&table("shop.jar", 5_000_000, &[app]));
    for (at, mirror, size, flags, signature) in [
        (0, 0x10, 16, 0, "Ljava/lang/Object;"),
        (0, 0x11, 0, 0, "Ljava/lang/Class;"),
        (2, 0x12, 24, 0, "Lshop/Cache;"),
        (4, 0x13, 16, class_flags::HIDDEN, "Lshop/Cache$$Lambda/0x1;"),
    ] {
        builder.class(&ClassRecord {
            ticket: Ticket(at),
            class: ObjectHash(mirror),
            superclass: ObjectHash(if mirror == 0x10 { 0 } else { 0x10 }),
            instance_size: size,
            mirror_size: 120,
            flags,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }
    builder.initial_objects(&[
        InitialObject { object: ObjectHash(0x10), class: ObjectHash(0x11), size: 120, length: -1 },
        InitialObject { object: ObjectHash(0x11), class: ObjectHash(0x11), size: 120, length: -1 },
    ]);
    let (init, put, main) = (MethodId(5_000_000), MethodId(5_000_001), MethodId(5_000_002));
    let (cache, bytes) = (ObjectHash(0xc0), ObjectHash(0xb0));
    builder.first_thread(1, "main", Vec::new());
    builder.events(
        1,
        3,
        &[
            Event::Entry { method: main },
            Event::Entry { method: init },
            Event::New { site: SiteId(5_000_000), object: cache, class: ObjectHash(0x12), known: false },
            Event::Exit { method: init },
            Event::PutStatic { field: FieldRefId(5_000_001), target: cache },
            Event::Ticket(Ticket(5)),
            Event::Found { object: ObjectHash(0xd0), class: ObjectHash(0x13), length: -1 },
            Event::EntryOn { method: put, receiver: cache },
            Event::NewArray { depth: 0, site: SiteId(5_000_001), object: bytes, length: 1000 },
            Event::PutField { field: FieldRefId(5_000_000), origin: cache, target: bytes, if_changed: false },
            Event::Exit { method: put },
        ],
    );
    builder.thread(&ThreadRecord::Start {
        ticket: Ticket(6),
        thread: 2,
        object: ObjectHash(0),
        flags: 1,
        name: "worker".into(),
        frames: Vec::new(),
    });
    builder.events(2, 7, &[Event::Entry { method: main }, Event::Exit { method: main }]);
    builder.thread(&ThreadRecord::End { ticket: Ticket(8), thread: 2 });
    builder.gc(&GcRecord {
        start: Ticket(3),
        finish: Ticket(4),
        start_nanos: 500_000_000,
        finish_nanos: 512_000_000,
        heap_used: 3 << 20,
        heap_committed: 8 << 20,
    });
    builder
}

fn open(bytes: Vec<u8>) -> Source {
    Trace::from_file(TraceFile::from_bytes(bytes, None).unwrap()).unwrap().into()
}

fn write(source: &Source, dialect: Dialect) -> String {
    let mut text = Vec::new();
    text::write(source, dialect, Reading::default(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// How well the blocks pack is not this test's business.
fn without_sizes(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let (true, Some(open), Some(close)) = (line.starts_with("trace "), line.find('('), line.find(')')) {
            line.replace_range(open + 1..close, "…");
        }
    }
    lines.join("\n")
}

#[test]
fn the_summary_is_for_people() {
    let summary = summarize(&open(cache().finish()), Reading::default(), 5).unwrap();
    insta::assert_snapshot!("summary", without_sizes(&render(&summary)));
}

#[test]
fn the_summary_of_a_cut_off_trace_says_so() {
    let summary = summarize(&open(cache().without_end()), Reading::default(), 5).unwrap();
    assert!(!summary.complete);
    let text = render(&summary);
    assert!(text.contains("trace is cut off after 14 blocks"), "{text}");
}

#[test]
fn the_summary_for_programs_has_the_documented_keys() {
    let mut builder = cache();
    let summary =
        summarize(&open(builder.lost(3).problem("classes not read", 2).finish()), Reading::default(), 5).unwrap();
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["lost"], 3);
    assert_eq!(
        json["records"]["total"],
        json["records"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(k, _)| *k != "total")
            .map(|(_, n)| n.as_u64().unwrap())
            .sum::<u64>()
    );
    assert_eq!(json["threads"][1]["name"], "worker");
    assert_eq!(json["gcs"][0]["heapUsedBytes"], 3 << 20);
    assert_eq!(json["classes"][0]["type"], "byte[]");
    assert_eq!(json["classes"][0]["bytes"], 1016);
    assert_eq!(json["classes"][0]["kinds"], serde_json::json!({ "A": json["classes"][0]["objects"] }));
    assert_eq!(json["sitesByBytes"][0]["site"], "shop.Cache.put:33");
    assert_eq!(json["notInstrumented"]["classes"], 1);
    assert_eq!(json["shortfalls"][0]["method"], "shop.Cache.put");
    assert_eq!(json["problems"][0]["count"], 2);
    assert_eq!(json["complete"], true);
}

#[test]
fn text_and_names_of_a_small_trace() {
    for (dialect, name) in [(Dialect::Et, ""), (Dialect::Replayer, "_replayer"), (Dialect::Oracle, "_oracle")] {
        let source = open(cache().finish());
        let mut text = Vec::new();
        let (ending, used) = text::write(&source, dialect, Reading::default(), &mut text).unwrap();
        insta::assert_snapshot!(format!("text{name}"), String::from_utf8(text).unwrap());
        let Source::Trace(trace) = &source else { unreachable!() };
        let mut names = Vec::new();
        write_names(trace, dialect, used.as_ref(), &ending.outcome.extra_fields, &mut names).unwrap();
        insta::assert_snapshot!(format!("names{name}"), String::from_utf8(names).unwrap());
    }
}

#[test]
fn validate_reads_the_text_as_well() {
    let text = write(&open(cache().finish()), Dialect::Et);
    let check = |text: &str| {
        let source = TextTrace::from_text(text, None).into();
        crate::validate::validate(&source, Deaths::Trace, 10).unwrap().breaches
    };
    assert_eq!(check(&text), Vec::<String>::new());
    let cut: String = text.split_inclusive('\n').filter(|line| !line.starts_with("# lost")).collect();
    assert!(check(&cut)[0].contains("cut off"), "{:?}", check(&cut));
    let fewer: String = text.split_inclusive('\n').filter(|line| !line.starts_with('U')).collect();
    assert_eq!(check(&fewer), ["the closing comments count 2 U records, there are 0"]);
    let doubled = text.replacen("P d0", "P b0", 1);
    let found = check(&doubled);
    assert!(
        found[1].contains("object b0 was allocated or mentioned before [object b0: P at 11, A at 14]"),
        "{found:?}"
    );
}

/// What a summary tells that a text, with its names, tells as well.
fn told_by_text(source: &Source) -> serde_json::Value {
    let summary = summarize(source, Reading::default(), 20).unwrap();
    let mut json = serde_json::to_value(&summary).unwrap();
    for only_in_traces in [
        "trace",
        "traceBytes",
        "program",
        "seconds",
        "bytesPerRecord",
        "eventBytes",
        "packedEventBytes",
        "writerCpuSeconds",
        "threads",
        "gcs",
    ] {
        json.as_object_mut().unwrap().remove(only_in_traces);
    }
    for only_in_traces in ["notInstrumented", "shortfalls", "shortfallCount"] {
        json.as_object_mut().unwrap().remove(only_in_traces);
    }
    json
}

#[test]
fn texts_have_the_same_summary() {
    let source = open(cache().finish());
    for dialect in [Dialect::Et, Dialect::Replayer] {
        let (mut text, mut names) = (Vec::new(), Vec::new());
        let (ending, used) = text::write(&source, dialect, Reading::default(), &mut text).unwrap();
        let Source::Trace(trace) = &source else { unreachable!() };
        write_names(trace, dialect, used.as_ref(), &ending.outcome.extra_fields, &mut names).unwrap();
        let names = TextNames::read(&names[..]).unwrap().unwrap();
        let back = TextTrace::from_text(&String::from_utf8(text).unwrap(), Some(names)).into();
        assert_eq!(told_by_text(&back), told_by_text(&source), "{dialect:?}");
    }
}

#[test]
fn deaths_that_cannot_be_known_are_not_told() {
    let of_events = |events: &str| {
        let mut builder = cache();
        let mut table = table("lib.jar", 7_000_000, &[class("lib/Lib", "java/lang/Object", &[])]);
        table.artifact.events = events.parse().unwrap();
        builder.names(&table);
        builder.class(&ClassRecord {
            ticket: Ticket(2),
            class: ObjectHash(0x14),
            superclass: ObjectHash(0x10),
            signature: "Llib/Lib;".into(),
            ..ClassRecord::default()
        });
        open(builder.finish())
    };
    let written = |source: &Source, deaths| {
        let mut out = Vec::new();
        let reading = Reading { deaths, ..Reading::default() };
        let (ending, _) = text::write(source, Dialect::Et, reading, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), ending.warnings)
    };
    for events in ["alloc", "alloc,update", "alloc,method", "update,method,exception"] {
        let source = of_events(events);
        let (binary, warnings) = written(&source, Deaths::Trace);
        let expected =
            format!("deaths cannot be known, and none are told: the classes have hooks for {events} events only");
        assert_eq!(warnings, [expected.as_str()]);
        assert!(!binary.contains("\nD ") && binary.contains("\n# deaths none\n"), "{binary}");
        assert!(binary.contains(&format!("\n# events {events}\n")), "{binary}");
        let text = Source::from(TextTrace::from_text(&binary, None));
        assert_eq!(written(&text, Deaths::Trace), (binary, warnings));
        for source in [&source, &text] {
            let summary = summarize(source, Reading::default(), 5).unwrap();
            assert!(summary.lifetimes.is_none());
            assert_eq!(summary.warnings, [expected.as_str()]);
            assert_eq!(summary.events.join(","), events);
            assert!(
                render(&summary).contains(&format!("\nevents   {events}").replace(',', ", ")),
                "{}",
                render(&summary)
            );
        }
        assert!(written(&source, Deaths::None).1.is_empty());
        let Source::Trace(trace) = &source else { unreachable!() };
        let report = crate::validate::trace(trace, 5).unwrap();
        assert_eq!(report.notes.first(), Some(&expected));
        assert_eq!(report.totals.of('D'), 0);
    }
    let mut unused = table("other.jar", 8_000_000, &[class("other/Other", "java/lang/Object", &[])]);
    unused.artifact.events = et_names::EventSet::ALLOC;
    assert_eq!(open(cache().names(&unused).finish()).events(), et_names::EventSet::ALL, "no class of it is in the run");
    let all = of_events("alloc,update,method");
    assert!(written(&all, Deaths::Trace).0.contains("\n# deaths trace\n"));
}

#[test]
fn a_text_without_deaths_says_what_held_objects() {
    let mut builder = cache();
    let reference =
        |origin, target, slot| InitialReference { origin: ObjectHash(origin), target: ObjectHash(target), slot };
    builder.initial_references(&InitialReferences {
        fields: vec![InitialField { class: ObjectHash(0x12), name: "all".into(), descriptor: "Lshop/Cache;".into() }],
        references: vec![reference(0, 0x10, InitialSlot::Static(0)), reference(0x10, 0x11, InitialSlot::Field(0))],
    });
    let source = open(builder.finish());
    let write = |source: &Source, deaths| {
        let mut text = Vec::new();
        text::write(source, Dialect::Et, Reading { deaths, ..Reading::default() }, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let plain = write(&source, Deaths::None);
    assert!(plain.contains("\n# with holders\n"), "{plain}");
    assert!(plain.contains("\n# ref 0 4c4b41 10\n"), "{plain}");
    let back: Source = TextTrace::from_text(&plain, None).into();
    let records =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let with_deaths = write(&source, Deaths::Trace);
    assert!(with_deaths.contains("\nD ") && !with_deaths.contains("# ref"), "{with_deaths}");
    assert_eq!(records(&write(&back, Deaths::Trace)), records(&with_deaths));
    let (one, other) = (summarize(&source, Reading::default(), 5), summarize(&back, Reading::default(), 5));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.records, other.records);
    let told = |summary: super::Summary| {
        let part = summary.lifetimes.unwrap();
        (part.died, part.alive_at_end, part.initial_died, part.mean_lifetime, part.mean_drag, part.drag_byte_ticks)
    };
    let warnings = other.warnings.clone();
    assert_eq!(told(one), told(other));
    assert!(warnings.iter().all(|warning| !warning.contains("I objects")), "{warnings:?}");
}

#[test]
fn constants_live_to_the_end_and_other_strings_of_the_vm_do_not() {
    let mut builder = cache();
    builder.class(&ClassRecord {
        ticket: Ticket(2),
        class: ObjectHash(0x15),
        superclass: ObjectHash(0x10),
        instance_size: 24,
        signature: "Ljava/lang/String;".into(),
        ..ClassRecord::default()
    });
    let made = |object, constant| Event::Made {
        object: ObjectHash(object),
        class: ObjectHash(0x15),
        length: -1,
        fresh: false,
        constant,
    };
    builder.first_thread(3, "strings", Vec::new());
    builder.events(3, 20, &[made(0xe0, true), made(0xe1, false), Event::Entry { method: MethodId(5_000_002) }]);
    let source = open(builder.finish());
    let write = |source: &Source, deaths| {
        let mut text = Vec::new();
        text::write(source, Dialect::Et, Reading { deaths, ..Reading::default() }, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let plain = write(&source, Deaths::None);
    let back: Source = TextTrace::from_text(&plain, None).into();
    for source in [&source, &back] {
        let text = write(source, Deaths::Trace);
        assert!(text.contains("\nD e1 3\n") && !text.contains("\nD e0 "), "{text}");
    }
    // A text of others does not tell.
    let others: Source =
        TextTrace::from_text(&plain.replace("# held", "#").replace("# with holders", "#"), None).into();
    assert!(!write(&others, Deaths::Trace).contains("\nD e1 "));
}
