//! A fake VM: it sends what tests want, and counts requests.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use et_ddm::heap::{HeapInfo, When};
use et_ddm::message::{Failure, Hello};
use et_ddm::ours::{
    Allocations, Event, Events, Happened, Histogram, HistogramRow, Memory, MemoryInfo, ObjectInfo, Site, ThreadInfo,
    features,
};
use et_ddm::packet::{HANDSHAKE, Packet, PacketDecoder};
use et_ddm::segment::{Form, Kind, SegmentWriter, Solidity, State};
use et_ddm::stack::{Frame, Stack};
use et_ddm::threads::{Layout, ThreadState, ThreadStatus, ThreadStatuses};
use et_ddm::{Message, Request, chunk};

/// Behaviour of the fake VM.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    pub name: String,
    pub pid: u32,
    /// Knows only what is in the specification.
    pub is_plain: bool,
    /// The token that it wants to see.
    pub token: Option<String>,
    /// Without it nothing is answered.
    pub is_strict: bool,
}

/// The requests it received, and its connections.
#[derive(Debug, Default)]
pub struct Seen {
    pub requests: Mutex<Vec<String>>,
    /// Packets of debuggers: the ids with which they came.
    pub debugger_ids: Mutex<Vec<u32>>,
    pub has_exited: AtomicBool,
    pub interval: AtomicU32,
    streams: Mutex<Vec<TcpStream>>,
}

/// A VM that runs until this is dropped.
#[derive(Debug)]
pub struct Fake {
    pub port: u16,
    pub seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
}

impl Fake {
    pub fn start(manner: Manner) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), manner)
    }

    pub fn on(listener: TcpListener, manner: Manner) -> Self {
        let port = listener.local_addr().unwrap().port();
        let (seen, stop) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
        listener.set_nonblocking(true).unwrap();
        let (its, stopped) = (seen.clone(), stop.clone());
        thread::spawn(move || {
            while !stopped.load(SeqCst) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(false).unwrap();
                        its.streams.lock().unwrap().push(stream.try_clone().unwrap());
                        let (manner, seen) = (manner.clone(), its.clone());
                        thread::spawn(move || drop(Talk::new(manner, seen, stream).run()));
                    }
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        Self { port, seen, stop }
    }

    /// Says something unasked on all connections, raw.
    pub fn say(&self, bytes: &[u8]) {
        self.seen.streams.lock().unwrap().iter().for_each(|mut stream| drop(stream.write_all(bytes)));
    }

    pub fn was_asked(&self, what: &str) -> bool {
        self.seen.requests.lock().unwrap().iter().any(|it| it.contains(what))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.seen.streams.lock().unwrap().iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    }
}

/// Names that a page could take for markup.
pub const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";

struct Talk {
    manner: Manner,
    seen: Arc<Seen>,
    stream: TcpStream,
    round: u32,
    is_trusted: bool,
    has_segments_on: bool,
    wants: HashMap<&'static str, u32>,
}

const HARD: State = State { solidity: Solidity::Hard, kind: Kind::Object };
const BYTES: State = State { solidity: Solidity::Hard, kind: Kind::Array1 };

impl Talk {
    fn new(manner: Manner, seen: Arc<Seen>, stream: TcpStream) -> Self {
        let is_trusted = manner.token.is_none();
        Self { manner, seen, stream, round: 0, is_trusted, has_segments_on: false, wants: HashMap::new() }
    }

    fn run(mut self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        let mut decoder = PacketDecoder::new(1 << 20);
        let mut shaken = false;
        loop {
            while let Ok(Some(packet)) = decoder.next_packet() {
                self.answer(&packet)?;
            }
            if !shaken && decoder.shake_hands() == Ok(true) {
                shaken = true;
                self.stream.write_all(HANDSHAKE)?;
                continue;
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => decoder.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.tick()?,
                Err(error) => return Err(error),
            }
        }
    }

    fn say(&mut self, message: &Message) -> io::Result<()> {
        self.stream.write_all(&Packet::ddm(0x8000_0000, message.chunk().encode()).encode())
    }

    /// Called twenty times per second.
    fn tick(&mut self) -> io::Result<()> {
        self.round += 1;
        let round = self.round;
        if self.wants.get("THST").is_some_and(|it| *it > 0) && round.is_multiple_of(4) {
            let states = self.states();
            self.say(&Message::ThreadStates(states))?;
        }
        if self.wants.get("ETEV").is_some_and(|it| *it > 0) && round.is_multiple_of(10) {
            let time_ns = 1_700_000_000_000_000_000 + u64::from(round);
            let class = "com.acme.<b>Lock</b>".to_owned();
            let place = "com.acme.Till.<init>(Till.java:17)".to_owned();
            let what =
                Happened::ContendedEntered { monitor: 1 << 60, class, thread: 3, owner: 2, waited_ns: 12_500_000 };
            self.say(&Message::Events(Events { lost: 0, events: vec![Event { time_ns, what, place }] }))?;
        }
        if self.wants.get("ETAL").is_some_and(|it| *it > 0) && round.is_multiple_of(10) {
            let site = Site {
                class: "byte[]".into(),
                site: "com.acme.Cache.put:17".into(),
                context: "com.acme.Main.main:3".into(),
                objects: 10,
                bytes: 10_240,
            };
            let report = Allocations {
                time_ms: 1_700_000_000_000 + u64::from(round),
                interval_ms: 500,
                objects: 10,
                bytes: 10_240,
                sites: vec![site],
            };
            self.say(&Message::Allocations(report))?;
        }
        Ok(())
    }

    fn states(&self) -> ThreadStatuses {
        let state = |id: u32| ThreadState::ALL[1 + ((self.round / 4 + id) as usize % 8)];
        let threads = (1..=3).map(|id| ThreadStatus { id, state: state(id), is_suspended: false, android: None });
        ThreadStatuses { layout: Layout::Of2007, threads: threads.collect() }
    }

    fn answer(&mut self, packet: &Packet) -> io::Result<()> {
        if !packet.is_ddm() {
            self.seen.debugger_ids.lock().unwrap().push(packet.id);
            // An event first, then what was said, back.
            let event = Packet { id: 7, kind: et_ddm::packet::Kind::Command { set: 64, command: 100 }, data: vec![1] };
            self.stream.write_all(&event.encode())?;
            return self.stream.write_all(&Packet::reply(packet.id, 0, packet.data.clone()).encode());
        }
        let mut replies = Vec::new();
        for chunk in chunk::decode(&packet.data).unwrap() {
            let request = Request::read(&chunk).unwrap();
            self.seen.requests.lock().unwrap().push(format!("{request:?}"));
            replies.extend(self.reply(&request)?.map(|reply| reply.chunk()));
        }
        self.stream.write_all(&Packet::reply(packet.id, 0, chunk::encode(&replies)).encode())?;
        if self.seen.has_exited.load(SeqCst) {
            self.stream.shutdown(std::net::Shutdown::Both)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn reply(&mut self, request: &Request) -> io::Result<Option<Message>> {
        let refused = |code, message: &str| Ok(Some(Message::Fail(Failure { code, message: message.into() })));
        if let Request::Other(shown) = request
            && shown.kind.0 == *b"ETKN"
        {
            self.is_trusted |= self.manner.token.as_ref().is_some_and(|token| token.as_bytes() == shown.data);
            return Ok(None);
        }
        if !self.is_trusted && self.manner.is_strict {
            return refused(5, "not without the token");
        }
        if !self.is_trusted
            && matches!(request, Request::Exit { .. } | Request::DumpHeap { .. } | Request::CollectGarbage)
        {
            return refused(5, "not without the token");
        }
        let is_ours = request.chunk().kind.0.starts_with(b"ET") || *request == Request::Features;
        if self.manner.is_plain && is_ours {
            return Ok(None);
        }
        Ok(match request {
            Request::Hello { .. } => Some(Message::Hello(Hello {
                version: 1,
                pid: self.manner.pid,
                vm: "Fake VM".into(),
                application: self.manner.name.clone(),
            })),
            Request::Features => {
                let names = [features::EVENTS, features::ALLOCATIONS, features::MEMORY, features::HISTOGRAM];
                let more = [features::OBJECTS, features::THREADS, features::HEAP_DUMP];
                Some(Message::Features(names.iter().chain(&more).map(|it| (*it).to_owned()).collect()))
            }
            Request::ThreadEvents { on: true } => {
                for (id, name) in [(1, "main"), (2, HOSTILE), (3, "worker-\u{1f418}")] {
                    self.say(&Message::ThreadStarted { id, name: name.into() })?;
                }
                None
            }
            Request::ThreadStates { interval_ms } => {
                self.seen.interval.store(*interval_ms, SeqCst);
                self.wants.insert("THST", *interval_ms);
                None
            }
            Request::Events { kinds } => {
                self.wants.insert("ETEV", *kinds);
                None
            }
            Request::Allocations { interval_ms, .. } => {
                self.wants.insert("ETAL", *interval_ms);
                None
            }
            Request::HeapInfo(When::Now) => Some(Message::HeapInfo(vec![self.heap_info()])),
            Request::Memory => {
                let heap = Memory { name: "heap".into(), used: 5 << 32, size: 6 << 32, most: 8 << 32 };
                let eden = Memory { name: "Eden <i>Space</i>".into(), used: 1 << 20, size: 2 << 20, most: 0 };
                let time_ms = 1_700_000_000_000 + 100 * u64::from(self.round);
                Some(Message::Memory(MemoryInfo {
                    time_ms,
                    collections: 3,
                    pauses_ns: 4_000_000,
                    parts: vec![heap, eden],
                }))
            }
            Request::HeapSegments { when: et_ddm::heap::Walk::Now, .. } if self.manner.is_plain => {
                return refused(Failure::UNSUPPORTED, "when is 0 or 1");
            }
            Request::HeapSegments { when, objects } => {
                self.has_segments_on = *when == et_ddm::heap::Walk::EveryGc;
                if *when == et_ddm::heap::Walk::Now {
                    self.segments(*objects)?;
                }
                None
            }
            Request::CollectGarbage => {
                if self.has_segments_on {
                    self.segments(true)?;
                }
                None
            }
            Request::DumpHeap { path } => {
                std::fs::write(path, b"JAVA PROFILE 1.0.2\0")?;
                Some(Message::HeapDumped(0))
            }
            Request::Exit { .. } => {
                self.seen.has_exited.store(true, SeqCst);
                None
            }
            Request::Histogram { .. } => Some(Message::Histogram(Histogram {
                objects: 2,
                bytes: 48,
                rows: vec![HistogramRow { class: 9, name: "com.acme.<b>Lock</b>".into(), objects: 2, bytes: 48 }],
            })),
            Request::Object(1) => Some(Message::Object(ObjectInfo {
                id: 1,
                class: 9,
                class_name: "com.acme.<b>Lock</b>".into(),
                size: 24,
                length: None,
                thread: 1,
            })),
            Request::Object(_) => return refused(Failure::NO_SUCH_ID, "there is no such object"),
            Request::Thread(id) => Some(Message::Thread(ThreadInfo {
                id: *id,
                name: HOSTILE.into(),
                group: "main".into(),
                parent: String::new(),
                priority: 5,
                is_daemon: false,
                state: ThreadState::Running,
                cpu_ns: u64::MAX,
                waits_for: 0,
            })),
            Request::Stack { thread } => Some(Message::Stack(Stack {
                thread: *thread,
                frames: vec![Frame {
                    class: "com.acme.Main".into(),
                    method: "<init>".into(),
                    file: Some("Main.java".into()),
                    line: 17,
                }],
            })),
            _ => None,
        })
    }

    fn heap_info(&self) -> HeapInfo {
        HeapInfo {
            heap: 1,
            time_ms: 1_700_000_000_000,
            reason: When::Now,
            most: 1 << 30,
            size: 1 << 20,
            used: 1 << 19,
            objects: 42,
        }
    }

    /// 4096 units of 8 bytes in two stretches: objects, arrays and gaps.
    fn segments(&mut self, objects: bool) -> io::Result<()> {
        let form = if objects { Form::Objects } else { Form::Merged };
        self.say(&Message::HeapStart { heap: 1, native: false })?;
        for address in [0x10000, 0x90000] {
            let mut writer = SegmentWriter::new(form, 1, 8, address, 100);
            for _ in 0..4 {
                for (state, units) in [(HARD, 3), (BYTES, 300), (State::FREE, 200), (HARD, 9)] {
                    writer.push(state, units);
                }
            }
            for segment in writer.finish() {
                self.say(&Message::HeapSegment(segment))?;
            }
        }
        self.say(&Message::HeapEnd { heap: 1, native: false })
    }
}
