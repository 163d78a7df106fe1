//! What both sides foretell words from.

use et_names::hashes;

use crate::event::{MAX_ELEMENTS, kind};

/// Entries of a table of control words, and of one of values. All four together stay in a core's second cache.
const CONTROLS: usize = 1 << 14;
const VALUES: usize = 1 << 13;
/// Frames that are kept, a power of two; of deeper stacks, the innermost.
const FRAMES: usize = 256;
/// How far down the stack the frame of an exit is looked for: frames in between were left without an event.
const UNWOUND: usize = 8;
/// How far a control word moves in the history with each that follows: the last six or seven are in it.
const AGING: u32 = 5;

/// Ways to foretell a control word.
pub const CONTROL_WAYS: usize = 3;
/// Ways to foretell the id of a new object.
pub const FRESH_WAYS: usize = 1;
/// Ways to foretell another word.
pub const VALUE_WAYS: usize = 7;

/// Bits that say which way was right, or none.
pub const CONTROL_DIGIT: u32 = 2;
/// As above.
pub const FRESH_DIGIT: u32 = 1;
/// As above.
pub const VALUE_DIGIT: u32 = 3;
/// Bits of all digits of an event, at most: those of a `PutElement`.
#[cfg(test)]
pub const CODE_BITS: u32 = CONTROL_DIGIT + 3 * VALUE_DIGIT;

/// The first word of a ticket without the ticket, which differs each time.
pub const TICKET: u32 = kind::TICKET << 2 | 3;

/// One side of the packing: knows the words, or learns them from what was kept.
pub trait Side {
    /// The next word of the event; without meaning on the side that does not know it.
    fn given(&mut self) -> u32;
    /// Says, or learns, which way a control word was foretold. Returns it.
    fn control(&mut self, given: u32, ways: [u32; CONTROL_WAYS]) -> u32;
    /// The same with the id of a new object.
    fn fresh(&mut self, given: u32, ways: [u32; FRESH_WAYS]) -> u32;
    /// The same with any other word.
    fn value(&mut self, given: u32, ways: [u32; VALUE_WAYS]) -> u32;
    /// A word that is not foretold.
    fn literal(&mut self, given: u32) -> u32;
    /// This is the next word of the event.
    fn take(&mut self, word: u32);
}

#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    method: u32,
    receiver: u32,
}

/// Words by keys; keys that share a place share the word.
struct Table<const SIZE: usize>(Box<[u32; SIZE]>);

impl<const SIZE: usize> Default for Table<SIZE> {
    fn default() -> Self {
        Self(Box::new([0; SIZE]))
    }
}

impl<const SIZE: usize> Table<SIZE> {
    #[inline]
    fn at(&mut self, key: u32) -> &mut u32 {
        let place = key.wrapping_mul(0x9e37_79b1) >> (u32::BITS - SIZE.ilog2());
        &mut self.0[place as usize % SIZE]
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }
}

impl<const SIZE: usize> std::fmt::Debug for Table<SIZE> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

/// The state of foretelling.
#[derive(Debug)]
pub struct Model {
    /// By the last few control words: the next.
    by_history: Table<CONTROLS>,
    /// By the last control word: the next.
    by_control: Table<CONTROLS>,
    /// By place: the last value there.
    by_place: Table<VALUES>,
    /// By place and the object last named: the value.
    by_object: Table<VALUES>,
    frames: [Frame; FRAMES],
    depth: usize,
    history: u32,
    control: u32,
    /// Objects named last, of which the first is the latest.
    recent: [u32; 2],
    /// The object made last.
    fresh: u32,
    ticket: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            by_history: Table::default(),
            by_control: Table::default(),
            by_place: Table::default(),
            by_object: Table::default(),
            frames: [Frame::default(); FRAMES],
            depth: 0,
            history: 0,
            control: 0,
            recent: [0; 2],
            fresh: 0,
            ticket: 0,
        }
    }
}

impl Model {
    /// At the start of a block.
    pub fn reset(&mut self) {
        self.by_history.clear();
        self.by_control.clear();
        self.by_place.clear();
        self.by_object.clear();
        (self.depth, self.history, self.control, self.fresh, self.ticket) = (0, 0, 0, 0, 0);
        self.recent = [0; 2];
        // What lies above the depth is seen when the stack wraps around.
        self.frames.fill(Frame::default());
    }

    /// The event that starts with `first`, a control word that [`Model::first`] gave. It has that many words.
    #[inline]
    pub fn rest<S: Side>(&mut self, side: &mut S, first: u32, words: usize) {
        match first & 3 {
            0 => {
                side.take(first);
                self.leave(first >> 2);
            }
            1 => {
                side.take(first);
                self.enter(first >> 2, 0);
            }
            2 => {
                side.take(first);
                let receiver = self.object(side, first);
                self.enter(first >> 2, receiver);
            }
            _ => self.extended(side, first, words),
        }
    }

    /// Events that are not entries and exits.
    fn extended<S: Side>(&mut self, side: &mut S, first: u32, words: usize) {
        // Where the event itself says nothing of the place, the control words before it do.
        let place = self.history;
        if first == TICKET {
            return self.ticket(side);
        }
        side.take(first);
        match first >> 2 & 63 {
            kind::NEW | kind::NEW_ARRAY => {
                let site = self.control(side);
                self.made(side);
                self.value(side, site);
            }
            kind::FOUND | kind::MADE => {
                self.made(side);
                let class = self.value(side, place);
                self.value(side, class);
            }
            kind::PUT_FIELD => {
                let field = self.control(side);
                self.object(side, field);
                self.object(side, !field);
            }
            kind::PUT_STATIC | kind::THROW | kind::HANDLE => {
                let id = self.control(side);
                self.object(side, id);
            }
            kind::EXIT_THROW => {
                let method = self.control(side);
                self.object(side, method);
                self.object(side, !method);
                self.leave(method);
            }
            kind::ENTRY_INIT => {
                let method = self.control(side);
                self.control(side);
                self.enter(method, 0);
            }
            kind::SUPER_CALL => {
                self.control(side);
            }
            kind::PUT_ELEMENT => {
                self.value(side, place);
                self.object(side, place ^ 1);
                self.object(side, place ^ 2);
            }
            kind::PUT_ELEMENTS => {
                self.value(side, place);
                self.object(side, place ^ 1);
                for _ in 0..words.saturating_sub(3).min(MAX_ELEMENTS) {
                    let given = side.given();
                    let word = side.literal(given);
                    side.take(word);
                }
            }
            // `Switch`, `Used`.
            _ => {
                for _ in 1..words {
                    self.object(side, place);
                }
            }
        }
    }

    /// The first word of an event, that of a ticket without the ticket.
    #[inline]
    pub fn first<S: Side>(&mut self, side: &mut S, given: u32) -> u32 {
        let is_ticket = given & 0xff == TICKET;
        self.foretold_control(side, if is_ticket { TICKET } else { given })
    }

    #[inline]
    fn foretold_control<S: Side>(&mut self, side: &mut S, given: u32) -> u32 {
        let top = self.frames[self.depth % FRAMES].method << 2;
        let (by_history, by_control) = (self.by_history.at(self.history), self.by_control.at(self.control));
        let word = side.control(given, [*by_history, *by_control, top]);
        (*by_history, *by_control) = (word, word);
        self.history = (self.history << AGING).wrapping_add(word.wrapping_mul(0x85eb_ca6b) >> 7);
        self.control = word;
        word
    }

    /// A further word that says what the event is of: a static id.
    fn control<S: Side>(&mut self, side: &mut S) -> u32 {
        let given = side.given();
        let word = self.foretold_control(side, given);
        side.take(word);
        word
    }

    #[inline]
    fn value<S: Side>(&mut self, side: &mut S, place: u32) -> u32 {
        let given = side.given();
        let word = self.foretold_value(side, place, given);
        side.take(word);
        word
    }

    #[inline]
    fn foretold_value<S: Side>(&mut self, side: &mut S, place: u32, given: u32) -> u32 {
        let by_place = self.by_place.at(place);
        let by_object = self.by_object.at(place ^ self.recent[0].wrapping_mul(0x27d4_eb2f));
        let last = *by_place;
        let receiver = self.frames[self.depth % FRAMES].receiver;
        let [latest, before] = self.recent;
        let ways = [*by_object, last, receiver, latest, before, 0, last.wrapping_add(1)];
        let word = side.value(given, ways);
        (*by_place, *by_object) = (word, word);
        word
    }

    /// A value that is an object.
    #[inline]
    fn object<S: Side>(&mut self, side: &mut S, place: u32) -> u32 {
        let object = self.value(side, place);
        self.name(object);
        object
    }

    #[inline]
    fn name(&mut self, object: u32) {
        if object != self.recent[0] {
            self.recent = [object, self.recent[0]];
        }
    }

    /// An object that was made.
    fn made<S: Side>(&mut self, side: &mut S) {
        let given = side.given();
        let object = side.fresh(given, [hashes::next(self.fresh)]);
        side.take(object);
        self.fresh = object;
        self.name(object);
    }

    /// A ticket: how far it is from the last, or all of it.
    fn ticket<S: Side>(&mut self, side: &mut S) {
        // The side that knows gave the first word before; here come its two words again.
        let (low, high) = (side.given(), side.given());
        let given = u64::from(high) << 24 | u64::from(low >> 8);
        let step = given.wrapping_sub(self.ticket);
        let step = self.foretold_value(side, TICKET, u32::try_from(step).unwrap_or(0));
        self.ticket = if step == 0 {
            u64::from(side.literal((given >> 32) as u32)) << 32 | u64::from(side.literal(given as u32))
        } else {
            self.ticket.wrapping_add(step.into())
        };
        side.take((self.ticket as u32) << 8 | TICKET);
        side.take((self.ticket >> 24) as u32);
    }

    #[inline]
    fn enter(&mut self, method: u32, receiver: u32) {
        self.depth = self.depth.wrapping_add(1);
        self.frames[self.depth % FRAMES] = Frame { method, receiver };
    }

    /// The frame of that method and those above it are gone; none, if it was entered before the block began.
    #[inline]
    fn leave(&mut self, method: u32) {
        for above in 0..UNWOUND {
            let depth = self.depth.wrapping_sub(above);
            if self.frames[depth % FRAMES].method == method {
                self.depth = depth.wrapping_sub(1);
                return;
            }
        }
    }
}
