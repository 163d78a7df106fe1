use et_format::event::{Event, ObjectHash, Ticket};
use et_format::{ClassRecord, InitialField, InitialObject, InitialReference, InitialReferences, InitialSlot};
use et_names::{FieldRefId, MethodId, SiteId};
use proptest::prelude::*;

use super::{write, write_with};
use crate::TraceFile;
use crate::source::{Deaths, Reading, Source};
use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
use crate::text::{Dialect, Holders, TextNames, TextTrace, write_names};
use crate::trace::Trace;

const BOTH: [Dialect; 2] = [Dialect::Et, Dialect::Replayer];

/// A class with these names that creates an instance of itself and one of a class that is in no table, and stores it.
fn trace(name: &str, field: &str, method: &str, dynamic: &str) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut names = class(name, "", &["static m ()V"])
        .with_sites(&[(0, &format!("L{name};"), 7), (0, &format!("L{dynamic};"), 8)])
        .with_fields(&["static x"]);
    names.methods[0].name = method.into();
    names.fields[0].name = field.into();
    names.field_refs[0].name = field.into();
    builder.names(&table("app", 1, &[names]));
    for (mirror, name) in [(10, name), (11, dynamic)] {
        builder.class(&ClassRecord {
            ticket: Ticket(1),
            class: ObjectHash(mirror),
            instance_size: 16,
            signature: format!("L{name};"),
            ..ClassRecord::default()
        });
    }
    builder.first_thread(1, "main", Vec::new());
    let new = |object, class: u32| Event::New {
        site: SiteId(class - 9),
        object: ObjectHash(object),
        class: ObjectHash(class),
        known: false,
    };
    builder.events(
        1,
        2,
        &[
            Event::Entry { method: MethodId(1) },
            new(20, 10),
            new(21, 11),
            Event::PutStatic { field: FieldRefId(1), target: ObjectHash(21) },
            Event::Exit { method: MethodId(1) },
        ],
    );
    builder.problem(&format!("what became of {dynamic}"), 1);
    Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap()
}

fn text(source: &Source, dialect: Dialect, deaths: Deaths, holders: Holders) -> String {
    let mut text = Vec::new();
    write_with(source, dialect, Reading { deaths, ..Reading::default() }, holders, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn names_of(source: &Source, dialect: Dialect) -> String {
    let (ending, used) = write(source, dialect, Reading::default(), std::io::sink()).unwrap();
    let Source::Trace(trace) = source else { unreachable!() };
    let mut names = Vec::new();
    write_names(trace, dialect, used.as_ref(), &ending.outcome.extra_fields, &mut names).unwrap();
    String::from_utf8(names).unwrap()
}

fn read_names(text: &str) -> TextNames {
    TextNames::read(text.as_bytes()).unwrap().unwrap_or_else(|line| panic!("line {line} of {text:?}"))
}

fn read(text: &str, names: &str) -> Source {
    TextTrace::from_text(text, Some(read_names(names))).into()
}

/// Names made of characters with a special meaning and of arbitrary ones.
fn names() -> impl Strategy<Value = String> {
    let special =
        vec![' ', '\n', '\r', '\t', '\\', 'u', '0', '_', '#', '[', '?', '/', ';', '\u{1b}', '\u{202e}', '\u{10f800}'];
    let character = prop_oneof![3 => proptest::sample::select(special), 1 => any::<char>()];
    proptest::collection::vec(character, 1..8).prop_map(|characters| characters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_names_are_read_back(class in names(), field in names(), method in names(), dynamic in names()) {
        let source = Source::from(trace(&class, &field, &method, &dynamic));
        for dialect in BOTH {
            let (text, names) = (text(&source, dialect, Deaths::Trace, Holders::default()), names_of(&source, dialect));
            let back = read_names(&names);
            prop_assert_eq!(back.descriptor(1), Some(format!("L{class};")));
            let site = Some(format!("{}.{method}:7", class.replace('/', ".")));
            prop_assert_eq!(back.site_text(1), site, "{}", names);
            let back = read(&text, &names);
            prop_assert_eq!(&self::text(&back, dialect, Deaths::Trace, Holders::default()), &text);
            let mut types = Vec::new();
            back.for_each(Reading::default(), |record, at| {
                if let crate::record::Record::Alloc(alloc) = record {
                    let descriptor = at.types.descriptor(alloc.ty);
                    let is_mirror = descriptor == "Ljava/lang/Class;";
                    types.extend(Some(descriptor).filter(|_| !is_mirror).map(str::to_owned));
                }
                std::ops::ControlFlow::Continue(())
            }).unwrap();
            prop_assert_eq!(types, [format!("L{class};"), format!("L{dynamic};")]);
        }
    }
}

#[test]
fn names_cannot_forge_lines() {
    let source = Source::from(trace("two words", "f\nC 9 Evil 0 I:", "m\nE 9 0 1", "a\u{202e}b\nN 99 10 LEvil; 0 0 1"));
    let forged = text(&source, Dialect::Et, Deaths::None, Holders::default());
    let expected = "\
        N 14 10 Ltwo\\u0020words; 1 0 1\n\
        N 15 10 La\\u202eb\\u000aN\\u002099\\u002010\\u0020LEvil;\\u00200\\u00200\\u00201; 2 0 1\n\
        U 0 0 15 1 1\n\
        E 1 0 1\n";
    assert!(forged.contains(expected), "{forged}");
    assert!(forged.contains("# problem 1 what became of a\\u202eb\\u000aN 99 10 LEvil; 0 0 1\n"), "{forged}");
    let names = names_of(&source, Dialect::Et);
    assert!(
        names.starts_with("# Elephant Tracks, names\nC 1 two\\u0020words 0 I:\nF S 1 f\\u000aC\\u00209\\u0020Evil"),
        "{names}"
    );
    assert!(
        names.lines().all(|line| !line.contains('\u{202e}') && !line.starts_with("C 9") && !line.starts_with("E 9"))
    );
}

#[test]
fn ids_are_written_alike_in_text_and_names() {
    let source = Source::from(trace("A", "f", "m", "Dynamic"));
    for (dialect, id) in [(Dialect::Et, "40000002"), (Dialect::Replayer, "1073741826")] {
        let names = names_of(&source, dialect);
        assert!(names.contains(&format!("C {id} Dynamic 0 I:\n")), "{names}");
        assert!(!names.contains("0x"), "{names}");
        assert_eq!(read_names(&names).type_number("LDynamic;"), Some(0x4000_0002));
    }
    let replayer = text(&source, Dialect::Replayer, Deaths::None, Holders::default());
    assert!(replayer.contains("N 21 16 1073741826 2 0 1\n"), "{replayer}");
}

/// Types that are in no names file get numbers of their own, which must not be those of another type.
#[test]
fn made_up_numbers_are_not_those_of_the_names_file() {
    let first = u64::from(et_names::ID_LIMIT);
    let names: String = (first..first + 5).map(|number| format!("C {number} [LA{number}; 0 I:\n")).collect();
    let written = "N 10 10 LB; 0 0 1\nN 11 10 LC; 0 0 1\nA 12 20 [LA1073741825; 1 0 1\n";
    let source = Source::from(TextTrace::from_text(
        written,
        Some(read_names(&format!("# Elephant Tracks, names, ids decimal\n{names}"))),
    ));
    let replayer = text(&source, Dialect::Replayer, Deaths::None, Holders::default());
    let numbers: Vec<&str> = replayer.lines().skip(1).filter_map(|line| line.split(' ').nth(3)).take(3).collect();
    assert_eq!(numbers[2], "1073741825", "{replayer}");
    let made_up: Vec<u64> = numbers[..2].iter().map(|number| number.parse().unwrap()).collect();
    assert!(made_up[0] != made_up[1] && made_up.iter().all(|number| *number >= first + 5), "{replayer}");
}

/// An object and a static field have initial targets; the first stores are to their slots.
fn with_initial_references() -> Source {
    let mut builder = TraceBuilder::new();
    let node = class("Node", "", &["static main ()V"]).with_fields(&["next LNode;", "static root LNode;"]);
    builder.names(&table("app", 1, &[node]));
    builder.class(&ClassRecord {
        ticket: Ticket(1),
        class: ObjectHash(10),
        instance_size: 16,
        signature: "LNode;".into(),
        ..ClassRecord::default()
    });
    builder.first_thread(1, "main", Vec::new());
    let objects =
        [20, 21, 22].map(|id| InitialObject { object: ObjectHash(id), class: ObjectHash(10), size: 16, length: -1 });
    builder.initial_objects(&objects);
    let field = |name: &str| InitialField { class: ObjectHash(10), name: name.into(), descriptor: "LNode;".into() };
    let reference = |field, origin, target| InitialReference {
        slot: InitialSlot::Field(field),
        origin: ObjectHash(origin),
        target: ObjectHash(target),
    };
    builder.initial_references(&InitialReferences {
        fields: vec![field("next"), field("root")],
        references: vec![reference(0, 20, 21), reference(1, 10, 20)],
    });
    builder.events(
        1,
        2,
        &[
            Event::Entry { method: MethodId(1) },
            Event::PutStatic { field: FieldRefId(2), target: ObjectHash(22) },
            Event::PutField { field: FieldRefId(1), origin: ObjectHash(20), target: ObjectHash(22), if_changed: false },
            Event::PutStatic { field: FieldRefId(2), target: ObjectHash(20) },
            Event::Exit { method: MethodId(1) },
        ],
    );
    Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap().into()
}

#[test]
fn old_targets_survive_the_replayers_dialect() {
    let source = with_initial_references();
    let et = text(&source, Dialect::Et, Deaths::Trace, Holders::default());
    assert!(et.contains("U 15 14 16 1 1\n"), "{et}");
    for holders in [Holders::WithoutDeaths, Holders::Always] {
        let replayer = text(&source, Dialect::Replayer, Deaths::Trace, holders);
        let back = read(&replayer, &names_of(&source, Dialect::Replayer));
        assert_eq!(text(&back, Dialect::Et, Deaths::Trace, Holders::default()), et, "{replayer}");
    }
}

/// A number that is invalid in one dialect may be valid in another.
#[test]
fn comments_do_not_come_to_mean_something_in_another_dialect() {
    let replayer = "# Elephant Tracks, dialect replayer\n# with holders\n# kind I\nN 32 24 2 0 0 0\n# ref 32 E 32\n# old e\n\
                    # reference 1\n# old hat\n# lost 0\n";
    let back = write_text(&TextTrace::from_text(replayer, None).into(), Dialect::Et);
    assert!(!back.contains("# ref ") && !back.contains("# old e"), "{back}");
    assert!(back.contains("# reference 1\n# old hat\n"), "what nobody could mistake stays: {back}");
    assert_eq!(write_text(&TextTrace::from_text(&back, None).into(), Dialect::Et), back);
    // Out of range in hexadecimal, but not in decimal.
    let et = "# Elephant Tracks, dialect et\n# ref 1 241748364 1\n# lost 0\n";
    let back = write_text(&TextTrace::from_text(et, None).into(), Dialect::Replayer);
    assert!(!back.contains("# ref "), "{back}");
}

#[test]
fn a_wrong_letter_stays_what_it_is() {
    let wrong = "N 1 10 [I 0 3 1\nA 2 10 LA; 0 0 1\n# lost 0\n";
    let replayer = write_text(&TextTrace::from_text(wrong, None).into(), Dialect::Replayer);
    assert!(replayer.contains("# total A 1\n") && replayer.contains("# total N 1\n"), "{replayer}");
    assert_eq!(write_text(&TextTrace::from_text(&replayer, None).into(), Dialect::Replayer), replayer);
}

#[test]
fn text_with_deaths_can_carry_what_holds_objects() {
    let source = with_initial_references();
    for dialect in BOTH {
        let names = names_of(&source, dialect);
        let plain = text(&source, dialect, Deaths::Trace, Holders::default());
        assert!(!plain.contains("# with holders") && !plain.contains("# ref "), "{plain}");
        let both = text(&source, dialect, Deaths::Trace, Holders::Always);
        assert!(both.contains("# with holders\n") && both.contains("# ref "), "{both}");
        // Reading it back loses nothing, and without the deaths it equals what is written without deaths.
        let back = read(&both, &names);
        assert_eq!(text(&back, dialect, Deaths::Trace, Holders::Always), both);
        let without = text(&back, dialect, Deaths::None, Holders::default());
        assert_eq!(without, text(&source, dialect, Deaths::None, Holders::default()));
        // And deaths computed from it equal those of the trace.
        let again = read(&without, &names);
        assert_eq!(text(&again, dialect, Deaths::Trace, Holders::default()), plain);
    }
}

#[test]
fn a_row_of_dialect_oracle_has_the_index_of_its_record() {
    let source = Source::from(trace("A", "f", "m", "Dynamic"));
    let (et, csv) = (write_text(&source, Dialect::Et), write_text(&source, Dialect::Oracle));
    let records: Vec<&str> = et.lines().filter(|line| !line.starts_with('#')).collect();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert!(rows.iter().any(|row| row[1] == "free") && rows.len() < records.len());
    for row in rows {
        let record: Vec<&str> = records[row[0].parse::<usize>().unwrap()].split(' ').collect();
        assert_eq!(record[0] == "D", row[1] == "free");
        assert_eq!(u64::from_str_radix(record[1], 16).unwrap(), row[2].parse::<u64>().unwrap());
    }
}

fn write_text(source: &Source, dialect: Dialect) -> String {
    text(source, dialect, Deaths::Trace, Holders::default())
}

#[test]
fn comments_of_others_do_not_fill_the_memory() {
    let mut many = "# of another tool\n".repeat(200_000);
    many += "N 1 10 LA; 0 0 1\n# lost 0\n";
    let source = Source::from(TextTrace::from_text(&many, None));
    let ending = source.for_each(Reading::default(), |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    let kept: usize = ending.text_comments.iter().map(String::len).sum();
    assert!((1..=4 << 20).contains(&kept), "{kept} bytes");
    assert!(ending.warnings.iter().any(|warning| warning.contains("comments are left out")), "{:?}", ending.warnings);
}

/// What a viewer of TPTP sees.
#[test]
fn dialect_tptp_defines_before_it_uses() {
    let mut builder = TraceBuilder::new();
    let mut item = class("shop/Item", "java/lang/Object", &["<init> ()V", "static <main> ()V"])
        .with_fields(&["next Lshop/Item;", "static root Lshop/Item;"])
        .with_sites(&[(1, "Lshop/Item;", 7), (1, "[J", 8)]);
    item.source_file = "Item.java".into();
    item.interfaces = vec!["java/lang/Cloneable".into()];
    builder.names(&table("app", 1, &[item]));
    builder.class(&ClassRecord {
        ticket: Ticket(1),
        class: ObjectHash(10),
        instance_size: 16,
        signature: "Lshop/Item;".into(),
        ..ClassRecord::default()
    });
    builder.first_thread(1, "main <&\"> -- \n", Vec::new());
    let second = |ticket| et_format::ThreadRecord::Start {
        ticket: Ticket(ticket),
        thread: 2,
        object: ObjectHash::NULL,
        flags: 0,
        name: "second".into(),
        frames: Vec::new(),
    };
    builder.threads(&[second(3), et_format::ThreadRecord::End { ticket: Ticket(5), thread: 2 }]);
    builder.initial_objects(&[InitialObject { object: ObjectHash(30), class: ObjectHash(10), size: 16, length: -1 }]);
    let gc = et_format::GcRecord {
        start: Ticket(4),
        finish: Ticket(4),
        start_nanos: 1_500_000_000,
        finish_nanos: 1_500_250_000,
        heap_used: 1 << 20,
        heap_committed: 8 << 20,
    };
    builder.gc(&gc);
    let wall = |seconds: u64| et_format::Wall { begin: et_format::Nanos(seconds * 1_000_000_000), end: None };
    let new = |object| Event::New { site: SiteId(1), object: ObjectHash(object), class: ObjectHash(10), known: false };
    builder.timed_events(1, 2, wall(1), &[Event::Entry { method: MethodId(2) }, new(20)]);
    builder.timed_events(2, 4, wall(1), &[Event::Entry { method: MethodId(2) }, Event::Exit { method: MethodId(2) }]);
    builder.timed_events(1, 6, wall(2), &[new(21), Event::Exit { method: MethodId(2) }]);
    builder.problem("a --> b", 1);
    let cut = builder.without_end();
    let source = Source::from(Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap());
    insta::assert_snapshot!(text(&source, Dialect::Tptp, Deaths::Trace, Holders::default()));
    // A cut-off trace is recognizable by what is missing.
    let cut = TraceFile::from_bytes(cut, None).unwrap();
    let without = text(&Source::from(Trace::from_file(cut).unwrap()), Dialect::Tptp, Deaths::None, Holders::default());
    assert!(without.ends_with("-->\n</TRACE>\n") && !without.contains("<traceEnd"), "{without}");
    let error = write(&TextTrace::from_text("M 1 0 1\n", None).into(), Dialect::Tptp, Reading::default(), Vec::new());
    assert!(matches!(error, Err(super::TextError::NoTrace)));
}
