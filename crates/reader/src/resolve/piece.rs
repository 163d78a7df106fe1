//! A piece of a thread's events that is being read. Where very many threads run at once, those that have been quiet for long
//! keep only the start of what they have unpacked in memory, and the rest in a temporary file. Where that is full, the rest is
//! unpacked again: a few bytes of a trace may claim to be very many, for each of very many threads.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use et_format::event::{self, Event, MAX_WORDS, WORD};

/// Bytes of unpacked events that all threads together keep in memory, at the least.
const MEMORY: usize = if cfg!(test) { 64 << 10 } else { 256 << 20 };
/// Bytes that are in memory of a piece whose rest is in the file.
const WINDOW: usize = if cfg!(test) { 2 * LARGEST } else { 8 << 10 };
/// Bytes of the temporary file, at the most.
const FILE: u64 = if cfg!(test) { 256 << 10 } else { 8 << 30 };
/// No event is larger.
const LARGEST: usize = MAX_WORDS * WORD;

/// What follows of a piece that is not in memory.
#[derive(Debug)]
enum Rest {
    InFile(InFile),
    /// It is to be unpacked again, and begins at this byte of the piece, which has so many.
    Gone {
        from: usize,
        len: usize,
    },
}

/// Where the rest of a piece lies in the file.
#[derive(Debug)]
struct InFile {
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

    /// Nothing if the file takes no more.
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

/// Why a piece does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// What follows cannot be decoded.
    Undecodable {
        /// Its bytes.
        bytes: u64,
    },
    /// What follows is to be [loaded again](Piece::load_again).
    Gone,
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
        if let Some(Rest::InFile(rest)) = self.rest.take() {
            pieces.release(&rest);
        }
    }

    /// Takes the same bytes again, and goes on where it was.
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

    /// Hands events to `apply` until it breaks off or there are no more. What follows events that cannot be decoded is left out.
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

    /// Reads more of the rest.
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

    /// Keeps only the next events in memory.
    pub fn set_aside(&mut self, pieces: &mut Pieces) {
        let left = self.bytes.len() - self.at;
        if self.rest.is_none() && left > 2 * WINDOW {
            // So much is left of a whole piece only: its first byte is that of the piece.
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

    /// A few bytes of a trace may claim to be a megabyte, in each of very many threads.
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
        // In turns, as threads are read: each piece is set aside again and again.
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
