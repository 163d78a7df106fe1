//! The order of the parts, and the stack at the beginning of each block: what the tickets and [`scan`](super::scan) tell
//! before any event is turned into a record.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use et_format::event::{self, ObjectHash, Ticket};
use rustc_hash::FxHashMap;

use super::pool::{Pool, Promise, Urgency};
use super::scan::Scanned;
use super::walk::Group;
use super::{BlocksError, Hands};
use crate::file::ThreadEvents;
use crate::resolve::thread::{Reader, Shared, StartedFrame, Subject};
use crate::resolve::{Lost, first};
use crate::trace::Trace;

/// A block of a thread: index in [`Trace::threads`], number of the piece.
type PieceOf = (usize, usize);

/// A loaded and scanned block.
#[derive(Debug)]
pub struct Loaded {
    pub events: Vec<u8>,
    pub scanned: Scanned,
    pub lost: Lost,
}

/// Loads and scans a block.
pub fn load(trace: &Trace, hands: &mut Hands<'_>, events: &ThreadEvents, piece: usize) -> Loaded {
    let mut loaded = Loaded { events: Vec::new(), scanned: Scanned::default(), lost: Lost::default() };
    if trace.file.load_events(events, piece, &mut loaded.events).is_err() {
        loaded.events.clear();
        loaded.lost.undecodable_pieces += 1;
        loaded.lost.undecodable_bytes += trace.file.event_bytes(events, piece);
    }
    let from = trace.file.first_ticket_of(events, piece);
    loaded.scanned = hands.scanner.scan(from, std::iter::once(loaded.events.as_slice()));
    loaded
}

/// A part in the order of all.
#[derive(Clone, Copy, Debug)]
pub struct PartOf {
    pub group: u64,
    /// The ticket before whose events it ends; `None`: it ends with its group.
    pub bound: Option<Ticket>,
}

/// A group that is being divided into parts, or that is.
#[derive(Debug)]
pub struct Planned {
    pub group: Arc<Group>,
    /// The bounds of its parts so far.
    pub bounds: Vec<Option<Ticket>>,
    /// Whether the last part is among them.
    pub is_whole: bool,
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

/// A thread of the trace.
struct Source<'a> {
    thread: u32,
    events: Option<&'a ThreadEvents>,
    next_piece: usize,
    frames: Vec<StartedFrame>,
    in_flight: ObjectHash,
    made_up: u32,
    ticket: Ticket,
    has_begun: bool,
    /// The current group, its tickets, and which of them is next.
    group: Option<u64>,
    tickets: VecDeque<Ticket>,
}

/// Number of blocks that are scanned ahead.
const AHEAD: usize = 12;
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
    /// Tickets of what only a walk in order shows: classes, threads, loaders.
    changes: VecDeque<Ticket>,
    block_numbers: FxHashMap<PieceOf, usize>,
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
    pub fn new(trace: &'a Trace, changes: VecDeque<Ticket>, block_numbers: FxHashMap<PieceOf, usize>) -> Self {
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
            block_numbers,
            complete: Shared::new(&trace.file, &trace.names, &trace.classes),
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
            let Some(ticket) = state.tickets.pop_front() else {
                // The group ends, the turn does not.
                order.push_back(PartOf { group, bound: None });
                if let Some(planned) = self.planned.get_mut(&group) {
                    planned.bounds.push(None);
                    planned.is_whole = true;
                }
                self.next_group(source, pool, hands)?;
                return Ok(());
            };
            if ticket <= state.ticket {
                continue;
            }
            state.ticket = ticket;
            match self.turns.peek() {
                Some(Reverse(next)) if *next < (ticket, source) => {
                    self.turns.push(Reverse((ticket, source)));
                    order.push_back(PartOf { group, bound: Some(ticket) });
                    if let Some(planned) = self.planned.get_mut(&group) {
                        planned.bounds.push(Some(ticket));
                    }
                    self.current = None;
                    return Ok(());
                }
                _ => self.segment(source, ticket, pool, hands)?,
            }
        }
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
        while self.changes.front().is_some_and(|change| *change < ticket) {
            self.changes.pop_front();
            let group = self.sources.get(&source).and_then(|state| state.group);
            if let Some(planned) = group.and_then(|group| self.planned.get_mut(&group)) {
                planned.is_exact = true;
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
                frames: frames.collect(),
                in_flight: ObjectHash::NULL,
                made_up: 0,
                ticket,
                has_begun: false,
                group: None,
                tickets: VecDeque::new(),
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
        let Some(state) = self.sources.get(&source) else { return Ok(()) };
        let (events, first_piece) = (state.events, state.next_piece);
        let count = events.map_or(0, ThreadEvents::len);
        if state.has_begun && first_piece >= count {
            if let Some(state) = self.sources.get_mut(&source) {
                state.group = None;
            }
            return Ok(());
        }
        let mut pieces = Vec::new();
        let mut lost = Lost::default();
        let mut tickets = VecDeque::new();
        let mut next = first_piece;
        let mut effect = None;
        let mut is_pending = false;
        if next < count {
            let loaded = self.scanned((source, next), pool, hands);
            if loaded.scanned.has_switches {
                return Err(BlocksError::Switches);
            }
            tickets.extend(loaded.scanned.tickets);
            lost = loaded.lost;
            (effect, is_pending) = (loaded.scanned.effect, loaded.scanned.is_pending);
            pieces.push((next, loaded.events));
            next += 1;
        }
        let Some(state) = self.sources.get(&source) else { return Ok(()) };
        let (begins, thread, ticket) = (!state.has_begun, state.thread, state.ticket);
        let (frames, in_flight, made_up) = (state.frames.clone(), state.in_flight, state.made_up);
        let (mut frames_after, mut in_flight_after, mut made_up_after) = (frames.clone(), in_flight, made_up);
        let fits = match &effect {
            Some(effect) if !is_pending => effect.apply(&mut frames_after, &mut in_flight_after),
            None if pieces.is_empty() => true,
            _ => false,
        };
        if !fits {
            // Only a complete reading tells, and whether the group ends here.
            self.read_again += 1;
            let mut reader = if begins {
                Reader::new(thread, ticket, &self.trace.threads[source].frames)
            } else {
                Reader::resume(thread, ticket, frames.iter().copied(), in_flight, made_up)
            };
            self.read(&mut reader, &pieces[0].1);
            while reader.is_pending() && next < count {
                let loaded = self.scanned((source, next), pool, hands);
                if loaded.scanned.has_switches {
                    return Err(BlocksError::Switches);
                }
                if reader.waiting_items() > super::MOST_PENDING {
                    return Err(BlocksError::Pending);
                }
                tickets.extend(loaded.scanned.tickets);
                lost.add(&loaded.lost);
                self.read(&mut reader, &loaded.events);
                pieces.push((next, loaded.events));
                next += 1;
            }
            frames_after = reader.frames().collect();
            (in_flight_after, made_up_after) = reader.state();
        }
        let blocks = pieces.iter().filter_map(|(piece, _)| self.block_numbers.get(&(source, *piece)).copied());
        let planned = Planned {
            blocks: blocks.collect(),
            bounds: Vec::new(),
            is_whole: false,
            is_exact: false,
            lost,
            group: Arc::new(Group {
                source,
                thread,
                pieces,
                frames: if begins { Vec::new() } else { frames },
                in_flight,
                made_up,
                ticket,
                begins,
                ends: next >= count,
            }),
        };
        self.bytes += planned.bytes();
        if self.bytes > MOST_BYTES {
            return Err(BlocksError::Crowded);
        }
        let group = self.next_group;
        self.next_group += 1;
        self.planned.insert(group, planned);
        if let Some(state) = self.sources.get_mut(&source) {
            (state.frames, state.in_flight, state.made_up) = (frames_after, in_flight_after, made_up_after);
            (state.next_piece, state.has_begun, state.group, state.tickets) = (next, true, Some(group), tickets);
        }
        Ok(())
    }

    /// Reads events only for what they do to the stack.
    fn read(&mut self, reader: &mut Reader, bytes: &[u8]) {
        let mut at = 0;
        loop {
            while reader.take_settled().is_some() {}
            let Ok(Some((event, len))) = event::decode(&bytes[at..]) else { return };
            at += len;
            _ = reader.read(event, &mut self.complete);
        }
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
            (None, None) => Loaded { events: Vec::new(), scanned: Scanned::default(), lost: Lost::default() },
        }
    }
}
