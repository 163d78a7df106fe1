//! Makes one thread's events explicit before threads are merged: which frame each belongs to, which object each
//! constructor initializes, which frames ended without an event, and where exceptions came from.
//!
//! A constructor is entered before its object is allocated, so its receiver is known only later. Therefore the thread
//! is read ahead as far as necessary, into a queue whose head is output once it is settled.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use et_format::event::{Event, ObjectHash, Ticket, WORD};
use et_names::{FieldRefId, MethodId, SiteId};
use rustc_hash::FxHashMap;

use super::piece::{Obstacle, Piece, Pieces};
use super::recent::Recent;
use super::unpacking::Unpacking;
use super::{Anomalies, Kept, Lost};
use crate::classes::Classes;
use crate::file::{ThreadEvents, TraceFile};
use crate::merge::Source;
use crate::names::{MethodInfo, Names};
use crate::record::ThreadId;
use crate::trace::StartFrame;
use crate::types::TypeId;

/// First thread id used for continuations.
pub(crate) const FIRST_CONTINUATION: u32 = 1 << 31;

/// Maximum number of items, 24 bytes each, that all threads together read ahead, not counting the current piece of
/// events.
const MOST_AHEAD: usize = if cfg!(test) { 10_000 } else { 8 << 20 };
const _: () = assert!(size_of::<Item>() == 24);
/// Capacity in items that an idle queue may keep.
const KEPT_ITEMS: usize = 64;

/// An object before it has its 64-bit id: a hash, or an object made up by the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject(pub u64);

impl Subject {
    /// Null, static, or not known yet.
    pub const NONE: Subject = Subject(0);
    /// Flag of a made-up object: this bit, then the thread, then a number. All together are the 64-bit id.
    pub const MADE_UP: u64 = 1 << 62;

    pub(crate) fn hash(hash: ObjectHash) -> Self {
        Self(hash.0.into())
    }

    fn made_up(thread: u32, number: u32) -> Self {
        Self(Self::MADE_UP | u64::from(thread & 0x3fff_ffff) << 32 | u64::from(number))
    }
}

/// What happens on a stack; frames result from `Enter` and `Leave`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The following actions happen on that stack.
    OnStack(ThreadId),
    /// The following actions come from the piece of the thread's events with that number.
    Piece(u32),
    /// A `known` object already has its record; if it turns out to have none, it gets one.
    New {
        site: SiteId,
        object: ObjectHash,
        class: ObjectHash,
        known: bool,
    },
    /// The object of a constructor that failed before its allocation was seen.
    MadeUp {
        object: Subject,
        ty: TypeId,
        site: SiteId,
    },
    NewArray {
        depth: u8,
        site: SiteId,
        object: ObjectHash,
        length: u32,
    },
    Found {
        object: ObjectHash,
        class: ObjectHash,
        length: i32,
    },
    Made {
        object: ObjectHash,
        class: ObjectHash,
        length: i32,
        fresh: bool,
        constant: bool,
        /// Of the call that made it; 0: not known.
        site: SiteId,
    },
    /// With `if_changed`, here and below: no record if the target of the slot is unchanged.
    PutField {
        field: FieldRefId,
        origin: ObjectHash,
        target: ObjectHash,
        if_changed: bool,
    },
    PutStatic {
        field: FieldRefId,
        target: ObjectHash,
    },
    PutElement {
        index: u32,
        array: ObjectHash,
        target: ObjectHash,
        if_changed: bool,
    },
    Enter {
        method: MethodId,
        receiver: Subject,
    },
    /// Entry and exit of a leaf method.
    Leaf {
        method: MethodId,
        receiver: Subject,
    },
    Leave,
    LeaveThrow {
        exception: ObjectHash,
    },
    Throw {
        exception: ObjectHash,
    },
    Handle {
        exception: ObjectHash,
    },
    Used {
        object: ObjectHash,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    Ticket(Ticket),
    Do(Action),
    /// A placeholder for the allocation that a pending constructor may need.
    Room,
    /// A constructor whose object is not known yet.
    Pending,
    /// A placeholder that was not needed.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    method: MethodId,
    receiver: Subject,
    /// For a pending constructor: sequence number of its [`Item::Room`] in the queue.
    room: Option<u64>,
    /// Whether the next action in this constructor's frame is its `super(…)`.
    chained: bool,
    /// Whether the frame existed when tracing began: its exit may have no hook.
    from_start: bool,
    /// The class that declares the constructor.
    class: TypeId,
    /// Site of the object under construction, if known.
    site: SiteId,
}

/// A frame whose receiver is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartedFrame {
    pub method: MethodId,
    pub receiver: Subject,
    /// Whether it existed when tracing began.
    pub from_start: bool,
}

#[derive(Clone, Debug, Default)]
struct CallStack {
    frames: Vec<Frame>,
    /// Exception that was thrown and not yet caught.
    in_flight: ObjectHash,
}

/// State shared by the sources of all threads.
#[derive(Debug)]
pub struct Shared<'a> {
    pub file: &'a TraceFile,
    pub names: &'a Names,
    pub classes: &'a Classes,
    pub anomalies: Anomalies,
    pub lost: Lost,
    pub pieces: Pieces,
    /// Items in the queues of all threads, as of when each began its last piece of events.
    ahead: usize,
    most_ahead: usize,
    unpacking: Unpacking<'a>,
    methods: Recent<MethodInfo>,
    /// Stacks of continuations that are not mounted.
    continuations: FxHashMap<ObjectHash, (ThreadId, CallStack)>,
    most_continuations: usize,
    next_continuation: u32,
    /// Whether readers stop where another stack is mounted, since their caller keeps the stacks.
    stops_at_switches: bool,
}

impl<'a> Shared<'a> {
    /// The state at the beginning of the trace.
    pub fn new(file: &'a TraceFile, names: &'a Names, classes: &'a Classes) -> Self {
        Self {
            file,
            names,
            classes,
            anomalies: Anomalies::default(),
            lost: Lost::default(),
            pieces: Pieces::default(),
            ahead: 0,
            most_ahead: 0,
            unpacking: Unpacking::when_asked(file),
            methods: Recent::default(),
            continuations: FxHashMap::default(),
            most_continuations: 0,
            next_continuation: FIRST_CONTINUATION,
            stops_at_switches: false,
        }
    }

    /// The state for readers that stop where another stack is mounted ([`Reader::unmounted`]).
    pub(crate) fn for_stacks_kept_elsewhere(file: &'a TraceFile, names: &'a Names, classes: &'a Classes) -> Self {
        Self { stops_at_switches: true, ..Self::new(file, names, classes) }
    }

    /// Sets how events are unpacked from now on.
    pub fn unpack(&mut self, unpacking: Unpacking<'a>) {
        self.unpacking = unpacking;
    }

    #[inline]
    pub(crate) fn method_info(&mut self, method: MethodId) -> Option<MethodInfo> {
        self.methods.get(method.0, || self.names.method_info(method))
    }

    /// Drops a continuation that no event refers to any more.
    pub fn forget(&mut self, continuation: ObjectHash) {
        self.continuations.remove(&continuation);
    }

    /// Maximum amounts kept at a time.
    pub fn kept(&self) -> Kept {
        let (event_bytes, continuations) = (self.pieces.most_held(), self.most_continuations);
        Kept { event_bytes, continuations, ahead: self.most_ahead, ..Kept::default() }
    }
}

/// Reads one thread.
#[derive(Debug)]
pub struct ThreadSource<'a> {
    events: Option<&'a ThreadEvents>,
    next_piece: usize,
    piece: Piece,
    ended: bool,
    /// The part of [`Shared::ahead`] that belongs to this thread.
    ahead: usize,
    reader: Reader,
}

impl<'a> ThreadSource<'a> {
    /// Creates the source of a thread with its first ticket and its initial frames.
    pub fn new(thread: u32, events: Option<&'a ThreadEvents>, first: Ticket, frames: &[StartFrame]) -> Self {
        let reader = Reader::new(thread, first, frames);
        Self { events, next_piece: 0, piece: Piece::default(), ended: false, ahead: 0, reader }
    }

    /// Reads events, or the next piece, until there is something in the queue. Actions that nothing read later can
    /// change are passed to `take` directly.
    fn advance(
        &mut self,
        shared: &mut Shared<'a>,
        take: &mut impl FnMut(Action, &mut Shared<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<Option<Ticket>> {
        let reader = &mut self.reader;
        let read = self.piece.read(
            shared,
            |shared| &mut shared.pieces,
            |event, shared| {
                let step = reader.step(event, shared);
                // Nothing waits before it: most events go past the queue.
                if reader.queue.is_empty() {
                    return match step {
                        Step::Action(action) => take(action, shared).map_break(|()| ControlFlow::Break(None)),
                        Step::Ticket(ticket) => ControlFlow::Break(ControlFlow::Break(Some(ticket))),
                        Step::Nothing => ControlFlow::Continue(()),
                    };
                }
                match step {
                    Step::Action(action) => reader.act(action),
                    Step::Ticket(ticket) => reader.queue.push_back(Item::Ticket(ticket)),
                    Step::Nothing => {}
                }
                ControlFlow::Break(ControlFlow::Continue(()))
            },
        );
        match read {
            Ok(ControlFlow::Break(flow)) => return flow,
            Ok(ControlFlow::Continue(())) => {}
            Err(Obstacle::Undecodable { bytes }) => {
                shared.lost.undecodable_pieces += 1;
                shared.lost.undecodable_bytes += bytes;
            }
            Err(Obstacle::Gone) => {
                self.load_again(shared);
                return ControlFlow::Continue(());
            }
        }
        self.next_piece(shared);
        ControlFlow::Continue(())
    }

    fn next_piece(&mut self, shared: &mut Shared<'a>) {
        match self.events.filter(|events| self.next_piece < events.len()) {
            Some(events) => {
                let number = self.next_piece;
                self.next_piece += 1;
                let (file, unpacking) = (shared.file, &mut shared.unpacking);
                let loaded = self.piece.load(&mut shared.pieces, |into| unpacking.load(events, number, into));
                if loaded.is_err() {
                    shared.lost.undecodable_pieces += 1;
                    shared.lost.undecodable_bytes += file.event_bytes(events, number);
                }
                self.reader.act(Action::Piece(number as u32));
            }
            None => {
                self.ended = true;
                self.piece.clear(&mut shared.pieces);
                self.reader.make_up_all(shared);
            }
        }
        self.bound_what_is_ahead(shared);
    }

    /// The rest of the piece did not fit in memory or in the file: unpacks it again.
    #[cold]
    fn load_again(&mut self, shared: &mut Shared<'a>) {
        let (Some(events), Some(number)) = (self.events, self.next_piece.checked_sub(1)) else { return };
        let file = shared.file;
        let loaded = self.piece.load_again(&mut shared.pieces, |into| file.load_events(events, number, into));
        if loaded.is_err() {
            // The file has changed in the meantime.
            shared.lost.undecodable_pieces += 1;
            shared.lost.undecodable_bytes += file.event_bytes(events, number);
        }
    }

    /// While the arguments of a `super(…)` are evaluated, the thread is read ahead, and they may run a whole program.
    fn bound_what_is_ahead(&mut self, shared: &mut Shared<'a>) {
        let queue = &mut self.reader.queue;
        let now = queue.len();
        // Checked only once per piece, and there may be very many threads.
        if queue.capacity() > 4 * now.max(KEPT_ITEMS) {
            queue.shrink_to(now.max(KEPT_ITEMS));
        }
        shared.ahead = shared.ahead - self.ahead + now;
        shared.most_ahead = shared.most_ahead.max(shared.ahead);
        self.ahead = now;
        if shared.ahead > MOST_AHEAD && now > 0 {
            shared.anomalies.constructors_too_far += self.reader.waiting();
            self.reader.make_up_all(shared);
        }
        if self.ended {
            shared.ahead -= self.ahead;
            self.ahead = 0;
        }
    }
}

/// The final result of an event, after any actions that it has put into the queue.
pub(crate) enum Step {
    Action(Action),
    Ticket(Ticket),
    /// No further result: the actions are in the queue, or the event has no effect.
    Nothing,
}

/// State of a thread up to where it has been read.
#[derive(Debug)]
pub(crate) struct Reader {
    thread: u32,
    ticket: Ticket,

    queue: VecDeque<Item>,
    /// Sequence number of the queue's head.
    head: u64,
    made_up: u32,

    stack: CallStack,
    /// The continuation whose stack is current; null for the thread's own.
    owner: ObjectHash,
    owner_thread: ThreadId,
    /// The thread's own stack while a continuation is mounted.
    own_stack: CallStack,
    /// If readers stop at switches: the stack of this continuation is mounted next.
    next_owner: Option<ObjectHash>,
}

impl Reader {
    pub(crate) fn new(thread: u32, ticket: Ticket, frames: &[StartFrame]) -> Self {
        let mut reader = Self {
            thread,
            ticket,
            queue: VecDeque::new(),
            head: 0,
            made_up: 0,
            stack: CallStack::default(),
            owner: ObjectHash::NULL,
            owner_thread: ThreadId(thread),
            own_stack: CallStack::default(),
            next_owner: None,
        };
        for frame in frames {
            reader.enter(frame.method, Subject::hash(frame.receiver));
            if let Some(top) = reader.stack.frames.last_mut() {
                top.from_start = true;
            }
        }
        reader
    }

    /// A reader that continues where another one of the thread has stopped: on the stack of `owner`, with these frames,
    /// outermost first, this exception in flight, and this number of objects made up so far.
    pub(crate) fn resume(
        thread: u32,
        ticket: Ticket,
        owner: ObjectHash,
        frames: impl Iterator<Item = StartedFrame>,
        in_flight: ObjectHash,
        made_up: u32,
    ) -> Self {
        let mut reader = Self::new(thread, ticket, &[]);
        reader.made_up = made_up;
        reader.owner = owner;
        reader.stack.in_flight = in_flight;
        reader.stack.frames.extend(frames.map(|frame| Frame {
            method: frame.method,
            receiver: frame.receiver,
            room: None,
            chained: false,
            from_start: frame.from_start,
            class: TypeId::UNKNOWN,
            site: SiteId(0),
        }));
        reader
    }

    /// The frames on the stack, outermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = StartedFrame> + '_ {
        let frames = self.stack.frames.iter();
        frames.map(|&Frame { method, receiver, from_start, .. }| StartedFrame { method, receiver, from_start })
    }

    /// The exception in flight, and the number of objects made up.
    pub(crate) fn state(&self) -> (ObjectHash, u32) {
        (self.stack.in_flight, self.made_up)
    }

    /// Whether some constructor waits for its object.
    pub(crate) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The continuation whose stack is mounted next (null for the thread's own): the caller goes on with another reader, which
    /// has that stack, once everything in the queue has been taken.
    pub(crate) fn unmounted(&self) -> Option<ObjectHash> {
        self.next_owner
    }

    /// Number of tickets that wait for the object of a constructor.
    pub(crate) fn waiting_tickets(&self) -> usize {
        self.queue.iter().filter(|item| matches!(item, Item::Ticket(_))).count()
    }

    /// Number of items that wait for the object of a constructor.
    pub(crate) fn waiting_items(&self) -> usize {
        self.queue.len()
    }

    /// Takes the head of the queue if nothing read later can change it.
    #[inline]
    pub(crate) fn take_settled(&mut self) -> Option<Item> {
        match self.queue.front().copied()? {
            Item::Room | Item::Pending => None,
            item => {
                self.queue.pop_front();
                self.head += 1;
                Some(item)
            }
        }
    }

    /// Handles an event. Returns what happens at once; what has to wait goes to the queue.
    #[inline(always)]
    pub(crate) fn read(&mut self, event: Event<'_>, shared: &mut Shared<'_>) -> Option<Item> {
        let item = match self.step(event, shared) {
            Step::Action(action) => Item::Do(action),
            Step::Ticket(ticket) => Item::Ticket(ticket),
            Step::Nothing => return None,
        };
        if self.queue.is_empty() {
            return Some(item);
        }
        self.queue.push_back(item);
        None
    }

    /// Enters a method that is not a constructor. This and the next three are for callers that handle most events at once; nothing may
    /// be waiting.
    #[inline(always)]
    pub(crate) fn enters(&mut self, method: MethodId, receiver: Subject) {
        self.frame(method, receiver);
    }

    /// Whether the method is a constructor, which waits for its object.
    #[inline(always)]
    pub(crate) fn constructs(&self, method: MethodId, shared: &mut Shared<'_>) -> bool {
        shared.method_info(method).is_some_and(|info| info.is_constructor)
    }

    /// The method is left, if it is the innermost one. Returns whether it was.
    #[inline(always)]
    pub(crate) fn exits(&mut self, method: MethodId) -> bool {
        let is_top = self.stack.frames.last().is_some_and(|top| top.method == method && top.room.is_none());
        if is_top {
            self.stack.frames.pop();
            self.stack.in_flight = ObjectHash::NULL;
        }
        is_top
    }

    /// A leaf method is entered and left, if it is one. Returns whether it was.
    #[inline(always)]
    pub(crate) fn passes(&mut self, method: MethodId) -> bool {
        let is_leaf = !self.is_from_start(method);
        if is_leaf {
            self.stack.in_flight = ObjectHash::NULL;
        }
        is_leaf
    }

    /// The events that follow are from this piece.
    pub(crate) fn piece(&mut self, number: u32) {
        self.act(Action::Piece(number));
    }

    /// The thread has ended: constructors that still wait get objects that are made up.
    pub(crate) fn end(&mut self, shared: &Shared<'_>) {
        self.make_up_all(shared);
    }

    fn act(&mut self, action: Action) {
        self.queue.push_back(Item::Do(action));
    }

    fn set(&mut self, sequence: u64, item: Item) {
        let index = sequence.wrapping_sub(self.head) as usize;
        if let Some(place) = self.queue.get_mut(index) {
            *place = item;
        }
    }

    #[inline]
    fn frame(&mut self, method: MethodId, receiver: Subject) -> Action {
        self.stack.frames.push(Frame {
            method,
            receiver,
            room: None,
            chained: false,
            from_start: false,
            class: TypeId::UNKNOWN,
            site: SiteId(0),
        });
        Action::Enter { method, receiver }
    }

    fn enter(&mut self, method: MethodId, receiver: Subject) {
        let action = self.frame(method, receiver);
        self.act(action);
    }

    fn enter_constructor(&mut self, method: MethodId, class: TypeId, chained: bool, site: SiteId) {
        let room = self.head + self.queue.len() as u64;
        self.queue.push_back(Item::Room);
        self.queue.push_back(Item::Pending);
        self.stack.frames.push(Frame {
            method,
            receiver: Subject::NONE,
            room: Some(room),
            chained,
            from_start: false,
            class,
            site,
        });
    }

    /// Assigns the object to the pending frames from `outermost` to the top; its allocation record goes before the
    /// entry of the outermost.
    fn settle(&mut self, outermost: usize, innermost: usize, object: Subject, alloc: Action) {
        for index in outermost..=innermost {
            let frame = &mut self.stack.frames[index];
            let Some(room) = frame.room.take() else { continue };
            frame.receiver = object;
            let method = frame.method;
            let first = if index == outermost { Item::Do(alloc) } else { Item::Nothing };
            self.set(room, first);
            self.set(room + 1, Item::Do(Action::Enter { method, receiver: object }));
        }
    }

    /// The outermost of the constructors from frame `top` down that initialize the same object.
    /// `fits(frame, inner)` says whether the frame below belongs to the same object.
    fn outermost(&self, top: usize, fits: impl Fn(&Frame, &Frame) -> bool) -> usize {
        let frames = &self.stack.frames;
        let mut outermost = top;
        while outermost > 0 {
            let below = &frames[outermost - 1];
            if below.room.is_none() || !below.chained || !fits(below, &frames[outermost]) {
                break;
            }
            outermost -= 1;
        }
        outermost
    }

    /// Makes up an object for the constructor in frame `top`, which will not get one any more.
    fn make_up(&mut self, top: usize, shared: &Shared<'_>) {
        if self.stack.frames[top].room.is_none() {
            return;
        }
        let outermost = self.outermost(top, |below, inner| {
            below.class == inner.class
                || shared
                    .classes
                    .of_type(below.class)
                    .is_none_or(|class| shared.classes.is_subclass(class, inner.class))
        });
        let frame = &self.stack.frames[outermost];
        let (ty, site) = (frame.class, frame.site);
        let object = Subject::made_up(self.thread, self.made_up);
        self.made_up = self.made_up.wrapping_add(1);
        self.settle(outermost, top, object, Action::MadeUp { object, ty, site });
    }

    /// Number of constructors on the stack whose objects are not known yet.
    fn waiting(&self) -> u64 {
        self.stack.frames.iter().filter(|frame| frame.room.is_some()).count() as u64
    }

    fn make_up_all(&mut self, shared: &Shared<'_>) {
        for index in (0..self.stack.frames.len()).rev() {
            self.make_up(index, shared);
        }
    }

    /// Handles the [`Action::New`] of an object of that class. If constructors on the stack wait for this object,
    /// `action` is queued before their entries; otherwise it is returned.
    #[inline(never)]
    fn allocated(&mut self, action: Action, object: ObjectHash, class: ObjectHash, shared: &Shared<'_>) -> Step {
        let Some(top) = self.stack.frames.len().checked_sub(1) else {
            return Step::Action(action);
        };
        // Of nearly all objects: nothing waits, and what class it is does not matter.
        if self.stack.frames[top].room.is_none() {
            return Step::Action(action);
        }
        let index = shared.classes.at(class, self.ticket);
        // An unknown class is assumed to fit, since the frames are more reliable. So is a class with a constructor
        // whose class was never loaded: class loaders can rename a class after it was instrumented.
        let fits = |frame: &Frame| {
            let belongs = |class| shared.classes.is_subclass(class, frame.class);
            index.is_none_or(|class| belongs(class) || shared.classes.of_type(frame.class).is_none())
        };
        let frame = &self.stack.frames[top];
        if !frame.chained || !fits(frame) {
            return Step::Action(action);
        }
        let outermost = self.outermost(top, |below, _| fits(below));
        self.settle(outermost, top, Subject::hash(object), action);
        Step::Nothing
    }

    /// Pops the top frame; a constructor without an object gets a made-up one.
    fn pop(&mut self, shared: &Shared<'_>) {
        if let Some(top) = self.stack.frames.len().checked_sub(1) {
            self.make_up(top, shared);
            self.stack.frames.pop();
        }
    }

    /// Pops the frames above `index`, which ended without an event.
    fn leave_above(&mut self, index: usize, exception: ObjectHash, shared: &mut Shared<'_>) {
        while self.stack.frames.len() > index + 1 {
            let from_start = self.stack.frames.last().is_some_and(|frame| frame.from_start);
            if exception.is_null() && !from_start {
                shared.anomalies.frames_lost += 1;
            }
            self.pop(shared);
            self.act(if exception.is_null() { Action::Leave } else { Action::LeaveThrow { exception } });
        }
    }

    /// The innermost frame of this method (and receiver, if both are known).
    fn find(&self, method: MethodId, receiver: ObjectHash) -> Option<usize> {
        let frames = &self.stack.frames;
        let fits = |frame: &Frame| {
            frame.method == method
                && (receiver.is_null() || frame.receiver.0 == 0 || frame.receiver == Subject::hash(receiver))
        };
        // Nearly always the top frame.
        match frames.last() {
            Some(top) if fits(top) => Some(frames.len() - 1),
            _ => frames.iter().rposition(fits).or_else(|| frames.iter().rposition(|frame| frame.method == method)),
        }
    }

    /// Whether the top frame is an initial frame of this method.
    #[inline]
    fn is_from_start(&self, method: MethodId) -> bool {
        self.stack.frames.last().is_some_and(|top| top.from_start && top.method == method)
    }

    /// Queues a `T` record unless the exception already has one.
    fn show(&mut self, exception: ObjectHash) {
        if self.stack.in_flight != exception {
            self.stack.in_flight = exception;
            self.act(Action::Throw { exception });
        }
    }

    /// Handles an event. The frequent events are handled inline and queue nothing.
    #[inline(always)]
    fn step(&mut self, event: Event<'_>, shared: &mut Shared<'_>) -> Step {
        Step::Action(match event {
            Event::Ticket(ticket) => {
                if ticket > self.ticket {
                    self.ticket = ticket;
                    return Step::Ticket(ticket);
                }
                shared.anomalies.ticket_regressions += u64::from(ticket < self.ticket);
                return Step::Nothing;
            }
            Event::EntryOn { method, receiver } => self.frame(method, Subject::hash(receiver)),
            Event::Entry { method } => match shared.method_info(method) {
                Some(info) if info.is_constructor => {
                    self.enter_constructor(method, info.class, true, SiteId(0));
                    return Step::Nothing;
                }
                _ => self.frame(method, Subject::NONE),
            },
            // The frame is an initial one, so the event is its exit: a leaf calls nothing, so the method was not
            // entered again.
            Event::Leaf { method, .. } if !self.passes(method) => return self.exit(method, shared),
            Event::Leaf { method, receiver } => Action::Leaf { method, receiver: Subject::hash(receiver) },
            Event::EntryInit { method, site } => {
                let class = shared.method_info(method).map_or(TypeId::UNKNOWN, |info| info.class);
                self.enter_constructor(method, class, false, site);
                return Step::Nothing;
            }
            Event::Exit { method } => return self.exit(method, shared),
            Event::SuperCall { method } => return self.super_call(method, shared),
            Event::ExitThrow { method, exception, receiver } => {
                return self.exit_throw(method, exception, receiver, shared);
            }
            Event::Throw { method, exception } => return self.throw(method, exception, shared),
            Event::Handle { method, exception } => return self.handle(method, exception, shared),
            // No new object is null, except in a damaged trace.
            Event::New { object, .. } | Event::NewArray { object, .. } if object.is_null() => {
                shared.lost.undecodable_pieces += 1;
                shared.lost.undecodable_bytes += 4 * WORD as u64;
                return Step::Nothing;
            }
            Event::New { site, object, class, known } => {
                // The id belongs to a new object, so a continuation with this id is dead.
                if !known && !shared.continuations.is_empty() {
                    shared.forget(object);
                }
                return self.allocated(Action::New { site, object, class, known }, object, class, shared);
            }
            Event::NewArray { depth, site, object, length } => Action::NewArray { depth, site, object, length },
            Event::Found { object, class, length } => Action::Found { object, class, length },
            Event::Made { object, class, length, fresh, constant } => {
                Action::Made { object, class, length, fresh, constant, site: SiteId(0) }
            }
            Event::MadeAt { site, object, class, length, fresh } => {
                Action::Made { object, class, length, fresh, constant: false, site }
            }
            Event::PutField { field, origin, target, if_changed } => {
                Action::PutField { field, origin, target, if_changed }
            }
            Event::PutStatic { field, target } => Action::PutStatic { field, target },
            Event::PutElement { index, array, target } => {
                Action::PutElement { index, array, target, if_changed: false }
            }
            Event::PutElements { start, array, targets } => {
                for (further, target) in (0..).zip(targets.iter()) {
                    // Out of range only in a damaged trace.
                    let index = start.wrapping_add(further);
                    self.act(Action::PutElement { index, array, target, if_changed: true });
                }
                return Step::Nothing;
            }
            Event::Switch { owner } => return self.switch(owner, shared),
            Event::Used { object } => Action::Used { object },
            // Not objects: read by `counted`.
            Event::Counted { .. } => return Step::Nothing,
        })
    }

    #[inline(always)]
    fn exit(&mut self, method: MethodId, shared: &mut Shared<'_>) -> Step {
        match self.exits(method) || self.uncover(method, shared) && self.exits(method) {
            true => Step::Action(Action::Leave),
            false => Step::Nothing,
        }
    }

    /// Makes the innermost frame of the method the top frame, and makes up an object if it has none. Frames above have
    /// ended without an event. False if there is no frame of the method.
    #[inline(never)]
    fn uncover(&mut self, method: MethodId, shared: &mut Shared<'_>) -> bool {
        let Some(index) = self.find(method, ObjectHash::NULL) else {
            shared.anomalies.unmatched_exits += 1;
            return false;
        };
        self.leave_above(index, self.stack.in_flight, shared);
        if self.stack.frames[index].room.is_some() {
            shared.anomalies.constructors_without_object += 1;
            self.make_up(index, shared);
        }
        true
    }

    #[inline(never)]
    fn super_call(&mut self, method: MethodId, shared: &mut Shared<'_>) -> Step {
        match self.find(method, ObjectHash::NULL) {
            Some(index) => {
                self.leave_above(index, self.stack.in_flight, shared);
                self.stack.frames[index].chained = true;
            }
            None => shared.anomalies.unmatched_exits += 1,
        }
        Step::Nothing
    }

    #[inline(never)]
    fn exit_throw(
        &mut self,
        method: MethodId,
        exception: ObjectHash,
        receiver: ObjectHash,
        shared: &mut Shared<'_>,
    ) -> Step {
        // No exception is null, except in a damaged trace, where the event is taken as a normal exit.
        if exception.is_null() {
            shared.anomalies.unmatched_exceptions += 1;
            return self.exit(method, shared);
        }
        let Some(index) = self.find(method, receiver) else {
            shared.anomalies.unmatched_exits += 1;
            return Step::Nothing;
        };
        self.show(exception);
        self.leave_above(index, exception, shared);
        self.pop(shared);
        Step::Action(Action::LeaveThrow { exception })
    }

    #[inline(never)]
    fn throw(&mut self, method: MethodId, exception: ObjectHash, shared: &mut Shared<'_>) -> Step {
        // `throw null`: the VM throws a `NullPointerException` instead, which a later event names.
        if exception.is_null() {
            return Step::Nothing;
        }
        let Some(index) = self.find(method, ObjectHash::NULL) else {
            shared.anomalies.unmatched_exceptions += 1;
            return Step::Nothing;
        };
        self.leave_above(index, self.stack.in_flight, shared);
        self.stack.in_flight = exception;
        Step::Action(Action::Throw { exception })
    }

    #[inline(never)]
    fn handle(&mut self, method: MethodId, exception: ObjectHash, shared: &mut Shared<'_>) -> Step {
        let index = if exception.is_null() { None } else { self.find(method, ObjectHash::NULL) };
        let Some(index) = index else {
            shared.anomalies.unmatched_exceptions += 1;
            return Step::Nothing;
        };
        self.show(exception);
        self.leave_above(index, exception, shared);
        self.stack.in_flight = ObjectHash::NULL;
        Step::Action(Action::Handle { exception })
    }

    #[inline(never)]
    fn switch(&mut self, owner: ObjectHash, shared: &mut Shared<'_>) -> Step {
        if owner == self.owner {
            return Step::Nothing;
        }
        // Other threads may continue this stack, but are not read as far ahead as this one.
        shared.anomalies.constructors_split += self.waiting();
        self.make_up_all(shared);
        if shared.stops_at_switches {
            self.next_owner = Some(owner);
            return Step::Nothing;
        }
        let mut left = std::mem::take(&mut self.stack);
        // It may never be mounted again.
        left.frames.shrink_to_fit();
        if self.owner.is_null() {
            self.own_stack = left;
        } else {
            shared.continuations.insert(self.owner, (self.owner_thread, left));
            shared.most_continuations = shared.most_continuations.max(shared.continuations.len());
        }
        self.owner = owner;
        if owner.is_null() {
            self.owner_thread = ThreadId(self.thread);
            self.stack = std::mem::take(&mut self.own_stack);
        } else {
            (self.owner_thread, self.stack) = shared.continuations.remove(&owner).unwrap_or_else(|| {
                let id = ThreadId(shared.next_continuation);
                shared.next_continuation += 1;
                (id, CallStack::default())
            });
        }
        Step::Action(Action::OnStack(self.owner_thread))
    }
}

impl<'a> Source for ThreadSource<'a> {
    type Shared = Shared<'a>;
    type Item = Action;

    #[inline]
    fn segment(
        &mut self,
        shared: &mut Shared<'a>,
        mut take: impl FnMut(Action, &mut Shared<'a>) -> ControlFlow<()>,
    ) -> Option<Ticket> {
        loop {
            let reader = &mut self.reader;
            match reader.queue.front().copied() {
                None | Some(Item::Room | Item::Pending) => {
                    if self.ended {
                        return None;
                    }
                    if let ControlFlow::Break(next) = self.advance(shared, &mut take) {
                        return next;
                    }
                }
                Some(item) => {
                    reader.queue.pop_front();
                    reader.head += 1;
                    match item {
                        Item::Ticket(ticket) => return Some(ticket),
                        Item::Do(action) => take(action, shared).continue_value()?,
                        Item::Nothing | Item::Room | Item::Pending => {}
                    }
                }
            }
        }
    }

    #[inline]
    fn is_crowded(shared: &Shared<'a>) -> bool {
        shared.pieces.is_crowded()
    }

    fn make_room(&mut self, shared: &mut Shared<'a>) -> bool {
        self.piece.set_aside(&mut shared.pieces);
        !shared.pieces.has_room()
    }
    fn lacks_room(shared: &mut Shared<'a>) {
        shared.pieces.lack_room();
    }
}
