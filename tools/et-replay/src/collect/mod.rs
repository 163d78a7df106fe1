//! Real collectors: what the program costs under each of MMTk's. The collectors are in a program of their own, `et-collect`, which is started
//! once for each plan and heap; here is what is asked of it, and what is made of its answers.

mod child;
mod curve;
mod option;
mod page;
mod plan;
mod repeat;
mod report;
mod search;
mod table;

pub use child::{CHECK_FAILED, ChildError, Request, TOO_SMALL, find, run};
pub use curve::{Curve, Point, TIMES, draw};
pub use et_names::units::bytes;
pub use option::MmtkOption;
pub use page::page;
pub use plan::Plan;
pub use repeat::{Range, Replay, Spread};
pub use report::{CollectReport, Final, Lengths, Pause};
pub use search::smallest_heap;
pub use table::render;
