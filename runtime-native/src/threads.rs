//! Thread records, and which thread of the trace the current one is.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use et_format::event::{ObjectHash, Ticket};
use et_format::{InitialFrame, ThreadRecord, thread_flags};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::buffers::ThreadIndex;
use crate::ids;
use crate::jvm::env::{Env, Object};
use crate::jvm::jvmti::ThreadInfo;
use crate::tracer::Tracer;

thread_local! {
    /// Index of the current thread, 0 while it is not known.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// The live threads of the trace.
#[derive(Debug, Default)]
pub struct Threads {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By object id.
    live: FxHashMap<u32, ThreadIndex>,
    /// Threads that ran before they had a name: their records are still to be written.
    nameless: FxHashSet<u32>,
    last: u32,
}

impl Threads {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of the current thread, which `thread` is the object of.
    pub fn current(&self, tracer: &Tracer, env: Env, thread: Object) -> ThreadIndex {
        match CURRENT.get() {
            0 => self.register(tracer, env, thread),
            index => ThreadIndex(index),
        }
    }

    /// The current thread has started. It may have left events already: a thread that native code attaches runs
    /// its Thread object's constructor first.
    pub fn started(&self, tracer: &Tracer, env: Env, thread: Object) {
        CURRENT.set(0);
        let index = self.register(tracer, env, thread);
        let object = tracer.id(env, thread);
        let nameless = self.lock().nameless.remove(&object);
        if nameless {
            let info = info(tracer, env, thread);
            tracer.queue.thread(&start(tracer.buffers.next_ticket(), index, object, &info));
        }
    }

    /// The current thread has run its last Java code. The VM says so, too, of the thread that ends the program, in the midst
    /// of `System.exit`: that one has no end of its own, and what it does until `VMDeath` is still its own.
    pub fn ended(&self, tracer: &Tracer, env: Env, thread: Object) {
        // Native code may detach a thread without a look at what its last call left; -Xcheck:jni would blame us.
        env.has_exception();
        if tracer.jvmti.frame_count(thread).is_ok_and(|frames| frames > 0) {
            return;
        }
        let at = tracer.proxy.take_position(env, thread);
        tracer.hand_in(at, tracer.nanos());
        ids::give_back(tracer, tracer.proxy.take_ids(env, thread));
        let object = tracer.id(env, thread);
        let (index, nameless) = {
            let mut state = self.lock();
            (state.live.remove(&object), state.nameless.remove(&object))
        };
        CURRENT.set(0);
        let Some(index) = index else { return };
        if nameless {
            tracer.queue.thread(&start(tracer.buffers.next_ticket(), index, object, &ThreadInfo::default()));
        }
        tracer.queue.thread(&ThreadRecord::End { ticket: tracer.buffers.next_ticket(), thread: index.0 });
    }

    fn register(&self, tracer: &Tracer, env: Env, thread: Object) -> ThreadIndex {
        // First the JVM, then the lock: see `writer`.
        let object = tracer.id(env, thread);
        let (index, new) = self.index(object);
        CURRENT.set(index.0);
        if new {
            let info = info(tracer, env, thread);
            if info.name.is_some() {
                tracer.queue.thread(&start(tracer.buffers.next_ticket(), index, object, &info));
            } else {
                self.lock().nameless.insert(object);
            }
        }
        index
    }

    fn index(&self, object: u32) -> (ThreadIndex, bool) {
        let mut state = self.lock();
        if let Some(index) = state.live.get(&object) {
            return (*index, false);
        }
        state.last += 1;
        let index = ThreadIndex(state.last);
        state.live.insert(object, index);
        (index, true)
    }

    /// A thread that was running when tracing began.
    pub fn initial(&self, tracer: &Tracer, env: Env, thread: Object, frames: Vec<InitialFrame>) {
        let object = tracer.id(env, thread);
        let (index, _) = self.index(object);
        let info = info(tracer, env, thread);
        if let ThreadRecord::Start { thread, object, flags, name, .. } = start(Ticket(0), index, object, &info) {
            let flags = flags | thread_flags::RUNNING_AT_START;
            tracer.queue.thread(&ThreadRecord::Start { ticket: Ticket(0), thread, object, flags, name, frames });
        }
    }
}

fn info(tracer: &Tracer, env: Env, thread: Object) -> ThreadInfo {
    tracer.jvmti.thread_info(env, thread).unwrap_or_default()
}

fn start(ticket: Ticket, index: ThreadIndex, object: u32, info: &ThreadInfo) -> ThreadRecord {
    ThreadRecord::Start {
        ticket,
        thread: index.0,
        object: ObjectHash(object),
        flags: if info.is_daemon { thread_flags::DAEMON } else { 0 },
        name: info.name.clone().unwrap_or_default(),
        frames: Vec::new(),
    }
}
