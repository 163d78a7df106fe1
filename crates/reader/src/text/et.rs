//! Dialect `et`: one record per line, with hexadecimal numbers.

use super::number::hex_word;
use crate::record::Record;
use crate::types::Types;

/// Appends a record without a line break.
#[inline]
pub fn push_record(out: &mut Vec<u8>, record: &Record, types: &Types) {
    out.push(record.letter() as u8);
    match *record {
        Record::Alloc(alloc) => {
            hex_word(out, alloc.object.0);
            hex_word(out, alloc.size);
            out.push(b' ');
            out.extend_from_slice(types.word(alloc.ty).as_bytes());
            hex_word(out, alloc.site.0.into());
            hex_word(out, alloc.length.into());
            hex_word(out, alloc.thread.0.into());
        }
        Record::Update { old, origin, target, slot, thread } => {
            for value in [old.0, origin.0, target.0, slot.number().into(), thread.0.into()] {
                hex_word(out, value);
            }
        }
        Record::Entry { method, receiver, thread } | Record::Exit { method, receiver, thread } => {
            for value in [method.0.into(), receiver.0, thread.0.into()] {
                hex_word(out, value);
            }
        }
        Record::ExitThrow { method, receiver, exception, thread }
        | Record::Throw { method, receiver, exception, thread }
        | Record::Handle { method, receiver, exception, thread } => {
            for value in [method.0.into(), receiver.0, exception.0, thread.0.into()] {
                hex_word(out, value);
            }
        }
        Record::Death { object, thread } | Record::Use { object, thread } => {
            hex_word(out, object.0);
            hex_word(out, thread.0.into());
        }
    }
}

/// Appends a record and a line break.
#[inline]
pub fn push_line(out: &mut Vec<u8>, record: &Record, types: &Types) {
    push_record(out, record, types);
    out.push(b'\n');
}
