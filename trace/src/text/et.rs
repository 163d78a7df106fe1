//! Dialect `et`: one record a line, numbers hexadecimal.

use crate::record::Record;
use crate::types::Types;

#[inline]
pub(super) fn hex(out: &mut Vec<u8>, value: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (67 - (value | 1).leading_zeros()) / 4;
    let mut text = [0; 17];
    text[0] = b' ';
    for place in 0..digits {
        text[(digits - place) as usize] = DIGITS[(value >> (4 * place)) as usize & 15];
    }
    out.extend_from_slice(&text[..=digits as usize]);
}

/// Appends a record, without line end.
#[inline]
pub fn push_record(out: &mut Vec<u8>, record: &Record, types: &Types) {
    out.push(record.letter() as u8);
    match *record {
        Record::Alloc(alloc) => {
            hex(out, alloc.object.0);
            hex(out, alloc.size);
            out.push(b' ');
            out.extend_from_slice(types.word(alloc.ty).as_bytes());
            hex(out, alloc.site.0.into());
            hex(out, alloc.length.into());
            hex(out, alloc.thread.0.into());
        }
        Record::Update { old, origin, target, slot, thread } => {
            for value in [old.0, origin.0, target.0, slot.number().into(), thread.0.into()] {
                hex(out, value);
            }
        }
        Record::Entry { method, receiver, thread } | Record::Exit { method, receiver, thread } => {
            for value in [method.0.into(), receiver.0, thread.0.into()] {
                hex(out, value);
            }
        }
        Record::ExitThrow { method, receiver, exception, thread }
        | Record::Throw { method, receiver, exception, thread }
        | Record::Handle { method, receiver, exception, thread } => {
            for value in [method.0.into(), receiver.0, exception.0, thread.0.into()] {
                hex(out, value);
            }
        }
        Record::Death { object, thread } | Record::Root { object, thread } => {
            hex(out, object.0);
            hex(out, thread.0.into());
        }
    }
}

/// Appends a record and a line end.
#[inline]
pub fn push_line(out: &mut Vec<u8>, record: &Record, types: &Types) {
    push_record(out, record, types);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_hexadecimal() {
        let mut out = Vec::new();
        for value in [0, 1, 15, 16, 255, 256, 0xdead_beef, u64::MAX, 1 << 60, (1 << 60) - 1] {
            out.clear();
            hex(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), format!(" {value:x}"));
        }
    }
}
