//! Rows, made from the blocks that have their objects.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::born::{Born, push, untold};
use super::events::{Item, Items};
use super::index::{Before, Order, Run, stack_of};
use super::joined::{Joining, NEVER_JOINED};
use super::made::{Made, Maker};
use crate::lifetimes::HeldByStack;
use crate::model::ContextId;
use crate::moment::Moment;
use crate::population::{Columns, Groups, Joined, Key, Rows};
use crate::record::{AllocKind, ObjectId, ThreadId};
use crate::resolve::object_ids::id;
use crate::survival::{Fates, InOrder};
use crate::trace::Trace;
use crate::watch::{Unit, Watcher};

/// Rows of a group, about.
pub const GROUP: u64 = 1 << 17;
/// Pieces that stay unpacked: where threads take turns, a piece has objects of several groups.
const KEPT: usize = 64;
/// Pieces that a group may have objects of: all are unpacked at the same time.
const MOST_PIECES: usize = 256;

/// A group of rows.
#[derive(Debug)]
enum Group {
    /// Of what was there when tracing began.
    Initial(Range<usize>),
    /// Of runs; `true` if it has the mirrors behind the last as well.
    Runs(Range<usize>, bool),
}

/// The rows of a trace.
#[derive(Debug)]
pub struct MadeRows {
    trace: Trace,
    order: Order,
    of_stacks: Vec<ContextId>,
    fates: Option<Arc<Fates>>,
    end: Moment,
    bins: usize,
    groups: Vec<Group>,
    unpacked: Mutex<VecDeque<(u32, Arc<Vec<u8>>)>>,
}

impl MadeRows {
    /// `None` if so many threads take turns that too much would have to be unpacked for each group.
    pub fn of(
        trace: &Trace,
        order: Order,
        of_stacks: Vec<ContextId>,
        fates: Option<Arc<Fates>>,
        bins: usize,
        group: u64,
    ) -> Option<Self> {
        let mut trace = trace.clone();
        // Rows may be made any number of times: nobody can say how far that is.
        trace.file.watcher().begin("going through the objects", Unit::Records, 0);
        trace.file.watch(&Watcher::default());
        let mut groups = Vec::new();
        let initial = order.initial.len();
        groups.extend(
            (0..initial).step_by(group as usize).map(|at| Group::Initial(at..(at + group as usize).min(initial))),
        );
        let (mut begin, count) = (0, order.runs.len());
        while begin < count {
            let births = order.runs[begin].before.births;
            let end = begin + 1 + order.runs[begin + 1..].partition_point(|run| run.before.births < births + group);
            let pieces: FxHashSet<u32> = order.runs[begin..end].iter().map(|run| run.piece).collect();
            if pieces.len() > MOST_PIECES {
                return None;
            }
            groups.push(Group::Runs(begin..end, end == count));
            begin = end;
        }
        if count == 0 && !order.mirrors.is_empty() {
            groups.push(Group::Runs(0..0, true));
        }
        let end = order.end.moment();
        Some(Self { trace, order, of_stacks, fates, end, bins, groups, unpacked: Mutex::default() })
    }

    /// What tells the fates, if they are wanted and there are any.
    fn fates_for(&self, columns: Columns) -> Option<InOrder<'_>> {
        self.fates.as_ref().filter(|_| columns.has(Columns::FATE)).map(|fates| fates.in_order())
    }

    /// The objects of a group, by their numbers, and the bytes allocated before each.
    fn extent(&self, group: &Group) -> (Range<u64>, RangeInclusive<u64>) {
        match group {
            Group::Initial(rows) => (rows.start as u64..rows.end as u64, 0..=0),
            Group::Runs(runs, is_last) => {
                let first = Before { births: self.order.initial.len() as u64, ..Before::default() };
                let start = self.order.runs.get(runs.start).map_or(first, |run| run.before);
                let end = match self.order.runs.get(runs.end) {
                    Some(run) if !is_last => run.before,
                    _ => self.order.end,
                };
                (start.births..end.births, start.bytes..=end.bytes)
            }
        }
    }

    fn unpack(&self, number: u32) -> io::Result<Arc<Vec<u8>>> {
        let lock = || self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, events)) = lock().iter().find(|(of, _)| *of == number) {
            return Ok(Arc::clone(events));
        }
        let piece = &self.order.pieces[number as usize];
        let mut events = Vec::new();
        let threads = self.trace.file.threads();
        self.trace.file.load_events(&threads[piece.thread], piece.number, &mut events).map_err(|_| changed())?;
        let events = Arc::new(events);
        let mut kept = lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((number, Arc::clone(&events)));
        Ok(events)
    }

    /// Shows all objects of a group in the order of their births.
    fn each(&self, group: &Group, see: impl FnMut(&Born)) -> io::Result<()> {
        let (numbers, _) = self.extent(group);
        let now = Before { births: numbers.start, ..Before::default() };
        let mut walk = Walk { see, now, unpacked: FxHashMap::default() };
        match group {
            Group::Initial(objects) => {
                for alloc in &self.order.initial[objects.clone()] {
                    walk.born(&Made::from(*alloc), alloc.object, ThreadId(0), ContextId::EMPTY);
                }
            }
            Group::Runs(runs, is_last) => {
                let mut maker = Maker::new(&self.trace);
                if let Some(first) = self.order.runs.get(runs.start) {
                    walk.now = first.before;
                }
                for place in runs.clone() {
                    walk.now.time = self.order.runs[place].before.time;
                    self.run(place, &mut maker, &mut walk)?;
                }
                if *is_last {
                    walk.now.time = self.order.end.time;
                    self.mirrors(self.order.runs.len(), &maker, &mut walk);
                }
            }
        }
        // Nothing but a change of the file can have made them others.
        if walk.now.births == numbers.end { Ok(()) } else { Err(changed()) }
    }

    /// Shows the mirrors that become known before a run.
    fn mirrors(&self, run: usize, maker: &Maker<'_>, walk: &mut Walk<impl FnMut(&Born)>) {
        let first = self.order.mirrors.partition_point(|mirror| (mirror.run as usize) < run);
        for mirror in self.order.mirrors[first..].iter().take_while(|mirror| mirror.run as usize == run) {
            let hash = self.trace.classes.get(mirror.class).record.class;
            walk.born(&maker.mirror(mirror.class), id(hash, mirror.number), ThreadId(0), ContextId::EMPTY);
        }
    }

    /// Shows the objects of a run.
    fn run(&self, place: usize, maker: &mut Maker<'_>, walk: &mut Walk<impl FnMut(&Born)>) -> io::Result<()> {
        let Run { ticket, piece: number, offset, .. } = self.order.runs[place];
        let piece = &self.order.pieces[number as usize];
        self.mirrors(place, maker, walk);
        walk.now.time = walk.now.time.max(piece.wall.map(|wall| wall.begin));
        let first = piece.decided.partition_point(|decided| decided.offset < offset);
        let mut decided = piece.decided[first..].iter().peekable();
        let events = match walk.unpacked.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.unpack(number)?),
        };
        let events = Arc::clone(events);
        let mut items = Items::new(&events, offset as usize);
        while let Some((offset, item)) = items.next().map_err(|_| changed())? {
            let (told, is_certain) = match item {
                Item::Ticket(_) => break,
                Item::Born(told) => (told, true),
                Item::Perhaps(told) => (told, false),
                Item::Put { .. } | Item::Nothing => continue,
            };
            let number = match decided.next_if(|decided| decided.offset == offset) {
                Some(decided) => decided.number,
                None if is_certain => 0,
                None => continue,
            };
            let (made, _) = maker.of(told, ticket);
            let context = self.of_stacks[stack_of(&made, piece.base).0 as usize];
            walk.born(&made, id(told.object(), number), ThreadId(piece.of), context);
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the trace has changed while it was read")
}

/// A walk through the objects of a group, which are shown to `see`.
struct Walk<S> {
    see: S,
    now: Before,
    /// The pieces of the group so far.
    unpacked: FxHashMap<u32, Arc<Vec<u8>>>,
}

impl<S: FnMut(&Born)> Walk<S> {
    #[inline]
    fn born(&mut self, made: &Made, object: ObjectId, thread: ThreadId, context: ContextId) {
        let Before { births: number, bytes: before, time } = self.now;
        // What was there before tracing does not count.
        let bytes = before + if made.kind == AllocKind::Initial { 0 } else { made.size };
        (self.now.births, self.now.bytes) = (number + 1, bytes);
        (self.see)(&Born { number, object, made: *made, thread, context, before, bytes, time });
    }
}

/// Rows that are being made.
struct Making<'f> {
    rows: Rows,
    columns: Columns,
    /// If they are wanted, and of which objects.
    fates: Option<InOrder<'f>>,
    objects: Vec<ObjectId>,
}

impl Making<'_> {
    #[inline]
    fn add(&mut self, born: &Born) {
        let Self { rows, columns, fates, objects } = self;
        let &Born { object, made, .. } = born;
        push(rows, *columns, born);
        if columns.has(Columns::OBJECT) {
            rows.object.push(object);
        }
        if columns.has(Columns::SIZE) {
            rows.size.push(made.size);
        }
        if columns.has(Columns::LENGTH) {
            rows.length.push(made.length);
        }
        if fates.is_some() {
            objects.push(object);
        }
    }

    /// That many objects are to come.
    fn reserve(&mut self, len: usize) {
        let Self { rows, columns, fates, objects } = self;
        macro_rules! reserve {
            ($($name:ident: $column:ident,)*) => {
                $(if columns.has(Columns::$name) {
                    rows.$column.reserve_exact(len);
                })*
            };
        }
        reserve! {
            NUMBER: number,
            OBJECT: object,
            CLASS: class,
            KIND: kind,
            SIZE: size,
            LENGTH: length,
            SITE: site,
            CONTEXT: context,
            THREAD: thread,
            BIRTH_TICK: birth_tick,
            BIRTH_BYTES: birth_bytes,
            BIRTH_NANOS: birth_nanos,
        }
        if fates.is_some() {
            objects.reserve_exact(len);
        }
    }

    /// The rows, of which the first object has that number.
    fn finish(self, first: u64) -> Rows {
        let Self { mut rows, columns, fates, objects } = self;
        if columns.has(Columns::FATE) {
            rows.fate = match fates {
                Some(mut fates) => fates.all(first, &objects),
                None => vec![None; rows.len],
            };
        }
        untold(&mut rows, columns);
        rows
    }
}

impl Groups for MadeRows {
    fn len(&self) -> usize {
        self.groups.len()
    }

    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        let (_, ticks) = self.extent(&self.groups[group]);
        Ok(*ticks.start() <= tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        let (numbers, ticks) = self.extent(&self.groups[group]);
        Ok(match key {
            Key::Number if numbers.is_empty() => RangeInclusive::new(1, 0),
            Key::Number => numbers.start..=numbers.end - 1,
            Key::BirthTick => ticks,
            Key::DeathTick | Key::DeathRecord => RangeInclusive::new(1, 0),
        })
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        let group = &self.groups[group];
        let (numbers, _) = self.extent(group);
        let mut making = Making { rows: Rows::default(), columns, fates: self.fates_for(columns), objects: Vec::new() };
        making.reserve((numbers.end - numbers.start) as usize);
        self.each(group, |born| making.add(born))?;
        Ok(making.finish(numbers.start))
    }

    fn joined(&self) -> Joined<'_> {
        Box::new(|group, columns| {
            if columns.has_any(NEVER_JOINED) {
                return self.read(group, columns);
            }
            let mut joining = Joining::new(columns, self.fates_for(columns), &self.end, self.bins);
            self.each(&self.groups[group], |born| joining.add(born))?;
            Ok(joining.finish())
        })
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        Ok(Vec::new())
    }
}
