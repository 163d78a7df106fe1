//! Garbage collections, and reports of the collector on objects. All except [`Collections::ask_what_is_held`] may be
//! called at a safepoint, on any thread of the VM: no JNI, no JVMTI.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use et_format::event::Ticket;
use et_format::{GcRecord, Nanos};
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::Jvmti;
use et_jvm::sync::lock;

use super::collector::Collector;
use super::output::Output;
use super::run::Run;
use super::survival::Survival;

/// The collections of a run.
#[derive(Debug)]
pub struct Collections {
    /// Start of the current collection.
    current: Mutex<Option<(Ticket, Nanos)>>,
    /// Number of those that have finished.
    finished: AtomicU64,
    /// Reports which objects are freed; `None` without `deaths=gc`.
    pub collector: Option<Collector>,
    /// When to look at what has survived; `None` with `survival=0`.
    pub survival: Option<Survival>,
}

impl Collections {
    /// The state at the beginning of a run.
    pub fn new(collector: Option<Collector>, survival: Option<Survival>) -> Self {
        Self { current: Mutex::new(None), finished: AtomicU64::new(0), collector, survival }
    }

    /// Number of collections that have finished.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }

    /// All threads have been stopped for a collection.
    pub fn start(&self, run: &Run, output: &Output) {
        let now = (output.buffers.next_ticket(), run.nanos());
        *lock(&self.current) = Some(now);
        if let Some(collector) = &self.collector {
            collector.begins(output.queue, now.0);
        }
    }

    /// The collection has ended.
    pub fn finish(&self, run: &Run, output: &Output) {
        let started = lock(&self.current).take();
        if let Some((start, Nanos(start_nanos))) = started {
            output.queue.gc(GcRecord {
                start,
                finish: output.buffers.next_ticket(),
                start_nanos,
                finish_nanos: run.nanos().0,
                heap_used: 0,
                heap_committed: 0,
            });
            self.finished.fetch_add(1, Ordering::Release);
            if let Some(survival) = &self.survival {
                survival.collected();
            }
        }
    }

    /// The object with this tag was freed.
    pub fn freed(&self, output: &Output, tag: i64) {
        if let Some(collector) = &self.collector {
            collector.freed(output.queue, tag);
        }
    }

    /// Asks the collector about an object that the trace mentions.
    pub fn tag(&self, jvmti: Jvmti, object: Object, id: u32) {
        if let Some(collector) = &self.collector {
            collector.tag(jvmti, object, id);
        }
    }

    /// At the end: obtains all pending reports of the collector, and the objects that it still holds.
    pub fn ask_what_is_held(&self, output: &Output, jvmti: Jvmti, env: Env) {
        if let Some(collector) = &self.collector
            && let Err(error) = collector.end(output.queue, jvmti, env)
        {
            output.queue.problem(format!("the collector did not say what it held at the end: {error}"), 1);
        }
    }
}
