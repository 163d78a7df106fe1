//! All input and output, on one thread that is not attached to the VM: it never calls the VM, nor waits for threads
//! that do.

mod collections;
mod connection;
mod debugger;
mod exempt;
mod listen;
mod notes;
mod requests;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use et_ddm::heap::Walk;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::heap::share;
use crate::state::{self, Monitor};
use crate::task::Task;
use collections::Collections;
use connection::{Connection, Standing};
use debugger::Debugger;

pub use listen::listen;

/// Connections at a time; one more takes the place of a stranger's or of one that has said nothing, or is refused.
const MOST_CONNECTIONS: usize = 16;
/// Maximum number of connections of other users that have not sent the token.
const MOST_STRANGERS: usize = 4;
/// Connections that are taken before anything else is done.
const MOST_AT_ONCE: usize = 16;
/// Time for which a silent connection is protected from being replaced.
const GRACE: Duration = Duration::from_secs(1);
/// How often time-outs are looked at, and the log is written.
const TICK: Duration = Duration::from_millis(100);
/// The interval while there is no connection and no log.
const IDLE: Duration = Duration::from_secs(60);

/// State of the thread.
#[derive(Debug)]
struct Server {
    monitor: &'static Monitor,
    /// `None` if no connections are accepted.
    listener: Option<TcpListener>,
    token: String,
    connections: Vec<Connection>,
    next_line: u64,
    debugger: Option<Debugger>,
    /// A task that asks for states of threads is under way.
    states_asked: bool,
    collections: Collections,
    /// Whether contention and waits are reported.
    tells_monitors: bool,
    /// When the next allocation report is due, while allocations are counted.
    allocations_due: Option<Instant>,
    /// A task that asks for that is under way.
    allocations_asked: bool,
    /// The heap has to be sent to subscribers as soon as the limit for heap walks allows it.
    owes_walk: bool,
    /// The program waits for a debugger.
    waits: bool,
    has_ended: bool,
}

/// What is ready in a turn of the loop.
#[derive(Debug, Default)]
struct Ready {
    listener: bool,
    debugger: Flags,
    connections: Vec<Flags>,
}

/// Whether something can be read or written.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    reads: bool,
    writes: bool,
}

/// Starts the thread.
pub fn start(monitor: &'static Monitor, listener: Option<TcpListener>, token: String, waits: bool) -> io::Result<()> {
    let mut server = Server {
        monitor,
        listener,
        token,
        connections: Vec::new(),
        next_line: 1,
        debugger: None,
        states_asked: false,
        collections: Collections::default(),
        tells_monitors: false,
        allocations_due: None,
        allocations_asked: false,
        owes_walk: false,
        waits,
        has_ended: false,
    };
    // Signals belong to the program: a thread of the agent must not handle them.
    let run = move || {
        block_signals();
        while !server.has_ended {
            server.turn();
        }
        server.finish();
    };
    std::thread::Builder::new().name("ET monitor".to_owned()).stack_size(256 << 10).spawn(run).map(drop)
}

#[allow(unsafe_code, reason = "a system call")]
fn block_signals() {
    // SAFETY: a set of signals of our own, filled before it is used.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

impl Server {
    /// Waits until something happens, and does what is to be done.
    fn turn(&mut self) {
        let ready = match self.wait() {
            Ok(ready) => ready,
            Err(_) => {
                // The system is short of memory; it will not be for ever.
                std::thread::sleep(TICK);
                return;
            }
        };
        let mut buffer = [0; 16 << 10];
        for (index, flags) in ready.connections.iter().enumerate().rev() {
            if flags.reads && !self.read(index, &mut buffer) {
                self.close(index);
            }
        }
        if ready.debugger.reads || ready.debugger.writes {
            self.serve_debugger(&mut buffer);
        }
        if ready.listener {
            self.accept();
        }
        self.take_notes();
        self.tick();
        for index in (0..self.connections.len()).rev() {
            if self.connections[index].has_output() && self.connections[index].send().is_err() {
                self.close(index);
            }
        }
        self.end_debugger_if_broken();
    }

    fn wait(&self) -> io::Result<Ready> {
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.monitor.hub.descriptor(), PollFlags::IN)];
        descriptors.extend(self.listener.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
        let is_full = self.debugger.as_ref().is_some_and(Debugger::is_full);
        for connection in &self.connections {
            let is_debuggers = self.debugger.as_ref().is_some_and(|debugger| debugger.owner == connection.line.id);
            let reads = if is_full && is_debuggers { PollFlags::empty() } else { PollFlags::IN };
            let writes = if connection.has_output() { PollFlags::OUT } else { PollFlags::empty() };
            descriptors.push(PollFd::from_borrowed_fd(connection.stream.as_fd(), reads | writes));
        }
        if let Some(debugger) = &self.debugger
            && let Some(stream) = debugger.stream()
        {
            let is_slow = self.connections.iter().any(|it| it.line.id == debugger.owner && it.is_slow());
            let reads = if is_slow { PollFlags::empty() } else { PollFlags::IN };
            let writes = if debugger.has_output() { PollFlags::OUT } else { PollFlags::empty() };
            descriptors.push(PollFd::from_borrowed_fd(stream.as_fd(), reads | writes));
        }
        let time = self.until_due();
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut descriptors, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = |descriptor: &PollFd<'_>| {
            let found = descriptor.revents();
            let broken = PollFlags::HUP | PollFlags::ERR;
            Flags { reads: found.intersects(PollFlags::IN | broken), writes: found.contains(PollFlags::OUT) }
        };
        let mut found = descriptors[1..].iter().map(flags);
        let listener = self.listener.is_some() && found.next().unwrap_or_default().reads;
        let connections = found.by_ref().take(self.connections.len()).collect();
        Ok(Ready { listener, connections, debugger: found.next().unwrap_or_default() })
    }

    /// Until something is to be done without anything having happened.
    fn until_due(&self) -> Duration {
        let now = Instant::now();
        let states = self.connections.iter().filter_map(|it| it.follows.states).map(|(due, _)| due);
        let states = if self.states_asked { None } else { states.min() };
        let idle = if self.connections.is_empty() && self.monitor.xml.is_none() { IDLE } else { TICK };
        let allocations = self.allocations_due.filter(|_| !self.allocations_asked);
        states.into_iter().chain(allocations).min().map_or(idle, |due| due.saturating_duration_since(now).min(idle))
    }

    fn accept(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let Some(Ok((stream, peer))) = self.listener.as_ref().map(TcpListener::accept) else { return };
            let standing = self.standing(&stream, peer);
            if self.has_room(standing)
                && let Ok(connection) = Connection::new(stream, self.next_line, standing)
            {
                self.next_line += 1;
                self.connections.push(connection);
            }
        }
    }

    /// Initial rights of a client.
    fn standing(&self, stream: &TcpStream, peer: SocketAddr) -> Standing {
        match stream.local_addr() {
            _ if self.monitor.options.trusts_all => Standing::Trusted,
            Ok(here) if et_system::peers::is_trusted(peer, here) => Standing::Owner,
            _ => Standing::Stranger,
        }
    }

    /// Makes room for another connection, if necessary by closing one. Strangers never displace others.
    fn has_room(&mut self, standing: Standing) -> bool {
        let now = Instant::now();
        let is_stranger = |it: &Connection| it.standing == Standing::Stranger;
        let is_silent = |it: &Connection| it.silent_for(now).is_some_and(|time| time > GRACE);
        let mine = standing == Standing::Stranger;
        let strangers = self.connections.iter().filter(|it| is_stranger(it)).count();
        if self.connections.len() < MOST_CONNECTIONS && !(mine && strangers >= MOST_STRANGERS) {
            return true;
        }
        let goes =
            |it: &Connection| if mine { is_stranger(it) && is_silent(it) } else { is_stranger(it) || is_silent(it) };
        let index = self.connections.iter().position(goes);
        index.map(|index| self.close(index)).is_some()
    }

    /// False if the connection is to be closed.
    fn read(&mut self, index: usize, buffer: &mut [u8]) -> bool {
        let goes_on = self.connections[index].receive(buffer).unwrap_or(false);
        loop {
            match self.connections[index].packet() {
                Ok(Some(packet)) => self.packet(index, packet),
                Ok(None) => return goes_on,
                // A stranger, or one that has lost its way.
                Err(_) => return false,
            }
        }
    }

    fn close(&mut self, index: usize) {
        let connection = self.connections.swap_remove(index);
        if self.debugger.as_ref().is_some_and(|debugger| debugger.owner == connection.line.id) {
            self.debugger = None;
        }
        if connection.has_said_hello {
            self.monitor.task(Task::Disconnected);
        }
        drop(connection);
        self.update_wanted();
    }

    /// Time-outs, states of threads that are due, and the log.
    fn tick(&mut self) {
        let now = Instant::now();
        for index in (0..self.connections.len()).rev() {
            if self.connections[index].has_failed(now) {
                self.close(index);
            }
        }
        let is_due = |it: &Connection| it.follows.states.is_some_and(|(due, _)| due <= now) && !it.is_slow();
        if !self.states_asked && self.connections.iter().any(is_due) {
            self.states_asked = true;
            self.monitor.task(Task::States);
        }
        if !self.allocations_asked && self.allocations_due.is_some_and(|due| due <= now) {
            self.allocations_asked = true;
            let rows = self.connections.iter().filter_map(|it| it.follows.allocations).map(|(_, rows)| rows).max();
            self.monitor.task(Task::Allocations(rows.unwrap_or(0)));
        }
        if self.owes_walk && share::is_due() {
            self.owes_walk = false;
            let follows = |it: &&Connection| it.follows.segments == Walk::EveryGc && !it.is_slow();
            let to = self.connections.iter().filter(follows);
            let to: Vec<_> = to.filter_map(|it| Some((it.line.ticket()?, it.follows.objects))).collect();
            if !to.is_empty() {
                self.monitor.task(Task::Segments(to));
            }
        }
        if let Some(xml) = &self.monitor.xml
            && let Some(why) = xml.flush()
        {
            state::say(&why);
        }
    }

    /// The program ends: what waits to be sent is sent, as far as that goes at once.
    fn finish(&mut self) {
        let end = Instant::now() + TICK;
        while self.connections.iter().any(Connection::has_output) && Instant::now() < end {
            self.connections.retain_mut(|connection| connection.send().is_ok());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.connections.clear();
        self.monitor.hub.finish();
    }
}
