//! Objects that the collector still held at the end although the trace says that they had died: what holds them?

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::heap::{Known, Mention};
use et_reader::record::{AllocKind, ObjectId, ThreadId};
use et_reader::types::{TypeId, Types};

/// The reason, as far as a trace can show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Created by the VM, which holds it in slots of its own: constant pools, locks of classes.
    Vm,
    /// Of `java.lang.invoke`: linked call sites and method handles, which the VM keeps in constant pools.
    Linkage,
    /// A soft reference refers to it, and memory was not short.
    Soft,
    /// A thread used it last that still ran at the end: one of its local variables may hold it.
    Local,
    /// A final reference let go of it last: its finalizer ran, or was about to.
    Finalizer,
    /// The VM, native code, or a slot that the trace does not see.
    Unknown,
}

/// An object that the collector held although it is dead in the trace.
#[derive(Debug)]
pub struct Kept {
    pub id: ObjectId,
    pub born: u64,
    pub last: Mention,
    pub ty: TypeId,
    pub size: u64,
    pub cause: Cause,
    /// Not it, but one that holds it.
    pub through: bool,
    thread: ThreadId,
    own_cause: Option<Cause>,
    holds: Vec<ObjectId>,
}

/// Collects all such objects.
#[derive(Debug, Default)]
pub struct KeptObjects {
    all: FxHashMap<ObjectId, Kept>,
    /// Referents of soft references, and of final ones.
    referents: FxHashMap<ObjectId, Cause>,
}

impl KeptObjects {
    /// A reference of that kind referred to the object before it died.
    pub fn referent(&mut self, object: ObjectId, cause: Cause) {
        self.referents.insert(object, cause);
    }

    /// The object has died, by that thread's action.
    pub fn died(&mut self, id: ObjectId, object: &Known, holds: Vec<ObjectId>, thread: ThreadId, types: &Types) {
        let &Known { born, last, ty, size, kind, .. } = object;
        let is_linkage = types.descriptor(ty).starts_with("Ljava/lang/invoke/");
        let own_cause = match kind {
            AllocKind::Vm => Some(Cause::Vm),
            _ => is_linkage.then_some(Cause::Linkage),
        };
        let kept = Kept { id, born, last, ty, size, cause: Cause::Unknown, through: false, thread, own_cause, holds };
        self.all.insert(id, kept);
    }

    /// Returns the result at the end of the trace.
    pub fn finish(mut self, still_runs: impl Fn(ThreadId) -> bool) -> Vec<Kept> {
        let held: FxHashSet<ObjectId> = self
            .all
            .iter()
            .flat_map(|(id, kept)| kept.holds.iter().filter(move |target| *target != id))
            .copied()
            .collect();
        let mut ids: Vec<ObjectId> = self.all.keys().copied().collect();
        ids.sort_unstable();
        let mut seen = FxHashSet::default();
        let mut queue = VecDeque::new();
        // First those that nothing else of these holds and those that a reference refers to; then circles.
        for circles in [false, true] {
            for &id in &ids {
                let referent = self.referents.get(&id).copied();
                if seen.contains(&id) || !circles && held.contains(&id) && referent.is_none() {
                    continue;
                }
                seen.insert(id);
                if let Some(kept) = self.all.get_mut(&id) {
                    let local = || still_runs(kept.thread).then_some(Cause::Local);
                    kept.cause = referent.or(kept.own_cause).or_else(local).unwrap_or(Cause::Unknown);
                    queue.push_back(id);
                }
                if circles {
                    self.pass_on(&mut queue, &mut seen);
                }
            }
            self.pass_on(&mut queue, &mut seen);
        }
        ids.iter().filter_map(|id| self.all.remove(id)).collect()
    }

    fn pass_on(&mut self, queue: &mut VecDeque<ObjectId>, seen: &mut FxHashSet<ObjectId>) {
        while let Some(id) = queue.pop_front() {
            let Some(kept) = self.all.get_mut(&id) else { continue };
            let (cause, holds) = (kept.cause, std::mem::take(&mut kept.holds));
            for target in holds {
                if let Some(kept) = self.all.get_mut(&target)
                    && seen.insert(target)
                {
                    (kept.cause, kept.through) = (cause, true);
                    queue.push_back(target);
                }
            }
        }
    }
}
