//! All steps of a trace, on disk if there are many. Written once, then read backward and forward, so that the source,
//! which may be a pipe, is read only once.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use et_system::threads::{NoThread, spawn};

use super::places::{self, PlaceList};
use super::step::{Damaged, Step, StepEncoder, decode};
use crate::place::Place;
use crate::store::{Piece, Store};

/// Sizes that bound the memory used.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Length of a piece of the spool in bytes, before packing.
    pub piece_bytes: usize,
    /// Maximum number of bytes of the spool to keep in memory.
    pub memory_bytes: u64,
    /// Minimum number of steps between two collections; with more objects alive than this, the number of objects.
    pub window_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { piece_bytes: 1 << 20, memory_bytes: 64 << 20, window_steps: 1 << 20 }
    }
}

/// Maximum number of pieces queued for the packing thread.
const QUEUED: usize = 2;

/// Result of the packing thread.
type Packed = io::Result<(Store, Vec<Stored>)>;

/// Writes steps to a new spool.
#[derive(Debug)]
pub struct SpoolWriter {
    limits: Limits,
    buffer: Vec<u8>,
    encoder: StepEncoder,
    steps: u64,
    /// Number of the first step of each piece.
    firsts: Vec<u64>,
    /// Places of the steps in the current piece.
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
    /// Creates an empty spool.
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
            // Without the thread, steps are refused.
            queue: packer.is_ok().then_some(queue),
            packer,
        }
    }

    /// Appends a step. Returns false if the disk is full or there is no packing thread; then [`finish`](Self::finish)
    /// returns the error.
    #[inline]
    pub fn push(&mut self, step: &Step) -> bool {
        self.encoder.push(&mut self.buffer, step);
        self.steps += 1;
        self.buffer.len() < self.limits.piece_bytes || self.hand_over()
    }

    /// Keeps the place of each step.
    pub fn keep_places(&mut self) {
        self.keeps_places = true;
    }

    /// Sets the place of the steps that follow.
    #[inline]
    pub fn at(&mut self, place: Place) {
        if self.keeps_places {
            self.places.at(self.steps, place);
        }
    }

    /// Number of steps so far, which is the number of the next one.
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

    /// Completes the spool. Fails if it could not be written.
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

/// A complete spool.
#[derive(Debug)]
pub struct Spool {
    limits: Limits,
    store: Store,
    pieces: Vec<Stored>,
    firsts: Vec<u64>,
    has_places: bool,
}

impl Spool {
    /// Number of pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Number of the first step of a piece.
    pub fn first(&self, piece: usize) -> u64 {
        self.firsts[piece]
    }

    /// Total number of steps.
    pub fn steps(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Length of all pieces in bytes, after packing.
    pub fn stored_bytes(&self) -> u64 {
        self.store.stored_bytes()
    }

    /// The limits with which it was written.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Replaces the content of `steps` by the steps of a piece.
    pub fn read(&self, piece: usize, steps: &mut Vec<Step>) -> io::Result<()> {
        steps.clear();
        let bytes = self.store.read(self.pieces[piece].steps)?;
        decode(&bytes, steps).map_err(|Damaged| io::Error::new(io::ErrorKind::InvalidData, Damaged))
    }

    /// Places in a piece, each with its first step; empty if places were not kept.
    pub fn places(&self, piece: usize) -> io::Result<Vec<(u64, Place)>> {
        if !self.has_places {
            return Ok(Vec::new());
        }
        Ok(places::decode(&self.store.read(self.pieces[piece].places)?))
    }
}
