//! State of a VM, derived from its messages, in a form for the page and the shell.

mod bitmap;
mod contention;
mod memory;
mod threads;

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use et_ddm::message::Hello;
use et_ddm::ours::Allocations;
use et_ddm::{Malformed, Message};
use serde_json::{Value, json};

use bitmap::Bitmap;
use contention::Contention;
use memory::MemoryHistory;
use threads::Threads;
pub use threads::shortened;

/// Maximum number of a VM's features.
const MOST_FEATURES: usize = 100;

/// Maximum number of a VM's heaps.
const MOST_HEAPS: usize = 64;
/// Heaps that are described within this time are described together.
const AT_ONCE_MS: u64 = 30_000;

/// A notification: name and data of an event.
pub type News = (&'static str, Value);

/// A program, through all of its runs.
#[derive(Debug, Default)]
pub struct Vm {
    hello: Hello,
    features: Vec<String>,
    /// Where it listens; none: it has gone.
    port: Option<u16>,
    /// The port for debuggers of this VM; `None` if none could be opened.
    pub debugger_port: Option<u16>,
    /// Why it has ended.
    gone: Option<String>,
    runs: u32,
    since_ms: u64,
    waits_for_debugger: bool,
    /// Chunks that could not be read, and the last reason.
    malformed: (u64, Option<String>),
    threads: Threads,
    threads_changed: bool,
    memory: MemoryHistory,
    memory_changed: bool,
    contention: Contention,
    allocations: Option<Value>,
    /// Heaps that are being described: the VM's, and the native one.
    coming: [BTreeMap<u32, Bitmap>; 2],
    bitmaps: [BTreeMap<u32, Bitmap>; 2],
    /// Whether its entry in the list of VMs has changed.
    has_changed: bool,
}

/// The current time in milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(0))
}

impl Vm {
    /// A run begins. What is known of heap and monitors was the last run's.
    pub fn begin(&mut self, hello: Hello, port: u16) {
        let (runs, debugger_port) = (self.runs + 1, self.debugger_port);
        let hello = Hello { vm: shortened(hello.vm), application: shortened(hello.application), ..hello };
        *self = Self {
            hello,
            port: Some(port),
            runs,
            debugger_port,
            since_ms: now_ms(),
            has_changed: true,
            ..Self::default()
        };
    }

    /// The run has ended, or the connection was lost.
    pub fn end(&mut self, why: String) {
        self.port = None;
        self.gone = Some(why);
        self.has_changed = true;
        self.coming = Default::default();
    }

    /// Whether it is running.
    pub fn is_here(&self) -> bool {
        self.port.is_some()
    }

    pub fn pid(&self) -> u32 {
        self.hello.pid
    }

    /// Port on which it listens.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The program, by which its next run is known.
    pub fn application(&self) -> &str {
        &self.hello.application
    }

    /// Whether it supports the feature.
    pub fn can(&self, feature: &str) -> bool {
        self.features.iter().any(|it| it == feature)
    }

    /// Something that could not be read.
    pub fn malformed(&mut self, error: &Malformed) {
        self.malformed = (self.malformed.0 + 1, Some(error.to_string()));
        self.has_changed = true;
    }

    /// Takes in what it says. News that need not wait are returned; others come with [`Vm::news`].
    pub fn take(&mut self, message: Message) -> Option<News> {
        match message {
            Message::ApplicationName(name) => {
                self.hello.application = shortened(name);
                self.has_changed = true;
            }
            Message::Features(names) => {
                self.features = names.into_iter().take(MOST_FEATURES).map(shortened).collect();
                self.has_changed = true;
            }
            Message::Waits(0) => {
                self.waits_for_debugger = true;
                self.has_changed = true;
            }
            Message::ThreadStarted { id, name } | Message::ThreadRenamed { id, name } => {
                self.threads.named(id, name);
                self.threads_changed = true;
            }
            Message::ThreadEnded(id) => {
                self.threads.ended(id);
                self.threads_changed = true;
            }
            Message::ThreadStates(states) => {
                self.threads.states(&states.threads);
                self.threads_changed = true;
            }
            Message::HeapInfo(heaps) => {
                self.memory.add_info(&heaps);
                self.memory_changed = true;
            }
            Message::Memory(memory) => {
                self.memory.add_memory(memory);
                self.memory_changed = true;
            }
            Message::HeapStart { heap, native } => {
                let coming = &mut self.coming[usize::from(native)];
                if coming.len() < MOST_HEAPS || coming.contains_key(&heap) {
                    coming.insert(heap, Bitmap::new(heap));
                }
            }
            Message::HeapSegment(segment) => {
                let native = segment.form == et_ddm::segment::Form::Native;
                // Without a start nothing says that what was known is out of date.
                if let Some(bitmap) = self.coming[usize::from(native)].get_mut(&segment.heap) {
                    bitmap.add(&segment);
                }
            }
            Message::HeapEnd { heap, native } => {
                let mut bitmap = self.coming[usize::from(native)].remove(&heap)?;
                bitmap.end(now_ms());
                let told = json!({ "native": native, "timeMs": bitmap.time_ms });
                let known = &mut self.bitmaps[usize::from(native)];
                // Heaps that a VM no longer describes are dropped.
                known.retain(|_, old| bitmap.time_ms - old.time_ms < AT_ONCE_MS);
                if known.len() < MOST_HEAPS {
                    known.insert(heap, bitmap);
                }
                return Some(("bitmap", told));
            }
            Message::Events(events) => return Some(("monitors", self.contention.add(&events, &self.threads))),
            Message::Allocations(allocations) => {
                let told = allocated(&allocations);
                self.allocations = Some(told.clone());
                return Some(("allocations", told));
            }
            _ => {}
        }
        None
    }

    /// A debugger has come or gone.
    pub fn debugger_changed(&mut self) {
        self.waits_for_debugger = false;
        self.has_changed = true;
    }

    /// Whether [`Vm::news`] has any.
    pub fn has_news(&self) -> bool {
        self.has_changed || self.threads_changed || self.memory_changed
    }

    /// Changes since the last call, and whether the list of VMs has changed.
    pub fn news(&mut self) -> (Vec<News>, bool) {
        let mut news = Vec::new();
        let count = self.threads.len();
        if std::mem::take(&mut self.threads_changed)
            && let Some(threads) = self.threads.changes()
        {
            news.push(("threads", threads));
        }
        if std::mem::take(&mut self.memory_changed) {
            news.push(("heap", self.memory.last()));
        }
        // The list has the number of threads and the size of the heap.
        let list = std::mem::take(&mut self.has_changed) || (!news.is_empty() && count > 0);
        (news, list)
    }

    /// All that the page needs to begin with.
    pub fn all(&self) -> Vec<News> {
        let mut all =
            vec![("threads", self.threads.json()), ("heap", self.memory.json()), ("monitors", self.contention.json())];
        all.extend(self.allocations.clone().map(|it| ("allocations", it)));
        all.extend(self.bitmaps.iter().enumerate().filter_map(|(native, heaps)| {
            let time_ms = heaps.values().map(|it| it.time_ms).max()?;
            Some(("bitmap", json!({ "native": native == 1, "timeMs": time_ms })))
        }));
        all
    }

    /// Its entry in the list of VMs.
    pub fn row(&self, id: u32, has_debugger: bool) -> Value {
        let memory = self.memory.last();
        json!({
            "id": id,
            "pid": self.hello.pid,
            "application": self.hello.application,
            "vm": self.hello.vm,
            "here": self.is_here(),
            "gone": self.gone,
            "runs": self.runs,
            "sinceMs": self.since_ms,
            "port": self.port,
            "debuggerPort": self.debugger_port,
            "debugger": has_debugger,
            "waitsForDebugger": self.waits_for_debugger,
            "features": self.features,
            "threads": self.threads.len(),
            "heap": { "used": memory["used"], "size": memory["size"], "most": memory["most"] },
            "malformed": self.malformed.0,
            "malformedLast": self.malformed.1,
        })
    }

    pub fn threads(&self) -> Value {
        self.threads.json()["changed"].take()
    }

    /// The heap over time.
    pub fn heap(&self) -> Value {
        self.memory.json()
    }

    /// What threads waited for.
    pub fn monitors(&self) -> Value {
        self.contention.json()
    }

    /// The last report of allocations.
    pub fn allocations(&self) -> Option<Value> {
        self.allocations.clone()
    }

    /// The heaps as cells, as they were last described, one after the other.
    pub fn bitmap(&self, native: bool) -> Option<Value> {
        let mut heaps = self.bitmaps[usize::from(native)].values();
        let mut all = heaps.next()?.clone();
        heaps.for_each(|heap| all.append(heap));
        Some(all.json())
    }

    /// Whether a heap is being described.
    pub fn is_describing(&self, native: bool) -> bool {
        !self.coming[usize::from(native)].is_empty()
    }
}

fn allocated(allocations: &Allocations) -> Value {
    let sites: Vec<Value> = allocations
        .sites
        .iter()
        .map(|site| {
            json!({
                "class": shortened(site.class.clone()), "site": shortened(site.site.clone()), "context": shortened(site.context.clone()),
                "objects": site.objects, "bytes": site.bytes,
            })
        })
        .collect();
    json!({
        "timeMs": allocations.time_ms, "intervalMs": allocations.interval_ms, "objects": allocations.objects, "bytes": allocations.bytes,
        "sites": sites,
    })
}
