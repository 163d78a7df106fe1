//! Ids in the mark words of the objects that a walk of the heap comes to.
//!
//! JVMTI shows a walk the places of tags, not objects; and to have tags looked up, made and set is most of what walks take. But
//! HotSpot keeps these places on its stack, in structures whose members have stood in the same order from JDK 8 to 25 (not in
//! what comes after: `CallbackWrapper` and `TwoOopCallbackWrapper`, jvmtiTagMap.cpp): before an object's tag its size, before that
//! its address; before a referrer's tag the address of that. While a walk goes on the world stands still, so the mark word there can be read,
//! and can get an id as hooks give them (`HeapProxyObjects.identify`).
//!
//! Whether an address is one is not taken on trust: first an object must be found so whose identity hash is known ([`probe`]). Then the
//! size beside each address must be the one that JVMTI tells, and a referrer must be an object that the walk has come to. Where
//! that is not so, objects are tagged. Walks that tell objects only have the first of these structures ([`hash`]).
#![allow(unsafe_code, reason = "structures of the VM, and headers of objects")]

use std::sync::atomic::{AtomicU64, Ordering};

use jni_sys::jlong;
use rustc_hash::FxHashMap;

use super::picture::CLASS;
use crate::ids::{Block, Holder, IdSpace};
use crate::jvm::memory;

/// The bits of an identity hash.
const HASH: u64 = 0x7fff_ffff;
/// The bits that say what a mark word is.
const KIND: u64 = 7;
/// It is the object's own, and no lock's.
const FREE: u64 = 1;

/// The objects that a walk has come to.
#[derive(Debug)]
pub struct Marks<'a> {
    /// Where mark words hold hashes.
    shift: u32,
    /// Gives ids for objects that have none.
    space: &'a IdSpace,
    block: Block,
    /// By address. Older releases, up to 17, mark the objects that a walk has been at in their mark words.
    ids: FxHashMap<usize, u32>,
    /// Tag of `java.lang.Class`.
    pub class_of_classes: jlong,
    /// The last referrer: the references of an object come one after the other.
    referrer: (usize, u32),
}

/// An object of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    pub id: u32,
    /// For the first time.
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
        let address = unsafe { tag.sub(1).cast::<usize>().read() };
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

/// The identity hash in the mark word of the object that has its tag there, and that size; 0 if it has none. Nothing if the word
/// is a lock's.
///
/// # Safety
/// To be called by a visitor, with what it is given, where [`probe`] has found an object so.
pub unsafe fn hash(tag: *const jlong, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: the caller's promise; an object starts there, with its mark word.
    let mark = unsafe { AtomicU64::from_ptr(address(tag, size)? as *mut u64) }.load(Ordering::Relaxed);
    (mark & KIND == FREE).then_some((mark >> shift & HASH) as u32)
}

/// The identity hash in the mark word of the object that has its tag there, and that size, if that is where it is. What is no
/// address does no harm.
///
/// # Safety
/// To be called by a visitor of references, with what it is given.
pub unsafe fn probe(tag: *const jlong, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: the caller's promise.
    let address = unsafe { address(tag, size) }?;
    let mark = u64::from_ne_bytes(memory::copy(address as u64)?);
    (mark & KIND == FREE).then_some((mark >> shift & HASH) as u32)
}

/// The address before the size before a tag, if that is the size.
///
/// # Safety
/// As above.
unsafe fn address(tag: *const jlong, size: u64) -> Option<usize> {
    // SAFETY: as the module says: words of a structure of the VM, on the stack, of which the tag is not the first. In what comes after
    // JDK 25 as well.
    let (there, address) = unsafe { (tag.sub(1).read() as u64, tag.sub(2).cast::<usize>().read()) };
    (there == size && address != 0 && address.is_multiple_of(8)).then_some(address)
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
    fn hashes_are_read_and_no_others() {
        let read = |word: u64, size: u64| {
            let wrapper = Wrapper { object: &raw const word, size: 24, tag: 0 };
            // SAFETY: a wrapper as the VM has them, and an object's first word.
            unsafe { hash((&raw const wrapper).cast::<jlong>().add(2), size, SHIFT) }
        };
        assert_eq!(read(0x1234 << SHIFT | FREE, 24), Some(0x1234));
        assert_eq!(read(0x28 | FREE, 24), Some(0));
        assert_eq!([read(0x1234 << SHIFT | 2, 24), read(0x1234 << SHIFT | FREE, 32)], [None; 2]);
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
    fn a_probe_reads_what_is_there_and_nothing_else() {
        let word = 0x1234_u64 << SHIFT | 0x28 | FREE;
        let probed = |object: *const u64| {
            let wrapper = Wrapper { object, size: 24, tag: 0 };
            // SAFETY: a wrapper as the VM has them.
            unsafe { probe((&raw const wrapper).cast::<jlong>().add(2), 24, SHIFT) }
        };
        let (locked, nowhere) = (word | 2, std::ptr::dangling());
        assert_eq!([&raw const word, &raw const locked, nowhere].map(probed), [Some(0x1234), None, None]);
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
