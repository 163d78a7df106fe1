//! What texts and names files say at their beginning.

/// How texts begin, but for those of dialects oracle and tptp.
pub const TEXT: &str = "# Elephant Tracks, dialect ";
/// How the first line of dialect oracle begins.
pub const ORACLE: &str = "timestamp,event_type,";
/// The comment that is the first in a text of dialect tptp. Logs of `libet_monitor.so` have none.
pub const TPTP: &str = "Elephant Tracks, dialect tptp";
/// How a names file begins.
pub const NAMES: &str = "# Elephant Tracks, names";
/// Follows there if ids are decimal, as they are in a text of dialect `replayer`.
pub(super) const IDS_DECIMAL: &str = ", ids decimal";
/// How the comment starts that says which events there are, if not all.
pub(crate) const EVENTS: &str = "events ";
/// What follows there if there are none, as in a damaged trace.
pub(crate) const NO_EVENTS: &str = "none";
/// The comment that says that a text tells what holds objects although no record does: see [`hold`](super::hold).
pub(crate) const WITH_HOLDERS: &str = "with holders";
