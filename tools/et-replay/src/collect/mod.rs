//! Real collectors: the cost of the program under each of MMTk's collectors. They are in a separate program,
//! `et-collect`, which runs once per plan and heap; this module starts it and presents its reports.

mod child;
mod curve;
mod page;
mod repeat;
mod search;
mod table;

pub use child::{ChildError, Request, find, run};
pub use curve::{Curve, Point, TIMES, draw};
pub use page::page;
pub use repeat::{Range, Replay, Spread};
pub use search::smallest_heap;
pub use table::render;
