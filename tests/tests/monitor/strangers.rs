//! Malicious clients: none of them affects the program or other clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use et_ddm::heap::{Walk, When};
use et_ddm::message::Failure;
use et_ddm::packet::HANDSHAKE;
use et_ddm::{Chunk, ChunkType, Message, Packet, Request, chunk};
use et_tests::lab::{self, Lab};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;

use crate::client::{Client, Program, is_root};

const MUTATIONS: usize = 10_000;

pub fn trials() -> Vec<Trial> {
    let mut trials = lab::on_one_jdk("strangers", strangers);
    let not_root = |_: &Lab, _: &Jdk| (!is_root()).then(|| "only root can be another user".to_owned());
    trials.push(lab::on_jdk_unless(17, "other_users", not_root, other_users));
    trials.push(lab::on_jdk_unless(17, "walks_take_a_share_of_the_time", |_, _| None, walks));
    trials.push(lab::on_jdk_unless(17, "mutated_packets", |_, _| None, mutated));
    trials.push(lab::on_jdk_unless(25, "mutated_packets", |_, _| None, mutated));
    trials
}

fn strangers(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut program = Program::start(lab, jdk, "strangers", Some(""), &[], "Pattern")?;
    program.expect("ready")?;
    let mut friend = Client::new(&program)?;
    let mut guest = Client::without_token(&program)?;
    for request in [
        Request::Exit { status: 3 },
        Request::CollectGarbage,
        Request::DumpHeap { path: "/tmp/never.hprof".to_owned() },
        Request::Object(1),
        Request::Histogram { rows: 10 },
        Request::Thread(1),
    ] {
        let reply = guest.ask(request)?;
        ensure!(is_not_allowed(&reply), "{reply:?}");
    }
    let wrong = Chunk::new(ChunkType::ETKN, vec![b'0'; 64]);
    let reply = guest.ask(Request::Other(wrong))?;
    ensure!(is_not_allowed(&reply), "{reply:?}");
    let reply = guest.ask(Request::HeapInfo(When::Now))?;
    ensure!(matches!(reply, Some(Message::HeapInfo(_))), "{reply:?}");

    // No JDWP, half a packet, 2 GB, and nothing at all: closed at once, or left to themselves.
    let mut silent = Vec::new();
    let two_gigabytes = [&HANDSHAKE[..], &0x7fff_ffff_u32.to_be_bytes(), &[0; 7]].concat();
    for (bytes, is_closed) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], true),
        (&two_gigabytes, true),
        (&[&HANDSHAKE[..], &[0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat(), true),
        (&[&HANDSHAKE[..], &[0, 0, 1, 0, 9]].concat(), false),
        (b"JDWP-Hand", false),
        (b"", false),
    ] {
        let mut stream = program.connect()?;
        stream.write_all(bytes)?;
        if is_closed {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            ensure!(rest.is_empty() || rest == HANDSHAKE, "{rest:?}");
        } else {
            silent.push(stream);
        }
    }
    let before = program.resident()?;
    // More than have room: those in silence give way, and the friend stays.
    let crowd: Vec<TcpStream> = (0..64).map(|_| program.connect()).collect::<Result<_>>()?;
    friend.tell(Request::ThreadEvents { on: true })?;
    friend.until(|message| matches!(message, Message::ThreadStarted { name, .. } if name == "main"))?;
    drop(crowd);
    // Compressed, and a decompression bomb.
    let packed = chunk::zlib::compress(Chunk::new(ChunkType(*b"none"), vec![0; 1 << 20]));
    ensure!(packed.kind == ChunkType::ZLIB && friend.exchange(&[packed])?.is_empty());
    let bomb = chunk::zlib::compress(Chunk::new(ChunkType(*b"none"), vec![0; 200 << 20]));
    let reply = friend.exchange(&[bomb])?;
    ensure!(reply.iter().map(|chunk| chunk.kind).eq([ChunkType::FAIL]), "{reply:?}");
    let compress = Chunk::new(ChunkType(*b"ETZL"), 100_u32.to_be_bytes().to_vec());
    ensure!(friend.exchange(&[compress])?.is_empty());
    friend.tell(Request::HeapSegments { when: Walk::Now, objects: true })?;
    friend.until(|message| matches!(message, Message::HeapEnd { .. }))?;
    // One that asks for the heap again and again, and never reads.
    let mut deaf = program.connect()?;
    deaf.write_all(HANDSHAKE)?;
    let ask = Request::HeapSegments { when: Walk::Now, objects: true }.chunk();
    for id in 0..40 {
        deaf.write_all(&Packet::ddm(id, ask.encode()).encode())?;
    }
    let reply = friend.ask(Request::HeapInfo(When::Now))?;
    ensure!(matches!(reply, Some(Message::HeapInfo(_))), "{reply:?}");
    let after = program.resident()?;
    ensure!(after < before + (200 << 20), "{before} bytes, then {after}");
    ensure!(
        program.said().starts_with("monitor: listening on 127.0.0.1:") && program.said().lines().count() == 1,
        "{}",
        program.said()
    );
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success());
    Ok(())
}

fn is_not_allowed(reply: &Option<Message>) -> bool {
    matches!(reply, Some(Message::Fail(failure)) if failure.code == Failure::NOT_ALLOWED)
}

/// Other users of the machine learn nothing, cause no cost, and displace no clients.
fn other_users(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut program = Program::start(lab, jdk, "other_users", Some("quiet=on"), &[], "Pattern")?;
    program.expect("ready")?;
    let mut stranger = Client::over(program.connect_as_another()?)?;
    for request in [
        Request::Hello { version: 1 },
        Request::Features,
        Request::Memory,
        Request::HeapInfo(When::Now),
        Request::HeapInfo(When::EveryGc),
        Request::HeapSegments { when: Walk::Now, objects: true },
        Request::HeapSegments { when: Walk::EveryGc, objects: true },
        Request::NativeSegments { when: Walk::Now },
        Request::ThreadEvents { on: true },
        Request::ThreadStates { interval_ms: 50 },
        Request::Events { kinds: 7 },
    ] {
        let reply = stranger.ask(request)?;
        ensure!(is_not_allowed(&reply), "{reply:?}");
    }
    // A client that sends its requests and disconnects before it is examined does not count as root.
    for _ in 0..20 {
        let mut gone = program.connect_as_another()?;
        gone.write_all(HANDSHAKE)?;
        let ask = Request::HeapSegments { when: Walk::EveryGc, objects: true };
        gone.write_all(&Packet::ddm(1, ask.chunk().encode()).encode())?;
    }
    let mut friend = Client::new(&program)?;
    ensure!(stranger.told.is_empty(), "{:?}", stranger.told);
    // As many as want to, silent or not: the owner finds a place at once.
    let mut crowd: Vec<TcpStream> = (0..40).map(|_| program.connect_as_another()).collect::<Result<_>>()?;
    for stream in &mut crowd {
        let _ = stream.write_all(HANDSHAKE);
    }
    for _ in 0..8 {
        Client::new(&program)?.tell(Request::ThreadStates { interval_ms: 0 })?;
    }
    // They are sent away soon, whatever they say, and the owner stays.
    let begun = Instant::now();
    for stream in &mut crowd {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    ensure!(begun.elapsed() < Duration::from_secs(10), "strangers stay for {:?}", begun.elapsed());
    friend.tell(Request::ThreadStates { interval_ms: 0 })?;
    // With the token, the user does not matter.
    let mut trusted = Client::over(program.connect_as_another()?)?;
    trusted.show_token(&program)?;
    let reply = trusted.ask(Request::HeapInfo(When::Now))?;
    ensure!(matches!(reply, Some(Message::HeapInfo(_))), "{reply:?}");
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}

/// Without the token, heap walks take at most a twentieth of the time, and those at collections count as well.
fn walks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut program = Program::start(lab, jdk, "walks", Some("quiet=on"), &[], "Pattern")?;
    program.expect("ready")?;
    let (mut friend, mut guest) = (Client::new(&program)?, Client::without_token(&program)?);
    let now = || Request::HeapSegments { when: Walk::Now, objects: true };
    // A client that has waited long enough gets its answer.
    std::thread::sleep(Duration::from_secs(1));
    guest.tell(now())?;
    guest.until(|message| matches!(message, Message::HeapEnd { .. }))?;
    let reply = guest.ask(now())?;
    ensure!(matches!(&reply, Some(Message::Fail(failure)) if failure.message.contains("a twentieth")), "{reply:?}");
    // The number of objects is the last that is known.
    let objects = |reply: Option<Message>| match reply {
        Some(Message::HeapInfo(heaps)) => Ok(heaps[0].objects),
        reply => anyhow::bail!("{reply:?}"),
    };
    let known = objects(friend.ask(Request::HeapInfo(When::Now))?)?;
    ensure!(known > 1000 && objects(guest.ask(Request::HeapInfo(When::Now))?)? == known, "not {known}");
    for _ in 0..2 {
        friend.tell(now())?;
    }
    // After collections in rapid succession: one map, and one more when the limit allows it.
    guest.told.clear();
    guest.tell(Request::HeapSegments { when: Walk::EveryGc, objects: false })?;
    for _ in 0..20 {
        friend.tell(Request::CollectGarbage)?;
    }
    guest.until(|message| matches!(message, Message::HeapEnd { .. }))?;
    let maps = guest.told.iter().filter(|message| matches!(message, Message::HeapStart { .. })).count();
    ensure!(maps <= 5, "{maps} maps behind 20 collections");
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}

/// Numbers that look like any (Marsaglia's xorshift).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

fn mutated(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut program = Program::start(lab, jdk, "mutated", Some("quiet=on"), &["-Xmx64m", "-Xcheck:jni"], "Pattern")?;
    program.expect("ready")?;
    let token = program.published("token")?;
    let requests = [
        Request::Hello { version: 1 },
        Request::Features,
        Request::ThreadEvents { on: true },
        Request::ThreadStates { interval_ms: 60_000 },
        Request::ThreadStatesOnce,
        Request::Stack { thread: 1 },
        Request::HeapInfo(When::EveryGc),
        Request::HeapSegments { when: Walk::EveryGc, objects: true },
        Request::NativeSegments { when: Walk::Now },
        Request::Events { kinds: 7 },
        Request::Memory,
        Request::Instances { class: 1, most: 5 },
        Request::Object(1),
        Request::Class(1),
        Request::Monitor(1),
        Request::Thread(1),
        Request::DebuggerDetached,
        Request::Allocations { interval_ms: 1, rows: 1 },
        Request::RecentAllocations,
    ];
    let mut state = 0x2545_f491_4f6c_dd1d;
    let (mut sent, mut before) = (0, 0);
    while sent < MUTATIONS {
        let mut stream = program.connect()?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.set_nonblocking(false)?;
        let _ = stream.write_all(HANDSHAKE);
        let show = Chunk::new(ChunkType::ETKN, token.clone().into_bytes());
        let _ = stream.write_all(&Packet::ddm(0, show.encode()).encode());
        let mut reader = stream.try_clone()?;
        let drain = std::thread::spawn(move || {
            let mut buffer = [0; 1 << 16];
            while reader.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        // Until the connection is given up, since a length was changed.
        for _ in 0..100 {
            let chunk = requests[next(&mut state) % requests.len()].chunk();
            let mut bytes = Packet::ddm(sent as u32, chunk.encode()).encode();
            for _ in 0..=next(&mut state) % 3 {
                // Seldom in the packet's own length.
                let start = if next(&mut state).is_multiple_of(16) { 0 } else { 4 };
                let at = start + next(&mut state) % (bytes.len() - start);
                bytes[at] = match next(&mut state) % 4 {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at] ^ 1 << (next(&mut state) % 8),
                    _ => next(&mut state) as u8,
                };
            }
            // EXIT and similar requests would be deliberate.
            let kind = bytes.get(11..15);
            if kind == Some(b"EXIT") || kind == Some(b"HPDU") {
                continue;
            }
            sent += 1;
            if stream.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let _ = drain.join();
        if before == 0 && sent > MUTATIONS / 5 {
            before = program.resident()?;
        }
    }
    let mut friend = Client::new(&program)?;
    let reply = friend.ask(Request::HeapInfo(When::Now))?;
    ensure!(matches!(reply, Some(Message::HeapInfo(_))), "{reply:?}");
    let after = program.resident()?;
    ensure!(after < before + (48 << 20), "{before} bytes, then {after}");
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}
