//! Contention for monitors, and waits (`monitors=on`).

use super::FormatError;
use super::fields::{Fields, put_string, put_u32, put_u64};
use crate::event::{ObjectHash, Ticket};

/// Where a thread is that wants a monitor, and what it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MonitorPlace {
    /// JVM descriptor of the monitor's class.
    pub monitor_class: String,
    /// JVM descriptor of the class of the innermost method; empty if there is none.
    pub class: String,
    pub method: String,
    /// 0: not known.
    pub line: u32,
}

/// What happens to a thread at a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorEvent {
    /// It wants one that another has.
    Enter {
        /// Thread index of who has it; 0: nobody who could be asked for.
        owner: u32,
        /// Where.
        place: MonitorPlace,
    },
    /// It has got it.
    Entered,
    /// It calls `wait`.
    Wait {
        /// As it was given; 0: without a limit.
        timeout_millis: u64,
        /// Where.
        place: MonitorPlace,
    },
    /// It has waited.
    Waited {
        /// Nobody has notified it.
        is_timed_out: bool,
    },
}

/// Such an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MonitorRecord {
    pub ticket: Ticket,
    /// Since the trace began, monotonic.
    pub nanos: u64,
    /// Thread index.
    pub thread: u32,
    /// The object whose monitor it is.
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

    /// All records of a `Monitors` block.
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
