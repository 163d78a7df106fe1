//! The packer: from events to streams.

use super::model::{CODE_BITS, CONTROL_DIGIT, CONTROL_WAYS, FRESH_DIGIT, Model, Side, State, TICKET, VALUE_DIGIT};
use super::streams::{LONGEST_RUN, Streams};
use crate::event::{LEFT, MAX_WORDS, WORD, len_words};

/// Maximum number of words whose events are packed before the results move to the streams.
const BATCH: usize = 1024;
/// Capacity for a batch and the rest of its last event, a power of two.
const ROOM: usize = 2 * BATCH;
const _: () = assert!(BATCH + MAX_WORDS < ROOM && ROOM.is_power_of_two());
/// Position in a mark of the event's number, in bits; the code is below it.
const NUMBER: u32 = 8;

/// Packs blocks of events one after the other.
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
    /// Number of events in the last block packed, not counting tickets.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Packs events and appends the result to `out`. Returns false if `events` are not all whole events; what was
    /// appended is then unusable.
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
        let mut number = 0;
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
                    // Copies, because taking references would keep the originals out of registers for all other events.
                    let mut moved = Moved { state, marks, number, tickets: self.tickets };
                    let mut copy = Known { batch: &mut *known.batch, ..known };
                    if !extended(model, &mut moved, &mut copy, left, &mut self.further) {
                        return false;
                    }
                    (known.controls, known.values, known.words) = (copy.controls, copy.values, copy.words);
                    Moved { state, marks, number, tickets: self.tickets } = moved;
                    continue;
                }
                known.mark(&mut marks, &mut number);
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

/// How far packing has come, besides the words.
#[derive(Clone, Copy)]
struct Moved {
    state: State,
    /// Number of marks in the batch.
    marks: usize,
    /// Number of events.
    number: u32,
    /// How many of them are tickets.
    tickets: u64,
}

/// Packs the next event, which is no entry or exit, and those of its kind that follow it without others in between, as all do where only
/// allocations are recorded; as long as there are more than `left` words. What digits do not fit in the codes goes to `further`. Returns false
/// if an event is not a whole one.
#[inline(never)]
fn extended(
    model: &mut Model,
    moved: &mut Moved,
    known: &mut Known<'_, '_>,
    left: usize,
    further: &mut Vec<u8>,
) -> bool {
    let Moved { mut state, mut marks, mut number, mut tickets } = *moved;
    let mut here = Known { batch: &mut *known.batch, ..*known };
    while here.words.len() > left {
        let first = u32::from_le_bytes(here.words[0]);
        if first & 3 != 3 {
            break;
        }
        let Some(count) = len_words(first).filter(|&count| count <= here.words.len()) else {
            return false;
        };
        let (event, rest) = here.words.split_at(count);
        (here.digits, here.shift) = (0, 0);
        let is_ticket = first & 0xff == TICKET;
        tickets += u64::from(is_ticket);
        // A ticket's first word is requested again, together with the second.
        let first = if is_ticket { TICKET } else { first };
        here.words = if is_ticket { event } else { &event[1..] };
        model.control(&mut state, &mut here, first);
        model.extended(&mut state, &mut here, first, count);
        further.push((here.digits >> CODE_BITS) as u8);
        here.mark(&mut marks, &mut number);
        here.words = rest;
    }
    (known.words, known.controls, known.values) = (here.words, here.controls, here.values);
    *moved = Moved { state, marks, number, tickets };
    true
}

/// Output for a number of events before it moves to the streams.
struct Batch {
    /// Number and code of each event that was not predicted in the first way.
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

/// The packing side, which knows the words.
struct Known<'w, 'b> {
    /// The words from the event's next one on.
    words: &'w [[u8; WORD]],
    digits: u32,
    shift: u32,
    batch: &'b mut Batch,
    /// Number of control words stored.
    controls: usize,
    values: usize,
}

impl Known<'_, '_> {
    /// Marks the event unless it was predicted in the first way.
    #[inline(always)]
    fn mark(&mut self, marks: &mut usize, number: &mut u32) {
        let code = self.digits % (1 << CODE_BITS);
        self.batch.marks[*marks % ROOM] = (*number << NUMBER) + code;
        // Branch-free: whether an event is predicted cannot be predicted any better by the CPU.
        *marks += usize::from(code != 0);
        *number = number.wrapping_add(1);
    }

    /// Writes the digit of the first correct prediction, or the last digit if none is. Returns whether none is.
    #[inline(always)]
    fn digit<const WAYS: usize>(&mut self, bits: u32, given: u32, ways: [u32; WAYS]) -> bool {
        let none = (1 << bits) - 1;
        let mut digit = none;
        // Branch-free: which prediction is right is as hard to predict as the word.
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

/// Writes the codes of all events, given the marks of those that were not predicted in the first way.
struct Codes<'a> {
    bytes: &'a mut Vec<u8>,
    /// Number of the event after the last mark.
    next: u32,
}

impl Codes<'_> {
    fn push(&mut self, marks: &[u32]) {
        // A mark produces at most two bytes, except after long runs.
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

    /// Ends with a run: all events after the last mark, up to that number, were predicted.
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

    /// Writes a long run and returns a rest that fits in one byte.
    #[cold]
    fn long_runs(&mut self, mut run: u32) -> u32 {
        while run > LONGEST_RUN.into() {
            self.bytes.push(LONGEST_RUN - 1);
            run -= u32::from(LONGEST_RUN);
        }
        run
    }
}
