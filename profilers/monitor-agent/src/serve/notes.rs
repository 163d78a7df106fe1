//! Forwards notes of VM threads to subscribers. And handles the debugger's side.

use std::time::Instant;

use et_ddm::heap::{Walk, When};
use et_ddm::ours::{Events, Happened};
use et_ddm::packet::NOT_IMPLEMENTED;
use et_ddm::threads::{Layout, ThreadStatuses};
use et_ddm::{Message, Packet};

use super::Server;
use crate::hub::Note;
use crate::state;
use crate::task::Task;

/// The bit by which an event is asked for.
fn kind(what: &Happened) -> u32 {
    match what {
        Happened::GcStart | Happened::GcFinish { .. } => Events::COLLECTIONS,
        _ => Events::MONITORS,
    }
}

impl Server {
    pub(super) fn take_notes(&mut self) {
        let (notes, lost) = self.monitor.hub.take();
        for note in notes {
            self.note(note);
        }
        self.connections.iter_mut().for_each(|connection| connection.flush_events(lost));
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Reply(asker, message) => {
                if let Some(to) = self.connections.iter_mut().find(|it| it.line.id == asker.line.id) {
                    to.reply(asker.request, asker.index, message.map(|message| message.chunk()));
                }
            }
            Note::To(line, message) => {
                if let Some(to) = self.connections.iter_mut().find(|it| it.line.id == line.id) {
                    to.tell(message.chunk());
                }
            }
            Note::ToAll(chunk) => {
                for to in self.connections.iter_mut().filter(|it| it.has_said_hello && !it.is_slow()) {
                    to.tell(chunk.clone());
                }
            }
            Note::Event(event) => {
                let kind = kind(&event.what);
                self.connections.iter_mut().for_each(|connection| connection.event(&event, kind));
            }
            Note::ThreadStarted { id, name } => {
                self.connections.iter_mut().for_each(|connection| connection.thread_started(id, &name));
            }
            Note::ThreadEnded(id) => {
                self.connections.iter_mut().for_each(|connection| connection.thread_ended(id));
            }
            Note::Threads(line, threads) => {
                if let Some(to) = self.connections.iter_mut().find(|it| it.line.id == line.id) {
                    threads.iter().for_each(|(id, name)| to.thread_started(*id, name));
                    to.threads_listed();
                }
            }
            Note::States(threads) => {
                self.states_asked = false;
                let (now, states) = (Instant::now(), ThreadStatuses { layout: Layout::Of2007, threads });
                self.connections.iter_mut().for_each(|connection| connection.states(now, &states));
            }
            Note::Allocations(data) => self.allocations(data),
            Note::Collected => self.collected(),
            Note::WalkOwed => self.owes_walk = true,
            Note::Debugger(found) => self.debugger_ready(found),
            Note::Name(name) => {
                let chunk = Message::ApplicationName(name).chunk();
                for to in self.connections.iter_mut().filter(|it| it.has_said_hello) {
                    to.tell(chunk.clone());
                }
            }
            Note::End => self.has_ended = true,
        }
    }

    /// A collection has ended: subscribers get heap statistics.
    fn collected(&mut self) {
        let (count, is_concurrent) = (
            self.monitor.hotspot.get().and_then(|hotspot| hotspot.collections()),
            self.monitor.collects_concurrently(),
        );
        if !self.collections.pause(count, is_concurrent, Instant::now()) {
            return;
        }
        let (mut infos, mut native) = (Vec::new(), Vec::new());
        for connection in self.connections.iter_mut().filter(|it| !it.is_slow()) {
            let (line, follows) = (&connection.line, &mut connection.follows);
            let ticket = || line.ticket();
            if matches!(follows.heap_info, When::NextGc | When::EveryGc)
                && let Some(ticket) = ticket()
            {
                infos.push((ticket, follows.heap_info));
                if follows.heap_info == When::NextGc {
                    follows.heap_info = When::Never;
                }
            }
            self.owes_walk |= follows.segments == Walk::EveryGc;
            if follows.native == Walk::EveryGc {
                native.extend(ticket());
            }
        }
        if is_concurrent && (self.owes_walk || !infos.is_empty() || !native.is_empty()) {
            self.monitor.task(Task::AwaitPauses);
        }
        if !infos.is_empty() {
            self.monitor.task(Task::HeapInfos(infos));
        }
        if !native.is_empty() {
            self.monitor.task(Task::NativeSegments(native));
        }
    }

    fn debugger_ready(&mut self, found: Result<u16, String>) {
        let Some(debugger) = &mut self.debugger else { return };
        let opened = found.and_then(|port| debugger.open(port).map_err(|error| error.to_string()));
        if let Err(why) = opened {
            state::say(&format!("cannot start debugging: {why}"));
            self.drop_debugger();
        }
    }

    /// Packets that waited are answered: it cannot be done.
    fn drop_debugger(&mut self) {
        let Some(debugger) = self.debugger.take() else { return };
        let Some(owner) = self.connections.iter_mut().find(|it| it.line.id == debugger.owner) else { return };
        for id in debugger.waiting {
            owner.write(&Packet::reply(id, NOT_IMPLEMENTED, Vec::new()).encode());
        }
    }

    pub(super) fn serve_debugger(&mut self, buffer: &mut [u8]) {
        let Some(debugger) = &mut self.debugger else { return };
        let mut is_open = debugger.receive(buffer).unwrap_or(false);
        let mut owner = self.connections.iter_mut().find(|it| it.line.id == debugger.owner);
        loop {
            match (debugger.packet(), &mut owner) {
                (Ok(Some(packet)), Some(owner)) => owner.write(&packet.encode()),
                (Ok(None), Some(_)) => break,
                _ => {
                    is_open = false;
                    break;
                }
            }
        }
        if !is_open {
            self.debugger = None;
        }
    }

    pub(super) fn end_debugger_if_broken(&mut self) {
        if let Some(debugger) = &mut self.debugger
            && debugger.has_output()
            && debugger.send().is_err()
        {
            self.drop_debugger();
        }
    }
}
