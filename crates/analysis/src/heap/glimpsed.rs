//! The heap at a moment of which the reading by blocks has kept a [`Glimpse`]: with a life table, nothing of the trace is read. As
//! [when the trace is read up to there](super::take), except that weak slots are not among the references, and that of what nothing recorded holds the
//! thread is the one that made it.

use std::io;

use et_names::FieldId;
use et_reader::blocks::glimpse::{Glimpse, StackThen};
use et_reader::model::{Frame, Node, Stack};
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::{AllocKind, ObjectId, ThreadId};
use et_reader::resolve::ExtraField;
use et_reader::source::Source;

use super::freeze::{self, Freezing, Outside};
use super::resident::{self, Ranks};
use super::snapshot::{Root, RootKind, Snapshot, Taken};

/// What tells whether an object is alive.
const LIFE: Columns = Columns::NUMBER.and(Columns::DEATH_TICK).and(Columns::DEATH_RECORD);

/// Whether an object had been made and was alive.
fn is_alive(rows: &Rows, row: usize, glimpse: &Glimpse) -> bool {
    let is_dead = match (rows.death_record[row], rows.death_tick[row]) {
        (Some(record), _) => record <= glimpse.records,
        // The VM has let go of it.
        (None, Some(tick)) => tick <= glimpse.tick,
        (None, None) => false,
    };
    rows.number[row] < glimpse.births && !is_dead
}

/// Glimpses, and which objects were alive then.
#[allow(missing_debug_implementations)]
pub struct Glimpsed<'a, 'p> {
    source: &'a Source,
    population: &'p Population,
    extra_fields: &'p [ExtraField],
    glimpses: Vec<(&'p Glimpse, resident::Chosen)>,
}

impl<'a, 'p> Glimpsed<'a, 'p> {
    /// Finds out what was alive at these glimpses.
    ///
    /// # Errors
    /// A table cannot be read, or is damaged.
    pub fn of(
        source: &'a Source,
        population: &'p Population,
        extra_fields: &'p [ExtraField],
        glimpses: impl Iterator<Item = &'p Glimpse>,
    ) -> io::Result<Self> {
        let glimpses: Vec<&Glimpse> = glimpses.collect();
        let is_alive = |number: usize, rows: &Rows, row| is_alive(rows, row, glimpses[number]);
        let chosen = resident::alive_at_each(&*population.groups, glimpses.len(), LIFE, is_alive)?;
        let glimpses = glimpses.into_iter().zip(chosen).collect();
        Ok(Self { source, population, extra_fields, glimpses })
    }

    /// The heaps, each with its glimpse. `name` tells what the moment is called.
    ///
    /// # Errors
    /// A table cannot be read, or is damaged, or the glimpse is.
    pub fn heaps(
        self,
        name: impl Fn(&Glimpse) -> String,
    ) -> impl Iterator<Item = io::Result<(&'p Glimpse, Snapshot<'a>)>> {
        let Self { source, population, extra_fields, glimpses } = self;
        glimpses.into_iter().map(move |(glimpse, chosen)| {
            let rows = resident::rows_of(&*population.groups, &chosen)?;
            drop(chosen);
            Ok((glimpse, heap(source, population, glimpse, &rows, extra_fields, name(glimpse))?))
        })
    }
}

/// Makes the heap at a glimpse. `moment` is what it is called.
fn heap<'a>(
    source: &'a Source,
    population: &Population,
    glimpse: &Glimpse,
    rows: &Rows,
    extra_fields: &[ExtraField],
    moment: String,
) -> io::Result<Snapshot<'a>> {
    let ranks = Ranks::new(population.objects, &rows.number);
    let node = |number: u64| ranks.of(number).map(Node);
    let weak = source.weak_fields();
    let mut freezing = Freezing::new(source, &weak, rows.len);
    resident::add_rows(&mut freezing, population, rows);
    let mut edges: Vec<(u32, u32, u32)> = Vec::new();
    let add = |origin, slot, target| {
        if let (Some(origin), Some(target)) = (ranks.of(origin), ranks.of(target)) {
            edges.push((origin, slot, target));
        }
    };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "what slots held at a moment is damaged");
    glimpse.each_reference(add).ok_or_else(damaged)?;
    let statics = glimpse.statics.iter().filter_map(|&(field, target)| Some((FieldId(field), node(target)?)));
    let of = |thread: &et_reader::Thread| (ThreadId(thread.index), thread.object.0);
    let running: Vec<(ThreadId, u32)> =
        source.trace().into_iter().flat_map(|trace| freeze::threads_running(trace, glimpse.ticket)).map(of).collect();
    let named = freezing.named(running.iter().map(|&(_, hash)| hash));
    let threads: Vec<(ThreadId, Option<Node>)> =
        running.iter().map(|&(thread, hash)| (thread, named.get(&hash).copied())).collect();
    let outside = Outside {
        roots: roots(source, rows, glimpse, &threads, node),
        stacks: glimpse.stacks.iter().map(|stack| (stack.thread, stack_then(stack, rows, node))).collect(),
        threads,
        unheld: |_, thread| RootKind::Unrecorded(thread),
    };
    let taken = Taken {
        moment,
        tick: glimpse.tick,
        allocated_bytes: glimpse.bytes,
        seconds: glimpse.nanos.map(|nanos| nanos as f64 / 1e9),
        lost: population.lost,
        ..Taken::default()
    };
    let references = freeze::references(statics.collect(), edges);
    Ok(freezing.freeze(&named, references, outside, extra_fields, taken))
}

/// What holds objects from outside, but for static fields and mirrors.
fn roots(
    source: &Source,
    rows: &Rows,
    glimpse: &Glimpse,
    threads: &[(ThreadId, Option<Node>)],
    node: impl Fn(u64) -> Option<Node>,
) -> Vec<Root> {
    let of_stack = |StackThen { thread, frames, in_flight }: &StackThen| {
        let frames = frames.iter().map(|&(method, receiver)| (method, receiver.and_then(&node)));
        freeze::stack_roots(*thread, frames, in_flight.and_then(&node))
    };
    let mut roots: Vec<Root> = glimpse.stacks.iter().flat_map(of_stack).collect();
    let mut add = |kind, node: Option<Node>| roots.extend(node.map(|node| Root { kind, node }));
    threads.iter().for_each(|&(thread, object)| add(RootKind::Thread(thread), object));
    let loaders = resident::loaders(source);
    let kind = |node: Node| {
        let row = node.0 as usize;
        match rows.object[row].identity_hash() {
            Some(hash) if loaders.contains(&hash) => RootKind::Loader,
            _ if rows.kind[row] == AllocKind::Initial => RootKind::Vm,
            _ => RootKind::Constant,
        }
    };
    // The VM holds classes as well, which have roots of their own.
    let class = source.types().get("Ljava/lang/Class;");
    let held = glimpse.held.iter().filter_map(|&number| node(number));
    let held = held.filter(|node| Some(rows.class[node.0 as usize]) != class);
    held.for_each(|node| add(kind(node), Some(node)));
    roots
}

fn stack_then(stack: &StackThen, rows: &Rows, node: impl Fn(u64) -> Option<Node>) -> Stack {
    let id = |number: Option<u64>| number.and_then(&node).map_or(ObjectId::NULL, |node| rows.object[node.0 as usize]);
    let frames = stack.frames.iter();
    let frames = frames.map(|&(method, receiver)| Frame { method, receiver: id(receiver), serial: 0, data: () });
    Stack { frames: frames.collect(), in_flight: id(stack.in_flight), left: 0 }
}
