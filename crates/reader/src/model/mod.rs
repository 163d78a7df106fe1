//! Models that are maintained while a trace is read: stacks, calling contexts, and the heap.

mod by_thread;
mod contexts;
mod heap;
mod incoming;
mod object_set;
mod objects;
mod refs;
mod stacks;

pub use by_thread::{ByThread, Forget};
pub use contexts::{Context, ContextId, Contexts};
pub use heap::{Heap, Holder, Marks, Object};
pub use incoming::Incoming;
pub use object_set::ObjectSet;
pub use objects::{Node, Objects};
pub use refs::{Kept, Refs};
pub use stacks::{Frame, FrameRef, OnStack, Stack, Stacks};
