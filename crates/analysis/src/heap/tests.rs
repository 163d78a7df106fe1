use et_format::event::{Event, ObjectHash, Ticket};
use et_format::{ClassRecord, InitialObject, Nanos, ThreadRecord, Wall};
use et_names::{FieldRefId, MethodId, SiteId};

use super::*;
use et_reader::model::Node;
use et_reader::record::ObjectId;
use et_reader::source::{Reading, Source};
use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
use et_reader::text::{self, Dialect};
use et_reader::text_writer;
use et_reader::{Trace, TraceFile};

const BASE: u32 = 5_000_000;
const CLASS: u32 = 0x11;
const NODE: u32 = 0x12;
const WEAK: u32 = 0x14;
const HANDLER: u32 = 0x15;

/// A list of three nodes in a static field, the first and the last of which hold the same bytes; a weak reference, in a static field too, to
/// the last; a node that nothing holds, which is used again later, and holds another; and the receiver of a running method. Behind the first
/// call of `mark` the list is cut behind its first node, behind the second all is let go.
pub(crate) fn list() -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let reference = class("java/lang/ref/Reference", "java/lang/Object", &[]).with_fields(&["referent"]);
    let weak = class("java/lang/ref/WeakReference", "java/lang/ref/Reference", &[]);
    let mut jdk =
        vec![class("java/lang/Object", "", &["<init> ()V"]), class("java/lang/Class", "java/lang/Object", &[])];
    jdk.extend([reference, weak]);
    builder.names(&table("jdk", 1, &jdk));
    let node = class("shop/Node", "java/lang/Object", &["<init> ()V", "static main ()V", "static mark ()V", "run ()V"])
        .with_fields(&["next Lshop/Node;", "data [B", "static head Lshop/Node;", "static weak"])
        .with_sites(&[(1, "Lshop/Node;", 21), (1, "[B", 33), (1, "Ljava/lang/ref/WeakReference;", 40)]);
    builder.names(&table("shop.jar", BASE, &[node]));
    for (mirror, above, size, signature) in [
        (0x10, 0, 16, "Ljava/lang/Object;"),
        (CLASS, 0x10, 0, "Ljava/lang/Class;"),
        (NODE, 0x10, 24, "Lshop/Node;"),
        (0x13, 0x10, 48, "Ljava/lang/ref/Reference;"),
        (WEAK, 0x13, 48, "Ljava/lang/ref/WeakReference;"),
        (HANDLER, 0x10, 16, "Lshop/Handler;"),
    ] {
        builder.class(&ClassRecord {
            class: ObjectHash(mirror),
            superclass: ObjectHash(above),
            instance_size: size,
            mirror_size: 120,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }
    builder.first_thread(1, "main", Vec::new());
    let method = |index| MethodId(BASE + index);
    let new = |object: u32| {
        let site = SiteId(BASE);
        let new = Event::New { site, object: ObjectHash(object), class: ObjectHash(NODE), known: false };
        [Event::Entry { method: method(0) }, new, Event::Exit { method: method(0) }]
    };
    let put = |field: u32, origin: u32, target: u32| Event::PutField {
        field: FieldRefId(BASE + field),
        origin: ObjectHash(origin),
        target: ObjectHash(target),
        if_changed: false,
    };
    let put_static =
        |field: u32, target: u32| Event::PutStatic { field: FieldRefId(BASE + field), target: ObjectHash(target) };
    let mark = [Event::Entry { method: method(2) }, Event::Exit { method: method(2) }];
    let mut events = vec![Event::Entry { method: method(1) }];
    [0xa, 0xb, 0xc, 0xd, 0xe].into_iter().for_each(|object| events.extend(new(object)));
    let bytes = Event::NewArray { depth: 0, site: SiteId(BASE + 1), object: ObjectHash(0xf), length: 1000 };
    let made = |object, class| Event::Made {
        object: ObjectHash(object),
        class: ObjectHash(class),
        length: -1,
        fresh: true,
        constant: false,
    };
    let referent =
        Event::PutField { field: FieldRefId(1), origin: ObjectHash(0x20), target: ObjectHash(0xc), if_changed: false };
    events.extend([put_static(2, 0xa), put(0, 0xa, 0xb), put(0, 0xb, 0xc), bytes, put(1, 0xa, 0xf), put(1, 0xc, 0xf)]);
    events.extend([put(0, 0xd, 0xe), made(0x20, WEAK), referent, put_static(3, 0x20), made(0x21, HANDLER)]);
    events.push(Event::EntryOn { method: method(3), receiver: ObjectHash(0x21) });
    let wall = |begin: u64, end: u64| Wall { begin: Nanos(begin * 1_000_000), end: Some(Nanos(end * 1_000_000)) };
    builder.timed_events(1, 1, wall(1, 400), &events);
    let mut events = mark.to_vec();
    events.push(put(0, 0xa, 0));
    events.extend(mark);
    // The node that nothing held is used.
    events.extend([put(0, 0xd, 0), put_static(2, 0), Event::Exit { method: method(3) }]);
    builder.timed_events(1, 2, wall(1000, 1400), &events);
    builder.thread(&ThreadRecord::End { ticket: Ticket(3), thread: 1 });
    builder
}

pub(crate) fn open(bytes: Vec<u8>) -> Source {
    Trace::from_file(TraceFile::from_bytes(bytes, None).unwrap()).unwrap().into()
}

pub(crate) fn at<'a>(source: &'a Source, moment: &str) -> Result<Snapshot<'a>, HeapError> {
    take(source, &Request { moment: moment.parse().unwrap(), ..Request::default() })
}

/// Ids of all objects except mirrors.
fn ids(snapshot: &Snapshot<'_>) -> Vec<u64> {
    let mut ids: Vec<u64> = snapshot
        .nodes()
        .filter(|&(node, _)| !snapshot.class_text(node).contains("lass "))
        .map(|(_, object)| object.id.0)
        .collect();
    ids.sort_unstable();
    ids
}

fn node(snapshot: &Snapshot<'_>, id: u64) -> Node {
    snapshot.find(ObjectId(id)).unwrap()
}

#[test]
fn what_is_there_is_what_is_alive() {
    let source = open(list().finish());
    let all = at(&source, "method:shop.Node.mark#1").unwrap();
    assert_eq!(ids(&all), [0xa, 0xb, 0xc, 0xd, 0xe, 0xf, 0x20, 0x21]);
    let cut = at(&source, "method:shop.Node.mark#2").unwrap();
    assert_eq!(ids(&cut), [0xa, 0xd, 0xe, 0xf, 0x20, 0x21]);
    // `e` was let go where `d` was last used, and the weak reference is held by its static field.
    assert_eq!(ids(&at(&source, "end").unwrap()), [0x20]);
    assert_eq!(ids(&at(&source, "tick:0").unwrap()), Vec::<u64>::new());
    assert_eq!(ids(&at(&source, "tick:7").unwrap()), [0xa, 0xb, 0xc]);
    // At the last tick before the list is cut, nothing has died yet.
    let ticks = all.taken().tick;
    assert_eq!(ids(&at(&source, &format!("tick:{}", ticks + 1)).unwrap()).len(), 8);
    assert_eq!(ids(&at(&source, "bytes:800").unwrap()), [0xa, 0xb, 0xc, 0xd]);
    let half = at(&source, "50%").unwrap();
    assert_eq!(half.taken().tick, 9);
    assert_eq!(ids(&half), [0xa, 0xb, 0xc, 0xd]);
    assert_eq!(ids(&at(&source, "100%").unwrap()), [0x20]);
    assert_eq!(ids(&at(&source, "1.0s").unwrap()).len(), 8);
}

/// At the very start there is what was there when tracing began, and what held it.
#[test]
fn the_start_has_what_was_there() {
    let mut builder = list();
    let there = |object| InitialObject { object: ObjectHash(object), class: ObjectHash(NODE), size: 24, length: -1 };
    builder.initial_objects(&[there(0x30), there(0x31)]);
    let source = open(builder.finish());
    for moment in ["0%", "0s", "tick:0", "bytes:0"] {
        assert_eq!(ids(&at(&source, moment).unwrap()), [0x30, 0x31], "{moment}");
    }
    assert_eq!(ids(&at(&source, "tick:1").unwrap()), [0x30, 0x31], "an entry makes nothing");
    let text = "# Elephant Tracks, dialect et\n# with holders\nI a 10 LA; 0 0 0\nI b 18 LB; 0 0 0\n# ref 0 5 a\n# ref a 6 b\n\
                N c 20 LA; 0 0 1\nU b a 0 6 1\nM 1 c 1\nE 1 c 1\n# deaths none\n# lost 0\n";
    let text = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
    for moment in ["0%", "tick:0", "bytes:0"] {
        let start = at(&text, moment).unwrap();
        assert_eq!(ids(&start), [0xa, 0xb], "{moment}");
        let targets: Vec<_> = start.references(node(&start, 0xa)).map(|held| start.object(held.target).id.0).collect();
        assert_eq!(targets, [0xb], "{moment}");
    }
    // An initial object that nothing holds dies before those behind it are described.
    let text = "# Elephant Tracks, dialect et\n# with holders\nI a 10 LA; 0 0 0\nI b 18 LB; 0 0 0\nD b 0\nI c 18 LB; 0 0 0\n\
                # ref 0 5 a\n# ref a 6 c\nM 1 a 1\nE 1 a 1\n# deaths trace\n# lost 0\n";
    let text = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
    for moment in ["0%", "tick:0", "bytes:0"] {
        let start = at(&text, moment).unwrap();
        assert_eq!(ids(&start), [0xa, 0xc], "{moment}");
        let targets: Vec<_> = start.references(node(&start, 0xa)).map(|held| start.object(held.target).id.0).collect();
        assert_eq!(targets, [0xc], "{moment}");
    }
    // Of a program that did nothing it is the end.
    let nothing = "# Elephant Tracks, dialect et\nI a 10 LA; 0 0 0\n# deaths none\n# lost 0\n";
    let nothing = Source::from_bytes(nothing.as_bytes().to_vec()).unwrap();
    for moment in ["0%", "tick:0", "bytes:0", "end"] {
        assert_eq!(ids(&at(&nothing, moment).unwrap()), [0xa], "{moment}");
    }
}

/// Objects that died at the last record before the moment are dead, and weak references to them are cleared.
#[test]
fn deaths_at_the_moment_have_happened() {
    let source = open(list().finish());
    let cut = at(&source, "method:shop.Node.mark#2").unwrap();
    let weak = node(&cut, 0x20);
    assert!(cut.references(weak).next().is_none());
    let all = at(&source, "method:shop.Node.mark#1").unwrap();
    let weak = node(&all, 0x20);
    let references: Vec<_> =
        all.references(weak).map(|reference| (all.object(reference.target).id.0, reference.is_weak)).collect();
    assert_eq!(references, [(0xc, true)]);
}

#[test]
fn what_is_retained_and_why_is_reported() {
    let source = open(list().finish());
    let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
    let dominance = dominance(&snapshot);
    let retained = |id| dominance.retained[node(&snapshot, id).0 as usize];
    let above = |id| {
        let above = dominance.tree.above(node(&snapshot, id).0);
        (above != snapshot.graph().root()).then(|| snapshot.object(Node(above)).id.0)
    };
    assert_eq!([0xa, 0xb, 0xc, 0xd, 0xe, 0xf].map(retained), [24 * 3 + 1016, 48, 24, 48, 24, 1016]);
    assert_eq!(above(0xf), Some(0xa), "the first and the last node hold it");
    assert_eq!(above(0xa), Some(u64::from(NODE)), "the class holds its static fields");
    assert_eq!([0xd, 0x21].map(above), [None; 2]);
    assert_eq!(dominance.retained[snapshot.graph().root() as usize], snapshot.bytes());
    let lines = classes(&snapshot, &dominance, &Matching::all(), 99).classes;
    let line = |class: &str| lines.iter().find(|line| line.class == class).cloned().unwrap();
    let expected = ClassLine { class: "shop.Node".into(), objects: 5, bytes: 120, retained_bytes: 120 + 1016 };
    assert_eq!(line("shop.Node"), expected);
    assert_eq!(line("byte[]").retained_bytes, 1016);
    insta::assert_snapshot!("classes", render_classes(&classes(&snapshot, &dominance, &Matching::all(), 3)));
    insta::assert_snapshot!(
        "dominators",
        render_dominators(&dominators_of(&snapshot, &dominance, &Matching::all(), 3))
    );
    let of = |id| render_paths(&paths_to(&snapshot, &dominance, node(&snapshot, id), &Matching::all(), 5));
    insta::assert_snapshot!("paths", [0xf, 0xe, 0x21, 0x20].map(of).join("\n"));
}

#[test]
fn paths_of_one_shape_are_merged() {
    let source = open(list().finish());
    let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
    let nodes = [0xa, 0xb, 0xc, 0xd, 0xe].map(|id| node(&snapshot, id));
    let found = paths::to(&snapshot, &nodes, &Matching::all(), 9);
    let shapes: Vec<_> = found
        .iter()
        .map(|path| (path.root.as_str(), path.root_kind, path.steps.len(), path.objects, path.bytes))
        .collect();
    let local = "no recorded holder (a local variable, a handle): used later; last used by thread main";
    let head = "static field shop.Node.head";
    // The second node and the third are both held by a node.
    let expected = [
        (head, "static", 2, 2, 48),
        (head, "static", 1, 1, 24),
        (local, "local", 1, 1, 24),
        (local, "local", 2, 1, 24),
    ];
    assert_eq!(shapes, expected);
    assert_eq!(paths::to(&snapshot, &nodes, &Matching::all(), 1).len(), 1);
    let step = &found[0].steps[1];
    assert_eq!((step.via.as_deref(), step.class.as_str(), step.object.as_str()), (Some(".next"), "shop.Node", "b"));
}

/// A pattern of classes chooses lines, the outermost objects, holders and ways.
#[test]
fn a_pattern_chooses_classes() {
    let source = open(list().finish());
    let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
    let dominance = dominance(&snapshot);
    let all = classes(&snapshot, &dominance, &Matching::all(), 99);
    let of = |pattern: &str| Matching::new(&snapshot, Some(pattern));
    let some = classes(&snapshot, &dominance, &of("shop.*"), 99);
    let expected: Vec<ClassLine> = all.classes.iter().filter(|line| line.class.starts_with("shop.")).cloned().collect();
    assert_eq!((some.class_count, some.classes), (2, expected));
    let tops = |pattern: &str| -> Vec<String> {
        let found = dominators_of(&snapshot, &dominance, &of(pattern), 99);
        assert_eq!(found.object_count, found.objects.len());
        found.objects.into_iter().map(|line| line.object.object).collect()
    };
    // The first node is within its class, which is no node; the second is within the first.
    assert_eq!(tops("shop.Node"), ["a", "d"]);
    assert_eq!(tops("byte[]"), ["f"]);
    assert_eq!(tops("shop.*"), ["a", "d", "21"]);
    assert!(of("nothing").is_none() && tops("nothing").is_empty());
    let bytes = node(&snapshot, 0xf);
    let holders_by = |pattern: &str| holders(&snapshot, &dominance, bytes, &of(pattern), 9).holder_count;
    assert_eq!(["shop.Node", "*", "byte[]"].map(holders_by), [2, 2, 0]);
    let ways = |pattern: &str| paths::to_one(&snapshot, bytes, &of(pattern), 9).len();
    assert!(ways("shop.Node") > 0 && ways("shop.Handler") == 0);
    let of_nodes = |pattern: &str| {
        let found = paths_to_class(&snapshot, &dominance, "shop.N*", &of(pattern), 9).unwrap();
        (found.class.objects, found.paths.len())
    };
    assert_eq!([of_nodes("*"), of_nodes("shop.Handler")], [(5, 4), (5, 0)]);
}

#[test]
fn moments_that_never_were_are_refused() {
    let source = open(list().finish());
    let said = |moment| at(&source, moment).map(|_| ()).unwrap_err().to_string();
    assert_eq!(said("tick:18"), "tick:18 is past the end of the trace, which is at tick 17");
    assert_eq!(said("bytes:99999"), "bytes:99999 is past the end of the trace, which is at 1,920 bytes allocated");
    assert_eq!(said("9s"), "9s is past the end of the trace, which is at 1.500s");
    assert_eq!(said("method:shop.Node.mark#3"), "method:shop.Node.mark#3: shop.Node.mark was entered only 2 times");
    assert!(said("method:shop.Node.buy").starts_with("method:shop.Node.buy#1: method shop.Node.buy was never entered"));
    let watched = |id| {
        let moment = "method:shop.Node.mark#2".parse().unwrap();
        let request = Request { moment, watch: Some(ObjectId(id)), ..Request::default() };
        take(&source, &request).unwrap().taken().watched
    };
    assert_eq!([0xa, 0x77].map(watched), [Watched::Alive, Watched::Unknown]);
    assert!(matches!(watched(0xb), Watched::Dead { .. }));
}

/// A text of everything in the trace has the same objects and references.
#[test]
fn texts_have_the_same_heap() {
    let source = open(list().finish());
    let mut out = Vec::new();
    let reading = Reading::default();
    text_writer::write_with(&source, Dialect::Et, reading, text::Holders::Always, &mut out).unwrap();
    let text = Source::from_bytes(out).unwrap();
    for moment in ["tick:7", "50%", "end"] {
        let (one, other) = (at(&source, moment).unwrap(), at(&text, moment).unwrap());
        let all = |snapshot: &Snapshot<'_>| {
            let mut ids: Vec<_> = snapshot.nodes().map(|(_, object)| (object.id, object.size)).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(all(&one), all(&other), "{moment}");
    }
    assert!(at(&text, "1s").map(|_| ()).unwrap_err().to_string().contains("the trace has no times"));
}

/// The heap at a moment from tables: the same objects and slots as when the trace is read up to there.
#[test]
fn tables_have_the_heap_of_any_moment() {
    use std::collections::BTreeSet;

    use et_reader::population::{Columns, Groups};

    use crate::testing::{REAL, with_references};

    let slots = |snapshot: &Snapshot<'_>| {
        let id = |node| snapshot.object(node).id;
        let mut slots = BTreeSet::new();
        for (node, object) in snapshot.nodes() {
            let of = snapshot.references(node);
            slots.extend(of.map(|of| (Some(object.id), format!("{:?}", of.via), of.is_weak, id(of.target))));
        }
        slots.extend(
            snapshot
                .statics()
                .iter()
                .map(|&(field, mirror, target)| (mirror.map(id), format!("static {field:?}"), false, id(target))),
        );
        slots
    };
    let objects = |snapshot: &Snapshot<'_>| -> Vec<_> {
        let of = |(node, object): (_, &Object)| {
            let Object { id, size, length, site, kind, born, .. } = *object;
            (id, size, length, site, kind, born, snapshot.class_text(node))
        };
        let mut objects: Vec<_> = snapshot.nodes().map(of).collect();
        objects.sort_by_key(|(id, ..)| *id);
        objects
    };
    for (bytes, moments) in [(std::fs::read(REAL).unwrap(), 50), (list().finish(), 8)] {
        let (source, population, references) = with_references(bytes);
        let end = population.end.tick;
        let by_time = et_lives::by_time(None, &population).unwrap();
        let ticks = (1..=moments).map(|share| end * share / moments).map(|tick| (Moment::Tick(tick), tick));
        for (moment, tick) in ticks.chain([(Moment::End, u64::MAX)]) {
            let request = Request { moment: moment.clone(), ..Request::default() };
            let expected = take(&source, &request).unwrap();
            let resident = |objects: &dyn Groups| resident(&source, &population, objects, &*references, tick).unwrap();
            // In the order of deaths, as in that of time.
            let other = resident(&*population.groups);
            let Resident { snapshot, rows, places } = resident(&*by_time);
            assert_eq!(other.rows.object, rows.object);
            assert_eq!(objects(&snapshot), objects(&expected), "{moment}");
            assert_eq!(slots(&snapshot), slots(&expected), "{moment}");
            let allocated = [&snapshot, &expected, &other.snapshot].map(|snapshot| snapshot.taken().allocated_bytes);
            assert_eq!(allocated, [allocated[0]; 3], "{moment}");
            let ids: Vec<_> = snapshot.nodes().map(|(_, object)| object.id).collect();
            assert_eq!(ids, rows.object);
            assert!(rows.number.is_sorted());
            let stored = |&(group, row): &(u32, u32)| {
                by_time.read(group as usize, Columns::OBJECT).unwrap().object[row as usize]
            };
            assert_eq!(ids, places.iter().map(stored).collect::<Vec<_>>());
            // What is held is held, whatever by.
            let reached = dominance(&snapshot).tree.order().len();
            assert_eq!(reached, snapshot.len() + 1, "{moment}");
        }
    }
}

/// The heap at a moment by its references' lives: the same slots as when the trace is read up to there.
#[test]
fn references_that_are_there_at_a_tick_are_those_of_the_heap() {
    use std::collections::BTreeSet;

    use et_reader::population::Columns;
    use et_reader::references::Wanted;

    use crate::testing::{REAL, with_references};

    for (bytes, moments) in [(std::fs::read(REAL).unwrap(), 50), (list().finish(), 8)] {
        let (source, population, references) = with_references(bytes);
        let mut ids = vec![ObjectId::NULL; population.objects as usize];
        for group in 0..population.groups.len() {
            let rows = population.groups.read(group, Columns::ALL).unwrap();
            (0..rows.len).for_each(|row| ids[rows.number[row] as usize] = rows.object[row]);
        }
        let end = population.end.tick;
        for tick in (1..=moments).map(|share| end * share / moments) {
            let request = Request { moment: Moment::Tick(tick), ..Request::default() };
            let snapshot = take(&source, &request).unwrap();
            let mut expected = BTreeSet::new();
            for (node, object) in snapshot.nodes() {
                for reference in snapshot.references(node) {
                    let slot = match reference.via {
                        Via::Field(field) => field.0,
                        Via::Element(index) => index,
                        // They are listed with the mirrors of their classes, and alone.
                        Via::Static(_) => continue,
                    };
                    expected.insert((Some(object.id), slot, snapshot.object(reference.target).id));
                }
            }
            expected.extend(
                snapshot.statics().iter().map(|&(field, _, target)| (None, field.0, snapshot.object(target).id)),
            );
            let mut found = BTreeSet::new();
            let wanted = Wanted { at: Some(tick), ..Wanted::default() };
            let add = &mut |stay: &et_reader::references::Stay| {
                let origin = stay.origin.map(|origin| ids[origin as usize]);
                found.insert((origin, stay.slot.number(), ids[stay.target as usize]));
            };
            references.for_each(&wanted, add).unwrap();
            assert_eq!(found, expected, "tick {tick}");
            assert!(!found.is_empty() || moments < 50);
        }
    }
}
