//! The declarations of the tables, one module each.

pub mod allocations_by_second;
pub mod calls;
pub mod classes;
pub mod collections;
pub mod contexts;
pub mod counts;
pub mod exceptions;
pub mod fields;
pub mod methods;
pub mod monitors;
pub mod objects;
pub mod refs;
pub mod sites;
pub mod threads;
pub mod trace;
pub mod updates;

use et_columns::Table;

/// All tables: first those about what happened, then those that explain numbers.
pub const ALL: [&Table; 16] = [
    &objects::TABLE,
    &updates::TABLE,
    &refs::TABLE,
    &calls::TABLE,
    &counts::TABLE,
    &allocations_by_second::TABLE,
    &exceptions::TABLE,
    &threads::TABLE,
    &collections::TABLE,
    &monitors::TABLE,
    &classes::TABLE,
    &methods::TABLE,
    &fields::TABLE,
    &sites::TABLE,
    &contexts::TABLE,
    &trace::TABLE,
];
