//! Counters of objects allocated in one place on behalf of one caller.

use et_names::MethodId;

use super::Amount;
use super::lives::LifetimeSum;
use et_reader::made_in::MadeIn;
use et_reader::record::AllocKind;
use et_reader::types::TypeId;

/// Objects by the kind of their records, in the order of [`AllocKind::ALL`].
pub(super) type KindCounts = [u64; AllocKind::ALL.len()];

/// The origins of objects: place, type and caller, numbered by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origins {
    pub made_in: MadeIn,
    /// For code of the JDK's the innermost method outside it, for a library's the innermost of the program's.
    /// [`NONE`](super::code::NONE) if there is none.
    pub caller: MethodId,
    pub ty: TypeId,
}

/// The counters of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub key: Origins,
    pub made: Amount,
    pub kinds: KindCounts,
    /// Live objects.
    pub alive: Amount,
    pub lifetime: LifetimeSum,
}
