//! First look at a block of events: its tickets, and what it does to the stack of its thread, which is not known yet. Where
//! the block goes on with another stack, of a virtual thread or from there back to that of the thread, a new *run* begins.

use std::ops::Range;

use et_format::event::{self, Event, ObjectHash, Ticket};
use et_names::MethodId;

use crate::classes::Classes;
use crate::names::Names;
use crate::resolve::recent::Recent;
use crate::resolve::thread::{StartedFrame, Subject};
use crate::types::TypeId;

/// What a run does to frames that were on the stack before it. In between, all frames that it has entered itself are
/// left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// The innermost frame returns: it must be of this method.
    Exit(MethodId),
    /// The innermost frame of this method is left by an exception, and those above it.
    ExitThrow(MethodId, ObjectHash),
    /// The innermost frame of this method is where the thread is: those above it have ended.
    Uncover(MethodId),
}

/// What a run does to the stack on which it happens.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    below: Vec<Below>,
    /// The frames that remain of those it enters, outermost first.
    entered: Vec<(MethodId, ObjectHash)>,
    /// The exception in flight at the end; `None` if it is the one at the beginning.
    in_flight: Option<ObjectHash>,
    /// Methods of leaf events in frames from before the run: such an event may also be the exit of a frame that existed
    /// when tracing began.
    leaves: Vec<MethodId>,
}

/// What matters to the order of parts and to stacks that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As it is in the events.
    Ticket(Ticket),
    /// A new object has this hash, so a continuation that had it is dead.
    New(ObjectHash),
}

/// Events of a block that happen on one stack.
#[derive(Debug)]
pub struct Run {
    /// Where they are in the block.
    pub bytes: Range<usize>,
    pub marks: Vec<Mark>,
    /// `None` if only a complete reading can tell.
    pub effect: Option<Effect>,
    /// Whether a constructor waits for its object at the end. Not told if the effect is not known.
    pub is_pending: bool,
    /// The continuation whose stack is mounted behind them (null for the thread's own), unless it is mounted already. `None`: they
    /// end with the block.
    pub switch: Option<ObjectHash>,
}

impl Run {
    fn from(start: usize) -> Self {
        let (marks, effect) = (Vec::new(), Some(Effect::default()));
        Self { bytes: start..start, marks, effect, is_pending: false, switch: None }
    }
}

impl Effect {
    /// Applies it to a stack. Returns false if it does not fit: then the stack has changed in part.
    pub fn apply(&self, frames: &mut Vec<StartedFrame>, in_flight: &mut ObjectHash) -> bool {
        if !self.leaves.is_empty() && frames.iter().any(|frame| frame.from_start && self.leaves.contains(&frame.method))
        {
            return false;
        }
        for below in &self.below {
            match *below {
                Below::Exit(method) => match frames.last() {
                    Some(top) if top.method == method => _ = frames.pop(),
                    _ => return false,
                },
                Below::ExitThrow(method, receiver) => match find(frames, method, receiver) {
                    Some(index) => frames.truncate(index),
                    None => return false,
                },
                Below::Uncover(method) => match find(frames, method, ObjectHash::NULL) {
                    Some(index) => frames.truncate(index + 1),
                    None => return false,
                },
            }
        }
        frames.extend(self.entered.iter().map(|&(method, receiver)| StartedFrame {
            method,
            receiver: Subject::hash(receiver),
            from_start: false,
        }));
        *in_flight = self.in_flight.unwrap_or(*in_flight);
        true
    }
}

/// The innermost frame of this method (and receiver, if both are known).
fn find(frames: &[StartedFrame], method: MethodId, receiver: ObjectHash) -> Option<usize> {
    let fits = |frame: &StartedFrame| {
        frame.method == method
            && (receiver.is_null() || frame.receiver.0 == 0 || frame.receiver == Subject::hash(receiver))
    };
    frames.iter().rposition(fits).or_else(|| frames.iter().rposition(|frame| frame.method == method))
}

/// A frame that was entered in the block.
#[derive(Clone, Copy, Debug)]
struct Entered {
    method: MethodId,
    receiver: ObjectHash,
    /// For a constructor without an object yet: the class that declares it.
    waits: Option<TypeId>,
    /// Whether the next action in a constructor's frame is its `super(…)`.
    is_chained: bool,
}

/// Scans blocks.
#[derive(Debug)]
pub struct Scanner<'a> {
    names: &'a Names,
    classes: &'a Classes,
    constructors: Recent<Option<TypeId>>,
    frames: Vec<Entered>,
}

impl<'a> Scanner<'a> {
    pub fn new(names: &'a Names, classes: &'a Classes) -> Self {
        Self { names, classes, constructors: Recent::default(), frames: Vec::new() }
    }

    /// Scans events that begin at a point where no constructor waits for its object. There is at least one run, the last one of
    /// which ends with the block.
    pub fn scan(&mut self, from: Ticket, bytes: &[u8]) -> Vec<Run> {
        self.frames.clear();
        let mut runs = Vec::new();
        let mut run = Run::from(0);
        let (mut now, mut at) = (from, 0);
        // What cannot be decoded is left out, as it is later.
        while let Ok(Some((event, len))) = event::decode(&bytes[at..]) {
            match event {
                Event::Ticket(ticket) => {
                    now = now.max(ticket);
                    run.marks.push(Mark::Ticket(ticket));
                }
                Event::New { object, class, known, .. } if !object.is_null() => {
                    if !known {
                        run.marks.push(Mark::New(object));
                    }
                    if run.effect.is_some() {
                        self.made(object, class, now);
                    }
                }
                Event::Switch { owner } => {
                    run.switch = Some(owner);
                    runs.push(self.end(run, at));
                    run = Run::from(at + len);
                }
                event => {
                    if let Some(effect) = &mut run.effect
                        && !self.event(event, effect)
                    {
                        run.effect = None;
                    }
                }
            }
            at += len;
        }
        runs.push(self.end(run, at));
        runs
    }

    /// The run ends at `end`.
    fn end(&mut self, mut run: Run, end: usize) -> Run {
        run.bytes.end = end;
        if let Some(effect) = &mut run.effect {
            effect.entered.extend(self.frames.iter().map(|frame| (frame.method, frame.receiver)));
            run.is_pending = self.frames.iter().any(|frame| frame.waits.is_some());
        }
        self.frames.clear();
        run
    }

    #[inline]
    fn constructor(&mut self, method: MethodId) -> Option<TypeId> {
        let names = self.names;
        let find = || Some(names.method_info(method).filter(|info| info.is_constructor).map(|info| info.class));
        self.constructors.get(method.0, find).flatten()
    }

    /// Returns false if the effect cannot be told from the events alone.
    #[inline]
    fn event(&mut self, event: Event<'_>, effect: &mut Effect) -> bool {
        match event {
            Event::Exit { method } => {
                match self.frames.last() {
                    Some(top) if top.method == method && top.waits.is_none() => _ = self.frames.pop(),
                    Some(_) => return false,
                    None => effect.below.push(Below::Exit(method)),
                }
                effect.in_flight = Some(ObjectHash::NULL);
            }
            Event::EntryOn { method, receiver } => self.enter(method, receiver, None, false),
            Event::Leaf { method, .. } => {
                effect.in_flight = Some(ObjectHash::NULL);
                if self.frames.is_empty() && effect.leaves.last() != Some(&method) && !effect.leaves.contains(&method) {
                    effect.leaves.push(method);
                }
            }
            Event::Entry { method } => {
                let class = self.constructor(method);
                self.enter(method, ObjectHash::NULL, class, true);
            }
            Event::EntryInit { method, .. } => {
                let class = self.names.method_info(method).map_or(TypeId::UNKNOWN, |info| info.class);
                self.enter(method, ObjectHash::NULL, Some(class), false);
            }
            Event::SuperCall { method } => match self.uncover(method, effect) {
                Some(Some(top)) => self.frames[top].is_chained = true,
                Some(None) => {}
                None => return false,
            },
            Event::Throw { exception, .. } if exception.is_null() => {}
            Event::Throw { method, exception } => {
                if self.uncover(method, effect).is_none() {
                    return false;
                }
                effect.in_flight = Some(exception);
            }
            Event::Handle { method, exception } => {
                if exception.is_null() || self.uncover(method, effect).is_none() {
                    return false;
                }
                effect.in_flight = Some(ObjectHash::NULL);
            }
            Event::ExitThrow { method, exception, receiver } => {
                if exception.is_null() {
                    return false;
                }
                let fits = |frame: &Entered| {
                    frame.method == method
                        && (receiver.is_null() || frame.receiver.is_null() || frame.receiver == receiver)
                };
                match self.frames.iter().rposition(fits) {
                    Some(index) => {
                        if !self.leave_to(index) {
                            return false;
                        }
                    }
                    None => {
                        if self.frames.iter().any(|frame| frame.method == method) || !self.leave_to(0) {
                            return false;
                        }
                        effect.below.push(Below::ExitThrow(method, receiver));
                    }
                }
                effect.in_flight = Some(exception);
            }
            // No effect on stacks; tickets, new objects and switches do not come here.
            Event::New { .. }
            | Event::NewArray { .. }
            | Event::Found { .. }
            | Event::Made { .. }
            | Event::MadeAt { .. }
            | Event::PutField { .. }
            | Event::PutStatic { .. }
            | Event::PutElement { .. }
            | Event::PutElements { .. }
            | Event::Used { .. }
            | Event::Counted { .. }
            | Event::Ticket(_)
            | Event::Switch { .. } => {}
        }
        true
    }

    #[inline]
    fn enter(&mut self, method: MethodId, receiver: ObjectHash, waits: Option<TypeId>, is_chained: bool) {
        self.frames.push(Entered { method, receiver, waits, is_chained });
    }

    /// Drops the frames from that index on. Returns false if one is a constructor that waits: an object has to be made
    /// up for it.
    fn leave_to(&mut self, index: usize) -> bool {
        let nothing_waits = self.frames[index..].iter().all(|frame| frame.waits.is_none());
        self.frames.truncate(index);
        nothing_waits
    }

    /// Drops the frames above the innermost one of the method. Returns its index if it was entered in the block; `None`
    /// if the effect cannot be told.
    fn uncover(&mut self, method: MethodId, effect: &mut Effect) -> Option<Option<usize>> {
        match self.frames.iter().rposition(|frame| frame.method == method) {
            Some(index) => self.leave_to(index + 1).then_some(Some(index)),
            None => {
                let is_known = self.leave_to(0);
                effect.below.push(Below::Uncover(method));
                is_known.then_some(None)
            }
        }
    }

    /// The constructors on the stack that wait for this object get it.
    #[inline]
    fn made(&mut self, object: ObjectHash, mirror: ObjectHash, now: Ticket) {
        let Some(top) = self.frames.last() else { return };
        if top.waits.is_none() || !top.is_chained {
            return;
        }
        let (classes, index) = (self.classes, self.classes.at(mirror, now));
        let fits =
            |of: TypeId| index.is_none_or(|class| classes.is_subclass(class, of) || classes.of_type(of).is_none());
        for frame in self.frames.iter_mut().rev() {
            match frame.waits {
                Some(of) if frame.is_chained && fits(of) => {
                    (frame.waits, frame.receiver) = (None, object);
                }
                _ => return,
            }
        }
    }
}
