//! The weights of stacks.

use et_analysis::profile::Cell;

/// What the weight of a stack measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Bytes allocated.
    Bytes,
    /// Objects allocated.
    Objects,
    /// Bytes alive at the end.
    AliveBytes,
    /// Objects alive at the end.
    AliveObjects,
    /// Bytes that died young.
    YoungBytes,
    /// Objects that died young.
    YoungObjects,
    /// Bytes that survived at least one collection.
    SurvivedBytes,
    /// Objects that survived at least one collection.
    SurvivedObjects,
    /// Bytes times thousands of ticks between last use and death.
    Drag,
}

/// The unit of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Count,
    Drag,
}

impl Weight {
    pub const ALL: [Self; 9] = [
        Self::Objects,
        Self::Bytes,
        Self::AliveObjects,
        Self::AliveBytes,
        Self::YoungObjects,
        Self::YoungBytes,
        Self::SurvivedObjects,
        Self::SurvivedBytes,
        Self::Drag,
    ];

    /// The weight of an origin.
    pub fn of(self, cell: &Cell) -> u64 {
        match self {
            Self::Bytes => cell.allocated.bytes,
            Self::Objects => cell.allocated.objects,
            Self::AliveBytes => cell.alive.bytes,
            Self::AliveObjects => cell.alive.objects,
            Self::YoungBytes => cell.young.bytes,
            Self::YoungObjects => cell.young.objects,
            Self::SurvivedBytes => cell.survived.bytes,
            Self::SurvivedObjects => cell.survived.objects,
            Self::Drag => cell.drag,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes allocated",
            Self::Objects => "objects allocated",
            Self::AliveBytes => "bytes alive at the end",
            Self::AliveObjects => "objects alive at the end",
            Self::YoungBytes => "bytes that died young",
            Self::YoungObjects => "objects that died young",
            Self::SurvivedBytes => "bytes that survived a collection",
            Self::SurvivedObjects => "objects that survived a collection",
            Self::Drag => "drag (bytes times thousands of ticks after the last use)",
        }
    }

    /// The name of the sample type in pprof; the first four are those of Go's heap profiles.
    pub(crate) fn pprof(self) -> &'static str {
        match self {
            Self::Bytes => "alloc_space",
            Self::Objects => "alloc_objects",
            Self::AliveBytes => "inuse_space",
            Self::AliveObjects => "inuse_objects",
            Self::YoungBytes => "young_space",
            Self::YoungObjects => "young_objects",
            Self::SurvivedBytes => "survived_space",
            Self::SurvivedObjects => "survived_objects",
            Self::Drag => "drag",
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Bytes | Self::AliveBytes | Self::YoungBytes | Self::SurvivedBytes => Unit::Bytes,
            Self::Objects | Self::AliveObjects | Self::YoungObjects | Self::SurvivedObjects => Unit::Count,
            Self::Drag => Unit::Drag,
        }
    }
}
