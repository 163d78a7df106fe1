//! Answers to data requests: objects, classes, monitors and threads by id.

use crate::threads::ThreadState;
use crate::wire::{Malformed, Reader, Writer};

/// An object (`ETOB`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Object id.
    pub id: u64,
    /// Id of its class.
    pub class: u64,
    pub class_name: String,
    /// Size in the heap in bytes.
    pub size: u64,
    /// Elements, if it is an array.
    pub length: Option<u32>,
    /// The VM's number for the thread that allocated it; 0 if that is not known.
    pub thread: u32,
}

/// A class (`ETCL`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassInfo {
    /// Class id.
    pub id: u64,
    /// Name with dots.
    pub name: String,
    /// 0 for `Object`, interfaces and primitive types.
    pub superclass: u64,
    /// The name of its superclass; empty if there is none.
    pub superclass_name: String,
    /// The class of its loader; empty for the boot loader.
    pub loader: String,
    /// The source file; empty if that is not known.
    pub source: String,
    /// As in the class file (JVMS §4.1).
    pub modifiers: u32,
}

/// The owner of a monitor, and the threads that wait for it (`ETMU`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorUsage {
    /// Id of the object that the monitor belongs to.
    pub object: u64,
    /// Class of the object.
    pub class_name: String,
    /// Thread id of the owner; 0 if there is none.
    pub owner: u32,
    /// How often the owner has entered it.
    pub entries: u32,
    /// Threads blocked on entry.
    pub waiters: Vec<u32>,
    /// Threads in `wait()` that have not been notified.
    pub notify_waiters: Vec<u32>,
}

/// A thread (`ETTH`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Thread id.
    pub id: u32,
    pub name: String,
    /// Name of the thread group.
    pub group: String,
    /// The name of the thread that started it, as far as that is known.
    pub parent: String,
    /// Priority from 1 to 10.
    pub priority: u32,
    /// The VM does not wait for it to end.
    pub is_daemon: bool,
    pub state: ThreadState,
    /// CPU time; `u64::MAX` if the VM does not say.
    pub cpu_ns: u64,
    /// Id of the object whose monitor it waits for or on; 0 if there is none.
    pub waits_for: u64,
}

/// An object in a list of a class's instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// Object id.
    pub id: u64,
    /// Size in the heap in bytes.
    pub size: u64,
}

/// Objects of a class (`ETIN`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instances {
    pub class: u64,
    /// Total number of instances.
    pub total: u64,
    /// Instances, up to the requested number.
    pub objects: Vec<Instance>,
}

/// A heap dump that went to the log (`ETLH`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapLogged {
    /// Number of the dump in the log.
    pub dump: u32,
    /// The file, as the VM sees it.
    pub file: String,
    /// Objects that can be reached.
    pub objects: u64,
    /// Number of references between them.
    pub references: u64,
    /// References from outside the heap.
    pub roots: u64,
    /// How long the program stood, in microseconds.
    pub pause_us: u32,
}

impl ObjectInfo {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("an ETOB chunk", data);
        let (id, class, class_name, size) = (r.u8()?, r.u8()?, r.text()?, r.u8()?);
        let (is_array, length, thread) = (r.flag()?, r.u4()?, r.u4()?);
        r.end()?;
        Ok(Self { id, class, class_name, size, length: is_array.then_some(length), thread })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.id).u8(self.class).text(&self.class_name).u8(self.size);
        out.u1(self.length.is_some().into()).u4(self.length.unwrap_or(0)).u4(self.thread);
        out.finish()
    }
}

impl ClassInfo {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("an ETCL chunk", data);
        let (id, name, superclass, superclass_name) = (r.u8()?, r.text()?, r.u8()?, r.text()?);
        let (loader, source, modifiers) = (r.text()?, r.text()?, r.u4()?);
        r.end()?;
        Ok(Self { id, name, superclass, superclass_name, loader, source, modifiers })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.id).text(&self.name).u8(self.superclass).text(&self.superclass_name);
        out.text(&self.loader).text(&self.source).u4(self.modifiers);
        out.finish()
    }
}

impl MonitorUsage {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("an ETMU chunk", data);
        let (object, class_name, owner, entries) = (r.u8()?, r.text()?, r.u4()?, r.u4()?);
        let mut threads = || -> Result<Vec<u32>, Malformed> {
            let count = r.count(4)?;
            (0..count).map(|_| r.u4()).collect()
        };
        let (waiters, notify_waiters) = (threads()?, threads()?);
        r.end()?;
        Ok(Self { object, class_name, owner, entries, waiters, notify_waiters })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.object).text(&self.class_name).u4(self.owner).u4(self.entries);
        for threads in [&self.waiters, &self.notify_waiters] {
            out.count(threads.len());
            threads.iter().for_each(|&thread| _ = out.u4(thread));
        }
        out.finish()
    }
}

impl ThreadInfo {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("an ETTH chunk", data);
        let (id, name, group, parent) = (r.u4()?, r.text()?, r.text()?, r.text()?);
        let (priority, is_daemon, state) = (r.u4()?, r.flag()?, r.u1()?);
        let Some(&state) = ThreadState::ALL.get(usize::from(state)) else { return r.wrong(state) };
        let (cpu_ns, waits_for) = (r.u8()?, r.u8()?);
        r.end()?;
        Ok(Self { id, name, group, parent, priority, is_daemon, state, cpu_ns, waits_for })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u4(self.id).text(&self.name).text(&self.group).text(&self.parent);
        out.u4(self.priority).u1(self.is_daemon.into()).u1(self.state.number());
        out.u8(self.cpu_ns).u8(self.waits_for);
        out.finish()
    }
}

impl HeapLogged {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("an ETLH chunk", data);
        let (dump, file) = (r.u4()?, r.text()?);
        let (objects, references, roots, pause_us) = (r.u8()?, r.u8()?, r.u8()?, r.u4()?);
        r.end()?;
        Ok(Self { dump, file, objects, references, roots, pause_us })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u4(self.dump).text(&self.file).u8(self.objects).u8(self.references).u8(self.roots).u4(self.pause_us);
        out.finish()
    }
}

impl Instances {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("an ETIN chunk", data);
        let (class, total) = (r.u8()?, r.u8()?);
        let count = r.count(16)?;
        let mut objects = Vec::with_capacity(count);
        for _ in 0..count {
            objects.push(Instance { id: r.u8()?, size: r.u8()? });
        }
        r.end()?;
        Ok(Self { class, total, objects })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(self.class).u8(self.total).count(self.objects.len());
        self.objects.iter().for_each(|object| _ = out.u8(object.id).u8(object.size));
        out.finish()
    }
}
