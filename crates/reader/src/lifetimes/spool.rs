//! All steps of a trace, on disk once they are many. Written once, then read backward and forward: whatever the trace
//! came from, a pipe included, is read only once.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use et_system::threads::{NoThread, spawn};

use super::places::{self, PlaceList};
use super::step::{Damaged, Step, StepEncoder, decode};
use crate::place::Place;
use crate::store::{Piece, Store};

/// How much is done at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a piece of the spool, before packing.
    pub piece_bytes: usize,
    /// Bytes of the spool that stay in memory.
    pub memory_bytes: u64,
    /// Steps between two looks for the dead, at least; with more objects alive than this, as many as there are objects.
    pub window_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { piece_bytes: 1 << 20, memory_bytes: 64 << 20, window_steps: 1 << 20 }
    }
}

/// Pieces on their way to the thread that packs them.
const QUEUED: usize = 2;

/// What the thread that packs pieces has in the end.
type Packed = io::Result<(Store, Vec<Stored>)>;

/// Takes steps.
#[derive(Debug)]
pub struct SpoolWriter {
    limits: Limits,
    buffer: Vec<u8>,
    encoder: StepEncoder,
    steps: u64,
    /// Sequence number of the first step of each piece.
    firsts: Vec<u64>,
    /// Where the steps of the piece stand.
    places: PlaceList,
    keeps_places: bool,
    queue: Option<SyncSender<(Vec<u8>, Vec<u8>)>>,
    packer: Result<JoinHandle<Packed>, NoThread>,
}

/// A piece of the spool.
#[derive(Clone, Copy, Debug)]
struct Stored {
    steps: Piece,
    places: Piece,
}

impl SpoolWriter {
    /// An empty spool.
    pub fn new(limits: Limits) -> Self {
        let (queue, pieces) = sync_channel::<(Vec<u8>, Vec<u8>)>(QUEUED);
        let packer = spawn(move || {
            let mut store = Store::new(limits.memory_bytes);
            let mut append = |(steps, places): (Vec<u8>, Vec<u8>)| {
                Ok(Stored { steps: store.append(&steps)?, places: store.append(&places)? })
            };
            let stored = pieces.iter().map(&mut append).collect::<io::Result<Vec<_>>>()?;
            Ok((store, stored))
        });
        Self {
            limits,
            buffer: Vec::with_capacity(limits.piece_bytes + 64),
            encoder: StepEncoder::default(),
            steps: 0,
            firsts: vec![0],
            places: PlaceList::default(),
            keeps_places: false,
            // Without the thread nothing is taken.
            queue: packer.is_ok().then_some(queue),
            packer,
        }
    }

    /// One more step. `false`: the disk takes no more, or there is no thread, and [`finish`](Self::finish) says why.
    #[inline]
    pub fn push(&mut self, step: &Step) -> bool {
        self.encoder.push(&mut self.buffer, step);
        self.steps += 1;
        self.buffer.len() < self.limits.piece_bytes || self.hand_over()
    }

    /// Keeps where each step stands.
    pub fn keep_places(&mut self) {
        self.keeps_places = true;
    }

    /// Where the next steps stand.
    #[inline]
    pub fn at(&mut self, place: Place) {
        if self.keeps_places {
            self.places.at(self.steps, place);
        }
    }

    /// Number of the next step.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn hand_over(&mut self) -> bool {
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.limits.piece_bytes + 64));
        self.encoder = StepEncoder::default();
        self.firsts.push(self.steps);
        let places = self.places.take(self.steps);
        self.queue.as_ref().is_some_and(|queue| queue.send((piece, places)).is_ok())
    }

    /// The spool, ready to be read.
    pub fn finish(mut self) -> io::Result<Spool> {
        if !self.buffer.is_empty() {
            self.hand_over();
        }
        self.queue = None;
        let (store, pieces) = match self.packer?.join() {
            Ok(done) => done?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Ok(Spool { limits: self.limits, store, pieces, firsts: self.firsts, has_places: self.keeps_places })
    }
}

/// Written steps.
#[derive(Debug)]
pub struct Spool {
    limits: Limits,
    store: Store,
    pieces: Vec<Stored>,
    firsts: Vec<u64>,
    has_places: bool,
}

impl Spool {
    /// How many pieces there are.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Sequence number of the first step of a piece.
    pub fn first(&self, piece: usize) -> u64 {
        self.firsts[piece]
    }

    /// How many steps there are.
    pub fn steps(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Bytes that they take.
    pub fn stored_bytes(&self) -> u64 {
        self.store.stored_bytes()
    }

    /// The limits it was written with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The steps of one piece, in place of what `steps` held.
    pub fn read(&self, piece: usize, steps: &mut Vec<Step>) -> io::Result<()> {
        steps.clear();
        let bytes = self.store.read(self.pieces[piece].steps)?;
        decode(&bytes, steps).map_err(|Damaged| io::Error::new(io::ErrorKind::InvalidData, Damaged))
    }

    /// Where the steps of one piece stand, from which step on; nothing if that was not kept.
    pub fn places(&self, piece: usize) -> io::Result<Vec<(u64, Place)>> {
        if !self.has_places {
            return Ok(Vec::new());
        }
        Ok(places::decode(&self.store.read(self.pieces[piece].places)?))
    }
}
