//! Reads and writes ids in the mark words of objects during a walk of the heap.
//!
//! Looking up, making and setting tags takes most of the time of walks. But if mark words can be found (`et_jvm::mark_word`), they can be
//! read, and get ids as hooks write them (`HeapProxyObjects.identify`).
//!
//! The size beside each address must be the one that JVMTI reports, and a referrer must be an object that the walk has visited. Otherwise
//! objects are tagged.
#![allow(unsafe_code, reason = "structures of the VM, and headers of objects")]

use std::sync::atomic::{AtomicU64, Ordering};

use et_jvm::mark_word::{FREE, HASH, KIND, address, referrer_address};
use jni_sys::jlong;
use rustc_hash::FxHashMap;

use crate::ids::{Block, Holder, IdSpace};

/// Tag of `java.lang.Class` until it has an id.
pub const CLASS: i64 = -2;

/// The objects that a walk has visited.
#[derive(Debug)]
pub struct Marks<'a> {
    /// Where mark words hold hashes.
    shift: u32,
    /// Gives ids for objects that have none.
    space: &'a IdSpace,
    block: Block,
    /// By address. Older releases, up to 17, mark the objects that a walk has been at in their mark words.
    ids: FxHashMap<usize, u32>,
    /// The tag of `java.lang.Class`.
    pub class_of_classes: jlong,
    /// The last referrer: the references of an object come one after the other.
    referrer: (usize, u32),
}

/// An object that a walk visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    pub id: u32,
    /// Whether the walk visits it for the first time.
    pub is_new: bool,
}

impl<'a> Marks<'a> {
    /// For mark words that hold hashes there, and that ids can be written to.
    pub fn new(shift: u32, space: &'a IdSpace) -> Self {
        Self {
            shift,
            space,
            block: Block::default(),
            ids: FxHashMap::default(),
            class_of_classes: CLASS,
            referrer: (0, 0),
        }
    }

    /// Before each walk: objects may have moved.
    pub fn begin(&mut self) {
        self.ids.clear();
        self.referrer = (0, 0);
    }

    /// The walks are over, as far as they went by mark words.
    pub fn end(self) {
        self.space.give_back(Holder::Walk, self.block);
    }

    /// The object that has its tag there, and that size. None if it must be tagged.
    ///
    /// # Safety
    /// To be called by a visitor of references, with what it is given.
    pub unsafe fn object(&mut self, tag: *const jlong, size: u64) -> Option<Met> {
        // SAFETY: the caller's promise.
        let address = unsafe { address(tag, size) }?;
        if let Some(&id) = self.ids.get(&address) {
            return Some(Met { id, is_new: false });
        }
        // SAFETY: an object starts there, with its mark word, as one did where it was tried. The VM itself only exchanges mark words.
        let id = self.id(unsafe { AtomicU64::from_ptr(address as *mut u64) })?;
        self.ids.insert(address, id);
        Some(Met { id, is_new: true })
    }

    /// The object that refers to another and has its tag there. None if the walk has not come to it.
    ///
    /// # Safety
    /// As above; the tag is not that of the object itself.
    pub unsafe fn referrer(&mut self, tag: *const jlong) -> Option<u32> {
        // SAFETY: as above. What it refers to is not looked at.
        let address = unsafe { referrer_address(tag) };
        if self.referrer.0 != address {
            self.referrer = (address, *self.ids.get(&address)?);
        }
        Some(self.referrer.1)
    }

    fn id(&mut self, word: &AtomicU64) -> Option<u32> {
        let mark = word.load(Ordering::Relaxed);
        if mark & KIND != FREE {
            return None;
        }
        let hash = (mark >> self.shift & HASH) as u32;
        if hash != 0 {
            return Some(hash);
        }
        if self.block.count == 0 {
            self.block = self.space.take_at_once(Holder::Walk)?;
        }
        let id = self.block.pop()?;
        let marked = mark | u64::from(id) << self.shift;
        word.compare_exchange(mark, marked, Ordering::Relaxed, Ordering::Relaxed).ok().map(|_| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIFT: u32 = 8;

    /// Has so many ids.
    fn space(count: u32) -> IdSpace {
        IdSpace::new(1, Some(count))
    }

    /// The first that it gives.
    fn first() -> u32 {
        space(1).take_at_once(Holder::Walk).unwrap().first
    }

    /// What lies before the tag, as far as it is looked at.
    #[repr(C)]
    struct Wrapper {
        object: *const u64,
        size: jlong,
        tag: jlong,
    }

    fn object(marks: &mut Marks, word: &mut u64, size: u64) -> Option<Met> {
        let wrapper = Wrapper { object: word, size: 24, tag: 0 };
        // SAFETY: a wrapper as the VM has them, whole, and an object's first word.
        unsafe { marks.object((&raw const wrapper).cast::<jlong>().add(2), size) }
    }

    fn referrer(marks: &mut Marks, word: &u64) -> Option<u32> {
        #[repr(C)]
        struct Referrer {
            object: *const u64,
            tag: jlong,
        }
        let wrapper = Referrer { object: word, tag: 0 };
        // SAFETY: as above.
        unsafe { marks.referrer((&raw const wrapper).cast::<jlong>().add(1)) }
    }

    fn is(id: u32, is_new: bool) -> Option<Met> {
        Some(Met { id, is_new })
    }

    #[test]
    fn objects_keep_their_hashes() {
        let space = space(2);
        let mut marks = Marks::new(SHIFT, &space);
        let mut word = 0x1234 << SHIFT | 0x28 | FREE;
        let before = word;
        assert_eq!(object(&mut marks, &mut word, 24), is(0x1234, true));
        assert_eq!(object(&mut marks, &mut word, 24), is(0x1234, false));
        assert_eq!((word, marks.block), (before, Block::default()));
    }

    #[test]
    fn objects_without_a_hash_get_an_id() {
        let space = space(2);
        let mut marks = Marks::new(SHIFT, &space);
        let (mut one, mut second, mut third) = (0x28 | FREE, FREE, FREE);
        assert_eq!(object(&mut marks, &mut one, 24), is(first(), true));
        assert_eq!(one, u64::from(first()) << SHIFT | 0x28 | FREE);
        // The walk has marked it as visited, and keeps its mark word elsewhere.
        one = 3;
        assert_eq!(object(&mut marks, &mut one, 24), is(first(), false));
        assert!(object(&mut marks, &mut second, 24).is_some());
        assert_eq!((object(&mut marks, &mut third, 24), third), (None, FREE), "there are no more");
        assert_eq!(marks.block.count, 0);
    }

    #[test]
    fn a_large_heap_takes_one_block_after_the_other() {
        let space = space(20_000);
        let mut marks = Marks::new(SHIFT, &space);
        let mut words = vec![FREE; 12_000];
        let ids: rustc_hash::FxHashSet<u32> =
            words.iter_mut().filter_map(|word| object(&mut marks, word, 24)).map(|met| met.id).collect();
        assert_eq!(ids.len(), words.len());
        marks.end();
        let left: u32 = std::iter::from_fn(|| space.take_at_once(Holder::Thread(1))).map(|block| block.count).sum();
        assert_eq!(left, 8_000, "what was not needed is given back");
    }

    #[test]
    fn locked_objects_are_left_alone() {
        for kind in [0, 2, 3, 5] {
            let space = space(2);
            let mut marks = Marks::new(SHIFT, &space);
            let mut word = 0x7f00_0000_1000 | kind;
            let before = word;
            assert_eq!((object(&mut marks, &mut word, 24), word), (None, before));
        }
    }

    #[test]
    fn what_is_no_object_is_not_looked_at() {
        let space = space(2);
        let mut marks = Marks::new(SHIFT, &space);
        let mut word = FREE;
        assert_eq!(object(&mut marks, &mut word, 16), None, "another size");
        let odd = (&raw mut word).wrapping_byte_add(4).cast::<u64>();
        for address in [odd, std::ptr::null_mut()] {
            let wrapper = Wrapper { object: address, size: 24, tag: 0 };
            // SAFETY: as above; what is no address of an object is not followed.
            let met = unsafe { marks.object((&raw const wrapper).cast::<jlong>().add(2), 24) };
            assert_eq!(met, None);
        }
        assert_eq!(word, FREE);
    }

    #[test]
    fn referrers_are_objects_of_this_walk() {
        let space = space(2);
        let mut marks = Marks::new(SHIFT, &space);
        let (mut one, mut two) = (FREE, FREE);
        object(&mut marks, &mut one, 24);
        assert_eq!(referrer(&mut marks, &one), Some(first()));
        assert_eq!(referrer(&mut marks, &two), None);
        object(&mut marks, &mut two, 24);
        assert!(referrer(&mut marks, &two).is_some_and(|id| id != first()));
        assert_eq!(referrer(&mut marks, &one), Some(first()));
        marks.begin();
        assert_eq!(referrer(&mut marks, &one), None);
    }
}
