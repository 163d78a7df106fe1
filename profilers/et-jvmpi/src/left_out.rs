//! Counts what the agent requested and a trace does not contain; printed at the end.

use std::sync::atomic::{AtomicU64, Ordering};

use et_jvmpi_interface::abi::event;
use et_jvmpi_interface::session::{Session, THROWN, counted};
use jni_sys::jint;

/// Counts of requests that a trace cannot answer.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Events that were enabled and that no trace has: a bit for each.
    never: AtomicU64,
    /// Dumps that were requested.
    pub dumps: AtomicU64,
    /// Calls of functions of JNI, and translations of ids from and to its references.
    pub jni: AtomicU64,
    /// Collections that were asked for before the simulated collector's own.
    pub collections: AtomicU64,
    /// Entries and exits of methods that no names table has.
    pub methods: AtomicU64,
}

/// Events that never occur in a replay.
const NEVER: [(jint, &str); 19] = [
    (event::COMPILED_METHOD_LOAD, "COMPILED_METHOD_LOAD"),
    (event::COMPILED_METHOD_UNLOAD, "COMPILED_METHOD_UNLOAD"),
    (event::INSTRUCTION_START, "INSTRUCTION_START"),
    (event::CLASS_LOAD_HOOK, "CLASS_LOAD_HOOK"),
    (event::CLASS_UNLOAD, "CLASS_UNLOAD"),
    (event::JNI_GLOBALREF_ALLOC, "JNI_GLOBALREF_ALLOC"),
    (event::JNI_GLOBALREF_FREE, "JNI_GLOBALREF_FREE"),
    (event::JNI_WEAK_GLOBALREF_ALLOC, "JNI_WEAK_GLOBALREF_ALLOC"),
    (event::JNI_WEAK_GLOBALREF_FREE, "JNI_WEAK_GLOBALREF_FREE"),
    (event::DATA_DUMP_REQUEST, "DATA_DUMP_REQUEST"),
    (event::DATA_RESET_REQUEST, "DATA_RESET_REQUEST"),
    (event::RAW_MONITOR_CONTENDED_ENTER, "RAW_MONITOR_CONTENDED_ENTER"),
    (event::RAW_MONITOR_CONTENDED_ENTERED, "RAW_MONITOR_CONTENDED_ENTERED"),
    (event::RAW_MONITOR_CONTENDED_EXIT, "RAW_MONITOR_CONTENDED_EXIT"),
    (event::MONITOR_CONTENDED_ENTER, "MONITOR_CONTENDED_ENTER"),
    (event::MONITOR_CONTENDED_ENTERED, "MONITOR_CONTENDED_ENTERED"),
    (event::MONITOR_CONTENDED_EXIT, "MONITOR_CONTENDED_EXIT"),
    (event::MONITOR_WAIT, "MONITOR_WAIT"),
    (event::MONITOR_WAITED, "MONITOR_WAITED"),
];

impl LeftOut {
    /// The agent has enabled an event.
    pub fn enabled(&self, kind: jint) {
        if NEVER.iter().any(|(never, _)| *never == kind) {
            self.never.fetch_or(1 << kind, Ordering::Relaxed);
        }
    }

    /// One line; none if nothing was left out.
    pub fn line(&self, session: &Session) -> Option<String> {
        let mut all = counted(&[
            (&self.dumps, "requests for dumps"),
            (&self.jni, "calls that need a VM: functions of JNI, references for ids"),
            (&self.collections, "requests for collections: the simulated collector has its own time"),
            (&self.methods, "entries and exits of methods that no names table has"),
            (&session.thrown, THROWN),
            (&session.panics, "internal errors"),
        ]);
        let never = self.never.load(Ordering::Relaxed);
        let names: Vec<&str> = NEVER.iter().filter(|(kind, _)| never & 1 << kind != 0).map(|(_, name)| *name).collect();
        if !names.is_empty() {
            all.push(format!("events that a replay does not have: {}", names.join(", ")));
        }
        (!all.is_empty()).then(|| format!("left out: {}", all.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_one_line() {
        let left_out = LeftOut::default();
        left_out.enabled(event::METHOD_ENTRY);
        left_out.enabled(event::OBJECT_MOVE);
        assert_eq!(left_out.line(&Session::default()), None);
        left_out.enabled(event::MONITOR_WAIT);
        left_out.enabled(event::CLASS_UNLOAD);
        left_out.dumps.fetch_add(2, Ordering::Relaxed);
        assert_eq!(
            left_out.line(&Session::default()).unwrap(),
            "left out: 2 requests for dumps; events that a replay does not have: CLASS_UNLOAD, MONITOR_WAIT"
        );
    }
}
