//! Files that are put in place when they are complete, and paths of files beside a trace.

mod beside;
mod hashed;
pub mod nameless;
pub mod output;
mod whole;

pub use beside::lives_of;
pub use hashed::Hashed;
pub use nameless::parent;
pub use whole::Whole;
