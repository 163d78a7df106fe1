//! What both sides predict words from.

use et_names::hashes;

use crate::event::{LEFT, MAX_ELEMENTS, kind};

/// Places for what followed the last control words, and for what stood behind an object. Together they stay in a core's
/// second cache.
const CONTEXTS: usize = 1 << 14;
const OBJECTS: usize = 1 << 13;
/// Places for what the entries of methods are.
const METHODS: usize = 1 << 13;
/// Frames that are kept, a power of two; of deeper stacks, the innermost.
const FRAMES: usize = 256;
/// How far down the stack the frame of an exit is looked for: frames in between were left without an event.
const UNWOUND: usize = 8;
/// How far a control word moves in the history with each that follows: the last six or seven are in it.
const AGING: u32 = 5;
/// Spreads keys over their high bits (2^32 divided by the golden ratio).
const SPREAD: u32 = 0x9e37_79b1;
/// Another odd number, for the object that is a part of a key.
const OBJECT_SPREAD: u32 = 0x27d4_eb2f;

/// Ways to predict a control word.
pub const CONTROL_WAYS: usize = 2;
/// Ways to predict a receiver: the first of those of any value.
pub const RECEIVER_WAYS: usize = 5;
/// The same of a method that was not entered before.
pub const FIRST_RECEIVER_WAYS: usize = 7;
/// Ways to predict another word.
pub const VALUE_WAYS: usize = 7;

/// Bits that say which way was right, or none.
pub const CONTROL_DIGIT: u32 = 2;
/// As above; of a new object's id.
pub const FRESH_DIGIT: u32 = 1;
/// As above.
pub const VALUE_DIGIT: u32 = 3;
/// Bits of the digits that stand in an event's code: all there are, but for extended events.
pub const CODE_BITS: u32 = CONTROL_DIGIT + VALUE_DIGIT;

/// The first word of a ticket without the ticket, which differs each time.
pub const TICKET: u32 = kind::TICKET << 2 | 3;

/// One side of the packing: knows the words, or learns them from what was kept.
pub trait Side {
    /// The next word of the event; without meaning on the side that does not know it.
    fn given(&mut self) -> u32;
    /// Says, or learns, which way a control word was predicted. Returns it.
    fn control(&mut self, given: u32, ways: [u32; CONTROL_WAYS]) -> u32;
    /// The same with the id of a new object.
    fn fresh(&mut self, given: u32, way: u32) -> u32;
    /// The same with any other word.
    fn value<const WAYS: usize>(&mut self, given: u32, ways: [u32; WAYS]) -> u32;
    /// A word that is not predicted.
    fn literal(&mut self, given: u32) -> u32;
    /// This is the next word of the event.
    fn take(&mut self, word: u32);
}

/// What followed like control words. Both words come from one line of the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    control: u32,
    value: u32,
}

/// What the last entry of a method was: all are of one kind, unless two methods share their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Entered {
    /// There was none.
    #[default]
    Never,
    /// It was only entered.
    Only,
    /// It was left as well.
    Left,
    /// The same, without a receiver.
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

/// What was seen in the block. Fixed sizes behind one address, so that the loop over events has registers left.
#[derive(Debug)]
pub struct Model {
    contexts: [Context; CONTEXTS],
    /// By place and the object last named: the value.
    by_object: [u32; OBJECTS],
    /// By method.
    entered: [Entered; METHODS],
    /// Of each frame, the control word of its exit. A frame's two words are apart: what was stored in halves cannot be
    /// loaded as a whole soon after.
    exits: [u32; FRAMES],
    receivers: [u32; FRAMES],
}

/// What changes with each event. It is a part of no table, and small, so that it can stay in registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    history: u32,
    depth: usize,
    /// Objects named last.
    latest: u32,
    before: u32,
    /// The object made last.
    fresh: u32,
    ticket: u64,
}

impl State {
    #[inline(always)]
    fn name(&mut self, object: u32) {
        self.before = if object != self.latest { self.latest } else { self.before };
        self.latest = object;
    }

    /// A control word has passed.
    #[inline(always)]
    fn remember(&mut self, word: u32) {
        self.history = (self.history << AGING).wrapping_add(word.wrapping_mul(SPREAD));
    }

    #[inline(always)]
    fn context(&self) -> usize {
        (self.history >> (u32::BITS - CONTEXTS.ilog2())) as usize % CONTEXTS
    }
}

/// Where in the contexts the values of a place are.
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
    /// At the start of a block.
    pub fn reset(&mut self) -> State {
        self.contexts.fill(Context::default());
        self.by_object.fill(0);
        self.entered.fill(Entered::Never);
        // What lies above the depth is seen when the stack wraps around.
        self.exits.fill(0);
        self.receivers.fill(0);
        State::default()
    }

    /// The next control word: the first of an event (that of a ticket without the ticket), or a static id. Comes with where
    /// the context is in which it stands.
    #[inline(always)]
    pub fn control<S: Side>(&mut self, state: &mut State, side: &mut S, given: u32) -> (u32, usize) {
        let at = state.context();
        let context = &mut self.contexts[at];
        let word = side.control(given, [context.control, self.exits[state.depth % FRAMES]]);
        context.control = word;
        state.remember(word);
        (word, at)
    }

    /// The exit from a method.
    #[inline(always)]
    pub fn exit(&mut self, state: &mut State, word: u32) {
        // A branch, not a choice: the next frame is known before the tables have answered.
        state.depth = if self.exits[state.depth % FRAMES] == word {
            state.depth.wrapping_sub(1)
        } else {
            self.unwound(state.depth, word)
        };
    }

    /// The frame of that method and those above it are gone; none, if it was entered before the block began.
    #[inline(never)]
    fn unwound(&self, depth: usize, exit: u32) -> usize {
        let frames = (1..UNWOUND).map(|above| depth.wrapping_sub(above));
        frames
            .filter(|frame| self.exits[frame % FRAMES] == exit)
            .map(|frame| frame.wrapping_sub(1))
            .next()
            .unwrap_or(depth)
    }

    /// The entry of the method that is left by this word.
    #[inline(always)]
    pub fn enter(&mut self, state: &mut State, exit: u32, receiver: u32) {
        state.depth = state.depth.wrapping_add(1);
        self.exits[state.depth % FRAMES] = exit;
        self.receivers[state.depth % FRAMES] = receiver;
    }

    /// The receiver of an entry, which stood in that context, with [`LEFT`] if the method was left as well.
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
                // Kept as other events name the object, which compresses better.
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
            // The exit is a part of the history as it is where it is an event.
            state.remember(entry & !3);
        }
        word
    }

    /// The rest of an event that is no entry or exit. It has so many words.
    pub fn extended<S: Side>(&mut self, state: &mut State, side: &mut S, first: u32, words: usize) {
        if first == TICKET {
            return self.ticket(state, side);
        }
        side.take(first);
        // Where the event itself says nothing of the place, the control words before it do.
        let place = state.history;
        let kind = first >> 2 & 63;
        // The most frequent ones stand by themselves: to jump by a table takes longer than the event.
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
            // `Switch`, `Used`.
            _ => {
                for _ in 1..words {
                    self.object(state, side, place);
                }
            }
        }
    }

    /// A further word that says what the event is of: a static id.
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

    /// A word that is an object.
    #[inline(always)]
    fn object<S: Side>(&mut self, state: &mut State, side: &mut S, place: u32) {
        let object = self.word(state, side, place);
        state.name(object);
    }

    /// An object that was made.
    #[inline(always)]
    fn made<S: Side>(&mut self, state: &mut State, side: &mut S) {
        let given = side.given();
        let object = side.fresh(given, hashes::next(state.fresh));
        side.take(object);
        state.fresh = object;
        state.name(object);
    }

    /// A ticket: how far it is from the last, or all of it.
    #[inline(never)]
    fn ticket<S: Side>(&mut self, state: &mut State, side: &mut S) {
        // The side that knows gives its two words again, the first with the ticket.
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

/// Where the values of a place are by the object named last.
#[inline(always)]
fn behind(state: &State, place: u32) -> usize {
    let key = (place ^ state.latest.wrapping_mul(OBJECT_SPREAD)).wrapping_mul(SPREAD);
    (key >> (u32::BITS - OBJECTS.ilog2())) as usize % OBJECTS
}
