//! From `VMInit` to `JVM_INIT_DONE`: reports what already exists in the order that agents need. And shutdown.

use std::sync::atomic::Ordering;

use et_jvm::env::Env;
use et_jvm::flags::Flags;
use et_jvm::hotspot::HotSpot;

use crate::abi::{Details, NewArena, event};
use crate::classes;
use crate::deliver;
use crate::functions::ASKED;
use crate::hooks;
use crate::host::{self, Host, Phase};
use crate::ids;
use crate::objects;
use crate::sizes;
use crate::sleep;
use crate::starts;
use crate::sweep;
use crate::switches;
use et_jvmpi_interface::session::{THROWN, counted};

const NOTHING: Details = Details { nothing: () };

/// Classes that agents must know before all others.
const FIRST: [&std::ffi::CStr; 4] = [c"java/lang/Object", c"java/lang/Class", c"java/lang/Thread", c"java/lang/String"];

/// Called when the VM is live.
pub fn begin(host: &'static Host, env: Env) {
    if ASKED.load(Ordering::Relaxed) == 0 {
        host::say(
            "no agent requested the interface: load one with -Xrun<name>:<options>, or =PATH:OPTIONS after -agentpath",
        );
        host.session.enter(Phase::Ended);
        return;
    }
    // It may be loaded after us.
    if host::is_traced() {
        host::say(host::TRACED);
        host.session.enter(Phase::Ended);
        return;
    }
    let release = host.jvmti.system_property(c"java.vm.specification.version").unwrap_or_default();
    sleep::vm_is_of(&release);
    host.counts_callers_references.store(release == "11" && host::is_jni_checked(), Ordering::Relaxed);
    let Some(hotspot) = HotSpot::find(env, &release) else {
        host::say("this VM is not HotSpot: no events are available");
        host.session.enter(Phase::Ended);
        return;
    };
    let _ = host.hotspot.set(hotspot);
    let shift =
        env.frame(4, |env| env.find_class(c"java/lang/Object").and_then(|class| ids::probe_shift(host, env, class)));
    let _ = host.shift.set(shift);
    if shift.is_none() {
        host::say(
            "mark words are not where they are in Java 11 to 25: heap dumps are refused, and deaths take longer to find",
        );
    }
    let layout = if shift.is_some() { sizes::probe(host, env) } else { None };
    let _ = host.layout.set(layout);
    starts::find_distance(host, env);
    hooks::find(host, env);
    host.session.enter(Phase::Live);
    let new_arena = NewArena { arena_id: objects::ARENA, arena_name: c"Java heap".as_ptr() };
    deliver::tell(env.raw(), event::ARENA_NEW, Details { new_arena });
    for name in FIRST {
        classes::tell_by_name(host, env, name);
    }
    // Once before reporting linked classes, since this links classes, and once for those linked in the meantime.
    classes::tell_all(host, env);
    switches::apply(host, None);
    classes::tell_all(host, env);
    starts::tell_all(host, env);
    if host.session.is_enabled(event::OBJECT_ALLOC) {
        say_what_is_left_out(env, &release);
        // Threads have allocation buffers from before, in which allocations cause no events.
        let _ = host.jvmti.collect_garbage();
        objects::tell_all(host, env);
    }
    if host.is_any_enabled(&[event::COMPILED_METHOD_LOAD, event::COMPILED_METHOD_UNLOAD]) {
        let _ = host.jvmti.tell_compiled_methods();
    }
    if let Err(error) = sweep::start_thread(host, env) {
        host::say(&format!("deaths are reported only at the end: {error}"));
    }
    deliver::tell(env.raw(), event::JVM_INIT_DONE, NOTHING);
}

/// HotSpot 11 resizes G1's thread-local buffers without regard to sampling, so some allocations cause no events and
/// cannot be counted: of 2004 objects in a test 1749 were reported with G1, and all with other collectors, without
/// these buffers, and in later releases.
fn say_what_is_left_out(env: Env, release: &str) {
    if release != "11" {
        return;
    }
    let flags = Flags::find(env);
    let is_on = |name| flags.and_then(|flags| flags.is_on(name)) != Some(false);
    if is_on(c"UseG1GC") && is_on(c"UseTLAB") {
        host::say("Java 11 with G1 does not report all allocations: add -XX:-UseTLAB or -XX:+UseParallelGC to get all");
    }
}

/// Called at VM shutdown.
pub fn end(host: &'static Host, env: Env) {
    if host.session.phase() != Phase::Live {
        return;
    }
    // Agents switch all events off when the VM goes down, and ask for dumps then: what is in those must be known.
    classes::tell_last(host, env);
    sweep::vm_ends(host, env);
    starts::announce(host, env);
    deliver::tell(env.raw(), event::JVM_SHUT_DOWN, NOTHING);
    host.session.enter(Phase::Ended);
    hooks::end(host, env);
    let left_out = &host.left_out;
    let of_virtual_threads = match hooks::are_there() {
        true => "entries and exits of virtual threads and their carriers, which hooks do not report",
        false => "entries and exits of virtual threads (-Det.jvmpi.virtual=no)",
    };
    let counts = counted(&[
        (&left_out.gate, "batches of deaths that went on without a thread inside the agent"),
        (&left_out.virtual_threads, of_virtual_threads),
        (&left_out.objects, "references in dumps to objects that could not be identified"),
        (&left_out.unhooked, "classes that could not be given hooks, with all entries and exits of their methods"),
        (&left_out.too_large, "methods that are too large for hooks, with their entries and exits"),
        (&left_out.overflows, "exits at the end of a stack"),
        (&host.session.thrown, THROWN),
        (&left_out.java_exceptions, "exceptions of Java that the agent left pending in events, and which were dropped"),
        (&host.session.panics, "internal errors"),
    ]);
    if !counts.is_empty() {
        host::say(&format!("left out: {}", counts.join("; ")));
    }
}
