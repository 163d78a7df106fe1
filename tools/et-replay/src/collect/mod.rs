//! Real collectors: what the program costs under each of MMTk's. The collectors are in a program of their own, `et-collect`, which is started
//! once for each plan and heap; here is what is asked of it, and what is made of its answers.

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
