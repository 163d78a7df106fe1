//! Dialect `replayer`: decimal numbers, types by number, no old targets, no receivers of exits.

use rustc_hash::FxHashMap;

use super::type_numbers::TypeNumbers;
use crate::batch::At;
use crate::record::{AllocKind, ObjectId, Record};
use crate::resolve::Slots;
use crate::text::hold::push_line;
use crate::text::number::decimal_word;
use crate::told::{Hold, Told};
use crate::types::TypeId;

/// Writes line after line.
#[derive(Debug)]
pub struct Writer<'a> {
    numbers: TypeNumbers<'a>,
    /// The last `# kind` written: the dialect has no letters for objects that were not allocated by bytecode.
    kind: Option<AllocKind>,
    /// Types of objects, for witnesses.
    types: FxHashMap<ObjectId, TypeId>,
    /// The old targets that a reader will infer, since the dialect does not have them.
    slots: Slots,
}

fn line(out: &mut Vec<u8>, letter: u8, numbers: &[u64]) {
    out.push(letter);
    for &number in numbers {
        decimal_word(out, number);
    }
    out.push(b'\n');
}

impl<'a> Writer<'a> {
    pub(super) fn new(numbers: TypeNumbers<'a>) -> Self {
        Self { numbers, kind: None, types: FxHashMap::default(), slots: Slots::default() }
    }

    /// Appends a record or a hold.
    pub fn push(&mut self, out: &mut Vec<u8>, told: &Told, at: &At<'_>) {
        match told {
            Told::Record(record) => self.record(out, record, at),
            Told::Hold(hold) => {
                if let Hold::Initial { origin, slot, target } = *hold {
                    self.slots.put(origin, slot, target);
                }
                push_line(out, hold, decimal_word);
            }
        }
    }

    fn record(&mut self, out: &mut Vec<u8>, record: &Record, at: &At<'_>) {
        let thread = u64::from(record.thread().0);
        match *record {
            Record::Alloc(alloc) => {
                let kind = Some(alloc.kind).filter(|kind| !matches!(kind, AllocKind::New | AllocKind::Array));
                if kind != self.kind {
                    self.kind = kind;
                    out.extend_from_slice(b"# kind ");
                    out.extend_from_slice(&[kind.map_or(b'-', |kind| kind.letter() as u8), b'\n']);
                }
                // An `N` in the trace stays one, even if it is wrong.
                let is_array = match alloc.kind {
                    AllocKind::New => false,
                    AllocKind::Array => true,
                    _ => at.types.descriptor(alloc.ty).starts_with('['),
                };
                let letter = if is_array { b'A' } else { b'N' };
                let ty = self.numbers.number(alloc.ty, at.types);
                self.types.insert(alloc.object, alloc.ty);
                let numbers = [alloc.object.0, alloc.size, ty, alloc.site.0.into(), alloc.length.into(), thread];
                line(out, letter, &numbers);
            }
            Record::Update { old, origin, target, slot, .. } => {
                // The old target is the one that was stored last, except in slots with an initial target.
                if self.slots.put(origin, slot, target) != old {
                    out.extend_from_slice(b"# old");
                    decimal_word(out, old.0);
                    out.push(b'\n');
                }
                line(out, b'U', &[origin.0, target.0, slot.number().into(), thread]);
            }
            Record::Entry { method, receiver, .. } => line(out, b'M', &[method.0.into(), receiver.0, thread]),
            Record::Exit { method, .. } => line(out, b'E', &[method.0.into(), thread]),
            Record::ExitThrow { method, receiver, exception, .. }
            | Record::Throw { method, receiver, exception, .. }
            | Record::Handle { method, receiver, exception, .. } => {
                line(out, record.letter() as u8, &[method.0.into(), receiver.0, exception.0, thread]);
            }
            Record::Death { object, .. } => {
                self.types.remove(&object);
                self.slots.release(object);
                self.slots.tidy();
                line(out, b'D', &[object.0, thread, at.tick.0]);
            }
            Record::Use { object, .. } => {
                let ty = self.types.get(&object).map_or(0, |&ty| self.numbers.number(ty, at.types));
                line(out, b'W', &[object.0, ty, thread]);
            }
        }
    }
}
