//! Events: what a hook leaves in its thread's buffer (`docs/inside/events.md`).

use et_names::{FieldRefId, MethodId, SiteId};
use thiserror::Error;

/// Bytes of an event word.
pub const WORD: usize = 4;
/// Most targets of one `PutElements`.
pub const MAX_ELEMENTS: usize = 64;
/// Words of the longest event, a `PutElements`.
pub const MAX_WORDS: usize = 3 + MAX_ELEMENTS;
/// In the receiver word of an entry: the method has been left as well. Ids of objects have 31 bits.
pub const LEFT: u32 = 1 << 31;

/// An object as events name it: its 31-bit identity hash, 0 for null. Unique among living objects only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectHash(pub u32);

impl ObjectHash {
    /// Null, or "not known".
    pub const NULL: ObjectHash = ObjectHash(0);

    /// As a word of a trace has it. Bits above an id, which only a damaged trace has there, are dropped: readers put numbers there.
    #[inline]
    pub(crate) fn of_word(word: u32) -> Self {
        Self(word & !LEFT)
    }

    /// Whether it names no object.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// A value of the counter that orders the events of all threads. The first ticket is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub u64);

/// The numbers of the extended kinds (bits 2..8 of the first word).
pub mod kind {
    #![allow(missing_docs)]
    pub const TICKET: u32 = 1;
    pub const NEW: u32 = 2;
    pub const NEW_ARRAY: u32 = 3;
    pub const FOUND: u32 = 4;
    pub const PUT_FIELD: u32 = 5;
    pub const PUT_STATIC: u32 = 6;
    pub const PUT_ELEMENT: u32 = 7;
    pub const THROW: u32 = 8;
    pub const HANDLE: u32 = 9;
    pub const EXIT_THROW: u32 = 10;
    pub const ENTRY_INIT: u32 = 11;
    pub const SUPER_CALL: u32 = 12;
    pub const SWITCH: u32 = 13;
    pub const MADE: u32 = 14;
    pub const PUT_ELEMENTS: u32 = 15;
    pub const USED: u32 = 16;
}

/// There is no such kind.
const NO_EVENT: u8 = 0;
const AS_PAYLOAD_SAYS: u8 = u8::MAX;
/// Words of each extended kind, the first included.
const EXTENDED_WORDS: [u8; 64] = {
    let mut words = [NO_EVENT; 64];
    words[kind::PUT_ELEMENTS as usize] = AS_PAYLOAD_SAYS;
    words[kind::TICKET as usize] = 2;
    words[kind::NEW as usize] = 4;
    words[kind::NEW_ARRAY as usize] = 4;
    words[kind::FOUND as usize] = 4;
    words[kind::PUT_FIELD as usize] = 4;
    words[kind::PUT_STATIC as usize] = 3;
    words[kind::PUT_ELEMENT as usize] = 4;
    words[kind::THROW as usize] = 3;
    words[kind::HANDLE as usize] = 3;
    words[kind::EXIT_THROW as usize] = 4;
    words[kind::ENTRY_INIT as usize] = 3;
    words[kind::SUPER_CALL as usize] = 2;
    words[kind::SWITCH as usize] = 2;
    words[kind::MADE as usize] = 4;
    words[kind::USED as usize] = 2;
    words
};

/// The targets of a `PutElements`, as they stand in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets<'a>(&'a [u8]);

impl<'a> Targets<'a> {
    /// From little-endian words; `None` unless there are 1 to [`MAX_ELEMENTS`], all whole.
    pub fn new(words: &'a [u8]) -> Option<Self> {
        (words.len().is_multiple_of(WORD) && (1..=MAX_ELEMENTS).contains(&(words.len() / WORD))).then_some(Self(words))
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.0.len() / WORD
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = ObjectHash> + 'a {
        (0..self.count()).map(move |index| ObjectHash::of_word(word(self.0, index)))
    }
}

/// One event. Field meanings are those of `docs/inside/events.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event<'a> {
    /// Normal return.
    Exit {
        method: MethodId,
    },
    /// Entry of a static method or of a simple constructor.
    Entry {
        method: MethodId,
    },
    /// Entry of an instance method.
    EntryOn {
        method: MethodId,
        receiver: ObjectHash,
    },
    /// Entry and normal return of a method that leaves no other event; the receiver of a static one is null.
    Leaf {
        method: MethodId,
        receiver: ObjectHash,
    },
    /// Ticket of the events that follow.
    Ticket(Ticket),
    /// `Object.<init>` ran on a new object. One that is `known` had a `Made` before its constructor was called.
    New {
        site: SiteId,
        object: ObjectHash,
        class: ObjectHash,
        known: bool,
    },
    /// An array was made; `depth` leading `[` are to be removed from the site's type.
    NewArray {
        depth: u8,
        site: SiteId,
        object: ObjectHash,
        length: u32,
    },
    /// First sight of an object that no hook saw come to be; `length` is -1 if it is no array.
    Found {
        object: ObjectHash,
        class: ObjectHash,
        length: i32,
    },
    /// An object that the VM or native code made, seen when it was made; `length` is -1 if it is no array. If it is
    /// surely `fresh`, an id that is known was used before by an object that is gone. A `constant` is held by a class.
    Made {
        object: ObjectHash,
        class: ObjectHash,
        length: i32,
        fresh: bool,
        constant: bool,
    },
    /// With `if_changed`, the slot may have held that target before.
    PutField {
        field: FieldRefId,
        origin: ObjectHash,
        target: ObjectHash,
        if_changed: bool,
    },
    PutStatic {
        field: FieldRefId,
        target: ObjectHash,
    },
    PutElement {
        index: u32,
        array: ObjectHash,
        target: ObjectHash,
    },
    /// Slots in a row, from index `start` on; each may have held its target before.
    PutElements {
        start: u32,
        array: ObjectHash,
        targets: Targets<'a>,
    },
    Throw {
        method: MethodId,
        exception: ObjectHash,
    },
    Handle {
        method: MethodId,
        exception: ObjectHash,
    },
    /// Exit by exception; the receiver is null where the hook does not know it.
    ExitThrow {
        method: MethodId,
        exception: ObjectHash,
        receiver: ObjectHash,
    },
    /// Entry of a constructor that runs code before its `super(…)`/`this(…)`.
    EntryInit {
        method: MethodId,
        site: SiteId,
    },
    /// That constructor is about to call `super(…)`/`this(…)`.
    SuperCall {
        method: MethodId,
    },
    /// The events that follow belong to the stack of that continuation; null: to the thread's own.
    Switch {
        owner: ObjectHash,
    },
    /// A witness: the running frame used the object.
    Used {
        object: ObjectHash,
    },
}

/// Why bytes are no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EventError {
    /// A kind that this version does not know.
    #[error("event word {0:#010x} is of unknown kind {kind}", kind = (.0 >> 2) & 63)]
    Kind(u32),
    /// The buffer ends inside an event.
    #[error("event {first:#010x} needs {need} words, only {have} are left")]
    CutOff {
        /// First word.
        first: u32,
        /// Words of this kind.
        need: usize,
        /// Words there.
        have: usize,
    },
}

/// Words of the event that starts with `first`, itself included; `None` for zero and unknown kinds.
#[inline]
pub fn len_words(first: u32) -> Option<usize> {
    // No `match` on the form: it would jump by a table, which takes longer than most of what is done with an event.
    if first & 2 == 0 {
        return (first != 0).then_some(1);
    }
    if first & 1 == 0 {
        return Some(2);
    }
    match EXTENDED_WORDS[(first >> 2) as usize & 63] {
        NO_EVENT => None,
        AS_PAYLOAD_SAYS => {
            let count = (first >> 8) as usize;
            (1..=MAX_ELEMENTS).contains(&count).then_some(3 + count)
        }
        words => Some(words.into()),
    }
}

#[inline]
fn word(bytes: &[u8], index: usize) -> u32 {
    let at = index * WORD;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The event at the start of `bytes` and its length in bytes; `None` at the end of the events (no whole word
/// left, or a zero word).
#[inline(always)]
pub fn decode(bytes: &[u8]) -> Result<Option<(Event<'_>, usize)>, EventError> {
    if bytes.len() < WORD {
        return Ok(None);
    }
    let first = word(bytes, 0);
    if first == 0 {
        return Ok(None);
    }
    let words = len_words(first).ok_or(EventError::Kind(first))?;
    if bytes.len() < words * WORD {
        return Err(EventError::CutOff { first, need: words, have: bytes.len() / WORD });
    }
    let bytes = &bytes[..words * WORD];
    let object = |index| ObjectHash::of_word(word(bytes, index));
    let event = match first & 3 {
        0 => Event::Exit { method: MethodId(first >> 2) },
        1 => Event::Entry { method: MethodId(first >> 2) },
        2 => {
            let (method, receiver) = (MethodId(first >> 2), object(1));
            if word(bytes, 1) & LEFT == 0 {
                Event::EntryOn { method, receiver }
            } else {
                Event::Leaf { method, receiver }
            }
        }
        _ => {
            let payload = first >> 8;
            match (first >> 2) & 63 {
                kind::TICKET => Event::Ticket(Ticket(u64::from(word(bytes, 1)) << 24 | u64::from(payload))),
                kind::NEW => Event::New {
                    site: SiteId(word(bytes, 1)),
                    object: object(2),
                    class: object(3),
                    known: payload & 1 != 0,
                },
                kind::NEW_ARRAY => Event::NewArray {
                    depth: payload as u8,
                    site: SiteId(word(bytes, 1)),
                    object: object(2),
                    length: word(bytes, 3),
                },
                kind::FOUND => Event::Found { object: object(1), class: object(2), length: word(bytes, 3) as i32 },
                kind::MADE => Event::Made {
                    object: object(1),
                    class: object(2),
                    length: word(bytes, 3) as i32,
                    fresh: payload & 1 != 0,
                    constant: payload & 2 != 0,
                },
                kind::PUT_FIELD => Event::PutField {
                    field: FieldRefId(word(bytes, 1)),
                    origin: object(2),
                    target: object(3),
                    if_changed: payload & 1 != 0,
                },
                kind::PUT_STATIC => Event::PutStatic { field: FieldRefId(word(bytes, 1)), target: object(2) },
                kind::PUT_ELEMENT => Event::PutElement { index: word(bytes, 1), array: object(2), target: object(3) },
                kind::PUT_ELEMENTS => match Targets::new(&bytes[3 * WORD..]) {
                    Some(targets) => Event::PutElements { start: word(bytes, 1), array: object(2), targets },
                    None => return Err(EventError::Kind(first)),
                },
                kind::THROW => Event::Throw { method: MethodId(word(bytes, 1)), exception: object(2) },
                kind::HANDLE => Event::Handle { method: MethodId(word(bytes, 1)), exception: object(2) },
                kind::EXIT_THROW => {
                    Event::ExitThrow { method: MethodId(word(bytes, 1)), exception: object(2), receiver: object(3) }
                }
                kind::ENTRY_INIT => Event::EntryInit { method: MethodId(word(bytes, 1)), site: SiteId(word(bytes, 2)) },
                kind::SUPER_CALL => Event::SuperCall { method: MethodId(word(bytes, 1)) },
                kind::SWITCH => Event::Switch { owner: object(1) },
                kind::USED => Event::Used { object: object(1) },
                _ => return Err(EventError::Kind(first)),
            }
        }
    };
    Ok(Some((event, words * WORD)))
}

/// Appends `event` to `out`. Method ids are 30 bits wide, receivers 31, the ticket 56: higher bits are dropped.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) {
    let extended = |kind: u32, payload: u32| payload << 8 | kind << 2 | 3;
    let (words, count) = match *event {
        Event::Exit { method } => ([method.0 << 2, 0, 0, 0], 1),
        Event::Entry { method } => ([method.0 << 2 | 1, 0, 0, 0], 1),
        Event::EntryOn { method, receiver } => ([method.0 << 2 | 2, receiver.0 & !LEFT, 0, 0], 2),
        Event::Leaf { method, receiver } => ([method.0 << 2 | 2, receiver.0 | LEFT, 0, 0], 2),
        Event::Ticket(Ticket(ticket)) => {
            ([extended(kind::TICKET, ticket as u32 & 0xff_ffff), (ticket >> 24) as u32, 0, 0], 2)
        }
        Event::New { site, object, class, known } => {
            ([extended(kind::NEW, known.into()), site.0, object.0, class.0], 4)
        }
        Event::NewArray { depth, site, object, length } => {
            ([extended(kind::NEW_ARRAY, depth.into()), site.0, object.0, length], 4)
        }
        Event::Found { object, class, length } => ([extended(kind::FOUND, 0), object.0, class.0, length as u32], 4),
        Event::Made { object, class, length, fresh, constant } => {
            let bits = u32::from(fresh) | u32::from(constant) << 1;
            ([extended(kind::MADE, bits), object.0, class.0, length as u32], 4)
        }
        Event::PutField { field, origin, target, if_changed } => {
            ([extended(kind::PUT_FIELD, if_changed.into()), field.0, origin.0, target.0], 4)
        }
        Event::PutStatic { field, target } => ([extended(kind::PUT_STATIC, 0), field.0, target.0, 0], 3),
        Event::PutElement { index, array, target } => ([extended(kind::PUT_ELEMENT, 0), index, array.0, target.0], 4),
        Event::PutElements { start, array, targets } => {
            ([extended(kind::PUT_ELEMENTS, targets.count() as u32), start, array.0, 0], 3)
        }
        Event::Throw { method, exception } => ([extended(kind::THROW, 0), method.0, exception.0, 0], 3),
        Event::Handle { method, exception } => ([extended(kind::HANDLE, 0), method.0, exception.0, 0], 3),
        Event::ExitThrow { method, exception, receiver } => {
            ([extended(kind::EXIT_THROW, 0), method.0, exception.0, receiver.0], 4)
        }
        Event::EntryInit { method, site } => ([extended(kind::ENTRY_INIT, 0), method.0, site.0, 0], 3),
        Event::SuperCall { method } => ([extended(kind::SUPER_CALL, 0), method.0, 0, 0], 2),
        Event::Switch { owner } => ([extended(kind::SWITCH, 0), owner.0, 0, 0], 2),
        Event::Used { object } => ([extended(kind::USED, 0), object.0, 0, 0], 2),
    };
    for word in &words[..count] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    if let Event::PutElements { targets, .. } = event {
        out.extend_from_slice(targets.0);
    }
}

/// How many events these are, tickets apart.
pub fn count(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Ok(Some((event, len))) = decode(bytes) {
        count += u64::from(!matches!(event, Event::Ticket(_)));
        bytes = &bytes[len..];
    }
    count
}

/// Bytes of the whole events at the start of `chunk`: up to the first zero word, to an event that is not whole
/// or not known, or to the end. This is how a buffer whose owner did not say how far it got is measured.
pub fn used_bytes(chunk: &[u8]) -> usize {
    let mut at = 0;
    while chunk.len() - at >= WORD {
        match len_words(word(&chunk[at..], 0)) {
            Some(words) if words * WORD <= chunk.len() - at => at += words * WORD,
            _ => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What targets are taken from.
    const WORDS: [u8; 2 * MAX_ELEMENTS * WORD] = {
        let mut words = [0; 2 * MAX_ELEMENTS * WORD];
        let mut at = 0;
        while at < words.len() {
            words[at] = (at % 251) as u8;
            at += 1;
        }
        words
    };

    fn any_event() -> impl Strategy<Value = Event<'static>> {
        (0..20u8, 1..1u32 << 30, any::<u32>(), any::<u32>(), 0..1u64 << 56).prop_map(|(which, id, a, b, ticket)| {
            let method = MethodId(id);
            let (a_object, b_object) = (ObjectHash(a & !LEFT), ObjectHash(b & !LEFT));
            match which {
                0 => Event::Exit { method },
                1 => Event::Entry { method },
                2 => Event::EntryOn { method, receiver: ObjectHash(a & !LEFT) },
                18 => Event::Leaf { method, receiver: ObjectHash(a & !LEFT) },
                3 => Event::Ticket(Ticket(ticket)),
                4 => Event::New { site: SiteId(id), object: a_object, class: b_object, known: ticket & 1 != 0 },
                5 => Event::NewArray { depth: a as u8, site: SiteId(id), object: a_object, length: b },
                6 => Event::Found { object: a_object, class: b_object, length: id as i32 - 2 },
                7 => Event::PutField {
                    field: FieldRefId(id),
                    origin: a_object,
                    target: b_object,
                    if_changed: ticket & 1 != 0,
                },
                8 => Event::PutStatic { field: FieldRefId(id), target: a_object },
                9 => Event::PutElement { index: id, array: a_object, target: b_object },
                10 => Event::Throw { method, exception: a_object },
                11 => Event::Handle { method, exception: a_object },
                12 => Event::ExitThrow { method, exception: a_object, receiver: b_object },
                13 => Event::EntryInit { method, site: SiteId(a) },
                14 => Event::SuperCall { method },
                15 => Event::Switch { owner: a_object },
                17 => Event::Used { object: a_object },
                16 => {
                    let length = id as i32 - 2;
                    Event::Made {
                        object: a_object,
                        class: b_object,
                        length,
                        fresh: ticket & 1 != 0,
                        constant: ticket & 2 != 0,
                    }
                }
                _ => {
                    let (from, count) = (a as usize % MAX_ELEMENTS * WORD, b as usize % MAX_ELEMENTS + 1);
                    let targets = Targets::new(&WORDS[from..from + count * WORD]).unwrap();
                    Event::PutElements { start: id, array: a_object, targets }
                }
            }
        })
    }

    fn decode_all(mut bytes: &[u8]) -> Vec<Event<'_>> {
        let mut events = Vec::new();
        while let Some((event, len)) = decode(bytes).unwrap() {
            events.push(event);
            bytes = &bytes[len..];
        }
        events
    }

    proptest! {
        #[test]
        fn events_come_back_as_they_were(events in prop::collection::vec(any_event(), 0..50), zeros in 0..5usize) {
            let mut bytes = Vec::new();
            for event in &events {
                encode(event, &mut bytes);
            }
            let used = bytes.len();
            bytes.resize(used + zeros * WORD, 0);
            prop_assert_eq!(used_bytes(&bytes), used);
            prop_assert_eq!(decode_all(&bytes), events);
        }

        #[test]
        fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let used = used_bytes(&bytes);
            prop_assert!(used <= bytes.len());
            decode_all(&bytes[..used]);
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn the_encoding_is_the_documented_one() {
        let mut bytes = Vec::new();
        encode(&Event::Ticket(Ticket(0x12_3456_789a)), &mut bytes);
        assert_eq!(bytes, [7, 0x9a, 0x78, 0x56, 0x34, 0x12, 0, 0]);
        bytes.clear();
        encode(&Event::EntryOn { method: MethodId(1), receiver: ObjectHash(5) }, &mut bytes);
        assert_eq!(bytes, [6, 0, 0, 0, 5, 0, 0, 0]);
        bytes.clear();
        encode(&Event::Leaf { method: MethodId(1), receiver: ObjectHash(5) }, &mut bytes);
        assert_eq!(bytes, [6, 0, 0, 0, 5, 0, 0, 0x80]);
        bytes.clear();
        let targets = Targets::new(&[9, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        encode(&Event::PutElements { start: 3, array: ObjectHash(5), targets }, &mut bytes);
        assert_eq!(bytes, [15 << 2 | 3, 2, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn bits_above_an_id_are_dropped() {
        let words: [u32; 5] = [1 << 8 | kind::PUT_ELEMENTS << 2 | 3, 3, LEFT | 5, LEFT, 0];
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        let Ok(Some((Event::PutElements { array, targets, .. }, _))) = decode(&bytes) else { panic!("no row") };
        assert_eq!((array, targets.iter().collect()), (ObjectHash(5), vec![ObjectHash::NULL]));
    }

    #[test]
    fn a_row_of_elements_has_one_to_64_targets() {
        let first = |count: u32| count << 8 | kind::PUT_ELEMENTS << 2 | 3;
        assert_eq!([0, 1, 64, 65].map(|count| len_words(first(count))), [None, Some(4), Some(67), None]);
        assert_eq!(len_words(first(64)), Some(MAX_WORDS));
        assert!(Targets::new(&[]).is_none() && Targets::new(&[0; 6]).is_none() && Targets::new(&[0; 260]).is_none());
        assert!(matches!(decode(&first(0).to_le_bytes()), Err(EventError::Kind(_))));
    }

    #[test]
    fn a_cut_event_is_not_counted_as_used() {
        let mut bytes = Vec::new();
        encode(&Event::Exit { method: MethodId(1) }, &mut bytes);
        encode(&Event::SuperCall { method: MethodId(1) }, &mut bytes);
        assert_eq!(used_bytes(&bytes[..8]), 4);
        assert!(matches!(decode(&bytes[4..8]), Err(EventError::CutOff { need: 2, have: 1, .. })));
    }
}
