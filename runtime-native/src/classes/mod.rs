//! What the runtime keeps for each class: whether it has its record, where its fields are, whether it was created at run time.

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

/// The tables by class of a run.
#[derive(Debug)]
pub struct ClassTables {
    /// Which classes have their record.
    pub records: Classes,
    /// Which field is at which offset.
    pub slots: Slots,
    /// Rewrites classes created at run time; none if that is off.
    pub dynamic: Option<&'static Dynamic>,
    /// Ids of what classes created at run time have: methods, sites, fields.
    pub dynamic_ids: &'static DynamicIds,
    /// Reports classes that are unloaded; none if the VM does not.
    pub unloading: OnceLock<Unloading>,
}

impl ClassTables {
    /// Of a run that begins.
    pub fn new(slots: Slots, dynamic: Option<&'static Dynamic>, dynamic_ids: &'static DynamicIds) -> Self {
        Self { records: Classes::default(), slots, dynamic, dynamic_ids, unloading: OnceLock::new() }
    }

    /// The class with this id was unloaded.
    pub fn forget(&self, id: u32) {
        // Its id is free once the records do not have it, which must be last.
        self.slots.forget(id);
        self.records.forget(id);
    }

    /// How large the tables are, by name, for tests.
    pub fn sizes(&self) -> [(&'static str, usize); 3] {
        let Kept { own, layouts } = self.slots.kept();
        [("classes", self.records.count()), ("fields", own), ("layouts", layouts)]
    }
}
