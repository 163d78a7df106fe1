//! Where tracing begins: when the VM has come up and before the program's first class is run.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use et_format::event::Ticket;
use et_format::progress::RunId;
use et_format::{BlockKind, Jvm, Meta, encode_json};
use jni_sys::jvalue;
use thiserror::Error;

use crate::agent;
use crate::buffers::{BufferError, Buffers};
use crate::classes;
use crate::collector::Collector;
use crate::compiled;
use crate::control::Control;
use crate::dynamic::{self, Dynamic};
use crate::heap;
use crate::ids::{self, Scheme};
use crate::jni_table;
use crate::jvm::env::{Env, Global, Object, Vm};
use crate::jvm::hotspot::HotSpot;
use crate::jvm::jvmti::{AgentThread, Capability, EventKind, Jvmti, JvmtiError};
use crate::layout;
use crate::names::{self, Places};
use crate::options::Options;
use crate::patience::Patience;
use crate::prepared::Mirrors;
use crate::proxy::{Proxy, Settings};
use crate::reflection;
use crate::report::say;
use crate::signals;
use crate::sink::Sink;
use crate::slots::{self, Slots};
use crate::tracer::{Parts, Tracer};
use crate::unloading::Unloading;

/// Why a run is not traced.
#[derive(Debug, Error)]
pub enum StartError {
    /// No HeapProxy, or a Thread without our fields.
    #[error(
        "this JDK is not instrumented, the program runs untraced: \
         make a copy with `et-instrument jdk --java-home {0} -o DIR` and run DIR/bin/java @DIR/et.args"
    )]
    NotInstrumented(String),
    /// Some other machine.
    #[error("this JVM is not HotSpot, the program runs untraced")]
    NotHotSpot,
    /// No buffers.
    #[error("{0}, the program runs untraced")]
    Buffers(#[from] BufferError),
    /// The VM refused something.
    #[error("{0}, the program runs untraced")]
    Jvmti(#[from] JvmtiError),
    /// A thread of ours did not come up.
    #[error("cannot start the threads that write the trace and watch over it, the program runs untraced")]
    Thread,
}

/// Begins tracing on the thread that the VM started on.
pub fn run(
    vm: Vm,
    jvmti: Jvmti,
    env: Env,
    thread: Object,
    options: &Options,
    mut sink: Sink,
    patience: Arc<Patience>,
) -> Result<(), StartError> {
    // The same moment on two clocks: times in the trace are distances from it.
    let (start, started) = (Instant::now(), SystemTime::now());
    let property = |name| jvmti.system_property(name).unwrap_or_default();
    let java_home = property(c"java.home");
    let Some(proxy) = Proxy::find(env).filter(|proxy| proxy.link(env)) else {
        sink.discard();
        return Err(StartError::NotInstrumented(java_home));
    };
    reflection::hide_fields(env);
    let release = property(c"java.vm.specification.version");
    let run = RunId::random();
    let buffers = Buffers::create(&sink.buffer_place(), options.buffer_bytes, run);
    let (hotspot, buffers) = match (HotSpot::find(env, &release), buffers) {
        (Some(hotspot), Ok(buffers)) => (hotspot, buffers),
        (None, _) => {
            sink.discard();
            return Err(StartError::NotHotSpot);
        }
        (_, Err(error)) => {
            sink.discard();
            return Err(error.into());
        }
    };
    sink.hand_over(buffers.file());
    // The VM would print warnings about handlers that are not its own.
    if !checks_handlers(env) {
        buffers.guard();
        if sink.has_reader() {
            signals::watch_for_ends();
        }
    }
    let sizes_known = layout::check_instance_sizes(env, jvmti, &hotspot, &proxy, thread);
    let slots = Slots::new(env, jvmti);
    let dynamic = options
        .dynamic
        .then(|| dynamic::link(env).map(|()| Dynamic::new(proxy.jdk_events(), options.dynamic_filter.clone())))
        .flatten();
    let array_layout = layout::arrays(env, jvmti).unwrap_or_default();
    let mirrors = match array_layout.index_scale.get("L") {
        Some(&reference_bytes) => Mirrors::find(env, jvmti, &hotspot, &proxy, reference_bytes),
        None => Mirrors::default(),
    };
    proxy.set_mirrors(env, mirrors);
    let drawn = draw(env, &hotspot, 6);
    let unique = ids::is_full_period(&drawn);
    let ids = ids::space(drawn.last().copied().unwrap_or(1));
    let control = Control::new(options.start.clone(), options.stop.clone());
    let collector = options.collector.map(Collector::new);
    let unloading = Unloading::new(vm, agent::object_free);
    let parts = Parts {
        run,
        vm,
        jvmti,
        hotspot,
        proxy,
        sizes_known,
        slots,
        buffers,
        sink,
        dynamic,
        control,
        collector,
        ids,
        start,
        unloading: unloading.as_ref().ok().copied(),
        patience,
    };
    let Some(tracer) = Tracer::install(parts) else { return Ok(()) };
    proxy.set(
        env,
        Settings {
            counter: std::ptr::from_ref(tracer.buffers.counter()) as usize,
            chunk_room: tracer.buffers.room(),
            known: tracer.known.as_ptr() as usize,
            classes: classes::table_address(),
            layouts: slots::table_address(),
            asked: tracer.collector.as_ref().map_or(0, |collector| collector.share().get()),
        },
    );
    proxy.set_places(env, &array_layout, tracer.slots.hidden_stores());
    let hash_shift = proxy.probe_hash_shift(env);
    let scheme = ids::begin(tracer, env, options.ids, unique, hash_shift);
    let meta = Meta {
        tool: format!("elephant-tracks {}", env!("CARGO_PKG_VERSION")),
        pid: std::process::id(),
        start_unix_millis: started.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64),
        jvm: Jvm { name: property(c"java.vm.name"), version: property(c"java.vm.version") },
        java_home: java_home.clone(),
        command: property(c"sun.java.command"),
        options: options.given.clone(),
        id_scheme: scheme.name().into(),
        array_layout,
        start_ticket: Ticket(0),
    };
    tracer.queue.block(BlockKind::Meta, encode_json(&meta));
    if scheme == Scheme::Tags && options.ids != Scheme::Tags {
        let line = "identity hashes may repeat, so every object is tagged, which is slow: run java with \
             -XX:+UnlockExperimentalVMOptions -XX:hashCode=0";
        say(line);
        tracer.queue.problem(line, 1);
    }
    if hash_shift.is_none() && scheme != Scheme::Tags {
        tracer.queue.problem("identity hashes do not show in object headers, every id is asked for", 1);
    }
    if !sizes_known {
        tracer.queue.problem("the VM's instance sizes could not be read, sizes of new objects are not known", 1);
    }
    if !tracer.slots.are_known() {
        tracer.queue.problem("the VM's field ids could not be read, stores by native code and Unsafe name no field", 1);
    }
    if let Err(error) = unloading {
        tracer.queue.problem(format!("classes that are unloaded go on taking memory of the runtime's: {error}"), 1);
    }
    if mirrors.statics.is_none() {
        tracer.queue.problem("static fields could not be found in class mirrors, constants of classes show late", 1);
    }
    if !hotspot.finds_resolved_references() {
        let line = format!(
            "the arrays in which classes keep their constants show late: where the VM has them was not tried on Java {release}"
        );
        tracer.queue.problem(line, 1);
    }
    if let Err(error) = jni_table::install(jvmti) {
        tracer.queue.problem(format!("objects and references made by native code show late: {error}"), 1);
    }
    let writer = agent_thread(tracer, env, c"elephant-tracks writer", agent::writer_thread);
    let writer = writer.inspect_err(|_| tracer.abandon(env))?;
    tracer.control.own_thread(env, writer);
    // Until it runs: its start must not be taken for that of a thread of the program.
    tracer.writer_runs.wait();
    tracer.proxy.switch_rewriting(env, tracer.dynamic.is_some());
    jvmti.set_event(EventKind::ClassFileLoadHook, true)?;
    tracer.control.open(tracer, env, thread)?;
    look_for_names(tracer, java_home, options);
    Ok(())
}

/// Whether the VM looks now and then whether the handlers of signals are its own (`-Xcheck:jni`).
fn checks_handlers(env: Env) -> bool {
    env.frame(8, |env| {
        let class = env.find_class(c"jdk/internal/misc/VM")?;
        let given = env.static_method(class, c"getRuntimeArguments", c"()[Ljava/lang/String;")?;
        let list = env.call_static_object(class, given, &[])?;
        let is_it = |index| {
            env.frame(2, |env| {
                let text = env.array_element(list, index).and_then(|word| env.text(word));
                text.is_some_and(|text| text.starts_with("-Xcheck:jni") || text == "-XX:+CheckJNICalls")
            })
        };
        Some((0..env.array_length(list)).any(is_it))
    })
    .unwrap_or(false)
}

/// Identity hashes of fresh objects, drawn one after the other.
fn draw(env: Env, hotspot: &HotSpot, count: i32) -> Vec<u32> {
    env.frame(count, |env| {
        (0..count).filter_map(|_| env.new_byte_array(0)).map(|object| hotspot.identity_hash(env, object)).collect()
    })
}

/// A thread of the VM's that the program does not see: the writer asks for the use of the heap.
pub fn agent_thread<'a>(
    tracer: &Tracer,
    env: Env<'a>,
    name: &CStr,
    body: AgentThread,
) -> Result<Object<'a>, StartError> {
    let thread = env.find_class(c"java/lang/Thread").and_then(|class| {
        let constructor = env.method(class, c"<init>", c"(Ljava/lang/String;)V")?;
        let name = env.new_string(name)?;
        env.new_object(class, constructor, &[jvalue { l: name.raw() }])
    });
    let thread = thread.ok_or(StartError::Thread)?;
    tracer.jvmti.run_agent_thread(thread, body).map_err(|_| StartError::Thread)?;
    Ok(thread)
}

/// Stops the other threads, writes down what there is, switches the hooks on, and lets the threads go.
/// `thread` is the current one, if it is the program's; `own` are the runtime's threads, which are none of the program's. `is_late`
/// says that the program has run before.
pub fn record_what_exists(
    tracer: &'static Tracer,
    env: Env,
    thread: Option<Object>,
    own: &[Global],
    is_late: bool,
) -> Result<(), StartError> {
    let jvmti = tracer.jvmti;
    let walker = Jvmti::new(tracer.vm).ok_or(StartError::NotHotSpot)?;
    walker.add_capabilities(&[Capability::TagObjects])?;
    heap::link_archived(tracer, env)?;
    let mut threads = jvmti.all_threads(env)?;
    threads.retain(|thread| !own.iter().any(|own| env.is_same(*thread, own.get())));
    let is_current = |other: Object| thread.is_some_and(|thread| env.is_same(other, thread));
    let others: Vec<Object> = threads.iter().copied().filter(|other| !is_current(*other)).collect();
    let _stopped = match Stopped::stop(jvmti, &others) {
        Ok(stopped) => Some(stopped),
        Err(_) => {
            tracer.queue.problem(
                "another agent (a debugger) may stop threads, so we may not: what other threads did while the initial \
                 objects were written down may be missing",
                1,
            );
            None
        }
    };
    let found = heap::record(tracer, env, walker, &threads);
    walker.dispose();
    let found = found?;
    if found.shared_ids > 0 {
        tracer
            .queue
            .problem("objects that existed at the start and share their id with another", found.shared_ids as u64);
    }
    for kind in EVENTS {
        jvmti.set_event(kind, true)?;
    }
    if tracer.collector.is_some() {
        jvmti.tell_what_is_freed()?;
    }
    tracer.proxy.switch(env, true);
    if is_late && let Err(error) = compiled::drop_code(tracer.vm, env) {
        let line = format!("loops that were compiled before tracing began, and go on, may tell of nothing: {error}");
        tracer.queue.problem(line, 1);
    }
    Ok(())
}

/// Does something while the other threads of the program stand still, if that can be. Their hooks are on: what they did between the
/// end of the trace and that of the process would be in no trace.
pub fn while_others_stand_still(tracer: &Tracer, env: Env, own: &[Global], body: impl FnOnce()) {
    env.frame(128, |env| {
        let jvmti = tracer.jvmti;
        let others = current_thread(env).zip(jvmti.all_threads(env).ok()).map(|(current, mut threads)| {
            threads.retain(|thread| !env.is_same(*thread, current));
            threads.retain(|thread| !own.iter().any(|own| env.is_same(*thread, own.get())));
            threads
        });
        // A debugger may be the one who stops threads. What they do is counted all the same.
        let _stopped = others.as_ref().and_then(|others| Stopped::stop(jvmti, others).ok());
        body();
    });
}

/// The thread that we are; none if it carries another, which would be stopped with it.
fn current_thread<'a>(env: Env<'a>) -> Option<Object<'a>> {
    let class = env.find_class(c"java/lang/Thread")?;
    let call = |name| {
        let method = env.static_method(class, name, c"()Ljava/lang/Thread;")?;
        env.call_static_object(class, method, &[])
    };
    let current = call(c"currentThread")?;
    match call(c"currentCarrierThread") {
        Some(carrier) if !env.is_same(carrier, current) => None,
        _ => Some(current),
    }
}

/// Events that the run needs from here on.
pub const EVENTS: [EventKind; 6] = [
    EventKind::ThreadStart,
    EventKind::ThreadEnd,
    EventKind::ClassFileLoadHook,
    EventKind::ClassPrepare,
    EventKind::GarbageCollectionStart,
    EventKind::GarbageCollectionFinish,
];

/// Threads that stand still until this goes out of scope, whatever happens.
///
/// Only one agent at a time may be able to stop threads, and debuggers want to be: we are for this moment only.
struct Stopped<'a> {
    jvmti: Jvmti,
    threads: &'a [Object<'a>],
}

impl<'a> Stopped<'a> {
    fn stop(jvmti: Jvmti, threads: &'a [Object<'a>]) -> Result<Self, JvmtiError> {
        jvmti.add_capabilities(&[Capability::Suspend])?;
        let stopped = Self { jvmti, threads };
        if !threads.is_empty() {
            jvmti.suspend(threads)?;
        }
        Ok(stopped)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let _ = self.jvmti.resume(self.threads);
        }
        let _ = self.jvmti.relinquish_capabilities(&[Capability::Suspend]);
    }
}

/// Properties that hold paths of classes. What patches modules is no such property: option `names` tells where that is.
const PATHS: [&CStr; 4] =
    [c"java.class.path", c"jdk.module.path", c"jdk.module.upgrade.path", c"jdk.boot.class.path.append"];

/// Reading jars takes longer than all the rest, and nobody waits for it before the end.
fn look_for_names(tracer: &'static Tracer, java_home: String, options: &Options) {
    let mut places = Places { java_home: PathBuf::from(java_home), paths: options.names.clone() };
    for name in PATHS {
        if let Some(list) = tracer.jvmti.system_property(name) {
            places.add_list(&list);
        }
    }
    let search = std::thread::Builder::new()
        .name("elephant-tracks names".into())
        .spawn(move || names::copy_to_trace(&places, &tracer.queue));
    match search {
        Ok(search) => *tracer.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(search),
        Err(error) => tracer.queue.problem(format!("no thread to look for names tables: {error}"), 1),
    }
}
