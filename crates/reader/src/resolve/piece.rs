//! A piece of a thread's events that is being read. If very many threads are active at once, those that have not been
//! read for some time keep only the start of their unpacked events in memory and the rest in a temporary file. If that
//! is full, the rest is unpacked again: a few bytes of a trace may claim to unpack to very many, in each of very many
//! threads.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use et_format::event::{self, Event, MAX_WORDS, WORD};

/// Bytes of unpacked events that all threads together may keep in memory in any case.
const MEMORY: usize = if cfg!(test) { 64 << 10 } else { 256 << 20 };
/// Bytes kept in memory of a piece whose rest is in the file.
const WINDOW: usize = if cfg!(test) { 2 * LARGEST } else { 8 << 10 };
/// Maximum size of the temporary file in bytes.
const FILE: u64 = if cfg!(test) { 256 << 10 } else { 8 << 30 };
/// Maximum length of an event in bytes.
const LARGEST: usize = MAX_WORDS * WORD;

/// The part of a piece that is not in memory.
#[derive(Debug)]
enum Rest {
    InFile(InFile),
    /// It has to be unpacked again, and starts at this byte of the piece.
    Gone {
        from: usize,
        len: usize,
    },
}

/// Location of a piece's rest in the file.
#[derive(Debug)]
struct InFile {
    /// Offset and size (as a power of two) of its room.
    room: u64,
    bits: u32,
    /// Number of bytes read so far.
    read: usize,
    len: usize,
}

/// Unpacked events of one thread.
#[derive(Debug, Default)]
pub struct Piece {
    bytes: Vec<u8>,
    at: usize,
    rest: Option<Rest>,
    /// Bytes counted as held by this piece.
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
    /// Free rooms in the file, by the logarithm of their size.
    free: Vec<Vec<u64>>,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { held: 0, most_held: 0, limit: MEMORY, file: None, end: 0, free: vec![Vec::new(); usize::BITS as usize] }
    }
}

impl Pieces {
    /// Whether inactive threads should free memory.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.held > self.limit
    }

    /// Whether enough memory has been freed.
    pub fn has_room(&self) -> bool {
        self.held <= self.limit / 2
    }

    /// All threads hold the minimum: raises the limit.
    pub fn lack_room(&mut self) {
        self.limit = self.limit.max(2 * self.held);
    }

    /// Maximum number of bytes that were in memory at a time.
    pub fn most_held(&self) -> usize {
        self.most_held
    }

    fn count(&mut self, piece: &mut Piece) {
        let now = piece.bytes.capacity();
        self.held = self.held - piece.counted + now;
        self.most_held = self.most_held.max(self.held);
        piece.counted = now;
    }

    /// Writes to the file; `None` if it is full.
    fn write(&mut self, bytes: &[u8]) -> Option<InFile> {
        self.try_write(bytes).ok().flatten()
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<Option<InFile>> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let bits = bytes.len().next_power_of_two().trailing_zeros();
        let room = match self.free[bits as usize].pop() {
            Some(room) => room,
            None if self.end + (1 << bits) > FILE => return Ok(None),
            None => {
                self.end += 1 << bits;
                self.end - (1 << bits)
            }
        };
        let rest = InFile { room, bits, read: 0, len: bytes.len() };
        if let Err(error) = file.write_all_at(bytes, room) {
            self.release(&rest);
            return Err(error);
        }
        Ok(Some(rest))
    }

    fn release(&mut self, rest: &InFile) {
        self.free[rest.bits as usize].push(rest.room);
    }
}

/// Why a piece cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The rest cannot be decoded.
    Undecodable {
        /// Length of the rest in bytes.
        bytes: u64,
    },
    /// The rest has to be [loaded again](Piece::load_again).
    Gone,
}

impl Piece {
    /// Replaces the events: `load` fills the buffer.
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

    /// Frees everything.
    pub fn clear(&mut self, pieces: &mut Pieces) {
        self.drop_rest(pieces);
        (self.bytes, self.at) = (Vec::new(), 0);
        pieces.count(self);
    }

    fn drop_rest(&mut self, pieces: &mut Pieces) {
        if let Some(Rest::InFile(rest)) = self.rest.take() {
            pieces.release(&rest);
        }
    }

    /// Loads the same events again and continues at the current position.
    pub fn load_again<E>(
        &mut self,
        pieces: &mut Pieces,
        load: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let left = self.bytes.len() - self.at;
        let at = match self.rest {
            Some(Rest::Gone { from, .. }) => from - left,
            _ => return Ok(()),
        };
        self.load(pieces, load)?;
        self.at = at.min(self.bytes.len());
        Ok(())
    }

    /// Passes events to `apply` until it breaks or there are no more. Events after an undecodable one are ignored.
    #[inline]
    pub fn read<S, B>(
        &mut self,
        shared: &mut S,
        pieces: impl Fn(&mut S) -> &mut Pieces,
        mut apply: impl FnMut(Event<'_>, &mut S) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Obstacle> {
        loop {
            if self.rest.is_some() && self.bytes.len() - self.at < LARGEST {
                self.read_on(pieces(shared))?;
            }
            match event::decode(&self.bytes[self.at..]) {
                Ok(Some((event, len))) => {
                    self.at += len;
                    if let flow @ ControlFlow::Break(_) = apply(event, shared) {
                        return Ok(flow);
                    }
                }
                Ok(None) => {
                    self.drop_rest(pieces(shared));
                    return Ok(ControlFlow::Continue(()));
                }
                Err(_) => return Err(self.give_up(pieces(shared))),
            }
        }
    }

    fn give_up(&mut self, pieces: &mut Pieces) -> Obstacle {
        let rest = match &self.rest {
            None => 0,
            Some(Rest::InFile(rest)) => rest.len - rest.read,
            Some(Rest::Gone { from, len }) => len - from,
        };
        let bytes = (self.bytes.len() - self.at + rest) as u64;
        self.drop_rest(pieces);
        self.at = self.bytes.len();
        Obstacle::Undecodable { bytes }
    }

    /// Reads more of the rest from the file.
    #[cold]
    fn read_on(&mut self, pieces: &mut Pieces) -> Result<(), Obstacle> {
        let (rest, file) = match (&mut self.rest, &pieces.file) {
            (Some(Rest::InFile(rest)), Some(file)) => (rest, file),
            (Some(Rest::Gone { .. }), _) => return Err(Obstacle::Gone),
            _ => return Ok(()),
        };
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

    /// Reduces the piece to the next events in memory.
    pub fn set_aside(&mut self, pieces: &mut Pieces) {
        let left = self.bytes.len() - self.at;
        if self.rest.is_none() && left > 2 * WINDOW {
            // Only a piece that is whole in memory has this much left, and then its first byte is that of the piece.
            let (from, len) = (self.at + WINDOW, self.bytes.len());
            self.rest = Some(pieces.write(&self.bytes[from..]).map_or(Rest::Gone { from, len }, Rest::InFile));
            self.bytes.truncate(from);
        }
        if self.bytes.capacity() > 2 * (self.bytes.len() - self.at) {
            self.bytes = self.bytes[self.at..].to_vec();
            self.at = 0;
        }
        pieces.count(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::event::{ObjectHash, encode};

    fn used(object: u32, into: &mut Vec<u8>) {
        encode(&Event::Used { object: ObjectHash(object) }, into);
    }

    /// A few bytes of a trace may claim to unpack to a megabyte, in each of very many threads.
    #[test]
    fn neither_memory_nor_disk_grow_with_what_is_claimed() {
        const PIECES: u32 = 100;
        const EVENTS: u32 = 2_000;
        let mut pieces = Pieces::default();
        let load = |piece: u32| {
            move |into: &mut Vec<u8>| {
                into.clear();
                (0..EVENTS).for_each(|event| used(piece * EVENTS + event + 1, into));
                Ok::<_, ()>(())
            }
        };
        let mut all: Vec<Piece> = (0..PIECES).map(|_| Piece::default()).collect();
        for (number, piece) in (0..).zip(&mut all) {
            piece.load(&mut pieces, load(number)).unwrap();
            piece.set_aside(&mut pieces);
        }
        let claimed = all[0].bytes.len();
        assert!(u64::from(PIECES * EVENTS) * 8 > 5 * FILE, "{claimed} bytes each");
        let mut again = 0;
        // In turns, as threads are read: each piece is moved to the file again and again.
        for event in 0..EVENTS {
            for (number, piece) in (0..).zip(&mut all) {
                let found = loop {
                    let mut found = None;
                    let next = piece.read(
                        &mut pieces,
                        |pieces| pieces,
                        |event, _| {
                            if let Event::Used { object } = event {
                                found = Some(object.0);
                            }
                            ControlFlow::Break(())
                        },
                    );
                    match next {
                        Err(Obstacle::Gone) => {
                            again += 1;
                            piece.load_again(&mut pieces, load(number)).unwrap();
                        }
                        other => break other.map(|_| found),
                    }
                };
                assert_eq!(found, Ok(Some(number * EVENTS + event + 1)));
                piece.set_aside(&mut pieces);
            }
        }
        let ended = all.iter_mut().all(|piece| {
            piece.read(&mut pieces, |pieces| pieces, |_, _| ControlFlow::Break(())) == Ok(ControlFlow::Continue(()))
        });
        assert!(ended);
        assert!(pieces.end <= FILE && again > 0, "{} bytes in the file, {again} times again", pieces.end);
        let window = 4 * WINDOW + (EVENTS as usize) * 8;
        assert!(pieces.most_held() < PIECES as usize * window, "{} bytes held", pieces.most_held());
    }
}
