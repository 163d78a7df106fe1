//! Files that are put in place when they are complete, and where files lie beside a trace.

mod beside;
pub mod nameless;
mod whole;

pub use beside::lives_of;
pub use nameless::parent;
pub use whole::Whole;
