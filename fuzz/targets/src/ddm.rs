//! The protocol of the Dalvik Debug Monitor: a connection's bytes, from the handshake to what chunks mean, at either end.

use et_ddm::packet::{HANDSHAKE, PacketDecoder};
use et_ddm::threads::{Layout, ThreadState, ThreadStatus, ThreadStatuses};
use et_ddm::{Chunk, ChunkType, Message, Packet, Request, chunk};

use crate::Target;

/// Input of a VM and of a monitor.
pub const TARGET: Target = Target {
    name: "ddm",
    inputs: "ddm",
    longest: 8192,
    compares: true,
    memory_ratio: 1 << 11,
    run,
    mutate: None,
    mend: None,
};

/// As the agent's of one that has not shown the token.
const LIMIT: usize = 1 << 20;

fn run(data: &[u8]) {
    let packets = packets(data, usize::MAX);
    // However the bytes arrive, the packets are the same.
    for piece in [1, 3, 11] {
        assert!(packets == self::packets(data, piece), "in pieces of {piece}");
    }
    for packet in &packets {
        let mut again = PacketDecoder::new(LIMIT);
        again.push(HANDSHAKE);
        again.push(&packet.encode());
        assert!(again.shake_hands() == Ok(true), "the handshake");
        assert!(again.next_packet().ok().flatten().as_ref() == Some(packet), "{packet:?} does not come back");
        if packet.is_ddm()
            && let Ok(chunks) = chunk::decode(&packet.data)
        {
            chunks.iter().for_each(both_ways);
        }
    }
}

fn packets(data: &[u8], piece: usize) -> Vec<Packet> {
    let mut decoder = PacketDecoder::new(LIMIT);
    let (mut has_shaken_hands, mut found) = (false, Vec::new());
    for bytes in data.chunks(piece.min(data.len().max(1))) {
        decoder.push(bytes);
        if !has_shaken_hands {
            match decoder.shake_hands() {
                Ok(true) => has_shaken_hands = true,
                Ok(false) => continue,
                Err(_) => return found,
            }
        }
        loop {
            match decoder.next_packet() {
                Ok(Some(packet)) => found.push(packet),
                Ok(None) => break,
                // The connection would be closed.
                Err(_) => return found,
            }
        }
    }
    found
}

/// What can be decoded can be encoded again.
fn both_ways(chunk: &Chunk) {
    if let Ok(request) = Request::read(chunk) {
        let again = Request::read(&request.chunk());
        assert!(again.as_ref() == Ok(&request), "{request:?} comes back as {again:?}");
    }
    if let Ok(message) = Message::read(chunk) {
        let again = Message::read(&message.chunk());
        assert!(again.as_ref() == Ok(&message), "{message:?} comes back as {again:?}");
    }
}

/// A conversation of either side.
pub(crate) fn seeds() -> Vec<(String, Vec<u8>)> {
    let requests = [
        Request::Hello { version: 1 },
        Request::Features,
        Request::ThreadEvents { on: true },
        Request::ThreadStates { interval_ms: 500 },
        Request::DumpHeap { path: "/tmp/größe.hprof".into() },
        Request::Allocations { interval_ms: 1000, rows: 20 },
        Request::Exit { status: 3 },
    ];
    let thread = ThreadStatus { id: 5, state: ThreadState::Running, is_suspended: false, android: None };
    let messages = [
        Message::ThreadStarted { id: 1, name: "main".into() },
        Message::ThreadStates(ThreadStatuses { layout: Layout::Of2007, threads: vec![thread] }),
        Message::ApplicationName("Shop".into()),
        Message::Other(Chunk::new(ChunkType(*b"mine"), vec![1, 2, 3])),
        Message::HeapStart { heap: 1, native: false },
        Message::HeapEnd { heap: 1, native: false },
    ];
    let say = |chunks: Vec<Chunk>| {
        let mut bytes = HANDSHAKE.to_vec();
        for (id, chunk) in (1..).zip(&chunks) {
            bytes.extend(Packet::ddm(id, chunk.encode()).encode());
        }
        bytes.extend(Packet::reply(99, 0, chunk::encode(&chunks)).encode());
        bytes
    };
    vec![
        ("monitor".into(), say(requests.iter().map(Request::chunk).collect())),
        ("vm".into(), say(messages.iter().map(Message::chunk).collect())),
    ]
}
