//! The trace format of TPTP's viewers (`docs/trcxml.xsd` is its schema): names and attributes of the elements. The
//! writer of a log must write each definition before its first use.

mod definitions;
mod element;
mod events;
mod head;

pub use definitions::{ClassDef, MethodDef, ThreadStart, object_def};
pub use element::{Element, comment};
pub use events::{
    Call, HeapSizes, ObjectAlloc, call, contended_enter, contended_entered, gc_finish, gc_start, object_free,
    thread_end, wait, waited,
};
pub use head::{END, Head, START, TRACE_ID, trace_end};
