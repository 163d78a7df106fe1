//! Events: what a hook leaves in its thread's buffer (`docs/inside/events.md`).

#[cfg(any(test, feature = "testing"))]
pub mod any;
mod table;
#[cfg(test)]
mod tests;

use et_names::MethodId;
use thiserror::Error;

use self::table::{AS_PAYLOAD_SAYS, EXTENDED_WORDS, NO_EVENT};
pub use self::table::{Content, Event, Field, PayloadBits, SHAPES, Shape, kind};

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
        _ => match (first >> 2) & 63 {
            kind::TICKET => Event::Ticket(Ticket(u64::from(word(bytes, 1)) << 24 | u64::from(first >> 8))),
            kind::PUT_ELEMENTS => match Targets::new(&bytes[3 * WORD..]) {
                Some(targets) => Event::PutElements { start: word(bytes, 1), array: object(2), targets },
                None => return Err(EventError::Kind(first)),
            },
            _ => table::decode_regular(first, bytes).ok_or(EventError::Kind(first))?,
        },
    };
    Ok(Some((event, words * WORD)))
}

/// The first word of an event of that kind. Of the payload 24 bits are kept.
fn extended(kind: u32, payload: u32) -> u32 {
    payload << 8 | kind << 2 | 3
}

/// Appends `event` to `out`. Method ids are 30 bits wide, receivers 31, the ticket 56: higher bits are dropped.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) {
    let (words, count) = match *event {
        Event::Exit { method } => ([method.0 << 2, 0, 0, 0], 1),
        Event::Entry { method } => ([method.0 << 2 | 1, 0, 0, 0], 1),
        Event::EntryOn { method, receiver } => ([method.0 << 2 | 2, receiver.0 & !LEFT, 0, 0], 2),
        Event::Leaf { method, receiver } => ([method.0 << 2 | 2, receiver.0 | LEFT, 0, 0], 2),
        Event::Ticket(Ticket(ticket)) => ([extended(kind::TICKET, ticket as u32), (ticket >> 24) as u32, 0, 0], 2),
        Event::PutElements { start, array, targets } => {
            ([extended(kind::PUT_ELEMENTS, targets.count() as u32), start, array.0, 0], 3)
        }
        ref regular => table::encode_regular(regular),
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
