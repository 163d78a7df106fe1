//! Invariants of contention and waits.

use et_format::MonitorEvent;
use et_names::units::counted;
use et_reader::Trace;
use rustc_hash::FxHashMap;

/// Of each kind the first is described, the others are counted.
pub fn check(trace: &Trace, mut add: impl FnMut(String)) {
    let mut before: FxHashMap<u32, u64> = FxHashMap::default();
    let mut found: Vec<(&str, u64, String)> = Vec::new();
    let mut violation = |what: &'static str, record: &et_format::MonitorRecord| match found
        .iter_mut()
        .find(|(known, ..)| *known == what)
    {
        Some((_, count, _)) => *count += 1,
        None => found.push((what, 1, format!("thread {:x}, ticket {}", record.thread, record.ticket.0))),
    };
    let is_known = |thread: u32| trace.thread(thread).is_some();
    for record in &trace.monitors {
        if record.thread == 0 || !is_known(record.thread) {
            violation("no thread record has this thread", record);
        }
        if record.object.is_null() {
            violation("it is of no object", record);
        }
        let last = before.entry(record.thread).or_default();
        if record.nanos < *last {
            violation("its time is before that of the one before it in its thread", record);
        }
        *last = record.nanos;
        if let MonitorEvent::Enter { owner, .. } = record.what {
            if owner == record.thread {
                violation("it waits for itself", record);
            } else if owner != 0 && !is_known(owner) {
                violation("no thread record has the owner", record);
            }
        }
    }
    let alone = et_reader::blocked::all(&trace.monitors).ends_alone;
    // Waits may have begun before the trace did, one of each thread.
    let threads = trace.threads.iter().filter(|thread| thread.from_start).count() as u64;
    if alone > threads {
        add(format!("{} of monitors without a beginning", counted(alone, "end")));
    }
    for (what, count, first) in found {
        add(format!("monitors: {what}: {}, the first is {first}", counted(count, "record")));
    }
}
