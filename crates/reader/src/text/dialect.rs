//! The dialects of texts.

/// A text format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The format of Elephant Tracks.
    #[default]
    Et,
    /// The format of Elephant Tracks 3 and its TraceReplayer.
    Replayer,
    /// CSV with allocations and frees.
    Oracle,
    /// XML for the viewers of TPTP.
    Tptp,
}

/// Whether a text has lines about what holds objects although no record says so. The dialects oracle and tptp never
/// have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holders {
    /// Only if the text has no deaths, so that they can be computed from it.
    #[default]
    WithoutDeaths,
    /// Even if the text has deaths.
    Always,
}
