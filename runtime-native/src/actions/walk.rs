//! Gives a call stack its number when an object is first allocated on it: walks it as far as it is new.
//!
//! The value of a stack is that of its caller, multiplied and added to, so that the caller's can be computed from it. So a walk ends at the
//! first caller whose value is known, if it is at the same site. Then each frame of the walk has fitted what calls had stored. Where one
//! does not, the stack is recorded as the VM tells it.

use std::cell::{OnceCell, RefCell};

use et_format::StackRecord;
use et_jvm::call_trace::{self, CallTraces};
use et_jvm::env::Env;
use et_jvm::profiling::RawFrame;
use et_rewriter::classfile::{Constant, ConstantPool, Reader};
use et_rewriter::hooks::stacks::{Called, MULTIPLIER, TrackedCode, constant_of, inverse};

use crate::stacks::{Ahead, Frame, Place, Pools, Room, State};
use crate::tracer::Tracer;
use crate::tracer::machine::Machine;

/// Frames that are asked for at first: those of the hooks, and the next ones. The VM takes 0.1 µs for each, and begins with the innermost again if
/// more are asked for: of the walks of javac one in six does so.
const FIRST_FRAMES: usize = 8;
/// More that are asked for in `Object.<init>`: its own and those of constructors.
const CONSTRUCTORS: usize = 4;
/// Frames whose values are looked at in the table at once.
const AHEAD: usize = 8;
/// What is added to the value that `Object.<init>` has: the stack of the object is another one. HeapProxyStacks has the same.
const OBJECT: u64 = 0x94d0_49bb_1331_11eb;
/// Maximum number of frames of a stack.
const MOST_FRAMES: usize = 1 << 16;
/// The multiplier of the way back.
const BACK: u64 = inverse(MULTIPLIER);

/// Set in a number that must not be remembered for the value: other stacks may have the same one. Numbers have 31 bits.
pub const UNCERTAIN: u32 = 1 << 31;

/// The number of the current thread's stack, which has this value; 0 if it has none. In `Object.<init>`, of an object that was made by `new`, the
/// stack is that of the `new`, and the value that of the call of `super(…)`.
pub fn number(tracer: &Tracer, env: Env, value: u64, in_object: bool) -> u32 {
    if value == 0 {
        return 0;
    }
    let stack = Stack { value, in_object };
    tracer.stacks.with(|state| {
        if let Some(number) = state.table.find(stack.key()) {
            return number;
        }
        state.counts.values += 1;
        let mut walk = Walk::new(tracer, env, state, stack);
        let (number, fits) = match walk.state.tree.most_frames() {
            Some(most) => {
                walk.room.found.clear();
                (walk.whole(most), false)
            }
            None => match walk.up_to_known().or_else(|| walk.again()) {
                Some(caller) => (walk.add(caller), true),
                None => (walk.whole(MOST_FRAMES), false),
            },
        };
        // What was beyond the limit is walked again: else the table would grow without one. So is what does not fit, if the value may be that of
        // another stack: it is the thread's, and not made from that of the method. Without any frame there is nothing to walk again for.
        let is_certain = fits || number == 0 || walk.begins_at_site();
        let is_kept = walk.state.tree.most_frames().is_none() && is_certain;
        walk.finish(is_kept.then_some((stack.key(), number)));
        if is_certain { number } else { number | UNCERTAIN }
    })
}

/// The value of the stack below the innermost method with hooks, which the VM may have called by itself, given the value that the thread has.
///
/// A method that the VM calls finds the value of whatever its caller called last, or with which that was called itself. So it gets the
/// value that the caller would have stored for a call at its nearest site: different callers give different ones.
pub fn called_by_vm(tracer: &Tracer, env: Env, value: u64) -> u64 {
    tracer.stacks.with(|state| {
        // Beyond the limit stacks get no values.
        if state.tree.most_frames().is_some() {
            return value;
        }
        let mut walk = Walk::new(tracer, env, state, Stack { value, in_object: false });
        let caller = walk.called_by_vm();
        walk.finish(caller);
        caller.map_or(value, |(value, _)| value)
    })
}

/// The stack that a walk looks for.
#[derive(Clone, Copy)]
struct Stack {
    /// The value that the thread has.
    value: u64,
    /// Whether `Object.<init>` runs, and the stack is that of the `new`.
    in_object: bool,
}

impl Stack {
    /// The value under which its number is kept.
    fn key(self) -> u64 {
        if self.in_object { self.value.wrapping_add(OBJECT) } else { self.value }
    }
}

/// Where the frames begin that a walk goes through.
struct Start {
    /// The index of the frame.
    index: usize,
    /// The value there.
    value: u64,
    /// The site of the `new`, if its constructors are running. The `new` is in the frame before `index`; its site is not that of the call of the constructor.
    made_at: Option<u32>,
}

/// A walk of the current thread's stack.
struct Walk<'w, 'e> {
    tracer: &'w Tracer,
    env: Env<'e>,
    state: &'w mut State,
    room: Room,
    stack: Stack,
    /// Whether the stack has no more frames than were found.
    is_whole: bool,
    /// How frames are asked for; `None`: JVMTI. What fits the values is right, whoever told it; what does not fit is looked at again as JVMTI tells it.
    call_traces: Option<CallTraces>,
}

impl<'w, 'e> Walk<'w, 'e> {
    fn new(tracer: &'w Tracer, env: Env<'e>, state: &'w mut State, stack: Stack) -> Self {
        let room = std::mem::take(&mut state.room);
        let call_traces = tracer.machine.hotspot.call_traces;
        Self { tracer, env, state, room, stack, is_whole: false, call_traces }
    }

    /// Hands over what is new, and gives values their numbers: the innermost, if it may be kept, and those found above it.
    fn finish(self, innermost: Option<(u64, u32)>) {
        let Self { tracer, env, state, room, .. } = self;
        // In the journal before any other thread can use a number.
        tracer.output.queue.stacks(&room.records);
        if let Some((value, number)) = innermost {
            let before = state.table.word();
            let mut has_moved = false;
            // The innermost has the number; each other one is the caller of the one before it.
            let mut at = number;
            for &(value, site) in &room.found {
                let Some(frame) = state.tree.get(at).filter(|frame| frame.site == site) else { break };
                has_moved |= state.table.add(value, at);
                at = frame.caller;
            }
            has_moved |= state.table.add(value, number);
            if has_moved {
                tracer.machine.proxy.set_stacks(env, state.table.word());
                state.table.release(before);
            }
        }
        state.room = room.emptied();
    }

    /// The frame with that index; `None` if the stack has no more.
    fn frame(&mut self, index: usize) -> Option<RawFrame> {
        let first = FIRST_FRAMES + if self.stack.in_object { CONSTRUCTORS } else { 0 };
        while index >= self.room.frames.len() && !self.is_whole {
            let frames = &mut self.room.frames;
            let known = frames.len();
            if let Some(call_traces) = self.call_traces {
                let most = (known * 2).max(first);
                if most <= call_trace::MOST && call_traces.innermost(self.env, most, frames) {
                    self.is_whole = frames.len() < most;
                    self.state.counts.frames += frames.len().saturating_sub(known) as u64;
                } else {
                    self.ask_jvmti();
                }
                continue;
            }
            let more = known.max(first).min(MOST_FRAMES - known.min(MOST_FRAMES));
            frames.resize(known + more, RawFrame::NONE);
            let found = self.tracer.machine.jvmti.current_frames(known, &mut frames[known..]).unwrap_or(0);
            frames.truncate(known + found);
            self.is_whole = found < more || more == 0;
            self.state.counts.frames += found as u64;
        }
        self.room.frames.get(index).copied()
    }

    /// From now on frames are those that JVMTI tells.
    fn ask_jvmti(&mut self) {
        self.call_traces = None;
        self.is_whole = false;
        self.room.frames.clear();
    }

    fn place(&mut self, frame: RawFrame) -> Place {
        let Self { tracer, env, state, .. } = self;
        state.methods.place(frame, |pools| read(tracer, *env, frame, pools))
    }

    /// Where the frames of the stack begin: with the innermost, or below the `new` whose constructors have come to `Object.<init>`. If there is
    /// no other method with hooks, it begins with them.
    fn start(&mut self) -> Start {
        let innermost = Start { index: 0, value: self.stack.value, made_at: None };
        if !self.stack.in_object {
            return innermost;
        }
        let (mut index, mut value) = (0, self.stack.value);
        while let Some(frame) = self.frame(index) {
            let place = self.place(frame);
            match place {
                Place::Untracked => {}
                Place::Site { called: Called::Super, .. } => value = below(value, place),
                Place::Site { site, called: Called::ConstructorOfNew, .. } => {
                    // The site of the object is the one before.
                    let made_at = Some(site.wrapping_sub(1));
                    return Start { index: index + 1, value: below(value, place), made_at };
                }
                Place::Site { called: Called::Other, .. } | Place::Elsewhere { .. } => {
                    return Start { index, value, made_at: None };
                }
            }
            index += 1;
        }
        innermost
    }

    /// Walks to the first caller that is known, and returns its number; the values and sites of the frames before it are found. If a frame
    /// does not fit, those are found whose values are right nevertheless: up to the first that is at no site. The site of an object is found with
    /// the key: nothing is called there.
    fn up_to_known(&mut self) -> Option<u32> {
        let Start { mut index, value: mut next, made_at } = self.start();
        let mut certain = None;
        self.room.found.clear();
        self.room.found.extend(made_at.map(|site| (self.stack.key(), site)));
        let mut ahead = 0;
        self.room.ahead.clear();
        loop {
            if ahead == self.room.ahead.len() {
                ahead = 0;
                self.look_ahead(index, next);
            }
            let Some(&Ahead { place, at, look }) = self.room.ahead.get(ahead) else { break };
            ahead += 1;
            index += 1;
            // The VM has called the constructor, for an exception that it throws: the value is that of an earlier call.
            if self.stack.in_object && self.room.found.is_empty() && matches!(place, Place::Elsewhere { .. }) {
                return None;
            }
            next = below(at, place);
            let known = |walk: &Self| {
                let number = walk.state.table.found(look)?;
                Some((number, walk.state.tree.get(number)?.site))
            };
            match place {
                Place::Untracked => {}
                Place::Site { site, .. } => match known(self) {
                    Some((number, there)) if there == site => return Some(number),
                    Some(_) => break,
                    None => self.room.found.push((at, site)),
                },
                // The value is that of the last call of the method, or the one with which it was called itself.
                Place::Elsewhere { first_site, sites, .. } => {
                    certain.get_or_insert(self.room.found.len());
                    if let Some((number, there)) = known(self)
                        && (first_site..first_site.saturating_add(sites)).contains(&there)
                    {
                        return Some(number);
                    }
                }
            }
        }
        if next == 0 && !self.room.found.is_empty() {
            return Some(0);
        }
        // Without such a frame nobody knows which one does not fit.
        self.room.found.truncate(certain.unwrap_or(0));
        None
    }

    /// Works out where the next frames are and their values, given that of the first of them, and looks at these in the table all at once. There are none if
    /// the stack has no more.
    fn look_ahead(&mut self, index: usize, mut value: u64) {
        self.room.ahead.clear();
        if self.frame(index).is_none() {
            return;
        }
        for index in index..self.room.frames.len().min(index + AHEAD) {
            let place = self.place(self.room.frames[index]);
            let look = self.state.table.look(value);
            self.room.ahead.push(Ahead { place, at: value, look });
            value = below(value, place);
        }
    }

    /// The same once more, with frames as JVMTI tells them, and then with what methods have as code now.
    fn again(&mut self) -> Option<u32> {
        self.ask_jvmti();
        self.up_to_known().or_else(|| {
            let may_differ = self.state.methods.forget_changed();
            may_differ.then(|| self.up_to_known()).flatten()
        })
    }

    /// Whether the innermost method with hooks is at one of its sites.
    fn begins_at_site(&mut self) -> bool {
        let Start { index, made_at, .. } = self.start();
        made_at.is_some() || matches!(self.next_with_hooks(index), Some((_, Place::Site { .. })))
    }

    /// The first method with hooks at or below a frame: the index of its frame, and where that is.
    fn next_with_hooks(&mut self, mut index: usize) -> Option<(usize, Place)> {
        loop {
            match self.frame(index).map(|frame| self.place(frame))? {
                Place::Untracked => index += 1,
                place => return Some((index, place)),
            }
        }
    }

    /// The value of the caller of the method that asks, and its number. `None`: the thread has its value. See [`called_by_vm`].
    fn called_by_vm(&mut self) -> Option<(u64, u32)> {
        let (asks, _) = self.next_with_hooks(0)?;
        let (caller, known) = self.caller_at(asks + 1).or_else(|| {
            // `AsyncGetCallTrace` tells the frames of the carrier behind those of a virtual thread.
            self.ask_jvmti();
            self.caller_at(asks + 1)
        })?;
        Some((caller, self.add(known)))
    }

    /// The value of a method at none of its sites as if it called at the nearest, computed from the outermost frame on, so that it does not matter
    /// what the thread has; and the number of the first stack that is known. Those before it are found. `None`: the method is at a site, or these
    /// are not the frames of the thread's value, which is that of a call of the method or the one with which it was called itself.
    fn caller_at(&mut self, frame: usize) -> Option<(u64, u32)> {
        let Place::Elsewhere { first_site, sites, .. } = self.frame(frame).map(|frame| self.place(frame))? else {
            return None;
        };
        let (mut frames, mut index) = (Vec::new(), frame);
        while let Some(next) = self.frame(index).filter(|_| frames.len() < MOST_FRAMES) {
            index += 1;
            frames.extend(self.place(next).shown());
        }
        let Self { room: Room { found, .. }, state, call_traces, stack: Stack { value, .. }, .. } = self;
        found.clear();
        let (mut caller, mut own) = (0, 0);
        for (site, adds) in frames.into_iter().rev() {
            (caller, own) = (own, above(own, adds));
            found.push((own, site));
        }
        found.reverse();
        let of_calls = value.wrapping_sub(above(caller, constant_of(first_site)));
        if *value != caller && of_calls >= u64::from(sites) && call_traces.is_some() {
            return None;
        }
        let known = found.iter().enumerate().find_map(|(at, &(value, site))| {
            let number = state.table.find(value)?;
            state.tree.get(number).filter(|frame| frame.site == site).map(|_| (at, number))
        });
        let (new, number) = known.unwrap_or((found.len(), 0));
        found.truncate(new);
        Some((own, number))
    }

    /// The number of a stack of these sites, the innermost first.
    fn number_of(&mut self, sites: Vec<u32>) -> u32 {
        let Self { state, room: Room { records, .. }, .. } = self;
        sites.into_iter().rev().fold(0, |caller, site| {
            let frame = Frame { caller, site };
            state.tree.find_or_add(frame, |number| records.push(StackRecord::Frame { number, caller, site }))
        })
    }

    /// Adds the frames that were found above a stack. Returns the number of the last, below which are those of the others.
    fn add(&mut self, caller: u32) -> u32 {
        let Self { room: Room { found, records, .. }, state, .. } = self;
        found.iter().rev().fold(caller, |caller, &(_, site)| {
            let number = state.tree.add(Frame { caller, site });
            records.push(StackRecord::Frame { number, caller, site });
            number
        })
    }

    /// The stack as the VM tells it, of at most this number of frames at sites.
    fn whole(&mut self, most: usize) -> u32 {
        let Start { mut index, value: mut at, made_at } = self.start();
        let mut sites = Vec::from_iter(made_at);
        // JVMTI tells the frames of a virtual thread, `AsyncGetCallTrace` those of its carrier behind them: the value says where it begins.
        while sites.len() < most
            && (at != 0 || self.call_traces.is_none())
            && let Some(frame) = self.frame(index)
        {
            index += 1;
            let place = self.place(frame);
            sites.extend(place.shown().map(|(site, _)| site));
            at = below(at, place);
        }
        match most {
            MOST_FRAMES => self.state.counts.walked_whole += 1,
            _ => self.state.counts.beyond_limit += 1,
        }
        // In place of the callers that are left out.
        sites.extend((most < MOST_FRAMES).then_some(0));
        self.number_of(sites)
    }
}

/// The value of a stack, given that of the caller's and what the frame adds.
fn above(caller: u64, adds: u64) -> u64 {
    caller.wrapping_mul(MULTIPLIER).wrapping_add(adds)
}

/// The value of the caller's stack, given that of a frame's.
fn below(at: u64, place: Place) -> u64 {
    match place {
        Place::Site { adds, .. } => at.wrapping_sub(adds).wrapping_mul(BACK),
        Place::Untracked | Place::Elsewhere { .. } => at,
    }
}

/// What the code of a frame's method tells.
fn read(tracer: &Tracer, env: Env, frame: RawFrame, pools: &mut Pools) -> Option<TrackedCode> {
    let Machine { jvmti, hotspot, .. } = tracer.machine;
    let method = frame.id();
    // Native methods have no code.
    let code = jvmti.bytecodes(method).ok()?;
    // Read only if the method has a hook on entry.
    let (pool, pools) = (OnceCell::new(), RefCell::new(pools));
    env.frame(4, |env| {
        TrackedCode::read(&code, |index| {
            let bytes = pool.get_or_init(|| {
                let class = jvmti.declaring_class(env, method).ok().flatten()?;
                pools.borrow_mut().of(hotspot.identity_hash(env, class), || jvmti.constant_pool(class).ok())
            });
            let pool = ConstantPool::read(&mut Reader::new(bytes.as_deref()?)).ok()?;
            match pool.loadable(index).ok()? {
                Constant::Long(value) => Some(value),
                Constant::Integer(value) => Some(value.into()),
                _ => None,
            }
        })
    })
}
