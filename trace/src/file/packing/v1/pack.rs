//! From events to streams.

use super::model::{
    CODE_BITS, CONTROL_DIGIT, CONTROL_WAYS, FRESH_DIGIT, FRESH_WAYS, Model, Side, TICKET, VALUE_DIGIT, VALUE_WAYS,
};
use super::streams::{DICTIONARY, ESCAPE, LONGEST_RUN, Streams};
use crate::event::{WORD, len_words};

/// Packs blocks of events, one after the other.
#[derive(Debug, Default)]
pub struct Packer {
    model: Model,
    codes: Codes,
    controls: Literals,
    values: Literals,
}

impl Packer {
    /// Appends what is to be kept of these events to `out`; returns whether all of it are whole events. If not, nothing
    /// is to be made of what was appended.
    pub fn pack(&mut self, events: &[u8], out: &mut Vec<u8>) -> bool {
        let (words, rest) = events.as_chunks::<WORD>();
        if !rest.is_empty() {
            return false;
        }
        self.model.reset();
        self.codes.reset();
        self.controls.reset(words.len());
        self.values.reset(words.len());
        let mut known = Known { words, digits: 0, shift: 0, controls: &mut self.controls, values: &mut self.values };
        while let Some(&first) = known.words.first() {
            let first = u32::from_le_bytes(first);
            let Some(count) = len_words(first).filter(|&count| count <= known.words.len()) else { return false };
            (known.digits, known.shift) = (0, 0);
            let behind = &known.words[count..];
            let control = self.model.first(&mut known, first);
            // A ticket's first word is asked for again, with the second.
            if control != TICKET {
                known.words = &known.words[1..];
            }
            self.model.rest(&mut known, control, count);
            known.words = behind;
            self.codes.push(known.digits);
        }
        self.codes.finish();
        let (controls, values) = (self.controls.kept(), self.values.kept());
        Streams { dictionary: &self.codes.dictionary, codes: &self.codes.bytes, controls, values }.write(out);
        true
    }
}

/// Words that were kept.
#[derive(Debug, Default)]
struct Literals {
    /// Room for all words of the block, so that a word can be put there before it is known whether it is to be kept.
    words: Vec<[u8; WORD]>,
    count: usize,
}

impl Literals {
    fn reset(&mut self, most: usize) {
        if self.words.len() < most {
            self.words.resize(most, [0; WORD]);
        }
        self.count = 0;
    }

    #[inline]
    fn push_if(&mut self, is_kept: bool, word: u32) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word.to_le_bytes();
        }
        self.count += usize::from(is_kept);
    }

    fn kept(&self) -> &[u8] {
        self.words[..self.count].as_flattened()
    }
}

/// The side that knows the words.
struct Known<'a> {
    /// From the next word of the event on.
    words: &'a [[u8; WORD]],
    digits: u32,
    shift: u32,
    controls: &'a mut Literals,
    values: &'a mut Literals,
}

impl Known<'_> {
    /// Which way is the first that is right; their number if none is.
    #[inline]
    fn digit<const WAYS: usize>(&mut self, bits: u32, given: u32, ways: [u32; WAYS]) -> usize {
        let mut digit = WAYS;
        // No branches: which way it is can be foretold no better than the word.
        for way in (0..WAYS).rev() {
            digit = if ways[way] == given { way } else { digit };
        }
        self.digits |= (digit as u32) << self.shift;
        self.shift += bits;
        digit
    }
}

impl Side for Known<'_> {
    #[inline]
    fn given(&mut self) -> u32 {
        match self.words.split_first() {
            Some((&word, rest)) => {
                self.words = rest;
                u32::from_le_bytes(word)
            }
            None => 0,
        }
    }

    #[inline]
    fn control(&mut self, given: u32, ways: [u32; CONTROL_WAYS]) -> u32 {
        let digit = self.digit(CONTROL_DIGIT, given, ways);
        self.controls.push_if(digit == CONTROL_WAYS, given);
        given
    }

    #[inline]
    fn fresh(&mut self, given: u32, ways: [u32; FRESH_WAYS]) -> u32 {
        let digit = self.digit(FRESH_DIGIT, given, ways);
        self.values.push_if(digit == FRESH_WAYS, given);
        given
    }

    #[inline]
    fn value(&mut self, given: u32, ways: [u32; VALUE_WAYS]) -> u32 {
        let digit = self.digit(VALUE_DIGIT, given, ways);
        self.values.push_if(digit == VALUE_WAYS, given);
        given
    }

    fn literal(&mut self, given: u32) -> u32 {
        self.values.push_if(true, given);
        given
    }

    fn take(&mut self, _word: u32) {}
}

/// The digits of the events.
#[derive(Debug)]
struct Codes {
    bytes: Vec<u8>,
    dictionary: Vec<u8>,
    /// By digits: their byte, 0 if they have none.
    of_digits: Box<[u8; 1 << CODE_BITS]>,
    run: u8,
}

impl Default for Codes {
    fn default() -> Self {
        Self { bytes: Vec::new(), dictionary: Vec::new(), of_digits: Box::new([0; 1 << CODE_BITS]), run: 0 }
    }
}

impl Codes {
    fn reset(&mut self) {
        self.bytes.clear();
        self.dictionary.clear();
        self.of_digits.fill(0);
        self.run = 0;
    }

    #[inline]
    fn push(&mut self, digits: u32) {
        if digits == 0 {
            self.run += 1;
            if self.run == LONGEST_RUN {
                self.finish();
            }
            return;
        }
        self.finish();
        match self.of_digits[digits as usize] {
            0 => self.push_new(digits),
            byte => self.bytes.push(byte),
        }
    }

    fn push_new(&mut self, digits: u32) {
        let digits = digits as u16;
        let known = self.dictionary.len() / 2;
        if known < DICTIONARY {
            let byte = LONGEST_RUN + known as u8;
            self.dictionary.extend_from_slice(&digits.to_le_bytes());
            self.of_digits[usize::from(digits)] = byte;
            self.bytes.push(byte);
        } else {
            self.bytes.push(ESCAPE);
            self.bytes.extend_from_slice(&digits.to_le_bytes());
        }
    }

    /// Ends a run.
    #[inline]
    fn finish(&mut self) {
        if self.run > 0 {
            self.bytes.push(self.run - 1);
            self.run = 0;
        }
    }
}
