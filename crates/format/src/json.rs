//! Blocks with JSON content.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::FormatError;
use crate::dynamic::DynamicCounts;
use crate::event::Ticket;

/// Name and version of the JVM that ran the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Jvm {
    pub name: String,
    pub version: String,
}

/// Layout of arrays in bytes, by the letter of the element type's descriptor (`L` for all references).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArrayLayout {
    pub base_offset: BTreeMap<String, u32>,
    pub index_scale: BTreeMap<String, u32>,
    pub object_alignment: u32,
}

/// The `Meta` block: how the trace was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    pub tool: String,
    pub pid: u32,
    pub start_unix_millis: u64,
    pub jvm: Jvm,
    pub java_home: String,
    pub command: String,
    pub options: BTreeMap<String, String>,
    pub id_scheme: String,
    /// Where the identity hash of a locked object is kept; empty in older traces.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub locked_ids: String,
    pub array_layout: ArrayLayout,
    pub start_ticket: Ticket,
}

/// For users: explains that threads were active while the VM shut down. Any program may have such threads; the trace is
/// complete.
pub const LATE: &str =
    "events of threads that ran on while the VM went down: they are later than the end of the trace, and not in it";

/// A `Problem` block: events that were lost or dropped, or something unusual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Problem {
    pub what: String,
    pub count: u64,
}

impl Problem {
    /// Whether something is lost or wrong. If not, the problem is inherent and only worth knowing.
    pub fn is_serious(&self) -> bool {
        self.what != LATE
    }
}

/// How the event blocks of a run were packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Packing {
    /// Maximum number of the runtime's own threads that packed at the same time.
    pub writers: u32,
    /// Blocks packed by threads of the program, which would otherwise have had to wait for an empty buffer.
    pub helped_blocks: u64,
    /// CPU time spent on packing, in seconds, summed over all threads.
    pub cpu_seconds: f64,
    /// CPU time spent on appending the blocks to the file, in seconds. This part is sequential.
    pub append_seconds: f64,
}

/// The `End` block: the run was traced to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct End {
    pub reason: String,
    pub end_ticket: Ticket,
    /// Bytes of events before packing.
    pub event_bytes: u64,
    pub blocks: u64,
    pub lost_events: u64,
    pub seconds: f64,
    /// Events in the trace, not counting tickets; `None` if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Bytes of events that were discarded unread because the options asked for it. How many events these were is
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded_bytes: Option<u64>,
    /// CPU time spent on packing and writing the trace, in seconds, summed over all threads; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_cpu_seconds: Option<f64>,
    /// How that time was spent; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
    /// `None` if classes created at run time were not instrumented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<DynamicCounts>,
}

/// Encodes a value as the content of a JSON block.
pub fn encode_json(value: &impl Serialize) -> Vec<u8> {
    // Cannot fail: our structs have only string keys and finite numbers.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Decodes the content of a JSON block.
pub fn decode_json<T: for<'de> Deserialize<'de>>(raw: &[u8]) -> Result<T, FormatError> {
    serde_json::from_slice(raw).map_err(|e| FormatError::Json(e.to_string()))
}
