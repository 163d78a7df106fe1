//! The heap at a moment of the run: which objects existed, what held them, and what each held.
//!
//! [`take`] reads a trace up to a [`Moment`], including deaths, so that only live objects remain. Everything else works
//! on the [`Snapshot`]: [`dominators`] and [`retained`] compute what would be freed with an object, [`paths`] why it is
//! alive. [`growth`] compares several snapshots.

pub mod dominators;
mod freeze;
mod glimpsed;
mod graph;
pub mod growth;
pub mod hprof;
mod matching;
mod moment;
pub mod paths;
mod render;
mod report;
mod resident;
pub mod retained;
mod snapshot;
mod survivors;
mod take;
#[cfg(test)]
pub(crate) mod tests;
mod top;

pub use glimpsed::Glimpsed;
pub use graph::Graph;
pub use matching::Matching;
pub use moment::{Moment, MomentError, Timeline, tick_of_percent};
pub use render::{render_class_paths, render_classes, render_dominators, render_holders, render_paths};
pub use report::{
    ClassLine, ClassPaths, Classes, DominatorLine, Dominators, HeapLine, HolderLine, Holders, ObjectLine, Paths,
    classes, dominance, dominator_line, dominators_of, holders, lasting_dominance, paths_to, paths_to_class,
};
pub(crate) use resident::died_at;
#[cfg(test)]
pub(crate) use resident::is_at;
pub use resident::{Resident, resident};
pub use retained::Dominance;
pub use snapshot::{Class, ClassNumber, Object, Reference, Root, RootKind, Snapshot, Taken, Via, Watched};
pub use survivors::{Survivor, survivors};
pub use take::{HeapError, Request, take, take_by, take_on_the_way, tick_of};
pub use top::{HeapTop, HeldFrom, TopLine, TreeBounds};
