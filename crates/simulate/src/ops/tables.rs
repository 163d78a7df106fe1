//! What stands behind the operations: classes, sites, threads, totals.

use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Amount {
    pub objects: u64,
    pub bytes: u64,
}

impl Amount {
    /// One object more.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }

    /// One less.
    #[inline]
    pub fn sub(&mut self, bytes: u64) {
        self.objects -= 1;
        self.bytes -= bytes;
    }
}

/// What an object of a class holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClassKind {
    /// Fields.
    Scalar,
    /// Elements that are references.
    References,
    /// Elements that are numbers.
    Numbers,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Class {
    /// JVM descriptor.
    pub descriptor: String,
    /// What its objects hold.
    pub kind: ClassKind,
    /// Slots for references that each object has; arrays have as many as they have elements.
    pub slots: u32,
}

/// A site that allocates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its id in the trace.
    pub site: u32,
    /// `java.util.HashMap.put:123`
    pub name: String,
}

/// How the VM lays objects out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// Bytes of a reference.
    pub reference_bytes: u32,
    /// Where the fields of an object begin.
    pub header_bytes: u32,
    /// Where the elements of an array of references begin.
    pub array_base: u32,
}

impl Default for Layout {
    fn default() -> Self {
        Self { reference_bytes: 4, header_bytes: 12, array_base: 16 }
    }
}

impl Layout {
    /// How many references an array of so many bytes has room for.
    pub fn elements(&self, bytes: u64) -> u32 {
        let room = bytes.saturating_sub(u64::from(self.array_base)) / u64::from(self.reference_bytes.max(1));
        room.try_into().unwrap_or(u32::MAX)
    }

    /// Bytes of an array of that many references.
    #[inline]
    pub fn array_bytes(&self, length: u32) -> u64 {
        (u64::from(self.array_base) + u64::from(self.reference_bytes) * u64::from(length)).next_multiple_of(8)
    }

    /// Where a slot lies in an object.
    #[inline]
    pub fn slot(&self, is_array: bool, slot: u32) -> u64 {
        let base = if is_array { self.array_base } else { self.header_bytes };
        u64::from(base) + u64::from(self.reference_bytes) * u64::from(slot)
    }
}

/// The moment at which the most bytes are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    /// Bytes alive then.
    pub bytes: u64,
    /// Objects alive then.
    pub objects: u64,
    /// Behind which operation, counted from 0.
    pub operation: u64,
}

/// Counts of the whole file.
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
    /// Of all objects, those included that were there when tracing began.
    pub allocated: Amount,
    pub initial: Amount,
    /// Where the most bytes are alive.
    pub peak: Peak,
    /// What is alive at the end.
    pub at_end: Amount,
    /// Of the trace.
    pub records: u64,
    /// Deaths that stand later than in the trace, because something still held the object.
    pub put_off: u64,
    /// Stores into slots or objects that the trace does not explain: they are left out.
    pub left_out: u64,
    /// Objects whose size the trace does not tell: 16 bytes, or as many as their elements need.
    pub sizes_unknown: u64,
}

/// All that is said of the operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tables {
    /// What made the file.
    pub tool: String,
    /// The trace that it was made from.
    pub trace: String,
    /// Which run the trace is of; a text does not say.
    pub run: Option<String>,
    /// The greatest handle.
    pub handles: u32,
    /// Static fields that hold or held references.
    pub static_fields: u32,
    /// How objects are laid out.
    pub layout: Layout,
    /// Counts.
    pub totals: Totals,
    /// By index.
    pub classes: Vec<Class>,
    /// Those that allocated something.
    pub sites: Vec<Site>,
    /// Thread ids of the trace, by index.
    pub threads: Vec<u32>,
    /// What is not as it should be in the trace.
    pub notes: Vec<String>,
}

impl Tables {
    /// The file's name of the trace, for titles.
    pub fn trace_name(&self) -> &str {
        Path::new(&self.trace).file_name().and_then(OsStr::to_str).unwrap_or(&self.trace)
    }
}
