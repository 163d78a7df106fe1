//! The heap as it was at a moment of the run: which objects there were, what held them, and what each held.
//!
//! [`take`] reads a trace up to a [`Moment`], deaths included, so that what is there is what is alive. The rest works on the
//! [`Snapshot`]: [`dominators`] and [`retained`] say what would go if an object went, [`paths`] why it is there. [`growth`] compares
//! several.

pub mod dominators;
mod graph;
pub mod growth;
pub mod hprof;
mod moment;
pub mod paths;
mod render;
mod report;
pub mod retained;
mod snapshot;
mod take;
#[cfg(test)]
mod tests;

pub use graph::Graph;
pub use moment::{Moment, MomentError, Timeline};
pub use render::{render_classes, render_dominators, render_paths};
pub use report::{
    ClassLine, Classes, DominatorLine, Dominators, HeapLine, Paths, classes, dominance, dominators_of, paths_to,
};
pub use retained::Dominance;
pub use snapshot::{Class, ClassNumber, Object, Reference, Root, RootKind, Snapshot, Taken, Via, Watched};
pub use take::{HeapError, Request, take, take_by, take_on_the_way};
