//! Collectors of MMTk, which it calls plans.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A plan. `PageProtect` is left out: it gives each object its own page, to find errors in MMTk itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Plan {
    /// Never collects: the cost of allocation alone.
    NoGC,
    /// Two semispaces; live objects are copied to the other one.
    SemiSpace,
    /// A copying nursery, and two semispaces.
    GenCopy,
    /// Blocks of cells of one size, marked and swept.
    MarkSweep,
    /// Live objects slide to the beginning; needs an extra word per object.
    MarkCompact,
    /// As `MarkCompact`, with a mark bitmap instead of the extra word.
    Compressor,
    /// Blocks of lines, marked in place; occasionally objects are evacuated to defragment.
    Immix,
    /// Immix with sticky mark bits: survivors become old in place.
    StickyImmix,
    /// A copying nursery, and Immix.
    GenImmix,
    /// Immix with concurrent marking.
    ConcurrentImmix,
}

impl Plan {
    /// All plans.
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

    /// Name in MMTk.
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

    /// Whether the plan has a nursery.
    pub fn is_generational(self) -> bool {
        matches!(self, Self::GenCopy | Self::StickyImmix | Self::GenImmix)
    }

    /// Whether a collection traces the heap twice: to mark, and to update references.
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
