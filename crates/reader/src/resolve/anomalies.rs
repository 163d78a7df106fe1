//! What did not fit: counted, never silent.

use serde::{Deserialize, Serialize};

use et_names::units::counted;

use crate::file::TraceFile;

macro_rules! anomalies {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// Counts of what did not fit while events were turned into records.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct Anomalies {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Anomalies {
            /// Those that occurred, with what they mean.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$name),)*].into_iter().filter(|&(_, count)| count > 0)
            }
        }
    };
}

anomalies! {
    /// An exit, exceptional exit or `SuperCall` of a method that is not on the stack: no record.
    unmatched_exits: "exits of methods that were not on the stack",
    /// A `Throw` or `Handle` in a method that is not on the stack: no record.
    unmatched_exceptions: "throws or catches in methods that were not on the stack",
    /// Frames that left without an event although no exception was under way.
    frames_lost: "frames that left without a trace",
    /// Frames left when their thread ended.
    frames_at_thread_end: "frames left when their thread ended",
    /// A constructor returned although no object was seen to be allocated for it.
    constructors_without_object: "constructors that returned without an allocation",
    /// A virtual thread was unmounted while the arguments of a `super(…)` were computed.
    constructors_split: "constructors of unknown objects across a switch of virtual threads",
    /// Millions of events came while the arguments of a `super(…)` were computed: what is kept of them is bounded.
    constructors_too_far: "constructors whose objects came too long after them (one was made up)",
    /// Objects mentioned before anything was said of them: a `P` was made up.
    unknown_objects: "objects of unknown origin (a P record was made up)",
    /// Method ids that no names table has.
    unknown_methods: "uses of unknown method ids (a names table was not found: run with -Det.names=JAR)",
    /// Site ids that no names table has.
    unknown_sites: "uses of unknown site ids",
    /// Field references that no names table has.
    unknown_field_refs: "uses of unknown field references",
    /// Field references whose class or field is in no names table: a field of its own was made up.
    unresolved_fields: "field references that lead to no known field (one was made up)",
    /// Classes that no class record describes.
    unknown_classes: "allocations of unknown classes",
    /// A `New` whose site allocates another type: the site was dropped.
    site_mismatches: "allocations whose site is of another type (site dropped)",
    /// Array allocations without a known site, hence without a type.
    untyped_arrays: "arrays of unknown type",
    /// Allocations whose size the trace does not tell.
    unknown_sizes: "objects of unknown size",
    /// Tickets lower than the one before them in their thread.
    ticket_regressions: "tickets out of order",
    /// Initial objects or references that contradict each other.
    bad_initial_references: "initial references of unknown objects",
}

/// What is missing from the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// Events that the runtime says it lost.
    pub events: u64,
    /// Pieces of events that could not be decoded.
    pub undecodable_pieces: u64,
    /// Their bytes.
    pub undecodable_bytes: u64,
    /// Bytes of events that the runtime threw away, as was asked for; how many events these were nobody knows.
    #[serde(default)]
    pub discarded_bytes: u64,
}

impl Lost {
    /// What the runtime says of it, without a look at the events.
    pub fn known(file: &TraceFile) -> Self {
        Self { events: file.lost_events(), discarded_bytes: file.discarded_bytes(), ..Self::default() }
    }

    /// One number for `# lost`.
    pub fn total(&self) -> u64 {
        // The trace says how many events, and a damaged one says anything: what is lost must not come to nothing.
        self.events.saturating_add(self.undecodable_pieces).saturating_add(u64::from(self.discarded_bytes > 0))
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { events, undecodable_pieces: pieces, undecodable_bytes: bytes, discarded_bytes: discarded } = *self;
        let events = format!("{} that the runtime had no buffer for", counted(events, "event"));
        let pieces = format!("{} of events that cannot be decoded ({bytes} bytes)", counted(pieces, "block"));
        let discarded_text = format!("all of them, {discarded} bytes or more, were thrown away uncounted (discard=on)");
        let parts = [(discarded, discarded_text), (self.events, events), (self.undecodable_pieces, pieces)];
        let said: Vec<String> = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
        f.write_str(if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_never_comes_to_nothing() {
        let lost = Lost { events: u64::MAX, undecodable_pieces: 1, ..Lost::default() };
        assert_eq!(lost.total(), u64::MAX);
    }
}
