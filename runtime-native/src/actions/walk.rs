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
use et_rewriter::hooks::stacks::{MULTIPLIER, TrackedCode, constant_of, inverse};

use crate::stacks::{Frame, Place, Pools, Room, State};
use crate::tracer::Tracer;
use crate::tracer::machine::Machine;

/// Frames that are asked for at first: those of the hooks, and the next ones.
const FIRST_FRAMES: usize = 8;
/// Maximum number of frames of a stack.
const MOST_FRAMES: usize = 1 << 16;
/// The multiplier of the way back.
const BACK: u64 = inverse(MULTIPLIER);

/// The number of the current thread's stack, which has this value; 0 if it has none.
pub fn number(tracer: &Tracer, env: Env, value: u64) -> u32 {
    if value == 0 {
        return 0;
    }
    tracer.stacks.with(|state| {
        if let Some(number) = state.table.find(value) {
            return number;
        }
        state.counts.values += 1;
        let call_traces = tracer.machine.hotspot.call_traces;
        let room = std::mem::take(&mut state.room);
        let mut walk = Walk { tracer, env, state, room, is_whole: false, call_traces };
        let (number, fits) = match walk.state.tree.most_frames() {
            Some(most) => {
                walk.room.found.clear();
                (walk.whole(value, most), false)
            }
            None => match walk.up_to_known(value).or_else(|| walk.again(value)) {
                Some(caller) => (walk.add(caller), true),
                None => (walk.whole(value, MOST_FRAMES), false),
            },
        };
        let is_certain = fits || walk.is_at_site();
        let Walk { room, state, .. } = walk;
        // In the journal before any other thread can use a number.
        tracer.output.queue.stacks(&room.records);
        // What was beyond the limit is walked again: else the table would grow without one. So is what does not fit, if the value may be that of
        // another stack: it is the thread's, and not made from that of the method.
        if state.tree.most_frames().is_none() && is_certain {
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
        number
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
        let call_traces = tracer.machine.hotspot.call_traces;
        let room = std::mem::take(&mut state.room);
        let before = state.table.word();
        let mut walk = Walk { tracer, env, state, room, is_whole: false, call_traces };
        let below = walk.called_by_vm(value);
        let Walk { room, state, .. } = walk;
        tracer.output.queue.stacks(&room.records);
        let found = below.unwrap_or_default();
        let has_moved =
            found.numbers.into_iter().fold(false, |moved, (value, number)| state.table.add(value, number) | moved);
        if has_moved {
            tracer.machine.proxy.set_stacks(env, state.table.word());
            state.table.release(before);
        }
        state.room = room.emptied();
        found.value.unwrap_or(value)
    })
}

/// What [`called_by_vm`] finds.
#[derive(Default)]
struct CalledByVm {
    /// `None`: the value is that of a call.
    value: Option<u64>,
    /// The numbers of values that are new.
    numbers: Vec<(u64, u32)>,
}

/// A walk of the current thread's stack.
struct Walk<'w, 'e> {
    tracer: &'w Tracer,
    env: Env<'e>,
    state: &'w mut State,
    room: Room,
    /// Whether the stack has no more frames than were found.
    is_whole: bool,
    /// How frames are asked for; `None`: JVMTI. What fits the values is right, whoever told it; what does not fit is looked at again as JVMTI tells it.
    call_traces: Option<CallTraces>,
}

impl Walk<'_, '_> {
    /// The frame with that index; `None` if the stack has no more.
    fn frame(&mut self, index: usize) -> Option<RawFrame> {
        while index >= self.room.frames.len() && !self.is_whole {
            let frames = &mut self.room.frames;
            let known = frames.len();
            if let Some(call_traces) = self.call_traces {
                let most = (known * 4).max(FIRST_FRAMES);
                if most <= call_trace::MOST && call_traces.innermost(self.env, most, frames) {
                    self.is_whole = frames.len() < most;
                    self.state.counts.frames += frames.len().saturating_sub(known) as u64;
                } else {
                    self.ask_jvmti();
                }
                continue;
            }
            let more = known.max(FIRST_FRAMES).min(MOST_FRAMES - known.min(MOST_FRAMES));
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

    /// Walks to the first caller that is known, and returns its number; the values and sites of the frames before it are found. If a frame
    /// does not fit, those are found whose values are right nevertheless: up to the first that is at no site.
    fn up_to_known(&mut self, value: u64) -> Option<u32> {
        let (mut next, mut index) = (value, 0);
        let mut certain = None;
        self.room.found.clear();
        while let Some(frame) = self.frame(index) {
            let (at, place) = (next, self.place(frame));
            index += 1;
            next = below(at, place);
            let known = |walk: &Self| {
                let number = walk.state.table.find(at)?;
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

    /// The same once more, with frames as JVMTI tells them, and then with what methods have as code now.
    fn again(&mut self, value: u64) -> Option<u32> {
        self.ask_jvmti();
        self.up_to_known(value).or_else(|| {
            let may_differ = self.state.methods.forget_changed();
            may_differ.then(|| self.up_to_known(value)).flatten()
        })
    }

    /// See [`called_by_vm`]. `None`: the value is that of a call.
    fn called_by_vm(&mut self, value: u64) -> Option<CalledByVm> {
        // The first method with hooks is the one that asks. The next one is where the VM has called it.
        let mut index = 0;
        while self.frame(index).map(|frame| self.place(frame))? == Place::Untracked {
            index += 1;
        }
        index += 1;
        let Place::Elsewhere { first_site, sites, nearest } = self.frame(index).map(|frame| self.place(frame))? else {
            return None;
        };
        let mut numbers = Vec::new();
        let (caller, below) = match self.caller_at(value, index, (first_site, sites), &mut numbers) {
            Some(found) => found,
            // `AsyncGetCallTrace` tells the frames of the carrier behind those of a virtual thread.
            None => {
                self.ask_jvmti();
                self.caller_at(value, index, (first_site, sites), &mut numbers)?
            }
        };
        let value = below.wrapping_add(u64::from(nearest - first_site));
        if self.state.table.find(value).is_none() {
            let number = self.state.tree.add(Frame { caller, site: nearest });
            self.room.records.push(StackRecord::Frame { number, caller, site: nearest });
            numbers.push((value, number));
        }
        Some(CalledByVm { value: Some(value), numbers })
    }

    /// The stack of the caller of a frame, and its value: computed from the outermost frame on, so that it does not matter what the thread has.
    /// `None`: these are not the frames of the thread's value, which is that of a call of the method or the one with which it was called itself.
    fn caller_at(
        &mut self,
        value: u64,
        frame: usize,
        (first_site, sites): (u32, u32),
        numbers: &mut Vec<(u64, u32)>,
    ) -> Option<(u32, u64)> {
        let (mut frames, mut index) = (Vec::new(), frame + 1);
        while let Some(next) = self.frame(index).filter(|_| frames.len() < MOST_FRAMES) {
            index += 1;
            match self.place(next) {
                Place::Untracked => {}
                Place::Site { site, adds } => frames.push((site, adds)),
                Place::Elsewhere { first_site, nearest, .. } => {
                    frames.push((nearest, constant_of(first_site).wrapping_add(u64::from(nearest - first_site))));
                }
            }
        }
        let mut values = Vec::with_capacity(frames.len());
        let mut caller = 0u64;
        for &(site, adds) in frames.iter().rev() {
            caller = caller.wrapping_mul(MULTIPLIER).wrapping_add(adds);
            values.push((caller, site));
        }
        let own = own_value(caller, first_site);
        if value != caller && value.wrapping_sub(own) >= u64::from(sites) && self.call_traces.is_some() {
            return None;
        }
        let known = values.iter().rposition(|&(value, site)| {
            let number = self.state.table.find(value);
            number.and_then(|number| self.state.tree.get(number)).is_some_and(|frame| frame.site == site)
        });
        let (mut number, from) = match known {
            Some(known) => (self.state.table.find(values[known].0).unwrap_or(0), known + 1),
            None => (0, 0),
        };
        for &(value, site) in &values[from..] {
            let caller = number;
            number = self.state.tree.add(Frame { caller, site });
            self.room.records.push(StackRecord::Frame { number, caller, site });
            numbers.push((value, number));
        }
        Some((number, own))
    }

    /// Whether the innermost method with hooks is at a site.
    fn is_at_site(&mut self) -> bool {
        let mut index = 0;
        while let Some(place) = self.frame(index).map(|frame| self.place(frame)) {
            match place {
                Place::Untracked => index += 1,
                Place::Site { .. } => return true,
                Place::Elsewhere { .. } => return false,
            }
        }
        false
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
    fn whole(&mut self, value: u64, most: usize) -> u32 {
        let (mut at, mut index, mut sites) = (value, 0, Vec::new());
        // JVMTI tells the frames of a virtual thread, `AsyncGetCallTrace` those of its carrier behind them: the value says where it begins.
        while sites.len() < most
            && (at != 0 || self.call_traces.is_none())
            && let Some(frame) = self.frame(index)
        {
            index += 1;
            let place = self.place(frame);
            sites.extend(place.shown());
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

/// What a method with these sites adds the indexes of its sites to, given the value of its caller.
fn own_value(caller: u64, first_site: u32) -> u64 {
    caller.wrapping_mul(MULTIPLIER).wrapping_add(constant_of(first_site))
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
