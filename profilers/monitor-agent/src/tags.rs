//! Tags of JVMTI's: the numbers in them, counted from 1, and what those of classes say besides.

use et_jvm::sync::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The tag of a class that was looked at: whether its objects are told of is decided.
pub const DECIDED: i64 = 1 << 61;
/// They are not.
pub const EXCLUDED: i64 = 1 << 62;

/// Two threads must not give one object two numbers. Whoever has this calls the VM; callbacks of collections never take it.
static TAGGING: Mutex<()> = Mutex::new(());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The number in a tag.
pub fn of_tag(tag: i64) -> u64 {
    (tag & !(DECIDED | EXCLUDED)) as u64
}

/// A number that nobody has.
pub fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// For those who give numbers.
pub fn tagging() -> MutexGuard<'static, ()> {
    lock(&TAGGING)
}

/// What the tag of a class says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassTag {
    pub id: u64,
    /// Objects of the class are told of.
    pub is_included: bool,
}

impl ClassTag {
    /// None if nothing is decided yet.
    pub fn read(tag: i64) -> Option<Self> {
        (tag & DECIDED != 0).then(|| Self { id: of_tag(tag), is_included: tag & EXCLUDED == 0 })
    }

    /// As it is kept.
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
