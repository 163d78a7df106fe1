//! Compares rows with the records.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use et_format::event::{Event, ObjectHash, Ticket};
use et_format::{ClassRecord, GcRecord, HeapWalk, InitialFrame, InitialObject, Nanos, STACK, StackRecord, Wall};
use et_names::{EventSet, FieldRefId, MethodId, SiteId};
use proptest::prelude::*;

use super::*;
use crate::axis::{self, Span};
use crate::file::TraceFile;
use crate::model::{ContextId, Contexts, Stacks};
use crate::observed::Observer;
use crate::population::{Columns, Key, Moment, Rows};
use crate::reading::{Deaths, Reading};
use crate::record::{AllocKind, Record, StackId};
use crate::source::Source;
use crate::stack_contexts::StackContexts;
use crate::survival::{Fates, Marker};
use crate::testing::{ClassNamesExt, TraceBuilder, class, table};

const BASE: u32 = 5_000_000;

/// Something that a thread does.
#[derive(Clone, Copy, Debug)]
struct Step {
    thread: u32,
    what: u8,
    /// Of so few that most are given several times.
    object: u32,
    choice: u32,
    /// Whether it has a ticket of its own, or even begins a piece.
    has_ticket: bool,
    begins: bool,
}

#[derive(Clone, Debug)]
struct Story {
    steps: Vec<Step>,
    /// Mirrors and the tickets of their classes.
    classes: Vec<(u32, u64)>,
    initial: Vec<u32>,
    collections: Vec<u64>,
    /// The ticket of each walk and what it found.
    walks: Vec<(u64, Vec<u32>)>,
    has_times: bool,
    is_packed: bool,
    /// Whether a thread had frames when tracing began.
    has_frames: bool,
}

impl Story {
    /// Of these steps, and nothing else.
    fn of(steps: Vec<Step>) -> Self {
        Self {
            steps,
            classes: Vec::new(),
            initial: Vec::new(),
            collections: Vec::new(),
            walks: Vec::new(),
            has_times: false,
            is_packed: false,
            has_frames: false,
        }
    }
}

fn stories() -> impl Strategy<Value = Story> {
    let step = (1..4u32, any::<u8>(), 1..40u32, any::<u32>(), prop::bool::weighted(0.3), prop::bool::weighted(0.1));
    let step = step.prop_map(|(thread, what, object, choice, has_ticket, begins)| Step {
        thread,
        what,
        object,
        choice,
        has_ticket,
        begins,
    });
    let steps = prop::collection::vec(step, 0..80);
    let classes = prop::collection::vec((30..50u32, 0..60u64), 0..8);
    let initial = prop::collection::vec(1..60u32, 0..4);
    let collections = prop::collection::vec(1..80u64, 0..4);
    let walks = prop::collection::vec((1..80u64, prop::collection::vec(1..40u32, 0..12)), 0..4);
    (steps, classes, initial, collections, walks, any::<[bool; 3]>()).prop_map(
        |(steps, classes, initial, collections, walks, [has_times, is_packed, has_frames])| Story {
            steps,
            classes,
            initial,
            collections,
            walks,
            has_times,
            is_packed,
            has_frames,
        },
    )
}

fn events(Step { what, object, choice, .. }: Step) -> Vec<Event<'static>> {
    let object = ObjectHash(object);
    let class = ObjectHash(30 + choice % 20);
    let site = match choice >> 8 & 15 {
        0 => 0,
        1 => BASE + 900,
        at @ 2..=8 => BASE + at % 4,
        at => STACK | (at - 8),
    };
    let site = SiteId(site);
    let length = (choice >> 16 & 7) as i32 - 1;
    let one = match what % 13 {
        0..=2 => Event::New { site, object, class, known: false },
        3..=5 => Event::NewArray { depth: (what >> 4) % 2, site, object, length: length.max(0) as u32 },
        6 => Event::New { site, object, class, known: true },
        7 => Event::Found { object: ObjectHash(object.0 % 39), class, length },
        8 => Event::Made { object: ObjectHash(object.0 % 39), class, length, fresh: what > 100, constant: what > 200 },
        9 => Event::MadeAt { site, object: ObjectHash(object.0 % 39), class, length, fresh: what > 128 },
        12 => match choice % 3 {
            0 => Event::PutStatic { field: FieldRefId(BASE + choice % 2), target: object },
            _ => Event::PutField {
                field: FieldRefId(BASE + choice % 2),
                origin: object,
                target: object,
                if_changed: false,
            },
        },
        10 => Event::PutElement { index: 1, array: object, target: ObjectHash(choice % 3 * object.0) },
        _ => {
            // What multianewarray has made.
            let array = |depth, object| Event::NewArray { depth, site, object, length: 1 };
            let [outer, inner] = [object, ObjectHash(object.0 + 20)];
            let put = Event::PutElement { index: 0, array: outer, target: inner };
            return vec![array(0, outer), array(1, inner), put];
        }
    };
    vec![one]
}

fn told(story: &Story) -> Trace {
    let mut builder = TraceBuilder::new();
    if story.is_packed {
        builder.pack_events();
    }
    let methods = ["static main ()V", "m ()V"];
    let of_app = class("A", "java/lang/Object", &methods).with_fields(&["f"]).with_sites(&[
        (0, "LA;", 3),
        (1, "[I", 5),
        (1, "[[J", 6),
        (0, "LB;", 7),
    ]);
    builder.names(&table("app.jar", BASE, &[of_app]));
    for (at, &(mirror, ticket)) in story.classes.iter().enumerate() {
        builder.class(&ClassRecord {
            class: ObjectHash(mirror),
            ticket: Ticket(ticket),
            instance_size: if at == 3 { 0 } else { 16 + 8 * at as u32 },
            mirror_size: 96,
            signature: ["LA;", "LB;", "[I", "LC;"][at % 4].into(),
            ..ClassRecord::default()
        });
    }
    let initial = story.initial.iter().map(|&object| InitialObject {
        object: ObjectHash(object),
        class: ObjectHash(31),
        size: 24,
        length: -1,
    });
    builder.initial_objects(&initial.collect::<Vec<_>>());
    let frames = [(1, 0, BASE), (2, 1, BASE + 1), (3, 1, BASE + 2), (4, 3, BASE + 3), (5, 0, 7)];
    let frames = frames.map(|(number, caller, site)| StackRecord::Frame { number, caller, site });
    builder.stacks(&frames);
    let frame = |method: &str| InitialFrame {
        class: "LA;".into(),
        method: method.into(),
        descriptor: "()V".into(),
        receiver: ObjectHash(if method == "m" { story.initial.first().copied().unwrap_or(0) } else { 0 }),
    };
    for thread in 1..4 {
        let has_frames = story.has_frames && thread == 2;
        let frames = if has_frames { vec![frame("main"), frame("m")] } else { Vec::new() };
        builder.first_thread(thread, "", frames);
    }
    let mut pieces: BTreeMap<u32, Vec<(u64, Vec<Event<'_>>)>> = BTreeMap::new();
    let (mut ticket, mut last) = (0, 0);
    for step in &story.steps {
        let of_thread = pieces.entry(step.thread).or_default();
        let begins = step.begins || of_thread.is_empty();
        if begins || step.has_ticket || step.thread != last {
            ticket += 1 + u64::from(step.choice % 3);
            match of_thread.last_mut().filter(|_| !begins) {
                Some((_, events)) => events.push(Event::Ticket(Ticket(ticket))),
                None => of_thread.push((ticket, Vec::new())),
            }
        }
        last = step.thread;
        if let Some((_, events)) = of_thread.last_mut() {
            events.extend(self::events(*step));
        }
    }
    for (thread, pieces) in pieces {
        for (ticket, events) in pieces {
            // Not in the order of the tickets, and of some pieces nothing is known.
            let begin = Nanos(1 + ticket * 31 % 50);
            match story.has_times && ticket % 5 != 0 {
                true => builder.timed_events(thread, ticket, Wall { begin, end: None }, &events),
                false => builder.events(thread, ticket, &events),
            };
        }
    }
    for &ticket in &story.collections {
        builder.gc(&GcRecord { start: Ticket(ticket), finish: Ticket(ticket + 1), ..GcRecord::default() });
    }
    let mut walks = story.walks.clone();
    walks.sort();
    walks.dedup_by_key(|(ticket, _)| *ticket);
    for (number, (begin, found)) in (0..).zip(walks) {
        let mut found = found;
        found.sort_unstable();
        found.dedup();
        let (begin, end) = (Ticket(begin), Ticket(begin + 1));
        builder.survivors(HeapWalk { begin, end, nanos: Nanos(number), ..HeapWalk::default() }, &found);
    }
    let mut trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
    trace.events = EventSet::ALLOC.or(EventSet::STACKS);
    trace
}

/// All rows as the records tell them, the contexts and what else is observed.
fn by_records(source: &Source) -> (Rows, Contexts, Moment, Observed, Option<Fates>) {
    let trace = source.trace().unwrap();
    let reading = Reading { deaths: Deaths::None, places: true, ..Reading::default() };
    let mut observer = Observer::new(source, reading);
    let mut marker = Marker::of(trace).unwrap();
    let (mut rows, mut now) = (Rows::default(), Moment::default());
    let (mut contexts, mut of_stacks) = (Contexts::default(), StackContexts::default());
    let mut stacks: Stacks<Option<ContextId>> = Stacks::default();
    let mut mirrors = trace.classes.iter().scan(Ticket(0), |latest, class| {
        *latest = (*latest).max(class.record.ticket);
        Some((u64::from(class.record.class.0), *latest))
    });
    let ending = source
        .for_each(reading, |record, at| {
            observer.record(record, at);
            let Record::Alloc(alloc) = *record else {
                stacks.record(record);
                if matches!(record, Record::Update { .. }) {
                    now.nanos = now.nanos.max(at.place.wall().map(|wall| wall.begin.0));
                }
                return ControlFlow::Continue(());
            };
            // Mirrors become known in the order of their classes, at the tickets of these, and say nothing of the time.
            let (ticket, wall) = match (alloc.kind, alloc.thread) {
                (AllocKind::Vm, ThreadId(0)) => {
                    (mirrors.find(|(hash, _)| *hash == alloc.object.0 & 0x7fff_ffff).map(|(_, ticket)| ticket), None)
                }
                _ => (at.place.ticket(), at.place.wall()),
            };
            if let (Some(marker), Some(ticket)) = (&mut marker, ticket) {
                marker.at(ticket, || (now, rows.len as u64));
            }
            now.nanos = now.nanos.max(wall.map(|wall| wall.begin.0));
            if let Some(marker) = &mut marker {
                marker.born(alloc.object, rows.len as u64);
            }
            rows.number.push(rows.len as u64);
            rows.object.push(alloc.object);
            rows.class.push(alloc.ty);
            rows.kind.push(alloc.kind);
            rows.size.push(alloc.size);
            rows.length.push(alloc.length);
            rows.site.push(alloc.site);
            rows.thread.push(alloc.thread);
            rows.context.push(match alloc.stack {
                StackId::NONE => stacks.context(alloc.thread, &mut contexts),
                stack => of_stacks.of(stack, &trace.stacks, &mut contexts),
            });
            rows.birth_tick.push(now.bytes);
            now.bytes += if alloc.kind == AllocKind::Initial { 0 } else { alloc.size };
            now.tick = now.bytes;
            rows.birth_bytes.push(now.bytes);
            rows.birth_nanos.push(now.nanos);
            rows.len += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    let fates = marker.map(|marker| marker.finish(now, rows.len as u64));
    (rows, contexts, now, observer.finish(&ending), fates)
}

fn names_of(contexts: &Contexts) -> Vec<(u32, MethodId)> {
    contexts.iter().map(|(_, context)| (context.caller.0, context.method)).collect()
}

/// Makes an object, and stores it twice to a field that no table has, and once to one that is known.
#[test]
fn each_store_to_an_unknown_field_counts() {
    let step = |what, choice| Step { thread: 1, what, object: 1, choice, has_ticket: false, begins: false };
    let story = Story::of(vec![step(0, 0), step(12, 1), step(12, 2), step(12, 7)]);
    let trace = told(&story);
    let (_, observed) = read(&trace).unwrap().unwrap();
    let (.., by_observer, _) = by_records(&Source::from(trace));
    assert_eq!((observed.anomalies.unknown_field_refs, &observed), (2, &by_observer));
}

/// How many objects of a kind there are, their bytes, and the number and birth of the first.
type Sum = (u64, u64, [u64; 3], Option<u64>);

/// Sums of what rows have in common that joined ones share.
fn sums(rows: &Rows, end: &Moment) -> BTreeMap<String, Sum> {
    let mut sums = BTreeMap::new();
    for row in 0..rows.len {
        let is_late = rows.birth_tick[row] > axis::middle(end);
        let alike = (rows.class[row], rows.kind[row], rows.site[row], rows.context[row], rows.thread[row]);
        let first = [rows.number[row], rows.birth_tick[row], rows.birth_bytes[row]];
        let key = format!("{is_late} {alike:?} {:?} {:?}", rows.fate[row], rows.death_tick[row]);
        let (objects, bytes, ..) = sums.entry(key).or_insert((0, 0, first, rows.birth_nanos[row]));
        *objects += rows.objects(row);
        *bytes += rows.size[row];
    }
    sums
}

/// What is born in each bin of an axis: objects, bytes, and the last birth.
type Bins = BTreeMap<u64, (u64, u64, Moment)>;

/// The axes of a trace that ends at `end`, with up to so many bins.
fn axes(born: impl Iterator<Item = Span> + Clone, end: &Moment, bins: usize) -> [Bins; 3] {
    let (bytes, nanos) = (axis::width(1, end.bytes, bins), axis::width(axis::NANOS, end.nanos.unwrap_or(0), bins));
    let place: [&dyn Fn(&Moment) -> u64; 3] =
        [&|at| at.tick / bytes, &|at| at.bytes / bytes, &|at| at.nanos.map_or(u64::MAX, |at| at / nanos)];
    place.map(|place| {
        let mut all = Bins::new();
        for span in born.clone() {
            let (objects, bytes, last) = all.entry(place(&span.last)).or_insert((0, 0, span.last));
            (*objects, *bytes, *last) = (*objects + span.objects, *bytes + span.bytes, span.last);
        }
        all
    })
}

/// Each object of rows as a span of its own.
fn single(rows: &Rows) -> impl Iterator<Item = Span> + Clone + '_ {
    let told = (0..rows.len).filter(|&row| rows.kind[row] != AllocKind::Initial);
    told.map(|row| {
        let last = Moment { tick: rows.birth_tick[row], bytes: rows.birth_bytes[row], nanos: rows.birth_nanos[row] };
        Span { last, objects: 1, bytes: rows.size[row] }
    })
}

/// Objects of two sites in turn are two rows for sums of each half.
#[test]
fn objects_that_are_alike_share_a_row() {
    let step = |number: u32| Step {
        thread: 1,
        what: 0,
        object: number,
        choice: (2 + number % 2) << 8,
        has_ticket: false,
        begins: false,
    };
    let story = Story::of((1..21).map(step).collect());
    let (population, _) = in_groups(&told(&story), 100, 2).unwrap().unwrap();
    let groups = &population.groups;
    let columns = Columns::ALL.without(Columns::OBJECT | Columns::LENGTH);
    let (rows, joined) = (groups.read(0, Columns::ALL).unwrap(), (groups.joined())(0, columns).unwrap());
    let halves = if population.end.bytes > 0 { 2 } else { 1 };
    assert_eq!((rows.len, joined.len, joined.counts.iter().sum::<u64>()), (20, 2 * halves, 20));
    assert_eq!(sums(&joined, &population.end), sums(&rows, &population.end));
    let without = (groups.joined())(0, Columns::NUMBER).unwrap();
    assert_eq!((&without.number, without.size.len()), (&joined.number, 0), "it was not asked for");
}

proptest! {
    #[test]
    fn rows_are_those_of_the_records(story in stories(), group in 1..20u64, bins in 2..8usize) {
        let trace = told(&story);
        let found = in_groups(&trace, group, bins).unwrap();
        let source = Source::from(trace);
        let (expected, contexts, end, by_observer, fates) = by_records(&source);
        let Some((population, observed)) = found else {
            // Some event may name an object that was not known.
            prop_assert!(story.steps.iter().any(|step| [10, 12].contains(&(step.what % 13))));
            return Ok(());
        };
        prop_assert_eq!(population.objects, expected.len as u64);
        prop_assert_eq!(population.end, end);
        prop_assert_eq!(observed, by_observer);
        prop_assert_eq!(names_of(&population.contexts), names_of(&contexts));
        prop_assert_eq!(population.survival.as_deref(), fates.as_ref().map(|fates| &**fates.survival()));
        let mut rows = Rows::default();
        for group in 0..population.groups.len() {
            let of_group = population.groups.read(group, Columns::ALL).unwrap();
            for (key, column) in [(Key::Number, &of_group.number), (Key::BirthTick, &of_group.birth_tick)] {
                let range = population.groups.range(group, key).unwrap();
                prop_assert!(column.iter().all(|value| range.contains(value)), "{:?} {:?}", range, column);
            }
            let some = population.groups.read(group, Columns::SIZE | Columns::FATE).unwrap();
            prop_assert_eq!((some.len, &some.size, &some.fate), (of_group.len, &of_group.size, &of_group.fate));
            prop_assert_eq!(some.number.len() + some.context.len(), 0);
            let columns = Columns::ALL.without(Columns::OBJECT | Columns::LENGTH);
            let joined = (population.groups.joined())(group, columns).unwrap();
            prop_assert_eq!(sums(&joined, &end), sums(&of_group, &end));
            let spans = joined.spans.unwrap();
            prop_assert_eq!(axes(spans.iter().copied(), &end, bins), axes(single(&of_group), &end, bins));
            let with_ids = (population.groups.joined())(group, Columns::OBJECT).unwrap();
            prop_assert_eq!(&with_ids.object, &of_group.object);
            rows.append(of_group);
        }
        prop_assert_eq!(rows.len, expected.len);
        prop_assert_eq!(&rows.number, &expected.number);
        prop_assert_eq!(&rows.object, &expected.object);
        prop_assert_eq!(&rows.class, &expected.class);
        prop_assert_eq!(&rows.kind, &expected.kind);
        prop_assert_eq!(&rows.size, &expected.size);
        prop_assert_eq!(&rows.length, &expected.length);
        prop_assert_eq!(&rows.site, &expected.site);
        prop_assert_eq!(&rows.context, &expected.context);
        prop_assert_eq!(&rows.thread, &expected.thread);
        prop_assert_eq!(&rows.birth_tick, &expected.birth_tick);
        prop_assert_eq!(&rows.birth_bytes, &expected.birth_bytes);
        prop_assert_eq!(&rows.birth_nanos, &expected.birth_nanos);
        for (row, fate) in rows.fate.iter().enumerate() {
            let expected = fates.as_ref().and_then(|fates| fates.of(rows.number[row], rows.object[row]));
            prop_assert_eq!(*fate, expected);
        }
        prop_assert!(rows.death_tick.iter().all(Option::is_none) && rows.death_tick.len() == rows.len);
    }
}

#[test]
fn other_events_are_left_to_others() {
    let mut builder = TraceBuilder::new();
    builder.first_thread(1, "main", Vec::new());
    builder.events(1, 1, &[Event::Used { object: ObjectHash(7) }]);
    let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
    assert!(read(&trace).unwrap().is_none());
}

/// Their order is not known.
#[test]
fn tickets_that_go_back_are_left_to_others() {
    let mut builder = TraceBuilder::new();
    builder.first_thread(1, "main", Vec::new());
    let new = Event::New { site: SiteId(0), object: ObjectHash(7), class: ObjectHash(8), known: false };
    builder.events(1, 5, &[new, Event::Ticket(Ticket(3)), new]);
    let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
    assert!(read(&trace).unwrap().is_none());
}

/// To make the rows of a group, the blocks of all of them would have to be unpacked.
#[test]
fn very_many_threads_that_take_turns_are_left_to_others() {
    let told = |threads: u32| {
        let mut builder = TraceBuilder::new();
        for thread in 1..=threads {
            let new = Event::New { site: SiteId(0), object: ObjectHash(thread), class: ObjectHash(8), known: false };
            builder.first_thread(thread, "", Vec::new()).events(thread, thread.into(), &[new]);
        }
        let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
        read(&trace).unwrap().map(|(population, _)| population.objects)
    };
    assert_eq!((told(250), told(300)), (Some(250), None));
}
