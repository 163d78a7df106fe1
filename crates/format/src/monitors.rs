//! Monitor contention and `Object.wait` (`monitors=on`).

use super::FormatError;
use super::fields::{Fields, put_string, put_u32, put_u64};
use crate::event::{ObjectHash, Ticket};

/// Which monitor a thread wants, and where in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorPlace {
    /// JVM descriptor of the class of the monitor's object.
    pub monitor_class: String,
    /// JVM descriptor of the class of the innermost method; empty if there is no Java frame.
    pub class: String,
    pub method: String,
    /// Source line; 0 if unknown.
    pub line: u32,
}

/// What happened to a thread at a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorEvent {
    /// The thread blocks on a monitor that another thread owns.
    Enter {
        /// Thread index of the owner; 0 if unknown.
        owner: u32,
        place: MonitorPlace,
    },
    /// The thread has acquired the monitor.
    Entered,
    /// The thread calls `Object.wait`.
    Wait {
        /// Timeout argument of the call in milliseconds; 0: no timeout.
        timeout_millis: u64,
        place: MonitorPlace,
    },
    /// `Object.wait` has returned.
    Waited {
        /// It returned because the timeout expired.
        is_timed_out: bool,
    },
}

/// A monitor event with its time, thread and object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorRecord {
    pub ticket: Ticket,
    /// Nanoseconds since the trace began, on a monotonic clock.
    pub nanos: u64,
    pub thread: u32,
    /// The object that the monitor belongs to.
    pub object: ObjectHash,
    pub what: MonitorEvent,
}

impl MonitorPlace {
    fn encode(&self, out: &mut Vec<u8>) {
        put_string(out, &self.monitor_class);
        put_string(out, &self.class);
        put_string(out, &self.method);
        put_u32(out, self.line);
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            monitor_class: fields.string()?,
            class: fields.string()?,
            method: fields.string()?,
            line: fields.u32()?,
        })
    }
}

impl MonitorRecord {
    /// Appends the record to a `Monitors` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.what {
            MonitorEvent::Enter { .. } => 1,
            MonitorEvent::Entered => 2,
            MonitorEvent::Wait { .. } => 3,
            MonitorEvent::Waited { .. } => 4,
        });
        put_u64(out, self.ticket.0);
        put_u64(out, self.nanos);
        put_u32(out, self.thread);
        put_u32(out, self.object.0);
        match &self.what {
            MonitorEvent::Enter { owner, place } => {
                put_u32(out, *owner);
                place.encode(out);
            }
            MonitorEvent::Entered => {}
            MonitorEvent::Wait { timeout_millis, place } => {
                put_u64(out, *timeout_millis);
                place.encode(out);
            }
            MonitorEvent::Waited { is_timed_out } => out.push(u8::from(*is_timed_out)),
        }
    }

    /// Decodes all records of a `Monitors` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::new();
        while !fields.done() {
            let kind = fields.u8()?;
            let (ticket, nanos, thread) = (Ticket(fields.u64()?), fields.u64()?, fields.u32()?);
            let object = fields.object()?;
            let what = match kind {
                1 => MonitorEvent::Enter { owner: fields.u32()?, place: MonitorPlace::decode(&mut fields)? },
                2 => MonitorEvent::Entered,
                3 => MonitorEvent::Wait { timeout_millis: fields.u64()?, place: MonitorPlace::decode(&mut fields)? },
                4 => MonitorEvent::Waited { is_timed_out: fields.u8()? != 0 },
                _ => return fields.fail("kind of a monitor record"),
            };
            records.push(Self { ticket, nanos, thread, object, what });
        }
        Ok(records)
    }
}
