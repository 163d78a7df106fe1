//! What follows the operations in the file: classes, sites, threads, totals.

use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A number of objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Amount {
    pub objects: u64,
    pub bytes: u64,
}

impl Amount {
    /// Adds one object.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }

    /// Subtracts one object.
    #[inline]
    pub fn sub(&mut self, bytes: u64) {
        self.objects -= 1;
        self.bytes -= bytes;
    }
}

/// What the objects of a class contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClassKind {
    /// Fields.
    Scalar,
    /// Reference elements.
    References,
    /// Primitive elements.
    Numbers,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Class {
    /// JVM descriptor.
    pub descriptor: String,
    /// What its objects contain.
    pub kind: ClassKind,
    /// Number of reference slots per object; an array has one per element instead.
    pub slots: u32,
}

/// An allocation site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its id in the trace.
    pub site: u32,
    /// For example `java.util.HashMap.put:123`.
    pub name: String,
}

/// Object layout of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// Size of a reference in bytes.
    pub reference_bytes: u32,
    /// Offset of the first field of an object.
    pub header_bytes: u32,
    /// Offset of the first element of a reference array.
    pub array_base: u32,
}

impl Default for Layout {
    fn default() -> Self {
        Self { reference_bytes: 4, header_bytes: 12, array_base: 16 }
    }
}

impl Layout {
    /// Maximum length of a reference array of that many bytes.
    pub fn elements(&self, bytes: u64) -> u32 {
        let room = bytes.saturating_sub(u64::from(self.array_base)) / u64::from(self.reference_bytes.max(1));
        room.try_into().unwrap_or(u32::MAX)
    }

    /// Bytes of a reference array of that length.
    #[inline]
    pub fn array_bytes(&self, length: u32) -> u64 {
        (u64::from(self.array_base) + u64::from(self.reference_bytes) * u64::from(length)).next_multiple_of(8)
    }

    /// Offset of a slot in an object.
    #[inline]
    pub fn slot(&self, is_array: bool, slot: u32) -> u64 {
        let base = if is_array { self.array_base } else { self.header_bytes };
        u64::from(base) + u64::from(self.reference_bytes) * u64::from(slot)
    }
}

/// The point with the most live bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    /// Bytes alive at that point.
    pub bytes: u64,
    /// Objects alive at that point.
    pub objects: u64,
    /// The operation after which it is reached, counted from 0.
    pub operation: u64,
}

/// Totals of the whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Totals {
    pub operations: u64,
    pub births: u64,
    pub updates: u64,
    pub static_updates: u64,
    pub deaths: u64,
    pub touches: u64,
    pub thread_switches: u64,
    pub ticks: u64,
    /// All objects, including those that existed when tracing began.
    pub allocated: Amount,
    pub initial: Amount,
    /// The point with the most live bytes.
    pub peak: Peak,
    /// Objects alive at the end.
    pub at_end: Amount,
    /// Number of records of the trace.
    pub records: u64,
    /// Number of deaths postponed because the object was still referenced.
    pub put_off: u64,
    /// Number of stores omitted because the trace does not contain the object or element.
    pub left_out: u64,
    /// Number of objects without a size in the trace: 16 bytes are assumed, or what their elements need.
    pub sizes_unknown: u64,
}

/// The tables of an operations file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tables {
    /// Name and version of the tool that wrote the file.
    pub tool: String,
    /// Path of the trace it was made from.
    pub trace: String,
    /// Id of the traced run; `None` if made from a text.
    pub run: Option<String>,
    /// Maximum handle.
    pub handles: u32,
    /// Number of static fields that hold references at some time.
    pub static_fields: u32,
    /// Object layout.
    pub layout: Layout,
    /// Totals.
    pub totals: Totals,
    /// Classes by index.
    pub classes: Vec<Class>,
    /// Sites that allocated objects.
    pub sites: Vec<Site>,
    /// Thread ids of the trace, by index.
    pub threads: Vec<u32>,
    /// Warnings about the trace.
    pub notes: Vec<String>,
}

impl Tables {
    /// File name of the trace, for titles.
    pub fn trace_name(&self) -> &str {
        Path::new(&self.trace).file_name().and_then(OsStr::to_str).unwrap_or(&self.trace)
    }
}
