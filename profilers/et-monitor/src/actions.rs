//! Requests to a VM: each waits for its answer and returns it as JSON.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use et_ddm::heap::Walk;
use et_ddm::ours::features;
use et_ddm::{Message, Request};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::connection::{Connection, RequestError};
use crate::monitor::{Change, Monitor};

/// For what a VM answers at once.
const SHORT: Duration = Duration::from_secs(10);
/// For what takes a walk through its heap.
const LONG: Duration = Duration::from_secs(120);
/// For a file of the size of its heap.
const DUMP: Duration = Duration::from_secs(900);
/// How long a VM may take to end.
const EXIT: Duration = Duration::from_secs(10);
/// How long a VM may take from the end of a heap to the start of the next.
const BETWEEN_HEAPS: Duration = Duration::from_millis(150);
/// Rows and objects of an answer.
const MOST_ROWS: u32 = 10_000;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ActionError {
    #[error("there is no VM {0}")]
    NoVm(u32),
    #[error("VM {0} is gone")]
    Gone(u32),
    #[error("this VM does not offer {what}: {why}")]
    NotOffered { what: &'static str, why: &'static str },
    #[error("{path} is not an absolute path", path = path.display())]
    Relative { path: PathBuf },
    #[error("{path} exists", path = path.display())]
    Exists { path: PathBuf },
    #[error("the VM could not write {path} (result {result})", path = path.display())]
    Dump { path: PathBuf, result: u8 },
    #[error("the VM sent an unexpected answer")]
    Confused,
    #[error("the VM did not describe its heap within {} s", LONG.as_secs())]
    NoSegments,
    #[error("an exit code must be from 0 to 255, not {0}")]
    Status(u32),
    #[error(transparent)]
    Request(#[from] RequestError),
}

const AGENT: &str = "its agent has no such request";
const NO_LOG: &str = "its agent writes no log (option xml=FILE)";
const TRACED: &str = "only traced programs report what they allocate (et-instrument run)";

/// What is queried by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Object(u64),
    Class(u64),
    Monitor(u64),
    Instances { class: u64, most: u32 },
    Thread(u32),
    Stack(u32),
    Histogram { rows: u32 },
}

/// Sends requests to one VM.
#[derive(Clone, Debug)]
pub struct Actions {
    monitor: Arc<Monitor>,
    id: u32,
    connection: Connection,
}

impl Actions {
    /// For a VM that is running.
    pub fn on(monitor: &Arc<Monitor>, id: u32) -> Result<Self, ActionError> {
        match monitor.connection(id) {
            Some(connection) => Ok(Self { monitor: monitor.clone(), id, connection }),
            None if monitor.look(id, |_| ()).is_some() => Err(ActionError::Gone(id)),
            None => Err(ActionError::NoVm(id)),
        }
    }

    fn needs(&self, feature: &str, what: &'static str, why: &'static str) -> Result<(), ActionError> {
        match self.monitor.look(self.id, |vm| vm.can(feature)) {
            Some(true) => Ok(()),
            _ => Err(ActionError::NotOffered { what, why }),
        }
    }

    /// Runs a garbage collection.
    pub async fn collect_garbage(&self) -> Result<Value, ActionError> {
        self.connection.request(&Request::CollectGarbage, LONG).await?;
        Ok(json!({}))
    }

    /// Ends the program. What a debugger or a VM that is stuck makes of it is said.
    pub async fn exit(&self, status: u32) -> Result<Value, ActionError> {
        if status > 255 {
            return Err(ActionError::Status(status));
        }
        match self.connection.request(&Request::Exit { status }, EXIT).await {
            // It ends before it answers, or while it does.
            Ok(_) | Err(RequestError::Gone) => Ok(json!({ "status": status })),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a heap dump; the VM does, so that it must be able to.
    pub async fn dump(&self, path: &Path) -> Result<Value, ActionError> {
        if !path.is_absolute() {
            return Err(ActionError::Relative { path: path.to_owned() });
        }
        // As the VM sees it is another matter; where both see the same, nothing is overwritten.
        if path.exists() {
            return Err(ActionError::Exists { path: path.to_owned() });
        }
        let request = Request::DumpHeap { path: path.to_string_lossy().into_owned() };
        match self.connection.request(&request, DUMP).await? {
            None | Some(Message::HeapDumped(0)) => {
                let bytes = path.metadata().ok().map(|it| it.len());
                Ok(json!({ "path": path.to_string_lossy(), "bytes": bytes }))
            }
            Some(Message::HeapDumped(result)) => Err(ActionError::Dump { path: path.to_owned(), result }),
            Some(_) => Err(ActionError::Confused),
        }
    }

    /// Has all objects and references written into the log of the VM's agent.
    pub async fn log_heap(&self, name: String) -> Result<Value, ActionError> {
        self.needs(features::LOG, "heap dumps in a log", NO_LOG)?;
        match self.connection.request(&Request::LogHeap { name }, DUMP).await? {
            Some(Message::HeapLogged(it)) => Ok(json!({
                "dump": it.dump, "file": it.file, "objects": it.objects, "references": it.references, "roots": it.roots,
                "pauseUs": it.pause_us,
            })),
            _ => Err(ActionError::Confused),
        }
    }

    /// Requests a heap walk, immediately or after a collection, and waits until it is done.
    pub async fn walk(&self, native: bool, objects: bool, collect: bool) -> Result<Value, ActionError> {
        let mut changes = self.monitor.listen();
        let request =
            |when| if native { Request::NativeSegments { when } } else { Request::HeapSegments { when, objects } };
        if collect {
            self.connection.request(&Request::CollectGarbage, LONG).await?;
        }
        let collected = match self.connection.request(&request(Walk::Now), LONG).await {
            Ok(_) => false,
            // One that knows only the specification does it at a collection.
            Err(RequestError::Failed(_) | RequestError::Error(_)) => true,
            Err(error) => return Err(error.into()),
        };
        if collected {
            self.connection.request(&request(Walk::EveryGc), SHORT).await?;
            self.connection.request(&Request::CollectGarbage, LONG).await?;
        }
        let described = timeout(LONG, self.described(native, &mut changes)).await;
        if collected {
            let _ = self.connection.request(&request(Walk::Never), SHORT).await;
        }
        match described {
            Ok(true) => self.monitor.look(self.id, |vm| vm.bitmap(native)).flatten().ok_or(ActionError::NoSegments),
            Ok(false) => Err(ActionError::Gone(self.id)),
            Err(_) => Err(ActionError::NoSegments),
        }
    }

    /// Until the VM has said all of its heaps; false: it is gone.
    async fn described(&self, native: bool, changes: &mut Receiver<Change>) -> bool {
        loop {
            match changes.recv().await {
                Ok(change) if change.vm == Some(self.id) && change.event == "bitmap" => {
                    // Another heap may begin at once.
                    tokio::time::sleep(BETWEEN_HEAPS).await;
                    if !self.monitor.look(self.id, |vm| vm.is_describing(native)).unwrap_or(false) {
                        return true;
                    }
                }
                Err(RecvError::Closed) => return false,
                _ if self.monitor.connection(self.id).is_none() => return false,
                // Too much news to read them all: the map is what it is now.
                Err(RecvError::Lagged(_)) => return true,
                Ok(_) => {}
            }
        }
    }

    /// The size of the heap as it is now.
    pub async fn heap(&self) -> Result<Value, ActionError> {
        let request = match self.needs(features::MEMORY, "", "") {
            Ok(()) => Request::Memory,
            Err(_) => Request::HeapInfo(et_ddm::heap::When::Now),
        };
        if let Some(message) = self.connection.request(&request, SHORT).await? {
            self.monitor.take(self.id, message);
        }
        self.monitor.look(self.id, crate::vm::Vm::heap).ok_or(ActionError::NoVm(self.id))
    }

    /// The threads with the states that they have now.
    pub async fn threads(&self) -> Result<Value, ActionError> {
        self.connection.request(&Request::ThreadEvents { on: true }, SHORT).await?;
        let mut changes = self.monitor.listen();
        let _watched = self.monitor.watch(self.id);
        let id = self.id;
        // The next report, or what is known if there is nothing to report.
        let _ = timeout(Duration::from_millis(1500), async {
            while let Ok(change) = changes.recv().await {
                if change.vm == Some(id) && change.event == "threads" && !change.data.contains("\"initializing\"") {
                    break;
                }
            }
        })
        .await;
        self.monitor.look(id, crate::vm::Vm::threads).ok_or(ActionError::NoVm(id))
    }

    /// The last allocation report; reports arrive while the VM is being watched.
    pub fn allocations(&self) -> Result<Value, ActionError> {
        self.needs(features::ALLOCATIONS, "allocation rates", TRACED)?;
        Ok(self.monitor.look(self.id, crate::vm::Vm::allocations).flatten().unwrap_or(Value::Null))
    }

    /// Queries something by id.
    pub async fn ask(&self, asked: Asked) -> Result<Value, ActionError> {
        let (request, feature, what, patience) = match asked {
            Asked::Object(id) => (Request::Object(id), features::OBJECTS, "objects by id", SHORT),
            Asked::Class(id) => (Request::Class(id), features::OBJECTS, "classes by id", SHORT),
            Asked::Monitor(id) => (Request::Monitor(id), features::OBJECTS, "monitors by id", SHORT),
            Asked::Instances { class, most } => {
                (Request::Instances { class, most: most.min(MOST_ROWS) }, features::OBJECTS, "objects of a class", LONG)
            }
            Asked::Thread(id) => (Request::Thread(id), features::THREADS, "threads by id", SHORT),
            // In Android's monitors as well.
            Asked::Stack(thread) => (Request::Stack { thread }, "", "", SHORT),
            Asked::Histogram { rows } => {
                (Request::Histogram { rows: rows.min(MOST_ROWS) }, features::HISTOGRAM, "a histogram", LONG)
            }
        };
        if !feature.is_empty() {
            self.needs(feature, what, AGENT)?;
        }
        match self.connection.request(&request, patience).await? {
            Some(message) => answer(&message).ok_or(ActionError::Confused),
            None => Err(ActionError::NotOffered { what: "that", why: AGENT }),
        }
    }
}

/// Ids are text: JavaScript's numbers have 53 bits.
fn answer(message: &Message) -> Option<Value> {
    let id = |id: u64| id.to_string();
    Some(match message {
        Message::Object(it) => json!({
            "id": id(it.id), "class": id(it.class), "className": it.class_name, "size": it.size, "length": it.length,
            "thread": (it.thread > 0).then_some(it.thread),
        }),
        Message::Class(it) => json!({
            "id": id(it.id), "name": it.name, "superclass": id(it.superclass), "superclassName": it.superclass_name,
            "loader": it.loader, "source": it.source, "modifiers": it.modifiers,
        }),
        Message::Monitor(it) => json!({
            "object": id(it.object), "className": it.class_name, "owner": (it.owner > 0).then_some(it.owner), "entries": it.entries,
            "waiters": it.waiters, "notifyWaiters": it.notify_waiters,
        }),
        Message::Instances(it) => {
            let objects: Vec<Value> =
                it.objects.iter().map(|object| json!({ "id": id(object.id), "size": object.size })).collect();
            json!({ "class": id(it.class), "total": it.total, "objects": objects })
        }
        Message::Thread(it) => json!({
            "id": it.id, "name": it.name, "group": it.group, "parent": it.parent, "priority": it.priority, "daemon": it.is_daemon,
            "state": it.state.name(), "cpuNs": (it.cpu_ns != u64::MAX).then_some(it.cpu_ns),
            "waitsFor": (it.waits_for != 0).then(|| id(it.waits_for)),
        }),
        Message::Stack(it) => {
            let frames: Vec<Value> = it.frames.iter()
                .map(|frame| json!({ "class": frame.class, "method": frame.method, "file": frame.file, "line": frame.line })).collect();
            json!({ "thread": it.thread, "frames": frames })
        }
        Message::Histogram(it) => {
            let rows: Vec<Value> = it.rows.iter()
                .map(|row| json!({ "class": id(row.class), "name": row.name, "objects": row.objects, "bytes": row.bytes })).collect();
            json!({ "objects": it.objects, "bytes": it.bytes, "rows": rows })
        }
        _ => return None,
    })
}
