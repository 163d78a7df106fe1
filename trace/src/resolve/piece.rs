//! A piece of a thread's events that is being read. Where very many threads run at once, those that have been quiet for long
//! keep only the start of what they have unpacked in memory, and the rest in a temporary file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use et_format::event::{self, Event, MAX_WORDS, WORD};

/// Bytes of unpacked events that all threads together keep in memory, at the least.
const MEMORY: usize = if cfg!(test) { 64 << 10 } else { 256 << 20 };
/// Bytes that are in memory of a piece whose rest is in the file.
const WINDOW: usize = if cfg!(test) { 2 * LARGEST } else { 8 << 10 };
/// No event is larger.
const LARGEST: usize = MAX_WORDS * WORD;

/// Where the rest of a piece lies in the file.
#[derive(Debug)]
struct Rest {
    /// Start of its room, which has so many bits of length.
    room: u64,
    bits: u32,
    /// What of it has been read.
    read: usize,
    len: usize,
}

/// Unpacked events of one thread.
#[derive(Debug, Default)]
pub struct Piece {
    bytes: Vec<u8>,
    at: usize,
    rest: Option<Rest>,
    /// What is counted as held for it.
    counted: usize,
}

/// What the pieces of all threads hold.
#[derive(Debug)]
pub struct Pieces {
    /// Bytes in memory.
    held: usize,
    most_held: usize,
    limit: usize,
    file: Option<File>,
    end: u64,
    /// Rooms in the file that are free, by the bits of their lengths.
    free: Vec<Vec<u64>>,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { held: 0, most_held: 0, limit: MEMORY, file: None, end: 0, free: vec![Vec::new(); usize::BITS as usize] }
    }
}

impl Pieces {
    /// Whether quiet threads are to hold less.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.held > self.limit
    }

    /// Whether enough quiet threads hold less.
    pub fn has_room(&self) -> bool {
        self.held <= self.limit / 2
    }

    /// All of them hold as little as they can: more must do.
    pub fn lack_room(&mut self) {
        self.limit = self.limit.max(2 * self.held);
    }

    /// The most bytes that were in memory at a time.
    pub fn most_held(&self) -> usize {
        self.most_held
    }

    fn count(&mut self, piece: &mut Piece) {
        let now = piece.bytes.capacity();
        self.held = self.held - piece.counted + now;
        self.most_held = self.most_held.max(self.held);
        piece.counted = now;
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<Rest> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let bits = bytes.len().next_power_of_two().trailing_zeros();
        let room = self.free[bits as usize].pop().unwrap_or_else(|| {
            self.end += 1 << bits;
            self.end - (1 << bits)
        });
        let rest = Rest { room, bits, read: 0, len: bytes.len() };
        if let Err(error) = file.write_all_at(bytes, room) {
            self.release(&rest);
            return Err(error);
        }
        Ok(rest)
    }

    fn release(&mut self, rest: &Rest) {
        self.free[rest.bits as usize].push(rest.room);
    }
}

/// What follows in a piece cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Its bytes.
    pub bytes: u64,
}

impl Piece {
    /// Takes other bytes: `load` puts them in place of the old ones.
    pub fn load<E>(&mut self, pieces: &mut Pieces, load: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        self.drop_rest(pieces);
        self.at = 0;
        let loaded = load(&mut self.bytes);
        if loaded.is_err() {
            self.bytes.clear();
        }
        pieces.count(self);
        loaded
    }

    /// Lets everything go.
    pub fn clear(&mut self, pieces: &mut Pieces) {
        self.drop_rest(pieces);
        (self.bytes, self.at) = (Vec::new(), 0);
        pieces.count(self);
    }

    fn drop_rest(&mut self, pieces: &mut Pieces) {
        if let Some(rest) = self.rest.take() {
            pieces.release(&rest);
        }
    }

    /// Hands the next event to `apply`; `false` if there is none. What follows events that cannot be decoded is left out.
    #[inline]
    pub fn next<S>(
        &mut self,
        shared: &mut S,
        pieces: impl Fn(&mut S) -> &mut Pieces,
        apply: impl FnOnce(Event<'_>, &mut S),
    ) -> Result<bool, Undecodable> {
        if self.rest.is_some() && self.bytes.len() - self.at < LARGEST {
            self.read_on(pieces(shared))?;
        }
        match event::decode(&self.bytes[self.at..]) {
            Ok(Some((event, len))) => {
                self.at += len;
                apply(event, shared);
                Ok(true)
            }
            Ok(None) => {
                self.drop_rest(pieces(shared));
                Ok(false)
            }
            Err(_) => Err(self.give_up(pieces(shared))),
        }
    }

    fn give_up(&mut self, pieces: &mut Pieces) -> Undecodable {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.len - rest.read);
        let bytes = (self.bytes.len() - self.at + rest) as u64;
        self.drop_rest(pieces);
        self.at = self.bytes.len();
        Undecodable { bytes }
    }

    /// Reads more of the rest.
    #[cold]
    fn read_on(&mut self, pieces: &mut Pieces) -> Result<(), Undecodable> {
        let (Some(rest), Some(file)) = (&mut self.rest, &pieces.file) else { return Ok(()) };
        self.bytes.drain(..self.at);
        self.at = 0;
        let (old, more) = (self.bytes.len(), (rest.len - rest.read).min(WINDOW - self.bytes.len()));
        self.bytes.resize(old + more, 0);
        if file.read_exact_at(&mut self.bytes[old..], rest.room + rest.read as u64).is_err() {
            self.bytes.truncate(old);
            return Err(self.give_up(pieces));
        }
        rest.read += more;
        if rest.read == rest.len {
            self.drop_rest(pieces);
        }
        Ok(())
    }

    /// Keeps only the next events in memory. If the file takes no more, all of them.
    pub fn set_aside(&mut self, pieces: &mut Pieces) {
        let left = self.bytes.len() - self.at;
        if self.rest.is_none() && left > 2 * WINDOW {
            let Ok(rest) = pieces.write(&self.bytes[self.at + WINDOW..]) else { return };
            self.bytes.truncate(self.at + WINDOW);
            self.rest = Some(rest);
        }
        if self.bytes.capacity() > 2 * (self.bytes.len() - self.at) {
            self.bytes = self.bytes[self.at..].to_vec();
            self.at = 0;
        }
        pieces.count(self);
    }
}
