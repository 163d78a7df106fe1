//! Analyses of a trace, one module for each question: computed from its records, or from the rows of its objects.

pub mod changes;
pub mod compare;
pub mod connectivity;
pub mod contention;
pub mod correlation;
pub mod course;
pub mod diff;
mod drag;
pub mod escape;
mod excerpt;
pub mod field;
mod flame;
mod fold;
pub mod groups;
pub mod heap;
mod labels;
mod named;
mod numbers;
pub mod object;
pub mod objects;
mod pattern;
mod place;
pub mod pretenure;
pub mod profile;
pub mod report;
mod selection;
pub mod shape;
mod shown;
mod span;
pub mod summary;
pub mod survival;
mod table;
#[cfg(test)]
mod testing;

pub use et_reader::amount::Amount;
pub use excerpt::Excerpt;
pub use flame::{Flame, Frame, FrameKind, FrameName};
pub use fold::{fold, in_order};
pub use labels::{Labels, Place};
pub use named::Named;
pub use selection::{Selected, Selection, SelectionError, alive};
pub use shown::ShownStacks;
pub use span::{QueryError, Span};
