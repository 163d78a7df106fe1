//! Replays on collectors of MMTk: the request to `et-collect`, and its answer.

mod option;
mod plan;
mod report;

pub use option::MmtkOption;
pub use plan::Plan;
pub use report::{CollectReport, Final, Lengths, Pause};

/// Exit code of `et-collect` if the heap is too small.
pub const TOO_SMALL: u8 = 5;
/// Exit code of `et-collect` if a collection lost a live object or kept a dead one.
pub const CHECK_FAILED: u8 = 6;
