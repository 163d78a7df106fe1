//! Replays on MMTk's collectors: what is asked of `et-collect`, and its answer.

mod option;
mod plan;
mod report;

pub use option::MmtkOption;
pub use plan::Plan;
pub use report::{CollectReport, Final, Lengths, Pause};

/// `et-collect` ends with this code if the heap is too small.
pub const TOO_SMALL: u8 = 5;
/// `et-collect` ends with this code if a collection lost an object, or kept a dead one.
pub const CHECK_FAILED: u8 = 6;
