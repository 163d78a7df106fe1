//! The order of the parts, and the stack at the beginning of each block: what the tickets and [`scan`](super::scan) tell
//! before any event is turned into a record.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use et_format::event::{self, Event, ObjectHash, Ticket};
use rustc_hash::FxHashMap;

use super::BlocksError;
use super::hands::Hands;
use super::pool::{Pool, Promise, Urgency};
use super::scan::{Mark, Run};
use super::stacks::{Mounted, Owner, Stack, Unmounted};
use super::walk::{Bound, Group};
use crate::classes::ClassIndex;
use crate::file::ThreadEvents;
use crate::resolve::thread::{Item, Reader, Shared, StartedFrame, Subject};
use crate::resolve::{Lost, first};
use crate::trace::Trace;

/// A block of a thread: index in [`Trace::threads`], number of the piece.
type PieceOf = (usize, usize);

/// A loaded and scanned block.
#[derive(Debug, Default)]
pub struct Loaded {
    pub events: Vec<u8>,
    pub runs: Vec<Run>,
    pub lost: Lost,
}

/// Loads and scans a block.
pub fn load(trace: &Trace, hands: &mut Hands<'_>, events: &ThreadEvents, piece: usize) -> Loaded {
    let mut loaded = Loaded::default();
    if trace.file.load_events(events, piece, &mut loaded.events).is_err() {
        loaded.events.clear();
        loaded.lost.undecodable_pieces += 1;
        loaded.lost.undecodable_bytes += trace.file.event_bytes(events, piece);
    }
    let from = trace.file.first_ticket_of(events, piece);
    loaded.runs = hands.scanner.scan(from, &loaded.events);
    loaded
}

/// Something that no event of the program shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// It was before the events of the first ticket after this one.
    pub ticket: Ticket,
    /// The class that was prepared; `None` if the VM holds something, which only a walk in order shows.
    pub mirror: Option<ClassIndex>,
}

/// A part in the order of all.
#[derive(Clone, Copy, Debug)]
pub struct PartOf {
    pub group: u64,
    /// Its index in [`Planned::bounds`].
    pub number: usize,
    pub is_last: bool,
}

/// A group that is being divided into parts, or that is.
#[derive(Debug)]
pub struct Planned {
    pub group: Arc<Group>,
    /// The bounds of its parts so far.
    pub bounds: Vec<Bound>,
    /// Whether the last part is among them.
    pub is_whole: bool,
    /// The classes whose mirrors the VM makes known in it, each with the ticket that they come before, in order.
    pub mirrors: Vec<(Ticket, ClassIndex)>,
    /// Whether something happens in it that only a walk in order shows.
    pub is_exact: bool,
    /// Its blocks, in the numbering of [`Literals`](super::literals::Literals).
    pub blocks: Vec<usize>,
    pub lost: Lost,
}

impl Planned {
    /// Bytes of its events.
    fn bytes(&self) -> usize {
        self.group.pieces.iter().map(|(_, events)| events.len()).sum()
    }
}

/// What the schedule comes across in the events of a group.
#[derive(Clone, Copy, Debug)]
enum Next {
    Mark(Mark),
    /// The stack that is mounted is left, and that of this continuation mounted. Usually the part ends there. But a constructor
    /// that waits has its thread read ahead, which then leaves the stack before its turn has come.
    Mount(ObjectHash),
    /// A part ends because another stack is mounted.
    Cut,
}

/// A thread of the trace.
struct Source<'a> {
    thread: u32,
    events: Option<&'a ThreadEvents>,
    next_piece: usize,
    /// The stack that is mounted, as it is behind the runs that were looked at, and the thread's own one while another is.
    owner: Owner,
    stack: Stack,
    own_stack: Stack,
    made_up: u32,
    /// The ticket of its turn, and that of the events behind the runs that were looked at.
    ticket: Ticket,
    ticket_ahead: Ticket,
    /// Whether initial frames are still to be entered.
    is_new: bool,
    /// The current group, and what comes next in it.
    group: Option<u64>,
    next: VecDeque<Next>,
    /// Stacks mounted at the cuts to come.
    mounted: VecDeque<Arc<Mounted>>,
    /// Runs of its blocks that were not looked at, with the index of the block in the group.
    runs: VecDeque<(usize, Run)>,
}

impl Source<'_> {
    fn has_pieces(&self) -> bool {
        self.next_piece < self.events.map_or(0, ThreadEvents::len)
    }

    /// Another stack is mounted behind the events so far. That shows where the last `ahead` tickets of them are still to come.
    fn switches_to(&mut self, continuation: ObjectHash, ahead: usize) {
        let is_ticket = |next: &Next| matches!(next, Next::Mark(Mark::Ticket(_)));
        let place = match ahead.checked_sub(1) {
            None => self.next.len(),
            Some(others) => {
                let tickets = self.next.iter().enumerate().rev().filter(|(_, next)| is_ticket(next));
                tickets.map(|(at, _)| at).nth(others).unwrap_or(0)
            }
        };
        self.next.insert(place, Next::Mount(continuation));
        self.next.push_back(Next::Cut);
    }

    fn saw(&mut self, mark: Mark) {
        if let Mark::Ticket(ticket) = mark {
            // Lower ones order nothing.
            if ticket <= self.ticket_ahead {
                return;
            }
            self.ticket_ahead = ticket;
        }
        self.next.push_back(Next::Mark(mark));
    }
}

/// Number of blocks that are scanned ahead: enough to keep the other threads busy while this one looks for dead objects.
const AHEAD: usize = 32;
/// Maximum number of bytes of events in memory: very many threads may wait in the middle of a block each.
const MOST_BYTES: usize = 1 << 30;

pub struct Schedule<'a> {
    trace: &'a Trace,
    sources: FxHashMap<usize, Source<'a>>,
    turns: BinaryHeap<Reverse<(Ticket, usize)>>,
    /// The source whose turn it is.
    current: Option<usize>,
    pub planned: FxHashMap<u64, Planned>,
    next_group: u64,
    /// All blocks in the order in which they will probably be needed.
    foreseen: VecDeque<PieceOf>,
    scans: FxHashMap<PieceOf, Promise<Loaded>>,
    /// What no event shows, in order.
    changes: VecDeque<Unseen>,
    /// Tickets before whose first events a part has to end, whatever other threads do.
    cuts: VecDeque<Ticket>,
    block_numbers: FxHashMap<PieceOf, usize>,
    unmounted: Unmounted,
    /// For stacks that only a complete reading tells.
    complete: Shared<'a>,
    pub read_again: u64,
    /// Bytes of events of the groups that are planned.
    bytes: usize,
}

impl std::fmt::Debug for Schedule<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schedule")
    }
}

impl<'a> Schedule<'a> {
    pub fn new(
        trace: &'a Trace,
        changes: VecDeque<Unseen>,
        cuts: VecDeque<Ticket>,
        block_numbers: FxHashMap<PieceOf, usize>,
    ) -> Self {
        let firsts = trace.threads.iter().enumerate().filter_map(|thread| first(trace, thread));
        let firsts = firsts.map(|(at, ticket)| Reverse((ticket, at)));
        let mut foreseen: Vec<(Ticket, u64, PieceOf)> = Vec::new();
        for (at, thread) in trace.threads.iter().enumerate() {
            let Some(events) = trace.file.thread(thread.index) else { continue };
            for piece in 0..events.len() {
                let filled = trace.file.filled(events, piece);
                foreseen.push((trace.file.first_ticket_of(events, piece), filled, (at, piece)));
            }
        }
        foreseen.sort_unstable();
        Self {
            trace,
            sources: FxHashMap::default(),
            turns: firsts.collect(),
            current: None,
            planned: FxHashMap::default(),
            next_group: 0,
            foreseen: foreseen.into_iter().map(|(.., piece)| piece).collect(),
            scans: FxHashMap::default(),
            changes,
            cuts,
            block_numbers,
            unmounted: Unmounted::default(),
            complete: Shared::for_stacks_kept_elsewhere(&trace.file, &trace.names, &trace.classes),
            read_again: 0,
            bytes: 0,
        }
    }

    /// All parts of a group have been handled.
    pub fn finish(&mut self, group: u64) -> Option<Planned> {
        let planned = self.planned.remove(&group)?;
        self.bytes -= planned.bytes();
        Some(planned)
    }

    /// Whether there are no more parts.
    pub fn is_done(&self) -> bool {
        self.current.is_none() && self.turns.is_empty()
    }

    /// Whether [`plan`](Self::plan) would wait for a block that is being scanned.
    pub fn waits(&self) -> bool {
        let next = || self.turns.peek().map(|Reverse((_, source))| *source);
        let Some(source) = self.current.or_else(next) else { return false };
        let piece = match self.sources.get(&source) {
            Some(state) if !state.next.is_empty() => return false,
            state => state.map_or(0, |state| state.next_piece),
        };
        self.scans.get(&(source, piece)).is_some_and(|scan| !scan.is_kept())
    }

    /// Plans ahead: appends the next parts to `order`, up to the end of a group or of a turn.
    pub fn plan(
        &mut self,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
        order: &mut VecDeque<PartOf>,
    ) -> Result<(), BlocksError> {
        let source = match self.current {
            Some(source) => source,
            None => {
                let Some(Reverse((ticket, source))) = self.turns.pop() else { return Ok(()) };
                self.current = Some(source);
                self.open(source, ticket);
                self.segment(source, ticket, pool, hands)?;
                source
            }
        };
        loop {
            let Some(state) = self.sources.get_mut(&source) else { return Ok(()) };
            let Some(group) = state.group else {
                // The last turn of a thread ends with its last group.
                self.sources.remove(&source);
                self.current = None;
                return Ok(());
            };
            match state.next.pop_front() {
                None => {
                    // The group ends, the turn does not.
                    self.bound(group, Bound::End, order);
                    return self.next_group(source, pool, hands);
                }
                Some(Next::Mark(Mark::New(object))) => self.unmounted.forget(object),
                Some(Next::Mark(Mark::Ticket(ticket))) if ticket <= state.ticket => {}
                Some(Next::Mark(Mark::Ticket(ticket))) => {
                    state.ticket = ticket;
                    let others_turn = self.turns.peek().is_some_and(|Reverse(next)| *next < (ticket, source));
                    if others_turn || self.is_cut(ticket) {
                        self.turns.push(Reverse((ticket, source)));
                        self.bound(group, Bound::Ticket(ticket), order);
                        self.current = None;
                        return Ok(());
                    }
                    self.segment(source, ticket, pool, hands)?;
                }
                Some(Next::Mount(continuation)) => self.mount(source, continuation, pool, hands)?,
                Some(Next::Cut) => {
                    if let Some(mounted) = state.mounted.pop_front() {
                        self.bound(group, Bound::Switch(mounted), order);
                    }
                }
            }
        }
    }

    /// Whether a part has to end before the first events of a ticket, the next of all.
    fn is_cut(&mut self, ticket: Ticket) -> bool {
        let due = self.cuts.partition_point(|cut| *cut <= ticket);
        self.cuts.drain(..due);
        due > 0
    }

    /// A part of the group ends.
    fn bound(&mut self, group: u64, bound: Bound, order: &mut VecDeque<PartOf>) {
        let Some(planned) = self.planned.get_mut(&group) else { return };
        planned.is_whole = matches!(bound, Bound::End);
        order.push_back(PartOf { group, number: planned.bounds.len(), is_last: planned.is_whole });
        planned.bounds.push(bound);
    }

    /// The source leaves its stack, and mounts that of a continuation.
    fn mount(
        &mut self,
        source: usize,
        continuation: ObjectHash,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
    ) -> Result<(), BlocksError> {
        let Some(state) = self.sources.get_mut(&source) else { return Ok(()) };
        let left = std::mem::take(&mut state.stack);
        match state.owner.continuation.is_null() {
            true => state.own_stack = left,
            false => self.unmounted.put(state.owner, left),
        }
        (state.owner, state.stack) = match continuation.is_null() {
            true => (Owner { continuation, thread: state.thread }, std::mem::take(&mut state.own_stack)),
            false => self.unmounted.take(continuation),
        };
        state.mounted.push_back(Arc::new(Mounted { owner: state.owner, stack: state.stack.clone() }));
        self.look_at_runs(source, pool, hands)
    }

    /// Events from this ticket on follow.
    fn segment(
        &mut self,
        source: usize,
        ticket: Ticket,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
    ) -> Result<(), BlocksError> {
        if self.sources.get(&source).is_some_and(|state| state.group.is_none()) {
            self.next_group(source, pool, hands)?;
        }
        while let Some(change) = self.changes.front().copied().filter(|change| change.ticket < ticket) {
            self.changes.pop_front();
            let group = self.sources.get(&source).and_then(|state| state.group);
            if let Some(planned) = group.and_then(|group| self.planned.get_mut(&group)) {
                match change.mirror {
                    Some(class) => planned.mirrors.push((change.ticket, class)),
                    None => planned.is_exact = true,
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, source: usize, ticket: Ticket) {
        let trace = self.trace;
        self.sources.entry(source).or_insert_with(|| {
            let thread = &trace.threads[source];
            let frames = thread.frames.iter().map(|frame| StartedFrame {
                method: frame.method,
                receiver: Subject::hash(frame.receiver),
                from_start: true,
            });
            Source {
                thread: thread.index,
                events: trace.file.thread(thread.index),
                next_piece: 0,
                owner: Owner { continuation: ObjectHash::NULL, thread: thread.index },
                stack: Stack { frames: frames.collect(), in_flight: ObjectHash::NULL },
                own_stack: Stack::default(),
                made_up: 0,
                ticket,
                ticket_ahead: ticket,
                is_new: true,
                group: None,
                next: VecDeque::new(),
                mounted: VecDeque::new(),
                runs: VecDeque::new(),
            }
        });
    }

    /// Begins the thread's next group, if there is one.
    fn next_group(
        &mut self,
        source: usize,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
    ) -> Result<(), BlocksError> {
        let Some(state) = self.sources.get_mut(&source) else { return Ok(()) };
        if !state.is_new && !state.has_pieces() {
            state.group = None;
            return Ok(());
        }
        let group = Group {
            source,
            thread: state.thread,
            pieces: Vec::new(),
            owner: state.owner,
            frames: if state.is_new { Vec::new() } else { state.stack.frames.clone() },
            in_flight: state.stack.in_flight,
            made_up: state.made_up,
            ticket: state.ticket,
            begins: state.is_new,
            ends: true,
        };
        state.group = Some(self.next_group);
        let planned = Planned {
            group: Arc::new(group),
            bounds: Vec::new(),
            is_whole: false,
            mirrors: Vec::new(),
            is_exact: false,
            blocks: Vec::new(),
            lost: Lost::default(),
        };
        self.planned.insert(self.next_group, planned);
        self.next_group += 1;
        self.add_piece(source, pool, hands)?;
        self.look_at_runs(source, pool, hands)
    }

    /// Adds the thread's next block to its group. False if there is none.
    fn add_piece(
        &mut self,
        source: usize,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
    ) -> Result<bool, BlocksError> {
        let Some(piece) = self.sources.get(&source).filter(|state| state.has_pieces()).map(|state| state.next_piece)
        else {
            return Ok(false);
        };
        let loaded = self.scanned((source, piece), pool, hands);
        let Some(state) = self.sources.get_mut(&source) else { return Ok(false) };
        state.next_piece += 1;
        let Some(planned) = state.group.and_then(|group| self.planned.get_mut(&group)) else { return Ok(false) };
        self.bytes += loaded.events.len();
        if self.bytes > MOST_BYTES {
            return Err(BlocksError::Crowded);
        }
        planned.lost.add(&loaded.lost);
        planned.blocks.extend(self.block_numbers.get(&(source, piece)));
        // A walk through its first parts may be under way.
        let group = Arc::make_mut(&mut planned.group);
        let index = group.pieces.len();
        group.pieces.push((piece, Arc::new(loaded.events)));
        group.ends = !state.has_pieces();
        state.runs.extend(loaded.runs.into_iter().map(|run| (index, run)));
        Ok(true)
    }

    /// Finds out what the events up to the next switch do to the stack that is mounted, or those up to the end of the block.
    fn look_at_runs(
        &mut self,
        source: usize,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
    ) -> Result<(), BlocksError> {
        let Some(state) = self.sources.get_mut(&source) else { return Ok(()) };
        while let Some((_, run)) = state.runs.front() {
            let before = state.stack.clone();
            let Stack { frames, in_flight } = &mut state.stack;
            let effect = run.effect.as_ref().filter(|_| !run.is_pending);
            if !effect.is_some_and(|effect| effect.apply(frames, in_flight)) {
                state.stack = before;
                return self.read_run(source, pool, hands);
            }
            let Some((_, run)) = state.runs.pop_front() else { break };
            state.is_new = false;
            run.marks.into_iter().for_each(|mark| state.saw(mark));
            match run.switch {
                // It is mounted already.
                Some(continuation) if continuation == state.owner.continuation => {}
                Some(continuation) => {
                    state.next.extend([Next::Mount(continuation), Next::Cut]);
                    break;
                }
                None => break,
            }
        }
        state.is_new = false;
        Ok(())
    }

    /// Reads the events up to the next switch completely, or those up to a block at whose end no constructor waits for its
    /// object.
    fn read_run(
        &mut self,
        source: usize,
        pool: &Pool<'a, Hands<'a>>,
        hands: &mut Hands<'a>,
    ) -> Result<(), BlocksError> {
        self.read_again += 1;
        let Some(state) = self.sources.get_mut(&source) else { return Ok(()) };
        let mut reader = if std::mem::take(&mut state.is_new) {
            Reader::new(state.thread, state.ticket, &self.trace.threads[source].frames)
        } else {
            let Stack { frames, in_flight } = &state.stack;
            let owner = state.owner.continuation;
            Reader::resume(state.thread, state.ticket_ahead, owner, frames.iter().copied(), *in_flight, state.made_up)
        };
        loop {
            let Some(state) = self.sources.get_mut(&source) else { return Ok(()) };
            let Some((piece, run)) = state.runs.pop_front() else { break };
            let Some(planned) = state.group.and_then(|group| self.planned.get(&group)) else { break };
            let bytes = &planned.group.pieces[piece].1[run.bytes.clone()];
            read(&mut reader, bytes, &mut self.complete);
            run.marks.into_iter().for_each(|mark| state.saw(mark));
            match run.switch {
                Some(owner) => {
                    let nothing: Option<Item> = reader.read(Event::Switch { owner }, &mut self.complete);
                    debug_assert!(nothing.is_none());
                    if reader.unmounted().is_some() {
                        state.switches_to(owner, reader.waiting_tickets());
                        break;
                    }
                }
                None if !reader.is_pending() => break,
                None if reader.waiting_items() > super::MOST_PENDING => return Err(BlocksError::Pending),
                None => {
                    if !self.add_piece(source, pool, hands)? {
                        break;
                    }
                }
            }
        }
        if let Some(state) = self.sources.get_mut(&source) {
            state.stack.frames = reader.frames().collect();
            (state.stack.in_flight, state.made_up) = reader.state();
        }
        Ok(())
    }

    /// A block that has been scanned, and has others scanned in the meantime.
    fn scanned(&mut self, piece: PieceOf, pool: &Pool<'a, Hands<'a>>, hands: &mut Hands<'a>) -> Loaded {
        let trace = self.trace;
        while self.scans.len() < AHEAD {
            let Some(next) = self.foreseen.pop_front() else { break };
            let Some(events) = trace.file.thread(trace.threads[next.0].index) else { continue };
            // Pieces that were needed before it was their turn have been scanned.
            if self.sources.get(&next.0).is_some_and(|source| source.next_piece > next.1) {
                continue;
            }
            let job = move |hands: &mut Hands<'a>| load(trace, hands, events, next.1);
            self.scans.insert(next, pool.add(Urgency::Scan, job));
        }
        match (self.scans.remove(&piece), trace.file.thread(trace.threads[piece.0].index)) {
            (Some(promise), _) => pool.wait(&promise, hands),
            (None, Some(events)) => load(trace, hands, events, piece.1),
            (None, None) => Loaded::default(),
        }
    }
}

/// Reads events only for what they do to the stack.
fn read(reader: &mut Reader, bytes: &[u8], shared: &mut Shared<'_>) {
    let mut at = 0;
    loop {
        while reader.take_settled().is_some() {}
        let Ok(Some((event, len))) = event::decode(&bytes[at..]) else { return };
        at += len;
        _ = reader.read(event, shared);
    }
}
