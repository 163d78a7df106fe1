//! Second look at a block of events, whose stack at the beginning is known now: which objects each of its parts names,
//! what it makes and stores, and on which frames.
//!
//! A part is a run of events of one thread without events of other threads in between. Whatever is known of it here is
//! relative to it: steps and ticks are counted from its beginning, objects are numbered in the order in which it names
//! them.

use std::sync::Arc;

use et_format::Wall;
use et_format::event::{self, Event, ObjectHash, Ticket};
use et_names::{FieldId, FieldRefId, MethodId, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::oracle::Oracle;
use super::stacks::{Mounted, Owner};
use crate::classes::ClassIndex;
use crate::observed::usage::MakingChange;
use crate::record::{Alloc, AllocKind, Clock, RecordKind, Slot, Totals};
use crate::resolve::allocs::{Allocs, Use};
use crate::resolve::recent::Recent;
use crate::resolve::thread::{Action, Item, Reader, Shared, StartedFrame, Subject};
use crate::resolve::{Anomalies, Lost};
use crate::trace::Trace;

/// Bytes of events for each frame, object named, allocation and store, about.
const BYTES_PER_FRAME: usize = 24;
const BYTES_PER_NAMED: usize = 96;
const BYTES_PER_BIRTH: usize = 256;
const BYTES_PER_PUT: usize = 128;
/// No frame, object, step or tick.
pub const NONE: u32 = u32::MAX;

/// An object that a part names.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its hash, or the id of an object that was made up.
    pub key: u64,
    /// The last step that certainly names it; `NONE` if none does.
    pub last: Stamp,
    /// The clock at the last use; `NONE` if there is none.
    pub used: u32,
    /// The outermost frame that had it in hand and, when that was last looked at, was still running.
    pub holder: u32,
    /// Its index in [`Part::births`]; `NONE` if it is older.
    pub birth: u32,
    /// What the part does to how many constructors run on it.
    pub making: MakingChange,
    pub flags: u8,
}

impl Named {
    /// A frame on the stack is called on it, so it is known.
    pub const BY_STACK: u8 = 1;
    /// It was taken to be unknown before.
    pub const UNKNOWN: u8 = 2;
    /// The VM holds it to the end of the trace.
    pub const HELD: u8 = 4;
    /// It is the origin or target of a store into a slot that may be weak.
    pub const WEAK: u8 = 8;
    /// It may be named later.
    pub const LATER: u8 = 16;
    /// A frame that is still running at the end of the part is called on it, or it is in flight there.
    pub const ON_STACK: u8 = 32;

    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A step of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub step: u32,
    /// The clock after it.
    pub tick: u32,
    /// The frame that it happened in; `NONE` if no method ran.
    pub frame: u32,
    /// The kind of record; [`Stamp::HOLD`] if it is none.
    pub kind: u8,
}

impl Stamp {
    pub const NEVER: Self = Self { step: NONE, tick: 0, frame: NONE, kind: 0 };
    /// The VM held an object until then.
    pub const HOLD: u8 = u8::MAX;

    pub fn is_never(&self) -> bool {
        self.step == NONE
    }
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    pub alloc: Alloc,
    pub step: u32,
    pub tick: u32,
    pub frame: u32,
    /// Bytes allocated in the part, this object included.
    pub bytes: u64,
}

/// A store. With `if_changed` there is a record only if the target was another one.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    pub at: Stamp,
    /// `NONE` for a static field.
    pub origin: u32,
    /// `NONE` for null.
    pub target: u32,
    pub slot: Slot,
    pub if_changed: bool,
    /// Whether the slot may be weak.
    pub is_weak: bool,
}

/// A frame that was entered in the part.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub method: MethodId,
    /// The frame that it was called from.
    pub caller: u32,
    /// Its receiver; `NONE` if there is none.
    pub receiver: u32,
    /// The step that left it; `NONE` if none did.
    pub left: u32,
    pub is_constructor: bool,
    /// Number of entries of methods in the part up to its own; [`Frame::LEAF`] for leaf methods, which are entered and left at
    /// once.
    pub entries: u32,
}

/// An exception is thrown, leaves a method, or is handled.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub kind: RecordKind,
    pub method: MethodId,
    pub exception: u32,
}

/// Everything that happened in a part.
#[derive(Debug, Default)]
pub struct Part {
    pub thread: u32,
    /// The tickets of its first events, and of its last.
    pub first_ticket: Ticket,
    pub ticket: u64,
    /// Number of steps, including stores that may turn out to be none.
    pub steps: u32,
    /// The clock relative to the part: the number of its records that advance it. [`Part::advance`] tells by how much.
    pub ticks: u32,
    /// What advances the clock.
    pub clock: Clock,
    /// Steps that are no records, in ascending order, and the threads for which the VM held an object until then.
    pub holds: Vec<(u32, u32)>,
    pub totals: Totals,
    pub named: Vec<Named>,
    pub births: Vec<Birth>,
    pub puts: Vec<Put>,
    /// Number of frames on the stack at the beginning; they have the numbers from 0, outermost first.
    pub base: u32,
    /// The frames entered in the part; the first has the number `base`.
    pub frames: Vec<Frame>,
    /// Steps that left frames which were there at the beginning, innermost frame first.
    pub left: Vec<u32>,
    /// The innermost frame at the end.
    pub top: u32,
    /// Number of entries of methods.
    pub entries: u32,
    /// The exception in flight at the end, `NONE` for none; `None` if it is the one at the beginning.
    pub in_flight: Option<u32>,
    /// What exceptions did, in order.
    pub flights: Vec<Flight>,
    /// Since when the chunk of events is from which the steps from that one on come.
    pub times: Vec<(u32, Wall)>,
    pub anomalies: Anomalies,
    pub lost: Lost,
}

impl Part {
    /// The innermost frame of the part's thread at its beginning.
    fn top_at_first(&self) -> u32 {
        self.base.checked_sub(1).unwrap_or(NONE)
    }

    /// A frame entered in the part; `None` if it was there at the beginning.
    #[inline]
    pub fn frame(&self, frame: u32) -> Option<&Frame> {
        self.frames.get(frame.checked_sub(self.base)? as usize)
    }

    /// The frames entered in the part on the stack whose innermost frame is `top`, with their numbers, outermost first.
    pub fn entered(&self, top: u32) -> Vec<(u32, Frame)> {
        let mut entered = Vec::new();
        let mut at = top;
        while let Some(frame) = self.frame(at) {
            entered.push((at, *frame));
            at = frame.caller;
        }
        entered.reverse();
        entered
    }

    /// The step that left a frame; `NONE` if none did.
    #[inline]
    pub fn left_at(&self, frame: u32) -> u32 {
        match self.frame(frame) {
            Some(entered) => entered.left,
            None => self.left.get((self.base - 1 - frame) as usize).copied().unwrap_or(NONE),
        }
    }

    /// Whether there is a frame, and it is still active at the end of the part.
    #[inline]
    pub fn runs_on(&self, frame: u32) -> bool {
        frame != NONE && self.left_at(frame) == NONE
    }

    /// By how much the clock has advanced since the beginning of the part, from the clock relative to the part.
    #[inline]
    pub fn advance(&self, tick: u32) -> u64 {
        match (self.clock, tick.checked_sub(1)) {
            (Clock::Bytes, Some(last)) => self.births[last as usize].bytes,
            _ => tick.into(),
        }
    }

    /// The bytes allocated up to that step.
    pub fn bytes_at(&self, step: u32) -> u64 {
        let before = self.births.partition_point(|birth| birth.step <= step);
        before.checked_sub(1).map_or(0, |last| self.births[last].bytes)
    }
}

/// Where a part ends.
#[derive(Clone, Debug)]
pub enum Bound {
    /// Before the events of this ticket.
    Ticket(Ticket),
    /// Where the thread goes on with another stack.
    Switch(Arc<Mounted>),
    /// With the group.
    End,
}

/// A block of events, or several if a constructor waits for its object at the end of one.
#[derive(Clone, Debug)]
pub struct Group {
    /// Index in [`Trace::threads`].
    pub source: usize,
    pub thread: u32,
    /// Number and events of each piece.
    pub pieces: Vec<(usize, Arc<Vec<u8>>)>,
    /// The stack at the beginning: whose it is, and its frames, outermost first.
    pub owner: Owner,
    pub frames: Vec<StartedFrame>,
    pub in_flight: ObjectHash,
    pub made_up: u32,
    /// The ticket at the beginning.
    pub ticket: Ticket,
    /// Whether the thread begins here, with initial frames.
    pub begins: bool,
    /// Whether the thread ends here.
    pub ends: bool,
}

/// An open-addressing table from hashes to numbers of objects; emptied for each part.
#[derive(Debug)]
struct Table {
    /// Hash in the high half, number + 1 in the low half; 0 if free.
    entries: Vec<u64>,
    used: Vec<u32>,
}

const LEAST_ENTRIES: usize = 1 << 13;

impl Default for Table {
    fn default() -> Self {
        Self { entries: vec![0; LEAST_ENTRIES], used: Vec::new() }
    }
}

impl Table {
    fn clear(&mut self) {
        if self.entries.len() > 16 * LEAST_ENTRIES {
            *self = Self::default();
            return;
        }
        self.used.drain(..).for_each(|place| self.entries[place as usize] = 0);
    }

    #[inline]
    fn place(&self, hash: u32) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = (hash.wrapping_mul(0x9e37_79b1) >> 8) as usize & mask;
        loop {
            let entry = self.entries[at];
            if entry == 0 || (entry >> 32) as u32 == hash {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn get(&self, hash: u32) -> Option<u32> {
        (self.entries[self.place(hash)] as u32).checked_sub(1)
    }

    #[cold]
    fn put(&mut self, hash: u32, number: u32) {
        let place = self.place(hash);
        if self.entries[place] == 0 {
            self.used.push(place as u32);
        }
        self.entries[place] = u64::from(hash) << 32 | u64::from(number + 1);
        if self.used.len() * 2 > self.entries.len() {
            let old = std::mem::take(&mut self.entries);
            self.entries = vec![0; old.len() * 2];
            self.used.clear();
            for entry in old.into_iter().filter(|entry| *entry != 0) {
                let place = self.place((entry >> 32) as u32);
                self.entries[place] = entry;
                self.used.push(place as u32);
            }
        }
    }
}

/// What is needed to walk through groups, one after the other.
#[derive(Debug)]
pub struct Walker<'a> {
    trace: &'a Trace,
    pub shared: Shared<'a>,
    allocs: Allocs<'a>,
    /// Which methods that were entered are constructors.
    methods: Recent<bool>,
    /// Methods entered.
    pub ran: FxHashSet<MethodId>,
    table: Table,
    made_up: FxHashMap<u64, u32>,
    referent: Option<FieldId>,
    clock: Clock,
}

impl<'a> Walker<'a> {
    pub fn new(trace: &'a Trace, referent: Option<FieldId>) -> Self {
        Self {
            trace,
            shared: Shared::for_stacks_kept_elsewhere(&trace.file, &trace.names, &trace.classes),
            allocs: Allocs::new(trace),
            methods: Recent::default(),
            ran: FxHashSet::default(),
            table: Table::default(),
            made_up: FxHashMap::default(),
            referent,
            clock: Clock::default().of(trace.events),
        }
    }
}

impl<'a> Walker<'a> {
    /// What there is behind the last events: mirrors of classes, and what the VM held.
    pub fn rest(&mut self, oracle: &mut impl Oracle) -> Part {
        self.table.clear();
        self.made_up.clear();
        let mut open = Vec::new();
        let part = Part { top: NONE, clock: self.clock, ..Part::default() };
        let mut making =
            Making { walker: self, oracle, open: &mut open, part, top: NONE, below: 0, bytes: 0, ticket: Ticket(0) };
        making.segment(Ticket(u64::MAX));
        making.catch_up();
        making.finish()
    }
}

/// A walk through a group, which can be continued part by part.
#[derive(Debug)]
pub struct Walk {
    group: Arc<Group>,
    reader: Reader,
    /// The current piece, and where in its events the walk is.
    piece: usize,
    at: usize,
    /// Whether the current piece has been announced.
    announced: bool,
    ended: bool,
    /// Whether another stack is mounted elsewhere than was planned.
    is_lost: bool,
    /// The thread of the records.
    of: u32,
    ticket: Ticket,
    wall: Option<Wall>,
    /// The stack as of the last action: methods and receivers, outermost first.
    open: Vec<(MethodId, u64)>,
}

/// Why a part ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Bound,
    Switch,
    End,
}

impl Walk {
    pub fn new(group: Arc<Group>, trace: &Trace) -> Self {
        let Group { thread, ticket, in_flight, made_up, .. } = *group;
        let reader = if group.begins {
            let frames = trace.threads[group.source].frames.as_slice();
            Reader::new(thread, ticket, frames)
        } else {
            let owner = group.owner.continuation;
            Reader::resume(thread, ticket, owner, group.frames.iter().copied(), in_flight, made_up)
        };
        let open = group.frames.iter().map(|frame| (frame.method, frame.receiver.0)).collect();
        let of = group.owner.thread;
        Self {
            reader,
            piece: 0,
            at: 0,
            announced: false,
            ended: false,
            is_lost: false,
            of,
            ticket,
            wall: None,
            open,
            group,
        }
    }

    /// More blocks have been added to the group.
    pub fn go_on_in(&mut self, group: &Arc<Group>) {
        self.group = Arc::clone(group);
    }

    /// Whether it has come across a switch that was not planned, or not come to one that was.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Goes on with another stack.
    fn mount(&mut self, Mounted { owner, stack }: &Mounted) {
        let (_, made_up) = self.reader.state();
        let frames = stack.frames.iter().copied();
        self.reader =
            Reader::resume(self.group.thread, self.ticket, owner.continuation, frames, stack.in_flight, made_up);
        self.open.clear();
        self.open.extend(stack.frames.iter().map(|frame| (frame.method, frame.receiver.0)));
        self.of = owner.thread;
    }

    /// Whether all parts have been made.
    pub fn is_done(&self) -> bool {
        self.ended
    }

    /// Makes the next part.
    pub fn part<'a, O: Oracle>(&mut self, until: &Bound, walker: &mut Walker<'a>, oracle: &mut O) -> Part {
        let bound = match until {
            Bound::Ticket(ticket) => Some(*ticket),
            Bound::Switch(_) | Bound::End => None,
        };
        walker.table.clear();
        walker.made_up.clear();
        let base = self.open.len() as u32;
        let mut part =
            Part { thread: self.of, first_ticket: self.ticket, base, clock: walker.clock, ..Part::default() };
        if matches!(until, Bound::End) {
            // Most groups are one part.
            let bytes: usize = self.group.pieces[self.piece.min(self.group.pieces.len())..]
                .iter()
                .map(|(_, events)| events.len())
                .sum();
            part.frames.reserve(bytes / BYTES_PER_FRAME);
            part.named.reserve(bytes / BYTES_PER_NAMED);
            part.births.reserve(bytes / BYTES_PER_BIRTH);
            part.puts.reserve(bytes / BYTES_PER_PUT);
        }
        let top = part.top_at_first();
        let mut making =
            Making { walker, oracle, open: &mut self.open, part, top, below: base, bytes: 0, ticket: self.ticket };
        making.segment(self.ticket);
        if let Some(wall) = self.wall {
            making.part.times.push((0, wall));
        }
        let stop = loop {
            // What waited may be settled now.
            if let Some(item) = self.reader.take_settled() {
                match item {
                    Item::Ticket(ticket) => {
                        if bound == Some(ticket) {
                            self.ticket = ticket;
                            break Stop::Bound;
                        }
                        making.segment(ticket);
                    }
                    Item::Do(Action::Piece(number)) => {
                        self.wall = piece_begins(making.walker.trace, &self.group, number as usize, &mut making.part);
                    }
                    Item::Do(action) => making.act(action),
                    Item::Nothing | Item::Room | Item::Pending => {}
                }
                continue;
            }
            if self.reader.unmounted().is_some() {
                break Stop::Switch;
            }
            if self.ended {
                break Stop::End;
            }
            let Some((number, bytes)) = self.group.pieces.get(self.piece) else {
                self.ended = true;
                if self.group.ends {
                    self.reader.end(&making.walker.shared);
                }
                continue;
            };
            if !self.announced {
                self.announced = true;
                self.at = 0;
                self.reader.piece(*number as u32);
                continue;
            }
            let mut stop = None;
            loop {
                match event::decode(&bytes[self.at..]) {
                    Ok(Some((event, len))) => {
                        self.at += len;
                        if making.at_once(&event, &mut self.reader) {
                            continue;
                        }
                        match self.reader.read(event, &mut making.walker.shared) {
                            Some(Item::Do(action)) => making.act(action),
                            Some(Item::Ticket(ticket)) => {
                                if bound == Some(ticket) {
                                    self.ticket = ticket;
                                    stop = Some(Stop::Bound);
                                    break;
                                }
                                making.segment(ticket);
                            }
                            _ => {
                                if self.reader.is_pending() || self.reader.unmounted().is_some() {
                                    break;
                                }
                            }
                        }
                    }
                    Ok(None) => {
                        (self.piece, self.announced) = (self.piece + 1, false);
                        break;
                    }
                    Err(_) => {
                        let shared = &mut making.walker.shared;
                        shared.lost.undecodable_pieces += 1;
                        shared.lost.undecodable_bytes += (bytes.len() - self.at) as u64;
                        (self.piece, self.announced) = (self.piece + 1, false);
                        break;
                    }
                }
            }
            if let Some(stop) = stop {
                break stop;
            }
        };
        if stop != Stop::Bound {
            self.ticket = making.ticket;
        }
        let part = making.finish();
        match (stop, until) {
            (Stop::Switch, Bound::Switch(mounted)) => self.mount(mounted),
            (Stop::Bound, Bound::Ticket(_)) | (Stop::End, Bound::End) => {}
            _ => self.is_lost = true,
        }
        part
    }
}

/// The following actions come from this piece. Returns when it was filled.
fn piece_begins(trace: &Trace, group: &Group, number: usize, part: &mut Part) -> Option<Wall> {
    let events = trace.file.thread(group.thread)?;
    let wall = trace.file.wall(events, number)?;
    part.times.push((part.steps, wall));
    Some(wall)
}

/// A part that is being made.
struct Making<'w, 'a, O> {
    walker: &'w mut Walker<'a>,
    oracle: &'w mut O,
    open: &'w mut Vec<(MethodId, u64)>,
    part: Part,
    /// The innermost frame.
    top: u32,
    /// Number of frames left of those that were there at the beginning.
    below: u32,
    bytes: u64,
    ticket: Ticket,
}

impl<O: Oracle> Making<'_, '_, O> {
    fn anomalies(&mut self) -> &mut Anomalies {
        &mut self.walker.shared.anomalies
    }

    /// Events from this ticket on follow.
    fn segment(&mut self, ticket: Ticket) {
        // Mirrors are from before it.
        self.ticket = self.oracle.segment(ticket);
        while let Some(class) = self.oracle.next_mirror(ticket) {
            let hash = self.walker.trace.classes.get(class).record.class;
            if !self.is_known(hash) {
                self.mirror(class, 0);
            }
        }
        self.ticket = ticket;
    }

    fn mirror(&mut self, class: ClassIndex, thread: u32) -> u32 {
        let alloc = self.walker.allocs.mirror(class);
        let hash = self.walker.trace.classes.get(class).record.class;
        self.oracle.saw_mirror(hash);
        self.born(hash.0.into(), alloc, thread, Named::UNKNOWN | Named::HELD)
    }

    /// Whether an object with this hash has been seen before.
    fn is_known(&mut self, hash: ObjectHash) -> bool {
        hash.is_null() || self.walker.table.get(hash.0).is_some() || self.oracle.knows(hash)
    }

    /// What the VM holds until now.
    #[inline]
    fn holds(&mut self) {
        if O::IS_EXACT && self.oracle.is_due(self.ticket) {
            self.catch_up();
        }
    }

    #[cold]
    fn catch_up(&mut self) {
        while let Some((hash, is_step, thread)) = self.oracle.next_hold(self.ticket) {
            let number = match self.walker.table.get(hash.0) {
                Some(number) => number,
                None if self.oracle.knows(hash) => self.older(hash.0.into()),
                None => continue,
            };
            if !is_step {
                self.part.named[number as usize].flags |= Named::HELD;
                continue;
            }
            let step = self.part.steps;
            self.part.holds.push((step, thread));
            self.part.steps += 1;
            let named = &mut self.part.named[number as usize];
            named.last = Stamp { step, tick: self.part.ticks, frame: NONE, kind: Stamp::HOLD };
        }
    }

    /// An object that the part has not named yet.
    fn older(&mut self, key: u64) -> u32 {
        let number = self.part.named.len() as u32;
        self.part.named.push(Named {
            key,
            last: Stamp::NEVER,
            used: NONE,
            holder: NONE,
            birth: NONE,
            making: MakingChange::NONE,
            flags: 0,
        });
        match u32::try_from(key) {
            Ok(hash) => self.walker.table.put(hash, number),
            Err(_) => _ = self.walker.made_up.insert(key, number),
        }
        number
    }

    /// The object with a hash; if it is unknown, an allocation is made up. `NONE` for null.
    #[inline]
    fn object(&mut self, hash: ObjectHash, usage: Use) -> u32 {
        if hash.is_null() {
            return NONE;
        }
        match self.walker.table.get(hash.0) {
            Some(number) => number,
            None => self.first(hash, usage),
        }
    }

    #[inline(never)]
    fn first(&mut self, hash: ObjectHash, usage: Use) -> u32 {
        if self.oracle.knows(hash) {
            return self.older(hash.0.into());
        }
        let thread = self.part.thread;
        if let Some(class) = self.walker.trace.classes.at(hash, self.ticket) {
            return self.mirror(class, thread);
        }
        let alloc = self.walker.allocs.unknown(usage, &mut self.walker.shared.anomalies);
        self.born(hash.0.into(), alloc, thread, Named::UNKNOWN)
    }

    fn subject(&mut self, subject: Subject, method: MethodId) -> u32 {
        if subject.0 & Subject::MADE_UP != 0 {
            return match self.walker.made_up.get(&subject.0) {
                Some(&number) => number,
                None => self.older(subject.0),
            };
        }
        self.object(ObjectHash(subject.0 as u32), Use::Receiver(method))
    }

    /// A record of this kind. Returns its step.
    #[inline]
    fn record(&mut self, kind: RecordKind) -> u32 {
        self.holds();
        let step = self.part.steps;
        self.part.steps += 1;
        self.part.totals.0[kind as usize] += 1;
        step
    }

    fn born(&mut self, key: u64, alloc: Alloc, thread: u32, flags: u8) -> u32 {
        let step = self.record(alloc.kind.record_kind());
        let (number, birth) = (self.part.named.len() as u32, self.part.births.len() as u32);
        let (tick, frame) = (self.part.ticks, self.top_of(thread));
        self.part.ticks += u32::from(self.part.clock == Clock::Bytes);
        let last = Stamp { step, tick: self.part.ticks, frame, kind: alloc.kind.record_kind() as u8 };
        self.part.named.push(Named { key, last, used: tick, holder: frame, birth, making: MakingChange::NONE, flags });
        if alloc.kind != AllocKind::Initial {
            self.bytes += alloc.size;
        }
        let alloc = Alloc { thread: crate::record::ThreadId(thread), ..alloc };
        self.part.births.push(Birth { alloc, step, tick, frame, bytes: self.bytes });
        match u32::try_from(key) {
            Ok(hash) => self.walker.table.put(hash, number),
            Err(_) => _ = self.walker.made_up.insert(key, number),
        }
        number
    }

    /// The innermost frame, as far as that thread is concerned.
    fn top_of(&self, thread: u32) -> u32 {
        if thread == self.part.thread { self.top } else { NONE }
    }

    /// A step uses the object, and the method has it in hand.
    #[inline]
    fn used(&mut self, number: u32, stamp: Stamp, now: u32, in_hand: u32) {
        let Some(named) = self.part.named.get_mut(number as usize) else { return };
        named.last = stamp;
        named.used = now;
        if named.holder != in_hand && in_hand != NONE {
            self.hold(number, in_hand);
        }
    }

    /// A step names the object without using it.
    #[inline]
    fn touched(&mut self, number: u32, stamp: Stamp) {
        let Some(named) = self.part.named.get_mut(number as usize) else { return };
        named.last = stamp;
        if named.holder != stamp.frame && stamp.frame != NONE {
            self.hold(number, stamp.frame);
        }
    }

    #[inline]
    fn hold(&mut self, number: u32, frame: u32) {
        let holder = self.part.named[number as usize].holder;
        if holder == NONE || !self.is_running(holder) {
            self.part.named[number as usize].holder = frame;
        }
    }

    #[inline]
    fn is_running(&self, frame: u32) -> bool {
        match self.part.frame(frame) {
            Some(entered) => entered.left == NONE,
            None => frame < self.below,
        }
    }

    /// The receiver of a method that is entered.
    #[inline]
    fn entered(&mut self, method: MethodId, receiver: Subject) -> (u32, bool) {
        let is_constructor = self.runs(method);
        if is_constructor.is_none() {
            self.anomalies().unknown_methods += 1;
        }
        (self.subject(receiver, method), is_constructor.unwrap_or(false))
    }

    /// Notes that a method is entered. Returns whether it is a constructor; `None` if it is not known.
    #[inline]
    fn runs(&mut self, method: MethodId) -> Option<bool> {
        let Walker { trace, methods, ran, .. } = &mut *self.walker;
        methods.get(method.0, || {
            ran.insert(method);
            trace.names.method_info(method).map(|info| info.is_constructor)
        })
    }

    /// What an event does to how many constructors run on an object.
    #[inline]
    fn make(&mut self, number: u32, change: impl FnOnce(&mut MakingChange)) {
        if let Some(named) = self.part.named.get_mut(number as usize) {
            change(&mut named.making);
        }
    }

    /// The innermost method, which there is, and whether it is a constructor.
    fn innermost_method(&mut self) -> (MethodId, bool) {
        match self.part.frame(self.top) {
            Some(frame) => (frame.method, frame.is_constructor),
            None => {
                let (method, _) = self.open[self.top as usize];
                (method, self.walker.shared.method_info(method).is_some_and(|info| info.is_constructor))
            }
        }
    }

    /// The innermost method is left: is it a constructor, it no longer runs on its receiver.
    #[inline]
    fn made(&mut self, receiver: u32) {
        if receiver != NONE && self.innermost_method().1 {
            self.make(receiver, MakingChange::end);
        }
    }

    /// Something happens to an exception in the innermost method.
    fn flight(&mut self, kind: RecordKind, exception: u32) {
        let (method, _) = self.innermost_method();
        self.part.flights.push(Flight { kind, method, exception });
    }

    #[inline]
    fn tick(&mut self) {
        self.part.ticks += u32::from(self.part.clock != Clock::Bytes);
    }

    /// The receiver of the innermost frame, which is left at that step.
    #[inline]
    fn leave(&mut self, step: u32) {
        match self.part.frames.get_mut(self.top.wrapping_sub(self.part.base) as usize) {
            Some(frame) if self.top >= self.part.base => {
                frame.left = step;
                self.top = frame.caller;
            }
            _ => {
                self.part.left.push(step);
                self.open.pop();
                self.below -= 1;
                self.top = self.below.checked_sub(1).unwrap_or(NONE);
            }
        }
    }

    /// Method and receiver of the innermost frame; `None` if there is none.
    #[inline]
    fn innermost(&mut self) -> Option<u32> {
        if self.top == NONE {
            self.anomalies().unmatched_exits += 1;
            return None;
        }
        if let Some(frame) = self.part.frame(self.top) {
            return Some(frame.receiver);
        }
        let (method, receiver) = self.open[self.top as usize];
        let number = self.subject(Subject(receiver), method);
        if let Some(named) = self.part.named.get_mut(number as usize) {
            named.flags |= Named::BY_STACK;
        }
        Some(number)
    }

    fn stamp(&self, step: u32, kind: RecordKind) -> Stamp {
        Stamp { step, tick: self.part.ticks, frame: self.top, kind: kind as u8 }
    }

    #[inline]
    fn enter(&mut self, method: MethodId, receiver: Subject) {
        let (receiver, is_constructor) = self.entered(method, receiver);
        self.make(receiver, |change| if is_constructor { change.begin() } else { change.used() });
        let step = self.record(RecordKind::Entry);
        let (now, caller) = (self.part.ticks, self.top);
        self.tick();
        self.top = self.part.base + self.part.frames.len() as u32;
        self.part.entries += 1;
        let entries = self.part.entries;
        self.part.frames.push(Frame { method, caller, receiver, left: NONE, is_constructor, entries });
        self.used(receiver, self.stamp(step, RecordKind::Entry), now, caller);
    }

    #[inline]
    fn leaf(&mut self, method: MethodId, receiver: Subject) {
        let (receiver, is_constructor) = self.entered(method, receiver);
        if !is_constructor {
            self.make(receiver, MakingChange::used);
        }
        self.record(RecordKind::Entry);
        let caller = self.top;
        self.part.entries += 1;
        self.tick();
        let step = self.record(RecordKind::Exit);
        let now = self.part.ticks;
        self.tick();
        if receiver != NONE {
            let frame = self.leaf_frame(method, caller, receiver, step);
            let stamp = Stamp { step, tick: self.part.ticks, frame, kind: RecordKind::Exit as u8 };
            self.used(receiver, stamp, now, caller);
        }
    }

    #[inline]
    fn exit(&mut self) {
        let Some(receiver) = self.innermost() else { return };
        self.made(receiver);
        let step = self.record(RecordKind::Exit);
        let (now, frame) = (self.part.ticks, self.top);
        self.tick();
        self.leave(step);
        let stamp = Stamp { step, tick: self.part.ticks, frame, kind: RecordKind::Exit as u8 };
        self.used(receiver, stamp, now, NONE);
    }

    #[inline]
    fn put_field(&mut self, field: FieldRefId, origin: ObjectHash, target: ObjectHash, if_changed: bool) {
        let origin = self.object(origin, Use::FieldOrigin(field));
        let target = self.object(target, Use::FieldTarget(field));
        let field = self.field(field);
        self.put(origin, Slot::Field(field), target, if_changed);
    }

    #[inline]
    fn put_static(&mut self, field: FieldRefId, target: ObjectHash) {
        let target = self.object(target, Use::FieldTarget(field));
        let field = self.field(field);
        self.put(NONE, Slot::Field(field), target, false);
    }

    #[inline]
    fn put_element(&mut self, index: u32, array: ObjectHash, target: ObjectHash, if_changed: bool) {
        let origin = self.object(array, Use::Array);
        let target = self.object(target, Use::Any);
        self.put(origin, Slot::Element(index), target, if_changed);
    }

    #[inline]
    fn new_object(&mut self, site: SiteId, object: ObjectHash, class: ObjectHash, known: bool) {
        if !known || !self.is_known(object) {
            let (now, anomalies) = (self.ticket, &mut self.walker.shared.anomalies);
            let alloc = self.walker.allocs.new_object(site, class, now, anomalies);
            self.born(object.0.into(), alloc, self.part.thread, 0);
        } else if self.walker.table.get(object.0).is_none() {
            self.older(object.0.into());
        }
    }

    #[inline]
    fn new_array(&mut self, depth: u8, site: SiteId, object: ObjectHash, length: u32) {
        let alloc = self.walker.allocs.new_array(depth, site, length, &mut self.walker.shared.anomalies);
        self.born(object.0.into(), alloc, self.part.thread, 0);
    }

    /// Handles an event that needs nothing but to be handled, as most do. Returns whether it was one. All others become actions, which
    /// cost more to pass on than these to handle: they are stored in parts and loaded as a whole.
    ///
    /// `exits` and `passes` change the stack if, and only if, they hold: they must be the last condition of their arms.
    #[inline(always)]
    fn at_once(&mut self, event: &Event<'_>, reader: &mut Reader) -> bool {
        if reader.is_pending() {
            return false;
        }
        match *event {
            Event::Exit { method } if reader.exits(method) => self.exit(),
            Event::EntryOn { method, receiver } => {
                let receiver = Subject::hash(receiver);
                reader.enters(method, receiver);
                self.enter(method, receiver);
            }
            Event::Entry { method } if !reader.constructs(method, &mut self.walker.shared) => {
                reader.enters(method, Subject::NONE);
                self.enter(method, Subject::NONE);
            }
            Event::Leaf { method, receiver } if reader.passes(method) => self.leaf(method, Subject::hash(receiver)),
            Event::PutField { field, origin, target, if_changed } => self.put_field(field, origin, target, if_changed),
            Event::PutStatic { field, target } => self.put_static(field, target),
            Event::PutElement { index, array, target } => self.put_element(index, array, target, false),
            // Nothing waits, so no constructor waits for this object.
            Event::New { site, object, class, known } if !object.is_null() => {
                self.new_object(site, object, class, known);
            }
            Event::NewArray { depth, site, object, length } if !object.is_null() => {
                self.new_array(depth, site, object, length);
            }
            _ => return false,
        }
        true
    }

    #[inline]
    fn act(&mut self, action: Action) {
        match action {
            Action::Enter { method, receiver } => self.enter(method, receiver),
            Action::Leaf { method, receiver } => self.leaf(method, receiver),
            Action::Leave => self.exit(),
            Action::LeaveThrow { exception } => {
                let exception = self.object(exception, Use::Exception);
                let Some(receiver) = self.innermost() else { return };
                self.made(receiver);
                self.flight(RecordKind::ExitThrow, exception);
                let step = self.record(RecordKind::ExitThrow);
                let (now, frame) = (self.part.ticks, self.top);
                self.tick();
                self.leave(step);
                let stamp = Stamp { step, tick: self.part.ticks, frame, kind: RecordKind::ExitThrow as u8 };
                self.used(receiver, stamp, now, NONE);
                self.used(exception, stamp, now, NONE);
                self.part.in_flight = Some(if self.top == NONE { NONE } else { exception });
            }
            Action::Throw { exception } => {
                let exception = self.object(exception, Use::Exception);
                let Some(receiver) = self.innermost() else { return };
                self.make(exception, MakingChange::flies);
                self.flight(RecordKind::Throw, exception);
                let step = self.record(RecordKind::Throw);
                let (stamp, now) = (self.stamp(step, RecordKind::Throw), self.part.ticks);
                self.used(receiver, stamp, now, self.top);
                self.used(exception, stamp, now, self.top);
                self.part.in_flight = Some(exception);
            }
            Action::Handle { exception } => {
                let exception = self.object(exception, Use::Exception);
                let Some(receiver) = self.innermost() else { return };
                self.make(exception, MakingChange::flies);
                self.flight(RecordKind::Handle, exception);
                let step = self.record(RecordKind::Handle);
                let (stamp, now) = (self.stamp(step, RecordKind::Handle), self.part.ticks);
                self.used(receiver, stamp, now, self.top);
                self.used(exception, stamp, now, self.top);
                self.part.in_flight = Some(NONE);
            }
            Action::Used { object } => {
                let object = self.object(object, Use::Any);
                if object != NONE {
                    self.make(object, MakingChange::used);
                    let step = self.record(RecordKind::Use);
                    self.used(object, self.stamp(step, RecordKind::Use), self.part.ticks, self.top);
                }
            }
            Action::PutField { field, origin, target, if_changed } => self.put_field(field, origin, target, if_changed),
            Action::PutStatic { field, target } => self.put_static(field, target),
            Action::PutElement { index, array, target, if_changed } => {
                self.put_element(index, array, target, if_changed);
            }
            Action::New { site, object, class, known } => self.new_object(site, object, class, known),
            Action::MadeUp { object, ty, site } => {
                let alloc = self.walker.allocs.made_up(ty, site, &mut self.walker.shared.anomalies);
                self.born(object.0, alloc, self.part.thread, 0);
            }
            Action::NewArray { depth, site, object, length } => self.new_array(depth, site, object, length),
            Action::Found { object, class, length } => {
                if !object.is_null() && self.walker.table.get(object.0).is_none() && self.oracle.is_new(object) {
                    self.sighted(AllocKind::Found, object, class, length, SiteId(0), Named::UNKNOWN);
                }
            }
            Action::Made { object, class, length, fresh, constant, site } => {
                let is_new = !object.is_null()
                    && (fresh || self.walker.table.get(object.0).is_none() && self.oracle.is_new(object));
                if is_new {
                    let held = if constant { Named::HELD } else { 0 };
                    let flags = held | if fresh { 0 } else { Named::UNKNOWN };
                    self.sighted(AllocKind::Vm, object, class, length, site, flags);
                }
            }
            // Neither occurs: a part ends where another stack is mounted, and the walk handles the pieces.
            Action::OnStack(_) | Action::Piece(_) => {}
        }
    }

    fn sighted(&mut self, kind: AllocKind, hash: ObjectHash, mirror: ObjectHash, length: i32, site: SiteId, flags: u8) {
        let (now, trace) = (self.ticket, self.walker.trace);
        let is_mirror = trace.classes.at(hash, now).is_some();
        let anomalies = &mut self.walker.shared.anomalies;
        let alloc = self.walker.allocs.sighted(kind, hash, mirror, length, now, anomalies);
        let flags = if is_mirror { flags | Named::HELD } else { flags };
        let (_, stack) = trace.stacks.split(site);
        self.born(hash.0.into(), Alloc { stack, ..alloc }, self.part.thread, flags);
    }

    /// A frame for a leaf method. Consecutive ones of a method in a frame share one.
    #[inline]
    fn leaf_frame(&mut self, method: MethodId, caller: u32, receiver: u32, step: u32) -> u32 {
        if let Some(last) = self.part.frames.last_mut()
            && last.is_leaf()
            && last.method == method
            && last.caller == caller
        {
            last.receiver = receiver;
            last.left = step;
        } else {
            let entries = Frame::LEAF;
            let is_constructor = false;
            self.part.frames.push(Frame { method, caller, receiver, left: step, is_constructor, entries });
        }
        self.part.base + self.part.frames.len() as u32 - 1
    }

    #[inline]
    fn field(&mut self, field: FieldRefId) -> FieldId {
        self.oracle.field(field, &mut self.walker.shared.anomalies)
    }

    fn put(&mut self, origin: u32, slot: Slot, target: u32, if_changed: bool) {
        let step = self.record(RecordKind::Update);
        let at = self.stamp(step, RecordKind::Update);
        if !if_changed {
            self.used(origin, at, self.part.ticks, self.top);
            self.touched(target, at);
        }
        let is_referent =
            matches!((slot, self.walker.referent), (Slot::Field(field), Some(referent)) if field == referent);
        let is_weak = is_referent && origin != NONE;
        if is_weak {
            for number in [origin, target] {
                if let Some(named) = self.part.named.get_mut(number as usize) {
                    named.flags |= Named::WEAK;
                }
            }
        }
        self.part.puts.push(Put { at, origin, target, slot, if_changed, is_weak });
    }

    /// Ends the part.
    fn finish(mut self) -> Part {
        // Frames that are still running, and what they hold.
        for (_, frame) in self.part.entered(self.top) {
            let receiver = self.part.named.get_mut(frame.receiver as usize);
            let key = receiver.map_or(0, |named| {
                named.flags |= Named::ON_STACK;
                named.key
            });
            self.open.push((frame.method, key));
        }
        if let Some(in_flight) = self.part.in_flight
            && let Some(named) = self.part.named.get_mut(in_flight as usize)
        {
            named.flags |= Named::ON_STACK;
        }
        self.part.top = self.top;
        self.part.ticket = self.ticket.0;
        let shared = &mut self.walker.shared;
        self.part.anomalies = std::mem::take(&mut shared.anomalies);
        self.part.lost = std::mem::take(&mut shared.lost);
        self.part
    }
}

impl Frame {
    /// In [`Frame::entries`], for a leaf method.
    pub const LEAF: u32 = u32::MAX;

    pub fn is_leaf(&self) -> bool {
        self.entries == Self::LEAF
    }
}
