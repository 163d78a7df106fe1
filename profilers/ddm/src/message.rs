//! Chunks from the VM to the monitor: replies, and what it says unasked.

use crate::chunk::{Chunk, ChunkType};
use crate::heap::HeapInfo;
use crate::ours::{
    Allocations, ClassInfo, Events, HeapLogged, Histogram, Instances, MemoryInfo, MonitorUsage, ObjectInfo, ThreadInfo,
};
use crate::recent::{self, Recent};
use crate::segment::{Form, Segment};
use crate::stack::Stack;
use crate::threads::ThreadStatuses;
use crate::wire::{Malformed, Reader, Writer};

/// Description of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub version: u32,
    pub pid: u32,
    /// Name and version of the VM.
    pub vm: String,
    /// Name of the program.
    pub application: String,
}

/// A request that could not be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Code for programs.
    pub code: u32,
    /// Message for users.
    pub message: String,
}

impl Failure {
    /// The request is not understood.
    pub const MALFORMED: u32 = 1;
    /// The VM does not support the request.
    pub const UNSUPPORTED: u32 = 2;
    /// There is nothing with that id.
    pub const NO_SUCH_ID: u32 = 3;
    /// The request failed.
    pub const FAILED: u32 = 4;
    /// The token was not sent; this code is specific to this agent.
    pub const NOT_ALLOWED: u32 = 5;
}

/// A message from a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// `HELO`: the VM introduces itself.
    Hello(Hello),
    /// `FEAT`: what the VM can do, by name.
    Features(Vec<String>),
    /// `DBGD`: the debugger has detached.
    DebuggerDetached,
    /// `APNM`: the program's new name.
    ApplicationName(String),
    /// `WAIT`: the VM waits for a debugger (0).
    Waits(u8),
    /// `THCR`: a thread has started.
    ThreadStarted {
        /// Thread id.
        id: u32,
        name: String,
    },
    /// `THNM`: a thread has been renamed.
    ThreadRenamed {
        /// Thread id.
        id: u32,
        /// The new name.
        name: String,
    },
    /// `THDE`: the VM's number for it.
    ThreadEnded(u32),
    /// `THST`: states of threads.
    ThreadStates(ThreadStatuses),
    /// `STKL`: a stack.
    Stack(Stack),
    /// `HPIF`: statistics of heaps.
    HeapInfo(Vec<HeapInfo>),
    /// `HPST`, `NHST`: what is known of that heap is out of date.
    HeapStart {
        /// Number of the heap.
        heap: u32,
        /// Whether it is a native heap.
        native: bool,
    },
    /// `HPSG`, `HPSO`, `NHSG`: a part of a heap.
    HeapSegment(Segment),
    /// `HPEN`, `NHEN`: the heap is described.
    HeapEnd {
        /// Number of the heap.
        heap: u32,
        /// Whether it is a native heap.
        native: bool,
    },
    /// `HPDU`: 0 if the file is complete.
    HeapDumped(u8),
    /// `REAQ`: whether recent allocations are recorded.
    KeepsAllocations(bool),
    /// `REAL`: recent allocations, latest first.
    RecentAllocations(Vec<Recent>),
    /// `FAIL`: a request failed.
    Fail(Failure),
    /// `ETEV`
    Events(Events),
    /// `ETAL`
    Allocations(Allocations),
    /// `ETHI`
    Memory(MemoryInfo),
    /// `ETHG`
    Histogram(Histogram),
    /// `ETIN`
    Instances(Instances),
    /// `ETOB`
    Object(ObjectInfo),
    /// `ETCL`
    Class(ClassInfo),
    /// `ETMU`
    Monitor(MonitorUsage),
    /// `ETTH`
    Thread(ThreadInfo),
    /// `ETLH`: the dump is in the log.
    HeapLogged(HeapLogged),
    /// One of a type that is not known: of a program's own.
    Other(Chunk),
}

impl Message {
    /// As it goes over the connection.
    pub fn chunk(&self) -> Chunk {
        let mut out = Writer::default();
        let (kind, data) = match self {
            Self::Hello(hello) => (ChunkType::HELO, hello.write()),
            Self::Features(names) => {
                out.count(names.len());
                names.iter().for_each(|name| _ = out.text(name));
                (ChunkType::FEAT, out.finish())
            }
            Self::DebuggerDetached => (ChunkType::DBGD, Vec::new()),
            Self::ApplicationName(name) => (ChunkType::APNM, out.text(name).finish()),
            Self::Waits(reason) => (ChunkType::WAIT, vec![*reason]),
            Self::ThreadStarted { id, name } => (ChunkType::THCR, out.u4(*id).text(name).finish()),
            Self::ThreadRenamed { id, name } => (ChunkType::THNM, out.u4(*id).text(name).finish()),
            Self::ThreadEnded(id) => (ChunkType::THDE, out.u4(*id).finish()),
            Self::ThreadStates(states) => (ChunkType::THST, states.write()),
            Self::Stack(stack) => (ChunkType::STKL, stack.write()),
            Self::HeapInfo(heaps) => (ChunkType::HPIF, HeapInfo::write_all(heaps)),
            Self::HeapStart { heap, native: false } => (ChunkType::HPST, out.u4(*heap).finish()),
            Self::HeapStart { heap, native: true } => (ChunkType::NHST, out.u4(*heap).finish()),
            Self::HeapSegment(segment) => (of_form(segment.form), segment.write()),
            Self::HeapEnd { heap, native: false } => (ChunkType::HPEN, out.u4(*heap).finish()),
            Self::HeapEnd { heap, native: true } => (ChunkType::NHEN, out.u4(*heap).finish()),
            Self::HeapDumped(result) => (ChunkType::HPDU, vec![*result]),
            Self::KeepsAllocations(on) => (ChunkType::REAQ, vec![u8::from(*on)]),
            Self::RecentAllocations(allocations) => (ChunkType::REAL, recent::write(allocations)),
            Self::Fail(failure) => (ChunkType::FAIL, out.u4(failure.code).text(&failure.message).finish()),
            Self::Events(events) => (ChunkType::ETEV, events.write()),
            Self::Allocations(allocations) => (ChunkType::ETAL, allocations.write()),
            Self::Memory(memory) => (ChunkType::ETHI, memory.write()),
            Self::Histogram(histogram) => (ChunkType::ETHG, histogram.write()),
            Self::Instances(instances) => (ChunkType::ETIN, instances.write()),
            Self::Object(object) => (ChunkType::ETOB, object.write()),
            Self::Class(class) => (ChunkType::ETCL, class.write()),
            Self::Monitor(usage) => (ChunkType::ETMU, usage.write()),
            Self::Thread(thread) => (ChunkType::ETTH, thread.write()),
            Self::HeapLogged(logged) => (ChunkType::ETLH, logged.write()),
            Self::Other(chunk) => return chunk.clone(),
        };
        Chunk::new(kind, data)
    }

    /// Decodes a message. Fails if the data is malformed.
    pub fn read(chunk: &Chunk) -> Result<Self, Malformed> {
        let data = &chunk.data[..];
        let mut r = Reader::new("a message", data);
        let message = match chunk.kind {
            ChunkType::HELO => return Hello::read(data).map(Self::Hello),
            ChunkType::THST => return ThreadStatuses::read(data).map(Self::ThreadStates),
            ChunkType::STKL => return Stack::read(data).map(Self::Stack),
            ChunkType::HPIF => return HeapInfo::read_all(data).map(Self::HeapInfo),
            ChunkType::HPSG => return Segment::read(Form::Merged, data).map(Self::HeapSegment),
            ChunkType::HPSO => return Segment::read(Form::Objects, data).map(Self::HeapSegment),
            ChunkType::NHSG => return Segment::read(Form::Native, data).map(Self::HeapSegment),
            ChunkType::REAL => return recent::read(data).map(Self::RecentAllocations),
            ChunkType::ETEV => return Events::read(data).map(Self::Events),
            ChunkType::ETAL => return Allocations::read(data).map(Self::Allocations),
            ChunkType::ETHI => return MemoryInfo::read(data).map(Self::Memory),
            ChunkType::ETHG => return Histogram::read(data).map(Self::Histogram),
            ChunkType::ETIN => return Instances::read(data).map(Self::Instances),
            ChunkType::ETOB => return ObjectInfo::read(data).map(Self::Object),
            ChunkType::ETCL => return ClassInfo::read(data).map(Self::Class),
            ChunkType::ETMU => return MonitorUsage::read(data).map(Self::Monitor),
            ChunkType::ETTH => return ThreadInfo::read(data).map(Self::Thread),
            ChunkType::ETLH => return HeapLogged::read(data).map(Self::HeapLogged),
            ChunkType::FEAT => {
                let count = r.count(4)?;
                Self::Features((0..count).map(|_| r.text()).collect::<Result<_, _>>()?)
            }
            ChunkType::DBGD => Self::DebuggerDetached,
            ChunkType::APNM => {
                let name = r.text()?;
                // Android appends a user id.
                r.rest();
                Self::ApplicationName(name)
            }
            ChunkType::WAIT => Self::Waits(r.u1()?),
            ChunkType::THCR => Self::ThreadStarted { id: r.u4()?, name: r.text()? },
            ChunkType::THNM => Self::ThreadRenamed { id: r.u4()?, name: r.text()? },
            ChunkType::THDE => Self::ThreadEnded(r.u4()?),
            ChunkType::HPST => Self::HeapStart { heap: r.u4()?, native: false },
            ChunkType::NHST => Self::HeapStart { heap: r.u4()?, native: true },
            ChunkType::HPEN => Self::HeapEnd { heap: r.u4()?, native: false },
            ChunkType::NHEN => Self::HeapEnd { heap: r.u4()?, native: true },
            ChunkType::HPDU => Self::HeapDumped(r.u1()?),
            ChunkType::REAQ => Self::KeepsAllocations(r.flag()?),
            ChunkType::FAIL => Self::Fail(Failure { code: r.u4()?, message: r.text()? }),
            _ => return Ok(Self::Other(chunk.clone())),
        };
        r.end()?;
        Ok(message)
    }
}

fn of_form(form: Form) -> ChunkType {
    match form {
        Form::Merged => ChunkType::HPSG,
        Form::Objects => ChunkType::HPSO,
        Form::Native => ChunkType::NHSG,
    }
}

impl Hello {
    fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new("a HELO chunk", data);
        let (version, pid, vm, application) = (r.u4()?, r.u4()?, r.u4()?, r.u4()?);
        let hello = Self { version, pid, vm: r.units(vm)?, application: r.units(application)? };
        // Later versions say more: the user, the instruction set.
        r.rest();
        Ok(hello)
    }

    fn write(&self) -> Vec<u8> {
        let units = |text: &str| text.encode_utf16().count();
        let mut out = Writer::default();
        out.u4(self.version).u4(self.pid).count(units(&self.vm)).count(units(&self.application));
        out.units(&self.vm).units(&self.application);
        out.finish()
    }
}
