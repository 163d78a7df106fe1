//! Finds when an object's slots are needed for the last time, so that they can be dropped.
//!
//! Update records contain the old target of the slot, so targets must be remembered, but only for objects that are
//! stored to again. This takes a separate pass: all events are read twice, the first time here, in any order and on all
//! cores, only to see which objects each piece of events stores to. Going backward over these lists from the piece that
//! ends last, each object is first encountered at its last store. Continuations are in the lists as well, where they
//! are mounted: their stacks are kept as long as they may be mounted again.
//!
//! Objects are identified by their hashes only. When a hash is reused, no event can refer to the previous object any
//! more, and its slots are dropped at that point.

use std::io;
use std::sync::{Mutex, PoisonError};

use et_format::event::{self, Event, ObjectHash, Ticket};
use et_system::threads::on_all_cores;

use super::bits::IdSet;
use super::unpacking::PieceOf;
use crate::file::ThreadEvents;
use crate::store::{Piece, Store};
use crate::trace::Trace;

/// Maximum number of bytes of lists kept in memory; the rest goes to a temporary file.
const MEMORY: u64 = 32 << 20;
/// Number of objects in the cache of those just stored to, which are likely to be stored to again.
const RECENT: usize = 1 << 10;

/// For each piece of events, in the order in which they end, the objects that no later piece stores to.
#[derive(Debug)]
pub struct LastStores {
    /// All objects that are stored to; `None` if they could not be determined.
    stored_into: Option<IdSet>,
    lists: Store,
    /// Pieces in the order in which they end.
    ends: Vec<(Ticket, Piece)>,
    next: usize,
    /// All pieces in the order in which they will be read.
    order: Vec<PieceOf>,
}

/// What a piece of events stores to.
struct Stores {
    /// The highest ticket in the piece.
    last: Ticket,
    objects: Option<Piece>,
}

impl LastStores {
    /// Reads all events. If the lists cannot be stored (the disk is full), nothing will be dropped.
    pub fn find(trace: &Trace) -> Self {
        Self::try_find(trace).unwrap_or_else(|_| Self::unknown())
    }

    fn unknown() -> Self {
        Self { stored_into: None, lists: Store::new(0), ends: Vec::new(), next: 0, order: Vec::new() }
    }

    fn try_find(trace: &Trace) -> io::Result<Self> {
        trace.file.begin_events("looking ahead");
        let pieces: Vec<(&ThreadEvents, usize)> = trace
            .file
            .threads()
            .iter()
            .flat_map(|events| (0..events.len()).map(move |piece| (events, piece)))
            .collect();
        let (found, store) = stores(trace, &pieces)?;
        let mut ended = Vec::new();
        let mut order = Vec::with_capacity(pieces.len());
        let mut now = Ticket(0);
        for (at, (&(events, piece), stores)) in pieces.iter().zip(found).enumerate() {
            if piece == 0 {
                // A thread with initial frames has the ticket of its start until its first event.
                now = trace.thread(events.thread).map_or(Ticket(0), |thread| thread.start);
                order.push((now.max(trace.file.first_ticket(events)), at));
            } else {
                // It is needed when the one before it ends.
                order.push((now, at));
            }
            // A ticket that is lower than the previous one is ignored.
            now = now.max(stores.last);
            ended.extend(stores.objects.map(|objects| (now, at, objects)));
        }
        ended.sort_unstable_by_key(|&(end, at, _)| (end, at));
        order.sort_unstable();
        let order = order.into_iter().map(|(_, at)| (pieces[at].0.thread, pieces[at].1)).collect();
        let mut stored_into = IdSet::default();
        let mut lists = Store::new(MEMORY);
        let mut ends = Vec::new();
        let mut last_here = Vec::new();
        for (end, _, objects) in ended.into_iter().rev() {
            last_here.clear();
            let objects = store.read(objects)?;
            last_here.extend(hashes(&objects).filter(|&hash| stored_into.insert(hash)));
            if !last_here.is_empty() {
                ends.push((end, lists.append(&bytes(&last_here))?));
            }
        }
        ends.reverse();
        Ok(Self { stored_into: Some(stored_into), lists, ends, next: 0, order })
    }

    /// All pieces of events in the order in which they will probably be read; empty if it could not be determined.
    pub fn take_order(&mut self) -> Vec<PieceOf> {
        std::mem::take(&mut self.order)
    }

    /// Whether some event stores to the object.
    pub fn is_stored_into(&self, object: ObjectHash) -> bool {
        self.stored_into.as_ref().is_none_or(|all| all.contains(object.0))
    }

    /// Drops the set behind [`is_stored_into`](Self::is_stored_into), which is no longer needed.
    pub fn begin(&mut self) {
        self.stored_into = None;
    }

    /// All events before `ticket` have been processed: calls `visit` with the objects that no later event stores to or
    /// mounts.
    #[inline]
    pub fn until(&mut self, ticket: Ticket, visit: impl FnMut(ObjectHash)) {
        if self.ends.get(self.next).is_some_and(|&(end, _)| end < ticket) {
            self.through(ticket, visit);
        }
    }

    #[cold]
    fn through(&mut self, ticket: Ticket, mut visit: impl FnMut(ObjectHash)) {
        while let Some(&(_, list)) = self.ends.get(self.next).filter(|&&(end, _)| end < ticket) {
            self.next += 1;
            // A list that cannot be read only costs memory.
            let list = self.lists.read(list).unwrap_or_default();
            hashes(&list).for_each(|hash| visit(ObjectHash(hash)));
        }
    }
}

/// Determines what each piece stores to, on as many threads as there are cores.
fn stores(trace: &Trace, pieces: &[(&ThreadEvents, usize)]) -> io::Result<(Vec<Stores>, Store)> {
    /// Pieces for which it is worthwhile to start a thread.
    const SHARE: usize = 8;
    let store = Mutex::new(Store::new(MEMORY));
    let (all, _) = on_all_cores(pieces.len(), SHARE, PieceReader::default, |reader, at| {
        let (events, piece) = pieces[at];
        let last = reader.read(trace, events, piece);
        let objects = match reader.objects.is_empty() {
            true => None,
            false => Some(store.lock().unwrap_or_else(PoisonError::into_inner).append(&bytes(&reader.objects))?),
        };
        io::Result::Ok(Stores { last, objects })
    })?;
    Ok((all, store.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

struct PieceReader {
    bytes: Vec<u8>,
    /// Sorted, without duplicates.
    objects: Vec<u32>,
    recent: Box<[u32; RECENT]>,
}

impl Default for PieceReader {
    fn default() -> Self {
        Self { bytes: Vec::new(), objects: Vec::new(), recent: Box::new([0; RECENT]) }
    }
}

impl PieceReader {
    fn read(&mut self, trace: &Trace, events: &ThreadEvents, piece: usize) -> Ticket {
        self.objects.clear();
        self.recent.fill(0);
        let mut last = Ticket(0);
        if trace.file.load_events(events, piece, &mut self.bytes).is_err() {
            self.bytes.clear();
        }
        let mut at = 0;
        // What cannot be decoded is skipped, as it is later.
        while let Ok(Some((event, len))) = event::decode(&self.bytes[at..]) {
            at += len;
            let origin = match event {
                Event::Ticket(ticket) => {
                    last = last.max(ticket);
                    continue;
                }
                Event::PutField { origin, .. } => origin.0,
                Event::PutElement { array, .. } | Event::PutElements { array, .. } => array.0,
                Event::Switch { owner } if !owner.is_null() => owner.0,
                Event::Entry { .. }
                | Event::EntryOn { .. }
                | Event::EntryInit { .. }
                | Event::SuperCall { .. }
                | Event::Exit { .. }
                | Event::Leaf { .. }
                | Event::ExitThrow { .. }
                | Event::Throw { .. }
                | Event::Handle { .. }
                | Event::New { .. }
                | Event::NewArray { .. }
                | Event::Found { .. }
                | Event::Made { .. }
                | Event::MadeAt { .. }
                // Static fields belong to no object.
                | Event::PutStatic { .. }
                // The thread itself.
                | Event::Switch { .. }
                | Event::Used { .. }
                | Event::Counted { .. } => continue,
            };
            let recent = &mut self.recent[origin as usize % RECENT];
            if *recent != origin {
                *recent = origin;
                self.objects.push(origin);
            }
        }
        self.objects.sort_unstable();
        self.objects.dedup();
        last
    }
}

fn bytes(hashes: &[u32]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

fn hashes(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|&hash| u32::from_le_bytes(hash))
}
