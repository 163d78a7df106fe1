//! What is worked out from the records of a trace, one module for each question.

pub mod compare;
pub mod heap;
pub mod summary;
mod table;
pub mod validate;
