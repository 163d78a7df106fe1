//! The heap as the trace has it, record after record.

use et_trace::lifetimes::Step;
use et_trace::model;
use et_trace::record::{Alloc, AllocKind, Record};
use et_trace::types::TypeId;

/// Number of a record, deaths counted, and its letter.
pub type Mention = (u64, char);

/// What is to be known of an object that is alive, as the trace sees it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Known {
    pub ty: TypeId,
    pub kind: AllocKind,
    pub size: u64,
    pub born: u64,
    pub last: Mention,
    /// The collector freed it all the same; which of those it is.
    pub early: Option<u32>,
}

/// All of them.
pub type Heap = model::Heap<Known>;

/// What a step makes of the heap.
#[inline]
pub fn step(heap: &mut Heap, position: u64, step: &Step) {
    match *step {
        Step::Record(Record::Alloc(Alloc { object, ty, kind, size, .. })) => {
            let last = (position, kind.letter());
            heap.insert(object, Known { ty, kind, size, born: position, last, early: None });
        }
        Step::Record(Record::Update { origin, target, slot, .. })
        | Step::Initial { origin, target, slot, weak: false } => _ = heap.put(origin, slot, target),
        _ => {}
    }
}
