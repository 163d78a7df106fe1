//! A debugger that suspends all threads also suspends the agent's, and with them reports of thread states. So these are
//! resumed at once, by inserting commands among those of the debugger and hiding their replies from it.
//!
//! Only `libjdwp` can do that: it has the VM's capability to suspend threads, which is exclusive.

use std::collections::HashSet;

use et_ddm::Packet;
use et_ddm::packet::Kind;
use et_ddm::wire::{Reader, Writer};

/// First id of our commands. Debuggers number theirs from small values.
const FIRST_ID: u32 = 0x7000_0000;
/// `VirtualMachine.IDSizes`, `.AllThreads`, `.Suspend`; `ThreadReference.Name`, `.Resume`; `Event.Composite`.
const ID_SIZES: (u8, u8) = (1, 7);
const ALL_THREADS: (u8, u8) = (1, 4);
const SUSPEND: (u8, u8) = (1, 8);
const NAME: (u8, u8) = (11, 1);
const RESUME: (u8, u8) = (11, 3);
const COMPOSITE: (u8, u8) = (64, 100);
/// The policy of an event that has stopped all threads.
const SUSPENDS_ALL: u8 = 2;
/// Prefix of the names of the agent's threads.
const OURS: &[u8] = b"ET monitor";
/// More threads than that are not looked at.
const MOST_THREADS: usize = 10_000;

/// Purpose of one of our commands.
#[derive(Debug)]
enum Asked {
    Sizes,
    Threads,
    Name(Vec<u8>),
    Nothing,
}

/// Resumes the agent's threads.
#[derive(Debug, Default)]
pub struct Exempt {
    next: u32,
    asked: rustc_hash::FxHashMap<u32, Asked>,
    /// Bytes of the id of an object.
    id_bytes: usize,
    /// The agent's threads, as `libjdwp` knows them.
    threads: Vec<Vec<u8>>,
    /// How often all threads were stopped so far.
    stops: u32,
    /// The debugger's commands to stop all threads.
    suspends: HashSet<u32>,
}

impl Exempt {
    fn ask(&mut self, (set, command): (u8, u8), data: Vec<u8>, asked: Asked) -> Vec<u8> {
        let id = FIRST_ID + self.next % 0x0fff_ffff;
        self.next = self.next.wrapping_add(1);
        self.asked.insert(id, asked);
        Packet { id, kind: Kind::Command { set, command }, data }.encode()
    }

    /// The first commands to send.
    pub fn begin(&mut self) -> Vec<u8> {
        self.ask(ID_SIZES, Vec::new(), Asked::Sizes)
    }

    /// A command of the debugger's goes by.
    pub fn asked(&mut self, packet: &Packet) {
        if packet.kind == (Kind::Command { set: SUSPEND.0, command: SUSPEND.1 }) && self.suspends.len() < 1000 {
            self.suspends.insert(packet.id);
        }
    }

    /// A packet of `libjdwp`'s goes by: whether it is for us, and what is to be said to it.
    pub fn heard(&mut self, packet: &Packet) -> (bool, Vec<u8>) {
        match packet.kind {
            Kind::Command { set, command } => {
                let stops_all = (set, command) == COMPOSITE && packet.data.first() == Some(&SUSPENDS_ALL);
                (false, if stops_all { self.resume() } else { Vec::new() })
            }
            Kind::Reply { error } => match self.asked.remove(&packet.id) {
                Some(asked) if error == 0 => (true, self.answered(asked, &packet.data)),
                Some(_) => (true, Vec::new()),
                None if self.suspends.remove(&packet.id) && error == 0 => (false, self.resume()),
                None => (false, Vec::new()),
            },
        }
    }

    fn answered(&mut self, asked: Asked, data: &[u8]) -> Vec<u8> {
        let mut reader = Reader::new("a reply", data);
        match asked {
            Asked::Sizes => {
                // Of fields and methods first.
                let size = (reader.u4(), reader.u4(), reader.u4()).2;
                self.id_bytes = size.map_or(0, |size| size as usize);
                if matches!(self.id_bytes, 1..=8) {
                    self.ask(ALL_THREADS, Vec::new(), Asked::Threads)
                } else {
                    Vec::new()
                }
            }
            Asked::Threads => {
                let count = reader.count(self.id_bytes).unwrap_or(0).min(MOST_THREADS);
                let ids: Vec<Vec<u8>> =
                    (0..count).filter_map(|_| reader.take(self.id_bytes).ok().map(<[u8]>::to_vec)).collect();
                ids.into_iter().flat_map(|id| self.ask(NAME, id.clone(), Asked::Name(id))).collect()
            }
            Asked::Name(id) => {
                let name = reader.u4().and_then(|length| reader.take(length as usize));
                if !name.is_ok_and(|name| name.starts_with(OURS)) {
                    return Vec::new();
                }
                self.threads.push(id.clone());
                // The debugger may have been faster. One that runs already does not mind.
                (0..self.stops.min(10)).flat_map(|_| self.resume_one(&id)).collect()
            }
            Asked::Nothing => Vec::new(),
        }
    }

    fn resume_one(&mut self, id: &[u8]) -> Vec<u8> {
        self.ask(RESUME, Writer::default().bytes(id).finish(), Asked::Nothing)
    }

    fn resume(&mut self) -> Vec<u8> {
        self.stops += 1;
        let threads = self.threads.clone();
        threads.iter().flat_map(|id| self.resume_one(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use et_ddm::PacketDecoder;

    use super::*;

    fn packets(bytes: &[u8]) -> Vec<Packet> {
        let mut decoder = PacketDecoder::after_handshake(1 << 20);
        decoder.push(bytes);
        std::iter::from_fn(|| decoder.next_packet().unwrap()).collect()
    }

    fn reply(to: &Packet, data: &[u8]) -> Packet {
        Packet::reply(to.id, 0, data.to_vec())
    }

    #[test]
    fn the_agent_s_threads_go_on_and_the_debugger_sees_nothing_of_it() {
        let mut exempt = Exempt::default();
        let sizes = packets(&exempt.begin());
        let (is_ours, threads) = exempt.heard(&reply(&sizes[0], &[0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 4]));
        let threads = packets(&threads);
        assert!(is_ours && threads.len() == 1);
        let (_, names) = exempt.heard(&reply(&threads[0], &[0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9]));
        let names = packets(&names);
        assert_eq!(names.iter().map(|it| it.data.clone()).collect::<Vec<_>>(), [[0, 0, 0, 7], [0, 0, 0, 9]]);
        exempt.heard(&reply(&names[0], b"\0\0\0\x04main"));
        exempt.heard(&reply(&names[1], b"\0\0\0\x13ET monitor handlers"));
        let event =
            |policy| Packet { id: 3, kind: Kind::Command { set: 64, command: 100 }, data: vec![policy, 0, 0, 0, 0] };
        assert_eq!(exempt.heard(&event(1)), (false, Vec::new()), "that thread only");
        let (is_ours, resume) = exempt.heard(&event(2));
        let resume = packets(&resume);
        assert!(!is_ours && resume.len() == 1);
        assert_eq!((resume[0].kind, &resume[0].data[..]), (Kind::Command { set: 11, command: 3 }, &[0, 0, 0, 9][..]));
        assert_eq!(exempt.heard(&reply(&resume[0], &[])), (true, Vec::new()));
        let suspend = Packet { id: 5, kind: Kind::Command { set: 1, command: 8 }, data: Vec::new() };
        exempt.asked(&suspend);
        let (is_ours, resume) = exempt.heard(&reply(&suspend, &[]));
        assert!(!is_ours && packets(&resume).len() == 1);
        assert_eq!(exempt.heard(&reply(&suspend, &[])), (false, Vec::new()), "once");
    }
}
