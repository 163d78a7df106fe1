//! Reports of the collector on objects (`deaths=gc`): those that it freed, and those that it still held at the end.
//!
//! Objects are tagged with their id when they are announced: an object born and freed between two collections would
//! escape any later search. `ObjectFree` reports the tags of freed objects some time after the collection, possibly
//! after the next has begun. A reported object was unreachable when the latest collection began.

use std::num::NonZeroU32;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use et_format::collector::{Collected, Fate};
use et_format::event::{ObjectHash, Ticket};
use et_jvm::sync::{lock, unpoisoned};
use thiserror::Error;

use crate::output::queue::Queue;
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{Jvmti, JvmtiError};

/// Maximum number of objects per record.
const RECORD: usize = 1 << 16;
/// Tag of the first of our own objects, larger than any id.
const OWN: i64 = 1 << 32;
/// Maximum time without a report of the collector at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the objects held at the end are unknown.
#[derive(Debug, Error)]
pub enum EndError {
    /// A function of JVMTI failed.
    #[error(transparent)]
    Jvmti(#[from] JvmtiError),
    /// The collector is concurrent: ZGC, Shenandoah.
    #[error("this collector works on threads that the VM has stopped by then")]
    Stopped,
    /// The collector does not collect on request (Epsilon).
    #[error("it freed nothing for {} seconds", PATIENCE.as_secs())]
    Silence,
}

/// Reports of the collector so far.
#[derive(Debug)]
pub struct Collector {
    share: NonZeroU32,
    said: Mutex<Said>,
    /// Signalled when one of our own objects is reported.
    told: Condvar,
}

#[derive(Debug, Default)]
struct Said {
    /// Start of the latest collection.
    by: Ticket,
    freed: Vec<ObjectHash>,
    /// Number of objects reported.
    count: u64,
    /// The latest of our own objects reported.
    own: i64,
    /// Whether further reports are ignored.
    is_over: bool,
}

impl Collector {
    /// The collector is asked about one object in `share`.
    pub fn new(share: NonZeroU32) -> Self {
        Self { share, said: Mutex::default(), told: Condvar::new() }
    }

    /// The collector is asked about one object in this many.
    pub fn share(&self) -> NonZeroU32 {
        self.share
    }

    /// Tags an object with its id, if it belongs to the sample.
    pub fn tag(&self, jvmti: Jvmti, object: Object, id: u32) {
        if id != 0 && id.is_multiple_of(self.share.get()) {
            // Fails only if out of memory: then there is no report on the object.
            let _ = jvmti.set_tag(object, id.into());
        }
    }

    /// A collection has begun. It may be the one that frees objects reported from now on.
    pub fn begins(&self, queue: &Queue, ticket: Ticket) {
        let mut said = lock(&self.said);
        self.hand_in(&mut said, queue);
        said.by = ticket;
    }

    /// An object was freed. May be called at a safepoint.
    pub fn freed(&self, queue: &Queue, tag: i64) {
        let mut said = lock(&self.said);
        said.count += 1;
        let Ok(id) = u32::try_from(tag) else {
            said.own = said.own.max(tag);
            return self.told.notify_all();
        };
        if said.is_over {
            return;
        }
        said.freed.push(ObjectHash(id));
        if said.freed.len() >= RECORD {
            self.hand_in(&mut said, queue);
        }
    }

    fn hand_in(&self, said: &mut Said, queue: &Queue) {
        let objects = std::mem::take(&mut said.freed);
        self.write(queue, Fate::Freed, said.by, objects);
    }

    fn write(&self, queue: &Queue, fate: Fate, by: Ticket, objects: Vec<ObjectHash>) {
        if !objects.is_empty() {
            queue.collected(&Collected { fate, share: self.share.get(), by, objects });
        }
    }

    /// At the end, makes the collector report all objects that it has freed, and queries those that it holds.
    ///
    /// Switching the event off would wait for pending reports, but must not be done: on JDK 17 the waiting thread does
    /// not stop for safepoints, and the thread that reports freed objects waits for the end of one. So objects of our
    /// own are freed, one by each of two collections. Reports come in batches, in order; when the second object is
    /// reported, the batch with the first, and with everything else that the first collection freed, is complete.
    pub fn end(&self, queue: &Queue, jvmti: Jvmti, env: Env) -> Result<(), EndError> {
        // Waiting for it would never end.
        if is_concurrent() {
            return Err(EndError::Stopped);
        }
        for own in [OWN, OWN + 1] {
            env.frame(1, |env| env.new_byte_array(0).map_or(Ok(()), |object| jvmti.set_tag(object, own)))?;
            jvmti.collect_garbage()?;
            self.wait_for(own)?;
        }
        let mut held = Vec::new();
        jvmti.tags(|tag| held.extend(u32::try_from(tag).map(ObjectHash)))?;
        let by = {
            let mut said = lock(&self.said);
            self.hand_in(&mut said, queue);
            said.is_over = true;
            said.by
        };
        let share = self.share.get();
        // An empty record also has meaning: no object is held.
        queue.collected(&Collected { fate: Fate::Held, share, by, objects: held });
        Ok(())
    }

    /// Waits until this object of ours is reported. Fails if nothing is reported for [`PATIENCE`].
    fn wait_for(&self, own: i64) -> Result<(), EndError> {
        let mut said = lock(&self.said);
        while said.own < own {
            let count = said.count;
            let (guard, timeout) = unpoisoned(self.told.wait_timeout(said, PATIENCE));
            said = guard;
            if timeout.timed_out() && said.count == count {
                return Err(EndError::Silence);
            }
        }
        Ok(())
    }
}

/// Whether collections run on threads concurrent with the program. No interface reports that, but the names of worker
/// threads, which exist longer than the threads that control them.
pub fn is_concurrent() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|name| collects_concurrently(&name))
}

/// `ZWorker#0`, `ZWorkerOld#0`, JDK 21 without generations `XWorker#0`, `Shenandoah GC T`. (Other collectors: `GC
/// Thread#0`, or none.)
fn collects_concurrently(thread: &str) -> bool {
    thread.starts_with("Shenandoah") || thread.contains("Worker") && !thread.starts_with("RuntimeWorker")
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::BlockKind;

    fn said(queue: &Queue) -> Vec<Collected> {
        let blocks = queue.take_blocks();
        assert!(blocks.iter().all(|(kind, _)| *kind == BlockKind::Collector));
        blocks.iter().flat_map(|(_, raw)| Collected::decode_block(raw).unwrap()).collect()
    }

    #[test]
    fn what_is_freed_is_told_with_the_latest_collection() {
        let (queue, collector) = (Queue::default(), Collector::new(NonZeroU32::MIN));
        collector.begins(&queue, Ticket(5));
        assert_eq!(said(&queue), []);
        collector.freed(&queue, 7);
        collector.freed(&queue, 9);
        collector.freed(&queue, OWN);
        collector.begins(&queue, Ticket(8));
        collector.freed(&queue, 11);
        collector.begins(&queue, Ticket(12));
        let record = |by, ids: &[u32]| Collected {
            fate: Fate::Freed,
            share: 1,
            by: Ticket(by),
            objects: ids.iter().copied().map(ObjectHash).collect(),
        };
        assert_eq!(said(&queue), [record(5, &[7, 9]), record(8, &[11])]);
    }

    #[test]
    fn many_are_told_in_parts() {
        let (queue, collector) = (Queue::default(), Collector::new(NonZeroU32::MIN));
        (1..=RECORD as i64 + 3).for_each(|tag| collector.freed(&queue, tag));
        collector.begins(&queue, Ticket(1));
        assert_eq!(said(&queue).iter().map(|said| said.objects.len()).collect::<Vec<_>>(), [RECORD, 3]);
    }

    #[test]
    fn concurrent_collectors_show_by_their_threads() {
        assert!(["ZWorker#0", "ZWorkerYoung#0", "XWorker#1", "Shenandoah GC T"].into_iter().all(collects_concurrently));
        let others = ["GC Thread#0", "G1 Conc#0", "RuntimeWorker#0", "VM Thread", "java"];
        assert!(!others.into_iter().any(collects_concurrently));
    }

    #[test]
    fn the_end_waits_for_as_long_as_something_is_told() {
        let (queue, collector) = (Queue::default(), Collector::new(NonZeroU32::MIN));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| collector.wait_for(OWN + 1));
            for tag in [OWN, 3, OWN + 1] {
                collector.freed(&queue, tag);
            }
            waiting.join().unwrap().unwrap();
        });
        assert!(collector.wait_for(OWN).is_ok());
    }
}
