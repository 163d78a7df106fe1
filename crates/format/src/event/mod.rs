//! Events: what a hook writes to its thread's buffer (`docs/inside/events.md`).

#[cfg(any(test, feature = "testing"))]
pub mod any;
mod table;
#[cfg(test)]
mod tests;

use et_names::MethodId;
use thiserror::Error;

use self::table::{AS_PAYLOAD_SAYS, EXTENDED_WORDS, NO_EVENT};
pub use self::table::{Content, Event, Field, PayloadBits, SHAPES, Shape, kind};

/// Length of an event word in bytes.
pub const WORD: usize = 4;
/// Maximum number of targets in a `PutElements`.
pub const MAX_ELEMENTS: usize = 64;
/// Length in words of the longest event, a `PutElements`.
pub const MAX_WORDS: usize = 3 + MAX_ELEMENTS;
/// Flag in the receiver word of an entry: the method has also been left. Object ids use the other 31 bits.
pub const LEFT: u32 = 1 << 31;

/// Bytes of a unit of size in [`Event::Counted`].
pub const COUNTED_UNIT: u64 = 8;

/// An object as events refer to it: its 31-bit identity hash, or 0 for null. Unique among live objects only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectHash(pub u32);

impl ObjectHash {
    /// Null or unknown.
    pub const NULL: ObjectHash = ObjectHash(0);

    /// Decodes a word of a trace. The top bit, which is set only in damaged traces, is cleared because readers use such
    /// values for their own numbers.
    #[inline]
    pub(crate) fn of_word(word: u32) -> Self {
        Self(word & !LEFT)
    }

    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// A value of the global counter that orders the events of all threads. The first ticket is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub u64);

/// The targets of a `PutElements`, as encoded in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets<'a>(&'a [u8]);

impl<'a> Targets<'a> {
    /// Wraps little-endian words; `None` unless there are 1 to [`MAX_ELEMENTS`] whole words.
    pub fn new(words: &'a [u8]) -> Option<Self> {
        (words.len().is_multiple_of(WORD) && (1..=MAX_ELEMENTS).contains(&(words.len() / WORD))).then_some(Self(words))
    }

    pub fn count(self) -> usize {
        self.0.len() / WORD
    }

    pub fn iter(self) -> impl Iterator<Item = ObjectHash> + 'a {
        (0..self.count()).map(move |index| ObjectHash::of_word(word(self.0, index)))
    }
}

/// Why bytes cannot be decoded as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EventError {
    /// An event kind that this version does not know.
    #[error("event word {0:#010x} is of unknown kind {kind}", kind = (.0 >> 2) & 63)]
    Kind(u32),
    /// The buffer ends in the middle of an event.
    #[error("event {first:#010x} needs {need} words, only {have} are left")]
    CutOff {
        /// First word of the event.
        first: u32,
        /// Length of this kind of event, in words.
        need: usize,
        /// Number of words that are left.
        have: usize,
    },
}

/// Length in words of the event that starts with `first`, including that word; `None` for zero and for unknown kinds.
#[inline]
pub fn len_words(first: u32) -> Option<usize> {
    // Not a `match` on the form: it would compile to a jump table, which costs more than most of what is done with an
    // event.
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

/// Decodes the event at the start of `bytes` and returns it with its length in bytes; `None` at the end of the events,
/// that is, at a zero word or if no whole word is left.
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

/// First word of an extended event of that kind. Keeps the low 24 bits of the payload.
fn extended(kind: u32, payload: u32) -> u32 {
    payload << 8 | kind << 2 | 3
}

/// Appends `event` to `out`. Only the low 30 bits of method ids, 31 of receivers and 56 of tickets are kept.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) {
    let (words, count) = match *event {
        Event::Exit { method } => ([method.0 << 2, 0, 0, 0, 0], 1),
        Event::Entry { method } => ([method.0 << 2 | 1, 0, 0, 0, 0], 1),
        Event::EntryOn { method, receiver } => ([method.0 << 2 | 2, receiver.0 & !LEFT, 0, 0, 0], 2),
        Event::Leaf { method, receiver } => ([method.0 << 2 | 2, receiver.0 | LEFT, 0, 0, 0], 2),
        Event::Ticket(Ticket(ticket)) => ([extended(kind::TICKET, ticket as u32), (ticket >> 24) as u32, 0, 0, 0], 2),
        Event::PutElements { start, array, targets } => {
            ([extended(kind::PUT_ELEMENTS, targets.count() as u32), start, array.0, 0, 0], 3)
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

/// Number of events in `bytes`, not counting tickets.
pub fn count(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Ok(Some((event, len))) = decode(bytes) {
        count += u64::from(!matches!(event, Event::Ticket(_)));
        bytes = &bytes[len..];
    }
    count
}

/// Length in bytes of the whole events at the start of `chunk`: up to the first zero word, the first event that is
/// incomplete or unknown, or the end. Measures a chunk whose owner did not record how much of it is in use.
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
