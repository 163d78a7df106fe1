//! From events to streams.

use super::model::{CODE_BITS, CONTROL_DIGIT, CONTROL_WAYS, FRESH_DIGIT, Model, Side, State, TICKET, VALUE_DIGIT};
use super::streams::{LONGEST_RUN, Streams};
use crate::event::{LEFT, MAX_WORDS, WORD, len_words};

/// Words whose events are packed before what is kept of them moves on.
const BATCH: usize = 1024;
/// Room for a batch and the end of its last event, a power of two.
const ROOM: usize = 2 * BATCH;
const _: () = assert!(BATCH + MAX_WORDS < ROOM && ROOM.is_power_of_two());
/// How far the number of an event is from its code, in its mark.
const NUMBER: u32 = 8;

/// Packs blocks of events, one after the other.
#[derive(Debug, Default)]
pub struct Packer {
    model: Box<Model>,
    batch: Box<Batch>,
    codes: Vec<u8>,
    further: Vec<u8>,
    controls: Vec<u8>,
    values: Vec<u8>,
    events: u64,
    tickets: u64,
}

impl Packer {
    /// Events of the block that was packed last, tickets not among them.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Appends what is to be kept of these events to `out`; returns whether all of it are whole events. If not, nothing
    /// is to be made of what was appended.
    pub fn pack(&mut self, events: &[u8], out: &mut Vec<u8>) -> bool {
        let (mut words, rest) = events.as_chunks::<WORD>();
        if !rest.is_empty() {
            return false;
        }
        for stream in [&mut self.codes, &mut self.further, &mut self.controls, &mut self.values] {
            stream.clear();
        }
        self.tickets = 0;
        let (model, batch) = (&mut *self.model, &mut *self.batch);
        let mut state = model.reset();
        let mut number = 0_u32;
        let mut codes = Codes { bytes: &mut self.codes, next: 0 };
        while !words.is_empty() {
            let left = words.len().saturating_sub(BATCH);
            let mut marks = 0;
            let mut known = Known { words, digits: 0, shift: 0, batch: &mut *batch, controls: 0, values: 0 };
            while known.words.len() > left {
                let Some((&first, rest)) = known.words.split_first() else { break };
                let first = u32::from_le_bytes(first);
                (known.digits, known.shift) = (0, 0);
                if first & 2 == 0 {
                    if first == 0 {
                        return false;
                    }
                    known.words = rest;
                    model.control(&mut state, &mut known, first);
                    if first & 1 == 0 {
                        model.exit(&mut state, first);
                    } else {
                        model.enter(&mut state, first & !3, 0);
                    }
                } else if first & 1 == 0 {
                    known.words = rest;
                    if rest.is_empty() {
                        return false;
                    }
                    let (_, context) = model.control(&mut state, &mut known, first);
                    let receiver = model.receiver(&mut state, &mut known, first, context);
                    if receiver & LEFT == 0 {
                        model.enter(&mut state, first & !3, receiver);
                    }
                } else {
                    let Some(count) = len_words(first).filter(|&count| count <= known.words.len()) else {
                        return false;
                    };
                    let (event, rest) = known.words.split_at(count);
                    self.tickets += u64::from(first & 0xff == TICKET);
                    // Copies: were they themselves referred to, they would not stay in registers for all other events.
                    let mut moved = state;
                    let mut copy = Known { words: event, batch: &mut *known.batch, ..known };
                    self.further.push(extended(model, &mut moved, &mut copy, first));
                    let (digits, controls, values) = (copy.digits, copy.controls, copy.values);
                    (known.digits, known.controls, known.values, known.words) = (digits, controls, values, rest);
                    state = moved;
                }
                let code = known.digits % (1 << CODE_BITS);
                known.batch.marks[marks % ROOM] = (number << NUMBER) + code;
                // No branch: whether an event is predicted can itself be predicted no better.
                marks += usize::from(code != 0);
                number = number.wrapping_add(1);
            }
            words = known.words;
            let (controls, values) = (known.controls, known.values);
            self.controls.extend_from_slice(batch.controls[..controls].as_flattened());
            self.values.extend_from_slice(batch.values[..values].as_flattened());
            codes.push(&batch.marks[..marks]);
        }
        codes.finish(number);
        self.events = u64::from(number).saturating_sub(self.tickets);
        let Self { codes, further, controls, values, .. } = self;
        Streams { codes, further, controls, values }.write(out);
        true
    }
}

/// An event that is no entry or exit; returns the digits that have no room in its code.
#[inline(never)]
fn extended(model: &mut Model, state: &mut State, known: &mut Known<'_, '_>, first: u32) -> u8 {
    let count = known.words.len();
    // A ticket's first word is asked for again, with the second.
    let first = if first & 0xff == TICKET { TICKET } else { first };
    if first != TICKET {
        known.words = &known.words[1..];
    }
    model.control(state, known, first);
    model.extended(state, known, first, count);
    (known.digits >> CODE_BITS) as u8
}

/// What is kept of some events, before it moves to the streams.
struct Batch {
    /// Of each event that is not predicted in the first way: its number and its code.
    marks: [u32; ROOM],
    controls: [[u8; WORD]; ROOM],
    values: [[u8; WORD]; ROOM],
}

impl Default for Batch {
    fn default() -> Self {
        Self { marks: [0; ROOM], controls: [[0; WORD]; ROOM], values: [[0; WORD]; ROOM] }
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

/// The side that knows the words.
struct Known<'w, 'b> {
    /// From the next word of the event on.
    words: &'w [[u8; WORD]],
    digits: u32,
    shift: u32,
    batch: &'b mut Batch,
    /// How many words were kept.
    controls: usize,
    values: usize,
}

impl Known<'_, '_> {
    /// Which way is the first that is right, or the last digit there is. Returns whether that means none.
    #[inline(always)]
    fn digit<const WAYS: usize>(&mut self, bits: u32, given: u32, ways: [u32; WAYS]) -> bool {
        let none = (1 << bits) - 1;
        let mut digit = none;
        // No branches: which way it is can be predicted no better than the word.
        for way in (0..WAYS).rev() {
            digit = if ways[way] == given { way as u32 } else { digit };
        }
        self.digits |= digit << self.shift;
        self.shift += bits;
        digit == none
    }
}

impl Side for Known<'_, '_> {
    #[inline(always)]
    fn given(&mut self) -> u32 {
        match self.words.split_first() {
            Some((&word, rest)) => {
                self.words = rest;
                u32::from_le_bytes(word)
            }
            None => 0,
        }
    }

    #[inline(always)]
    fn control(&mut self, given: u32, ways: [u32; CONTROL_WAYS]) -> u32 {
        let is_kept = self.digit(CONTROL_DIGIT, given, ways);
        self.batch.controls[self.controls % ROOM] = given.to_le_bytes();
        self.controls += usize::from(is_kept);
        given
    }

    #[inline(always)]
    fn fresh(&mut self, given: u32, way: u32) -> u32 {
        let is_kept = self.digit(FRESH_DIGIT, given, [way]);
        self.batch.values[self.values % ROOM] = given.to_le_bytes();
        self.values += usize::from(is_kept);
        given
    }

    #[inline(always)]
    fn value<const WAYS: usize>(&mut self, given: u32, ways: [u32; WAYS]) -> u32 {
        let is_kept = self.digit(VALUE_DIGIT, given, ways);
        self.batch.values[self.values % ROOM] = given.to_le_bytes();
        self.values += usize::from(is_kept);
        given
    }

    fn literal(&mut self, given: u32) -> u32 {
        self.batch.values[self.values % ROOM] = given.to_le_bytes();
        self.values += 1;
        given
    }

    #[inline(always)]
    fn take(&mut self, _word: u32) {}
}

/// Codes of all events, made of the marks of some.
struct Codes<'a> {
    bytes: &'a mut Vec<u8>,
    /// The number of the event behind the last mark.
    next: u32,
}

impl Codes<'_> {
    fn push(&mut self, marks: &[u32]) {
        // A mark makes two bytes at most, but for long runs.
        let mut made = [0; 2 * ROOM];
        let mut count = 0;
        for mark in marks {
            let number = mark >> NUMBER;
            let mut run = self.predicted_until(number);
            if run > LONGEST_RUN.into() {
                self.bytes.extend_from_slice(&made[..count]);
                count = 0;
                run = self.long_runs(run);
            }
            made[count % (2 * ROOM)] = (run as u8).wrapping_sub(1);
            count += usize::from(run > 0);
            made[count % (2 * ROOM)] = LONGEST_RUN + *mark as u8;
            count += 1;
            self.next = number + 1;
        }
        self.bytes.extend_from_slice(&made[..count]);
    }

    /// The events behind the last mark, up to that number, were all predicted.
    fn finish(&mut self, number: u32) {
        let run = self.predicted_until(number);
        match self.long_runs(run) {
            0 => {}
            run => self.bytes.push(run as u8 - 1),
        }
    }

    fn predicted_until(&self, number: u32) -> u32 {
        number.wrapping_sub(self.next) % (1 << (u32::BITS - NUMBER))
    }

    /// Leaves a run that one byte can stand for.
    #[cold]
    fn long_runs(&mut self, mut run: u32) -> u32 {
        while run > LONGEST_RUN.into() {
            self.bytes.push(LONGEST_RUN - 1);
            run -= u32::from(LONGEST_RUN);
        }
        run
    }
}
