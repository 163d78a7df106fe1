//! Which of the VM's events are on, for those that the agent has enabled.

use et_jvm::jvmti::EventKind;
use jni_sys::jint;

use crate::abi::event;
use crate::hooks;
use crate::host::{self, Host, Phase};
use crate::refs;

const COMPILED: &[jint] = &[event::COMPILED_METHOD_LOAD, event::COMPILED_METHOD_UNLOAD];
const CONTENDED: &[jint] =
    &[event::MONITOR_CONTENDED_ENTER, event::MONITOR_CONTENDED_ENTERED, event::MONITOR_CONTENDED_EXIT];
const DEATHS: &[jint] = &[event::OBJECT_FREE, event::CLASS_UNLOAD, event::GC_START, event::GC_FINISH];
const REQUESTS: &[jint] = &[event::DATA_DUMP_REQUEST, event::DATA_RESET_REQUEST];

/// The JVMPI events that need each JVMTI event. Entries and exits go together, since exits depend on entries.
const SWITCHES: &[(EventKind, &[jint])] = &[
    (EventKind::MethodEntry, hooks::EVENTS),
    (EventKind::MethodExit, hooks::EVENTS),
    (EventKind::SampledObjectAlloc, &[event::OBJECT_ALLOC]),
    (EventKind::ClassFileLoadHook, &[event::CLASS_LOAD_HOOK]),
    (EventKind::CompiledMethodLoad, COMPILED),
    (EventKind::CompiledMethodUnload, COMPILED),
    (EventKind::SingleStep, &[event::INSTRUCTION_START]),
    (EventKind::MonitorContendedEnter, CONTENDED),
    (EventKind::MonitorContendedEntered, CONTENDED),
    (EventKind::GarbageCollectionFinish, DEATHS),
    (EventKind::DataDumpRequest, REQUESTS),
];

/// Those that are on in any case: what other events say needs them.
const ALWAYS: [EventKind; 5] = [
    EventKind::ThreadStart,
    EventKind::ThreadEnd,
    EventKind::ClassPrepare,
    EventKind::MonitorWait,
    EventKind::MonitorWaited,
];

/// Switches what an event needs, or all if none is named. Nothing happens before the VM is up.
pub fn apply(host: &Host, changed: Option<jint>) {
    if host.session.phase() != Phase::Live {
        return;
    }
    for (switch, kinds) in SWITCHES {
        if changed.is_none_or(|changed| kinds.contains(&changed)) {
            let on = host.is_any_enabled(kinds);
            match switch {
                EventKind::MethodEntry if hooks::are_there() => hooks::switch(host, on),
                EventKind::MethodExit if hooks::are_there() => {}
                // Classes get their hooks on their way into the VM.
                EventKind::ClassFileLoadHook => set(host, *switch, on || hooks::are_there()),
                _ => set(host, *switch, on),
            }
        }
    }
    if changed.is_none() {
        ALWAYS.into_iter().for_each(|switch| set(host, switch, true));
    }
    if host.is_any_enabled(&refs::EVENTS) {
        refs::install(host);
    }
}

fn set(host: &Host, switch: EventKind, on: bool) {
    if let Err(error) = host.jvmti.set_event(switch, on)
        && on
    {
        host::say(&format!("events of the VM are missing ({switch:?}): {error}"));
    }
}
