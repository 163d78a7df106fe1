//! A connection: received bytes, bytes to send, and what its monitor has subscribed to.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use et_ddm::chunk::zlib;
use et_ddm::heap::{Walk, When};
use et_ddm::ours::{Event, Events};
use et_ddm::packet::{HANDSHAKE, PacketError};
use et_ddm::threads::ThreadStatuses;
use et_ddm::{Chunk, Message, Packet, PacketDecoder, chunk};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hub::{Asker, Line};

/// The largest packet that a stranger may send.
pub const MOST_BYTES: usize = 1 << 20;
/// The largest of one with the token: class files on their way to a debugger's `RedefineClasses`.
pub const MOST_TRUSTED: usize = 64 << 20;
/// Number of bytes to send above which events are dropped, and the debugger's side is not read.
pub const ENOUGH: usize = 4 << 20;
/// Number of bytes to send above which the client is assumed not to read.
const TOO_MUCH: usize = 64 << 20;
/// Requests of one connection that may be under way.
pub const MOST_PENDING: usize = 64;
/// Maximum number of chunks in a packet.
pub const MOST_CHUNKS: usize = 16;
/// A connection that says nothing is closed after this time, and one that has begun a packet, and one that does not read.
const PATIENCE: Duration = Duration::from_secs(20);
/// Another user's that does not show the token is closed after this time, whatever it says.
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_secs(5);

/// Rights of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Another user of the machine: nothing but show the token.
    Stranger,
    /// The VM's user, or root: look.
    Owner,
    /// It has shown the token: everything.
    Trusted,
}

/// Subscriptions of a monitor.
#[derive(Debug, Default)]
pub struct Follows {
    pub threads: bool,
    /// When states of threads are due again, and the interval.
    pub states: Option<(Instant, Duration)>,
    /// How often it wants to know what is allocated, and the most rows.
    pub allocations: Option<(Duration, u32)>,
    pub heap_info: When,
    pub segments: Walk,
    pub objects: bool,
    pub native: Walk,
    /// Event kinds: bits of [`Events`].
    pub events: u32,
}

impl Follows {
    /// Whether it wants to know what collections leave.
    pub fn wants_collections(&self) -> bool {
        matches!(self.heap_info, When::NextGc | When::EveryGc)
            || self.segments == Walk::EveryGc
            || self.native == Walk::EveryGc
    }
}

/// A packet of requests that is not answered yet.
#[derive(Debug)]
struct Pending {
    packet: u32,
    replies: Vec<Option<Chunk>>,
    missing: usize,
}

/// A connection with its queues.
#[derive(Debug)]
pub struct Connection {
    pub stream: TcpStream,
    pub line: Arc<Line>,
    pub standing: Standing,
    has_shaken_hands: bool,
    /// Whether any packet has been received.
    has_spoken: bool,
    pub has_said_hello: bool,
    pub follows: Follows,
    /// Larger chunks are compressed; 0: none.
    pub compress_above: usize,
    /// Threads that have been reported.
    announced: FxHashSet<u32>,
    /// Threads that have ended since the list of all was asked for.
    ended_meanwhile: Option<FxHashSet<u32>>,
    decoder: PacketDecoder,
    out: VecDeque<u8>,
    pending: FxHashMap<u32, Pending>,
    next_request: u32,
    next_event: u32,
    events: Events,
    opened: Instant,
    /// Since when a packet is incomplete.
    half: Option<Instant>,
    /// Since when nothing could be sent.
    stuck: Option<Instant>,
}

impl Connection {
    /// Accepts a connection.
    pub fn new(stream: TcpStream, id: u64, standing: Standing) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let _ = stream.set_nodelay(true);
        let line = Line::new(id);
        Ok(Self {
            stream,
            line: Arc::new(line),
            standing,
            has_shaken_hands: false,
            has_spoken: false,
            has_said_hello: false,
            follows: Follows::default(),
            compress_above: 0,
            announced: FxHashSet::default(),
            ended_meanwhile: None,
            decoder: PacketDecoder::new(MOST_BYTES),
            out: VecDeque::new(),
            pending: FxHashMap::default(),
            next_request: 0,
            // Far from the ids that libjdwp gives its events.
            next_event: 0x8000_0000,
            events: Events::default(),
            opened: Instant::now(),
            half: None,
            stuck: None,
        })
    }

    /// The monitor has shown the token.
    pub fn trust(&mut self) {
        self.standing = Standing::Trusted;
        self.decoder.set_limit(MOST_TRUSTED);
    }

    /// Reads what is there. False if the other side has closed.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        match self.stream.read(buffer) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.decoder.push(&buffer[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The next received packet.
    pub fn packet(&mut self) -> Result<Option<Packet>, PacketError> {
        if !self.has_shaken_hands && self.decoder.shake_hands()? {
            self.has_shaken_hands = true;
            self.write(HANDSHAKE);
        }
        let packet = self.decoder.next_packet()?;
        self.has_spoken |= packet.is_some();
        self.half = match (&packet, self.decoder.is_between_packets()) {
            (None, false) => Some(self.half.unwrap_or_else(Instant::now)),
            _ => None,
        };
        Ok(packet)
    }

    /// Bytes that go out as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        self.line.queued.store(self.out.len(), Ordering::Relaxed);
    }

    /// Sends as much as possible without blocking.
    pub fn send(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            let (front, _) = self.out.as_slices();
            match self.stream.write(front) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.out.drain(..count);
                    self.stuck = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stuck.get_or_insert_with(Instant::now);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.out.is_empty() && self.out.capacity() > MOST_BYTES {
            self.out = VecDeque::new();
        }
        self.line.queued.store(self.out.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether something waits to be sent.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether it should be given no more than it must.
    pub fn is_slow(&self) -> bool {
        self.out.len() > ENOUGH
    }

    /// The reason for closing the connection, if there is one.
    pub fn has_failed(&self, now: Instant) -> bool {
        let for_long = |since: Option<Instant>| since.is_some_and(|since| now.duration_since(since) > PATIENCE);
        self.out.len() > TOO_MUCH
            || for_long(self.half)
            || for_long(self.stuck)
            || (!self.has_spoken && for_long(Some(self.opened)))
            || (self.standing == Standing::Stranger && now.duration_since(self.opened) > PATIENCE_WITH_STRANGERS)
    }

    /// How long it has been there without a word.
    pub fn silent_for(&self, now: Instant) -> Option<Duration> {
        (!self.has_spoken).then(|| now.duration_since(self.opened))
    }

    fn packed(&self, chunk: Chunk) -> Chunk {
        if self.compress_above > 0 && chunk.data.len() > self.compress_above { zlib::compress(chunk) } else { chunk }
    }

    /// Sends an unsolicited chunk.
    pub fn tell(&mut self, chunk: Chunk) {
        let id = self.next_event;
        self.next_event = self.next_event.wrapping_add(1) | 0x8000_0000;
        let packet = Packet::ddm(id, self.packed(chunk).encode());
        self.write(&packet.encode());
    }

    /// Registers a packet with this number of requests. `None` if too many are pending.
    pub fn open_request(&mut self, packet: u32, chunks: usize) -> Option<u32> {
        if self.pending.len() >= MOST_PENDING || chunks > MOST_CHUNKS {
            return None;
        }
        let request = self.next_request;
        self.next_request = self.next_request.wrapping_add(1);
        self.pending.insert(request, Pending { packet, replies: vec![None; chunks], missing: chunks });
        if chunks == 0 {
            self.close_request(request);
        }
        Some(request)
    }

    /// Destination for the reply to a request.
    pub fn asker(&self, request: u32, index: usize) -> Asker {
        Asker { line: Arc::clone(&self.line), request, index, is_trusted: self.standing == Standing::Trusted }
    }

    /// The reply to one of the chunks of a packet. When it is the last, all go out in one packet.
    pub fn reply(&mut self, request: u32, index: usize, reply: Option<Chunk>) {
        let reply = reply.map(|chunk| self.packed(chunk));
        let Some(pending) = self.pending.get_mut(&request) else { return };
        if let Some(place) = pending.replies.get_mut(index) {
            *place = reply;
            pending.missing = pending.missing.saturating_sub(1);
        }
        if pending.missing == 0 {
            self.close_request(request);
        }
    }

    fn close_request(&mut self, request: u32) {
        if let Some(pending) = self.pending.remove(&request) {
            let chunks: Vec<Chunk> = pending.replies.into_iter().flatten().collect();
            self.write(&Packet::reply(pending.packet, 0, chunk::encode(&chunks)).encode());
        }
    }

    /// All threads are about to be listed.
    pub fn expect_threads(&mut self) {
        self.announced.clear();
        self.ended_meanwhile = Some(FxHashSet::default());
    }

    /// Reports a thread, once and not after its end.
    pub fn thread_started(&mut self, id: u32, name: &str) {
        let has_ended = self.ended_meanwhile.as_ref().is_some_and(|ended| ended.contains(&id));
        if self.follows.threads && !has_ended && self.announced.insert(id) {
            self.tell(Message::ThreadStarted { id, name: name.to_owned() }.chunk());
        }
    }

    /// The list of all threads is complete.
    pub fn threads_listed(&mut self) {
        self.ended_meanwhile = None;
    }

    /// Reports the end of a thread.
    pub fn thread_ended(&mut self, id: u32) {
        if let Some(ended) = &mut self.ended_meanwhile {
            ended.insert(id);
        }
        if self.announced.remove(&id) && self.follows.threads {
            // Its earlier events are sent first, while the client still knows its name.
            self.flush_events(0);
            self.tell(Message::ThreadEnded(id).chunk());
        }
    }

    /// States of threads, if they are due.
    pub fn states(&mut self, now: Instant, states: &ThreadStatuses) {
        let Some((due, interval)) = &mut self.follows.states else { return };
        if *due <= now {
            *due = now + *interval;
            if !self.is_slow() {
                self.tell(Message::ThreadStates(states.clone()).chunk());
            }
        }
    }

    /// An event, if it is wanted. Those of one turn go out together.
    pub fn event(&mut self, event: &Event, kind: u32) {
        if self.follows.events & kind == 0 {
            return;
        }
        if self.is_slow() || self.events.events.len() >= 4096 {
            self.events.lost = self.events.lost.saturating_add(1);
        } else {
            let mut event = event.clone();
            if self.follows.events & Events::PLACES == 0 {
                event.place.clear();
            }
            self.events.events.push(event);
        }
    }

    /// Sends the events collected in this turn.
    pub fn flush_events(&mut self, lost: u32) {
        if self.follows.events != 0 {
            self.events.lost = self.events.lost.saturating_add(lost);
        }
        if (!self.events.events.is_empty() || self.events.lost > 0) && !self.is_slow() {
            let events = std::mem::take(&mut self.events);
            self.tell(Message::Events(events).chunk());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.line.is_closed.store(true, Ordering::Relaxed);
    }
}
