//! Tags of JVMTI's: the numbers in them, counted from 1, and what those of classes say besides.

use et_jvm::sync::{in_time, lock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Flag in a class's tag: it is decided whether its objects are reported.
pub const DECIDED: i64 = 1 << 61;
/// Flag in a class's tag: they are not.
pub const EXCLUDED: i64 = 1 << 62;

/// Two threads must not assign ids to the same object. The VM is called while it is held; callbacks during collections
/// never take it.
static TAGGING: Mutex<()> = Mutex::new(());
/// For how long a callback waits. Walks through a large heap take seconds.
const PATIENCE: Duration = Duration::from_secs(10);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The id in a tag.
pub fn of_tag(tag: i64) -> u64 {
    (tag & !(DECIDED | EXCLUDED)) as u64
}

/// A new id.
pub fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// To be held while assigning ids.
pub fn tagging() -> MutexGuard<'static, ()> {
    lock(&TAGGING)
}

/// The same in a callback, whose thread may have suspended others: `None` if one of them seems to hold the lock, and will not release it before. Then,
/// as during a walk through the heap that takes longer, an object may get two numbers.
pub fn tagging_in_callback() -> Option<MutexGuard<'static, ()>> {
    /// The last callback has waited in vain: the next ones need not, until the lock is released.
    static GAVE_UP: AtomicBool = AtomicBool::new(false);
    let patience = if GAVE_UP.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
    let tagging = in_time(&TAGGING, patience);
    GAVE_UP.store(tagging.is_none(), Ordering::Relaxed);
    tagging
}

/// The content of a class's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassTag {
    pub id: u64,
    /// Whether objects of the class are reported.
    pub is_included: bool,
}

impl ClassTag {
    /// None if nothing is decided yet.
    pub fn read(tag: i64) -> Option<Self> {
        (tag & DECIDED != 0).then(|| Self { id: of_tag(tag), is_included: tag & EXCLUDED == 0 })
    }

    /// Encodes the tag.
    pub fn tag(self) -> i64 {
        self.id as i64 | DECIDED | if self.is_included { 0 } else { EXCLUDED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_classes_say_what_was_decided() {
        for is_included in [true, false] {
            let tag = ClassTag { id: 4711, is_included };
            assert_eq!(ClassTag::read(tag.tag()), Some(tag));
            assert_eq!(of_tag(tag.tag()), 4711);
        }
        assert_eq!(ClassTag::read(4711), None);
    }
}
