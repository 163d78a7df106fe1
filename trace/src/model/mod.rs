//! Models of what a trace tells of: the heap and the stacks.

mod by_thread;
mod object_set;
mod objects;
mod refs;

pub use by_thread::{ByThread, Forget};
pub use object_set::ObjectSet;
pub use objects::{Node, Objects};
pub use refs::Refs;
