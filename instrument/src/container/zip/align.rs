//! Preserves the alignment of stored entries that are to be memory-mapped.
//!
//! The format has no field for it. Tools pad the extra field of the local header with zeros (`zipalign`), or with a
//! field that contains the alignment (Android's signing tools).

use super::read::extra_field;
use super::{Entry, STORED};

/// The padding field: alignment as u16, then zeros.
const FIELD: u16 = 0xd935;
/// Alignments achieved by zeros: words, and pages for native libraries.
const WORD: u64 = 4;
const PAGE: u64 = 4096;

/// To what an entry's data are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    to: u64,
    by_field: bool,
}

impl Alignment {
    pub(super) const NONE: Self = Self { to: 1, by_field: false };

    /// Infers the alignment from existing padding; an offset that is aligned by chance does not count.
    pub(super) fn of(entry: &Entry, data: &[u8]) -> Self {
        if entry.method != STORED {
            return Self::NONE;
        }
        let extra = &data[entry.local_extra.clone()];
        if let Some([low, high, ..]) = extra_field(extra, FIELD) {
            return Self { to: u16::from_le_bytes([*low, *high]).max(1).into(), by_field: true };
        }
        let start = entry.data.start as u64;
        if without_zeros(extra).len() == extra.len() || !start.is_multiple_of(WORD) {
            return Self::NONE;
        }
        let is_library = entry.name.ends_with(".so") && start.is_multiple_of(PAGE);
        Self { to: if is_library { PAGE } else { WORD }, by_field: false }
    }

    /// Pads a local extra field at offset `at` so that the data after it is aligned.
    pub(super) fn pad(self, extra: &mut Vec<u8>, at: u64) {
        if self == Self::NONE {
            return;
        }
        let mut plain = without_field(without_zeros(extra));
        if self.by_field {
            plain.extend_from_slice(&FIELD.to_le_bytes());
            plain.extend_from_slice(&[0, 0]);
            plain.extend_from_slice(&(self.to as u16).to_le_bytes());
        }
        let end = at + plain.len() as u64;
        let zeros = end.next_multiple_of(self.to) - end;
        if self.by_field {
            let length = plain.len() - 4;
            plain[length..length + 2].copy_from_slice(&(2 + zeros as u16).to_le_bytes());
        }
        plain.resize(plain.len() + zeros as usize, 0);
        // An extra field has a length of 16 bits; better not aligned than wrong.
        if plain.len() <= usize::from(u16::MAX) {
            *extra = plain;
        }
    }
}

/// The fields of an extra field without trailing zeros.
fn without_zeros(extra: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some([id0, id1, length0, length1]) = extra.get(at..at + 4) {
        let next = at + 4 + usize::from(u16::from_le_bytes([*length0, *length1]));
        if (*id0, *id1) == (0, 0) || next > extra.len() {
            break;
        }
        at = next;
    }
    if extra[at..].iter().all(|byte| *byte == 0) { &extra[..at] } else { extra }
}

fn without_field(extra: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(extra.len()), extra);
    while let [id0, id1, length0, length1, ..] = *rest {
        let end = (4 + usize::from(u16::from_le_bytes([length0, length1]))).min(rest.len());
        if u16::from_le_bytes([id0, id1]) != FIELD {
            out.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_ends_where_it_must() {
        let timestamp = [0x55, 0x54, 1, 0, 7];
        for at in 30..50 {
            for by_field in [false, true] {
                let mut extra = [&timestamp[..], &[0; 3]].concat();
                Alignment { to: 16, by_field }.pad(&mut extra, at);
                assert_eq!((at + extra.len() as u64) % 16, 0);
                assert_eq!(extra_field(&extra, FIELD).is_some(), by_field);
                let before = extra.clone();
                Alignment { to: 16, by_field }.pad(&mut extra, at);
                assert_eq!(extra, before, "padding does not grow");
                assert!(extra.starts_with(&timestamp));
            }
        }
        let mut untouched = vec![0; 3];
        Alignment::NONE.pad(&mut untouched, 7);
        assert_eq!(untouched, [0; 3]);
    }
}
