//! Work that needs the VM, done sequentially on one attached thread.

mod answers;
mod exit;
mod graph;

use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use et_ddm::Message;
use et_ddm::heap::{HeapInfo, When};
use et_ddm::message::Failure;
use et_jvm::env::Env;
use et_jvm::jvmti::JvmtiError;
use et_jvm::threads::agent_thread;

use crate::allocations;
use crate::heap::{self, share};
use crate::hub::{Note, Ticket};
use crate::programs;
use crate::state::{Monitor, say};
use crate::task::{Call, Task};
use crate::{monitors, threads};

pub use graph::log as log_heap;

/// Clients without the token are subject to the limit of [`share`].
const TOO_OFTEN: &str = "without the token, heap walks are limited to a twentieth of the time: try again later";

/// Starts the thread.
pub fn start(monitor: &'static Monitor, env: Env) -> Result<(), JvmtiError> {
    let calls = programs::start(monitor, env)?;
    let (sender, receiver) = channel();
    env.frame(8, |env| {
        agent_thread(monitor.jvmti, env, c"ET monitor", move |env| {
            let mut worker = Worker { monitor, tells_monitors: false };
            for task in receiver {
                if monitor.is_live() {
                    env.frame(64, |env| worker.run(env, task));
                    env.clear_exception();
                }
            }
        })
        .map(drop)
    })?;
    monitor.set_tasks(sender, calls);
    Ok(())
}

struct Worker {
    monitor: &'static Monitor,
    tells_monitors: bool,
}

/// A failure message.
pub fn failed(code: u32, message: impl Into<String>) -> Message {
    Message::Fail(Failure { code, message: message.into() })
}

impl Worker {
    fn run(&mut self, env: Env, task: Task) {
        let monitor = self.monitor;
        match task {
            Task::Threads(ticket) => {
                let threads = threads::all(monitor, env).into_iter();
                let threads = threads.map(|(id, thread)| (id, threads::name(monitor, env, thread))).collect();
                monitor.hub.put(Note::Threads(ticket.line().clone(), threads));
            }
            Task::States => monitor.hub.put(Note::States(threads::states(monitor, env, false))),
            Task::Ask(asker, request) => {
                let reply = answers::answer(monitor, env, &request, asker.is_trusted);
                monitor.hub.reply(&asker, reply);
            }
            Task::AwaitPauses => await_pauses(monitor),
            Task::HeapInfos(to) => {
                for (ticket, reason) in to {
                    let info = heap_info(monitor, reason, true);
                    monitor.hub.put(Note::To(ticket.line().clone(), Message::HeapInfo(vec![info])));
                }
            }
            Task::Walk(asker, ..) if !asker.is_trusted && !share::is_due() => {
                monitor.hub.reply(&asker, Some(failed(Failure::FAILED, TOO_OFTEN)));
            }
            Task::Walk(asker, ticket, ends) => {
                monitor.hub.reply(&asker, None);
                self.segments(env, &[(ticket, ends)]);
            }
            // Another request came first.
            Task::Segments(_) if !share::is_due() => monitor.hub.put(Note::WalkOwed),
            Task::Segments(to) => self.segments(env, &to),
            Task::NativeSegments(to) => to.iter().for_each(|ticket| heap::native::send(monitor, ticket.line())),
            Task::Graph(asker, keeps_ids) => graph::send(monitor, env, &asker, keeps_ids),
            Task::LogHeap(asker, name) => {
                let reply = match &monitor.xml {
                    Some(xml) => graph::log(monitor, env, xml, &name)
                        .map_or_else(|why| failed(Failure::FAILED, why), Message::HeapLogged),
                    None => failed(Failure::UNSUPPORTED, "the agent writes no log: xml=FILE is not among its options"),
                };
                monitor.hub.reply(&asker, Some(reply));
            }
            Task::Allocations(rows) => {
                monitor.hub.put(Note::Allocations(allocations::report(rows).unwrap_or_default()));
            }
            Task::Program(asker, chunk) => monitor.call(Call::Chunk(asker, chunk)),
            Task::Connected => monitor.call(Call::Connection(true)),
            Task::Disconnected => monitor.call(Call::Connection(false)),
            Task::MonitorEvents(on) => self.switch_monitors(on),
            Task::StartDebugger => {
                let thread = monitor.jvmti.current_thread(env).ok().flatten();
                let started = match &monitor.jdwp {
                    Some(jdwp) => jdwp.start(env, thread),
                    None => Err("the agent was not started with debug=on".to_owned()),
                };
                monitor.hub.put(Note::Debugger(started));
            }
            Task::Exit(status) => exit::exit(env, status),
        }
    }

    fn segments(&self, env: Env, to: &[(Ticket, bool)]) {
        let lines: Vec<_> = to.iter().map(|(ticket, ends)| (ticket.line().clone(), *ends)).collect();
        if let Err(error) = heap::send(self.monitor, env, &lines) {
            say(&format!("the heap cannot be shown: {error}"));
        }
    }

    /// The log wants them all the time.
    fn switch_monitors(&mut self, on: bool) {
        if self.monitor.xml.is_some() || on == self.tells_monitors {
            return;
        }
        self.tells_monitors = on;
        if let Err(error) = monitors::switch(self.monitor, on) {
            say(&format!("monitors are not reported: {error}"));
        }
    }
}

/// Waits until a collection seems to have had its last pause, and no longer than a second.
fn await_pauses(monitor: &Monitor) {
    for _ in 0..20 {
        let before = monitor.hub.collections.load(Ordering::Acquire);
        std::thread::sleep(Duration::from_millis(50));
        if monitor.hub.collections.load(Ordering::Acquire) == before {
            return;
        }
    }
}

/// The size of the heap; the number of objects may be an old one, lest it is counted too often.
pub fn heap_info(monitor: &Monitor, reason: When, may_be_old: bool) -> HeapInfo {
    let hotspot = monitor.hotspot.get();
    let heap = hotspot.map(|hotspot| hotspot.heap_use()).unwrap_or_default();
    let most = hotspot.and_then(|hotspot| hotspot.heap_limit()).unwrap_or(0);
    HeapInfo {
        heap: heap::FIRST,
        time_ms: crate::time::millis(),
        reason,
        most: HeapInfo::clamped(most),
        size: HeapInfo::clamped(heap.committed),
        used: HeapInfo::clamped(heap.used),
        objects: HeapInfo::clamped(heap::count(monitor, may_be_old)),
    }
}
