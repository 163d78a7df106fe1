//! Chunks from the monitor to the VM.

use crate::chunk::{Chunk, ChunkType};
use crate::heap::{Walk, When};
use crate::wire::{Malformed, Reader, Writer};

/// A request of a monitor. Each has a reply, which is empty unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `HELO`; answered by [`crate::Message::Hello`].
    Hello {
        /// The version of the protocol that the monitor speaks: 1.
        version: u32,
    },
    /// `FEAT`; answered by [`crate::Message::Features`].
    Features,
    /// `DBGD`: the debugger has gone; answered by `DBGD`.
    DebuggerDetached,
    /// `THEN`: births and deaths of threads; all that live are reported at once.
    ThreadEvents { on: bool },
    /// `THST`: states of threads, from now on.
    ThreadStates {
        /// Interval in milliseconds; 0 to stop.
        interval_ms: u32,
    },
    /// `THST` without an interval, as Android's monitor asks: states of threads once, as the reply, in its layout.
    ThreadStatesOnce,
    /// `STKL`; answered by [`crate::Message::Stack`].
    Stack { thread: u32 },
    /// `HPIF`; if at once, answered by [`crate::Message::HeapInfo`].
    HeapInfo(When),
    /// `HPSG` or `HPSO`: the heap as runs.
    HeapSegments {
        /// When to send them.
        when: Walk,
        /// `HPSO`: runs end where objects do.
        objects: bool,
    },
    /// `NHSG`: the native heap as runs.
    NativeSegments {
        /// When to send them.
        when: Walk,
    },
    /// `HPGC`: run a garbage collection.
    CollectGarbage,
    /// `HPDU`; answered by [`crate::Message::HeapDumped`] when the file is complete.
    DumpHeap {
        /// The file, as the VM sees it.
        path: String,
    },
    /// `REAE`: keep recent allocations.
    KeepAllocations { on: bool },
    /// `REAQ`; answered by [`crate::Message::KeepsAllocations`].
    AreAllocationsKept,
    /// `REAL`; answered by [`crate::Message::RecentAllocations`].
    RecentAllocations,
    /// `EXIT`: end the program with `System.exit`.
    Exit {
        /// Exit code.
        status: u32,
    },
    /// `ETEV`: report what happens, from now on.
    Events {
        /// [`crate::ours::Events::MONITORS`] and others; 0: nothing any more.
        kinds: u32,
    },
    /// `ETAL`: report what is allocated, from now on.
    Allocations {
        /// Interval in milliseconds; 0 to stop.
        interval_ms: u32,
        /// Maximum number of rows in a report.
        rows: u32,
    },
    /// `ETHI`; answered by [`crate::Message::Memory`].
    Memory,
    /// `ETHG`; answered by [`crate::Message::Histogram`].
    Histogram {
        /// Maximum number of rows.
        rows: u32,
    },
    /// `ETIN`; answered by [`crate::Message::Instances`].
    Instances {
        class: u64,
        /// Maximum number of objects.
        most: u32,
    },
    /// `ETOB`; answered by [`crate::Message::Object`].
    Object(u64),
    /// `ETCL`; answered by [`crate::Message::Class`].
    Class(u64),
    /// `ETMU`; answered by [`crate::Message::Monitor`].
    Monitor(u64),
    /// `ETTH`; answered by [`crate::Message::Thread`].
    Thread(u32),
    /// `ETLH`: all objects and references go to the log; answered by [`crate::Message::HeapLogged`] when they are there.
    LogHeap {
        /// Name of the dump in the log.
        name: String,
    },
    /// One of a type that is not known: of a program's own.
    Other(Chunk),
}

impl Request {
    /// As it goes over the connection.
    pub fn chunk(&self) -> Chunk {
        let mut out = Writer::default();
        let kind = match self {
            Self::Hello { version } => {
                out.u4(*version);
                ChunkType::HELO
            }
            Self::Features => ChunkType::FEAT,
            Self::DebuggerDetached => ChunkType::DBGD,
            Self::ThreadEvents { on } => {
                out.u1((*on).into());
                ChunkType::THEN
            }
            Self::ThreadStates { interval_ms } => {
                out.u4(*interval_ms);
                ChunkType::THST
            }
            Self::ThreadStatesOnce => ChunkType::THST,
            Self::Stack { thread } => {
                out.u4(*thread);
                ChunkType::STKL
            }
            Self::HeapInfo(when) => {
                out.u1(when.number());
                ChunkType::HPIF
            }
            // The data says what to send; the type is HPSG in any case.
            Self::HeapSegments { when, objects } => {
                out.u1(when.number()).u1((*objects).into());
                ChunkType::HPSG
            }
            Self::NativeSegments { when } => {
                out.u1(when.number()).u1(0);
                ChunkType::NHSG
            }
            Self::CollectGarbage => ChunkType::HPGC,
            Self::DumpHeap { path } => {
                out.text(path);
                ChunkType::HPDU
            }
            Self::KeepAllocations { on } => {
                out.u1((*on).into());
                ChunkType::REAE
            }
            Self::AreAllocationsKept => ChunkType::REAQ,
            Self::RecentAllocations => ChunkType::REAL,
            Self::Exit { status } => {
                out.u4(*status);
                ChunkType::EXIT
            }
            Self::Events { kinds } => {
                out.u4(*kinds);
                ChunkType::ETEV
            }
            Self::Allocations { interval_ms, rows } => {
                out.u4(*interval_ms).u4(*rows);
                ChunkType::ETAL
            }
            Self::Memory => ChunkType::ETHI,
            Self::Histogram { rows } => {
                out.u4(*rows);
                ChunkType::ETHG
            }
            Self::Instances { class, most } => {
                out.u8(*class).u4(*most);
                ChunkType::ETIN
            }
            Self::Object(id) | Self::Class(id) | Self::Monitor(id) => {
                out.u8(*id);
                match self {
                    Self::Object(_) => ChunkType::ETOB,
                    Self::Class(_) => ChunkType::ETCL,
                    _ => ChunkType::ETMU,
                }
            }
            Self::Thread(id) => {
                out.u4(*id);
                ChunkType::ETTH
            }
            Self::LogHeap { name } => {
                out.text(name);
                ChunkType::ETLH
            }
            Self::Other(chunk) => return chunk.clone(),
        };
        Chunk::new(kind, out.finish())
    }

    /// Decodes a request. Fails if the data is malformed.
    pub fn read(chunk: &Chunk) -> Result<Self, Malformed> {
        let mut r = Reader::new("a request", &chunk.data);
        let request = match chunk.kind {
            ChunkType::HELO => Self::Hello { version: r.u4()? },
            ChunkType::FEAT => Self::Features,
            ChunkType::DBGD => Self::DebuggerDetached,
            ChunkType::THEN => Self::ThreadEvents { on: r.flag()? },
            ChunkType::THST if chunk.data.is_empty() => Self::ThreadStatesOnce,
            ChunkType::THST => Self::ThreadStates { interval_ms: r.u4()? },
            ChunkType::STKL => Self::Stack { thread: r.u4()? },
            ChunkType::HPIF => Self::HeapInfo(When::read(&mut r)?),
            ChunkType::HPSG | ChunkType::HPSO => {
                Self::HeapSegments { when: Walk::read(&mut r)?, objects: r.flag()? || chunk.kind == ChunkType::HPSO }
            }
            ChunkType::NHSG => {
                let when = Walk::read(&mut r)?;
                // Ignored, says the specification.
                r.u1()?;
                Self::NativeSegments { when }
            }
            ChunkType::HPGC => Self::CollectGarbage,
            ChunkType::HPDU => Self::DumpHeap { path: r.text()? },
            ChunkType::REAE => Self::KeepAllocations { on: r.flag()? },
            ChunkType::REAQ => Self::AreAllocationsKept,
            ChunkType::REAL => Self::RecentAllocations,
            ChunkType::EXIT => Self::Exit { status: r.u4()? },
            ChunkType::ETEV => Self::Events { kinds: r.u4()? },
            ChunkType::ETAL => Self::Allocations { interval_ms: r.u4()?, rows: r.u4()? },
            ChunkType::ETHI => Self::Memory,
            ChunkType::ETHG => Self::Histogram { rows: r.u4()? },
            ChunkType::ETIN => Self::Instances { class: r.u8()?, most: r.u4()? },
            ChunkType::ETOB => Self::Object(r.u8()?),
            ChunkType::ETCL => Self::Class(r.u8()?),
            ChunkType::ETMU => Self::Monitor(r.u8()?),
            ChunkType::ETTH => Self::Thread(r.u4()?),
            ChunkType::ETLH => Self::LogHeap { name: r.text()? },
            _ => return Ok(Self::Other(chunk.clone())),
        };
        r.end()?;
        Ok(request)
    }
}
