//! Events that did not fit: counted, never silently ignored.

use serde::{Deserialize, Serialize};

use et_names::units::counted;

use crate::file::TraceFile;

macro_rules! anomalies {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// Number of anomalies of each kind found while events were turned into records.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct Anomalies {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Anomalies {
            /// Adds the numbers of another part of the trace.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// Descriptions of the anomalies that occurred, with their numbers.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$name),)*].into_iter().filter(|&(_, count)| count > 0)
            }
        }
    };
}

anomalies! {
    /// An exit, exceptional exit or `SuperCall` of a method that is not on the stack; ignored.
    unmatched_exits: "exits of methods that were not on the stack",
    /// A `Throw` or `Handle` in a method that is not on the stack; ignored.
    unmatched_exceptions: "throws or catches in methods that were not on the stack",
    /// Frames that ended without an event although no exception was in flight.
    frames_lost: "frames that left without a trace",
    /// Frames that were left on the stack when their thread ended.
    frames_at_thread_end: "frames left when their thread ended",
    /// A constructor returned although no allocation was seen for it.
    constructors_without_object: "constructors that returned without an allocation",
    /// A virtual thread was unmounted while the arguments of a `super(…)` were evaluated.
    constructors_split: "constructors of unknown objects across a switch of virtual threads",
    /// Millions of events occurred while the arguments of a `super(…)` were evaluated: the number that is kept is
    /// limited.
    constructors_too_far: "constructors whose objects came too long after them (one was made up)",
    /// Objects mentioned before their allocation was seen: a `P` record was made up.
    unknown_objects: "objects of unknown origin (a P record was made up)",
    /// Method ids that are in no names table.
    unknown_methods: "uses of unknown method ids (a names table was not found: run with -Det.names=JAR)",
    /// Site ids that are in no names table.
    unknown_sites: "uses of unknown site ids",
    /// Field references that are in no names table.
    unknown_field_refs: "uses of unknown field references",
    /// Field references whose class or field is in no names table: an extra field was made up.
    unresolved_fields: "field references that lead to no known field (one was made up)",
    /// Classes without a class record.
    unknown_classes: "allocations of unknown classes",
    /// A `New` whose site allocates another type: the site was ignored.
    site_mismatches: "allocations whose site is of another type (site dropped)",
    /// Array allocations without a known site, and hence without a type.
    untyped_arrays: "arrays of unknown type",
    /// Allocations whose size is not in the trace.
    unknown_sizes: "objects of unknown size",
    /// Tickets lower than the previous one of their thread.
    ticket_regressions: "tickets out of order",
    /// Initial objects or references that contradict each other.
    bad_initial_references: "initial references of unknown objects",
}

/// What is missing from the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// Events that were lost according to the runtime.
    pub events: u64,
    /// Pieces of events that could not be decoded.
    pub undecodable_pieces: u64,
    /// Bytes of events in these pieces.
    pub undecodable_bytes: u64,
    /// Bytes of events that the runtime discarded because the options asked for it; how many events these were is
    /// unknown.
    #[serde(default)]
    pub discarded_bytes: u64,
}

impl Lost {
    /// What is known from the trace without reading the events.
    pub fn known(file: &TraceFile) -> Self {
        Self { events: file.lost_events(), discarded_bytes: file.discarded_bytes(), ..Self::default() }
    }

    /// Adds what is missing from another part of the trace.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { events, undecodable_pieces, undecodable_bytes, discarded_bytes } = other;
        self.events += events;
        self.undecodable_pieces += undecodable_pieces;
        self.undecodable_bytes += undecodable_bytes;
        self.discarded_bytes += discarded_bytes;
    }

    /// A single number for the line `# lost`.
    pub fn total(&self) -> u64 {
        // The count comes from the trace, and may be anything in a damaged one: overflow must not make it 0.
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
