//! What is counted of objects that were made at one place, for one caller.

use et_names::MethodId;

use super::Amount;
use super::lives::LifetimeSum;
use et_reader::made_in::MadeIn;
use et_reader::record::AllocKind;
use et_reader::types::TypeId;

/// Objects by the kind of their records, in the order of [`AllocKind::ALL`].
pub(super) type KindCounts = [u64; AllocKind::ALL.len()];

/// What was made at a place, for a caller. The number of a row stands for all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origins {
    pub made_in: MadeIn,
    /// For code of the JDK's the innermost method outside it, for a library's the innermost of the program's.
    /// [`NONE`](super::code::NONE) if there is none.
    pub caller: MethodId,
    pub ty: TypeId,
}

/// What is counted of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub key: Origins,
    pub made: Amount,
    pub kinds: KindCounts,
    /// Of those not dead yet.
    pub alive: Amount,
    pub lifetime: LifetimeSum,
}
