//! In which forms text is written.

/// What the output looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Elephant Tracks.
    #[default]
    Et,
    /// Elephant Tracks 3 and its TraceReplayer.
    Replayer,
    /// CSV of allocations and frees.
    Oracle,
    /// XML for the viewers of TPTP.
    Tptp,
}

/// Whether a text has lines on what holds objects although no record says so. Dialects oracle and tptp never have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holders {
    /// Where deaths are to be worked out of the text: it has none of its own.
    #[default]
    WithoutDeaths,
    /// Beside deaths, too.
    Always,
}
