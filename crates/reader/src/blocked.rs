//! Times that threads spent blocked at monitors, from the begin and end events of contention and waits.

use et_format::event::{ObjectHash, Ticket};
use et_format::{MonitorEvent, MonitorPlace, MonitorRecord};
use rustc_hash::FxHashMap;

use crate::types::for_people;

/// Why a thread was blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Another thread owned the monitor.
    Contention {
        /// Thread index of the owner; 0 if unknown.
        owner: u32,
    },
    /// `Object.wait`.
    Wait {
        /// Timeout in milliseconds; 0 if there is none.
        timeout_millis: u64,
        /// Whether the wait ended because of the timeout.
        is_timed_out: bool,
    },
}

/// An interval in which a thread was blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub cause: Cause,
    pub thread: u32,
    /// Object of the monitor, as events refer to it.
    pub object: ObjectHash,
    pub place: MonitorPlace,
    pub begin: Ticket,
    /// Start, in nanoseconds since the trace began.
    pub begin_nanos: u64,
    /// End, in nanoseconds since the trace began; `None` if the thread was still blocked at the end of the trace.
    pub end_nanos: Option<u64>,
}

impl Blocked {
    /// Duration in nanoseconds; up to `end` if the interval has no known end.
    pub fn nanos(&self, end: u64) -> u64 {
        self.end_nanos.unwrap_or(end).saturating_sub(self.begin_nanos)
    }
}

/// All blocked intervals of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllBlocked {
    /// Intervals in order of their start.
    pub all: Vec<Blocked>,
    /// Number of end events without a begin event: of waits that began before tracing.
    pub ends_alone: u64,
}

/// Formats the place in the program: `com.acme.Shop.sell:12`.
pub fn site(place: &MonitorPlace) -> String {
    let class = for_people(&place.class);
    match place.line {
        _ if place.method.is_empty() => "native code".to_owned(),
        0 => format!("{class}.{}", place.method),
        line => format!("{class}.{}:{line}", place.method),
    }
}

/// Whether the event ends an interval with this cause.
fn is_end_of(cause: &Cause, event: &MonitorEvent) -> bool {
    match event {
        MonitorEvent::Entered => matches!(cause, Cause::Contention { .. }),
        MonitorEvent::Waited { .. } => matches!(cause, Cause::Wait { .. }),
        MonitorEvent::Enter { .. } | MonitorEvent::Wait { .. } => false,
    }
}

/// Pairs begin and end events, given in order of their tickets. A thread whose wait ends may first have to contend for
/// the monitor again.
pub fn all(records: &[MonitorRecord]) -> AllBlocked {
    let mut found = AllBlocked::default();
    let mut open: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for record in records {
        let cause = match &record.what {
            MonitorEvent::Enter { owner, place } => Some((Cause::Contention { owner: *owner }, place)),
            MonitorEvent::Wait { timeout_millis, place } => {
                Some((Cause::Wait { timeout_millis: *timeout_millis, is_timed_out: false }, place))
            }
            MonitorEvent::Entered | MonitorEvent::Waited { .. } => None,
        };
        let of_thread = open.entry(record.thread).or_default();
        if let Some((cause, place)) = cause {
            of_thread.push(found.all.len());
            found.all.push(Blocked {
                cause,
                thread: record.thread,
                object: record.object,
                place: place.clone(),
                begin: record.ticket,
                begin_nanos: record.nanos,
                end_nanos: None,
            });
            continue;
        }
        let place = of_thread.iter().rposition(|&index| {
            let blocked = &found.all[index];
            blocked.object == record.object && is_end_of(&blocked.cause, &record.what)
        });
        let Some(place) = place else {
            found.ends_alone += 1;
            continue;
        };
        let blocked = &mut found.all[of_thread.remove(place)];
        blocked.end_nanos = Some(record.nanos);
        if let (Cause::Wait { is_timed_out, .. }, MonitorEvent::Waited { is_timed_out: now }) =
            (&mut blocked.cause, &record.what)
        {
            *is_timed_out = *now;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(nanos: u64, thread: u32, object: u32, what: MonitorEvent) -> MonitorRecord {
        MonitorRecord { ticket: Ticket(nanos), nanos, thread, object: ObjectHash(object), what }
    }

    fn wait(timeout_millis: u64) -> MonitorEvent {
        MonitorEvent::Wait { timeout_millis, place: MonitorPlace::default() }
    }

    fn enter(owner: u32) -> MonitorEvent {
        MonitorEvent::Enter { owner, place: MonitorPlace::default() }
    }

    #[test]
    fn ends_find_their_beginnings() {
        let records = [
            record(5, 3, 9, MonitorEvent::Waited { is_timed_out: false }),
            record(10, 1, 7, wait(100)),
            record(11, 2, 8, enter(1)),
            record(12, 1, 7, enter(2)),
            record(15, 1, 7, MonitorEvent::Entered),
            record(20, 1, 7, MonitorEvent::Waited { is_timed_out: true }),
            record(21, 3, 7, enter(0)),
            record(30, 2, 8, MonitorEvent::Entered),
        ];
        let found = all(&records);
        assert_eq!(found.ends_alone, 1);
        let told: Vec<_> = found.all.iter().map(|it| (it.cause, it.thread, it.begin_nanos, it.nanos(40))).collect();
        let expected = [
            (Cause::Wait { timeout_millis: 100, is_timed_out: true }, 1, 10, 10),
            (Cause::Contention { owner: 1 }, 2, 11, 19),
            (Cause::Contention { owner: 2 }, 1, 12, 3),
            (Cause::Contention { owner: 0 }, 3, 21, 19),
        ];
        assert_eq!(told, expected);
        assert_eq!(found.all[3].end_nanos, None);
    }
}
