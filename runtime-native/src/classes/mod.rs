//! State by class: whether it has its record, the offsets of its fields, whether it was created at run time.

pub mod dynamic;
pub mod dynamic_ids;
pub mod records;
pub mod slots;
pub mod unloading;

use std::sync::OnceLock;

use et_names::DynamicIds;

use dynamic::Dynamic;
use records::Classes;
use slots::{Kept, Slots};
use unloading::Unloading;

/// The tables of a run that are keyed by class.
#[derive(Debug)]
pub struct ClassTables {
    /// The classes that have their record.
    pub records: Classes,
    /// The fields by offset.
    pub slots: Slots,
    /// Rewrites classes created at run time; `None` if that is off.
    pub dynamic: Option<&'static Dynamic>,
    /// Ids for methods, sites and fields of classes created at run time.
    pub dynamic_ids: &'static DynamicIds,
    /// Reports classes that are unloaded; unset if the VM does not report them.
    pub unloading: OnceLock<Unloading>,
}

impl ClassTables {
    /// The tables at the beginning of a run.
    pub fn new(slots: Slots, dynamic: Option<&'static Dynamic>, dynamic_ids: &'static DynamicIds) -> Self {
        Self { records: Classes::default(), slots, dynamic, dynamic_ids, unloading: OnceLock::new() }
    }

    /// The class with this id was unloaded.
    pub fn forget(&self, id: u32) {
        // The records must be last: then the id is free.
        self.slots.forget(id);
        self.records.forget(id);
    }

    /// Sizes of the tables by name, for tests.
    pub fn sizes(&self) -> [(&'static str, usize); 3] {
        let Kept { own, layouts } = self.slots.kept();
        [("classes", self.records.count()), ("fields", own), ("layouts", layouts)]
    }
}
