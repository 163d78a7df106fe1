//! Memory layout of objects: that of HotSpot with compressed references, so that the sizes of the trace apply.
//!
//! | byte | |
//! |---|---|
//! | 0 | handle |
//! | 4 | generation: number of the object among those with this handle |
//! | 8 | shape: for an array the uppermost bit and size / 8; otherwise size / 8 in the upper 16 bits, number of slots in the lower |
//! | 12 | length of an array, whose slots begin at 16; otherwise the first slot |
//!
//! A slot contains the address of an object divided by 8; 0 is null. During copying, MMTk stores the forwarding
//! pointer in the first word of the old object.

use mmtk::util::{Address, ObjectReference};

/// Flag of an array's shape.
const ARRAY: u32 = 1 << 31;
/// Offset of the first slot, in bytes: for scalars, and for arrays.
const SCALAR_SLOTS: usize = 12;
const ARRAY_SLOTS: usize = 16;
/// Minimum size in bytes, for MMTk and the header.
const LEAST: u64 = 16;

/// Size and number of slots of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub bytes: u64,
    pub slots: u32,
    pub is_array: bool,
}

impl Shape {
    /// Shape of an object of the trace, enlarged if its slots do not fit. `None` if the size cannot be represented.
    pub fn new(bytes: u64, slots: u32, is_array: bool) -> Option<Self> {
        let small = |bytes: u64| !is_array && slots <= 0xffff && bytes / 8 < 1 << 15;
        let needed = |begin: usize| (begin as u64 + 4 * u64::from(slots)).next_multiple_of(8);
        let with = |begin| bytes.max(needed(begin)).max(LEAST);
        if small(with(SCALAR_SLOTS)) {
            return Some(Self { bytes: with(SCALAR_SLOTS), slots, is_array: false });
        }
        let bytes = with(ARRAY_SLOTS);
        (bytes / 8 < u64::from(ARRAY)).then_some(Self { bytes, slots, is_array: true })
    }

    fn word(self) -> u32 {
        let words = (self.bytes / 8) as u32;
        if self.is_array { ARRAY | words } else { words << 16 | self.slots }
    }
}

/// An object in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object(ObjectReference);

#[allow(unsafe_code, reason = "objects lie in memory that MMTk manages")]
impl Object {
    /// Writes the header at `address`, and null to all slots.
    ///
    /// # Safety
    /// `address` is the beginning of `shape.bytes` bytes without any other user.
    pub unsafe fn make(address: Address, handle: u32, generation: u32, shape: Shape) -> Option<Self> {
        let object = ObjectReference::from_raw_address(address)?;
        // SAFETY: by the contract of `make`, the memory is exclusive and has room for the header.
        unsafe {
            std::ptr::write_bytes(address.to_mut_ptr::<u8>(), 0, shape.bytes as usize);
            address.store(handle);
            (address + 4usize).store(generation);
            (address + 8usize).store(shape.word());
            if shape.is_array {
                (address + 12usize).store(shape.slots);
            }
        }
        Some(Self(object))
    }

    pub fn of(object: ObjectReference) -> Self {
        Self(object)
    }

    /// The object at a compressed address; `None` for null.
    pub fn at(compressed: u32) -> Option<Self> {
        // SAFETY: the address is only computed, not dereferenced.
        let address = unsafe { Address::from_usize((compressed as usize) << 3) };
        ObjectReference::from_raw_address(address).map(Self)
    }

    pub fn reference(self) -> ObjectReference {
        self.0
    }

    /// The compressed address, as a slot contains it.
    pub fn compressed(self) -> u32 {
        (self.address().as_usize() >> 3) as u32
    }

    pub fn address(self) -> Address {
        self.0.to_raw_address()
    }

    fn word(self, offset: usize) -> u32 {
        // SAFETY: an `Object` is always in memory that MMTk has mapped: it is alive, was reached by a collection, or
        // died in the previous operation.
        unsafe { (self.address() + offset).load() }
    }

    pub fn handle(self) -> u32 {
        self.word(0)
    }

    pub fn generation(self) -> u32 {
        self.word(4)
    }

    pub fn shape(self) -> Shape {
        let word = self.word(8);
        if word & ARRAY != 0 {
            Shape { bytes: u64::from(word & !ARRAY) * 8, slots: self.word(12), is_array: true }
        } else {
            Shape { bytes: u64::from(word >> 16) * 8, slots: word & 0xffff, is_array: false }
        }
    }

    pub fn bytes(self) -> usize {
        let word = self.word(8);
        let words = if word & ARRAY != 0 { word & !ARRAY } else { word >> 16 };
        words as usize * 8
    }

    /// All slots in order.
    pub fn slots(self) -> impl Iterator<Item = CompressedSlot> {
        let Shape { slots, is_array, .. } = self.shape();
        let first = self.address() + if is_array { ARRAY_SLOTS } else { SCALAR_SLOTS };
        (0..slots as usize).map(move |slot| CompressedSlot(first + 4 * slot))
    }

    /// The slot with that index; `None` if out of range.
    pub fn slot(self, slot: u32) -> Option<CompressedSlot> {
        let Shape { slots, is_array, .. } = self.shape();
        let first = self.address() + if is_array { ARRAY_SLOTS } else { SCALAR_SLOTS };
        (slot < slots).then(|| CompressedSlot(first + 4 * slot as usize))
    }
}

/// A 32-bit compressed reference: in an object, a static field, or the table of handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompressedSlot(Address);

#[allow(unsafe_code, reason = "slots lie in memory that MMTk manages, or in tables that live as long as the process")]
impl CompressedSlot {
    /// A slot outside the heap, for a root.
    pub fn of(word: &'static std::sync::atomic::AtomicU32) -> Self {
        Self(Address::from_ptr(word))
    }

    fn word(self) -> &'static std::sync::atomic::AtomicU32 {
        // SAFETY: a slot is in an existing object or is a word of a table; it is 4 bytes, aligned to 4, and always
        // accessed atomically.
        unsafe { &*self.0.to_ptr() }
    }

    pub fn get(self) -> u32 {
        self.word().load(std::sync::atomic::Ordering::Relaxed)
    }

    pub fn set(self, compressed: u32) {
        self.word().store(compressed, std::sync::atomic::Ordering::Relaxed);
    }
}

impl mmtk::vm::slot::Slot for CompressedSlot {
    fn load(&self) -> Option<ObjectReference> {
        Object::at(self.get()).map(Object::reference)
    }

    fn store(&self, object: ObjectReference) {
        self.set(Object::of(object).compressed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_as_large_as_in_the_trace_and_grow_where_slots_have_no_room() {
        let shape =
            |bytes, slots, is_array| Shape::new(bytes, slots, is_array).map(|shape| (shape.bytes, shape.is_array));
        assert_eq!(shape(16, 1, false), Some((16, false)));
        assert_eq!(shape(16, 2, false), Some((24, false)));
        assert_eq!(shape(8, 0, false), Some((16, false)));
        assert_eq!(shape(24, 2, true), Some((24, true)));
        assert_eq!(shape(16, 2, true), Some((24, true)));
        // Too large for the shape of a scalar.
        assert_eq!(shape(1 << 18, 3, false), Some((1 << 18, true)));
        assert_eq!(shape(16, 70_000, false), Some((280_016, true)));
        assert_eq!(shape(1 << 34, 0, true), None);
    }

    #[test]
    fn an_object_knows_what_it_is() {
        let mut memory = [0xffu64; 8];
        for shape in
            [Shape::new(40, 3, false).unwrap(), Shape::new(32, 4, true).unwrap(), Shape::new(64, 0, true).unwrap()]
        {
            #[allow(unsafe_code, reason = "the array is as large as the largest of the shapes")]
            // SAFETY: `memory` has `shape.bytes` bytes, and no other reference is in use.
            let object = unsafe { Object::make(Address::from_mut_ptr(memory.as_mut_ptr()), 7, 9, shape) }.unwrap();
            assert_eq!((object.handle(), object.generation(), object.shape()), (7, 9, shape));
            assert_eq!(object.bytes() as u64, shape.bytes);
            assert_eq!(object.slots().count() as u32, shape.slots);
            assert!(object.slots().all(|slot| slot.get() == 0));
            for slot in 0..shape.slots {
                object.slot(slot).unwrap().set(slot + 1);
            }
            assert_eq!(
                object.slots().map(CompressedSlot::get).collect::<Vec<_>>(),
                (1..=shape.slots).collect::<Vec<_>>()
            );
            assert_eq!(object.slot(shape.slots), None);
            assert_eq!(object.shape(), shape);
        }
    }
}
