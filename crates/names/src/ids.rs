//! Static ids, and the blocks in which they are assigned.

use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

/// Exclusive upper limit for ids, so that an entry or exit event fits one 32-bit word.
pub const ID_LIMIT: u32 = 1 << 30;
/// First id of an instrumented JDK's block.
pub const JDK_BASE: u32 = 1;
/// Blocks of JDKs end below this id; all others start at or above it.
pub const JDK_LIMIT: u32 = 1 << 22;
/// The runtime assigns ids from here to [`ID_LIMIT`] to classes created at run time, and to fields that native code
/// stores to. All artifacts on disk have ids below.
pub const DYNAMIC_BASE: u32 = ID_LIMIT - (1 << 26);

/// Assigns blocks of ids from [`DYNAMIC_BASE`] on. Can be shared between threads.
#[derive(Debug)]
pub struct DynamicIds {
    next: AtomicU32,
}

impl Default for DynamicIds {
    fn default() -> Self {
        Self::new()
    }
}

impl DynamicIds {
    pub const fn new() -> Self {
        Self { next: AtomicU32::new(DYNAMIC_BASE) }
    }

    /// Reserves `count` consecutive ids and returns the first; `None` if there are not enough left.
    pub fn take(&self, count: u32) -> Option<u32> {
        let after = |base: u32| base.checked_add(count).filter(|end| *end <= ID_LIMIT);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()
    }
}

/// An id that is relative to the base of its artifact's block.
pub trait StaticId: Copy + Ord + std::fmt::Debug {
    /// The number that events and the names file contain.
    fn get(self) -> u32;
    fn new(raw: u32) -> Self;
}

macro_rules! static_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl StaticId for $name {
            fn get(self) -> u32 {
                self.0
            }
            fn new(raw: u32) -> Self {
                Self(raw)
            }
        }
    )*};
}

static_id! {
    ClassId,
    /// A method of a class.
    MethodId,
    /// A field, identified by its declaration.
    FieldId,
    /// An instruction that allocates.
    SiteId,
    /// A field as a `putfield` or `putstatic` instruction names it, before resolution.
    FieldRefId,
}

/// Returns the first id of the block for an artifact with this content hash and `size` ids.
///
/// The block is a function of the hash, so blocks of different artifacts may overlap, though rarely; the runtime and
/// the readers detect it.
pub fn block_base(content_hash: u64, size: u32) -> u32 {
    let room = u64::from(DYNAMIC_BASE - JDK_LIMIT - size.min(DYNAMIC_BASE - JDK_LIMIT - 1));
    // Fold the high half in: similar jars with a weak hash have similar low bits.
    let mixed = (content_hash ^ (content_hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    JDK_LIMIT + (mixed % room) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_blocks_do_not_overlap_and_come_to_an_end() {
        let ids = DynamicIds::new();
        assert_eq!(ids.take(10), Some(DYNAMIC_BASE));
        assert_eq!(ids.take(1), Some(DYNAMIC_BASE + 10));
        assert_eq!(ids.take(ID_LIMIT), None);
        assert_eq!(ids.take(ID_LIMIT - DYNAMIC_BASE - 11), Some(DYNAMIC_BASE + 11));
        assert_eq!(ids.take(1), None);
        assert_eq!(ids.take(u32::MAX), None);
    }

    #[test]
    fn blocks_stay_inside_the_id_space() {
        for hash in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            for size in [0, 1, 100_000, DYNAMIC_BASE - JDK_LIMIT - 1] {
                let base = block_base(hash, size);
                assert!(base >= JDK_LIMIT);
                assert!(base + size <= DYNAMIC_BASE, "{hash:x} {size}");
            }
        }
    }
}
