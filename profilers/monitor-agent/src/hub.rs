//! Queue of what VM threads have for monitors, for the thread that sends it.
//!
//! Adding a note takes a lock briefly and never blocks: notes beyond the limit are dropped and counted. Notes may be
//! added inside a collection's pause.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use et_ddm::ours::Event;
use et_ddm::threads::ThreadStatus;
use et_ddm::{Chunk, Message};
use et_jvm::sync::lock;
use rustix::event::{EventfdFlags, eventfd};

/// The most notes of events that wait; replies always find room, as requests are bounded.
const MOST_NOTES: usize = 1 << 16;

/// Maximum number of a connection's pending requests without a reply (heap, threads).
const MOST_TICKETS: usize = 8;
/// Maximum number of bytes queued for a connection before producers block.
const MOST_QUEUED: usize = 2 << 20;
/// Maximum time that they block.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection as the threads of the VM know it.
#[derive(Debug)]
pub struct Line {
    /// Never reused.
    pub id: u64,
    /// Number of bytes queued.
    pub queued: AtomicUsize,
    /// Whether the connection is closed.
    pub is_closed: AtomicBool,
    tickets: AtomicUsize,
}

/// A pending request, until this is dropped.
#[derive(Debug)]
pub struct Ticket(Arc<Line>);

impl Ticket {
    /// The connection that made the request.
    pub fn line(&self) -> &Arc<Line> {
        &self.0
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.tickets.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Line {
    /// A connection that has just been made.
    pub fn new(id: u64) -> Self {
        let (queued, tickets) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { id, queued, is_closed: AtomicBool::new(false), tickets }
    }

    /// Starts a request; `None` if too many are pending.
    pub fn ticket(self: &Arc<Self>) -> Option<Ticket> {
        if self.tickets.fetch_add(1, Ordering::Relaxed) >= MOST_TICKETS {
            self.tickets.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Ticket(Arc::clone(self)))
    }

    /// Blocks until there is room in the queue. Returns false if the connection does not read.
    pub fn has_room(&self) -> bool {
        let start = Instant::now();
        while self.queued.load(Ordering::Relaxed) > MOST_QUEUED {
            if self.is_closed.load(Ordering::Relaxed) || start.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        !self.is_closed.load(Ordering::Relaxed)
    }
}

/// Destination of a reply.
#[derive(Clone, Debug)]
pub struct Asker {
    pub line: Arc<Line>,
    /// The packet that the request was in.
    pub request: u32,
    /// Index of the chunk in its packet.
    pub index: usize,
    /// Whether it has the token.
    pub is_trusted: bool,
}

/// A note for the sending thread.
#[derive(Debug)]
pub enum Note {
    /// The reply to a request; none for an empty one.
    Reply(Asker, Option<Message>),
    /// One of several chunks for one connection.
    To(Arc<Line>, Message),
    /// A chunk for all connections that have said HELO.
    ToAll(Chunk),
    /// An event, for connections that requested that kind.
    Event(Event),
    ThreadStarted {
        id: u32,
        name: String,
    },
    ThreadEnded(u32),
    /// All threads that there are, for the connection that asked.
    Threads(Arc<Line>, Vec<(u32, String)>),
    States(Vec<ThreadStatus>),
    /// Allocation statistics: data of a chunk.
    Allocations(Vec<u8>),
    /// A garbage collection has ended.
    Collected,
    /// The heap walk after a collection was postponed, and the limit for walks now allows it.
    WalkOwed,
    /// `libjdwp` listens at this port, or why it does not.
    Debugger(Result<u16, String>),
    /// The program has another name.
    Name(String),
    /// The program ends: this is the last note.
    End,
}

#[derive(Debug, Default)]
struct Queue {
    notes: VecDeque<Note>,
    lost: u32,
}

/// Notes from all threads, and the subscriptions that decide what is added.
#[derive(Debug)]
pub struct Hub {
    queue: Mutex<Queue>,
    wake: OwnedFd,
    is_awake: AtomicBool,
    /// Kinds of events requested by any connection: bits of [`et_ddm::ours::Events`].
    wanted: AtomicU32,
    /// Whether any connection has requested thread starts and ends.
    wants_threads: AtomicBool,
    /// Whether everything has been sent.
    has_finished: AtomicBool,
    /// Whether any connection has requested heap statistics after collections.
    wants_collections: AtomicBool,
    /// When a debugger's packet came last, in milliseconds since 1970; 0: never.
    pub last_debugger_packet_ms: AtomicU64,
    /// Number of collections so far.
    pub collections: AtomicU64,
    /// Their pauses together, in nanoseconds.
    pub pauses_ns: AtomicU64,
}

impl Hub {
    /// Fails if the system has no more file descriptors.
    pub fn new() -> Result<Self, rustix::io::Errno> {
        Ok(Self {
            queue: Mutex::default(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_awake: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            wants_threads: AtomicBool::new(false),
            has_finished: AtomicBool::new(false),
            wants_collections: AtomicBool::new(false),
            last_debugger_packet_ms: AtomicU64::new(0),
            collections: AtomicU64::new(0),
            pauses_ns: AtomicU64::new(0),
        })
    }

    /// Whether any connection has requested events of these kinds.
    pub fn wants(&self, kinds: u32) -> bool {
        self.wanted.load(Ordering::Relaxed) & kinds != 0
    }

    /// Which kinds of events are wanted.
    pub fn set_wanted(&self, kinds: u32) {
        self.wanted.store(kinds, Ordering::Relaxed);
    }

    /// Whether any connection has requested thread starts and ends.
    pub fn wants_threads(&self) -> bool {
        self.wants_threads.load(Ordering::Relaxed)
    }

    pub fn set_wants_threads(&self, wants: bool) {
        self.wants_threads.store(wants, Ordering::Relaxed);
    }

    /// Whether any connection has requested heap statistics after collections.
    pub fn wants_collections(&self) -> bool {
        self.wants_collections.load(Ordering::Relaxed)
    }

    pub fn set_wants_collections(&self, wants: bool) {
        self.wants_collections.store(wants, Ordering::Relaxed);
    }

    /// Everything was sent, and nothing is any more.
    pub fn finish(&self) {
        self.has_finished.store(true, Ordering::Release);
    }

    /// Puts the last note, and waits for a moment until it was taken.
    pub fn end(&self) {
        self.put(Note::End);
        let start = Instant::now();
        while !self.has_finished.load(Ordering::Acquire) && start.elapsed() < Duration::from_millis(300) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Adds a note.
    pub fn put(&self, note: Note) {
        {
            let mut queue = lock(&self.queue);
            if matches!(note, Note::Event(_)) && queue.notes.len() >= MOST_NOTES {
                queue.lost += 1;
                return;
            }
            queue.notes.push_back(note);
        }
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            // If the counter is full, the thread is awake anyway.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Adds a reply.
    pub fn reply(&self, asker: &Asker, message: Option<Message>) {
        self.put(Note::Reply(asker.clone(), message));
    }

    /// Readable when there are notes.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes all notes, and how many events were dropped before.
    pub fn take(&self) -> (VecDeque<Note>, u32) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut count);
        self.is_awake.store(false, Ordering::Release);
        let mut queue = lock(&self.queue);
        (std::mem::take(&mut queue.notes), std::mem::take(&mut queue.lost))
    }
}

#[cfg(test)]
mod tests {
    use et_ddm::ours::Happened;

    use super::*;

    #[test]
    fn events_that_come_too_fast_are_counted_and_replies_are_not_lost() {
        let hub = Hub::new().unwrap();
        for _ in 0..MOST_NOTES + 7 {
            hub.put(Note::Event(Event { time_ns: 0, what: Happened::GcStart, place: String::new() }));
        }
        hub.put(Note::End);
        let (notes, lost) = hub.take();
        assert_eq!((notes.len(), lost), (MOST_NOTES + 1, 7));
        assert!(matches!(notes.back(), Some(Note::End)));
        assert_eq!(hub.take().1, 0);
    }
}
