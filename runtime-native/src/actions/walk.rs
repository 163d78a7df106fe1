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
use et_rewriter::hooks::stacks::{MULTIPLIER, TrackedCode, inverse};

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
        let number = match walk.state.tree.most_frames() {
            Some(most) => {
                walk.room.found.clear();
                walk.whole(value, most)
            }
            None => match walk.up_to_known(value).or_else(|| walk.again(value)) {
                Some(caller) => walk.add(caller),
                None => walk.whole(value, MOST_FRAMES),
            },
        };
        let Walk { room, state, .. } = walk;
        // In the journal before any other thread can use a number.
        tracer.output.queue.stacks(&room.records);
        // What was beyond the limit is walked again: else the table would grow without one.
        if state.tree.most_frames().is_none() {
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
                Place::Elsewhere { first_site, sites } => {
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
            if let Place::Site { site, .. } = place {
                sites.push(site);
            }
            at = below(at, place);
        }
        match most {
            MOST_FRAMES => self.state.counts.walked_whole += 1,
            _ => self.state.counts.beyond_limit += 1,
        }
        // In place of the callers that are left out.
        let beyond = (most < MOST_FRAMES).then_some(0);
        let Self { state, room: Room { records, .. }, .. } = self;
        sites.into_iter().chain(beyond).rev().fold(0, |caller, site| {
            let frame = Frame { caller, site };
            state.tree.find_or_add(frame, |number| records.push(StackRecord::Frame { number, caller, site }))
        })
    }
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
