//! The agent that lets monitors look into a VM, on JDKs as they are: programs of known contention, waits and heaps, and clients that mean no good.

mod client;
mod ddmlib;
mod heap;
mod log;
mod strangers;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use et_ddm::message::Failure;
use et_ddm::ours::{Event, Events, Happened};
use et_ddm::packet::Kind;
use et_ddm::threads::ThreadState;
use et_ddm::{Chunk, ChunkType, Message, Packet, Request};
use et_tests::lab::{self, Lab};
use et_tests::{flight, trcxml};
use xtask::jdks::Jdk;

use client::{Client, Program, library};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    trials.extend(lab::on_one_jdk("contention_and_waits", contention));
    trials.extend(lab::on_one_jdk("contention_as_flight_recorder_has_it", as_flight_recorder));
    trials.extend(lab::on_one_jdk("program_s_own_chunks", chunks));
    trials.extend(lab::on_one_jdk("attached_later", attached));
    trials.extend(lab::on_some_jdks("debugger", debugger));
    trials.extend(lab::on_some_jdks("program_that_waits_for_a_debugger", waits));
    trials.extend(ddmlib::trials());
    trials.extend(heap::trials());
    trials.extend(log::trials());
    trials.extend(strangers::trials());
    lab::run(trials).exit_code()
}

/// The log and the JDK's Flight Recorder, of one run.
fn as_flight_recorder(lab: &Lab, jdk: &Jdk) -> Result<()> {
    if flight::reader(jdk).is_none() {
        lab.not_tested(&format!("jdk{}::contention_as_flight_recorder_has_it", jdk.feature), "the JDK has no jfr");
        return Ok(());
    }
    let folder = lab.folder(jdk, "monitor_flight")?;
    let (file, recording) = (folder.join("run.trcxml"), folder.join("run.jfr"));
    let options = format!("quiet=on,xml={}", file.display());
    let java = flight::option(&recording);
    let mut program = Program::start_in(lab, jdk, &folder, Some(&options), &[&java], "Contended", &[])?;
    // The JVM says on standard output that it records.
    while program.line()? != "ready" {}
    program.go_on()?;
    while program.line()? != "done" {}
    program.go_on()?;
    ensure!(program.end()?.success(), "{}", program.said());
    let text = std::fs::read_to_string(&file)?;
    let ours = trcxml::stops(&trcxml::elements(&text)?)?;
    let threads = ["waiter <&\">", "timed", "notified"];
    // The format does not say whether a wait was ended by a notification.
    let theirs = flight::stops(jdk, &recording)?.into_iter().map(|stop| flight::Stop { is_timed_out: false, ..stop });
    flight::compare(&ours, &theirs.collect::<Vec<_>>(), &threads, SLACK as f64)
}

/// The number after a name in a line of a program's output.
fn number(line: &str, name: &str) -> Result<u64> {
    let start = format!("{name}=");
    let word = line.split(' ').find_map(|word| word.strip_prefix(&start));
    Ok(word.with_context(|| format!("no {name} in {line}"))?.parse()?)
}

fn happened(message: &Message) -> impl Iterator<Item = &Event> {
    let events = if let Message::Events(events) = message { &events.events[..] } else { &[] };
    events.iter()
}

/// Milliseconds that the two clocks may differ by, on a machine with other work.
const SLACK: u64 = 5;

fn is_near(nanos: u64, micros: u64) -> bool {
    (nanos / 1000).abs_diff(micros) <= SLACK * 1000
}

fn contention(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut program = Program::start(lab, jdk, "contention", Some("quiet=on"), &[], "Contended")?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    client.tell(Request::ThreadEvents { on: true })?;
    client.until(|message| matches!(message, Message::ThreadStarted { name, .. } if name == "main"))?;
    client.tell(Request::ThreadStates { interval_ms: 100 })?;
    client.tell(Request::Events { kinds: Events::MONITORS | Events::PLACES })?;
    // A client that does not request lines of code gets the old format.
    let mut old = Client::new(&program)?;
    old.tell(Request::Events { kinds: Events::MONITORS })?;
    program.go_on()?;
    let is_enter =
        |event: &Event| matches!(&event.what, Happened::ContendedEnter { class, .. } if class == "Contended$Lock");
    let enter = client.until(|message| happened(message).any(is_enter))?;
    let enter = happened(&enter).find(|event| is_enter(event)).context("no event")?.clone();
    ensure!(enter.place.starts_with("Contended.enter(Contended.java:"), "{enter:?}");
    let told = old.until(|message| happened(message).any(is_enter))?;
    ensure!(happened(&told).all(|event| event.place.is_empty()), "{told:?}");
    let Happened::ContendedEnter { monitor, thread, owner, .. } = enter.what else { unreachable!() };
    // During contention: the owner, the waiters, and their states.
    let Some(Message::Monitor(usage)) = client.ask(Request::Monitor(monitor))? else { anyhow::bail!("no usage") };
    ensure!(usage.owner == owner && usage.entries == 1 && usage.waiters == [thread], "{usage:?}, {thread} waits");
    let Some(Message::Thread(info)) = client.ask(Request::Thread(thread))? else { anyhow::bail!("no thread") };
    ensure!(info.name == "waiter <&\">" && info.group == "guests" && info.parent == "main", "{info:?}");
    ensure!(info.state == ThreadState::Monitor && info.waits_for == monitor, "{info:?}");
    let Some(Message::Stack(stack)) = client.ask(Request::Stack { thread })? else { anyhow::bail!("no stack") };
    let frame = stack.frames.first().context("no frames")?;
    ensure!((&frame.class[..], &frame.method[..]) == ("Contended", "enter") && frame.line > 0, "{frame:?}");
    let Some(Message::Object(object)) = client.ask(Request::Object(monitor))? else { anyhow::bail!("no object") };
    ensure!(object.class_name == "Contended$Lock" && object.size == 16 && object.length.is_none(), "{object:?}");
    let Some(Message::Class(class)) = client.ask(Request::Class(object.class))? else { anyhow::bail!("no class") };
    ensure!(class.name == "Contended$Lock" && class.superclass_name == "java.lang.Object", "{class:?}");
    ensure!(class.source == "Contended.java", "{class:?}");
    let blocked = |message: &Message| match message {
        Message::ThreadStates(states) => {
            states.threads.iter().any(|it| it.id == thread && it.state == ThreadState::Monitor)
        }
        _ => false,
    };
    client.until(blocked)?;

    let (line, waits) = (program.line()?, program.line()?);
    ensure!(u64::from(owner) == number(&line, "holder")? && u64::from(thread) == number(&line, "waiter")?, "{line}");
    program.expect("done")?;
    client.until(|message| matches!(message, Message::ThreadEnded(id) if *id == thread))?;
    let notified = number(&waits, "notified")?;
    let is_last =
        |event: &Event| matches!(event.what, Happened::Waited { thread, .. } if u64::from(thread) == notified);
    let last = client.until(|message| happened(message).any(is_last))?;
    let last = happened(&last).find(|event| is_last(event)).context("no event")?;
    ensure!(last.place.starts_with("Contended.notifiedWait(Contended.java:"), "{last:?}");
    let events: Vec<Happened> = client.told.iter().flat_map(happened).map(|event| event.what.clone()).collect();
    let of_lock = |it: &&Happened| match it {
        Happened::ContendedEnter { class, .. }
        | Happened::ContendedEntered { class, .. }
        | Happened::Wait { class, .. }
        | Happened::Waited { class, .. } => class == "Contended$Lock",
        _ => false,
    };
    let events: Vec<&Happened> = events.iter().filter(of_lock).collect();
    let entered = events.iter().any(|event| {
        matches!(event, Happened::ContendedEntered { thread: it, owner: by, waited_ns, .. }
            if *it == thread && *by == owner && is_near(*waited_ns, 1000 * number(&line, "held_ms").unwrap_or(0) + 500))
    });
    ensure!(entered, "{line}: {events:#?}");
    for (name, timeout, timed_out) in [("timed", 150, true), ("notified", 0, false)] {
        let (id, micros) = (number(&waits, name)?, number(&waits, &format!("{name}_us"))?);
        let begun = events.iter().any(|event| {
            matches!(event, Happened::Wait { thread, timeout_ms, .. } if u64::from(*thread) == id && *timeout_ms == timeout)
        });
        let over = events.iter().any(|event| {
            matches!(event, Happened::Waited { thread, waited_ns, timed_out: it, .. }
                if u64::from(*thread) == id && is_near(*waited_ns, micros) && *it == timed_out)
        });
        ensure!(begun && over, "{name} of {waits}: {events:#?}");
    }
    // A class by id, an object by an unknown id, and EXIT.
    let Some(Message::Fail(failure)) = client.ask(Request::Object(1 << 40))? else { anyhow::bail!("no failure") };
    ensure!(failure.code == Failure::NO_SUCH_ID, "{failure:?}");
    client.tell(Request::Exit { status: 7 })?;
    ensure!(program.end()?.code() == Some(7) && program.said().is_empty(), "{}", program.said());
    ensure!(!program.file().exists(), "{} is still there", program.file().display());
    Ok(())
}

fn chunks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_chunks")?;
    let jar = lab.tools.lib().join("et-ddm.jar");
    let mut compile = lab.compiler.compile()?;
    let source = lab.layout.repo.join("tests/java/monitor/own/Chunks.java");
    let classes = folder.join("classes");
    compile.args(["--release", "11", "-cp"]).arg(&jar).arg("-d").arg(&classes).arg(source);
    ensure!(compile.status()?.success(), "javac has failed");
    let path: [PathBuf; 2] = [classes, jar];
    // Without the agent nothing happens.
    let mut plain = Program::start_in(lab, jdk, &folder, None, &[], "Chunks", &path)?;
    plain.expect("ready")?;
    plain.go_on()?;
    ensure!(plain.end()?.success() && plain.said().is_empty(), "{}", plain.said());

    let mut program = Program::start_in(lab, jdk, &folder, Some("quiet=on"), &["-Xcheck:jni"], "Chunks", &path)?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    program.expect("connected")?;
    let news = Message::Other(Chunk::new(ChunkType(*b"news"), vec![1, 2, 3]));
    client.until(|message| *message == news)?;
    client.until(|message| *message == Message::ApplicationName("Renamed".to_owned()))?;
    let own = |data: &[u8]| Request::Other(Chunk::new(ChunkType(*b"echo"), data.to_vec()));
    let reply = client.ask(own(b"abc"))?;
    ensure!(reply == Some(Message::Other(Chunk::new(ChunkType(*b"ohce"), b"cba".to_vec()))), "{reply:?}");
    ensure!(client.ask(own(b""))?.is_none());
    let reply = client.ask(own(b"!"))?;
    ensure!(matches!(&reply, Some(Message::Fail(failure)) if failure.code == Failure::FAILED), "{reply:?}");
    let unknown = Chunk::new(ChunkType(*b"????"), vec![1]);
    ensure!(client.ask(Request::Other(unknown.clone()))?.is_none());
    // Several chunks of a packet have one reply.
    let both = client.exchange(&[own(b"xy").chunk(), unknown, Request::AreAllocationsKept.chunk()])?;
    ensure!(both.iter().map(|chunk| chunk.kind).eq([ChunkType(*b"ohce"), ChunkType::REAQ]), "{both:?}");
    drop(client);
    program.expect("disconnected")?;
    program.go_on()?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}

fn attached(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut program = Program::start(lab, jdk, "attached", None, &[], "Contended")?;
    program.expect("ready")?;
    // Twice: the second time changes nothing.
    for _ in 0..2 {
        let mut load = Command::new(lab.compiler.home.join("bin/jcmd"));
        load.arg(program.pid().to_string()).arg("JVMTI.agent_load").arg(library()?).arg("\"quiet=on\"");
        let output = load.output().context("cannot run jcmd")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let mut client = Client::new(&program)?;
    client.tell(Request::ThreadEvents { on: true })?;
    client.until(|message| matches!(message, Message::ThreadStarted { name, .. } if name == "main"))?;
    client.tell(Request::Events { kinds: Events::MONITORS | Events::COLLECTIONS })?;
    client.tell(Request::CollectGarbage)?;
    client
        .until(|message| happened(message).any(|event| matches!(event.what, Happened::GcFinish { pause_ns: 1.. })))?;
    program.go_on()?;
    client.until(|message| {
        happened(message).any(|event| matches!(event.what, Happened::ContendedEntered { waited_ns: 100_000_000.., .. }))
    })?;
    // It says what it cannot do when attached later.
    client.raw(&Packet { id: 77, kind: Kind::Command { set: 1, command: 1 }, data: Vec::new() })?;
    let reply = loop {
        let packet = client.packet()?;
        if packet.is_reply() {
            break packet;
        }
    };
    ensure!(reply.id == 77 && reply.kind == Kind::Reply { error: 99 }, "{reply:?}");
    client.tell(Request::Exit { status: 0 })?;
    ensure!(program.end()?.success());
    Ok(())
}

/// With `debug=wait` nothing of the program runs before a debugger has come and has said what it wants.
fn waits(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let program = Program::start(lab, jdk, "waits", Some("debug=wait"), &[], "Contended")?;
    let port = program.published("port");
    let Ok(port) = port else {
        let said = program.said();
        ensure!(said.contains("libjdwp") || said.contains("onjcmd"), "{said}");
        lab.not_tested(&format!("jdk{}::program_that_waits_for_a_debugger", jdk.feature), said.trim());
        return Ok(());
    };
    let mut client = Client::new(&program)?;
    client.until(|message| *message == Message::Waits(0))?;
    ensure!(
        program.said() == format!("monitor: listening on 127.0.0.1:{port}, waiting for a debugger\n"),
        "{}",
        program.said()
    );
    ensure!(program.line_within(Duration::from_millis(600)).is_none(), "it does not wait");
    let begun = Instant::now();
    client.raw(&Packet { id: 1, kind: Kind::Command { set: 1, command: 1 }, data: Vec::new() })?;
    program.expect("ready")?;
    ensure!(begun.elapsed() >= Duration::from_millis(1200), "it has waited for {:?} only", begun.elapsed());
    Ok(())
}

fn debugger(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let program = Program::start(lab, jdk, "debugger", Some("debug=on"), &[], "Contended");
    let program = program?;
    // JDK 11 and run-time JDKs may lack what it takes, and say so.
    let Ok(()) = program.expect("ready") else {
        let said = program.said();
        ensure!(said.contains("libjdwp") || said.contains("onjcmd"), "{said}");
        lab.not_tested(&format!("jdk{}::debugger", jdk.feature), said.trim());
        return Ok(());
    };
    let mut client = Client::new(&program)?;
    for round in 0..2 {
        // VirtualMachine.Version and AllThreads, by ids that DDM uses as well.
        // And VirtualMachine.Suspend: the agent answers all the same.
        for (id, command) in [(1, 1), (2, 4), (3, 8)] {
            let id = id + 10 * round;
            client.raw(&Packet { id, kind: Kind::Command { set: 1, command }, data: Vec::new() })?;
            let reply = loop {
                let packet = client.packet()?;
                if packet.is_reply() {
                    break packet;
                }
                ensure!(packet.id < 0x8000_0000 || packet.is_ddm(), "{packet:?}");
            };
            ensure!(reply.id == id && reply.kind == Kind::Reply { error: 0 }, "{reply:?}");
            ensure!(command == 8 || reply.data.len() > 4, "{reply:?}");
        }
        let Some(Message::HeapInfo(heaps)) = client.ask(Request::HeapInfo(et_ddm::heap::When::Now))? else {
            anyhow::bail!("no heap")
        };
        ensure!(heaps.len() == 1 && heaps[0].objects > 1000, "{heaps:?}");
        // The debugger goes, and comes back.
        let reply = client.ask(Request::DebuggerDetached)?;
        ensure!(reply == Some(Message::DebuggerDetached), "{reply:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
