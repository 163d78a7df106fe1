//! The predictor of words that packer and unpacker share.

use et_names::hashes;

use crate::event::{LEFT, MAX_ELEMENTS, kind};

/// Number of table entries for the words that followed a given history, and for those that followed an object. Together
/// the tables fit in the L2 cache of a core.
const CONTEXTS: usize = 1 << 14;
const OBJECTS: usize = 1 << 13;
/// Number of table entries for the entries of methods.
const METHODS: usize = 1 << 13;
/// Number of frames kept, a power of two; of deeper stacks, the innermost.
const FRAMES: usize = 256;
/// How many frames down the stack the frame of an exit is searched for: the frames above it were left without an event.
const UNWOUND: usize = 8;
/// Bits by which a control word is shifted in the history for each one that follows. The history covers the last six or
/// seven.
const AGING: u32 = 5;
/// Multiplier that spreads keys over their high bits (2^32 divided by the golden ratio).
const SPREAD: u32 = 0x9e37_79b1;
/// Another odd multiplier, for the object in a key.
const OBJECT_SPREAD: u32 = 0x27d4_eb2f;

/// Number of predictions for a control word.
pub const CONTROL_WAYS: usize = 2;
/// Number of predictions for a receiver: the first ones of those for any value.
pub const RECEIVER_WAYS: usize = 5;
/// Number of predictions for the receiver of a method that has not been entered before.
pub const FIRST_RECEIVER_WAYS: usize = 7;
/// Number of predictions for any other word.
pub const VALUE_WAYS: usize = 7;

/// Width in bits of the digit that says which prediction of a control word was right, or that none was.
pub const CONTROL_DIGIT: u32 = 2;
/// Width in bits of the digit for the id of a new object.
pub const FRESH_DIGIT: u32 = 1;
/// Width in bits of the digit for any other word.
pub const VALUE_DIGIT: u32 = 3;
/// Width in bits of the digits in an event's code. Only extended events have further digits.
pub const CODE_BITS: u32 = CONTROL_DIGIT + VALUE_DIGIT;

/// First word of a ticket event with the ticket bits cleared, as they differ each time.
pub const TICKET: u32 = kind::TICKET << 2 | 3;

/// The packer, which knows the words, or the unpacker, which learns them from the packed bytes.
pub trait Side {
    /// Returns the next word of the event; on the unpacking side, a meaningless value.
    fn given(&mut self) -> u32;
    /// Writes or reads which prediction of a control word was right. Returns the word.
    fn control(&mut self, given: u32, ways: [u32; CONTROL_WAYS]) -> u32;
    /// The same for the id of a new object.
    fn fresh(&mut self, given: u32, way: u32) -> u32;
    /// The same for any other word.
    fn value<const WAYS: usize>(&mut self, given: u32, ways: [u32; WAYS]) -> u32;
    /// Writes or reads a word that is not predicted.
    fn literal(&mut self, given: u32) -> u32;
    /// Reports the next word of the event.
    fn take(&mut self, word: u32);
}

/// What followed the same control words the last time. Both words are in one cache line.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    control: u32,
    value: u32,
}

/// What the last entry of a method was like. Entries of one method are all of one kind, but two methods may share a
/// table entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Entered {
    /// The method has not been entered.
    #[default]
    Never,
    /// It was entered by an entry event.
    Only,
    /// It was entered and left by a leaf event.
    Left,
    /// It was entered and left by a leaf event without a receiver.
    LeftStatic,
}

impl Entered {
    #[inline(always)]
    fn of(receiver: u32) -> Self {
        match receiver {
            LEFT => Self::LeftStatic,
            _ if receiver & LEFT != 0 => Self::Left,
            _ => Self::Only,
        }
    }
}

/// The tables of what was seen in the block. They have fixed sizes and one base address, which leaves registers for the
/// loop over events.
#[derive(Debug)]
pub struct Model {
    contexts: [Context; CONTEXTS],
    /// The last value, by place and most recently named object.
    by_object: [u32; OBJECTS],
    /// The last kind of entry, by method.
    entered: [Entered; METHODS],
    /// The control word of the exit of each frame. The two words of a frame are stored apart: a load that spans two
    /// recent stores would stall.
    exits: [u32; FRAMES],
    receivers: [u32; FRAMES],
}

/// State that changes with each event. Kept out of the tables, and small, so that it can stay in registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    history: u32,
    depth: usize,
    /// The most recently named objects.
    latest: u32,
    before: u32,
    /// The most recently created object.
    fresh: u32,
    ticket: u64,
}

impl State {
    #[inline(always)]
    fn name(&mut self, object: u32) {
        self.before = if object != self.latest { self.latest } else { self.before };
        self.latest = object;
    }

    /// Adds a control word to the history.
    #[inline(always)]
    fn remember(&mut self, word: u32) {
        self.history = (self.history << AGING).wrapping_add(word.wrapping_mul(SPREAD));
    }

    #[inline(always)]
    fn context(&self) -> usize {
        (self.history >> (u32::BITS - CONTEXTS.ilog2())) as usize % CONTEXTS
    }
}

/// Index in `contexts` of a place's values.
#[inline(always)]
fn context_of(place: u32) -> usize {
    (place.wrapping_mul(SPREAD) >> (u32::BITS - CONTEXTS.ilog2())) as usize % CONTEXTS
}

impl Default for Model {
    fn default() -> Self {
        Self {
            contexts: [Context::default(); CONTEXTS],
            by_object: [0; OBJECTS],
            entered: [Entered::Never; METHODS],
            exits: [0; FRAMES],
            receivers: [0; FRAMES],
        }
    }
}

impl Model {
    /// Resets the model at the start of a block.
    pub fn reset(&mut self) -> State {
        self.contexts.fill(Context::default());
        self.by_object.fill(0);
        self.entered.fill(Entered::Never);
        // Entries above the depth are read when the stack wraps around.
        self.exits.fill(0);
        self.receivers.fill(0);
        State::default()
    }

    /// Predicts the next control word: the first word of an event (of a ticket, without its bits) or a static id.
    /// Returns the word and the index of the context in which it appeared.
    #[inline(always)]
    pub fn control<S: Side>(&mut self, state: &mut State, side: &mut S, given: u32) -> (u32, usize) {
        let at = state.context();
        let context = &mut self.contexts[at];
        let word = side.control(given, [context.control, self.exits[state.depth % FRAMES]]);
        context.control = word;
        state.remember(word);
        (word, at)
    }

    /// Handles the exit from a method.
    #[inline(always)]
    pub fn exit(&mut self, state: &mut State, word: u32) {
        // A branch and not a select, so that the next frame is known before the tables have been read.
        state.depth = if self.exits[state.depth % FRAMES] == word {
            state.depth.wrapping_sub(1)
        } else {
            self.unwound(state.depth, word)
        };
    }

    /// Returns the new depth after the frame of that method and those above it are gone; unchanged if the method was
    /// entered before the block began.
    #[inline(never)]
    fn unwound(&self, depth: usize, exit: u32) -> usize {
        let frames = (1..UNWOUND).map(|above| depth.wrapping_sub(above));
        frames
            .filter(|frame| self.exits[frame % FRAMES] == exit)
            .map(|frame| frame.wrapping_sub(1))
            .next()
            .unwrap_or(depth)
    }

    /// Handles the entry of the method whose exit is this word.
    #[inline(always)]
    pub fn enter(&mut self, state: &mut State, exit: u32, receiver: u32) {
        state.depth = state.depth.wrapping_add(1);
        self.exits[state.depth % FRAMES] = exit;
        self.receivers[state.depth % FRAMES] = receiver;
    }

    /// Predicts the receiver of an entry that appeared in that context; with [`LEFT`] if the method was left as well.
    #[inline(always)]
    pub fn receiver<S: Side>(&mut self, state: &mut State, side: &mut S, entry: u32, context: usize) -> u32 {
        let given = side.given();
        let place = (entry.wrapping_mul(SPREAD) >> (u32::BITS - METHODS.ilog2())) as usize % METHODS;
        let entered = self.entered[place];
        let word = if entered == Entered::LeftStatic {
            side.value::<1>(given, [LEFT])
        } else {
            let by_object = &mut self.by_object[behind(state, entry)];
            let here = &mut self.contexts[context % CONTEXTS].value;
            let frame = self.receivers[state.depth % FRAMES];
            let ways = [*by_object, *here, frame, state.latest, state.before];
            let word = match entered {
                // Stored in the form in which other events name the object, which compresses better.
                Entered::Left => side.value::<RECEIVER_WAYS>(given ^ LEFT, ways) ^ LEFT,
                Entered::Never => {
                    let [a, b, c, d, e] = ways;
                    side.value::<FIRST_RECEIVER_WAYS>(given, [a, b, c, d, e, LEFT, state.latest | LEFT])
                }
                _ => side.value::<RECEIVER_WAYS>(given, ways),
            };
            (*by_object, *here) = (word & !LEFT, word & !LEFT);
            word
        };
        let now = Entered::of(word);
        if now != entered {
            self.entered[place] = now;
        }
        if now != Entered::LeftStatic {
            state.name(word & !LEFT);
        }
        if word & LEFT != 0 {
            // The exit goes into the history in the same form as an exit event.
            state.remember(entry & !3);
        }
        word
    }

    /// Predicts the rest of an event other than an entry or exit. The event has `words` words.
    #[inline(always)]
    pub fn extended<S: Side>(&mut self, state: &mut State, side: &mut S, first: u32, words: usize) {
        if first == TICKET {
            return self.ticket(state, side);
        }
        side.take(first);
        // An event without a static id has the preceding control words as its place.
        let place = state.history;
        let kind = first >> 2 & 63;
        // The most frequent kinds are tested separately: a jump table takes longer than the event itself.
        if kind == kind::PUT_FIELD {
            let field = self.id(state, side);
            self.object(state, side, field);
            self.object(state, side, !field);
        } else if kind == kind::NEW || kind == kind::NEW_ARRAY {
            let site = self.id(state, side);
            self.made(state, side);
            self.word(state, side, site);
        } else {
            self.rare(state, side, kind, place, words);
        }
    }

    #[inline(never)]
    fn rare<S: Side>(&mut self, state: &mut State, side: &mut S, kind: u32, place: u32, words: usize) {
        match kind {
            kind::FOUND | kind::MADE => {
                self.made(state, side);
                let class = self.word(state, side, place);
                self.word(state, side, class);
            }
            kind::PUT_STATIC | kind::THROW | kind::HANDLE => {
                let id = self.id(state, side);
                self.object(state, side, id);
            }
            kind::EXIT_THROW => {
                let method = self.id(state, side);
                self.object(state, side, method);
                self.object(state, side, !method);
                self.exit(state, method << 2);
            }
            kind::ENTRY_INIT => {
                let method = self.id(state, side);
                self.id(state, side);
                self.enter(state, method << 2, 0);
            }
            kind::SUPER_CALL => {
                self.id(state, side);
            }
            kind::PUT_ELEMENT => {
                self.word(state, side, place);
                self.object(state, side, place ^ 1);
                self.object(state, side, place ^ 2);
            }
            kind::PUT_ELEMENTS => {
                self.word(state, side, place);
                self.object(state, side, place ^ 1);
                for _ in 0..words.saturating_sub(3).min(MAX_ELEMENTS) {
                    let given = side.given();
                    let word = side.literal(given);
                    side.take(word);
                }
            }
            kind::MADE_AT => {
                let site = self.id(state, side);
                self.made(state, side);
                let class = self.word(state, side, site);
                self.word(state, side, class);
            }
            // Its digits just fit: those of five words of other kinds would not.
            kind::COUNTED => {
                let site = self.id(state, side);
                let class = self.word(state, side, site);
                self.word(state, side, site ^ class);
                self.word(state, side, !(site ^ class));
            }
            // `Switch`, `Used`.
            _ => {
                for _ in 1..words {
                    self.object(state, side, place);
                }
            }
        }
    }

    /// Predicts a further word of the event that is a static id.
    #[inline(always)]
    fn id<S: Side>(&mut self, state: &mut State, side: &mut S) -> u32 {
        let given = side.given();
        let (word, _) = self.control(state, side, given);
        side.take(word);
        word
    }

    #[inline(always)]
    fn word<S: Side>(&mut self, state: &mut State, side: &mut S, place: u32) -> u32 {
        let given = side.given();
        let word = self.predicted(state, side, place, given);
        side.take(word);
        word
    }

    #[inline(always)]
    fn predicted<S: Side>(&mut self, state: &mut State, side: &mut S, place: u32, given: u32) -> u32 {
        let by_object = &mut self.by_object[behind(state, place)];
        let here = &mut self.contexts[context_of(place)].value;
        let frame = self.receivers[state.depth % FRAMES];
        let ways = [*by_object, *here, frame, state.latest, state.before, 0, here.wrapping_add(1)];
        let word = side.value::<VALUE_WAYS>(given, ways);
        (*by_object, *here) = (word, word);
        word
    }

    /// Predicts a word that is an object.
    #[inline(always)]
    fn object<S: Side>(&mut self, state: &mut State, side: &mut S, place: u32) {
        let object = self.word(state, side, place);
        state.name(object);
    }

    /// Predicts the id of a new object.
    #[inline(always)]
    fn made<S: Side>(&mut self, state: &mut State, side: &mut S) {
        let given = side.given();
        let object = side.fresh(given, hashes::next(state.fresh));
        side.take(object);
        state.fresh = object;
        state.name(object);
    }

    /// Predicts a ticket: the difference from the last one, or the whole ticket.
    #[inline(never)]
    fn ticket<S: Side>(&mut self, state: &mut State, side: &mut S) {
        // The packer returns both words again, the first with its ticket bits.
        let (low, high) = (side.given(), side.given());
        let given = u64::from(high) << 24 | u64::from(low >> 8);
        let step = given.wrapping_sub(state.ticket);
        let step = self.predicted(state, side, TICKET, u32::try_from(step).unwrap_or(0));
        state.ticket = if step == 0 {
            u64::from(side.literal((given >> 32) as u32)) << 32 | u64::from(side.literal(given as u32))
        } else {
            state.ticket.wrapping_add(step.into())
        };
        side.take((state.ticket as u32) << 8 | TICKET);
        side.take((state.ticket >> 24) as u32);
    }
}

/// Index of a place's values that depend on the most recently named object.
#[inline(always)]
fn behind(state: &State, place: u32) -> usize {
    let key = (place ^ state.latest.wrapping_mul(OBJECT_SPREAD)).wrapping_mul(SPREAD);
    (key >> (u32::BITS - OBJECTS.ilog2())) as usize % OBJECTS
}
