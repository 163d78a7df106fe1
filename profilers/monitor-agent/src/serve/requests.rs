//! Requests of monitors.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use et_ddm::heap::{Walk, When};
use et_ddm::message::{Failure, Hello};
use et_ddm::ours::{Events, features};
use et_ddm::packet::{Kind, NOT_IMPLEMENTED};
use et_ddm::{Chunk, ChunkType, Message, Packet, Request, chunk};

use super::Server;
use super::connection::Standing;
use super::debugger::Debugger;
use crate::allocations;
use crate::task::Task;

/// The version of the protocol.
const VERSION: u32 = 1;
/// States of threads come no more often than this.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);
/// And what is allocated no more often than this.
const LEAST_ALLOCATIONS: Duration = Duration::from_millis(100);
/// Maximum number of rows in a report.
const MOST_ROWS: u32 = 10_000;
/// How long chunks may be that are not compressed: u4, 0 for no compression.
const ETZL: ChunkType = ChunkType(*b"ETZL");
/// Type of the chunk with the reference graph.
const ETRG: ChunkType = ChunkType(*b"ETRG");

/// A failure as a chunk.
pub fn failure(code: u32, message: impl Into<String>) -> Chunk {
    Message::Fail(Failure { code, message: message.into() }).chunk()
}

/// How a request is answered.
enum Answer {
    /// At once, with this chunk.
    Chunk(Chunk),
    /// At once, without a chunk: there is nothing to say.
    Empty,
    /// By another thread, when it has done what was asked.
    Later,
}

/// More was asked for than can be done.
fn busy() -> Answer {
    Answer::Chunk(failure(Failure::FAILED, "the previous request is still in progress"))
}

/// The rights that a request requires.
fn needs(request: &Request) -> Standing {
    match request {
        Request::Other(chunk) if chunk.kind == ChunkType::ETKN => Standing::Stranger,
        request if only_looks(request) => Standing::Owner,
        _ => Standing::Trusted,
    }
}

/// Whether it costs the program little, and ends nothing.
fn only_looks(request: &Request) -> bool {
    match request {
        Request::Hello { .. }
        | Request::Features
        | Request::ThreadEvents { .. }
        | Request::ThreadStates { .. }
        | Request::ThreadStatesOnce
        | Request::HeapInfo(_)
        | Request::HeapSegments { .. }
        | Request::NativeSegments { .. }
        | Request::DebuggerDetached
        | Request::AreAllocationsKept
        | Request::Memory
        | Request::Events { .. } => true,
        Request::Other(chunk) => chunk.kind == ETZL,
        _ => false,
    }
}

/// Constant-time comparison.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

impl Server {
    /// Handles a packet.
    pub(super) fn packet(&mut self, index: usize, packet: Packet) {
        if !packet.is_ddm() {
            if !packet.is_reply() {
                self.debugger_packet(index, packet);
            }
            return;
        }
        let chunks = match chunk::decode(&packet.data) {
            Ok(chunks) => chunks,
            Err(error) => {
                self.refuse(index, packet.id, &error.to_string());
                return;
            }
        };
        let Some(request) = self.connections[index].open_request(packet.id, chunks.len()) else {
            self.refuse(index, packet.id, "too many requests are in progress, or in the packet");
            return;
        };
        for (at, chunk) in chunks.into_iter().enumerate() {
            self.chunk(index, request, at, &chunk);
        }
    }

    fn refuse(&mut self, index: usize, packet: u32, why: &str) {
        let chunk = failure(Failure::MALFORMED, why);
        self.connections[index].write(&Packet::reply(packet, 0, chunk.encode()).encode());
    }

    fn chunk(&mut self, index: usize, request: u32, at: usize, chunk: &Chunk) {
        let standing = self.connections[index].standing;
        let decoded = match Request::read(chunk) {
            Ok(decoded) if standing >= needs(&decoded) => decoded,
            other => {
                let reply = match other {
                    Err(error) => failure(Failure::MALFORMED, error.to_string()),
                    // Whether the program handles a type is not revealed.
                    Ok(Request::Other(_)) => return self.connections[index].reply(request, at, None),
                    Ok(_) => failure(Failure::NOT_ALLOWED, format!("{} requires the token", chunk.kind)),
                };
                return self.connections[index].reply(request, at, Some(reply));
            }
        };
        let reply = match self.answer(index, request, at, decoded) {
            Answer::Chunk(chunk) => Some(chunk),
            Answer::Empty => None,
            Answer::Later => return,
        };
        self.connections[index].reply(request, at, reply);
    }

    /// Does what a request asks for, or has it done.
    fn answer(&mut self, index: usize, request: u32, at: usize, decoded: Request) -> Answer {
        let connection = &mut self.connections[index];
        let asker = connection.asker(request, at);
        let follows = &mut connection.follows;
        let ask = |what: Request| Task::Ask(asker.clone(), what);
        let mut reply = Answer::Empty;
        match decoded {
            Request::Hello { .. } => {
                let is_first = !std::mem::replace(&mut connection.has_said_hello, true);
                reply = Answer::Chunk(self.hello().chunk());
                if is_first {
                    self.monitor.task(Task::Connected);
                    if self.waits {
                        self.connections[index].tell(Message::Waits(0).chunk());
                    }
                }
            }
            Request::Features => {
                let names = [
                    features::EVENTS,
                    features::MEMORY,
                    features::HISTOGRAM,
                    features::OBJECTS,
                    features::THREADS,
                    features::HEAP_DUMP,
                    features::STACKS,
                ];
                let log = self.monitor.xml.as_ref().map(|_| features::LOG.to_owned());
                let mut names = names.map(str::to_owned).to_vec();
                names.extend(log);
                names.extend(allocations::are_known().then(|| features::ALLOCATIONS.to_owned()));
                reply = Answer::Chunk(Message::Features(names).chunk());
            }
            Request::DebuggerDetached => {
                let is_debuggers = self.debugger.as_ref().is_some_and(|debugger| debugger.owner == connection.line.id);
                if is_debuggers {
                    self.debugger = None;
                }
                reply = Answer::Chunk(Message::DebuggerDetached.chunk());
            }
            Request::ThreadEvents { on } => {
                follows.threads = on;
                if on {
                    let Some(ticket) = asker.line.ticket() else { return busy() };
                    connection.expect_threads();
                    // Threads that start from now on are reported before the list of existing threads is complete.
                    self.update_wanted();
                    self.monitor.task(Task::Threads(ticket));
                } else {
                    self.update_wanted();
                }
            }
            Request::ThreadStates { interval_ms } => {
                let interval = Duration::from_millis(interval_ms.into()).max(LEAST_INTERVAL);
                follows.states = (interval_ms > 0).then(|| (Instant::now(), interval));
            }
            Request::HeapInfo(When::Now) => {
                self.monitor.task(ask(decoded));
                return Answer::Later;
            }
            Request::HeapInfo(when) => {
                follows.heap_info = when;
                self.update_wanted();
            }
            Request::HeapSegments { when, objects } => {
                follows.objects = objects;
                if when == Walk::Now {
                    let Some(ticket) = asker.line.ticket() else { return busy() };
                    self.monitor.task(Task::Walk(asker, ticket, objects));
                    return Answer::Later;
                } else {
                    follows.segments = when;
                    self.update_wanted();
                }
            }
            Request::NativeSegments { when } => {
                if when == Walk::Now {
                    let Some(ticket) = asker.line.ticket() else { return busy() };
                    self.monitor.task(Task::NativeSegments(vec![ticket]));
                } else {
                    follows.native = when;
                    self.update_wanted();
                }
            }
            Request::Events { kinds } => {
                follows.events = kinds;
                self.update_wanted();
            }
            Request::AreAllocationsKept => reply = Answer::Chunk(Message::KeepsAllocations(false).chunk()),
            Request::Allocations { interval_ms, rows } if allocations::are_known() => {
                let interval = Duration::from_millis(interval_ms.into()).max(LEAST_ALLOCATIONS);
                follows.allocations = (interval_ms > 0).then_some((interval, rows.min(MOST_ROWS)));
                self.update_wanted();
            }
            Request::KeepAllocations { .. } | Request::RecentAllocations | Request::Allocations { .. } => {
                let why = "only traced programs report allocations by site";
                reply = Answer::Chunk(failure(Failure::UNSUPPORTED, why));
            }
            Request::LogHeap { name } => {
                self.monitor.task(Task::LogHeap(asker, name));
                return Answer::Later;
            }
            Request::Exit { status } => self.monitor.task(Task::Exit(status)),
            Request::Other(chunk) => match chunk.kind {
                ChunkType::ETKN if is_equal(&chunk.data, self.token.as_bytes()) => connection.trust(),
                ChunkType::ETKN => reply = Answer::Chunk(failure(Failure::NOT_ALLOWED, "wrong token")),
                ETZL => match chunk.data.first_chunk::<4>() {
                    Some(bytes) => connection.compress_above = u32::from_be_bytes(*bytes) as usize,
                    None => reply = Answer::Chunk(failure(Failure::MALFORMED, "ETZL has a u4")),
                },
                ETRG => {
                    let keeps_ids = chunk.data.first().is_some_and(|flag| *flag != 0);
                    self.monitor.task(Task::Graph(asker, keeps_ids));
                    return Answer::Later;
                }
                _ => {
                    self.monitor.task(Task::Program(asker, chunk));
                    return Answer::Later;
                }
            },
            _ => {
                self.monitor.task(ask(decoded));
                return Answer::Later;
            }
        }
        reply
    }

    fn hello(&self) -> Message {
        let vm = self.monitor.vm_name.get().cloned().unwrap_or_default();
        let (pid, application) = (std::process::id(), self.monitor.name());
        Message::Hello(Hello { version: VERSION, pid, vm, application })
    }

    /// Updates the union of all subscriptions.
    pub(super) fn update_wanted(&mut self) {
        let hub = &self.monitor.hub;
        let all = |kinds, connection: &super::Connection| kinds | connection.follows.events;
        hub.set_wanted(self.connections.iter().fold(0, all));
        hub.set_wants_threads(self.connections.iter().any(|it| it.follows.threads));
        hub.set_wants_collections(self.connections.iter().any(|it| it.follows.wants_collections()));
        self.update_allocations();
        let monitors = self.monitor.hub.wants(Events::MONITORS);
        if std::mem::replace(&mut self.tells_monitors, monitors) != monitors {
            self.monitor.task(Task::MonitorEvents(monitors));
        }
    }

    /// Counting has a small cost, so it is only enabled for subscribers.
    fn update_allocations(&mut self) {
        let wanted =
            self.connections.iter().filter_map(|it| it.follows.allocations).map(|(interval, _)| interval).min();
        let was_on = self.allocations_due.is_some();
        if wanted.is_some() != was_on {
            allocations::switch(wanted.is_some());
        }
        let next = wanted.map(|interval| Instant::now() + interval);
        // A new subscriber does not delay reports for others.
        self.allocations_due = match (self.allocations_due, next) {
            (Some(due), Some(next)) => Some(due.min(next)),
            (_, next) => next,
        };
    }

    /// Sends a report to all subscribers and schedules the next.
    pub(super) fn allocations(&mut self, data: Vec<u8>) {
        self.allocations_asked = false;
        let chunk = Chunk::new(ChunkType::ETAL, data);
        let wants = |it: &&mut super::Connection| it.follows.allocations.is_some() && !it.is_slow();
        for connection in self.connections.iter_mut().filter(wants).filter(|_| !chunk.data.is_empty()) {
            connection.tell(chunk.clone());
        }
        let intervals = self.connections.iter().filter_map(|it| it.follows.allocations).map(|(interval, _)| interval);
        self.allocations_due = intervals.min().map(|interval| Instant::now() + interval);
    }

    fn debugger_packet(&mut self, index: usize, packet: Packet) {
        let connection = &mut self.connections[index];
        let is_allowed = connection.standing == Standing::Trusted;
        let is_ours = self.debugger.as_ref().is_none_or(|debugger| debugger.owner == connection.line.id);
        if !is_allowed || !is_ours || self.monitor.jdwp.is_none() {
            connection.write(&Packet::reply(packet.id, NOT_IMPLEMENTED, Vec::new()).encode());
            return;
        }
        let Kind::Command { .. } = packet.kind else { return };
        let owner = connection.line.id;
        let debugger = self.debugger.get_or_insert_with(|| {
            self.monitor.task(Task::StartDebugger);
            Debugger::new(owner)
        });
        self.waits = false;
        self.monitor.hub.last_debugger_packet_ms.store(crate::time::millis(), Ordering::Relaxed);
        debugger.forward(&packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_may_look_and_strangers_may_show_the_token() {
        let token = Request::Other(Chunk::new(ChunkType::ETKN, vec![]));
        assert_eq!(needs(&token), Standing::Stranger);
        for request in [
            Request::Hello { version: 1 },
            Request::Features,
            Request::HeapInfo(When::Now),
            Request::ThreadEvents { on: true },
            Request::Other(Chunk::new(ETZL, vec![])),
        ] {
            assert_eq!(needs(&request), Standing::Owner, "{request:?}");
        }
        for request in [
            Request::Exit { status: 0 },
            Request::DumpHeap { path: "/tmp/x".into() },
            Request::CollectGarbage,
            Request::Histogram { rows: 1 },
            Request::Object(1),
            Request::Stack { thread: 1 },
            Request::LogHeap { name: "x".into() },
            Request::Other(Chunk::new(ETRG, vec![])),
            Request::Other(Chunk::new(ChunkType(*b"mine"), vec![])),
        ] {
            assert_eq!(needs(&request), Standing::Trusted, "{request:?}");
        }
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(is_equal(b"abc", b"abc"));
        assert!(!is_equal(b"abc", b"abd") && !is_equal(b"abc", b"ab") && !is_equal(b"", b"a"));
    }
}
