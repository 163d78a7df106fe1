//! Thread records, and the index of the current thread.

use std::cell::Cell;

use et_format::event::{ObjectHash, Ticket};
use et_format::{InitialFrame, ThreadRecord, thread_flags};

use crate::base::stack;
use crate::buffers::{NoChunk, ThreadIndex};
use crate::ids;
use crate::proxy::Locks;
use crate::tracer::Tracer;
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{Jvmti, ThreadInfo};

thread_local! {
    /// Index of the current thread; 0 while unknown.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// Hands in the thread's chunk, filled up to the address `at` (0 for none), and takes a new one. Returns the address
/// of its first event; 0 if there is no chunk, or tracing is over.
pub fn next_chunk(tracer: &Tracer, env: Env, thread: Object, at: usize) -> usize {
    // One time for both chunks: after the events of the old one, before those of the new one.
    let now = tracer.run.nanos();
    tracer.output.hand_in(at, now);
    if tracer.has_ended() {
        tracer.output.count_late();
        return 0;
    }
    let index = current(tracer, env, thread);
    match tracer.output.take(index, now) {
        Ok(address) => address,
        Err(NoChunk::Stopped) => {
            tracer.output.count_late();
            0
        }
        Err(NoChunk::NoSpace | NoChunk::Lag) => {
            tracer.output.count_lost();
            0
        }
    }
}

/// The index of the current thread, whose object is `thread`.
pub fn current(tracer: &Tracer, env: Env, thread: Object) -> ThreadIndex {
    match CURRENT.get() {
        0 => register(tracer, env, thread),
        index => ThreadIndex(index),
    }
}

/// The current thread has started. It may have written events already: a thread that native code attaches runs the constructor of its
/// Thread object first.
pub fn started(tracer: &Tracer, env: Env, thread: Object) {
    CURRENT.set(0);
    let index = register(tracer, env, thread);
    let object = tracer.id(env, thread);
    let nameless = tracer.threads.is_named(object);
    if nameless {
        let info = info(tracer.machine.jvmti, env, thread);
        tracer.output.queue.thread(&start(tracer.output.buffers.next_ticket(), index, object, &info));
    }
}

/// The current thread has run its last Java code. The VM also reports the thread that ends the program, within
/// `System.exit`: that one gets no end record, and its events until `VMDeath` are still recorded as its own.
pub fn ended(tracer: &Tracer, env: Env, thread: Object) {
    // Native code may detach a thread without checking for the exception of its last call, for which -Xcheck:jni would
    // blame this agent.
    env.has_exception();
    if tracer.machine.jvmti.frame_count(thread).is_ok_and(|frames| frames > 0) {
        return;
    }
    let at = tracer.machine.proxy.take_position(env, thread);
    tracer.output.hand_in(at, tracer.run.nanos());
    ids::give_back(&tracer.ids.space, tracer.machine.proxy.take_ids(env, thread));
    let object = tracer.id(env, thread);
    let (index, nameless) = tracer.threads.remove(object);
    CURRENT.set(0);
    let Some(index) = index else { return };
    if nameless {
        tracer.output.queue.thread(&start(tracer.output.buffers.next_ticket(), index, object, &ThreadInfo::default()));
    }
    tracer.output.queue.thread(&ThreadRecord::End { ticket: tracer.output.buffers.next_ticket(), thread: index.0 });
}

fn register(tracer: &Tracer, env: Env, thread: Object) -> ThreadIndex {
    // The VM is called before the lock is taken: no lock is held during a call of the VM.
    let object = tracer.id(env, thread);
    let (index, new) = tracer.threads.index(object);
    CURRENT.set(index.0);
    if tracer.ids.locks.get() == Some(&Locks::OnStack)
        && let Some(stack) = stack::bounds()
    {
        tracer.machine.proxy.set_stack(env, thread, stack);
    }
    if new {
        let info = info(tracer.machine.jvmti, env, thread);
        if info.name.is_some() {
            tracer.output.queue.thread(&start(tracer.output.buffers.next_ticket(), index, object, &info));
        } else {
            tracer.threads.is_nameless(object);
        }
    }
    index
}

/// Records a thread that was running when tracing began, with its frames.
pub fn initial(tracer: &Tracer, env: Env, thread: Object, frames: Vec<InitialFrame>) {
    let object = tracer.id(env, thread);
    let (index, _) = tracer.threads.index(object);
    let info = info(tracer.machine.jvmti, env, thread);
    if let ThreadRecord::Start { thread, object, flags, name, .. } = start(Ticket(0), index, object, &info) {
        let flags = flags | thread_flags::RUNNING_AT_START;
        tracer.output.queue.thread(&ThreadRecord::Start { ticket: Ticket(0), thread, object, flags, name, frames });
    }
}

fn info(jvmti: Jvmti, env: Env, thread: Object) -> ThreadInfo {
    jvmti.thread_info(env, thread).unwrap_or_default()
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
