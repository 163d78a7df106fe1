//! What holds an object although no record says so.

use et_names::FieldId;
use rustc_hash::FxHashSet;

use super::Special;
use crate::record::{Alloc, ObjectId, Record, Slot, ThreadId};
use crate::types::TypeId;

/// Stands between the records, where it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Hold {
    /// A slot, when tracing began; `origin` is null for a static field.
    Initial { origin: ObjectId, slot: Slot, target: ObjectId },
    /// The VM, until here, for that thread.
    Until { object: ObjectId, thread: ThreadId },
    /// The VM, to the end of the trace.
    ToTheEnd { object: ObjectId },
}

/// All that lifetimes are worked out from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Told {
    Record(Record),
    Hold(Hold),
}

/// Which slots do not keep their targets alive.
#[derive(Clone, Debug, Default)]
pub(super) struct WeakSlots {
    referent: Option<FieldId>,
    final_types: FxHashSet<TypeId>,
    /// References whose referent is held.
    final_references: FxHashSet<ObjectId>,
}

impl WeakSlots {
    pub fn new(special: &Special) -> Self {
        let (referent, final_types) = (special.referent, special.final_references.clone());
        Self { referent, final_types, final_references: FxHashSet::default() }
    }

    #[inline]
    pub fn saw(&mut self, alloc: &Alloc) {
        if self.final_types.contains(&alloc.ty) {
            self.final_references.insert(alloc.object);
        }
    }

    /// Whether that slot of that object does not keep its target alive.
    #[inline]
    pub fn is_weak(&self, origin: ObjectId, slot: Slot) -> bool {
        matches!((slot, self.referent), (Slot::Field(field), Some(referent)) if field == referent)
            && !self.final_references.contains(&origin)
    }
}
