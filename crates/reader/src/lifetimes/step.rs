//! The steps from which lifetimes are computed, and their encoding in the spool.

use et_names::{FieldId, MethodId, SiteId};

use crate::record::{Alloc, AllocKind, ObjectId, Record, RecordKind, Slot, StackId, ThreadId};
use crate::told::{Hold, Told};
use crate::types::TypeId;

/// An event in the life of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record of the source.
    Record(Record),
    /// An update of a slot that does not keep its target alive.
    WeakUpdate { old: ObjectId, origin: ObjectId, target: ObjectId, slot: Slot, thread: ThreadId },
    /// The VM held the object until now, although no record says so.
    Held { object: ObjectId, thread: ThreadId },
    /// The target of a slot when tracing began, which no record contains.
    Initial { origin: ObjectId, target: ObjectId, slot: Slot, weak: bool },
}

impl Step {
    /// The record that readers get for this step; `None` if there is none.
    #[inline]
    pub fn record(&self) -> Option<Record> {
        match *self {
            Self::Record(record) => Some(record),
            Self::WeakUpdate { old, origin, target, slot, thread } => {
                Some(Record::Update { old, origin, target, slot, thread })
            }
            Self::Held { .. } | Self::Initial { .. } => None,
        }
    }

    /// The item of the source that this step was made from.
    pub fn told(&self) -> Told {
        match *self {
            Self::Record(record) => Told::Record(record),
            Self::WeakUpdate { old, origin, target, slot, thread } => {
                Told::Record(Record::Update { old, origin, target, slot, thread })
            }
            Self::Held { object, thread } => Told::Hold(Hold::Until { object, thread }),
            Self::Initial { origin, target, slot, .. } => Told::Hold(Hold::Initial { origin, slot, target }),
        }
    }

    #[inline]
    pub fn thread(&self) -> ThreadId {
        match self {
            Self::Record(record) => record.thread(),
            Self::WeakUpdate { thread, .. } | Self::Held { thread, .. } => *thread,
            Self::Initial { .. } => ThreadId(0),
        }
    }

    /// The objects that must have been reachable until now because the step names them. The old target of a weak slot
    /// need not have been.
    #[inline]
    pub fn mentions(&self) -> [ObjectId; 3] {
        match *self {
            Self::Record(record) => record.objects(),
            Self::WeakUpdate { origin, target, .. } => [ObjectId::NULL, origin, target],
            Self::Held { object, .. } => [object, ObjectId::NULL, ObjectId::NULL],
            // Both existed when tracing began, which is now.
            Self::Initial { origin, target, .. } => [ObjectId::NULL, origin, target],
        }
    }
}

// Bits of a step's first byte: its kind, and how its fields are encoded.
const KIND: u8 = 15;
/// The thread is the same as in the previous step.
const SAME_THREAD: u8 = 1 << 4;
/// Object ids and sizes take eight bytes instead of four.
const WIDE: u8 = 1 << 5;
/// The slot is an array element.
const ELEMENT: u8 = 1 << 6;
/// The slot is weak.
const WEAK: u8 = 1 << 7;

const UPDATE: u8 = RecordKind::Update as u8;
const ENTRY: u8 = RecordKind::Entry as u8;
const EXIT: u8 = RecordKind::Exit as u8;
// Steps that are not records have the codes after those of records.
const HELD: u8 = RecordKind::ALL.len() as u8;
const INITIAL: u8 = HELD + 1;
const _: () = assert!(INITIAL <= KIND, "the first byte of a step has no room for another kind: widen KIND");

/// First byte of an entry with a small receiver id in the thread of the previous step.
const FREQUENT_ENTRY: u8 = ENTRY | SAME_THREAD;
/// First byte of the corresponding exit.
const FREQUENT_EXIT: u8 = EXIT | SAME_THREAD;

fn slot_flag(slot: Slot) -> u8 {
    if matches!(slot, Slot::Element(_)) { ELEMENT } else { 0 }
}

/// Encodes the steps of a piece; `thread` is that of the previous step.
#[derive(Debug, Default)]
pub struct StepEncoder {
    thread: Option<ThreadId>,
}

impl StepEncoder {
    #[inline]
    pub fn push(&mut self, out: &mut Vec<u8>, step: &Step) {
        match *step {
            Step::Record(ref record) => self.record(out, record),
            Step::WeakUpdate { old, origin, target, slot, thread } => {
                let kind = UPDATE | WEAK | slot_flag(slot);
                self.write(out, kind, thread, [old.0, origin.0, target.0], [slot.number()]);
            }
            Step::Held { object, thread } => self.write(out, HELD, thread, [object.0], []),
            Step::Initial { origin, target, slot, weak } => {
                let kind = INITIAL | slot_flag(slot) | if weak { WEAK } else { 0 };
                self.write(out, kind, ThreadId(0), [origin.0, target.0], [slot.number()]);
            }
        }
    }

    #[inline]
    fn record(&mut self, out: &mut Vec<u8>, record: &Record) {
        match *record {
            Record::Entry { method, receiver, thread } => self.write(out, ENTRY, thread, [receiver.0], [method.0]),
            Record::Exit { method, receiver, thread } => self.write(out, EXIT, thread, [receiver.0], [method.0]),
            Record::Alloc(Alloc { object, size, ty, site, length, thread, stack, .. }) => {
                let kind = record.kind() as u8;
                self.write(out, kind, thread, [object.0, size], [ty.0, site.0, length, stack.0]);
            }
            Record::Update { old, origin, target, slot, thread } => {
                self.write(out, UPDATE | slot_flag(slot), thread, [old.0, origin.0, target.0], [slot.number()]);
            }
            Record::ExitThrow { method, receiver, exception, thread } => {
                self.write(out, RecordKind::ExitThrow as u8, thread, [receiver.0, exception.0], [method.0]);
            }
            Record::Throw { method, receiver, exception, thread } => {
                self.write(out, RecordKind::Throw as u8, thread, [receiver.0, exception.0], [method.0]);
            }
            Record::Handle { method, receiver, exception, thread } => {
                self.write(out, RecordKind::Handle as u8, thread, [receiver.0, exception.0], [method.0]);
            }
            Record::Death { object, thread } => self.write(out, RecordKind::Death as u8, thread, [object.0], []),
            Record::Use { object, thread } => self.write(out, RecordKind::Use as u8, thread, [object.0], []),
        }
    }

    #[inline(always)]
    fn write<const IDS: usize, const SMALL: usize>(
        &mut self,
        out: &mut Vec<u8>,
        kind: u8,
        thread: ThreadId,
        ids: [u64; IDS],
        small: [u32; SMALL],
    ) {
        let wide = ids.iter().fold(0, |all, id| all | id) >> 32 != 0;
        let same = self.thread == Some(thread);
        out.push(kind | if wide { WIDE } else { 0 } | if same { SAME_THREAD } else { 0 });
        if !same {
            out.extend_from_slice(&thread.0.to_le_bytes());
            self.thread = Some(thread);
        }
        for value in small {
            out.extend_from_slice(&value.to_le_bytes());
        }
        for id in ids {
            if wide {
                out.extend_from_slice(&id.to_le_bytes());
            } else {
                out.extend_from_slice(&(id as u32).to_le_bytes());
            }
        }
    }
}

/// The spool does not contain what was written to it: the disk is faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the temporary file of the lifetimes is damaged")]
pub struct Damaged;

struct Bytes<'a> {
    rest: &'a [u8],
    wide: bool,
}

impl Bytes<'_> {
    #[inline]
    fn small(&mut self) -> Result<u32, Damaged> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn id(&mut self) -> Result<u64, Damaged> {
        if !self.wide {
            return self.small().map(u64::from);
        }
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn object(&mut self) -> Result<ObjectId, Damaged> {
        self.id().map(ObjectId)
    }
}

/// Decodes the steps of a piece. Fails if it is damaged.
pub fn decode(piece: &[u8], steps: &mut Vec<Step>) -> Result<(), Damaged> {
    let mut bytes = Bytes { rest: piece, wide: false };
    let mut thread = ThreadId(0);
    while let Some((&first, rest)) = bytes.rest.split_first() {
        // Fast path: calls and returns are by far the most frequent steps.
        if let (Some((&[m0, m1, m2, m3, r0, r1, r2, r3], rest)), FREQUENT_ENTRY | FREQUENT_EXIT) =
            (rest.split_first_chunk(), first)
        {
            let method = MethodId(u32::from_le_bytes([m0, m1, m2, m3]));
            let receiver = ObjectId(u32::from_le_bytes([r0, r1, r2, r3]).into());
            match first {
                FREQUENT_ENTRY => steps.push(Step::Record(Record::Entry { method, receiver, thread })),
                _ => steps.push(Step::Record(Record::Exit { method, receiver, thread })),
            }
            bytes.rest = rest;
            continue;
        }
        bytes.rest = rest;
        bytes.wide = first & WIDE != 0;
        if first & SAME_THREAD == 0 {
            thread = ThreadId(bytes.small()?);
        }
        let slot = |number| {
            if first & ELEMENT != 0 { Slot::Element(number) } else { Slot::Field(FieldId(number)) }
        };
        let weak = first & WEAK != 0;
        // Each is pushed where it is constructed: copying what was just written in smaller parts stalls.
        let Some(&kind) = RecordKind::ALL.get(usize::from(first & KIND)) else {
            match first & KIND {
                HELD => steps.push(Step::Held { object: bytes.object()?, thread }),
                INITIAL => {
                    let slot = slot(bytes.small()?);
                    let (origin, target) = (bytes.object()?, bytes.object()?);
                    steps.push(Step::Initial { origin, target, slot, weak });
                }
                _ => return Err(Damaged),
            }
            continue;
        };
        match kind {
            RecordKind::Array | RecordKind::Initial | RecordKind::New | RecordKind::Found | RecordKind::Vm => {
                let (ty, site, length) = (TypeId(bytes.small()?), SiteId(bytes.small()?), bytes.small()?);
                let stack = StackId(bytes.small()?);
                let (object, size) = (bytes.object()?, bytes.id()?);
                let kind = AllocKind::ALL[kind as usize];
                let alloc = Alloc { kind, object, size, ty, site, length, thread, stack };
                steps.push(Step::Record(Record::Alloc(alloc)));
            }
            RecordKind::Update => {
                let slot = slot(bytes.small()?);
                let (old, origin, target) = (bytes.object()?, bytes.object()?, bytes.object()?);
                if weak {
                    steps.push(Step::WeakUpdate { old, origin, target, slot, thread });
                } else {
                    steps.push(Step::Record(Record::Update { old, origin, target, slot, thread }));
                }
            }
            RecordKind::Entry => {
                let (method, receiver) = (MethodId(bytes.small()?), bytes.object()?);
                steps.push(Step::Record(Record::Entry { method, receiver, thread }));
            }
            RecordKind::Exit => {
                let (method, receiver) = (MethodId(bytes.small()?), bytes.object()?);
                steps.push(Step::Record(Record::Exit { method, receiver, thread }));
            }
            RecordKind::ExitThrow | RecordKind::Throw | RecordKind::Handle => {
                let (method, receiver, exception) = (MethodId(bytes.small()?), bytes.object()?, bytes.object()?);
                steps.push(Step::Record(match kind {
                    RecordKind::ExitThrow => Record::ExitThrow { method, receiver, exception, thread },
                    RecordKind::Throw => Record::Throw { method, receiver, exception, thread },
                    _ => Record::Handle { method, receiver, exception, thread },
                }));
            }
            RecordKind::Death => steps.push(Step::Record(Record::Death { object: bytes.object()?, thread })),
            RecordKind::Use => steps.push(Step::Record(Record::Use { object: bytes.object()?, thread })),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{any_record, any_slot};

    /// Ids and numbers, mostly small.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), 1..100u64, any::<u64>()]
    }

    fn step() -> impl Strategy<Value = Step> {
        let kind = 0..RecordKind::ALL.len() + 3;
        (kind, prop::collection::vec(number(), 8), 0..3u32).prop_map(|(kind, numbers, thread)| {
            let mut numbers = numbers.into_iter().cycle();
            let mut next = || numbers.next().unwrap_or_default();
            if let Some(&kind) = RecordKind::ALL.get(kind) {
                return Step::Record(any_record(kind, ThreadId(thread), next));
            }
            let (a, b, c) = (ObjectId(next()), ObjectId(next()), ObjectId(next()));
            let slot = any_slot(&mut next);
            let thread = ThreadId(thread);
            match kind - RecordKind::ALL.len() {
                0 => Step::WeakUpdate { old: a, origin: b, target: c, slot, thread },
                1 => Step::Held { object: a, thread },
                _ => Step::Initial { origin: a, target: b, slot, weak: c.is_null() },
            }
        })
    }

    proptest! {
        #[test]
        fn steps_come_back(steps in prop::collection::vec(step(), 0..60)) {
            let (mut bytes, mut back) = (Vec::new(), Vec::new());
            let mut encoder = StepEncoder::default();
            steps.iter().for_each(|step| encoder.push(&mut bytes, step));
            decode(&bytes, &mut back).unwrap();
            prop_assert_eq!(&back, &steps);
            for cut in 0..bytes.len() {
                back.clear();
                let _ = decode(&bytes[..cut], &mut back);
            }
        }
    }
}
