//! The first lines of texts and names files.

/// Beginning of all texts except those in the dialects oracle and tptp.
pub const TEXT: &str = "# Elephant Tracks, dialect ";
/// Beginning of the first line in dialect oracle.
pub const ORACLE: &str = "timestamp,event_type,";
/// The first comment of a text in dialect tptp. Logs of `libet_monitor.so` do not have it.
pub const TPTP: &str = "Elephant Tracks, dialect tptp";
/// Beginning of a names file.
pub const NAMES: &str = "# Elephant Tracks, names";
/// Follows if ids are decimal, as in a text in dialect `replayer`.
pub(super) const IDS_DECIMAL: &str = ", ids decimal";
/// Beginning of the comment that lists the events if not all were recorded.
pub(crate) const EVENTS: &str = "events ";
/// Follows if there are none, as in a damaged trace.
pub(crate) const NO_EVENTS: &str = "none";
/// The comment that says that the text has lines about holders: see [`hold`](super::hold).
pub(crate) const WITH_HOLDERS: &str = "with holders";
