use et_format::event::{Event, ObjectHash, Ticket};
use et_format::progress::Progress;
use et_format::{
    ClassRecord, GcRecord, InitialField, InitialObject, InitialReference, InitialReferences, InitialSlot, ThreadRecord,
    class_flags,
};
use et_names::{FieldRefId, MethodId, SiteId};

use super::{Summary, render, render_long};
use crate::testing::summarize;
use et_reader::Trace;
use et_reader::TraceFile;
use et_reader::source::{Deaths, Reading, Source};
use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
use et_reader::text::{Dialect, TextNames, TextTrace, write_names};
use et_reader::text_writer;

/// A program that fills a cache, and a lambda class without hooks.
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
    text_writer::write(source, dialect, Reading::default(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// How well the blocks pack is not this test's business.
fn without_sizes(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        for (start, from, to) in [("trace ", "memory, ", ", 17"), ("Records: ", ", ", " bytes")] {
            if let (true, Some(open), Some(close)) = (line.starts_with(start), line.find(from), line.find(to)) {
                line.replace_range(open + from.len()..close, "…");
            }
        }
    }
    lines.join("\n")
}

#[test]
fn the_summary_is_for_people() {
    let summary = summarize(&open(cache().finish()), Reading::default(), 5).unwrap();
    insta::assert_snapshot!("summary", without_sizes(&render_long(&summary)));
}

#[test]
fn the_summary_of_a_cut_off_trace_says_so() {
    let summary = summarize(&open(cache().without_end()), Reading::default(), 5).unwrap();
    assert!(!summary.complete);
    let text = render(&summary);
    assert!(text.contains("\n           trace is cut off after 14 blocks"), "{text}");
}

/// Threads that still ran at the end, and what they did while the VM went down, are in every run.
#[test]
fn of_a_healthy_run_nothing_is_lost_and_that_is_all() {
    let source = open(cache().problem(et_format::LATE, 30).finish());
    let mut summary = summarize(&source, Reading::default(), 5).unwrap();
    assert!(summary.threads.iter().any(|thread| thread.frames_left > 0));
    (summary.not_instrumented.classes, summary.shortfall_count) = (0, 0);
    let health = |summary: &Summary| {
        let text = render(summary);
        text.split_once("\nhealth").unwrap().1.trim_start().to_owned()
    };
    assert_eq!(health(&summary), "nothing lost\n");
    let long = render_long(&summary);
    assert!(long.contains("  30 events of threads that ran on while the VM went down"), "{long}");
    assert!(long.contains("1 frame on its stack at the end"), "{long}");
    summary.problems.push(et_format::Problem { what: "ids were used up".into(), count: 1 });
    assert_eq!(health(&summary), "nothing lost\n           the runtime reports: ids were used up (1)\n");
}

#[test]
fn of_a_run_that_was_killed_at_once_the_length_is_not_known() {
    let ran = |seconds: f64| {
        let mut builder = cache();
        builder.progress(&Progress { seconds, ..Progress::default() });
        let summary = summarize(&open(builder.without_end()), Reading::default(), 5).unwrap();
        let text = render(&summary);
        (summary.seconds, text.contains("ran at least"))
    };
    assert_eq!(ran(0.0), (None, false));
    assert_eq!(ran(2.5), (Some(2.5), true));
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
    assert_eq!(json["sites"][0]["site"], "shop.Cache.put:33");
    assert_eq!(json["packages"][0]["package"], "shop");
    let is_camel_case =
        |key: &str| key.starts_with(|first: char| !first.is_uppercase()) && !key.contains(['_', '-']) || key.len() == 1;
    for (path, key) in keys(&json) {
        // Names from other sources.
        assert!(is_camel_case(&key) || path.ends_with("/options"), "{path}/{key}");
    }
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
        let (ending, used) = text_writer::write(&source, dialect, Reading::default(), &mut text).unwrap();
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
        et_validate::validate(&source, Deaths::Trace, 10).unwrap().violations
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

/// All keys with their paths.
fn keys(json: &serde_json::Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut places = vec![(String::new(), json)];
    while let Some((path, value)) = places.pop() {
        match value {
            serde_json::Value::Object(members) => {
                for (key, value) in members {
                    found.push((path.clone(), key.clone()));
                    places.push((format!("{path}/{key}"), value));
                }
            }
            serde_json::Value::Array(values) => places.extend(values.iter().map(|value| (path.clone(), value))),
            _ => {}
        }
    }
    found
}

const NAMES: &str = "C 0x1 java/util/List 0x0 I:\nC 0x2 shop/Main 0x1 I:\nC 0x3 shop/Cache 0x1 I:\n\
                     N 0xa 0x1 java/util/List add ()V I\nN 0xb 0x2 shop/Main main ()V S\nN 0xc 0x3 shop/Cache put ()V I\n\
                     S 0xa 0x1 0x14 [Ljava/lang/Object; 1 5\nS 0xb 0x2 0x15 Lshop/Cache; 0 6\nS 0xc 0x3 0x16 Lshop/Line; 0 7\n\
                     S 0xb 0x2 0x17 Lshop/Request; 0 8\n";

/// `main` (b) allocates a cache and, repeatedly, a request (16 bytes); `put` (c) allocates a line (100), and `List.add`
/// (a) an array (40) for it.
fn shop(rounds: u64, end: &str) -> Source {
    let mut text = String::from("M b 0 1\nN 1 20 Lshop/Cache; 15 0 1\n");
    for round in 0..rounds {
        let (request, line, array) = (0x1000 + round, 0x2000 + round, 0x3000 + round);
        text += &format!("N {request:x} 10 Lshop/Request; 17 0 1\nM c 1 1\nN {line:x} 64 Lshop/Line; 16 0 1\n");
        text += &format!("M a 0 1\nA {array:x} 28 [Ljava/lang/Object; 14 2 1\nU 0 {array:x} {line:x} 0 1\n");
        text += &format!("U 0 1 {array:x} {round:x} 1\nE a 0 1\nE c 1 1\n");
    }
    text += end;
    text += "# lost 0\n";
    let names = TextNames::read(NAMES.as_bytes()).unwrap().unwrap();
    TextTrace::from_text(&text, Some(names)).into()
}

#[test]
fn what_the_jdk_allocates_is_attributed_to_its_callers() {
    let summary = summarize(&shop(100, "E b 0 1\n"), Reading::default(), 5).unwrap();
    let packages: Vec<_> = summary.packages.iter().map(|line| (line.package.as_str(), line.amount.bytes)).collect();
    assert_eq!(packages, [("shop", 32 + 100 * (16 + 100 + 40))]);
    let sites: Vec<_> = summary.sites.iter().map(|line| (line.site.as_str(), line.caller.as_deref())).collect();
    let expected = [
        ("shop.Cache.put:7", None),
        ("java.util.List.add:5", Some("shop.Cache.put")),
        ("shop.Main.main:8", None),
        ("shop.Main.main:6", None),
    ];
    assert_eq!(sites, expected, "each site once");
}

#[test]
fn what_the_jdk_allocates_for_itself_is_not_for_the_callers() {
    // A thread of the JDK's own makes arrays at the same site, and keeps one of them.
    let own = "M a 0 3\nA f001 50 [Ljava/lang/Object; 14 2 3\nA f002 50 [Ljava/lang/Object; 14 2 3\n";
    let summary = summarize(&shop(100, own), Reading::default(), 5).unwrap();
    let site = summary.sites.iter().find(|line| line.site == "java.util.List.add:5").unwrap();
    assert_eq!((site.amount.bytes, site.for_callers.bytes, site.for_callers.objects), (4000 + 160, 4000, 100));
    let text = render(&summary);
    assert!(text.contains("  for shop.Cache.put, 3.9 KiB of it\n"), "{text}");
    let all = render(&summarize(&shop(100, ""), Reading::default(), 5).unwrap());
    assert!(all.contains("  for shop.Cache.put\n"), "{all}");
}

#[test]
fn the_peak_is_where_the_most_was_alive() {
    // The cache dies with its lines at its last mention, half way through the run.
    let second_half = "M b 0 1\nE b 0 1\n".repeat(200) + "E b 0 1\n";
    let peak = summarize(&shop(100, &second_half), Reading::default(), 5).unwrap().peak.unwrap();
    assert_eq!(peak.live.bytes, 32 + 100 * 140, "requests die as soon as they are made");
    assert_eq!(peak.method.as_deref(), Some("shop.Cache.put"));
    assert_eq!((peak.tick, peak.at_the_end.bytes), (1 + 99 * 4 + 2, 0));
}

#[test]
fn what_grew_is_reported_with_its_size_in_the_middle() {
    // A static field holds the cache.
    let mut kept = String::from("U 0 0 1 99 1\nE b 0 1\n");
    let summary = summarize(&shop(400, &kept), Reading::default(), 5).unwrap();
    let grew: Vec<_> = summary.grew.iter().map(|line| line.site.as_str()).collect();
    assert_eq!(grew, ["shop.Cache.put:7", "java.util.List.add:5"], "and not the cache, nor the requests");
    let line = &summary.grew[0];
    assert_eq!(line.at_the_end, crate::summary::Amount { objects: 400, bytes: 40_000 });
    // Of 1602 ticks, four a round, 801 have passed.
    assert_eq!(line.in_the_middle, crate::summary::Amount { objects: 200, bytes: 20_000 });
    // In the second half of this one nothing is allocated.
    kept.insert_str(0, &"M b 0 1\nE b 0 1\n".repeat(1000));
    assert!(summarize(&shop(400, &kept), Reading::default(), 5).unwrap().grew.is_empty());
}

#[test]
fn what_running_methods_may_hold_is_reported() {
    let summary = summarize(&shop(100, ""), Reading::default(), 5).unwrap();
    let held = |summary: &super::Summary| -> Vec<_> {
        let line = |line: &super::HeldLine| (line.method.clone(), line.ty.clone(), line.amount.bytes);
        summary.held_by_running_methods.iter().map(line).collect()
    };
    let main = || "shop.Main.main".to_owned();
    let expected = [
        (main(), "shop.Cache".to_owned(), 32 + 100 * 140),
        // The last of them: the others were in the same variable.
        (main(), "shop.Request".to_owned(), 16),
    ];
    assert_eq!(held(&summary), expected);
    let text = render(&summary);
    assert!(
        text.contains("\nHeld only by methods running at the end") && text.contains("maybe a local of shop.Main.main"),
        "{text}"
    );
    let ended = summarize(&shop(100, "E b 0 1\n"), Reading::default(), 5).unwrap();
    assert!(held(&ended).is_empty());
}

#[test]
fn what_only_receivers_hold_is_listed_separately() {
    let mut builder = cache();
    let (put, main) = (MethodId(5_000_001), MethodId(5_000_002));
    let new = |object| Event::New {
        site: SiteId(5_000_000),
        object: ObjectHash(object),
        class: ObjectHash(0x12),
        known: false,
    };
    let array =
        |object| Event::NewArray { depth: 0, site: SiteId(5_000_001), object: ObjectHash(object), length: 1000 };
    let on = |receiver| Event::EntryOn { method: put, receiver: ObjectHash(receiver) };
    let origin = ObjectHash(0xc1);
    let fill = Event::PutField { field: FieldRefId(5_000_000), origin, target: ObjectHash(0xb1), if_changed: false };
    builder.first_thread(3, "one", Vec::new()).first_thread(4, "other", Vec::new());
    // A static field holds the first receiver. The second holds an array, and is a receiver twice; another array is only in hand.
    builder.events(3, 20, &[Event::Entry { method: main }, new(0xc1), array(0xb1), fill, on(0xc0), on(0xc1), on(0xc1)]);
    builder.events(3, 30, &[array(0xb2), new(0xc3), Event::Throw { method: put, exception: ObjectHash(0xc3) }]);
    builder.events(4, 40, &[new(0xc2), on(0xc2)]);
    let source = open(builder.finish());
    let held = |source: &Source| -> Vec<_> {
        let summary = summarize(source, Reading::default(), 5).unwrap();
        let lines = summary.held_by_running_methods.into_iter();
        lines.map(|line| (line.by, line.method, line.ty, line.amount.objects, line.amount.bytes)).collect()
    };
    let expected = |by: super::HeldBy, method: &str, ty: &str, objects: u64, bytes: u64| {
        (by, format!("shop.Cache.{method}"), ty.to_owned(), objects, bytes)
    };
    use super::HeldBy::{Exception, Local, Receiver};
    let of_trace = held(&source);
    let all = [
        expected(Receiver, "put", "shop.Cache", 3, 24 + 1016 + 24),
        expected(Local, "put", "byte[]", 1, 1016),
        expected(Exception, "put", "shop.Cache", 1, 24),
        expected(Local, "main", "shop.Cache$$Lambda.0x1", 1, 16),
    ];
    assert_eq!(of_trace, all);
    let summary = summarize(&source, Reading::default(), 5).unwrap();
    assert!(render(&summary).contains("receiver of shop.Cache.put"), "{}", render(&summary));
    assert_eq!(serde_json::to_value(&summary).unwrap()["heldByRunningMethods"][0]["by"], "receiver");
    // A text without deaths gives the same result.
    let (mut text, mut names) = (Vec::new(), Vec::new());
    let plain = Reading { deaths: Deaths::None, ..Reading::default() };
    let (ending, used) = text_writer::write(&source, Dialect::Et, plain, &mut text).unwrap();
    let Source::Trace(trace) = &source else { unreachable!() };
    write_names(trace, Dialect::Et, used.as_ref(), &ending.outcome.extra_fields, &mut names).unwrap();
    let names = TextNames::read(&names[..]).unwrap().unwrap();
    assert_eq!(held(&TextTrace::from_text(&String::from_utf8(text).unwrap(), Some(names)).into()), of_trace);
}

#[test]
fn lifetimes_and_drag_are_reported() {
    let text = "M b 0 1\nN 1 10 Lshop/Cache; 15 0 1\nM c 1 1\nE c 1 1\nM b 0 1\nE b 0 1\nU 0 0 1 99 1\nU 1 0 0 99 1\n\
                D 1 1\nN 2 10 Lshop/Cache; 15 0 1\nE b 0 1\n# lost 0\n";
    let names = TextNames::read(NAMES.as_bytes()).unwrap().unwrap();
    let summary = summarize(&TextTrace::from_text(text, Some(names)).into(), Reading::default(), 5).unwrap();
    let part = summary.lifetimes.unwrap();
    assert_eq!((part.died.objects, part.alive_at_end.objects), (1, 1));
    // Born at 1, used by the exit of `put` at 2, dead at 5; storing it is not a use.
    assert_eq!((part.mean_lifetime, part.mean_drag, part.drag_byte_ticks), (4.0, Some(3.0), Some(48)));
    assert_eq!(part.sites[0].site.as_deref(), Some("shop.Main.main:6"));
    assert_eq!(part.classes[0].alive_at_end, 1);
}

#[test]
fn the_summary_is_one_screen() {
    for summary in
        [summarize(&shop(1000, ""), Reading::default(), 5), summarize(&open(cache().finish()), Reading::default(), 5)]
    {
        let text = render(&summary.unwrap());
        assert!(text.lines().count() <= 40, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

/// The part of a summary that can also be computed from a text with its names.
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
        let (ending, used) = text_writer::write(&source, dialect, Reading::default(), &mut text).unwrap();
        let Source::Trace(trace) = &source else { unreachable!() };
        write_names(trace, dialect, used.as_ref(), &ending.outcome.extra_fields, &mut names).unwrap();
        let names = TextNames::read(&names[..]).unwrap().unwrap();
        let back = TextTrace::from_text(&String::from_utf8(text).unwrap(), Some(names)).into();
        assert_eq!(told_by_text(&back), told_by_text(&source), "{dialect:?}");
    }
}

#[test]
fn unknown_deaths_are_not_reported() {
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
        let (ending, _) = text_writer::write(source, Dialect::Et, reading, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), ending.warnings)
    };
    for events in ["alloc", "alloc,exception", "alloc,method", "update,method,exception"] {
        let source = of_events(events);
        let (binary, warnings) = written(&source, Deaths::Trace);
        let expected = format!("deaths cannot be computed: the classes have hooks for {events} events only");
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
                render(&summary).contains(&format!(" events: {events} only").replace(',', ", ")),
                "{}",
                render(&summary)
            );
        }
        assert!(written(&source, Deaths::None).1.is_empty());
        let report = et_validate::validate(&source, Deaths::Trace, 5).unwrap();
        assert_eq!(report.notes.first(), Some(&expected));
        assert_eq!(report.totals.of('D'), 0);
    }
    let mut unused = table("other.jar", 8_000_000, &[class("other/Other", "java/lang/Object", &[])]);
    unused.artifact.events = et_names::EventSet::ALLOC;
    assert_eq!(open(cache().names(&unused).finish()).events(), et_names::EventSet::ALL, "no class of it is in the run");
    let all = of_events("alloc,update,method");
    assert!(written(&all, Deaths::Trace).0.contains("\n# deaths trace\n"));
    of_the_heap(&of_events("alloc,update"), written);
}

/// Without calls there are deaths, which are said to be those of the heap, and the clock counts bytes.
fn of_the_heap(source: &Source, written: impl Fn(&Source, Deaths) -> (String, Vec<String>)) {
    let (lines, warnings) = written(source, Deaths::Trace);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.starts_with("deaths are those of the heap: "), "{warning}");
    assert!(lines.contains("\n# deaths trace\n") && lines.contains("\n# events alloc,update\n"), "{lines}");
    let text = Source::from(TextTrace::from_text(&lines, None));
    assert_eq!(written(&text, Deaths::Trace), (lines, warnings.clone()));
    for source in [source, &text] {
        let summary = summarize(source, Reading::default(), 5).unwrap();
        assert_eq!(summary.ticks, summary.allocated.bytes);
        assert_eq!(summary.warnings, warnings);
        assert!(summary.lifetimes.is_some_and(|lifetimes| lifetimes.drag_byte_ticks.is_none()));
        let report = et_validate::validate(source, Deaths::Trace, 5).unwrap();
        assert_eq!(report.violations, [""; 0]);
    }
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
        text_writer::write(source, Dialect::Et, Reading { deaths, ..Reading::default() }, &mut text).unwrap();
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
        text_writer::write(source, Dialect::Et, Reading { deaths, ..Reading::default() }, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let plain = write(&source, Deaths::None);
    let back: Source = TextTrace::from_text(&plain, None).into();
    for source in [&source, &back] {
        let text = write(source, Deaths::Trace);
        assert!(text.contains("\nD e1 3\n") && !text.contains("\nD e0 "), "{text}");
    }
    // A text of another tool does not have it.
    let others: Source =
        TextTrace::from_text(&plain.replace("# held", "#").replace("# with holders", "#"), None).into();
    assert!(!write(&others, Deaths::Trace).contains("\nD e1 "));
}

#[test]
fn the_page_on_traces_names_all_keys() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reading-traces.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let summary = Summary {
        writer_cpu_seconds: Some(1.0),
        selected: Some(Default::default()),
        counts: Some("1s".into()),
        stacks: Some(Default::default()),
        survival: Some(Default::default()),
        contention: Some(Default::default()),
        ..Summary::default()
    };
    let json = serde_json::to_value(&summary).expect("JSON");
    let mut keys: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    for part in ["stacks", "survival", "selected"] {
        keys.extend(json[part].as_object().expect(part).keys().map(String::as_str));
    }
    keys.retain(|key| !page.contains(&format!("`{key}`")));
    assert!(keys.is_empty(), "docs/reading-traces.md lacks {keys:?}");
}
