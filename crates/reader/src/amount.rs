//! Objects and bytes, which all analyses count.

use std::ops::AddAssign;

use crate::population::Rows;
use serde::{Deserialize, Serialize};

/// A number of objects and their total size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    pub objects: u64,
    pub bytes: u64,
}

impl Amount {
    /// The objects of a row, whose size must be among its columns.
    #[inline]
    pub fn of(rows: &Rows, row: usize) -> Self {
        Self { objects: rows.objects(row), bytes: rows.size[row] }
    }

    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}
