//! Arbitrary events of every kind for tests and fuzzers. Events added to the table are included automatically.

use super::{Content, LEFT, SHAPES, extended, kind};

/// Static ids have 30 bits.
const STATIC_ID: u32 = (1 << 30) - 1;

/// Builds the words of an event from the numbers that `next` returns.
pub fn words(mut next: impl FnMut() -> u32) -> Vec<u32> {
    const FORMS: usize = 4;
    let which = next() as usize % (FORMS + SHAPES.len());
    let Some(shape) = which.checked_sub(FORMS).map(|shape| &SHAPES[shape]) else {
        let method = (next() & STATIC_ID).max(1) << 2;
        return match which {
            0 => vec![method],
            1 => vec![method | 1],
            2 => vec![method | 2, next() & !LEFT],
            _ => vec![method | 2, next() | LEFT],
        };
    };
    let mut payload = 0;
    for bits in shape.payload {
        payload |= (next() & ((1 << bits.count) - 1)) << bits.from;
    }
    let mut repeats = 1;
    if shape.kind == kind::PUT_ELEMENTS {
        payload = payload % super::MAX_ELEMENTS as u32 + 1;
        repeats = payload as usize;
    }
    let mut words = vec![extended(shape.kind, payload)];
    for (index, field) in shape.fields.iter().enumerate() {
        let is_last = index + 1 == shape.fields.len();
        for _ in 0..if is_last { repeats } else { 1 } {
            let word = next();
            words.push(match field.content {
                Content::StaticId => word & STATIC_ID,
                Content::Object => word & !LEFT,
                Content::Number => word,
            });
        }
    }
    words
}

/// Builds events from these numbers and encodes each to bytes.
pub fn events(numbers: Vec<u32>) -> Vec<Vec<u8>> {
    let mut numbers = numbers.into_iter().peekable();
    let mut events = Vec::new();
    while numbers.peek().is_some() {
        let words = words(|| numbers.next().unwrap_or_default());
        events.push(words.into_iter().flat_map(u32::to_le_bytes).collect());
    }
    events
}
