//! Sums over rows are what the records add up to, counted one after the other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use et_names::MethodId;
use et_reader::Trace;
use et_reader::attribution::{Attribution, Callers, NONE, Origins};
use et_reader::made_in::Places;
use et_reader::record::{AllocKind, ObjectId, Record, ThreadId};
use et_reader::source::{Deaths, Reading, Source};
use et_reader::text::{TextNames, TextTrace};
use proptest::prelude::*;

use super::Amount;
use super::peak::PeakTally;
use super::rows::{KindCounts, LifetimeSum, Row, Sum};
use super::sums::Sums;

/// A run of a real program, without the names of the JDK.
const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

/// An object.
struct Life {
    /// `None` if it was there when tracing began.
    origins: Option<Origins>,
    kind: AllocKind,
    size: u64,
    birth: u64,
    last_use: u64,
    death: Option<u64>,
}

/// What is counted.
struct Model {
    lives: Vec<Life>,
    threads: BTreeMap<ThreadId, Amount>,
    peak: PeakTally,
    end: u64,
}

/// Goes through the records in their order.
fn count(source: &Source, reading: Reading) -> Model {
    let (mut attribution, mut places) = (Attribution::of(source), Places::new(source.naming()));
    let mut model = Model {
        lives: Vec::new(),
        threads: BTreeMap::new(),
        peak: PeakTally { live: Amount::default(), tick: 0, made_bytes: 0, caller: NONE },
        end: 0,
    };
    let mut alive: BTreeMap<ObjectId, usize> = BTreeMap::new();
    let mut stacks: BTreeMap<ThreadId, Vec<MethodId>> = BTreeMap::new();
    let (mut live, mut made) = (Amount::default(), 0);
    let visit = |record: &Record, at: &et_reader::source::At<'_>| {
        let (now, thread) = (at.tick.0, record.thread());
        model.end = now + record.ticks(source.clock(reading.clock));
        let stack = stacks.entry(thread).or_default();
        let mut used = |object: ObjectId| {
            if let Some(&number) = alive.get(&object) {
                model.lives[number].last_use = now;
            }
        };
        match *record {
            Record::Death { object, .. } => {
                if let Some(number) = alive.remove(&object) {
                    model.lives[number].death = Some(now);
                    live.objects -= 1;
                    live.bytes -= model.lives[number].size;
                }
            }
            _ if at.is_clearing => {}
            Record::Alloc(alloc) => {
                let top = stack.last().copied().unwrap_or(NONE);
                let callers = stack.iter().fold(Callers::default(), |callers, &method| {
                    callers.of_callee(method, attribution.owners.origin(method))
                });
                let is_traced = alloc.kind != AllocKind::Initial;
                let origins = is_traced.then(|| {
                    let place = places.on_stack((&alloc).into(), stack.iter().rev().copied(), at.types);
                    attribution.origins(place, alloc.ty, callers, top)
                });
                if is_traced {
                    made += alloc.size;
                    model.threads.entry(thread).or_default().add(alloc.size);
                }
                live.add(alloc.size);
                if live.bytes > model.peak.live.bytes {
                    model.peak = PeakTally { live, tick: now, made_bytes: made, caller: callers.nearest(top) };
                }
                alive.insert(alloc.object, model.lives.len());
                let (kind, size) = (alloc.kind, alloc.size);
                model.lives.push(Life { origins, kind, size, birth: now, last_use: now, death: None });
            }
            Record::Update { origin, .. } => used(origin),
            Record::Entry { method, receiver, .. } => {
                used(receiver);
                stack.push(method);
            }
            Record::Exit { .. } | Record::ExitThrow { .. } => {
                record.objects().into_iter().for_each(&mut used);
                stack.pop();
            }
            _ => record.objects().into_iter().for_each(used),
        }
        ControlFlow::Continue(())
    };
    source.for_each(reading, visit).unwrap();
    model
}

impl Model {
    /// The rows that these lives add up to.
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for (number, life) in self.lives.iter().enumerate() {
            let Some(key) = life.origins else { continue };
            let at = rows.iter().position(|row| row.key == key).unwrap_or_else(|| {
                rows.push(Row { key, sum: Sum { first: number as u64, ..Sum::default() } });
                rows.len() - 1
            });
            let sum = &mut rows[at].sum;
            sum.made.add(life.size);
            sum.kinds[AllocKind::ALL.iter().position(|kind| *kind == life.kind).unwrap()] += 1;
            let middle = self.end / 2;
            if life.birth <= middle && life.death.is_none_or(|death| death > middle) {
                sum.middle.add(life.size);
            }
            match life.death {
                None => sum.alive.add(life.size),
                Some(death) => {
                    sum.lifetime.died.add(life.size);
                    sum.lifetime.lifetime += death - life.birth;
                    sum.lifetime.drag += death - life.last_use;
                    sum.lifetime.drag_bytes += (death - life.last_use) * life.size;
                }
            }
        }
        rows
    }

    fn alive(&self) -> Amount {
        let mut alive = Amount::default();
        self.lives.iter().filter(|life| life.death.is_none()).for_each(|life| alive.add(life.size));
        alive
    }
}

/// A row as something to compare and to print.
fn plain(row: &Row) -> (Origins, u64, [Amount; 4], KindCounts, [u64; 3]) {
    let Sum { first, made, kinds, middle, alive, lifetime: LifetimeSum { died, lifetime, drag, drag_bytes } } = row.sum;
    (row.key, first, [made, middle, alive, died], kinds, [lifetime, drag, drag_bytes])
}

fn compare(source: &Source, reading: Reading) {
    let model = count(source, reading);
    let population = match source.deaths(reading.deaths) {
        Deaths::None => et_lives::births(source, reading).unwrap().0,
        Deaths::Trace => et_lives::population(source, None, reading).unwrap(),
    };
    let sums = Sums::of(source, &population, true).unwrap();
    let rows = |rows: &[Row]| rows.iter().map(plain).collect::<Vec<_>>();
    assert_eq!(rows(&sums.rows), rows(&model.rows()));
    assert_eq!(sums.threads.into_iter().collect::<BTreeMap<_, _>>(), model.threads);
    assert_eq!(sums.alive, model.alive());
    assert_eq!(sums.peak, (reading.deaths != Deaths::None).then_some(model.peak));
    for (kind, amount) in AllocKind::ALL.into_iter().zip(sums.kinds) {
        let mut expected = Amount::default();
        model.lives.iter().filter(|life| life.kind == kind).for_each(|life| expected.add(life.size));
        assert_eq!(amount, expected, "{kind:?}");
    }
}

#[test]
fn rows_of_a_real_run_add_up_to_what_its_records_do() {
    let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
    for deaths in [Deaths::Trace, Deaths::None] {
        compare(&source, Reading { deaths, ..Reading::default() });
    }
    let clock = et_reader::record::Clock::MethodsAndExceptions;
    compare(&source, Reading { clock, ..Reading::default() });
}

/// What a thread does next; numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum Does {
    Enter(usize),
    Leave,
    /// Which site, if any, and the size.
    Make(usize, u64),
    Store(usize, usize),
    /// Holds it, or nothing, in the static field.
    Hold(usize),
}

const NAMES: &str = "C 0x1 java/util/List 0x0 I:\nC 0x2 shop/Main 0x1 I:\nC 0x3 shop/Cache 0x1 I:\n\
                     N 0xa 0x1 java/util/List add ()V I\nN 0xb 0x2 shop/Main main ()V S\nN 0xc 0x3 shop/Cache put ()V I\n\
                     S 0xa 0x1 0x14 [Ljava/lang/Object; 1 5\nS 0xb 0x2 0x15 Lshop/Cache; 0 6\nS 0xc 0x3 0x16 Lshop/Line; 0 7\n";
const METHODS: [u32; 3] = [0xa, 0xb, 0xc];
/// Letter, type and site.
const SITES: [(&str, &str, u32); 5] = [
    ("A", "[Ljava/lang/Object;", 0x14),
    ("N", "Lshop/Cache;", 0x15),
    ("N", "Lshop/Line;", 0x16),
    ("V", "Ljava/lang/String;", 0),
    ("P", "Lshop/Line;", 0),
];

/// A text of what threads do, with some objects that were there before.
fn text(initial: &[u64], all: &[(u32, Does)]) -> String {
    let mut text = String::new();
    let mut objects = Vec::new();
    for (number, size) in (1..).zip(initial) {
        objects.push(number);
        text += &format!("I {number:x} {size:x} Lshop/Line; 0 0 0\n");
    }
    let mut stacks: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    let mut slots: BTreeMap<u64, u64> = BTreeMap::new();
    let mut held = 0;
    let any = |objects: &[u64], number: usize| objects.get(number % (objects.len() + 1)).copied().unwrap_or(0);
    for &(thread, does) in all {
        let stack = stacks.entry(thread).or_default();
        match does {
            Does::Enter(number) => {
                let (method, receiver) = (METHODS[number % METHODS.len()], any(&objects, number / METHODS.len()));
                stack.push((method, receiver));
                text += &format!("M {method:x} {receiver:x} {thread}\n");
            }
            Does::Leave => {
                if let Some((method, receiver)) = stack.pop() {
                    text += &format!("E {method:x} {receiver:x} {thread}\n");
                }
            }
            Does::Make(number, size) => {
                let (letter, ty, site) = SITES[number % SITES.len()];
                let object = 0x1000 + text.len() as u64;
                objects.push(object);
                text += &format!("{letter} {object:x} {size:x} {ty} {site:x} 1 {thread}\n");
            }
            Does::Store(origin, target) => {
                let (origin, target) = (any(&objects, origin), any(&objects, target));
                if origin != 0 {
                    let old = slots.insert(origin, target).unwrap_or(0);
                    text += &format!("U {old:x} {origin:x} {target:x} 0 {thread}\n");
                }
            }
            Does::Hold(target) => {
                let target = any(&objects, target);
                text += &format!("U {held:x} 0 {target:x} 99 {thread}\n");
                held = target;
            }
        }
    }
    text + "# lost 0\n"
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        3 => any::<usize>().prop_map(Does::Enter),
        3 => Just(Does::Leave),
        6 => (any::<usize>(), prop_oneof![Just(0), 1..5u64, 16..200u64]).prop_map(|(site, size)| Does::Make(site, size)),
        3 => any::<(usize, usize)>().prop_map(|(origin, target)| Does::Store(origin, target)),
        1 => any::<usize>().prop_map(Does::Hold),
    ]
}

proptest! {
    #[test]
    fn rows_add_up_to_what_records_do(
        initial in prop::collection::vec(0..100u64, 0..4),
        all in prop::collection::vec((1..4u32, does()), 0..120),
    ) {
        let names = TextNames::read(NAMES.as_bytes()).unwrap().unwrap();
        let source = Source::from(TextTrace::from_text(&text(&initial, &all), Some(names)));
        for deaths in [Deaths::Trace, Deaths::None] {
            compare(&source, Reading { deaths, ..Reading::default() });
        }
    }
}
