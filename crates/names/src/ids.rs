//! Static ids and the blocks they come in.

use std::sync::atomic::{AtomicU32, Ordering};

/// Ids are below this bound, so that an entry or exit event fits one 32-bit word.
pub const ID_LIMIT: u32 = 1 << 30;
/// First id of an instrumented JDK's block.
pub const JDK_BASE: u32 = 1;
/// The blocks of JDKs end below this id, all others start at or above it.
pub const JDK_LIMIT: u32 = 1 << 22;
/// Ids from here up to [`ID_LIMIT`] are handed out by the runtime of a traced program: for classes made at run time,
/// and for fields that native code stores to. The blocks of all artifacts written to disk end below.
pub const DYNAMIC_BASE: u32 = ID_LIMIT - (1 << 26);

/// Hands out blocks of ids from [`DYNAMIC_BASE`] on.
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
    /// None are handed out yet.
    pub const fn new() -> Self {
        Self { next: AtomicU32::new(DYNAMIC_BASE) }
    }

    /// The first of `count` ids that are nobody else's; none if they are used up.
    pub fn take(&self, count: u32) -> Option<u32> {
        let after = |base: u32| base.checked_add(count).filter(|end| *end <= ID_LIMIT);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()
    }
}

/// An id that counts from its artifact's base.
pub trait StaticId: Copy + Ord + std::fmt::Debug {
    /// The id as it stands in events and in the names file.
    fn get(self) -> u32;
    /// Wraps a raw id.
    fn new(raw: u32) -> Self;
}

macro_rules! static_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// A class or interface.
    ClassId,
    /// A method with its class.
    MethodId,
    /// A declared field.
    FieldId,
    /// A bytecode that allocates.
    SiteId,
    /// A field as a `putfield` or `putstatic` names it, before resolution.
    FieldRefId,
}

/// First id of the block of an artifact with this content hash that needs `size` ids.
///
/// Blocks of different artifacts overlap only by chance; the runtime and the readers notice when they do.
pub fn block_base(content_hash: u64, size: u32) -> u32 {
    let room = u64::from(DYNAMIC_BASE - JDK_LIMIT - size.min(DYNAMIC_BASE - JDK_LIMIT - 1));
    // Fold the high half in: the low bits of weak hashes of similar jars look alike.
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
