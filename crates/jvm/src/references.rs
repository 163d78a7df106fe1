//! Follows words that may be references although no declaration says so, such as those in HotSpot's own fields of class
//! mirrors. A word is only used as a reference after it is known to lead to an object of the right class; here that is
//! determined by copying memory, which is harmless if the word is something else.
//!
//! A reference in the heap is an address, or four bytes from which it is computed (compressedOops.hpp: base + (word <<
//! shift)). Base and shift are not looked up but derived from known references; with a collector whose references
//! differ (ZGC), that fails. The header of an array consists of a mark word, a class in 4 or 8 bytes or in the upper
//! bits of the mark word, and the length (markWord.hpp, arrayOop.hpp; unchanged from 11 to 25).

use crate::env::{Env, Object};
use crate::memory;

/// The class is in these bits of the mark word if it is nowhere else. Otherwise they are arbitrary: the mark word of a
/// locked object may be an address.
const CLASS_IN_MARK: u32 = 42;
/// If elements begin this early, there is no room for a class after the mark word.
const COMPACT: usize = 12;
/// Size of the mark word in bytes.
const MARK: usize = 8;
/// Bytes of the longest header.
const LONGEST: usize = 20;

/// Determines whether words refer to empty int arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyInts {
    places: Places,
    header: Header,
}

/// How words and addresses go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    base: u64,
    shift: u32,
}

/// The header that all empty int arrays share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    class_in_mark: u64,
    /// The bytes after the mark word, up to the elements.
    rest: [u8; LONGEST - MARK],
    length: usize,
}

impl EmptyInts {
    /// Derives the encoding from arrays of our own. `word` reads a reference from an array as it is in the heap;
    /// `objects` and `ints` are the offsets of the first element of arrays of references and of ints.
    pub fn find(
        env: Env,
        word: impl Fn(Object, i64) -> u64,
        reference: u32,
        objects: i64,
        ints: usize,
    ) -> Option<Self> {
        env.frame(8, |env| {
            let arrays = [env.new_int_array(0)?, env.new_int_array(1000)?, env.new_int_array(0)?];
            let holder = env.new_object_array(env.find_class(c"java/lang/Object")?, &arrays)?;
            let at = |n: i64| (word(holder, objects + n * i64::from(reference)), address(arrays[n as usize]));
            let [(one, Some(there)), (two, Some(far)), (three, Some(last))] = [0, 1, 2].map(at) else { return None };
            let places = Places::of([(one, there), (two, far), (three, last)])?;
            let header = Header::at(there, ints)?;
            (Header::at(last, ints)? == header).then_some(Self { places, header })
        })
    }

    /// Whether a word from the heap is a reference to such an array.
    pub fn is_one(&self, word: u64) -> bool {
        word != 0
            && Header::at(self.places.address(word), MARK + self.header.length)
                .is_some_and(|found| found == self.header)
    }
}

impl Places {
    /// Derives the encoding from three known references.
    fn of(known: [(u64, u64); 3]) -> Option<Self> {
        let [(word, address), (other_word, other_address), ..] = known;
        if word == other_word || address == other_address {
            return None;
        }
        (0..=8)
            .map(|shift| Self { base: address.wrapping_sub(word << shift), shift })
            .find(|places| known.iter().all(|&(word, address)| places.address(word) == address))
    }

    fn address(self, word: u64) -> u64 {
        self.base.wrapping_add(word << self.shift)
    }
}

impl Header {
    /// Reads the header at an address, for an array whose elements begin at this offset.
    fn at(address: u64, elements: usize) -> Option<Self> {
        let length = elements.checked_sub(MARK)?.min(LONGEST - MARK);
        // Where less can be read, at the end of the heap's memory, it counts as none.
        let bytes: [u8; LONGEST] = memory::copy(address)?;
        let (mark, behind) = bytes.split_first_chunk::<MARK>()?;
        let mut rest = [0; LONGEST - MARK];
        rest[..length].copy_from_slice(&behind[..length]);
        let class_in_mark = if elements <= COMPACT { u64::from_ne_bytes(*mark) >> CLASS_IN_MARK } else { 0 };
        Some(Self { class_in_mark, rest, length })
    }
}

/// Where an object is: what its local reference points to is its address (jniHandles.hpp; local references have no tag).
fn address(object: Object) -> Option<u64> {
    memory::copy(object.raw() as u64).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_from_what_is_known() {
        let known = |base: u64, shift: u32, words: [u64; 3]| {
            Places::of(words.map(|word| (word, base.wrapping_add(word << shift))))
        };
        assert_eq!(known(0, 3, [0xd3d8_40af, 0xd3d8_412c, 0xd3d8_5000]), Some(Places { base: 0, shift: 3 }));
        let high = 0x7f12_0000_0000;
        assert_eq!(known(high, 3, [5, 300, 17]), Some(Places { base: high, shift: 3 }));
        assert_eq!(known(0, 0, [high, high + 16, high + 64]), Some(Places { base: 0, shift: 0 }));
        // References with colours: the address is in their upper bits.
        let coloured = [1_u64, 2, 9].map(|n| ((high + n) << 16 | 0x10, high + n));
        assert_eq!(Places::of(coloured), None);
        // An array has moved between the two looks at it, or all are one.
        assert_eq!(Places::of([(10, 80), (20, 160), (30, 248)]), None);
        assert_eq!(Places::of([(10, 80); 3]), None);
    }

    #[test]
    fn only_what_has_the_header_is_one() {
        // Mark word, class, length, element.
        let heap: [[u32; 6]; 4] = [
            [1, 0, 0x1860, 0, 7, 7],
            [0x1112, 0x7f12, 0x1860, 0, 9, 9],
            [1, 0, 0x1860, 1, 0, 0],
            [1, 0, 0x1870, 0, 0, 0],
        ];
        let at = |n: usize| heap[n].as_ptr() as u64;
        let ints = EmptyInts { places: Places { base: 0, shift: 0 }, header: Header::at(at(0), 16).unwrap() };
        assert_eq!(
            [0, 1, 2, 3].map(|n| ints.is_one(at(n))),
            [true, true, false, false],
            "locks and hashes do not count"
        );
        assert!([0, 8, 1 << 47, u64::MAX].iter().all(|&word| !ints.is_one(word)));
        // A class in the mark word: what follows the length belongs to the next object.
        let heap: [[u32; 5]; 3] = [[1, 0x40 << 16, 0, 1, 1], [1, 0x40 << 16, 0, 2, 2], [1, 0x41 << 16, 0, 1, 1]];
        let at = |n: usize| heap[n].as_ptr() as u64;
        let ints = EmptyInts { places: Places { base: 0, shift: 0 }, header: Header::at(at(0), 12).unwrap() };
        assert_eq!([0, 1, 2].map(|n| ints.is_one(at(n))), [true, true, false]);
    }
}
