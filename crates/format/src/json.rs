//! Blocks that hold JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::FormatError;
use crate::dynamic::DynamicCounts;
use crate::event::Ticket;

/// Which JVM ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Jvm {
    pub name: String,
    pub version: String,
}

/// Where arrays keep their elements, by the descriptor's letter (`L` for all references).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct ArrayLayout {
    pub base_offset: BTreeMap<String, u32>,
    pub index_scale: BTreeMap<String, u32>,
    pub object_alignment: u32,
}

/// The `Meta` block: how the trace came to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Meta {
    pub tool: String,
    pub pid: u32,
    pub start_unix_millis: u64,
    pub jvm: Jvm,
    pub java_home: String,
    pub command: String,
    pub options: BTreeMap<String, String>,
    pub id_scheme: String,
    /// Where the id of an object is while it is locked; empty in older traces.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub locked_ids: String,
    pub array_layout: ArrayLayout,
    pub start_ticket: Ticket,
}

/// What threads did while the VM went down, for people. Every program may have such threads: nothing is wrong with the trace.
pub const LATE: &str =
    "events of threads that ran on while the VM went down: they are later than the end of the trace, and not in it";

/// A `Problem` block: something lost, dropped or odd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Problem {
    pub what: String,
    pub count: u64,
}

impl Problem {
    /// Whether something is lost or wrong. Else it is as it has to be, and only worth knowing.
    pub fn is_serious(&self) -> bool {
        self.what != LATE
    }
}

/// How the blocks of events of a run were packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Packing {
    /// Most threads of the runtime's own that packed at a time.
    pub writers: u32,
    /// Blocks that threads of the program packed, which would have waited for an empty buffer otherwise.
    pub helped_blocks: u64,
    /// What packing took of processors, on all threads.
    pub cpu_seconds: f64,
    /// What appending these blocks took of a processor, one after the other: the part that no second thread can take over.
    pub append_seconds: f64,
}

/// The `End` block: the run was traced to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct End {
    pub reason: String,
    pub end_ticket: Ticket,
    /// Before packing.
    pub event_bytes: u64,
    pub blocks: u64,
    pub lost_events: u64,
    pub seconds: f64,
    /// Events in the trace, tickets not among them; none if nobody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Bytes of events that were thrown away unread, as was asked for; how many events these were nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded_bytes: Option<u64>,
    /// What packing and writing the trace took of processors, on all threads; none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_cpu_seconds: Option<f64>,
    /// Of it, who did what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
    /// None if classes made at run time were not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<DynamicCounts>,
}

/// The bytes of a JSON block.
pub fn encode_json(value: &impl Serialize) -> Vec<u8> {
    // Our structs have string keys and finite numbers only.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Reads a JSON block.
pub fn decode_json<T: for<'de> Deserialize<'de>>(raw: &[u8]) -> Result<T, FormatError> {
    serde_json::from_slice(raw).map_err(|e| FormatError::Json(e.to_string()))
}
