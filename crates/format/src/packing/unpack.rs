//! The unpacker: from streams to events.

use super::model::{CODE_BITS, CONTROL_DIGIT, CONTROL_WAYS, FRESH_DIGIT, Model, Side, TICKET, VALUE_DIGIT};
use super::streams::{LONGEST_RUN, Streams, UnpackError};
use crate::event::{LEFT, WORD, len_words};

/// Unpacks blocks of events one after the other.
#[derive(Debug, Default)]
pub struct Unpacker {
    model: Box<Model>,
}

impl Unpacker {
    /// Unpacks `packed` into `events`, whose length must be that of the original. Fails if the streams are damaged.
    pub fn unpack(&mut self, packed: &[u8], events: &mut [u8]) -> Result<(), UnpackError> {
        let streams = Streams::read(packed)?;
        let (words, rest) = events.as_chunks_mut::<WORD>();
        if !rest.is_empty() {
            return Err(UnpackError::Length);
        }
        let model = &mut *self.model;
        let mut state = model.reset();
        let mut codes = Codes { bytes: streams.codes, run: 0 };
        let mut further = streams.further.iter();
        let mut learning = Learning {
            digits: 0,
            controls: Kept::new(streams.controls),
            values: Kept::new(streams.values),
            words: words.iter_mut(),
        };
        while learning.words.len() > 0 {
            learning.digits = codes.next()?;
            let (first, context) = model.control(&mut state, &mut learning, 0);
            if first & 2 == 0 {
                if first == 0 {
                    return Err(UnpackError::Event(first));
                }
                learning.take(first);
                match first & 1 {
                    0 => model.exit(&mut state, first),
                    _ => model.enter(&mut state, first & !3, 0),
                }
                continue;
            }
            // The first word of a ticket without its bits has the right length, too: all tickets have the same.
            let count = len_words(first).ok_or(UnpackError::Event(first))?;
            if count > learning.words.len() {
                return Err(UnpackError::Length);
            }
            if first & 1 == 0 {
                learning.take(first);
                let receiver = model.receiver(&mut state, &mut learning, first, context);
                learning.take(receiver);
                if receiver & LEFT == 0 {
                    model.enter(&mut state, first & !3, receiver);
                }
            } else {
                let &digits = further.next().ok_or(UnpackError::CutOff)?;
                learning.digits |= u32::from(digits) << (CODE_BITS - CONTROL_DIGIT);
                if first & 0xff == TICKET && first != TICKET {
                    return Err(UnpackError::Event(first));
                }
                model.extended(&mut state, &mut learning, first, count);
            }
        }
        if codes.run > 0 || !codes.bytes.is_empty() || further.len() > 0 {
            return Err(UnpackError::Length);
        }
        match learning.controls.is_short || learning.values.is_short {
            true => Err(UnpackError::CutOff),
            false => Ok(()),
        }
    }
}

struct Codes<'a> {
    bytes: &'a [u8],
    run: u8,
}

impl Codes<'_> {
    /// Returns the first digits of the next event.
    #[inline]
    fn next(&mut self) -> Result<u32, UnpackError> {
        if self.run > 0 {
            self.run -= 1;
            return Ok(0);
        }
        let (&code, rest) = self.bytes.split_first().ok_or(UnpackError::CutOff)?;
        self.bytes = rest;
        match code.checked_sub(LONGEST_RUN) {
            None => {
                self.run = code;
                Ok(0)
            }
            Some(digits) if digits < 1 << CODE_BITS => Ok(digits.into()),
            Some(_) => Err(UnpackError::Code(code)),
        }
    }
}

/// Reads stored words.
struct Kept<'a> {
    words: &'a [[u8; WORD]],
    /// A word was requested after the end of the stream.
    is_short: bool,
}

impl<'a> Kept<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { words: bytes.as_chunks().0, is_short: false }
    }

    fn next(&mut self) -> u32 {
        match self.words.split_first() {
            Some((&word, rest)) => {
                self.words = rest;
                u32::from_le_bytes(word)
            }
            None => {
                self.is_short = true;
                0
            }
        }
    }
}

/// The unpacking side, which learns the words.
struct Learning<'a> {
    digits: u32,
    controls: Kept<'a>,
    values: Kept<'a>,
    words: std::slice::IterMut<'a, [u8; WORD]>,
}

impl Learning<'_> {
    #[inline]
    fn digit(&mut self, bits: u32) -> usize {
        let digit = self.digits & ((1 << bits) - 1);
        self.digits >>= bits;
        digit as usize
    }
}

impl Side for Learning<'_> {
    #[inline]
    fn given(&mut self) -> u32 {
        0
    }

    #[inline]
    fn control(&mut self, _given: u32, ways: [u32; CONTROL_WAYS]) -> u32 {
        match ways.get(self.digit(CONTROL_DIGIT)) {
            Some(&word) => word,
            None => self.controls.next(),
        }
    }

    #[inline]
    fn fresh(&mut self, _given: u32, way: u32) -> u32 {
        match self.digit(FRESH_DIGIT) {
            0 => way,
            _ => self.values.next(),
        }
    }

    #[inline]
    fn value<const WAYS: usize>(&mut self, _given: u32, ways: [u32; WAYS]) -> u32 {
        match ways.get(self.digit(VALUE_DIGIT)) {
            Some(&word) => word,
            None => self.values.next(),
        }
    }

    fn literal(&mut self, _given: u32) -> u32 {
        self.values.next()
    }

    #[inline]
    fn take(&mut self, word: u32) {
        if let Some(place) = self.words.next() {
            *place = word.to_le_bytes();
        }
    }
}
