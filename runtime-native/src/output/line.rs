//! Chunks on their way to the file: packed by several threads in parallel, appended sequentially in order of arrival.
//!
//! A thread may take long to pack a chunk (it is not scheduled, or a native debugger has stopped it), and all later
//! chunks wait for it. So the writer may take over the first chunk of the line and pack it too. A chunk stays
//! unchanged until all its readers are done; the first result counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::buffers::pool::FullChunk;

/// A packed chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// The block, whose sequence number is set when it is appended; empty if the chunk is empty.
    pub block: Vec<u8>,
    /// Number of events, tickets not counted.
    pub events: u64,
    /// Bytes of events and tickets, unpacked.
    pub event_bytes: u64,
    /// Why a chunk with events has no block.
    pub problem: Option<String>,
}

/// A packed chunk that is next to be appended.
#[derive(Debug, PartialEq, Eq)]
pub struct Done {
    /// The block to append.
    pub packed: Packed,
    /// The chunk to release once the block is in the trace; `None` if another thread still reads it, and will release
    /// it.
    pub chunk: Option<FullChunk>,
}

/// A chunk to pack.
#[derive(Debug, PartialEq, Eq)]
pub struct Task {
    /// Its place in the order of all chunks.
    pub number: u64,
    /// The chunk, for reading only.
    pub chunk: FullChunk,
}

/// Chunks in hand-in order: first those taken by packing threads, then those still waiting.
#[derive(Debug, Default)]
pub struct Line {
    waiting: VecDeque<FullChunk>,
    taken: VecDeque<Slot>,
    /// The number of the first chunk in `taken`.
    first: u64,
    /// Chunks that were appended while another thread was still reading them.
    read_still: Vec<(u64, Slot)>,
}

#[derive(Debug)]
struct Slot {
    chunk: FullChunk,
    /// Number of threads packing it.
    readers: u32,
    since: Instant,
    packed: Option<Packed>,
}

impl Line {
    /// Adds a chunk at the end.
    pub fn push(&mut self, chunk: FullChunk) {
        self.waiting.push_back(chunk);
    }

    /// Number of chunks not taken by any thread.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether all chunks have been appended.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.taken.is_empty()
    }

    /// Whether there is a chunk that was taken and is not appended yet.
    pub fn is_moving(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Takes the first chunk not taken by any thread.
    pub fn take(&mut self) -> Option<Task> {
        let chunk = self.waiting.pop_front()?;
        let number = self.first + self.taken.len() as u64;
        let task = Task { number, chunk: chunk.alias() };
        self.taken.push_back(Slot { chunk, readers: 1, since: Instant::now(), packed: None });
        Some(task)
    }

    /// Takes over the first chunk of the line, if its thread has given up or has taken longer than `limit`.
    pub fn take_over(&mut self, limit: Duration) -> Option<Task> {
        let slot = self.taken.front_mut()?;
        if slot.packed.is_some() || slot.readers > 0 && slot.since.elapsed() < limit {
            return None;
        }
        slot.readers += 1;
        slot.since = Instant::now();
        Some(Task { number: self.first, chunk: slot.chunk.alias() })
    }

    /// Finishes a task, with or without a result. Returns the chunk to release, if it has been appended already and
    /// has no other reader.
    pub fn done(&mut self, number: u64, packed: Option<Packed>) -> Option<FullChunk> {
        let Some(place) = number.checked_sub(self.first) else {
            let at = self.read_still.iter().position(|(other, _)| *other == number)?;
            self.read_still[at].1.readers -= 1;
            return (self.read_still[at].1.readers == 0).then(|| self.read_still.swap_remove(at).1.chunk);
        };
        if let Some(slot) = self.taken.get_mut(place as usize) {
            slot.readers -= 1;
            if slot.packed.is_none() {
                slot.packed = packed;
            }
        }
        None
    }

    /// Whether the first chunk is packed or given up, so that the writer has work.
    pub fn needs_writer(&self) -> bool {
        self.taken.front().is_some_and(|slot| slot.packed.is_some() || slot.readers == 0)
    }

    /// Removes the first chunk from the line, if it is packed.
    pub fn next_done(&mut self) -> Option<Done> {
        let packed = self.taken.front_mut()?.packed.take()?;
        let slot = self.taken.pop_front()?;
        let number = self.first;
        self.first += 1;
        if slot.readers == 0 {
            return Some(Done { packed, chunk: Some(slot.chunk) });
        }
        self.read_still.push((number, slot));
        Some(Done { packed, chunk: None })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::buffers::pool::ThreadIndex;

    const LONG: Duration = Duration::from_secs(1000);

    fn chunk(index: u32) -> FullChunk {
        FullChunk { index, len: 0, thread: ThreadIndex(1), is_shared: false }
    }

    fn line(chunks: u32) -> Line {
        let mut line = Line::default();
        (0..chunks).for_each(|index| line.push(chunk(index)));
        line
    }

    fn packed(events: u64) -> Option<Packed> {
        Some(Packed { events, ..Packed::default() })
    }

    #[test]
    fn what_is_packed_first_waits_for_what_came_first() {
        let mut line = line(3);
        let [a, b, c] = [(); 3].map(|()| line.take().unwrap());
        assert_eq!((a.number, b.number, c.number, line.take()), (0, 1, 2, None));
        assert_eq!(line.done(c.number, packed(3)), None);
        assert!(line.next_done().is_none() && !line.needs_writer());
        line.done(a.number, packed(1));
        assert!(line.needs_writer());
        assert_eq!(line.next_done(), Some(Done { packed: packed(1).unwrap(), chunk: Some(chunk(0)) }));
        assert!(line.next_done().is_none());
        line.done(b.number, packed(2));
        let rest: Vec<_> = std::iter::from_fn(|| line.next_done()).map(|done| done.packed.events).collect();
        assert_eq!(rest, [2, 3]);
        assert!(line.is_empty());
    }

    #[test]
    fn who_never_comes_back_holds_nobody_up_and_keeps_its_chunk() {
        let mut line = line(2);
        let stuck = line.take().unwrap();
        assert_eq!(line.take_over(LONG), None);
        let again = line.take_over(Duration::ZERO).unwrap();
        assert_eq!(again, stuck);
        line.done(again.number, packed(7));
        assert_eq!(line.next_done(), Some(Done { packed: packed(7).unwrap(), chunk: None }), "somebody still reads it");
        let next = line.take().unwrap();
        assert_eq!(next.number, 1);
        // Much later: the result is ignored, and the chunk becomes free.
        assert_eq!(line.done(stuck.number, packed(8)), Some(chunk(0)));
        line.done(next.number, packed(9));
        assert_eq!(line.next_done().unwrap().chunk, Some(chunk(1)));
        assert!(line.is_empty());
    }

    #[test]
    fn what_was_given_up_is_taken_over_at_once() {
        let mut line = line(1);
        let task = line.take().unwrap();
        line.done(task.number, None);
        assert!(line.needs_writer() && line.next_done().is_none());
        let again = line.take_over(LONG).unwrap();
        line.done(again.number, packed(1));
        assert_eq!(line.next_done().unwrap().chunk, Some(chunk(0)));
    }
}
