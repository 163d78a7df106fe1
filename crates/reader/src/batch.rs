//! What is told of a trace, in batches: made on one thread, taken on another.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use et_system::threads::{NoThread, spawn_scoped};

use crate::place::Place;
use crate::record::{Clock, Record, Tick, Totals};
use crate::told::Told;
use crate::types::Types;

/// What a batch holds at the most: enough to be worth handing over, and less than a core's cache.
const MOST: usize = 8192;
/// Batches on their way.
const QUEUED: usize = 4;

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The types that records name; a text's grow as it is read.
    pub types: &'a Types,
    /// What the clock has counted before the record.
    pub tick: Tick,
    /// Between threads and in time; not known in a text, and where deaths are worked out and
    /// [`Reading::places`](crate::source::Reading::places) does not ask for it.
    pub place: Place,
    /// The record is an update that no hook reported: a weak reference is cleared because its referent dies
    /// (`docs/semantics.md`, "Weak slots"). Nobody has stored anything, and nobody has used the reference.
    pub is_clearing: bool,
}

/// Some of what is told of a trace, in order. Who keeps batches of a text, whose types come as it is read, has a copy of the types
/// so far for each batch with new ones.
#[derive(Debug)]
pub struct Batch {
    told: Vec<Told>,
    /// From which of `told` on which holds, the first from 0 on.
    places: Vec<(u32, Place)>,
    /// Which of `told` are clearings, in order.
    clearings: Vec<u32>,
    types: Arc<Types>,
    /// Of the first.
    tick: Tick,
    clock: Clock,
    /// Where the room goes to be used again.
    room: Sender<Vec<Told>>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.told);
        room.clear();
        // Whoever filled it may be gone.
        _ = self.room.send(room);
    }
}

impl Batch {
    /// How much is told.
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// The records, and what else holds objects if it was asked for, with where each stands.
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
                tick.0 += u64::from(record.ticks_of(self.clock));
            }
            (told, at)
        })
    }

    /// The records, with where each stands.
    pub fn records(&self) -> impl Iterator<Item = (&Record, At<'_>)> {
        self.iter().filter_map(|(told, at)| match told {
            Told::Record(record) => Some((record, at)),
            Told::Hold(_) => None,
        })
    }
}

/// A batch on its way.
#[derive(Debug)]
struct Parcel {
    told: Vec<Told>,
    places: Vec<(u32, Place)>,
    clearings: Vec<u32>,
    tick: Tick,
    /// Those that came up since the last.
    types: Vec<Box<str>>,
    /// Who waits for all that came before to be taken.
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
    /// How many types the other side knows, those on their way included.
    types: usize,
    clock: Clock,
    first_tick: Tick,
    tick: Tick,
    totals: Totals,
    /// What a batch holds at the most; nothing when nobody wants more.
    most: usize,
    is_closed: Arc<AtomicBool>,
    send: SyncSender<Parcel>,
    room: Receiver<Vec<Told>>,
}

impl Filler {
    /// What is told next stands there.
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

    /// Adds what is told next. Breaks off when nobody wants more.
    ///
    /// Inlined, so that it is made where it is to be: what was just written by halves is slow to copy as a whole.
    #[inline(always)]
    pub fn push(&mut self, told: Told) -> ControlFlow<()> {
        if let Told::Record(record) = &told {
            self.totals.count(record);
            self.tick.0 += u64::from(record.ticks_of(self.clock));
        }
        self.told.push(told);
        if self.told.len() < self.most { ControlFlow::Continue(()) } else { self.hand_over() }
    }

    /// As [`push`](Self::push), of a record that was found with the deaths.
    pub fn push_found(&mut self, record: Record) -> ControlFlow<()> {
        if matches!(record, Record::Update { .. }) {
            self.clearings.push(self.told.len() as u32);
        }
        self.push(Told::Record(record))
    }

    /// The types so far.
    #[inline]
    pub fn knows(&mut self, types: &Types) {
        if types.len() > self.types {
            self.new_types.extend(types.from(self.types).map(Into::into));
            self.types = types.len();
        }
    }

    /// Whether somebody wants more. Long work that fills nothing asks now and then.
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
                // From here on each break is told again: who told of a hold goes on to the next record.
                self.most = 0;
                ControlFlow::Break(())
            }
        }
    }

    /// Hands over what is left, and waits until all of it was taken; whether it was.
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

    /// That was all; says how many records there were.
    pub fn finish(self) -> Totals {
        self.totals
    }
}

impl Drop for Filler {
    /// Hands over what is left: what was told before an error counts.
    fn drop(&mut self) {
        if !self.told.is_empty() {
            // Nobody wants it, if this breaks off.
            _ = self.hand_over();
        }
    }
}

/// Takes batches as they come.
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
                // Who waits may have panicked.
                Some(waiting) => _ = waiting.send(()),
                None => break (told, places, clearings, tick, types),
            }
        };
        if !new.is_empty() {
            // Copied only where somebody still has an earlier batch.
            let types = Arc::make_mut(&mut self.types);
            new.iter().for_each(|descriptor| _ = types.intern(descriptor));
        }
        let (types, clock, room) = (Arc::clone(&self.types), self.clock, self.room.clone());
        Some(Batch { told, places, clearings, types, tick, clock, room })
    }
}

/// The two ends of a row of batches. Both begin with these types.
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

/// Has batches filled on another thread, and calls `visit` on this one with what they hold, until it breaks off. Says what
/// filling them came to, and whether `visit` broke off.
///
/// # Errors
///
/// There is no other thread.
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
