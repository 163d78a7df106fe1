//! All VMs: finds them, keeps their state across restarts, and notifies subscribers.

mod drive;
mod watch;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use et_ddm::heap::When;
use et_ddm::message::Hello;
use et_ddm::{Message, Request};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};

use crate::aside::aside;
use crate::connection::{Connection, LinkError};
use crate::debugger::{self, Target};
use crate::discovery::{Discovery, Listener, is_plain_debuggee};
use crate::vm::Vm;
pub use watch::Watched;

/// How often VMs are looked for.
const SCAN: Duration = Duration::from_secs(2);
/// When one that did not answer, or takes one monitor only, is asked again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a VM may take to say what it can do.
const GREETING: Duration = Duration::from_secs(5);
/// Maximum number of ended VMs that are kept.
const MOST_GONE: usize = 30;
/// Maximum number of VMs.
const MOST_VMS: usize = 1000;
/// Maximum number of messages of a VM that are queued.
const MOST_ARRIVED: usize = 64;
/// Maximum number of notifications that a client may lag behind.
const MOST_NEWS: usize = 4096;

/// Where debuggers find the selected VM, by default.
pub const SELECTED_PORT: u16 = 8700;

/// A notification.
#[derive(Clone, Debug)]
pub struct Change {
    /// Of which VM; `None`: of the list.
    pub vm: Option<u32>,
    /// Name of the event.
    pub event: &'static str,
    /// Data in JSON.
    pub data: Arc<str>,
}

/// State of all VMs.
#[derive(Debug, Default)]
struct State {
    vms: BTreeMap<u32, Entry>,
    last_id: u32,
    selected: Option<u32>,
    /// Listeners that are being spoken to, or were in vain: until when.
    known: HashMap<Key, Known>,
    selected_port: Option<u16>,
    /// Ports at which agents say that they listen, and why nothing is known of them.
    silent: BTreeMap<u16, String>,
}

/// A socket that listens: its port, and which one it is.
type Key = (u16, u64);

fn key(listener: &Listener) -> Key {
    (listener.address.port(), listener.inode)
}

#[derive(Debug)]
enum Known {
    Busy {
        has_token: bool,
    },
    /// Asked again then; `None`: never.
    Refused(Option<Instant>),
}

/// A VM with what it takes to speak to it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) vm: Vm,
    pub(crate) connection: Option<Connection>,
    watch: watch::Switch,
    debugger: Option<tokio::task::AbortHandle>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(task) = &self.debugger {
            task.abort();
        }
    }
}

/// How ports for debuggers are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebuggerPorts {
    /// The port of the selected VM; the ports of the others follow it.
    pub selected: u16,
}

/// All VMs of this machine.
#[derive(Debug)]
pub struct Monitor {
    state: Mutex<State>,
    changes: broadcast::Sender<Change>,
    ports: Option<DebuggerPorts>,
}

impl Monitor {
    /// Without ports for debuggers if none are given.
    pub fn new(ports: Option<DebuggerPorts>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changes: broadcast::channel(MOST_NEWS).0, ports })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches for VMs forever.
    pub async fn run(self: Arc<Self>, discovery: Discovery) {
        let mut tick = tokio::time::interval(SCAN);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.listen_for_selected().await;
            self.scan(&discovery).await;
        }
    }

    /// Looks for VMs once; returns when all that are new have greeted, or have had their time.
    pub async fn scan_once(self: &Arc<Self>, discovery: &Discovery) {
        let tasks = self.scan(discovery).await;
        for task in tasks {
            let _ = task.await;
        }
    }

    async fn scan(self: &Arc<Self>, discovery: &Discovery) -> Vec<tokio::task::JoinHandle<()>> {
        let looking = discovery.clone();
        let listeners = aside(move || looking.listeners()).await.unwrap_or_default();
        let new: Vec<Listener> = {
            let mut state = self.lock();
            let now = Instant::now();
            let there: HashSet<Key> = listeners.iter().map(key).collect();
            state.known.retain(|key, known| match known {
                Known::Busy { .. } => true,
                Known::Refused(again) => there.contains(key) && again.is_none_or(|again| now < again),
            });
            state.silent.retain(|port, _| listeners.iter().any(|it| it.address.port() == *port));
            self.show_late_tokens(&mut state, &listeners);
            let own: Vec<u16> =
                state.vms.values().filter_map(|it| it.vm.debugger_port).chain(state.selected_port).collect();
            let is_new = |it: &Listener| !state.known.contains_key(&key(it)) && !own.contains(&it.address.port());
            let new: Vec<Listener> = listeners.into_iter().filter(is_new).collect();
            state.known.extend(new.iter().map(|it| (key(it), Known::Busy { has_token: it.token.is_some() })));
            new
        };
        // Each is contacted concurrently, so that a silent one does not block others.
        new.into_iter().map(|listener| self.clone().meet(listener)).collect()
    }

    /// An agent listens before it announces itself: VMs connected in between get the token now.
    fn show_late_tokens(&self, state: &mut State, listeners: &[Listener]) {
        for listener in listeners {
            if let (Some(token), Some(Known::Busy { has_token: has_token @ false })) =
                (&listener.token, state.known.get_mut(&key(listener)))
            {
                *has_token = true;
                let its = state.vms.values().find(|it| it.vm.port() == Some(listener.address.port()));
                if let Some(connection) = its.and_then(|it| it.connection.clone()) {
                    let token = token.clone();
                    tokio::spawn(async move { connection.show_token(&token).await });
                }
            }
        }
    }

    /// Speaks to a listener; the task returned ends when it is known what that is.
    fn meet(self: Arc<Self>, listener: Listener) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            let looked_at = listener.clone();
            let is_plain = aside(move || is_plain_debuggee(&looked_at)).await.unwrap_or(false);
            if is_plain {
                return self.refuse(&listener, None, None);
            }
            let (to, arrived) = mpsc::channel(MOST_ARRIVED);
            match Connection::open(listener.address, listener.token.as_deref(), to).await {
                Ok((connection, hello)) => {
                    let Some(id) = self.enter(&connection, hello, listener.address.port()).await else {
                        connection.end();
                        return self.refuse(&listener, Some(Instant::now() + AGAIN), None);
                    };
                    let (monitor, driven, known) = (self.clone(), connection.clone(), key(&listener));
                    tokio::spawn(async move {
                        let drive = drive::Drive { monitor: monitor.clone(), id, connection: driven, arrived };
                        let why = drive.run().await;
                        monitor.leave(id, &why);
                        monitor.lock().known.remove(&known);
                    });
                    // A command that looks for VMs once has these as well.
                    for request in [Request::Features, Request::HeapInfo(When::Now)] {
                        if let Ok(Some(message)) = connection.request(&request, GREETING).await {
                            self.take(id, message);
                        }
                    }
                }
                Err(why @ (LinkError::NotDdm | LinkError::Packet(_))) => self.refuse(&listener, None, Some(&why)),
                Err(why) => self.refuse(&listener, Some(Instant::now() + AGAIN), Some(&why)),
            }
        })
    }

    /// It is left alone, up to then. If an agent has said that it listens there, that is no stranger's port: it is said.
    fn refuse(&self, listener: &Listener, until: Option<Instant>, why: Option<&LinkError>) {
        let mut state = self.lock();
        state.known.insert(key(listener), Known::Refused(until));
        if let (Some(_), Some(why)) = (&listener.token, why) {
            state.silent.insert(listener.address.port(), why.to_string());
        }
    }

    /// The VM's place in the list: that of its last run, or a new one.
    async fn enter(self: &Arc<Self>, connection: &Connection, hello: Hello, port: u16) -> Option<u32> {
        let (id, is_new) = {
            let mut state = self.lock();
            let is_last_run = |it: &Entry| !it.vm.is_here() && it.vm.application() == hello.application;
            let known = state.vms.iter().find(|(_, it)| is_last_run(it)).map(|(id, _)| *id);
            if known.is_none() && state.vms.len() >= MOST_VMS {
                return None;
            }
            let id = known.unwrap_or_else(|| {
                state.last_id += 1;
                state.last_id
            });
            let entry = state.vms.entry(id).or_insert_with(|| Entry {
                vm: Vm::default(),
                connection: None,
                watch: watch::Switch::default(),
                debugger: None,
            });
            entry.vm.begin(hello, port);
            entry.connection = Some(connection.clone());
            state.selected.get_or_insert(id);
            state.silent.remove(&port);
            (id, known.is_none())
        };
        if is_new {
            self.listen_for(id).await;
        }
        self.tell_list();
        // Clients that watched the last run watch this one.
        for (event, data) in self.all(id).unwrap_or_default() {
            self.tell(Some(id), event, &data);
        }
        Some(id)
    }

    fn leave(&self, id: u32, why: &LinkError) {
        {
            let mut state = self.lock();
            if let Some(entry) = state.vms.get_mut(&id) {
                entry.vm.end(why.to_string());
                entry.connection = None;
            }
            let gone: Vec<u32> = state.vms.iter().filter(|(_, it)| !it.vm.is_here()).map(|(id, _)| *id).collect();
            let selected = state.selected;
            for id in gone.iter().take(gone.len().saturating_sub(MOST_GONE)).filter(|&&id| Some(id) != selected) {
                state.vms.remove(id);
            }
        }
        self.tell_list();
    }

    /// Opens a separate port for debuggers; if that fails, the port of the selected VM can be used.
    async fn listen_for(self: &Arc<Self>, id: u32) {
        let Some(ports) = self.ports else { return };
        let mut port = ports.selected;
        let listener = loop {
            port = match port.checked_add(1) {
                Some(next) if next - ports.selected <= 2000 => next,
                _ => return,
            };
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                break listener;
            }
        };
        let target = Arc::new(Debuggee { monitor: Arc::downgrade(self), vm: Some(id) });
        let task = tokio::spawn(debugger::serve(listener, target));
        match self.lock().vms.get_mut(&id) {
            Some(entry) => {
                entry.vm.debugger_port = Some(port);
                entry.debugger = Some(task.abort_handle());
            }
            None => task.abort(),
        }
    }

    /// Another process may use the port: tries again until it succeeds.
    async fn listen_for_selected(self: &Arc<Self>) {
        let Some(ports) = self.ports.filter(|_| self.lock().selected_port.is_none()) else { return };
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, ports.selected)).await {
            self.lock().selected_port = Some(ports.selected);
            self.tell_list();
            let target = Arc::new(Debuggee { monitor: Arc::downgrade(self), vm: None });
            tokio::spawn(debugger::serve(listener, target));
        }
    }

    /// Subscribes to notifications.
    pub fn listen(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn tell(&self, vm: Option<u32>, event: &'static str, data: &Value) {
        if self.changes.receiver_count() > 0 {
            let _ = self.changes.send(Change { vm, event, data: data.to_string().into() });
        }
    }

    fn tell_list(&self) {
        if self.changes.receiver_count() > 0 {
            self.tell(None, "vms", &self.list());
        }
    }

    /// The list of VMs.
    pub fn list(&self) -> Value {
        let state = self.lock();
        let rows: Vec<Value> = state
            .vms
            .iter()
            .map(|(id, it)| it.vm.row(*id, it.connection.as_ref().is_some_and(Connection::has_debugger)))
            .collect();
        let silent: Vec<Value> = state.silent.iter().map(|(port, why)| json!({ "port": port, "why": why })).collect();
        json!({ "selected": state.selected, "selectedPort": state.selected_port, "vms": rows, "silent": silent })
    }

    /// All that is known of a VM, as news.
    pub fn all(&self, id: u32) -> Option<Vec<crate::vm::News>> {
        self.lock().vms.get(&id).map(|entry| entry.vm.all())
    }

    /// Calls `look` with the state of a VM; `None` if there is no such VM.
    pub fn look<T>(&self, id: u32, look: impl FnOnce(&Vm) -> T) -> Option<T> {
        self.lock().vms.get(&id).map(|entry| look(&entry.vm))
    }

    /// The connection to a VM; `None` if it has ended.
    pub fn connection(&self, id: u32) -> Option<Connection> {
        self.lock().vms.get(&id)?.connection.clone()
    }

    /// Finds a VM by process id, or by its number here.
    pub fn find(&self, pid: u32) -> Option<u32> {
        self.lock().vms.iter().find(|(_, it)| it.vm.is_here() && it.vm.pid() == pid).map(|(id, _)| *id)
    }

    /// Debuggers find this one at the selected VM's port from now on; one that is there stays where it is.
    pub fn select(&self, id: u32) -> bool {
        let mut state = self.lock();
        let is_there = state.vms.contains_key(&id);
        if is_there {
            state.selected = Some(id);
        }
        drop(state);
        self.tell_list();
        is_there
    }

    /// Handles a message of a VM.
    pub(crate) fn take(&self, id: u32, message: Message) {
        let news = self.lock().vms.get_mut(&id).and_then(|entry| entry.vm.take(message));
        if let Some((event, data)) = news {
            self.tell(Some(id), event, &data);
        }
    }
}

/// A VM, or whichever is selected, as debuggers see it.
struct Debuggee {
    monitor: std::sync::Weak<Monitor>,
    vm: Option<u32>,
}

impl Target for Debuggee {
    fn connection(&self) -> Option<Connection> {
        let monitor = self.monitor.upgrade()?;
        let selected = monitor.lock().selected;
        monitor.connection(self.vm.or(selected)?)
    }

    fn changed(&self, connection: &Connection) {
        let Some(monitor) = self.monitor.upgrade() else { return };
        {
            let mut state = monitor.lock();
            // Not the selected one: that may be another by now.
            let its = state.vms.values_mut().find(|it| it.connection.as_ref().is_some_and(|its| its.is(connection)));
            if let Some(entry) = its {
                entry.vm.debugger_changed();
            }
        }
        monitor.tell_list();
    }
}
