//! The connection to a VM. DDM and a debugger share it: their commands get ids from one counter, so that replies can be
//! routed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use et_ddm::message::{Failure, Hello};
use et_ddm::packet::{HANDSHAKE, Kind, Packet, PacketDecoder, PacketError};
use et_ddm::{Chunk, ChunkType, Malformed, Message, Request, chunk};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// The most that one packet may have: replies to debuggers can be large.
pub const MOST_PACKET: usize = 64 << 20;
/// How long a VM may take to answer the handshake and HELO.
const GREETING: Duration = Duration::from_secs(5);
/// Packets that wait to be sent.
const MOST_WAITING: usize = 256;
/// Bytes that wait for a debugger that does not read.
const MOST_UNREAD: usize = 64 << 20;

/// Why there is no connection, or why it ended.
#[derive(Clone, Debug, Error)]
pub enum LinkError {
    #[error("cannot connect to {address}: {why}")]
    Connect { address: SocketAddr, why: String },
    #[error("{0} does not answer")]
    Silent(SocketAddr),
    #[error("it closed the connection")]
    Closed,
    #[error("{0}")]
    Packet(#[from] PacketError),
    #[error("it speaks JDWP, not DDM")]
    NotDdm,
    #[error("it answers only clients that have its token: {0}")]
    NotAllowed(String),
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// Why a request has no answer.
#[derive(Clone, Debug, Error)]
pub enum RequestError {
    #[error("the VM is gone")]
    Gone,
    #[error("the VM did not answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the VM refuses: {}", .0.message)]
    Failed(Failure),
    #[error("the VM refuses: JDWP error {0}")]
    Error(u16),
    #[error("cannot read the answer of the VM: {0}")]
    Malformed(#[from] Malformed),
}

/// Input from a VM.
#[derive(Debug)]
pub enum Arrived {
    /// A message, solicited or not.
    Message(Message),
    /// A malformed message; the connection continues.
    Malformed(Malformed),
    /// The connection has ended.
    Ended(LinkError),
}

enum Waiting {
    Monitor(oneshot::Sender<Packet>),
    Debugger { session: u64, id: u32 },
}

/// Where a debugger's packets go.
#[derive(Clone, Debug)]
pub struct DebuggerOut {
    session: u64,
    packets: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
}

/// The stream that a debugger reads from.
#[derive(Debug)]
pub struct DebuggerIn {
    /// Distinguishes its commands from those of an earlier debugger.
    pub session: u64,
    packets: mpsc::UnboundedReceiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
}

impl DebuggerIn {
    /// The next packet; `None`: the VM is gone, or the debugger did not read.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        let packet = self.packets.recv().await?;
        self.unread.fetch_sub(packet.len(), Relaxed);
        Some(packet)
    }
}

#[derive(Default)]
struct Shared {
    last_id: u32,
    sessions: u64,
    pending: HashMap<u32, Waiting>,
    debugger: Option<DebuggerOut>,
    has_ended: bool,
}

impl Shared {
    fn expect(&mut self, waiting: Waiting) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.pending.contains_key(&self.last_id) {
                self.pending.insert(self.last_id, waiting);
                return self.last_id;
            }
        }
    }
}

/// A connected VM.
#[derive(Clone)]
pub struct Connection {
    out: mpsc::Sender<Vec<u8>>,
    shared: Arc<Mutex<Shared>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Shakes hands, shows the token if there is one, and greets. What the VM says from then on goes to `arrived`, in order; after
    /// [`Arrived::Ended`] nothing follows.
    pub async fn open(
        address: SocketAddr,
        token: Option<&str>,
        arrived: mpsc::Sender<Arrived>,
    ) -> Result<(Self, Hello), LinkError> {
        let stream = timeout(GREETING, TcpStream::connect(address)).await.map_err(|_| LinkError::Silent(address))?;
        let stream = stream.map_err(|error| LinkError::Connect { address, why: error.to_string() })?;
        let _ = stream.set_nodelay(true);
        let (mut from, mut to) = stream.into_split();
        let broken = |error: std::io::Error| LinkError::Broken(error.to_string());
        to.write_all(HANDSHAKE).await.map_err(broken)?;
        let mut decoder = PacketDecoder::new(MOST_PACKET);
        let shake_hands = async {
            while !decoder.shake_hands()? {
                let mut bytes = [0; 256];
                match from.read(&mut bytes).await.map_err(broken)? {
                    0 => return Err(LinkError::Closed),
                    count => decoder.push(&bytes[..count]),
                }
            }
            Ok(())
        };
        timeout(GREETING, shake_hands).await.map_err(|_| LinkError::Silent(address))??;
        let (out, packets) = mpsc::channel(MOST_WAITING);
        let connection = Self { out, shared: Arc::default() };
        let (stop, stopped) = watch::channel(());
        tokio::spawn(write(to, packets, stopped));
        tokio::spawn(connection.clone().read(from, decoder, arrived, stop));
        // First of all: an agent that takes us for another user answers nothing without it.
        if let Some(token) = token {
            connection.show_token(token).await;
        }
        match connection.request(&Request::Hello { version: 1 }, GREETING).await {
            Ok(Some(Message::Hello(hello))) => Ok((connection, hello)),
            Err(RequestError::Failed(failure)) if failure.code == Failure::NOT_ALLOWED => {
                connection.end();
                Err(LinkError::NotAllowed(failure.message))
            }
            Ok(_) | Err(RequestError::Error(_) | RequestError::Failed(_) | RequestError::Malformed(_)) => {
                connection.end();
                Err(LinkError::NotDdm)
            }
            Err(RequestError::Gone) => Err(LinkError::Closed),
            Err(RequestError::Late(_)) => {
                connection.end();
                Err(LinkError::Silent(address))
            }
        }
    }

    /// Asks, and waits for the answer; `None`: an empty one, all is well.
    pub async fn request(&self, request: &Request, patience: Duration) -> Result<Option<Message>, RequestError> {
        let (answer, answered) = oneshot::channel();
        let id = self.lock().expect(Waiting::Monitor(answer));
        let asked = async {
            let packet = Packet::ddm(id, request.chunk().encode()).encode();
            self.out.send(packet).await.map_err(|_| RequestError::Gone)?;
            answered.await.map_err(|_| RequestError::Gone)
        };
        let outcome = timeout(patience, asked).await.unwrap_or(Err(RequestError::Late(patience)));
        self.lock().pending.remove(&id);
        let packet = outcome?;
        match packet.kind {
            Kind::Reply { error } if error != 0 => return Err(RequestError::Error(error)),
            _ => {}
        }
        let Some(first) = chunk::decode(&packet.data)?.into_iter().next() else { return Ok(None) };
        match Message::read(&first)? {
            Message::Fail(failure) => Err(RequestError::Failed(failure)),
            message => Ok(Some(message)),
        }
    }

    /// Shows an agent its token: it answers more then. One that takes another is left as it is.
    pub async fn show_token(&self, token: &str) {
        let shown = Request::Other(Chunk::new(ChunkType::ETKN, token.as_bytes().to_vec()));
        let _ = self.request(&shown, GREETING).await;
    }

    /// Attaches a debugger, unless there is one.
    pub fn attach_debugger(&self) -> Option<DebuggerIn> {
        let mut shared = self.lock();
        if shared.debugger.is_some() || shared.has_ended {
            return None;
        }
        shared.sessions += 1;
        let session = shared.sessions;
        let (to, packets) = mpsc::unbounded_channel();
        let unread: Arc<AtomicUsize> = Arc::default();
        shared.debugger = Some(DebuggerOut { session, packets: to, unread: unread.clone() });
        Some(DebuggerIn { session, packets, unread })
    }

    /// Forwards a debugger's packet to the VM.
    pub async fn pass_on(&self, session: u64, mut packet: Packet) -> Result<(), RequestError> {
        if !packet.is_reply() {
            packet.id = self.lock().expect(Waiting::Debugger { session, id: packet.id });
        }
        self.out.send(packet.encode()).await.map_err(|_| RequestError::Gone)
    }

    /// The debugger has gone: answers to it are dropped, and the VM may release what it kept for it.
    pub async fn detach_debugger(&self, session: u64) {
        {
            let mut shared = self.lock();
            shared
                .pending
                .retain(|_, waiting| !matches!(waiting, Waiting::Debugger { session: its, .. } if *its == session));
            shared.debugger.take_if(|debugger| debugger.session == session);
        }
        let _ = self.request(&Request::DebuggerDetached, GREETING).await;
    }

    /// Whether a debugger is there.
    pub fn has_debugger(&self) -> bool {
        self.lock().debugger.is_some()
    }

    /// Whether both are the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Ends the connection: waiting requests fail, and nothing more is sent.
    pub fn end(&self) {
        let mut shared = self.lock();
        shared.has_ended = true;
        shared.pending.clear();
        shared.debugger = None;
        drop(shared);
        // An empty packet: the writer ends, and the reader with it.
        let _ = self.out.try_send(Vec::new());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(
        self,
        mut from: OwnedReadHalf,
        mut decoder: PacketDecoder,
        arrived: mpsc::Sender<Arrived>,
        stop: watch::Sender<()>,
    ) {
        let ended = loop {
            match self.read_some(&mut from, &mut decoder, &arrived, &stop).await {
                Ok(()) => {}
                Err(ended) => break ended,
            }
        };
        self.end();
        let _ = arrived.send(Arrived::Ended(ended)).await;
    }

    async fn read_some(
        &self,
        from: &mut OwnedReadHalf,
        decoder: &mut PacketDecoder,
        arrived: &mpsc::Sender<Arrived>,
        stop: &watch::Sender<()>,
    ) -> Result<(), LinkError> {
        while let Some(packet) = decoder.next_packet()? {
            self.take(packet, arrived).await;
        }
        let mut bytes = vec![0; 64 << 10];
        let count = tokio::select! {
            count = from.read(&mut bytes) => count.map_err(|error| LinkError::Broken(error.to_string()))?,
            () = stop.closed() => return Err(LinkError::Closed),
        };
        if count == 0 {
            return Err(LinkError::Closed);
        }
        decoder.push(&bytes[..count]);
        Ok(())
    }

    async fn take(&self, packet: Packet, arrived: &mpsc::Sender<Arrived>) {
        if packet.is_ddm() {
            return say(&packet, arrived).await;
        }
        if !packet.is_reply() {
            // An event for the debugger.
            return self.to_debugger(None, &packet);
        }
        let waiting = self.lock().pending.remove(&packet.id);
        match waiting {
            Some(Waiting::Monitor(answer)) => {
                say(&packet, arrived).await;
                let _ = answer.send(packet);
            }
            Some(Waiting::Debugger { session, id }) => self.to_debugger(Some(session), &Packet { id, ..packet }),
            // It is too late, or was not requested.
            None => {}
        }
    }

    fn to_debugger(&self, session: Option<u64>, packet: &Packet) {
        let mut shared = self.lock();
        let Some(debugger) = &shared.debugger else { return };
        if session.is_some_and(|session| session != debugger.session) {
            return;
        }
        let bytes = packet.encode();
        let unread = debugger.unread.fetch_add(bytes.len(), Relaxed) + bytes.len();
        if unread > MOST_UNREAD || debugger.packets.send(bytes).is_err() {
            shared.debugger = None;
        }
    }
}

/// Passes on all chunks of a packet.
async fn say(packet: &Packet, arrived: &mpsc::Sender<Arrived>) {
    let chunks = match chunk::decode(&packet.data) {
        Ok(chunks) => chunks,
        Err(error) => {
            let _ = arrived.send(Arrived::Malformed(error)).await;
            return;
        }
    };
    for chunk in chunks {
        let what = match Message::read(&chunk) {
            Ok(message) => Arrived::Message(message),
            Err(error) => Arrived::Malformed(error),
        };
        let _ = arrived.send(what).await;
    }
}

/// Sends what there is until an empty packet, an error, or the end of the reader.
async fn write(mut to: OwnedWriteHalf, mut packets: mpsc::Receiver<Vec<u8>>, mut stopped: watch::Receiver<()>) {
    loop {
        let packet = tokio::select! {
            packet = packets.recv() => packet.unwrap_or_default(),
            // The reader has been dropped.
            _ = stopped.changed() => break,
        };
        if packet.is_empty() || to.write_all(&packet).await.is_err() {
            break;
        }
    }
}
