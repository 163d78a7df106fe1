//! The header of results, as JSON and as text.

use et_names::units::{bytes, counted};
use serde::Serialize;

use et_simulate::ops::{Amount, Tables};

/// Properties of the replayed program.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    trace: &'a str,
    run: Option<&'a str>,
    peak_bytes: u64,
    peak_objects: u64,
    alive_at_end: Amount,
}

impl<'a> Head<'a> {
    pub(super) fn of(tables: &'a Tables) -> Self {
        let totals = &tables.totals;
        Self {
            trace: &tables.trace,
            run: tables.run.as_deref(),
            peak_bytes: totals.peak.bytes,
            peak_objects: totals.peak.objects,
            alive_at_end: totals.at_end,
        }
    }

    /// The header as a line of text, followed by an empty line.
    pub(super) fn text(&self) -> String {
        let (peak, objects) = (bytes(self.peak_bytes), counted(self.peak_objects, "object"));
        format!("{}: at most {peak} in {objects} alive at a time\n\n", self.trace)
    }
}
