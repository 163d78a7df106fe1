//! From streams to events.

use super::super::unpack::UnpackError;
use super::model::{CONTROL_DIGIT, CONTROL_WAYS, FRESH_DIGIT, FRESH_WAYS, Model, Side, VALUE_DIGIT, VALUE_WAYS};
use super::streams::{ESCAPE, LONGEST_RUN, Streams};
use crate::event::{WORD, len_words};

/// Unpacks blocks of events, one after the other.
#[derive(Debug, Default)]
pub struct Unpacker {
    model: Model,
}

impl Unpacker {
    /// Fills `events` from what was kept of them.
    pub fn unpack(&mut self, packed: &[u8], events: &mut [u8]) -> Result<(), UnpackError> {
        let streams = Streams::read(packed)?;
        let (words, rest) = events.as_chunks_mut::<WORD>();
        if !rest.is_empty() {
            return Err(UnpackError::Length);
        }
        self.model.reset();
        let mut codes = Codes { dictionary: streams.dictionary, bytes: streams.codes, run: 0 };
        let mut learning = Learning {
            digits: 0,
            controls: Kept::new(streams.controls),
            values: Kept::new(streams.values),
            words: words.iter_mut(),
        };
        while learning.words.len() > 0 {
            learning.digits = codes.next()?;
            let control = self.model.first(&mut learning, 0);
            // That of a ticket without a ticket is a whole one: its length is that of all.
            let count = len_words(control).ok_or(UnpackError::Event(control))?;
            if count > learning.words.len() {
                return Err(UnpackError::Length);
            }
            self.model.rest(&mut learning, control, count);
        }
        if codes.run > 0 || !codes.bytes.is_empty() {
            return Err(UnpackError::Length);
        }
        match learning.controls.is_short || learning.values.is_short {
            true => Err(UnpackError::CutOff),
            false => Ok(()),
        }
    }
}

struct Codes<'a> {
    dictionary: &'a [u8],
    bytes: &'a [u8],
    run: u8,
}

impl Codes<'_> {
    /// The digits of the next event.
    #[inline]
    fn next(&mut self) -> Result<u32, UnpackError> {
        if self.run > 0 {
            self.run -= 1;
            return Ok(0);
        }
        let (&code, rest) = self.bytes.split_first().ok_or(UnpackError::CutOff)?;
        self.bytes = rest;
        if code < LONGEST_RUN {
            self.run = code;
            return Ok(0);
        }
        if code == ESCAPE {
            let (digits, rest) = self.bytes.split_first_chunk().ok_or(UnpackError::CutOff)?;
            self.bytes = rest;
            return Ok(u16::from_le_bytes(*digits).into());
        }
        let at = 2 * usize::from(code - LONGEST_RUN);
        match self.dictionary.get(at..at + 2) {
            Some(digits) => Ok(u16::from_le_bytes([digits[0], digits[1]]).into()),
            None => Err(UnpackError::Code(code)),
        }
    }
}

/// Words that were kept.
struct Kept<'a> {
    words: &'a [[u8; WORD]],
    /// There were none left.
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

/// The side that learns the words.
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
    fn fresh(&mut self, _given: u32, ways: [u32; FRESH_WAYS]) -> u32 {
        match ways.get(self.digit(FRESH_DIGIT)) {
            Some(&word) => word,
            None => self.values.next(),
        }
    }

    #[inline]
    fn value(&mut self, _given: u32, ways: [u32; VALUE_WAYS]) -> u32 {
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
