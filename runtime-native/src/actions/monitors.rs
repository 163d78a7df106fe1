//! Records contention for monitors, and waits (`monitors=on`). JVMTI reports both on the thread that waits: they cost nothing while no
//! thread has to wait.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use et_format::event::ObjectHash;
use et_format::{MonitorEvent, MonitorPlace, MonitorRecord};
use et_jvm::env::{Env, Global, MethodId, Object};
use et_jvm::jvmti::{Capability, EventKind, Jvmti};
use et_jvm::profiling::RawFrame;

use crate::actions::threads;
use crate::tracer::Tracer;

/// The capabilities that these events need.
pub const CAPABILITIES: [Capability; 3] = [Capability::MonitorEvents, Capability::MonitorInfo, Capability::LineNumbers];

/// JVMTI's events of monitors.
pub const EVENTS: [EventKind; 4] = [
    EventKind::MonitorContendedEnter,
    EventKind::MonitorContendedEntered,
    EventKind::MonitorWait,
    EventKind::MonitorWaited,
];

/// Frames to look at for the caller of `wait`: it is a method of `Object` that calls others of `Object`.
const FRAMES: usize = 6;
const OBJECT: &str = "Ljava/lang/Object;";

/// The current thread waits to enter a monitor that another thread owns.
pub fn contended_enter(tracer: &Tracer, env: Env, thread: Object, object: Object) {
    let nanos = tracer.run.nanos().0;
    // First, because the owner may leave the monitor at any time.
    let owner = env.frame(16, |env| {
        let owner = tracer.machine.jvmti.monitor_usage(env, object).ok()?.owner?;
        if env.is_same(owner, thread) {
            return None;
        }
        tracer.threads.known(tracer.id_if_any(env, owner))
    });
    let owner = owner.map_or(0, |index| index.0);
    let place = place(tracer.machine.jvmti, env, object);
    put(tracer, env, thread, object, nanos, MonitorEvent::Enter { owner, place });
}

/// The current thread has entered the monitor that it waited for.
pub fn contended_entered(tracer: &Tracer, env: Env, thread: Object, object: Object) {
    let nanos = tracer.run.nanos().0;
    put(tracer, env, thread, object, nanos, MonitorEvent::Entered);
}

/// The current thread is about to wait, for `timeout` milliseconds at most; 0: without a limit.
pub fn wait(tracer: &Tracer, env: Env, thread: Object, object: Object, timeout: i64) {
    let place = place(tracer.machine.jvmti, env, object);
    let timeout_millis = timeout.max(0).cast_unsigned();
    // Last, because the wait begins here.
    let nanos = tracer.run.nanos().0;
    put(tracer, env, thread, object, nanos, MonitorEvent::Wait { timeout_millis, place });
}

/// The current thread has waited.
pub fn waited(tracer: &Tracer, env: Env, thread: Object, object: Object, is_timed_out: bool) {
    let nanos = tracer.run.nanos().0;
    put(tracer, env, thread, object, nanos, MonitorEvent::Waited { is_timed_out });
}

/// The class of virtual threads, if the VM has them. Looked up once, where Java code may run.
static VIRTUAL: OnceLock<Option<Global>> = OnceLock::new();
static HAS_SEEN_VIRTUAL: AtomicBool = AtomicBool::new(false);

/// Call before the events are switched on: looks up the class of virtual threads.
pub fn prepare(env: Env) {
    let find =
        || env.frame(2, |env| env.find_class(c"java/lang/BaseVirtualThread").and_then(|class| env.global(class)));
    VIRTUAL.get_or_init(find);
}

/// Whether this is a virtual thread, whose wait may begin and end on different threads of the trace.
fn is_virtual(env: Env, thread: Object) -> bool {
    let class = VIRTUAL.get().and_then(Option::as_ref);
    class.is_some_and(|class| env.is_instance(thread, class.get()))
}

fn put(tracer: &Tracer, env: Env, thread: Object, object: Object, nanos: u64, what: MonitorEvent) {
    if is_virtual(env, thread) {
        if !HAS_SEEN_VIRTUAL.swap(true, Ordering::Relaxed) {
            tracer.output.queue.problem("virtual threads waited for monitors: such waits are not recorded", 1);
        }
        return;
    }
    let index = threads::current(tracer, env, thread);
    let object = ObjectHash(tracer.id(env, object));
    let ticket = tracer.output.buffers.next_ticket();
    tracer.output.queue.monitor(&MonitorRecord { ticket, nanos, thread: index.0, object, what });
}

/// The class of the monitor's object, and the current frame of the thread.
fn place(jvmti: Jvmti, env: Env, object: Object) -> MonitorPlace {
    env.frame(4 + FRAMES as i32, |env| {
        let class = env.class_of(object).and_then(|class| jvmti.class_signature(class).ok());
        let mut place = MonitorPlace { monitor_class: class.unwrap_or_default(), ..MonitorPlace::default() };
        let mut frames = [RawFrame { method: std::ptr::null_mut(), location: -1 }; FRAMES];
        let count = jvmti.current_stack(None, &mut frames).unwrap_or(0);
        for frame in &frames[..count] {
            let method = MethodId(frame.method);
            let class = jvmti.declaring_class(env, method).ok().flatten();
            let class = class.and_then(|class| jvmti.class_signature(class).ok()).unwrap_or_default();
            let is_wait = class == OBJECT;
            place.class = class;
            place.method = jvmti.method_name(method).map_or_else(|_| String::new(), |member| member.name);
            place.line = jvmti.line_at(method, frame.location).unwrap_or(0);
            if !is_wait {
                break;
            }
        }
        place
    })
}
