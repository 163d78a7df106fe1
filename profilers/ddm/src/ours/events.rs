//! Events of monitors and of the heap, as they happen (`ETEV`).

use crate::wire::{Malformed, Reader, Writer};

/// Which events are wanted: bits of the request.
impl Events {
    /// Contended monitors and waits.
    pub const MONITORS: u32 = 1;
    /// Starts and ends of collections.
    pub const COLLECTIONS: u32 = 2;
    /// With [`Self::MONITORS`]: where in the code as well. Without it events come as monitors have them that do not know of this.
    pub const PLACES: u32 = 4;
}

/// The kinds of events. An owner is 0 if it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A thread found a monitor taken.
    ContendedEnter {
        /// Id of the object that the monitor belongs to.
        monitor: u64,
        class: String,
        /// The waiting thread.
        thread: u32,
        /// The owner of the monitor.
        owner: u32,
    },
    /// The thread has entered the monitor.
    ContendedEntered {
        /// Id of the object that the monitor belongs to.
        monitor: u64,
        class: String,
        /// The thread that waited.
        thread: u32,
        /// The owner when the wait began.
        owner: u32,
        /// Duration of the wait in nanoseconds.
        waited_ns: u64,
    },
    /// A thread begins `Object.wait()`.
    Wait {
        /// Id of the object that the monitor belongs to.
        monitor: u64,
        class: String,
        /// The waiting thread.
        thread: u32,
        /// Timeout in milliseconds; 0 if there is none.
        timeout_ms: u64,
    },
    /// `Object.wait` has returned.
    Waited {
        /// Id of the object that the monitor belongs to.
        monitor: u64,
        class: String,
        /// The thread that waited.
        thread: u32,
        /// Duration of the wait in nanoseconds.
        waited_ns: u64,
        /// Whether it ended by timeout.
        timed_out: bool,
    },
    /// A collection stops the program.
    GcStart,
    /// A garbage collection has ended.
    GcFinish {
        /// Duration of the pause in nanoseconds.
        pause_ns: u64,
    },
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
    pub what: Happened,
    /// Where in the thread's code: `com.acme.Till.open(Till.java:17)`; empty if that is not known, or was not asked for.
    pub place: String,
}

/// Events in the order in which they happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// How many before these were dropped, because they came faster than they could be sent.
    pub lost: u32,
    pub events: Vec<Event>,
}

impl Events {
    /// Each event has its length in front: kinds that are not known are skipped.
    pub(crate) fn read(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an ETEV chunk", data);
        let lost = reader.u4()?;
        let count = reader.count(2 + 9)?;
        let mut events = Vec::with_capacity(count);
        for _ in 0..count {
            let length = usize::from(reader.u2()?);
            events.extend(Event::read(reader.take(length)?)?);
        }
        reader.end()?;
        Ok(Self { lost, events })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u4(self.lost).count(self.events.len());
        for event in &self.events {
            let bytes = event.write();
            out.u2(bytes.len() as u16).bytes(&bytes);
        }
        out.finish()
    }
}

/// Flag in the kind of an event: the event ends with a place.
const WITH_PLACE: u8 = 0x80;

/// Maximum length of a name in units. Class names have at most 65,535 bytes of UTF-8; an event has room for two texts
/// of this length.
const MOST_NAME: usize = 7_500;

impl Event {
    fn read(data: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new("an event", data);
        let kind = reader.u1()?;
        let (kind, has_place) = (kind & !WITH_PLACE, kind & WITH_PLACE != 0);
        let time_ns = reader.u8()?;
        let r = &mut reader;
        let what = match kind {
            1 => Happened::ContendedEnter { monitor: r.u8()?, class: r.text()?, thread: r.u4()?, owner: r.u4()? },
            2 => Happened::ContendedEntered {
                monitor: r.u8()?,
                class: r.text()?,
                thread: r.u4()?,
                owner: r.u4()?,
                waited_ns: r.u8()?,
            },
            3 => Happened::Wait { monitor: r.u8()?, class: r.text()?, thread: r.u4()?, timeout_ms: r.u8()? },
            4 => Happened::Waited {
                monitor: r.u8()?,
                class: r.text()?,
                thread: r.u4()?,
                waited_ns: r.u8()?,
                timed_out: r.flag()?,
            },
            5 => Happened::GcStart,
            6 => Happened::GcFinish { pause_ns: r.u8()? },
            _ => return Ok(None),
        };
        let place = if has_place { r.text()? } else { String::new() };
        reader.end()?;
        Ok(Some(Self { time_ns, what, place }))
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let with_place = if self.place.is_empty() { 0 } else { WITH_PLACE };
        let mut begin = |kind: u8| out.u1(kind | with_place).u8(self.time_ns).finish();
        let mut bytes = Writer::default();
        let o = &mut bytes;
        match &self.what {
            Happened::ContendedEnter { monitor, class, thread, owner } => {
                o.bytes(&begin(1)).u8(*monitor).text(short(class)).u4(*thread).u4(*owner);
            }
            Happened::ContendedEntered { monitor, class, thread, owner, waited_ns } => {
                o.bytes(&begin(2)).u8(*monitor).text(short(class)).u4(*thread).u4(*owner).u8(*waited_ns);
            }
            Happened::Wait { monitor, class, thread, timeout_ms } => {
                o.bytes(&begin(3)).u8(*monitor).text(short(class)).u4(*thread).u8(*timeout_ms);
            }
            Happened::Waited { monitor, class, thread, waited_ns, timed_out } => {
                o.bytes(&begin(4)).u8(*monitor).text(short(class)).u4(*thread).u8(*waited_ns);
                o.u1((*timed_out).into());
            }
            Happened::GcStart => _ = o.bytes(&begin(5)),
            Happened::GcFinish { pause_ns } => _ = o.bytes(&begin(6)).u8(*pause_ns),
        }
        if !self.place.is_empty() {
            bytes.text(short(&self.place));
        }
        bytes.finish()
    }
}

fn short(name: &str) -> &str {
    name.char_indices().nth(MOST_NAME).map_or(name, |(end, _)| &name[..end])
}
