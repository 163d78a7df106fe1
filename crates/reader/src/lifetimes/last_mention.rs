//! Finds the last mention of each object by going through the steps backward. An object is only remembered between its
//! last mention and its allocation, so memory is bounded by the number of objects in use at a time.

use std::io;
use std::sync::mpsc::sync_channel;

use et_system::threads::spawn_scoped;
use rustc_hash::FxHashSet;

use super::spool::Spool;
use super::step::Step;
use crate::record::{ObjectId, Record};
use crate::store::{Piece, Store};
use crate::watch::Watcher;

const RECENT: usize = 1 << 12;

/// The objects that will be mentioned again, when going backward from the end.
struct Seen {
    all: FxHashSet<ObjectId>,
    /// Objects that are certainly in `all`, which saves most lookups.
    recent: Box<[ObjectId; RECENT]>,
}

impl Seen {
    #[inline]
    fn insert(&mut self, object: ObjectId) -> bool {
        let recent = &mut self.recent[object.0 as usize % RECENT];
        if *recent == object {
            return false;
        }
        *recent = object;
        self.all.insert(object)
    }

    #[inline]
    fn remove(&mut self, object: ObjectId) {
        let recent = &mut self.recent[object.0 as usize % RECENT];
        if *recent == object {
            *recent = ObjectId::NULL;
        }
        self.all.remove(&object);
    }
}

/// One byte per step: bit `n` says that the n-th of [`Step::mentions`] is the last mention of that object.
#[derive(Debug)]
pub struct LastMentions {
    store: Store,
    pieces: Vec<Piece>,
}

impl LastMentions {
    /// Goes through the entire spool. Objects in `held_at_end` have no last mention.
    pub fn find(spool: &Spool, held_at_end: impl IntoIterator<Item = ObjectId>, watcher: &Watcher) -> io::Result<Self> {
        let mut seen = Seen { all: held_at_end.into_iter().collect(), recent: Box::new([ObjectId::NULL; RECENT]) };
        let mut store = Store::new(spool.limits().memory_bytes);
        let mut pieces = Vec::with_capacity(spool.pieces());
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel(1);
            let reader = spawn_scoped(scope, move || {
                for piece in (0..spool.pieces()).rev() {
                    let mut steps = Vec::new();
                    spool.read(piece, &mut steps)?;
                    if send.send(steps).is_err() {
                        break;
                    }
                }
                io::Result::Ok(())
            })?;
            let mut bits = Vec::new();
            for steps in &receive {
                watcher.add(steps.len() as u64);
                bits.clear();
                bits.resize(steps.len(), 0u8);
                for (step, bits) in steps.iter().zip(&mut bits).rev() {
                    for (place, object) in step.mentions().into_iter().enumerate() {
                        if !object.is_null() && seen.insert(object) {
                            *bits |= 1 << place;
                        }
                    }
                    if let Step::Record(Record::Alloc(alloc)) = step {
                        seen.remove(alloc.object);
                    }
                }
                pieces.push(store.append(&bits)?);
            }
            drop(receive);
            match reader.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?;
        pieces.reverse();
        Ok(Self { store, pieces })
    }

    /// The bytes of the steps of a piece.
    pub fn read(&self, piece: usize) -> io::Result<Vec<u8>> {
        self.store.read(self.pieces[piece])
    }
}
