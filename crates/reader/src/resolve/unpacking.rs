//! Unpacks pieces of events on another thread before they are needed.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;

use et_format::FormatError;
use et_system::threads::spawn_scoped;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::file::{ThreadEvents, TraceFile};

/// Maximum number of pieces unpacked ahead.
const READY: usize = 4;
/// Maximum number of pieces that were received before others that are needed first.
const EARLY: usize = 12;

/// Maximum length in bytes of a piece to unpack ahead: those of the runtime have 256 KB, and a few bytes of a damaged
/// trace may claim a gigabyte.
const LARGEST: u64 = 1 << 20;

/// A piece of a thread's events: thread index, number of the piece.
pub type PieceOf = (u32, usize);

struct Unpacked {
    piece: PieceOf,
    events: Result<Vec<u8>, FormatError>,
}

/// Unpacks pieces in the order in which they will probably be needed. If the order is wrong, or there is no thread for
/// it, the caller unpacks them.
#[derive(Debug)]
pub struct Unpacking<'a> {
    file: &'a TraceFile,
    worker: Option<Worker>,
    /// Pieces that were needed before they were received.
    missed: FxHashSet<PieceOf>,
    early: FxHashMap<PieceOf, Result<Vec<u8>, FormatError>>,
}

struct Worker {
    ready: Receiver<Unpacked>,
    /// Returns buffers for reuse.
    room: Sender<Vec<u8>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Worker")
    }
}

impl<'a> Unpacking<'a> {
    /// Nothing is unpacked ahead.
    pub fn when_asked(file: &'a TraceFile) -> Self {
        Self { file, worker: None, missed: FxHashSet::default(), early: FxHashMap::default() }
    }

    /// Unpacks ahead on a thread in that scope, if it can be started, until everything is unpacked or this is dropped.
    pub fn ahead<'scope>(file: &'a TraceFile, foreseen: Vec<PieceOf>, scope: &'scope Scope<'scope, '_>) -> Self
    where
        'a: 'scope,
    {
        let (send, ready) = sync_channel(READY);
        let (room, rooms) = channel();
        let started = spawn_scoped(scope, move || unpack_all(file, foreseen, &send, &rooms));
        Self { worker: started.ok().map(|_| Worker { ready, room }), ..Self::when_asked(file) }
    }

    /// Replaces the content of `into` by a piece of a thread's events.
    pub fn load(&mut self, thread: &ThreadEvents, number: usize, into: &mut Vec<u8>) -> Result<(), FormatError> {
        let is_small = self.file.event_bytes(thread, number) <= LARGEST;
        match if is_small { self.wait_for((thread.thread, number)) } else { None } {
            Some(events) => {
                let old = std::mem::replace(into, events?);
                if let Some(worker) = &self.worker {
                    // The thread may already have ended.
                    _ = worker.room.send(old);
                }
                Ok(())
            }
            None => self.file.load_events(thread, number, into),
        }
    }

    /// The piece, if it has been unpacked or will be soon.
    fn wait_for(&mut self, piece: PieceOf) -> Option<Result<Vec<u8>, FormatError>> {
        let worker = self.worker.as_ref()?;
        if let Some(events) = self.early.remove(&piece) {
            return Some(events);
        }
        while self.early.len() < EARLY {
            let Ok(next) = worker.ready.recv() else { break };
            if next.piece == piece {
                return Some(next.events);
            }
            if !self.missed.remove(&next.piece) {
                self.early.insert(next.piece, next.events);
            }
        }
        self.missed.insert(piece);
        None
    }
}

fn unpack_all(file: &TraceFile, pieces: Vec<PieceOf>, send: &SyncSender<Unpacked>, rooms: &Receiver<Vec<u8>>) {
    for piece @ (thread, number) in pieces {
        let Some(thread) = file.thread(thread).filter(|thread| file.event_bytes(thread, number) <= LARGEST) else {
            continue;
        };
        let mut events = rooms.try_recv().unwrap_or_default();
        let loaded = file.load_events(thread, number, &mut events);
        if send.send(Unpacked { piece, events: loaded.map(|()| events) }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TraceBuilder;
    use et_format::event::Event;
    use et_names::MethodId;
    use proptest::prelude::*;

    /// A thread with this number of different pieces.
    fn file_of_pieces(count: u32) -> TraceFile {
        let mut builder = TraceBuilder::new();
        for piece in 1..=count {
            builder.events(1, piece.into(), &[Event::Entry { method: MethodId(piece) }]);
        }
        TraceFile::from_bytes(builder.finish(), None).unwrap()
    }

    proptest! {
        /// Whatever order was foreseen, each piece is returned when it is requested.
        #[test]
        fn pieces_come_in_any_order(
            asked in Just((0..60usize).collect::<Vec<_>>()).prop_shuffle(),
            foreseen in Just((0..60usize).collect::<Vec<_>>()).prop_shuffle(),
            len in 0..60usize,
            stop in 0..80usize,
        ) {
            let file = file_of_pieces(60);
            let thread = file.thread(1).unwrap();
            std::thread::scope(|scope| {
                let foreseen = foreseen[..len].iter().map(|&number| (1, number)).collect();
                let mut unpacking = Unpacking::ahead(&file, foreseen, scope);
                let (mut got, mut expected) = (Vec::new(), Vec::new());
                for &number in asked.iter().take(stop) {
                    unpacking.load(thread, number, &mut got).unwrap();
                    file.load_events(thread, number, &mut expected).unwrap();
                    prop_assert_eq!(&got, &expected);
                    prop_assert!(unpacking.early.len() <= EARLY);
                }
                Ok(())
            })?;
        }
    }
}
