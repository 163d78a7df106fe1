//! Where tracing begins: when the VM has come up and before the program's first class is run.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use et_format::event::Ticket;
use et_format::progress::RunId;
use et_format::{ArrayLayout, BlockKind, Jvm, Meta, encode_json};
use et_jvm::sync::lock;

use crate::actions::id_supply;
use crate::base::patience::Patience;
use crate::base::report::say;
use crate::base::signals;
use crate::buffers::Buffers;
use crate::classes::slots::{self, Slots};
use crate::classes::unloading::Unloading;
use crate::entry::early::Early;
use crate::entry::jni_table;
use crate::ids::{self, Scheme};
use crate::live::rates;
use crate::options::Options;
use crate::output::names::{self, Places};
use crate::output::packers::{Limits, Packers};
use crate::output::sink::Sink;
use crate::proxy::layout;
use crate::proxy::mirrors;
use crate::proxy::reflection;
use crate::proxy::{Locks, Mirrors, Proxy, Settings};
use crate::tracer::collector::Collector;
use crate::tracer::{Parts, Tracer};
use crate::tracing::Tracing;
use crate::tracing::begin::StartError;
use crate::tracing::control::Control;
use et_jvm::env::{Env, Object, Vm};
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::{EventKind, Jvmti};
use et_jvm::threads::{CurrentThread, agent_thread};

/// What was there before the VM was up.
#[derive(Debug)]
pub struct Prepared {
    /// What the trace is to hold of that time.
    pub early: &'static Early,
    /// Where it goes.
    pub sink: Sink,
    /// With whoever reads it.
    pub patience: Arc<Patience>,
}

/// Begins tracing on the thread that the VM started on.
pub fn run(
    vm: Vm,
    jvmti: Jvmti,
    env: Env,
    thread: Object,
    options: &Options,
    prepared: Prepared,
) -> Result<(), StartError> {
    let Prepared { early, mut sink, patience } = prepared;
    // The same moment on two clocks: times in the trace are distances from it.
    let (start, started) = (Instant::now(), SystemTime::now());
    let property = |name| jvmti.system_property(name).unwrap_or_default();
    let java_home = property(c"java.home");
    let proxy = match Proxy::find(env).and_then(|proxy| proxy.link(env).map(|()| proxy)) {
        Ok(proxy) => proxy,
        Err(error) => {
            sink.discard();
            return Err(StartError::of_proxy(error, java_home));
        }
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
    let dynamic = if proxy.can_rewrite() { early.begin(env) } else { None };
    let array_layout = layout::arrays(env, jvmti).unwrap_or_default();
    let mirrors = mirrors::find(env, jvmti, &hotspot, &proxy, &array_layout);
    proxy.set_mirrors(env, mirrors);
    let drawn = draw(env, &hotspot, 6);
    let unique = ids::is_full_period(&drawn);
    let ids = ids::space(drawn.last().copied().unwrap_or(1));
    let collector = options.collector.map(Collector::new);
    let parts = Parts {
        run,
        vm,
        jvmti,
        hotspot,
        current_thread: CurrentThread::find(env),
        proxy,
        sizes_known,
        slots,
        buffers,
        sink,
        dynamic,
        queue: &early.queue,
        dynamic_ids: &early.ids,
        collector,
        tells_monitors: options.monitors,
        ids,
        start,
        patience,
        packers: Packers::new(Limits::here(options.writers)),
        discards: options.discard,
    };
    let Some(tracer) = Tracer::install(parts) else { return Ok(()) };
    let tracing = Tracing::new(tracer, Control::new(options.start.clone(), options.stop.clone()));
    let unloading = Unloading::new(vm, tracing).map(|unloading| _ = tracer.unloading.set(unloading));
    // From here on events are the tracer's.
    jvmti.listen(tracing)?;
    proxy.set(
        env,
        Settings {
            counter: std::ptr::from_ref(tracer.buffers.counter()) as usize,
            chunk_room: tracer.buffers.room(),
            nowhere: crate::buffers::nowhere(),
            known: tracer.known.as_ptr() as usize,
            classes: crate::classes::records::table_address(),
            layouts: slots::table_address(),
            asked: tracer.collector.as_ref().map_or(0, |collector| collector.share().get()),
        },
    );
    proxy.set_places(env, &array_layout, tracer.slots.hidden_stores());
    let hash_shift = proxy.probe_hash_shift(env);
    let scheme = id_supply::begin(tracer, env, options.ids, unique, hash_shift);
    if hash_shift.is_some() && scheme != Scheme::Tags {
        tracer.locks.get_or_init(|| proxy.probe_locks(env));
    }
    early.publish(env, |class| tracer.id(env, class));
    if let Some(rates) = rates::get() {
        rates.layout(&array_layout);
    }
    let locks = tracer.locks.get().copied().unwrap_or(Locks::Unknown);
    let meta = meta(jvmti, options, started, &java_home, (scheme, locks), array_layout);
    tracer.queue.block(BlockKind::Meta, encode_json(&meta));
    if let Err(error) = unloading {
        tracer.queue.problem(format!("classes that are unloaded go on taking memory of the runtime's: {error}"), 1);
    }
    let found = FoundOut { sizes: sizes_known, hashes: hash_shift.is_some(), mirrors };
    say_what_is_not_known(tracer, options, scheme, found, &release);
    if let Err(error) = jni_table::install(jvmti) {
        tracer.queue.problem(format!("objects and references made by native code show late: {error}"), 1);
    }
    let writer = agent_thread(jvmti, env, c"elephant-tracks writer", move |_| tracer.write());
    let writer = writer.map_err(|_| StartError::Thread).inspect_err(|_| tracer.abandon(env))?;
    tracing.control.own_thread(env, writer);
    // Until it runs: its start must not be taken for that of a thread of the program.
    tracer.writer_runs.wait();
    tracer.proxy.switch_rewriting(env, tracer.dynamic.is_some());
    jvmti.set_event(EventKind::ClassFileLoadHook, true)?;
    tracing.control.open(tracer, env, thread)?;
    look_for_names(tracer, java_home, options);
    Ok(())
}

/// What the trace says of the run.
fn meta(
    jvmti: Jvmti,
    options: &Options,
    started: SystemTime,
    java_home: &str,
    (scheme, locks): (Scheme, Locks),
    array_layout: ArrayLayout,
) -> Meta {
    let property = |name| jvmti.system_property(name).unwrap_or_default();
    Meta {
        tool: format!("elephant-tracks {}", env!("CARGO_PKG_VERSION")),
        pid: std::process::id(),
        start_unix_millis: started.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64),
        jvm: Jvm { name: property(c"java.vm.name"), version: property(c"java.vm.version") },
        java_home: java_home.to_owned(),
        command: property(c"sun.java.command"),
        options: options.given.clone(),
        id_scheme: scheme.name().into(),
        locked_ids: locks.name().into(),
        array_layout,
        start_ticket: Ticket(0),
    }
}

/// What could be found out about the VM.
#[derive(Clone, Copy)]
struct FoundOut {
    sizes: bool,
    hashes: bool,
    mirrors: Mirrors,
}

/// Notes in the trace what it lacks because the VM is another than those that are known.
fn say_what_is_not_known(tracer: &Tracer, options: &Options, scheme: Scheme, found: FoundOut, release: &str) {
    if scheme == Scheme::Tags && options.ids != Scheme::Tags {
        let line = "identity hashes may repeat, so every object is tagged, which is slow: run java with \
             -XX:+UnlockExperimentalVMOptions -XX:hashCode=0";
        say(line);
        tracer.queue.problem(line, 1);
    }
    if !found.hashes && scheme != Scheme::Tags {
        tracer.queue.problem("identity hashes do not show in object headers, every id is asked for", 1);
    }
    if !found.sizes {
        tracer.queue.problem("the VM's instance sizes could not be read, sizes of new objects are not known", 1);
    }
    if !tracer.slots.are_known() {
        tracer.queue.problem("the VM's field ids could not be read, stores by native code and Unsafe name no field", 1);
    }
    if found.mirrors.statics.is_none() {
        tracer.queue.problem("static fields could not be found in class mirrors, constants of classes show late", 1);
    }
    if found.mirrors.lock.is_none() {
        let line = "the locks under which the VM initializes classes, an int[0] each, could not be found in class mirrors \
             and are not recorded";
        tracer.queue.problem(line, 1);
    }
    if !tracer.hotspot.finds_resolved_references() {
        let line = format!(
            "the arrays in which classes keep their constants show late: where the VM has them was not tried on Java {release}"
        );
        tracer.queue.problem(line, 1);
    }
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
        .spawn(move || names::find(&places, tracer.queue));
    match search {
        Ok(search) => *lock(&tracer.names) = Some(search),
        Err(error) => tracer.queue.problem(format!("no thread to look for names tables: {error}"), 1),
    }
}
