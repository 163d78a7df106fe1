//! The monitor with fake VMs: what it knows about them, what it forwards, and what does not disturb it.

mod fake;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use et_ddm::packet::{HANDSHAKE, Kind, Packet, PacketDecoder};
use et_monitor_cli::actions::{ActionError, Actions, Asked};
use et_monitor_cli::discovery::Discovery;
use et_monitor_cli::monitor::{DebuggerPorts, Monitor};
use fake::{Fake, Manner};
use serde_json::Value;
use tokio::runtime::Handle;

/// The runtime that drives the monitor, on a separate thread as in the command.
fn runtime() -> Handle {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
}

fn named(name: &str, pid: u32) -> Manner {
    Manner { name: name.into(), pid, ..Manner::default() }
}

fn discovery(fakes: &[&Fake]) -> Discovery {
    let ports: Vec<_> = fakes.iter().map(|fake| fake.port..=fake.port).collect();
    Discovery::of(&ports, "/no/such/folder".into())
}

/// A port from which on some are free, so that tests do not share theirs.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs a monitor in the background of the test.
fn running(runtime: &Handle, discovery: Discovery) -> (Arc<Monitor>, u16) {
    let selected = free_port();
    let monitor = Monitor::new(Some(DebuggerPorts { selected }));
    runtime.spawn(monitor.clone().run(discovery));
    (monitor, selected)
}

fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn vm(monitor: &Monitor, pid: u32) -> Option<Value> {
    let list = monitor.list();
    list["vms"].as_array().unwrap().iter().find(|it| it["pid"] == pid && it["here"] == true).cloned()
}

fn id(vm: &Value) -> u32 {
    vm["id"].as_u64().unwrap() as u32
}

/// It has said what it is asked first: threads, features, and, last, the size of its heap.
fn has_settled(vm: &Value) -> bool {
    vm["threads"] == 3 && vm["heap"]["size"].is_u64()
}

#[test]
fn vms_are_found_and_kept_through_restarts() {
    let runtime = runtime();
    let first = Fake::start(named("com.acme.Main", 1001));
    let other = Fake::start(named("other.jar", 1002));
    let port = first.port;
    let (monitor, _) = running(&runtime, discovery(&[&first, &other]));
    let begun = until("the VM", || vm(&monitor, 1001).filter(has_settled));
    assert_eq!(begun["vm"], "Fake VM");
    assert_eq!(begun["heap"]["size"], 1 << 20);
    until("the other VM", || vm(&monitor, 1002));
    drop(first);
    let gone = until("its end", || monitor.list()["vms"].as_array()?.iter().find(|it| it["here"] == false).cloned());
    assert_eq!((gone["id"].clone(), gone["gone"].clone()), (begun["id"].clone(), "it closed the connection".into()));
    // Its next run has another process, and may have the same port.
    let listener = until("the port", || TcpListener::bind(("127.0.0.1", port)).ok());
    let again = Fake::on(listener, named("com.acme.Main", 1003));
    let next = until("its next run", || vm(&monitor, 1003));
    assert_eq!(next["id"], begun["id"]);
    assert_eq!(next["runs"], 2);
    assert_eq!(next["debuggerPort"], begun["debuggerPort"], "its debugger's port stays");
    assert!(vm(&monitor, 1002).is_some());
    drop(again);
}

#[test]
fn a_port_for_debuggers_that_is_taken_is_had_when_it_is_free() {
    let runtime = runtime();
    let fake = Fake::start(named("debugged", 1));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let selected = taken.local_addr().unwrap().port();
    let monitor = Monitor::new(Some(DebuggerPorts { selected }));
    runtime.spawn(monitor.clone().run(discovery(&[&fake])));
    let found = until("the VM", || vm(&monitor, 1));
    assert!(found["debuggerPort"].as_u64().unwrap() > selected.into(), "the VM has a port of its own");
    assert!(monitor.list()["selectedPort"].is_null());
    drop(taken);
    until("the port", || (monitor.list()["selectedPort"] == selected).then_some(()));
}

#[test]
fn a_vm_that_accepts_no_connection_is_reported() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    // All its places are taken: it closes at once.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = full.local_addr().unwrap().port();
    std::thread::spawn(move || while full.accept().is_ok() {});
    std::fs::write(folder.path().join(std::process::id().to_string()), format!("port={port}\ntoken=s3cret\n")).unwrap();
    let monitor = Monitor::new(None);
    runtime.block_on(monitor.scan_once(&Discovery::of(&[1..=1], folder.path().to_owned())));
    let list = monitor.list();
    assert_eq!(list["vms"].as_array().unwrap().len(), 0);
    assert_eq!(list["silent"][0]["port"], port);
    let why = list["silent"][0]["why"].as_str().unwrap();
    assert!(why.contains("closed") || why.contains("broke"), "{why}");
}

#[test]
fn a_silent_agent_is_sent_the_token_first() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let manner = Manner { token: Some("s3cret".into()), is_strict: true, ..named("strict", 1) };
    let fake = Fake::start(manner);
    let discovery = Discovery::of(&[fake.port..=fake.port], folder.path().to_owned());
    let file = folder.path().join(std::process::id().to_string());
    std::fs::write(&file, format!("port={}\ntoken=s3cret\n", fake.port)).unwrap();
    let (monitor, _) = running(&runtime, discovery);
    until("the VM", || vm(&monitor, 1).filter(has_settled));
}

#[test]
fn only_watched_vms_send_more() {
    let runtime = runtime();
    let fake = Fake::start(named("looked.at", 1));
    let (monitor, _) = running(&runtime, discovery(&[&fake]));
    let id = id(&until("the VM", || vm(&monitor, 1)));
    std::thread::sleep(Duration::from_millis(1500));
    for what in ["ThreadStates", "Events { kinds", "Allocations", "Memory"] {
        assert!(!fake.was_asked(what), "{what} while nobody looks");
    }
    let watched = monitor.watch(id).unwrap();
    until("states", || monitor.look(id, |vm| vm.threads()[0]["state"] != "initializing").unwrap().then_some(()));
    until("events", || monitor.look(id, |vm| vm.monitors()["classes"][0]["contended"].as_u64()).unwrap());
    let place = monitor.look(id, |vm| vm.monitors()["places"][0].clone()).unwrap();
    assert_eq!(place["place"], "com.acme.Till.<init>(Till.java:17)");
    assert_eq!(place["longestOwner"], fake::HOSTILE);
    until("allocations", || monitor.look(id, |vm| vm.allocations()).unwrap());
    let heap = until("sizes of 64 bits", || {
        monitor.look(id, et_monitor_cli::vm::Vm::heap).filter(|heap| heap["used"] == 5_u64 << 32)
    });
    assert_eq!(heap["clamped"], false);
    drop(watched);
    until("quiet", || (fake.seen.interval.load(std::sync::atomic::Ordering::SeqCst) == 0).then_some(()));
}

#[test]
fn requests_are_answered() {
    let runtime = runtime();
    let (fake, plain) = (Fake::start(named("full", 1)), Fake::start(Manner { is_plain: true, ..named("plain", 2) }));
    let (monitor, _) = running(&runtime, discovery(&[&fake, &plain]));
    let ids = [1, 2].map(|pid| id(&until("the VM", || vm(&monitor, pid).filter(has_settled))));
    let [full, plain_one] = ids.map(|id| Actions::on(&monitor, id).unwrap());
    runtime.block_on(async {
        for (actions, collect) in [(&full, false), (&full, true), (&plain_one, false)] {
            let map = actions.walk(false, true, collect).await.unwrap();
            assert_eq!((map["bytes"].clone(), map["free"].clone()), (32_768.into(), 12_800.into()));
            assert_eq!((map["objects"].clone(), map["largestFree"].clone()), (24.into(), 1600.into()));
            assert_eq!(map["stretches"].as_array().unwrap().len(), 2);
        }
        assert_eq!(full.ask(Asked::Object(1)).await.unwrap()["size"], 24);
        let error = full.ask(Asked::Object(2)).await.unwrap_err();
        assert_eq!(error.to_string(), "the VM refuses: there is no such object");
        assert_eq!(full.ask(Asked::Histogram { rows: 5 }).await.unwrap()["rows"][0]["objects"], 2);
        assert!(matches!(plain_one.ask(Asked::Object(1)).await, Err(ActionError::NotOffered { .. })));
        let error = plain_one.allocations().unwrap_err().to_string();
        assert!(error.contains("only traced programs"), "{error}");
        assert_eq!(plain_one.heap().await.unwrap()["objects"], 42);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.hprof");
        assert_eq!(full.dump(&path).await.unwrap()["bytes"], 19);
        assert!(matches!(full.dump(&path).await, Err(ActionError::Exists { .. })), "nothing is overwritten");
        assert!(matches!(full.dump(std::path::Path::new("a.hprof")).await, Err(ActionError::Relative { .. })));
        assert!(matches!(full.exit(256).await, Err(ActionError::Status(256))));
        full.exit(3).await.unwrap();
    });
    assert!(fake.was_asked("Exit { status: 3 }"));
    until("its end", || vm(&monitor, 1).is_none().then_some(()));
}

#[test]
fn tokens_are_read_from_files() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(Manner { token: Some("s3cret".into()), ..named("careful", 1) });
    let me = std::process::id();
    let file = folder.path().join(me.to_string());
    let discovery = Discovery::of(&[fake.port..=fake.port], folder.path().to_owned());
    let (monitor, _) = running(&runtime, discovery);
    let id = id(&until("the VM", || vm(&monitor, 1)));
    let actions = Actions::on(&monitor, id).unwrap();
    let refused = runtime.block_on(actions.collect_garbage()).unwrap_err();
    assert_eq!(refused.to_string(), "the VM refuses: not without the token");
    // It listens before it says so.
    std::fs::write(&file, format!("port={}\ntoken=s3cret\n", fake.port)).unwrap();
    until("trust", || runtime.block_on(actions.collect_garbage()).ok());
}

/// A minimal debugger.
struct Debugger {
    stream: TcpStream,
    decoder: PacketDecoder,
}

impl Debugger {
    fn attach(port: u16) -> Option<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(HANDSHAKE).ok()?;
        let mut debugger = Self { stream, decoder: PacketDecoder::new(1 << 20) };
        debugger.read_until(|decoder| decoder.shake_hands().ok()?.then_some(()))?;
        Some(debugger)
    }

    fn read_until<T>(&mut self, mut take: impl FnMut(&mut PacketDecoder) -> Option<T>) -> Option<T> {
        loop {
            if let Some(taken) = take(&mut self.decoder) {
                return Some(taken);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).ok()? {
                0 => return None,
                count => self.decoder.push(&bytes[..count]),
            }
        }
    }

    fn next(&mut self) -> Option<Packet> {
        self.read_until(|decoder| decoder.next_packet().unwrap())
    }

    fn ask(&mut self, id: u32, data: &[u8]) {
        let packet = Packet { id, kind: Kind::Command { set: 1, command: 1 }, data: data.to_vec() };
        self.stream.write_all(&packet.encode()).unwrap();
    }
}

#[test]
fn debuggers_share_the_connection() {
    let runtime = runtime();
    let fake = Fake::start(named("debugged", 1));
    let other = Fake::start(named("other", 2));
    let (monitor, selected) = running(&runtime, discovery(&[&fake, &other]));
    let found = until("the VM", || vm(&monitor, 1));
    until("the other", || vm(&monitor, 2));
    let its_port = found["debuggerPort"].as_u64().unwrap() as u16;
    assert!(monitor.select(id(&found)));
    let _watched = monitor.watch(id(&found)).unwrap();
    let mut debugger = Debugger::attach(selected).unwrap();
    until("that it is told", || vm(&monitor, 1).filter(|it| it["debugger"] == true));
    assert!(Debugger::attach(its_port).is_none(), "a VM takes one debugger");
    // Ids chosen by the debugger, which the monitor may use for its own requests at the same time.
    let actions = Actions::on(&monitor, id(&found)).unwrap();
    for round in 0..200_u32 {
        debugger.ask(round % 5, &round.to_be_bytes());
        if round % 10 == 0 {
            runtime.block_on(actions.collect_garbage()).unwrap();
        }
        let event = debugger.next().unwrap();
        assert_eq!(event.kind, Kind::Command { set: 64, command: 100 });
        let reply = debugger.next().unwrap();
        assert_eq!((reply.id, reply.data), (round % 5, round.to_be_bytes().to_vec()));
    }
    let ids = fake.seen.debugger_ids.lock().unwrap().clone();
    assert_eq!(ids.len(), 200);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 200, "no id is used twice on the connection");
    // It disconnects: the VM is notified, and another debugger may connect.
    drop(debugger);
    until("that the VM is told", || fake.was_asked("DebuggerDetached").then_some(()));
    let mut next = until("the next", || Debugger::attach(its_port));
    next.ask(9, b"again");
    assert_eq!((next.next().map(|it| it.is_reply()), next.next().unwrap().id), (Some(false), 9));
    // The VM goes: so does the debugger's connection.
    drop(fake);
    assert_eq!(until("the end", || Some(next.next())), None);
    assert!(other.seen.debugger_ids.lock().unwrap().is_empty());
}

#[test]
fn strangers_at_the_debuggers_port_have_no_effect() {
    let runtime = runtime();
    let fake = Fake::start(named("debugged", 1));
    let (monitor, selected) = running(&runtime, discovery(&[&fake]));
    until("the VM", || vm(&monitor, 1));
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(("127.0.0.1", selected)).unwrap()).collect();
    for garbage in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0xff; 100], b"JDWP-Handshak!"] {
        let mut stream = TcpStream::connect(("127.0.0.1", selected)).unwrap();
        stream.write_all(garbage).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert!(matches!(stream.read(&mut [0; 10]), Ok(0) | Err(_)), "{garbage:?}");
    }
    // Lengths of 2 GB, and shorter than a header, after a valid handshake.
    for length in [0x7fff_ffff_u32, 3] {
        let mut debugger = Debugger::attach(selected).unwrap();
        debugger.stream.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(debugger.next(), None);
        until("its end", || vm(&monitor, 1).filter(|it| it["debugger"] == false));
    }
    // Half a packet stays half; what belongs to the monitor is not for debuggers.
    let mut debugger = until("a debugger", || Debugger::attach(selected));
    let exit = et_ddm::Request::Exit { status: 1 }.chunk().encode();
    debugger.stream.write_all(&Packet::ddm(1, exit).encode()).unwrap();
    debugger.ask(2, b"x");
    assert_eq!((debugger.next().map(|it| it.is_reply()), debugger.next().unwrap().id), (Some(false), 2));
    assert!(!fake.was_asked("Exit"), "only the page and the shell end programs");
    debugger.stream.write_all(&[0, 0, 0]).unwrap();
    drop(debugger);
    assert!(vm(&monitor, 1).is_some());
    drop(silent);
}

#[test]
fn vms_that_send_nonsense_have_no_effect_on_others() {
    let runtime = runtime();
    // None of them says anything that can be understood.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [&silent, &web, &plain].map(|it| it.local_addr().unwrap().port());
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = web.accept() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    // A VM for debuggers only: it refuses HELO.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = plain.accept() {
            let mut bytes = [0; 4096];
            let _ = stream.read_exact(&mut bytes[..14]);
            let _ = stream.write_all(HANDSHAKE);
            let _ = stream.read(&mut bytes);
            let id = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            let _ = stream.write_all(&Packet::reply(id, et_ddm::packet::NOT_IMPLEMENTED, vec![]).encode());
        }
    });
    let good = Fake::start(named("good", 1));
    let bad = Fake::start(named("bad", 2));
    let ports: Vec<_> = ports.into_iter().chain([good.port, bad.port]).map(|port| port..=port).collect();
    let (monitor, _) = running(&runtime, Discovery::of(&ports, "/no/such/folder".into()));
    until("the good one", || vm(&monitor, 1));
    until("the bad one", || vm(&monitor, 2));
    assert_eq!(monitor.list()["vms"].as_array().unwrap().len(), 2, "the others are no VMs");
    // Malformed chunks are counted; the connection continues.
    bad.say(&Packet::ddm(1, b"THCR\0\0\0\x02\0\0".to_vec()).encode());
    bad.say(&Packet::ddm(1, b"HPIF\xff\xff\xff\xff".to_vec()).encode());
    let counted = until("the count", || vm(&monitor, 2).filter(|it| it["malformed"] == 2));
    assert_eq!(counted["malformedLast"], "a packet of chunks ends after 0 of 4294967295 bytes");
    // An invalid length ends it.
    bad.say(&0x7fff_ffff_u32.to_be_bytes());
    until("its end", || vm(&monitor, 2).is_none().then_some(()));
    assert!(vm(&monitor, 1).is_some());
    drop(silent);
}

#[test]
fn mutated_packets_of_a_vm_have_no_effect_on_others() {
    let runtime = runtime();
    let (good, bad) = (Fake::start(named("good", 1)), Fake::start(named("bad", 2)));
    let (monitor, _) = running(&runtime, discovery(&[&good, &bad]));
    until("the VM", || vm(&monitor, 2));
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let messages = [
        et_ddm::Message::ThreadStarted { id: 5, name: "x".into() },
        et_ddm::Message::HeapInfo(vec![et_ddm::heap::HeapInfo::default()]),
        et_ddm::Message::HeapStart { heap: 1, native: false },
        et_ddm::Message::Features(vec!["a".into(), "b".into()]),
        et_ddm::Message::HeapEnd { heap: 1, native: false },
    ];
    // The length of each packet stays right, so that all 10,000 are looked at.
    for round in 0..10_000 {
        let mut bytes = Packet::ddm(round, messages[round as usize % messages.len()].chunk().encode()).encode();
        for _ in 0..3 {
            let at = 4 + next() as usize % (bytes.len() - 4);
            bytes[at] = next() as u8;
        }
        bad.say(&bytes);
    }
    bad.say(&Packet::ddm(1, et_ddm::Message::ApplicationName("survived".into()).chunk().encode()).encode());
    let survived = until("the end", || vm(&monitor, 2).filter(|it| it["application"] == "survived"));
    assert!(survived["malformed"].as_u64().unwrap() > 1000, "{survived}");
    assert!(vm(&monitor, 1).is_some());
}

#[test]
fn fifty_vms_at_once() {
    let runtime = runtime();
    let fakes: Vec<Fake> = (0..50).map(|at| Fake::start(named(&format!("vm-{at}"), 1000 + at))).collect();
    let (monitor, _) = running(&runtime, discovery(&fakes.iter().collect::<Vec<_>>()));
    let list = until("all of them", || {
        let list = monitor.list();
        let is_there = |it: &Value| it["here"] == true && it["threads"] == 3;
        (list["vms"].as_array()?.iter().filter(|it| is_there(it)).count() == 50).then_some(list)
    });
    let ports: HashSet<u64> =
        list["vms"].as_array().unwrap().iter().filter_map(|it| it["debuggerPort"].as_u64()).collect();
    assert_eq!(ports.len(), 50, "each has a port for debuggers");
    let watched: Vec<_> = (1..=50).map(|id| monitor.watch(id).unwrap()).collect();
    until("states of all", || {
        (1..=50).all(|id| monitor.look(id, |vm| vm.threads()[0]["state"] != "initializing") == Some(true)).then_some(())
    });
    drop(watched);
}
