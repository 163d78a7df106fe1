use std::fmt::Debug;
use std::fs;

use et_format::event::{Event, ObjectHash};
use et_names::{FieldRefId, MethodId, SiteId};
use et_reader::blocks::glimpse::Glimpses;
use et_reader::source::{Reading, Source, TraceSource};
use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
use et_reader::{Trace, TraceFile};

use super::{AxisUnit, LackKind, Report, Weight, report};
use crate::FrameKind;
use crate::summary::summarize;
use crate::testing::report_of;

const BASE: u32 = 5_000_000;
/// Mirrors of classes.
const OBJECT: u32 = 0x10;
const CACHE: u32 = 0x12;
const ENTRY: u32 = 0x13;
const ARRAY: u32 = 0x14;
const OOPS: u32 = 0x15;

/// A program that adds an entry to a cache on each call, allocates an array of four elements of which it fills one, and
/// sometimes throws an exception.
fn program(calls: u32) -> TraceBuilder {
    program_in(calls, 1, false)
}

/// The same with its events in several blocks. At the end it may forget all entries.
fn program_in(calls: u32, blocks: usize, forgets: bool) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    builder.names(&table(
        "jdk",
        1,
        &[class("java/lang/Object", "", &["<init> ()V"]), class("java/lang/Class", "java/lang/Object", &[])],
    ));
    let cache = class("shop/Cache", "java/lang/Object", &["static main ()V", "put ()V", "fail ()V"])
        .with_fields(&["last Lshop/Entry;", "array [Lshop/Entry;", "static all Lshop/Cache;"])
        .with_sites(&[(0, "Lshop/Cache;", 3), (1, "Lshop/Entry;", 7), (1, "[Lshop/Entry;", 8), (2, "Lshop/Oops;", 9)]);
    let entry =
        class("shop/Entry", "java/lang/Object", &["<init> ()V", "price ()I"]).with_fields(&["next Lshop/Entry;"]);
    let oops = class("shop/Oops", "java/lang/Object", &[]);
    builder.names(&table("shop.jar", BASE, &[cache, entry, oops]));
    builder.loaded_classes(&[
        (OBJECT, 16, "Ljava/lang/Object;"),
        (0x11, 0, "Ljava/lang/Class;"),
        (CACHE, 24, "Lshop/Cache;"),
        (ENTRY, 32, "Lshop/Entry;"),
        (ARRAY, 0, "[Lshop/Entry;"),
        (OOPS, 40, "Lshop/Oops;"),
    ]);
    builder.first_thread(1, "main", Vec::new());
    let [main, put, fail, init] = [0, 1, 2, 3].map(|method| MethodId(BASE + method));
    let [last, array_of, all, next] = [0, 1, 2, 3].map(|field| FieldRefId(BASE + field));
    let cache = ObjectHash(0xc0);
    let mut events = vec![
        Event::Entry { method: main },
        Event::New { site: SiteId(BASE), object: cache, class: ObjectHash(CACHE), known: false },
        Event::PutStatic { field: all, target: cache },
    ];
    for call in 0..calls {
        let [entry, array, oops] = [0x1000, 0x2000, 0x3000].map(|first| ObjectHash(first + call));
        events.extend([
            Event::EntryOn { method: put, receiver: cache },
            Event::Entry { method: init },
            Event::New { site: SiteId(BASE + 1), object: entry, class: ObjectHash(ENTRY), known: false },
            Event::Exit { method: init },
            Event::NewArray { depth: 0, site: SiteId(BASE + 2), object: array, length: 4 },
            Event::PutField { field: array_of, origin: cache, target: array, if_changed: false },
            Event::PutElement { index: 1, array, target: entry },
        ]);
        if call > 0 {
            let before = ObjectHash(0x1000 + call - 1);
            events.push(Event::PutField { field: next, origin: entry, target: before, if_changed: false });
        }
        events.push(Event::PutField { field: last, origin: cache, target: entry, if_changed: false });
        if call % 2 == 0 {
            events.extend([
                Event::EntryOn { method: fail, receiver: cache },
                Event::New { site: SiteId(BASE + 3), object: oops, class: ObjectHash(OOPS), known: false },
                Event::Throw { method: fail, exception: oops },
                Event::ExitThrow { method: fail, receiver: cache, exception: oops },
                Event::Handle { method: put, exception: oops },
            ]);
        }
        events.push(Event::Exit { method: put });
    }
    if forgets {
        let none = ObjectHash(0);
        events.push(Event::PutField { field: last, origin: cache, target: none, if_changed: false });
        events.push(Event::PutField { field: array_of, origin: cache, target: none, if_changed: false });
    }
    let per_block = events.len().div_ceil(blocks);
    (3..).zip(events.chunks(per_block)).for_each(|(ticket, events)| _ = builder.events(1, ticket, events));
    builder
}

fn open(bytes: Vec<u8>) -> Source {
    Trace::from_file(TraceFile::from_bytes(bytes, None).unwrap()).unwrap().into()
}

fn of(source: &Source) -> Report {
    report_of(source, Reading::default(), 100)
}

/// The heap at moments that the reading by blocks has passed is the heap that the records tell.
#[test]
fn glimpses_tell_what_records_do() {
    for forgets in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ettrace");
        fs::write(&path, program_in(2000, 100, forgets).finish()).unwrap();
        // From the table that was just made, and then from the one that is kept.
        for is_first in [true, false] {
            let mut trace = TraceSource::open(&path).unwrap();
            let lives = et_lives::attach(&mut trace, None).unwrap();
            let source = Source::from(trace);
            let reading = Reading::default();
            let (population, observed) = et_lives::observe_rows(&source, Some(&lives), reading).unwrap();
            let glimpses = lives.glimpses().unwrap();
            assert_eq!(glimpses.all.len(), if forgets { 5 } else { 4 });
            let of = |glimpses: Option<&Glimpses>| {
                let summary = summarize(&source, &population, &observed, 100).unwrap();
                report(&source, summary, &population, &observed, glimpses, true, reading).unwrap()
            };
            let (by_glimpses, by_records) = (of(Some(&glimpses)), of(None));
            let text = |value: &dyn Debug| format!("{value:?}");
            assert_eq!(text(&by_glimpses.retained), text(&by_records.retained), "{is_first}");
            assert_eq!(text(&by_glimpses.lifetimes), text(&by_records.lifetimes));
            let held = |report: &Report| {
                let holdings = report.suspects.holdings.iter();
                holdings.map(|holding| (holding.ways.clone(), holding.retained)).collect::<Vec<_>>()
            };
            assert_eq!(held(&by_glimpses), held(&by_records));
            assert_eq!(held(&by_glimpses).is_empty(), forgets);
            let [one, other] = [&by_glimpses, &by_records].map(|report| report.retained_at_peak.as_ref());
            // What is dropped at once is a peak of its own in the records.
            assert_eq!((one.is_some(), other.is_some()), (forgets, true));
            if let (Some(one), Some(other)) = (one, other) {
                assert!(one.bytes * 10 >= other.bytes * 9 && one.bytes <= other.bytes, "{} {}", one.bytes, other.bytes);
                assert_eq!(one.objects[0].holder, other.objects[0].holder);
            }
        }
    }
}

#[test]
fn a_list_that_only_grows_is_the_first_finding() {
    let report = of(&open(program(400).finish()));
    assert!(report.has_deaths && report.has_contexts && !report.has_witnesses);
    let growth = &report.suspects.growing[0];
    assert_eq!((growth.site.as_str(), growth.class.as_str()), ("shop.Cache.put:7", "shop.Entry"));
    assert!(growth.still_grows && growth.end == growth.made && growth.end.objects == 400);
    assert!((180..=220).contains(&growth.middle.objects), "{}", growth.middle.objects);
    let finding = &report.findings[0];
    assert_eq!((finding.weight, finding.title.as_str()), (Weight::High, "Memory that only grows: shop.Entry"));
    let says = finding.says.plain();
    for words in
        ["static shop.Cache.all → last holds 12.5 KiB", "400 shop.Entry, made in shop.Cache.put:7", "it still grows"]
    {
        assert!(says.contains(words), "{says}");
    }
    // The array of each call dies with the next.
    assert!(report.suspects.growing.iter().all(|growth| growth.class != "shop.Entry[]"));
}

const SHOP: u32 = 0x20;
const ORDER: u32 = 0x21;
const VISIT: u32 = 0x22;

/// What a call retains.
enum Keeps {
    Nothing,
    /// In the list in the static field `orders`.
    Order,
    /// In the list in the static field `visits`.
    Visit,
    /// Nothing, and it lets go of that list.
    DropVisits,
    /// In the arrays in the static fields `all` and `byDay`.
    InBoth,
    /// In the static field `orders`, and nothing that was there before.
    Only,
    /// In two arrays that an array in the static field `all` holds; it is a method of the second array that is running, and
    /// something that only a local variable holds refers to the first.
    InTwoOfOne,
}

/// A program that keeps something with each call.
fn keeping(calls: u32, keeps: impl Fn(u32) -> Keeps) -> Report {
    let mut builder = TraceBuilder::new();
    let jdk = [class("java/lang/Object", "", &["<init> ()V"]), class("java/lang/Class", "java/lang/Object", &[])];
    builder.names(&table("jdk", 1, &jdk));
    let shop = class("shop/Shop", "java/lang/Object", &["static main ()V", "static call ()V"])
        .with_fields(&[
            "static orders Lshop/Order;",
            "static visits Lshop/Visit;",
            "static all [Lshop/Order;",
            "static byDay [Lshop/Order;",
        ])
        .with_sites(&[(1, "Lshop/Order;", 7), (1, "Lshop/Visit;", 8), (0, "[Lshop/Order;", 2)]);
    let order = class("shop/Order", "java/lang/Object", &[]).with_fields(&["next Lshop/Order;"]);
    let visit = class("shop/Visit", "java/lang/Object", &[]).with_fields(&["next Lshop/Visit;"]);
    builder.names(&table("shop.jar", BASE, &[shop, order, visit]));
    builder.loaded_classes(&[
        (OBJECT, 16, "Ljava/lang/Object;"),
        (0x11, 0, "Ljava/lang/Class;"),
        (SHOP, 24, "Lshop/Shop;"),
        (ORDER, 320, "Lshop/Order;"),
        (VISIT, 240, "Lshop/Visit;"),
        (ARRAY, 0, "[Lshop/Order;"),
    ]);
    builder.first_thread(1, "main", Vec::new());
    let (main, call) = (MethodId(BASE), MethodId(BASE + 1));
    // Fields as instructions name them are numbered as they are declared.
    let [orders, visits, all, by_day, next_order, next_visit] =
        [0, 1, 2, 3, 4, 5].map(|field| FieldRefId(BASE + field));
    let arrays = [0xa0, 0xa1].map(ObjectHash);
    let mut events = vec![Event::Entry { method: main }];
    for (field, array) in [all, by_day].into_iter().zip(arrays) {
        events.push(Event::NewArray { depth: 0, site: SiteId(BASE + 2), object: array, length: calls });
        events.push(Event::PutStatic { field, target: array });
    }
    let outer = ObjectHash(0xa2);
    events.push(Event::NewArray { depth: 0, site: SiteId(BASE + 2), object: outer, length: 2 });
    let mut heads = [ObjectHash(0); 2];
    for number in 0..calls {
        let object = ObjectHash(0x1000 + number);
        let new = |site: u32, class: u32| Event::New {
            site: SiteId(BASE + site),
            object,
            class: ObjectHash(class),
            known: false,
        };
        let link = |next: FieldRefId, target: ObjectHash| Event::PutField {
            field: next,
            origin: object,
            target,
            if_changed: false,
        };
        let keeps = keeps(number);
        events.push(match keeps {
            Keeps::InTwoOfOne => Event::EntryOn { method: call, receiver: arrays[1] },
            _ => Event::Entry { method: call },
        });
        match keeps {
            Keeps::Nothing => {}
            Keeps::Order => {
                events.extend([
                    new(0, ORDER),
                    link(next_order, heads[0]),
                    Event::PutStatic { field: orders, target: object },
                ]);
                heads[0] = object;
            }
            Keeps::Visit => {
                events.extend([
                    new(1, VISIT),
                    link(next_visit, heads[1]),
                    Event::PutStatic { field: visits, target: object },
                ]);
                heads[1] = object;
            }
            Keeps::DropVisits => events.push(Event::PutStatic { field: visits, target: ObjectHash(0) }),
            Keeps::InBoth => {
                events.push(new(0, ORDER));
                events.extend(arrays.map(|array| Event::PutElement { index: number, array, target: object }));
            }
            Keeps::InTwoOfOne => {
                if number == 0 {
                    events.push(Event::PutStatic { field: all, target: outer });
                    events.push(Event::PutStatic { field: by_day, target: ObjectHash(0) });
                    let put = |(index, target)| Event::PutElement { index, array: outer, target };
                    events.extend((0..).zip(arrays).map(put));
                }
                events.push(new(0, ORDER));
                events.extend(arrays.map(|array| Event::PutElement { index: number, array, target: object }));
                let local = |number| ObjectHash(0x9000 + number);
                events.extend(number.checked_sub(1).map(|last| Event::Used { object: local(last) }));
                events.push(Event::NewArray { depth: 0, site: SiteId(BASE + 2), object: local(number), length: 1 });
                events.push(Event::PutElement { index: 0, array: local(number), target: arrays[0] });
            }
            Keeps::Only => events.extend([new(0, ORDER), Event::PutStatic { field: orders, target: object }]),
        }
        events.push(Event::Exit { method: call });
    }
    builder.events(1, 3, &events);
    of(&open(builder.finish()))
}

fn leaks(report: &Report) -> Vec<&super::Finding> {
    report.findings.iter().filter(|finding| finding.title.starts_with("Memory that only grows")).collect()
}

#[test]
fn independent_leaks_are_reported_separately() {
    let report = keeping(600, |call| if call % 2 == 0 { Keeps::Order } else { Keeps::Visit });
    let found = leaks(&report);
    let titles: Vec<&str> = found.iter().map(|finding| finding.title.as_str()).collect();
    assert_eq!(titles, ["Memory that only grows: shop.Order", "Memory that only grows: shop.Visit"]);
    let says: Vec<String> = found.iter().map(|finding| finding.says.plain()).collect();
    assert!(
        says[0].starts_with("static shop.Shop.orders holds 93.8 KiB, ")
            && says[0].contains("300 shop.Order, made in shop.Shop.call:7"),
        "{says:?}"
    );
    assert!(
        says[1].starts_with("static shop.Shop.visits holds 70.3 KiB, ")
            && says[1].contains("300 shop.Visit, made in shop.Shop.call:8"),
        "{says:?}"
    );
    // What retains the heap is reported as well.
    let retained = report.retained.as_ref().unwrap();
    let orders = retained.objects.iter().find(|line| line.holder == "static shop.Shop.orders").unwrap();
    assert_eq!((orders.class.as_str(), orders.retained, orders.bytes), ("shop.Order", 300 * 320, 320));
    let class = retained.classes.iter().find(|line| line.class == "shop.Visit").unwrap();
    assert_eq!((class.retained_bytes, class.objects), (300 * 240, 300));
}

/// A static field that is let go again held the most when most was alive.
#[test]
fn what_held_the_heap_is_known_at_its_peak() {
    let report = keeping(600, |call| match call {
        0..400 => Keeps::Visit,
        400 => Keeps::DropVisits,
        _ => Keeps::Order,
    });
    let (peak, end) = (report.retained_at_peak.as_ref().unwrap(), report.retained.as_ref().unwrap());
    let summary = report.summary.peak.as_ref().unwrap();
    assert_eq!((peak.bytes, peak.count), (summary.live.bytes, summary.live.objects));
    assert_eq!((end.bytes, end.count), (summary.at_the_end.bytes, summary.at_the_end.objects));
    let line = |root: &str| report.roots.iter().find(|line| line.root == root).unwrap();
    // The last visit is not in the list yet.
    let visits = line("static shop.Shop.visits");
    assert_eq!((visits.retained, visits.at_peak, visits.objects), (0, 399 * 240, 0));
    let orders = line("static shop.Shop.orders");
    assert_eq!((orders.retained, orders.at_peak, orders.objects), (199 * 320, 0, 1));
    assert_eq!(report.roots.iter().map(|line| line.retained).sum::<u64>(), end.bytes);
    assert_eq!(report.roots.iter().map(|line| line.at_peak).sum::<u64>(), peak.bytes);
    for heap in [peak, end] {
        let outermost = heap.objects.iter().filter(|line| line.level == 0);
        assert_eq!(outermost.clone().map(|line| line.retained).sum::<u64>(), heap.bytes, "{heap:#?}");
        assert_eq!(outermost.filter(|line| line.object.is_none()).count(), 1, "one row for all others");
    }
    let first = &peak.objects[0];
    assert_eq!((first.holder.as_str(), first.class.as_str()), ("static shop.Shop.visits", "shop.Visit"));
    assert_eq!((first.retained, first.site.as_deref()), (399 * 240, Some("shop.Shop.call:8")));
    assert_eq!(first.dominates, 1, "a list is held node by node");
    // It grows to the end, and was not there at the peak.
    let holding = &report.suspects.holdings[0];
    assert_eq!((holding.ways[0].as_str(), holding.at_peak), ("static shop.Shop.orders", 0));
    assert!(leaks(&report)[0].says.plain().contains(" of the heap (0 B at the peak). "), "{:?}", leaks(&report));
}

/// Where the heap is largest at the end, there is one tree.
#[test]
fn the_peak_may_be_the_end() {
    let report = keeping(600, |_| Keeps::Order);
    assert!(report.retained_at_peak.is_none());
    let holding = &report.suspects.holdings[0];
    assert_eq!(Some(&holding.at_peak), holding.course.last());
    let orders = report.roots.iter().find(|line| line.root == "static shop.Shop.orders").unwrap();
    assert_eq!((orders.retained, orders.at_peak), (600 * 320, 600 * 320));
    assert!(!leaks(&report)[0].says.plain().contains("peak"));
    // Orders of the first half are old and were not used again.
    let idle = report.suspects.idle.as_ref().unwrap();
    assert_eq!((idle.class.as_str(), idle.root.root.as_str()), ("shop.Order", "static shop.Shop.orders"));
    let stale = report.findings.iter().find(|finding| finding.title == "Kept but not used").unwrap();
    assert!(
        stale.says.plain().contains(" Most of these are held by static shop.Shop.orders → next. All that "),
        "{stale:?}"
    );
    let report = keeping(600, |_| Keeps::InBoth);
    let shared = report.retained.as_ref().unwrap();
    let order = report.roots.iter().find(|line| line.root == "static shop.Shop.all, and others").unwrap();
    assert_eq!((order.objects, order.retained), (600, 600 * 320), "{shared:#?}");
    // Each of them is too small for a row.
    let together: Vec<_> = shared.objects.iter().filter(|line| line.class == "shop.Order").collect();
    assert_eq!(together.len(), 1, "{shared:#?}");
    assert_eq!((&together[0].object, together[0].objects, together[0].retained), (&None, 600, 600 * 320));
}

#[test]
fn what_no_longer_grows_at_the_end_is_no_leak() {
    for (what, keeps) in [
        ("a job that loads its rows and works on them", (|call| call < 400) as fn(u32) -> bool),
        ("a job that loads for most of the run", |call| call < 520),
        ("a step that happened once", |call| (420..460).contains(&call)),
        ("a step at the end", |call| call >= 560),
        ("what was there early", |call| call < 20),
    ] {
        let report = keeping(600, |call| if keeps(call) { Keeps::Order } else { Keeps::Nothing });
        assert!(leaks(&report).is_empty(), "{what}: {:?}", leaks(&report));
        assert!(report.suspects.growing.iter().all(|growth| !growth.still_grows), "{what}");
    }
    let report = keeping(600, |_| Keeps::Only);
    assert!(leaks(&report).is_empty() && report.suspects.growing.is_empty(), "what is thrown out is not kept");
}

#[test]
fn what_several_hold_is_reported_with_all_of_them() {
    let report = keeping(600, |_| Keeps::InBoth);
    let found = leaks(&report);
    assert_eq!(found.len(), 1, "{found:?}");
    let says = found[0].says.plain();
    assert!(says.starts_with("600 shop.Order, made in shop.Shop.call:7, are held by static shop.Shop."), "{says}");
    assert!(says.contains("static shop.Shop.all") && says.contains(" and by static shop.Shop.byDay"), "{says}");
}

/// As a program is at almost any moment: in the middle of a method of what it adds to.
#[test]
fn what_a_running_method_is_called_on_belongs_to_its_holder() {
    let report = keeping(600, |_| Keeps::InTwoOfOne);
    let found = leaks(&report);
    assert_eq!(found.len(), 1, "{found:?}");
    let says = found[0].says.plain();
    assert!(says.starts_with("static shop.Shop.all holds ") && says.contains("600 shop.Order"), "{says}");
}

#[test]
fn arrays_and_exceptions_are_counted_as_the_program_made_them() {
    let report = of(&open(program(400).finish()));
    let array = report.suspects.arrays.iter().find(|line| line.owner == "shop.Cache.array").unwrap();
    assert_eq!((array.fill.arrays.objects, array.fill.slots, array.fill.filled), (400, 1600, 400));
    assert_eq!((array.fill.empty, array.fill.sparse), (0, 400));
    let exception = &report.suspects.exceptions[0];
    assert_eq!(
        (exception.class.as_str(), exception.thrown_in.as_str(), exception.caught_in.as_deref(), exception.count),
        ("shop.Oops", "shop.Cache.fail", Some("shop.Cache.put"), 200)
    );
    assert!(exception.is_control_flow && exception.frames == 1.0, "{exception:?}");
    assert_eq!(report.suspects.thrown, 200);
}

/// Of each class one object keeps an array in its only field, and another does not.
#[test]
fn a_collection_has_a_field_for_arrays() {
    let classes = [
        ("shop/Basket", "lines [Lshop/Line;"),
        ("java/util/ArrayList", "elementData [Ljava/lang/Object;"),
        // It may hold an array as anything else.
        ("java/util/HashMap$Node", "value Ljava/lang/Object;"),
        ("java/lang/Class", "enumConstants [Ljava/lang/Object;"),
        ("java/lang/reflect/Method", "parameterTypes [Ljava/lang/Class;"),
    ];
    let mut builder = TraceBuilder::new();
    let mut names = vec![class("java/lang/Object", "", &["<init> ()V"])];
    names.extend(classes.map(|(name, field)| class(name, "java/lang/Object", &[]).with_fields(&[field])));
    builder.names(&table("jdk", 1, &names));
    let main = class("shop/Main", "java/lang/Object", &["static main ()V"]);
    let sites: Vec<(u32, String, u32)> =
        classes.iter().map(|(name, _)| (0, format!("L{name};"), 1)).chain([(0, "[Lshop/Line;".into(), 2)]).collect();
    let sites: Vec<(u32, &str, u32)> = sites.iter().map(|(method, ty, line)| (*method, ty.as_str(), *line)).collect();
    builder.names(&table("shop.jar", BASE, &[main.with_sites(&sites)]));
    let mirrors = (0x20..).zip(classes.map(|(name, _)| format!("L{name};"))).collect::<Vec<(u32, String)>>();
    let program = mirrors.iter().map(|(mirror, signature)| (*mirror, 24, signature.as_str()));
    let all = [(OBJECT, 24, "Ljava/lang/Object;"), (ARRAY, 0, "[Lshop/Line;")].into_iter().chain(program);
    builder.loaded_classes(&all.collect::<Vec<_>>());
    builder.first_thread(1, "main", Vec::new());
    let main = MethodId(BASE);
    let mut events = vec![Event::Entry { method: main }];
    for at in 0..5 {
        let [with, without, array] = [0x1000, 0x2000, 0x3000].map(|first| ObjectHash(first + at));
        for object in [with, without] {
            let class = ObjectHash(0x20 + at);
            events.push(Event::New { site: SiteId(BASE + at), object, class, known: false });
        }
        events.push(Event::NewArray { depth: 0, site: SiteId(BASE + 5), object: array, length: 4 });
        events.push(Event::PutField { field: FieldRefId(1 + at), origin: with, target: array, if_changed: false });
    }
    events.push(Event::Exit { method: main });
    builder.events(1, 3, &events);
    let report = of(&open(builder.finish()));
    let collections: Vec<_> = report.suspects.collections.iter().map(|line| line.class.as_str()).collect();
    assert_eq!(collections, ["java.util.ArrayList", "shop.Basket"]);
}

#[test]
fn lifetimes_add_up() {
    let report = of(&open(program(400).finish()));
    let all = &report.lifetimes.all;
    assert_eq!(all.made, report.summary.allocated);
    let of_classes = |of: fn(&super::LifeLine) -> u64| report.lifetimes.classes.iter().map(of).sum::<u64>();
    assert_eq!(of_classes(|line| line.made.objects), all.made.objects);
    assert_eq!(of_classes(|line| line.alive.bytes), all.alive.bytes);
    let died: u64 = all.died.objects.iter().sum();
    assert_eq!(died + all.alive.objects, all.made.objects, "nothing was there before");
    let oops = report.lifetimes.classes.iter().find(|line| line.name == "shop.Oops").unwrap();
    assert_eq!((oops.alive.objects, oops.young[0].objects), (0, 200));
    let entry = report.lifetimes.classes.iter().find(|line| line.name == "shop.Entry").unwrap();
    assert_eq!((entry.unused.objects, entry.usable.objects), (400, 400), "no method was called on an entry");
    assert_eq!((entry.in_thread.objects, entry.on_stack.objects), (400, 0));
}

#[test]
fn what_happened_when_adds_up_on_every_axis() {
    let report = of(&open(program(400).finish()));
    assert!(report.axes.iter().all(|axis| axis.unit != AxisUnit::Nanos), "this trace has no times");
    assert_eq!(report.axes.len(), 2);
    let alive = report.alive.as_ref().unwrap();
    for axis in &report.axes {
        let (born, died) = (axis.born_bytes.iter().sum::<u64>(), axis.died_bytes.iter().sum::<u64>());
        assert_eq!(born, report.summary.allocated.bytes);
        assert_eq!(born - died, *alive.bytes.last().unwrap());
        assert!(axis.ticks.is_sorted() && axis.bytes.is_sorted());
    }
    let of_classes: u64 = alive.classes.iter().map(|series| series.bytes[20]).sum();
    assert_eq!(of_classes, alive.bytes[20]);
    let of_contexts: u64 = alive.contexts.iter().map(|series| series.objects[20]).sum();
    assert_eq!(of_contexts, alive.objects[20]);
}

#[test]
fn flames_stand_on_their_callers() {
    let report = of(&open(program(400).finish()));
    for flame in [&report.flames.by_context, &report.flames.by_site] {
        assert_eq!(flame.frames[0].bytes[0], report.summary.allocated.bytes);
        let mut above = vec![0; flame.frames.len()];
        for (index, frame) in flame.frames.iter().enumerate().skip(1) {
            assert!((frame.parent as usize) < index);
            above[frame.parent as usize] += frame.bytes[0];
        }
        for (frame, above) in flame.frames.iter().zip(above) {
            assert!(above <= frame.bytes[0]);
        }
    }
    let flame = &report.flames.by_context;
    let name = |index: u32| &flame.names[flame.frames[index as usize].name as usize];
    let entry = (0..flame.frames.len() as u32).find(|index| name(*index).name == "shop.Entry").unwrap();
    let mut chain = vec![name(entry).name.clone()];
    let mut at = entry;
    while at != 0 {
        at = flame.frames[at as usize].parent;
        chain.push(name(at).name.clone());
    }
    assert_eq!(chain, ["shop.Entry", "shop.Cache.put", "shop.Cache.main", "all"]);
    assert_eq!(name(entry).kind, FrameKind::Class);
}

#[test]
fn what_is_missing_is_said() {
    let cut = of(&open(program(40).without_end()));
    assert_eq!(cut.lacks[0].kind, LackKind::End);
    let source = open(program(40).finish());
    let reading = Reading { deaths: et_reader::source::Deaths::None, ..Reading::default() };
    let without = report_of(&source, reading, 100);
    assert!(!without.has_deaths && without.alive.is_none() && without.suspects.growing.is_empty());
    assert_eq!(without.lack(LackKind::Deaths).unwrap().why, "the trace was read with --deaths none");
    assert!(without.tops.iter().all(|top| !top.says.iter().any(|says| says.plain().contains("alive at the end"))));
}

#[test]
fn an_empty_trace_has_a_report() {
    let report = of(&open(TraceBuilder::new().finish()));
    assert_eq!(report.summary.allocated.objects, 0);
    assert_eq!(report.flames.by_context.frames.len(), 1);
}

#[test]
fn the_words_of_a_small_report() {
    let report = of(&open(program(40).finish()));
    let mut said = String::new();
    for lack in &report.lacks {
        said += &format!("lacks: {}\n", lack.kind.what());
    }
    for finding in &report.findings {
        said += &format!("{:?} {}: {}\n", finding.weight, finding.title, finding.says.plain());
        let glance = &finding.glance;
        said += &format!("  {} | {} | {:.2} {:?}\n", glance.name, glance.figure, glance.part, glance.course);
    }
    for top in &report.tops {
        said += &format!("{} ({})\n", top.title, top.means);
        assert_eq!(top.glances.len(), top.says.len(), "{}: a bar for each sentence", top.title);
        assert!(top.glances.iter().all(|glance| (0.0..=1.0).contains(&glance.part)), "{:?}", top.glances);
        for (glance, says) in top.glances.iter().zip(&top.says) {
            said += &format!("  {} | {} | {:.2}\n    {}\n", glance.name, glance.figure, glance.part, says.plain());
        }
    }
    insta::assert_snapshot!(said);
}
