//! Starts a run after the VM is up, before the program's first class runs.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use et_format::event::Ticket;
use et_format::{ArrayLayout, BlockKind, Jvm, Meta, encode_json};
use et_jvm::sync::lock;

use et_rewriter::rewrite::EventSet;

use crate::actions::id_supply;
use crate::base::patience::Patience;
use crate::base::report::say;
use crate::base::signals;
use crate::buffers::{self, Buffers};
use crate::classes::slots::{self, Slots};
use crate::classes::unloading::Unloading;
use crate::classes::{ClassTables, records};
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
use crate::proxy::{ClassWord, Locks, Mirrors, Proxy, Settings};
use crate::stacks::Stacks;
use crate::tracer::Tracer;
use crate::tracer::collections::Collections;
use crate::tracer::collector::Collector;
use crate::tracer::machine::Machine;
use crate::tracer::object_ids::ObjectIds;
use crate::tracer::output::Output;
use crate::tracer::run::Run;
use crate::tracer::survival::Survival;
use crate::tracer::vm_calls::Call;
use crate::tracing::Tracing;
use crate::tracing::begin::StartError;
use crate::tracing::control::Control;
use crate::tracing::{slices, survivors};
use et_jvm::env::{Env, Object, Vm};
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::{Capability, EventKind, Jvmti, JvmtiError};
use et_jvm::threads::{CurrentThread, agent_thread};

/// State from before the VM is up.
#[derive(Debug)]
pub struct Prepared {
    /// The queue, and the classes created at run time so far.
    pub early: &'static Early,
    /// Destination of the trace.
    pub sink: Sink,
    /// How long to wait for the reader of the trace.
    pub patience: Arc<Patience>,
}

/// The VM, on the thread that it starts on.
#[derive(Clone, Copy)]
struct Start<'a> {
    vm: Vm,
    jvmti: Jvmti,
    env: Env<'a>,
    thread: Object<'a>,
    options: &'a Options,
}

/// Begins tracing on the thread that the VM started on, in three steps: inspects the VM, creates the tracer and
/// installs the hooks, switches them on.
pub fn run(
    vm: Vm,
    jvmti: Jvmti,
    env: Env,
    thread: Object,
    options: &Options,
    prepared: Prepared,
) -> Result<(), StartError> {
    let start = Start { vm, jvmti, env, thread, options };
    let ground = match start.look(&prepared.sink) {
        Ok(ground) => ground,
        Err(error) => {
            prepared.sink.discard();
            return Err(error);
        }
    };
    match start.install(ground, prepared)? {
        Some(installed) => start.open(installed),
        None => Ok(()),
    }
}

/// What tracing requires from the VM and the system.
struct Ground {
    run: Run,
    /// Wall-clock time of the run's start; times in the trace are relative to it.
    started: SystemTime,
    java_home: String,
    /// The Java version, as in `java.vm.specification.version`.
    release: String,
    proxy: Proxy,
    hotspot: HotSpot,
    buffers: Buffers,
}

/// The tracer, with the hooks installed but off.
struct Installed {
    tracer: &'static Tracer,
    tracing: &'static Tracing,
    /// The first block of the trace.
    meta: Meta,
    scheme: Scheme,
    hashes_show: bool,
    mirrors: Mirrors,
    /// Whether unloaded classes will be reported.
    unloading: Result<(), JvmtiError>,
    release: String,
}

impl Start<'_> {
    fn property(&self, name: &CStr) -> String {
        self.jvmti.system_property(name).unwrap_or_default()
    }

    /// First step: finds the Java half and the VM's functions, and creates the buffers. A failure leaves nothing
    /// behind.
    fn look(&self, sink: &Sink) -> Result<Ground, StartError> {
        let Self { env, options, .. } = *self;
        let (run, started) = (Run::begin(), SystemTime::now());
        let java_home = self.property(c"java.home");
        let proxy = Proxy::find(env).and_then(|proxy| proxy.link(env).map(|()| proxy));
        let proxy = proxy.map_err(|error| StartError::of_proxy(error, java_home.clone()))?;
        reflection::hide_fields(env);
        let release = self.property(c"java.vm.specification.version");
        let hotspot = HotSpot::find(env, &release).ok_or(StartError::NotHotSpot)?;
        let buffers = Buffers::create(&sink.buffer_place(), options.buffer_bytes, run.id)?;
        let buffers = if options.counts.is_some() { buffers.with_index() } else { buffers };
        Ok(Ground { run, started, java_home, release, proxy, hotspot, buffers })
    }

    /// Second step: creates the tracer, which gets JVMTI's events from here on, and installs what hooks need. `None`
    /// if there is already a tracer.
    fn install(&self, ground: Ground, prepared: Prepared) -> Result<Option<Installed>, StartError> {
        let Self { vm, jvmti, env, thread, options } = *self;
        let Ground { run, started, java_home, release, proxy, hotspot, buffers } = ground;
        let Prepared { early, mut sink, patience } = prepared;
        sink.hand_over(buffers.file());
        // The VM would print warnings about signal handlers that are not its own.
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
        let ids = ObjectIds::new(ids::space(drawn.last().copied().unwrap_or(1)));
        let current_thread = CurrentThread::find(env);
        let machine = Machine { vm, jvmti, hotspot, current_thread, proxy, sizes_known };
        let packers = Packers::new(Limits::here(options.writers));
        let output = Output::new(buffers, &early.queue, packers, patience, sink, options.discard);
        let classes = ClassTables::new(slots, dynamic, &early.ids);
        let collections = Collections::new(options.collector.map(Collector::new), options.survival.map(Survival::new));
        let tracer = Tracer::new(run, machine, output, classes, ids, collections, options.monitors);
        let tracer = tracer.with_stacks(Stacks::new(options.stacks));
        let Some(tracer) = tracer.install() else { return Ok(None) };

        let tracing = Tracing::new(tracer, Control::new(options.start.clone(), options.stop.clone()));
        let unloading = Unloading::new(vm, tracing).map(|unloading| _ = tracer.classes.unloading.set(unloading));
        // From here on, events go to the tracer.
        jvmti.listen(tracing)?;
        if proxy.jdk_events().has(EventSet::STACKS) {
            // Frames are told from the code of their methods.
            jvmti.add_capabilities(&[Capability::Bytecodes, Capability::ConstantPool])?;
        }
        if options.counts.is_some() {
            crate::proxy::count();
        }
        proxy.set(env, settings(tracer, &array_layout));
        proxy.set_places(env, &array_layout, tracer.classes.slots.hidden_stores());
        let hash_shift = proxy.probe_hash_shift(env);
        let scheme = id_supply::begin(tracer, env, options.ids, ids::is_full_period(&drawn), hash_shift);
        if hash_shift.is_some() && scheme != Scheme::Tags {
            tracer.ids.locks.get_or_init(|| proxy.probe_locks(env));
        }
        early.publish(env, |class| tracer.id(env, class));
        if let Some(rates) = rates::get() {
            rates.layout(&array_layout);
        }
        let locks = tracer.ids.locks.get().copied().unwrap_or(Locks::Unknown);
        let meta = self.meta(started, java_home, (scheme, locks), array_layout);
        let hashes_show = hash_shift.is_some();
        Ok(Some(Installed { tracer, tracing, meta, scheme, hashes_show, mirrors, unloading, release }))
    }

    /// Third step: starts the writer, and begins tracing or waits for the event of option `start`.
    fn open(&self, installed: Installed) -> Result<(), StartError> {
        let Self { jvmti, env, thread, .. } = *self;
        let Installed { tracer, tracing, .. } = installed;
        let queue = tracer.output.queue;
        queue.block(BlockKind::Meta, encode_json(&installed.meta));
        if let Err(error) = &installed.unloading {
            queue.problem(
                format!("what the runtime keeps for classes stays in memory when they are unloaded: {error}"),
                1,
            );
        }
        self.say_what_is_not_known(&installed);
        if let Err(error) = jni_table::install(jvmti) {
            queue.problem(format!("objects and references made by native code show late: {error}"), 1);
        }
        let caller = agent_thread(jvmti, env, c"elephant-tracks VM calls", move |env| tracer.call_vm(env));
        let caller = caller.map_err(|_| StartError::Thread).inspect_err(|_| tracer.abandon(env))?;
        tracing.control.own_thread(env, caller);
        // Wait until it runs: its start must not be taken for that of a program thread.
        _ = tracer.vm_calls.make(Call::Overflows);
        let writer = agent_thread(jvmti, env, c"elephant-tracks writer", move |_| tracer.write());
        let writer = writer.map_err(|_| StartError::Thread).inspect_err(|_| tracer.abandon(env))?;
        tracing.control.own_thread(env, writer);
        tracer.output.writer_runs.wait();
        tracer.machine.proxy.switch_rewriting(env, tracer.classes.dynamic.is_some());
        jvmti.set_event(EventKind::ClassFileLoadHook, true)?;
        if let Some(slice) = self.options.counts {
            slices::begin(tracer, slice);
        }
        survivors::begin(tracer, &tracing.control, env).inspect_err(|_| tracer.abandon(env))?;
        tracing.control.open(tracer, env, thread)?;
        look_for_names(&tracer.output, jvmti, installed.meta.java_home, self.options);
        Ok(())
    }

    /// The first block: describes the run.
    fn meta(
        &self,
        started: SystemTime,
        java_home: String,
        (scheme, locks): (Scheme, Locks),
        array_layout: ArrayLayout,
    ) -> Meta {
        Meta {
            tool: format!("elephant-tracks {}", env!("CARGO_PKG_VERSION")),
            pid: std::process::id(),
            start_unix_millis: started.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64),
            jvm: Jvm { name: self.property(c"java.vm.name"), version: self.property(c"java.vm.version") },
            java_home,
            command: self.property(c"sun.java.command"),
            options: self.options.given.clone(),
            id_scheme: scheme.name().into(),
            locked_ids: locks.name().into(),
            array_layout,
            start_ticket: Ticket(0),
        }
    }

    /// Notes in the trace what is missing because the VM is not a known one.
    fn say_what_is_not_known(&self, installed: &Installed) {
        let Installed { tracer, scheme, mirrors, .. } = *installed;
        let queue = tracer.output.queue;
        if scheme == Scheme::Tags && self.options.ids != Scheme::Tags {
            let line = "identity hashes may repeat, so every object is tagged, which is slow: run java with \
                 -XX:+UnlockExperimentalVMOptions -XX:hashCode=0";
            say(line);
            queue.problem(line, 1);
        }
        if !installed.hashes_show && scheme != Scheme::Tags {
            queue.problem("identity hashes do not show in object headers, every id is asked for", 1);
        }
        if !tracer.machine.sizes_known {
            queue.problem("the VM's instance sizes could not be read, sizes of new objects are not known", 1);
        }
        if !tracer.classes.slots.are_known() {
            queue.problem("the VM's field ids could not be read, stores by native code and Unsafe name no field", 1);
        }
        if mirrors.statics.is_none() {
            queue.problem("static fields could not be found in class mirrors, constants of classes show late", 1);
        }
        if mirrors.lock.is_none() {
            let line = "the locks under which the VM initializes classes (an int[0] each) could not be found in class mirrors, \
                 and are not recorded";
            queue.problem(line, 1);
        }
        if !tracer.machine.hotspot.finds_resolved_references() {
            let line = format!(
                "the arrays in which classes keep their constants show late: it is not known where the VM of Java {} has them",
                installed.release
            );
            queue.problem(line, 1);
        }
    }
}

/// Settings for the hooks.
fn settings(tracer: &'static Tracer, arrays: &ArrayLayout) -> Settings {
    Settings {
        slice: slices::address(),
        index: tracer.output.buffers.index(),
        class_word: ClassWord::of(arrays),
        alignment: arrays.object_alignment,
        counter: std::ptr::from_ref(tracer.output.buffers.counter()) as usize,
        chunk_room: tracer.output.buffers.room(),
        nowhere: buffers::nowhere(),
        known: tracer.ids.known.as_ptr() as usize,
        classes: records::table_address(),
        layouts: slots::table_address(),
        stacks: tracer.stacks.first_table(),
        asked: tracer.collections.collector.as_ref().map_or(0, |collector| collector.share().get()),
    }
}

/// Whether the VM periodically checks that signal handlers are its own (`-Xcheck:jni`).
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

/// Identity hashes of new objects, drawn consecutively.
fn draw(env: Env, hotspot: &HotSpot, count: i32) -> Vec<u32> {
    env.frame(count, |env| {
        (0..count).filter_map(|_| env.new_byte_array(0)).map(|object| hotspot.identity_hash(env, object)).collect()
    })
}

/// Properties with class paths. `--patch-module` has none: its paths are given by the option `names`.
const PATHS: [&CStr; 4] =
    [c"java.class.path", c"jdk.module.path", c"jdk.module.upgrade.path", c"jdk.boot.class.path.append"];

/// Searches for names tables on a separate thread: reading jars takes longer than everything else, and is not needed
/// before the end.
fn look_for_names(output: &'static Output, jvmti: Jvmti, java_home: String, options: &Options) {
    let mut places = Places { java_home: PathBuf::from(java_home), paths: options.names.clone() };
    for name in PATHS {
        if let Some(list) = jvmti.system_property(name) {
            places.add_list(&list);
        }
    }
    let search = std::thread::Builder::new()
        .name("elephant-tracks names".into())
        .spawn(move || names::find(&places, output.queue));
    match search {
        Ok(search) => *lock(&output.names) = Some(search),
        Err(error) => output.queue.problem(format!("no thread to look for names tables: {error}"), 1),
    }
}
