//! MMTk's collectors, which it calls plans.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A plan. `PageProtect` is left out: it gives each object a page of its own, to find errors in MMTk itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Plan {
    /// Never collects: what allocation alone costs.
    NoGC,
    /// Two halves; what is alive is copied from one to the other.
    SemiSpace,
    /// A nursery that is copied, before two halves.
    GenCopy,
    /// Blocks of cells of one size, which are marked and swept.
    MarkSweep,
    /// What is alive slides to the beginning, with a word for each object.
    MarkCompact,
    /// The same with a table of what is marked instead of the word.
    Compressor,
    /// Blocks of lines that are marked; now and then objects are moved together.
    Immix,
    /// Immix in which what survived is old, where it is.
    StickyImmix,
    /// A nursery that is copied, before Immix.
    GenImmix,
    /// Immix that marks while the program runs.
    ConcurrentImmix,
}

impl Plan {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::NoGC,
        Self::SemiSpace,
        Self::GenCopy,
        Self::MarkSweep,
        Self::MarkCompact,
        Self::Compressor,
        Self::Immix,
        Self::StickyImmix,
        Self::GenImmix,
        Self::ConcurrentImmix,
    ];

    /// As MMTk calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoGC => "NoGC",
            Self::SemiSpace => "SemiSpace",
            Self::GenCopy => "GenCopy",
            Self::MarkSweep => "MarkSweep",
            Self::MarkCompact => "MarkCompact",
            Self::Compressor => "Compressor",
            Self::Immix => "Immix",
            Self::StickyImmix => "StickyImmix",
            Self::GenImmix => "GenImmix",
            Self::ConcurrentImmix => "ConcurrentImmix",
        }
    }

    /// Whether it has a nursery.
    pub fn is_generational(self) -> bool {
        matches!(self, Self::GenCopy | Self::StickyImmix | Self::GenImmix)
    }

    /// Whether a collection goes through the heap twice: to mark, and to lead references to where their objects will be.
    pub fn has_two_closures(self) -> bool {
        matches!(self, Self::MarkCompact | Self::Compressor)
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|plan| plan.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("MMTk has {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_by_their_names() {
        for plan in Plan::ALL {
            assert_eq!(plan.name().parse(), Ok(plan));
            assert_eq!(plan.name().to_lowercase().parse(), Ok(plan));
            assert_eq!(serde_json::to_value(plan).unwrap(), plan.name());
        }
        assert!("PageProtect".parse::<Plan>().unwrap_err().starts_with("MMTk has NoGC, SemiSpace"));
    }
}
