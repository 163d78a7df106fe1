//! The library as the VM sees it: an agent of JVMTI.
#![allow(unsafe_code, reason = "an entry point from C, with raw pointers of the VM")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

use et_jvm::env::{Env, MethodId, Object, Vm};
use et_jvm::jvmti::{Capability, EventKind, Jvmti, JvmtiError};
use et_jvm::listener::{ClassFile, CompiledCode, Listener, Returned};
use et_jvm::standard_files;
use jni_sys::{JNI_ERR, JNI_OK, JavaVM, jint};

use crate::abi::{ClassLoadHook, CompiledMethodLoad, CompiledMethodUnload, Details, Lineno, RawMonitorEvent, event};
use crate::classes;
use crate::clones;
use crate::deliver;
use crate::hooks;
use crate::host::{self, Host, Phase};
use crate::java_monitors;
use crate::library;
use crate::load;
use crate::methods;
use crate::objects;
use crate::raw_monitor;
use crate::sleep;
use crate::start;
use crate::starts;
use crate::steps;
use crate::sweep;

/// Those that must be asked for before the VM is up, when no agent has said yet what it wants.
const CAPABILITIES: [Capability; 17] = [
    Capability::TagObjects,
    Capability::Bytecodes,
    Capability::OwnedMonitorInfo,
    Capability::CurrentContendedMonitor,
    Capability::MonitorInfo,
    Capability::SourceFileName,
    Capability::LineNumbers,
    Capability::LocalVariables,
    Capability::SingleStepEvents,
    Capability::ThreadCpuTime,
    Capability::MethodEntryEvents,
    Capability::MethodExitEvents,
    Capability::AllClassHookEvents,
    Capability::CompiledMethodLoadEvents,
    Capability::MonitorEvents,
    Capability::NativeMethodBindEvents,
    Capability::GarbageCollectionEvents,
];

#[derive(Debug)]
struct Events {
    host: &'static Host,
}

impl Events {
    fn is_live(&self) -> bool {
        self.host.session.phase() == Phase::Live
    }

    /// As above, where the VM calls us with JNI.
    fn is_live_in(&self, env: Env) -> bool {
        let is_live = self.is_live();
        if is_live && self.host.counts_callers_references.load(Ordering::Relaxed) {
            // HotSpot ignores requests for no more than the 32 that every frame has.
            env.ensure_local_capacity(1024);
        }
        is_live
    }

    /// Reports a class file to the agent, if it is wanted; returns the replacement, if there is one.
    fn told_of_file(&self, env: Env, file: ClassFile<'_>, is_live: bool) -> Option<Vec<u8>> {
        if !self.host.session.is_enabled(event::CLASS_LOAD_HOOK) {
            return None;
        }
        if is_live {
            starts::announce(self.host, env);
        }
        let (class_data, class_data_len) = (file.bytes.as_ptr().cast_mut(), jint::try_from(file.bytes.len()).ok()?);
        let class_load_hook = ClassLoadHook {
            class_data,
            class_data_len,
            new_class_data: class_data,
            new_class_data_len: class_data_len,
            malloc_f: allocate,
        };
        let answer = deliver::ask(self.host, env.raw(), event::CLASS_LOAD_HOOK, Details { class_load_hook })?;
        // SAFETY: the event's own part of the union.
        let answer = unsafe { answer.class_load_hook };
        if std::ptr::eq(answer.new_class_data, class_data) || answer.new_class_data.is_null() {
            return None;
        }
        let length = usize::try_from(answer.new_class_data_len).ok()?;
        // SAFETY: the agent has written this many bytes there, in memory from `allocate`.
        unsafe {
            let file = std::slice::from_raw_parts(answer.new_class_data, length).to_vec();
            libc::free(answer.new_class_data.cast());
            Some(file)
        }
    }
}

impl Listener for Events {
    fn vm_init(&self, _jvmti: Jvmti, env: Env, _thread: Object) {
        start::begin(self.host, env);
    }

    fn vm_death(&self, env: Env) {
        start::end(self.host, env);
    }

    fn thread_start(&self, env: Env, thread: Object) {
        if self.is_live_in(env) {
            let record = crate::records::current(env.raw());
            starts::tell(self.host, env, thread, record);
        }
    }

    fn thread_end(&self, env: Env, _thread: Object) {
        if self.is_live_in(env) {
            starts::end(self.host, env);
        }
    }

    fn class_file(&self, env: Env, file: ClassFile<'_>) -> Option<Vec<u8>> {
        if self.host.session.phase() == Phase::Ended {
            return None;
        }
        let is_live = self.is_live_in(env);
        let told = if file.class.is_none() { self.told_of_file(env, file, is_live) } else { None };
        if !is_live {
            return told;
        }
        // Hooks are added to the agent's version.
        let bytes = told.as_deref().unwrap_or(file.bytes);
        hooks::into_class(self.host, bytes, file.class.is_some() && file.loader.is_none()).or(told)
    }

    fn class_prepare(&self, env: Env, class: Object) {
        if self.is_live_in(env) {
            starts::announce(self.host, env);
            if let Some(class) = classes::of(self.host, env, class) {
                hooks::prepared(&class);
                classes::tell(self.host, env.raw(), &class);
            }
        }
    }

    fn native_method_bind(&self, address: *const c_void) -> Option<*const c_void> {
        sleep::bound(address).or_else(|| clones::bound(address))
    }

    fn method_entry(&self, env: Env, thread: Object, method: MethodId) {
        if self.is_live_in(env) {
            methods::entered(self.host, env, thread, method.0);
        }
    }

    fn method_exit(&self, env: Env, thread: Object, method: MethodId, returned: Returned) {
        if self.is_live_in(env) {
            methods::left(self.host, env, thread, method.0);
        }
        if methods::returns_object(self.host, method) {
            // SAFETY: the method's return type is an object type.
            let object = unsafe { returned.object(env) };
            // All that a program returns would stay alive.
            object.into_iter().for_each(|object| env.delete_local(object));
        }
    }

    fn single_step(&self, env: Env, _thread: Object, method: MethodId, location: i64) {
        if self.is_live_in(env) {
            steps::step(self.host, env, method.0, location);
        }
    }

    fn compiled_method_load(&self, method: MethodId, code: CompiledCode<'_>) {
        let Some(env) = self.host.env().filter(|_| self.is_live()) else { return };
        starts::announce(self.host, env);
        let Some(known) = classes::tell_of_method(self.host, env, method.0) else { return };
        let line = |at: &et_jvm::listener::AddressLocation| Lineno {
            offset: (at.start_address as usize).wrapping_sub(code.address as usize) as jint,
            lineno: known.line(at.location),
        };
        let lines: Vec<Lineno> = code.map.iter().map(line).collect();
        let compiled_method_load = CompiledMethodLoad {
            method_id: method.0,
            code_addr: code.address,
            code_size: code.size,
            lineno_table_size: lines.len() as jint,
            lineno_table: lines.as_ptr(),
        };
        deliver::tell_definition(env.raw(), event::COMPILED_METHOD_LOAD, Details { compiled_method_load });
    }

    fn compiled_method_unload(&self, method: MethodId, address: *const c_void) {
        let Some(env) = self.host.env().filter(|_| self.is_live()) else { return };
        starts::announce(self.host, env);
        let compiled_method_unload = CompiledMethodUnload { method_id: method.0, code_addr: address };
        deliver::tell_definition(env.raw(), event::COMPILED_METHOD_UNLOAD, Details { compiled_method_unload });
    }

    fn data_dump_request(&self) {
        let Some(env) = self.host.env().filter(|_| self.is_live()) else { return };
        starts::announce(self.host, env);
        deliver::tell(env.raw(), event::DATA_DUMP_REQUEST, Details { nothing: () });
        deliver::tell(env.raw(), event::DATA_RESET_REQUEST, Details { nothing: () });
    }

    fn monitor_wait(&self, env: Env, _thread: Object, object: Object, timeout: i64) {
        if self.is_live_in(env) {
            java_monitors::wait(self.host, env, object, timeout);
        }
    }

    fn monitor_waited(&self, env: Env, _thread: Object, object: Object, _is_timed_out: bool) {
        if self.is_live_in(env) {
            java_monitors::waited(self.host, env, object);
        }
    }

    fn monitor_contended_enter(&self, env: Env, _thread: Object, object: Object) {
        if self.is_live_in(env) {
            java_monitors::contended_enter(self.host, env, object);
        }
    }

    fn monitor_contended_entered(&self, env: Env, _thread: Object, object: Object) {
        if self.is_live_in(env) {
            java_monitors::contended_entered(self.host, env, object);
        }
    }

    fn sampled_object_alloc(&self, env: Env, object: Object, class: Object, size: u64) {
        let is_told = self.is_live_in(env) && !starts::announce(self.host, env).is_inside();
        if is_told && !clones::is_unfinished(env, class, size) {
            objects::made(self.host, env, object, class, size);
        }
    }

    fn garbage_collection_finish(&self) {
        sweep::collection_finished();
    }

    fn panicked(&self, _env: Option<Env>, _why: &str) {
        self.host.session.panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// For the new class file of `CLASS_LOAD_HOOK`.
unsafe extern "C" fn allocate(bytes: u32) -> *mut c_void {
    // SAFETY: plain allocation.
    unsafe { libc::malloc(bytes as usize) }
}

fn current_env() -> usize {
    host::get().and_then(|host| host.env()).map_or(0, |env| env.raw() as usize)
}

/// Contention for a monitor of the agent's. Not from inside the agent.
fn tell_of_monitor(kind: jint, raw_monitor: RawMonitorEvent) {
    let env = current_env() as *mut jni_sys::JNIEnv;
    if !env.is_null() && host::get().is_some_and(|host| host.wants(kind)) {
        deliver::tell(env, kind, Details { raw_monitor });
    }
}

fn load(vm: Vm) -> Result<(), JvmtiError> {
    let jvmti = Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
    jvmti.add_capabilities(&CAPABILITIES)?;
    // One agent at a time may have these.
    let can_sample = jvmti.add_capabilities(&[Capability::SampledObjectAllocEvents]).is_ok();
    let can_suspend = jvmti.add_capabilities(&[Capability::Suspend]).is_ok();
    if !can_sample {
        host::say("another agent uses the allocation events of the VM: OBJECT_ALLOC is not available");
    }
    if !can_suspend {
        host::say("another agent suspends threads: SuspendThread does nothing");
    }
    if can_sample {
        jvmti.set_sampling_interval(0)?;
    }
    let Some(host) = host::set(Host::new(vm, jvmti, can_suspend, can_sample)) else {
        return Err(JvmtiError::NO_ENVIRONMENT);
    };
    let leaves_out = jvmti.system_property(c"et.jvmpi.virtual").is_some_and(|value| value == "no");
    host.tells_virtual.store(!leaves_out, Ordering::Relaxed);
    load::provide();
    raw_monitor::are_in(raw_monitor::Around { current_env, tell: tell_of_monitor });
    jvmti.listen(Box::leak(Box::new(Events { host })))?;
    // The VM's own natives are bound before it is up.
    jvmti.set_event(EventKind::NativeMethodBind, true)?;
    jvmti.set_event(EventKind::VmInit, true)?;
    jvmti.set_event(EventKind::VmDeath, true)
}

/// For agents that want class files: the VM's first classes are then loaded from the JDK's image and not from the
/// archive, so that their class files are reported as well. Other agents should not pay for that.
fn told_of_early_files() {
    let Some(host) = host::get().filter(|host| host.session.is_enabled(event::CLASS_LOAD_HOOK)) else { return };
    let early = host.jvmti.add_capabilities(&[Capability::EarlyClassHookEvents]);
    if let Err(error) = early.and_then(|()| host.jvmti.set_event(EventKind::ClassFileLoadHook, true)) {
        host::say(&format!("CLASS_LOAD_HOOK is not called for classes loaded before the VM is up: {error}"));
    }
}

/// Called by the VM during startup, for `-agentpath`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(raw: *mut JavaVM, options: *const c_char, _reserved: *mut c_void) -> jint {
    if host::get().is_some() {
        host::say("it is loaded twice: use one -agentpath for all agents, and name them with -Xrun");
        return JNI_ERR;
    }
    if host::is_traced() {
        host::say(host::TRACED);
        return JNI_ERR;
    }
    // Agents open files as well.
    standard_files::keep_numbers();
    // SAFETY: as the VM hands it over.
    let Some(vm) = (unsafe { Vm::new(raw) }) else { return JNI_ERR };
    if let Err(error) = load(vm) {
        host::say(&format!("cannot start: {error}"));
        return JNI_ERR;
    }
    // SAFETY: as above; a string that ends with zero, or null.
    unsafe {
        load::answer_get_env(raw);
        if options.is_null() || *options == 0 {
            return JNI_OK;
        }
        match library::load(raw, &CStr::from_ptr(options).to_string_lossy()) {
            Ok(()) => {
                told_of_early_files();
                JNI_OK
            }
            Err(why) => {
                host::say(&why);
                JNI_ERR
            }
        }
    }
}
