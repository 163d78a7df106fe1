//! Reads and writes ids in mark words of objects during a heap walk.
//!
//! Most of a walk's time goes into looking up, creating and setting tags. But if mark words can be found
//! (`et_jvm::mark_word`), they can be read, and get ids in the same way as from hooks (`HeapProxyObjects.identify`).
//!
//! Two checks apply: the size next to each address must be the one that JVMTI reports, and a referrer must be an
//! object already visited. Objects that fail them are tagged instead.
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
    /// Position of the hash in mark words.
    shift: u32,
    /// Source of ids for objects without one.
    space: &'a IdSpace,
    block: Block,
    /// Ids by address. Needed because releases up to 17 mark visited objects in their mark words during a walk.
    ids: FxHashMap<usize, u32>,
    /// The tag of `java.lang.Class`.
    pub class_of_classes: jlong,
    /// The last referrer, as a cache: references of an object are reported consecutively.
    referrer: (usize, u32),
}

/// An object visited by a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    pub id: u32,
    /// Whether the walk visits it for the first time.
    pub is_new: bool,
}

impl<'a> Marks<'a> {
    /// For mark words with the hash at that position, which must be writable.
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

    /// Call before each walk: objects may have moved.
    pub fn begin(&mut self) {
        self.ids.clear();
        self.referrer = (0, 0);
    }

    /// Ends the walks by mark words.
    pub fn end(self) {
        self.space.give_back(Holder::Walk, self.block);
    }

    /// The object whose tag is at that address, with that size. `None` if it must be tagged instead.
    ///
    /// # Safety
    /// Call only from a visitor of references, with its arguments.
    pub unsafe fn object(&mut self, tag: *const jlong, size: u64) -> Option<Met> {
        // SAFETY: by the contract of this function.
        let address = unsafe { address(tag, size) }?;
        if let Some(&id) = self.ids.get(&address) {
            return Some(Met { id, is_new: false });
        }
        // SAFETY: an object with its mark word starts there, as the probe has shown. The VM itself only exchanges mark
        // words.
        let id = self.id(unsafe { AtomicU64::from_ptr(address as *mut u64) })?;
        self.ids.insert(address, id);
        Some(Met { id, is_new: true })
    }

    /// The object that refers to another and whose tag is at that address. `None` if the walk has not visited it.
    ///
    /// # Safety
    /// As for [`object`](Self::object); the tag is not that of the object itself.
    pub unsafe fn referrer(&mut self, tag: *const jlong) -> Option<u32> {
        // SAFETY: as above. The referenced object is not accessed.
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

    /// An id space with that many ids.
    fn space(count: u32) -> IdSpace {
        IdSpace::new(1, Some(count))
    }

    /// Its first id.
    fn first() -> u32 {
        space(1).take_at_once(Holder::Walk).unwrap().first
    }

    /// The memory before the tag, as far as it is read.
    #[repr(C)]
    struct Wrapper {
        object: *const u64,
        size: jlong,
        tag: jlong,
    }

    fn object(marks: &mut Marks, word: &mut u64, size: u64) -> Option<Met> {
        let wrapper = Wrapper { object: word, size: 24, tag: 0 };
        // SAFETY: a complete wrapper in the VM's layout, and the first word of an object.
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
            // SAFETY: as above; an address that is not an object's is not dereferenced.
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
