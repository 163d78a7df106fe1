//! The content of a trace in batches, which are made on one thread and consumed on another.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use et_system::threads::{NoThread, spawn_scoped};

use crate::place::Place;
use crate::record::{Clock, Record, Tick, Totals};
use crate::told::Told;
use crate::types::Types;

/// Maximum number of items in a batch: enough to be worth handing over, and less than a core's cache.
const MOST: usize = 8192;
/// Maximum number of batches queued before the producer blocks.
const QUEUED: usize = 4;

/// The position of a record.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The types that records refer to. For a text, types are added while it is read.
    pub types: &'a Types,
    /// The clock before the record.
    pub tick: Tick,
    /// Its position relative to other threads and in time. Unknown in a text, and if deaths are computed and
    /// [`Reading::places`](crate::source::Reading::places) is not set.
    pub place: Place,
    /// The record is an update that no hook reported: a weak reference is cleared because its referent dies
    /// (`docs/semantics.md`, "Weak slots"). The program has neither stored to the slot nor used the reference.
    pub is_clearing: bool,
}

/// A part of the content of a trace, in order. Batches of a text share the types read so far; keeping a batch causes a
/// copy of them when later batches add new ones.
#[derive(Debug)]
pub struct Batch {
    told: Vec<Told>,
    /// Places, each with the index in `told` of the first item there; the first index is 0.
    places: Vec<(u32, Place)>,
    /// Indexes in `told` of clearings, in ascending order.
    clearings: Vec<u32>,
    types: Arc<Types>,
    /// Clock before the first item.
    tick: Tick,
    clock: Clock,
    /// Where the buffer goes to be reused.
    room: Sender<Vec<Told>>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.told);
        room.clear();
        // The filler may already be gone.
        _ = self.room.send(room);
    }
}

impl Batch {
    pub fn len(&self) -> usize {
        self.told.len()
    }

    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// The records, and the holds if they were requested, each with its position.
    pub fn iter(&self) -> impl Iterator<Item = (&Told, At<'_>)> {
        let mut tick = self.tick;
        let mut places = self.places.iter().peekable();
        let mut clearings = self.clearings.iter().peekable();
        let mut place = Place::default();
        (0..).zip(&self.told).map(move |(index, told)| {
            while let Some((_, next)) = places.next_if(|(from, _)| *from <= index) {
                place = *next;
            }
            let is_clearing = clearings.next_if_eq(&&index).is_some();
            let at = At { types: &self.types, tick, place, is_clearing };
            if let Told::Record(record) = told {
                tick.0 += record.ticks(self.clock);
            }
            (told, at)
        })
    }

    /// The records, each with its position.
    pub fn records(&self) -> impl Iterator<Item = (&Record, At<'_>)> {
        self.iter().filter_map(|(told, at)| match told {
            Told::Record(record) => Some((record, at)),
            Told::Hold(_) => None,
        })
    }
}

/// A batch in the queue.
#[derive(Debug)]
struct Parcel {
    told: Vec<Told>,
    places: Vec<(u32, Place)>,
    clearings: Vec<u32>,
    tick: Tick,
    /// Types added since the previous batch.
    types: Vec<Box<str>>,
    /// If set, the filler waits until all earlier batches have been consumed.
    waiting: Option<Sender<()>>,
}

/// Fills batches.
#[derive(Debug)]
pub(crate) struct Filler {
    told: Vec<Told>,
    places: Vec<(u32, Place)>,
    clearings: Vec<u32>,
    place: Place,
    new_types: Vec<Box<str>>,
    /// Number of types sent so far.
    types: usize,
    clock: Clock,
    first_tick: Tick,
    tick: Tick,
    totals: Totals,
    /// Maximum number of items in a batch; 0 once the consumer wants no more.
    most: usize,
    is_closed: Arc<AtomicBool>,
    send: SyncSender<Parcel>,
    room: Receiver<Vec<Told>>,
}

impl Filler {
    /// Sets the place of the items that follow.
    #[inline]
    pub fn at(&mut self, place: Place) {
        if place != self.place {
            self.change(place);
        }
    }

    #[cold]
    fn change(&mut self, place: Place) {
        self.place = place;
        self.places.push((self.told.len() as u32, place));
    }

    /// Adds an item. Breaks when the consumer wants no more.
    ///
    /// Inlined, so that the item is constructed in place: copying what was just written in smaller parts stalls.
    #[inline(always)]
    pub fn push(&mut self, told: Told) -> ControlFlow<()> {
        if let Told::Record(record) = &told {
            self.totals.count(record);
            self.tick.0 += record.ticks(self.clock);
        }
        self.told.push(told);
        if self.told.len() < self.most { ControlFlow::Continue(()) } else { self.hand_over() }
    }

    /// Adds a record that was computed together with the deaths, like [`push`](Self::push).
    pub fn push_found(&mut self, record: Record) -> ControlFlow<()> {
        if matches!(record, Record::Update { .. }) {
            self.clearings.push(self.told.len() as u32);
        }
        self.push(Told::Record(record))
    }

    /// Sends the types that have been added.
    #[inline]
    pub fn knows(&mut self, types: &Types) {
        if types.len() > self.types {
            self.new_types.extend(types.from(self.types).map(Into::into));
            self.types = types.len();
        }
    }

    /// Whether the consumer wants more. To be called now and then during long work that adds no items.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        !self.is_closed.load(Ordering::Relaxed)
    }

    #[cold]
    fn hand_over(&mut self) -> ControlFlow<()> {
        if self.most == 0 {
            self.told.clear();
            self.clearings.clear();
            return ControlFlow::Break(());
        }
        let room = self.room.try_recv().unwrap_or_else(|_| Vec::with_capacity(MOST));
        let parcel = Parcel {
            told: std::mem::replace(&mut self.told, room),
            places: std::mem::take(&mut self.places),
            clearings: std::mem::take(&mut self.clearings),
            tick: self.first_tick,
            types: std::mem::take(&mut self.new_types),
            waiting: None,
        };
        self.first_tick = self.tick;
        self.places.push((0, self.place));
        self.send(parcel)
    }

    fn send(&mut self, parcel: Parcel) -> ControlFlow<()> {
        match self.send.send(parcel) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => {
                // Every further call breaks, too: a caller that ignores it for a hold notices at the next record.
                self.most = 0;
                ControlFlow::Break(())
            }
        }
    }

    /// Hands over the rest and waits until everything has been consumed; returns whether it was.
    pub fn wait_until_taken(&mut self) -> bool {
        let (taken, wait) = channel();
        if !self.told.is_empty() && self.hand_over().is_break() {
            return false;
        }
        let nothing = Parcel {
            told: Vec::new(),
            places: Vec::new(),
            clearings: Vec::new(),
            tick: self.tick,
            types: Vec::new(),
            waiting: Some(taken),
        };
        self.send(nothing).is_continue() && wait.recv().is_ok()
    }

    /// Ends the stream and returns the number of records.
    pub fn finish(self) -> Totals {
        self.totals
    }
}

impl Drop for Filler {
    /// Hands over the rest: items before an error are still delivered.
    fn drop(&mut self) {
        if !self.told.is_empty() {
            // Ignored: if it breaks, the consumer wants no more.
            _ = self.hand_over();
        }
    }
}

/// Receives batches.
#[derive(Debug)]
pub(crate) struct Batches {
    receive: Receiver<Parcel>,
    types: Arc<Types>,
    clock: Clock,
    room: Sender<Vec<Told>>,
    is_closed: Arc<AtomicBool>,
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let (told, places, clearings, tick, new) = loop {
            let Parcel { told, places, clearings, tick, types, waiting } = self.receive.recv().ok()?;
            match waiting {
                // The waiting thread may have panicked.
                Some(waiting) => _ = waiting.send(()),
                None => break (told, places, clearings, tick, types),
            }
        };
        if !new.is_empty() {
            // Copied only if the consumer still has an earlier batch.
            let types = Arc::make_mut(&mut self.types);
            new.iter().for_each(|descriptor| _ = types.intern(descriptor));
        }
        let (types, clock, room) = (Arc::clone(&self.types), self.clock, self.room.clone());
        Some(Batch { told, places, clearings, types, tick, clock, room })
    }
}

/// Creates the two ends of a stream of batches. Both start with these types.
pub(crate) fn batches(types: &Arc<Types>, clock: Clock) -> (Filler, Batches) {
    let (send, receive) = sync_channel(QUEUED);
    let (give_room, room) = channel();
    let is_closed = Arc::<AtomicBool>::default();
    let filler = Filler {
        told: Vec::with_capacity(MOST),
        places: Vec::new(),
        clearings: Vec::new(),
        place: Place::default(),
        new_types: Vec::new(),
        types: types.len(),
        clock,
        first_tick: Tick(0),
        tick: Tick(0),
        totals: Totals::default(),
        most: MOST,
        is_closed: Arc::clone(&is_closed),
        send,
        room,
    };
    (filler, Batches { receive, types: Arc::clone(types), clock, room: give_room, is_closed })
}

/// Has batches filled on another thread and calls `visit` on this one for each of their items until it breaks. Returns
/// the result of the filling, and whether `visit` broke.
///
/// # Errors
///
/// Fails if the thread cannot be started.
pub(crate) fn through<R: Send>(
    types: &Arc<Types>,
    clock: Clock,
    fill: impl FnOnce(Filler) -> R + Send,
    mut visit: impl FnMut(&Told, &At<'_>) -> ControlFlow<()>,
) -> Result<(R, bool), NoThread> {
    std::thread::scope(|scope| {
        let (filler, batches) = batches(types, clock);
        let filling = spawn_scoped(scope, move || fill(filler))?;
        let mut stopped = false;
        for batch in batches {
            if batch.iter().try_for_each(|(told, at)| visit(told, &at)).is_break() {
                stopped = true;
                break;
            }
        }
        match filling.join() {
            Ok(result) => Ok((result, stopped)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
