//! The numbers of stacks by their values, in memory that HeapProxy reads without a lock.
//!
//! Slots of 16 bytes, filled by linear probing. One thread at a time adds to it. A table that is three quarters full is copied into one of
//! twice the size. HeapProxy may go on reading the old one: its pages are given back to the system and read as zeros from then on, which
//! says that the value is not known, and who asks for its number finds it in the new table.
#![allow(unsafe_code, reason = "shared memory, read by Java code")]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::MmapMut;

/// The logarithm of the number of slots at the beginning.
const FIRST_BITS: u32 = 14;
/// The logarithm of the number of slots from which on nothing is added: 4 GB.
const MOST_BITS: u32 = 28;
/// HeapProxyStacks has the same.
const SPREAD: u64 = 0xbf58_476d_1ce4_e5b9;

#[repr(C)]
struct Slot {
    /// 0: free. Stored last.
    value: AtomicU64,
    number: AtomicU32,
    unused: u32,
}

/// The first slot where a value may be. See [`Table::look`].
#[derive(Clone, Copy, Debug)]
pub struct Look {
    value: u64,
    at: usize,
    there: u64,
}

/// The table.
#[derive(Debug)]
pub struct Table {
    slots: &'static [Slot],
    bits: u32,
    used: usize,
    is_full: bool,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Slot").field(&self.value).finish()
    }
}

/// Slots at an address whose low six bits are 0.
#[repr(C, align(64))]
struct Aligned([Slot; 4]);

impl Default for Table {
    /// A table without numbers. If there is no memory, it has two slots, which stay free: nothing has a number then.
    fn default() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "the content of a static")]
        const FREE: Slot = Slot { value: AtomicU64::new(0), number: AtomicU32::new(0), unused: 0 };
        static NONE: Aligned = Aligned([FREE; 4]);
        match allocate(FIRST_BITS) {
            Some(slots) => Self { slots, bits: FIRST_BITS, used: 0, is_full: false },
            None => Self { slots: &NONE.0, bits: 1, used: 0, is_full: true },
        }
    }
}

impl Table {
    /// Where it is, and in the low six bits, the logarithm of its size.
    pub fn word(&self) -> u64 {
        self.slots.as_ptr() as u64 | u64::from(self.bits)
    }

    fn find_slot(&self, value: u64) -> Result<u32, usize> {
        self.find_from(self.look(value))
    }

    /// Loads the first slot where a value may be. Most are in no cache: if the first slots of several values are loaded before any of the values is
    /// looked for, the processor waits for all of them at once.
    pub fn look(&self, value: u64) -> Look {
        let at = (value.wrapping_mul(SPREAD) >> (64 - self.bits)) as usize & self.mask();
        Look { value, at, there: self.slots[at].value.load(Ordering::Acquire) }
    }

    fn mask(&self) -> usize {
        (1 << self.bits) - 1
    }

    fn find_from(&self, Look { value, mut at, mut there }: Look) -> Result<u32, usize> {
        loop {
            match there {
                0 => return Err(at),
                _ if there == value => return Ok(self.slots[at].number.load(Ordering::Relaxed)),
                _ => at = (at + 1) & self.mask(),
            }
            there = self.slots[at].value.load(Ordering::Acquire);
        }
    }

    /// The number of a value, if it has one.
    pub fn find(&self, value: u64) -> Option<u32> {
        self.find_slot(value).ok()
    }

    /// The number of a value that was looked at; nothing may have been added since.
    pub fn found(&self, look: Look) -> Option<u32> {
        self.find_from(look).ok()
    }

    /// Gives a value other than 0 its number, unless it has one. Returns whether the table is in another place now.
    pub fn add(&mut self, value: u64, number: u32) -> bool {
        if value == 0 || self.is_full {
            return false;
        }
        let has_moved = self.used >= self.slots.len() / 4 * 3 && self.grow();
        if self.is_full {
            return has_moved;
        }
        if let Err(at) = self.find_slot(value) {
            self.put(at, value, number);
        }
        has_moved
    }

    fn put(&mut self, at: usize, value: u64, number: u32) {
        let slot = &self.slots[at];
        slot.number.store(number, Ordering::Relaxed);
        slot.value.store(value, Ordering::Release);
        self.used += 1;
    }

    fn grow(&mut self) -> bool {
        let Some(slots) = allocate(self.bits + 1).filter(|_| self.bits < MOST_BITS) else {
            self.is_full = true;
            return false;
        };
        let old = std::mem::replace(&mut self.slots, slots);
        (self.bits, self.used) = (self.bits + 1, 0);
        for slot in old {
            let value = slot.value.load(Ordering::Relaxed);
            if value != 0
                && let Err(at) = self.find_slot(value)
            {
                self.put(at, value, slot.number.load(Ordering::Relaxed));
            }
        }
        true
    }

    /// HeapProxy knows where the table is now: frees the memory of the one before.
    pub fn release(&self, before: u64) {
        if before != self.word() && before & 63 >= u64::from(FIRST_BITS) {
            let (at, len) = (before & !63, 16usize << (before & 63));
            // SAFETY: a whole mapping that this module has made. It stays mapped; it is private and has no file, so that it reads as
            // zeros afterwards.
            unsafe { libc::madvise(at as *mut libc::c_void, len, libc::MADV_DONTNEED) };
        }
    }
}

fn allocate(bits: u32) -> Option<&'static [Slot]> {
    let map = MmapMut::map_anon(size_of::<Slot>() << bits).ok()?;
    // Values are spread over the whole table, so that with small pages nearly every look-up would miss the TLB. Where the system has no large
    // pages, nothing changes.
    _ = map.advise(memmap2::Advice::HugePage);
    let start = map.as_ptr().cast::<Slot>();
    std::mem::forget(map);
    // SAFETY: page-aligned, zeroed, and never unmapped; slots are only accessed atomically.
    Some(unsafe { std::slice::from_raw_parts(start, 1 << bits) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_wherever_the_table_is() {
        let mut table = Table::default();
        let (mut moves, values) = (0, 1..100_000u64);
        for value in values.clone() {
            let before = table.word();
            assert_eq!(table.find(value), None);
            if table.add(value, value as u32 + 7) {
                moves += 1;
                table.release(before);
                let old = (before & !63) as *const u64;
                // SAFETY: the old table, which stays mapped.
                assert_eq!(unsafe { std::slice::from_raw_parts(old, 2 << (before & 63)) }.iter().max(), Some(&0));
            }
        }
        assert_eq!(moves, 4);
        assert!(values.clone().all(|value| table.find(value) == Some(value as u32 + 7)));
        assert_eq!((table.find(100_000), table.find(u64::MAX)), (None, None));
    }
}
