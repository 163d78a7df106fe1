//! What the runtime keeps for each class: whether it has its record, where its fields are, whether it was created at run time.

pub mod dynamic;
pub mod dynamic_ids;
pub mod records;
pub mod slots;
pub mod unloading;
