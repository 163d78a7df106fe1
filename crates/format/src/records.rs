//! Records of classes, threads and garbage collections.

use super::FormatError;
use super::fields::{Fields, put_len, put_string, put_u32, put_u64};
use crate::event::{ObjectHash, Ticket};

/// Bits of [`ClassRecord::flags`].
pub mod class_flags {
    pub const ARRAY: u32 = 1;
    pub const INTERFACE: u32 = 2;
    pub const SIZE_UNKNOWN: u32 = 4;
    pub const HIDDEN: u32 = 8;
}

/// A class that the VM prepared, or that an event mentioned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassRecord {
    pub ticket: Ticket,
    /// Mirror of the class.
    pub class: ObjectHash,
    /// Mirror of the superclass; null if it has none.
    pub superclass: ObjectHash,
    /// Class loader; null for the boot loader.
    pub loader: ObjectHash,
    /// Size of an instance in bytes; 0 for array classes and interfaces, or if unknown.
    pub instance_size: u32,
    /// Size of the mirror in bytes.
    pub mirror_size: u32,
    /// Bits of [`class_flags`].
    pub flags: u32,
    /// JVM descriptor of the class.
    pub signature: String,
}

impl ClassRecord {
    /// Appends the record to a `Classes` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u64(out, self.ticket.0);
        for value in [self.class.0, self.superclass.0, self.loader.0, self.instance_size, self.mirror_size, self.flags]
        {
            put_u32(out, value);
        }
        put_string(out, &self.signature);
    }

    /// Decodes all records of a `Classes` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::new();
        while !fields.done() {
            records.push(Self {
                ticket: Ticket(fields.u64()?),
                class: fields.object()?,
                superclass: fields.object()?,
                loader: fields.object()?,
                instance_size: fields.u32()?,
                mirror_size: fields.u32()?,
                flags: fields.u32()?,
                signature: fields.string()?,
            });
        }
        Ok(records)
    }
}

/// A frame that was on a thread's stack when tracing began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialFrame {
    /// JVM descriptor of the method's class.
    pub class: String,
    pub method: String,
    pub descriptor: String,
    /// Receiver of the call; null for a static method, or if unknown.
    pub receiver: ObjectHash,
}

/// Bits of [`ThreadRecord::Start`]'s flags.
pub mod thread_flags {
    pub const DAEMON: u32 = 1;
    pub const RUNNING_AT_START: u32 = 2;
}

/// The start or end of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadRecord {
    Start {
        ticket: Ticket,
        /// Thread index: from 1, never reused.
        thread: u32,
        object: ObjectHash,
        /// Bits of [`thread_flags`].
        flags: u32,
        name: String,
        /// The stack when tracing began, outermost frame first.
        frames: Vec<InitialFrame>,
    },
    End {
        ticket: Ticket,
        thread: u32,
    },
}

impl ThreadRecord {
    /// Appends the record to a `Threads` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start { ticket, thread, object, flags, name, frames } => {
                out.push(1);
                put_u64(out, ticket.0);
                put_u32(out, *thread);
                put_u32(out, object.0);
                put_u32(out, *flags);
                put_string(out, name);
                put_len(out, frames.len());
                for frame in frames {
                    put_string(out, &frame.class);
                    put_string(out, &frame.method);
                    put_string(out, &frame.descriptor);
                    put_u32(out, frame.receiver.0);
                }
            }
            Self::End { ticket, thread } => {
                out.push(2);
                put_u64(out, ticket.0);
                put_u32(out, *thread);
            }
        }
    }

    /// Decodes all records of a `Threads` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::new();
        while !fields.done() {
            records.push(match fields.u8()? {
                1 => {
                    let ticket = Ticket(fields.u64()?);
                    let (thread, object, flags) = (fields.thread()?, fields.object()?, fields.u32()?);
                    let name = fields.string()?;
                    let count = fields.count(16)?;
                    let mut frames = Vec::with_capacity(count);
                    for _ in 0..count {
                        frames.push(InitialFrame {
                            class: fields.string()?,
                            method: fields.string()?,
                            descriptor: fields.string()?,
                            receiver: fields.object()?,
                        });
                    }
                    Self::Start { ticket, thread, object, flags, name, frames }
                }
                2 => Self::End { ticket: Ticket(fields.u64()?), thread: fields.thread()? },
                _ => return fields.fail("tag of a thread record"),
            });
        }
        Ok(records)
    }
}

/// A garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcRecord {
    pub start: Ticket,
    pub finish: Ticket,
    /// Nanoseconds since the trace began, on a monotonic clock.
    pub start_nanos: u64,
    pub finish_nanos: u64,
    /// Heap usage after the collection in bytes; 0 if unknown.
    pub heap_used: u64,
    pub heap_committed: u64,
}

impl GcRecord {
    /// Appends the record to a `Gcs` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in
            [self.start.0, self.finish.0, self.start_nanos, self.finish_nanos, self.heap_used, self.heap_committed]
        {
            put_u64(out, value);
        }
    }

    /// Decodes all records of a `Gcs` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::with_capacity(raw.len() / 48);
        while !fields.done() {
            records.push(Self {
                start: Ticket(fields.u64()?),
                finish: Ticket(fields.u64()?),
                start_nanos: fields.u64()?,
                finish_nanos: fields.u64()?,
                heap_used: fields.u64()?,
                heap_committed: fields.u64()?,
            });
        }
        Ok(records)
    }
}
