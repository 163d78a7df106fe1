//! What is counted of objects that were made at one site, for one caller.

use et_names::{MethodId, SiteId};

use super::Amount;
use super::lives::LifetimeSum;
use et_trace::record::AllocKind;
use et_trace::types::TypeId;

/// Objects by the kind of their records, in the order of [`AllocKind::ALL`].
pub(super) type KindCounts = [u64; AllocKind::ALL.len()];

/// What was made at a site, for a caller. The number of a row stands for all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origins {
    pub site: SiteId,
    /// For a site of the JDK's the innermost method outside it, for one of a library's the innermost of the program's; the
    /// top of the stack if no site is known. [`NONE`](super::code::NONE) if there is none.
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
