//! Debuggers, agents, recorders and the JDK's tools, at the same time as us.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use et_tests::plain_and_traced::Prepared;
use libtest_mimic::Trial;
use xtask::command;
use xtask::jdks::Jdk;

pub fn trials() -> Vec<Trial> {
    let lacks = |file: &'static str| {
        move |_: &Lab, jdk: &Jdk| {
            (!jdk.home.join("lib").join(file).is_file()).then(|| format!("JDK {} has no {file}", jdk.feature))
        }
    };
    let mut trials = lab::on_some_jdks_unless("debugger", lacks("libjdwp.so"), debugger);
    trials.extend(lab::on_some_jdks_unless("java_agent", lacks("libinstrument.so"), java_agent));
    trials.extend(lab::on_some_jdks_unless("redefined_class", lacks("libinstrument.so"), redefined_class));
    trials.extend(lab::on_some_jdks_unless("agent_of_the_launcher", lacks("libinstrument.so"), agent_of_the_launcher));
    trials.extend(lab::on_some_jdks_unless("archive_of_classes", without_archive, archive_of_classes));
    trials.extend(lab::on_some_jdks_unless("flight_recorder", lacks("jfr/default.jfc"), flight_recorder));
    trials.extend(lab::on_some_jdks_unless("tools", lacks("libattach.so"), tools));
    trials
}

/// A program that waits for its input to end.
struct Waiting {
    child: Child,
}

impl Waiting {
    fn start(java: &mut Command) -> Result<Self> {
        let child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", command::shown(java)))?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        match lines.next() {
            Some(Ok(line)) if line == "ready" => {}
            other => bail!("the program does not get ready: {other:?}"),
        }
        // The rest is read, so that the program can go on.
        thread::spawn(move || lines.for_each(drop));
        Ok(Self { child })
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "the program ended with {status}");
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn debugger(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-debugger", "beside/Waits")?;
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let (mut java, trace) = prepared.traced_java()?;
    java.arg(format!("-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:{port}"));
    let program = Waiting::start(java.arg("-cp").arg(prepared.rewritten()).arg(&prepared.name))?;
    let mut debugger = Debugger::attach(port)?;
    let version = String::from_utf8_lossy(&debugger.ask(1, 1, &[])?).into_owned();
    ensure!(version.contains("Java"), "the debugger is told {version:?}");
    for _ in 0..5 {
        debugger.ask(1, 8, &[])?; // suspend
        let threads = debugger.ask(1, 4, &[])?;
        ensure!(threads.len() > 4 + 3 * 8, "few threads: {threads:?}");
        let mut frames = 0;
        for thread in threads[4..].chunks_exact(8) {
            // All frames from the first on.
            let reply = debugger.ask(11, 6, &[thread, &0u32.to_be_bytes(), &u32::MAX.to_be_bytes()].concat())?;
            frames += u32::from_be_bytes(reply[..4].try_into()?);
        }
        ensure!(frames > 3, "few frames: {frames}");
        debugger.ask(1, 9, &[])?; // resume
        thread::sleep(Duration::from_millis(20));
    }
    debugger.ask(1, 6, &[])?; // dispose
    program.end()?;
    prepared.validate(&trace)?;
    prepared.clean()
}

/// As much of the debug wire protocol (JDWP) as it takes.
struct Debugger {
    stream: TcpStream,
    last: u32,
}

impl Debugger {
    fn attach(port: u16) -> Result<Self> {
        let started = Instant::now();
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) if started.elapsed() > Duration::from_secs(120) => return Err(error.into()),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        };
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(b"JDWP-Handshake")?;
        let mut reply = [0; 14];
        stream.read_exact(&mut reply)?;
        ensure!(&reply == b"JDWP-Handshake", "no handshake");
        Ok(Self { stream, last: 0 })
    }

    /// Sends a command and waits for its reply; events in between are let go.
    fn ask(&mut self, set: u8, number: u8, data: &[u8]) -> Result<Vec<u8>> {
        self.last += 1;
        let mut packet = (11 + data.len() as u32).to_be_bytes().to_vec();
        packet.extend_from_slice(&self.last.to_be_bytes());
        packet.extend_from_slice(&[0, set, number]);
        packet.extend_from_slice(data);
        self.stream.write_all(&packet)?;
        loop {
            let mut header = [0; 11];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_be_bytes(header[..4].try_into()?) as usize;
            let mut content = vec![0; length.saturating_sub(11)];
            self.stream.read_exact(&mut content)?;
            if header[8] & 0x80 != 0 && header[4..8] == self.last.to_be_bytes() {
                let error = u16::from_be_bytes([header[9], header[10]]);
                ensure!(error == 0, "command {set}.{number} fails with {error}");
                return Ok(content);
            }
        }
    }
}

/// A jar of the program, and its rewritten form.
fn jars(lab: &Lab, prepared: &Prepared<'_>, manifest: &str) -> Result<(PathBuf, PathBuf)> {
    let [file, jar, rewritten] = ["app.mf", "app.jar", "app-et.jar"].map(|name| prepared.folder.join(name));
    fs::write(&file, manifest)?;
    let mut make = Command::new(lab.compiler.home.join("bin/jar"));
    command::quiet(make.arg("cfm").arg(&jar).arg(&file).arg("-C").arg(prepared.plain()).arg("."))?;
    prepared.rewrite(&jar, &rewritten)?;
    Ok((jar, rewritten))
}

fn java_agent(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-agent", "beside/Retransforms")?;
    let manifest = "Premain-Class: Retransforms\nCan-Retransform-Classes: true\nCan-Redefine-Classes: true\n";
    let (jar, rewritten) = jars(lab, &prepared, manifest)?;

    let plain = {
        let mut java = prepared.plain_java();
        java.arg(format!("-javaagent:{}", jar.display())).arg("-cp").arg(&jar);
        et_tests::program::run_java(java.arg("Retransforms"))?
    };
    let (mut java, trace) = prepared.traced_java()?;
    java.arg(format!("-javaagent:{}", rewritten.display())).arg("-cp").arg(&rewritten);
    let traced = et_tests::program::run_java(java.arg("Retransforms"))?;
    ensure!(plain.stdout.lines().count() == 4, "{plain:?}");
    et_tests::plain_and_traced::same(&plain, &traced)?;
    prepared.validate(&trace)?;
    prepared.clean()
}

/// A class that an agent gives plain bytes gets its hooks again, and its fields are what they were.
fn redefined_class(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-redefined", "beside/Redefines")?;
    let (jar, rewritten) = jars(lab, &prepared, "Premain-Class: Redefines\nCan-Redefine-Classes: true\n")?;
    let run = |mut java: Command, jar: &Path| {
        java.arg(format!("-javaagent:{}", jar.display())).arg("-cp").arg(jar);
        et_tests::program::run_java(java.arg("Redefines").arg(prepared.plain()))
    };
    let plain = run(prepared.plain_java(), &jar)?;
    ensure!(plain.stdout == "true\n", "{plain:?}");

    let traced_run = |prepared: &mut Prepared<'_>, options: &[&str]| -> Result<PathBuf> {
        let (mut java, trace) = prepared.traced_java()?;
        java.args(options);
        let plain_classes = prepared.plain().to_owned();
        java.arg(format!("-javaagent:{}", rewritten.display())).arg("-cp").arg(&rewritten);
        let traced = et_tests::program::run_java(java.arg("Redefines").arg(plain_classes))?;
        et_tests::plain_and_traced::same(&plain, &traced)?;
        Ok(trace)
    };
    let trace = traced_run(&mut prepared, &[])?;
    let names = prepared.folder.join("names.txt");
    let mut text = Command::new(lab.tools.et_trace());
    let text = command::read(text.args(["text", "--deaths", "none", "--names"]).arg(&names).arg(&trace))?;
    let items: Vec<&str> = text.lines().filter(|line| line.contains(" LRedefines$Item; ")).collect();
    ensure!(items.len() == 101 && items.iter().all(|line| line.starts_with("N ")), "{items:#?}");
    let ids: HashSet<&str> = items.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    // `U old-target origin new-target field thread`
    let stores: Vec<Vec<&str>> =
        text.lines().filter(|line| line.starts_with("U ")).map(|line| line.split(' ').collect()).collect();
    let fields: HashSet<&str> = stores.iter().filter(|store| ids.contains(store[3])).map(|store| store[4]).collect();
    ensure!(fields.len() == 1, "one field became {fields:?}");
    let summary = command::read(Command::new(lab.tools.et_trace()).args(["summary", "--json"]).arg(&trace))?;
    let summary: serde_json::Value = serde_json::from_str(&summary)?;
    ensure!(summary["dynamic"]["redefined"] == 2, "{}", summary["dynamic"]);
    prepared.validate(&trace)?;

    let trace = traced_run(&mut prepared, &["-Det.dynamic=off"])?;
    let summary = command::read(Command::new(lab.tools.et_trace()).arg("summary").arg(&trace))?;
    ensure!(
        summary.contains("redefined by an agent and left without hooks (dynamic=off): Redefines$Target"),
        "{summary}"
    );
    prepared.clean()
}

/// A jar that is its own agent keeps its manifest.
fn agent_of_the_launcher(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-launched", "beside/Launched")?;
    let (jar, rewritten) = jars(lab, &prepared, "Main-Class: Launched\nLauncher-Agent-Class: Launched\n")?;
    let plain = et_tests::program::run_java(prepared.plain_java().arg("-jar").arg(&jar))?;
    let (mut java, trace) = prepared.traced_java()?;
    let traced = et_tests::program::run_java(java.arg("-jar").arg(&rewritten))?;
    ensure!(plain.stdout == "10\nsized true\n", "{plain:?}");
    ensure!(plain.stdout == traced.stdout && plain.code == traced.code, "{plain:?}\n{traced:?}");
    prepared.validate(&trace)?;
    prepared.clean()
}

/// Dynamic archives came with JDK 13.
fn without_archive(_: &Lab, jdk: &Jdk) -> Option<String> {
    (jdk.feature < 13).then(|| format!("JDK {} makes no archives of applications", jdk.feature))
}

/// Rewritten classes from an archive of the application, made as docs/runtime-options.md says: without the agent.
fn archive_of_classes(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-archive", "beside/Launched")?;
    let (classes, jar) = (prepared.rewritten(), prepared.folder.join("app-et.jar"));
    command::quiet(
        Command::new(lab.compiler.home.join("bin/jar")).arg("cf").arg(&jar).arg("-C").arg(classes).arg("."),
    )?;
    let archive = prepared.folder.join("app.jsa");
    let mut dump = Command::new(lab.instrumented(jdk)?.java());
    dump.arg(format!("-XX:ArchiveClassesAtExit={}", archive.display())).arg("-cp").arg(&jar).arg("Launched");
    command::quiet(&mut dump)?;
    ensure!(archive.is_file(), "no archive was made");
    let (mut java, trace) = prepared.traced_java()?;
    java.arg(format!("-XX:SharedArchiveFile={}", archive.display())).arg("-Xlog:class+load").arg("-cp").arg(&jar);
    let traced = et_tests::program::run_java(java.arg("Launched"))?;
    ensure!(traced.stdout.contains("10\nno agent\n"), "{traced:?}");
    let is_archived = |line: &str| line.contains(" Launched source: shared objects file");
    ensure!(traced.stdout.lines().any(is_archived), "the archive was not used: {}", traced.stdout);
    prepared.validate(&trace)?;
    prepared.clean()
}

fn flight_recorder(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-recorder", "beside/Records")?;
    let seen = prepared.compare(&[])?;
    ensure!(seen.stdout.starts_with("50 "), "{seen:?}");
    prepared.clean()
}

/// `jcmd` and `jstack` of the compiler's JDK, as people use them on whatever runs.
fn tools(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut prepared = Prepared::new(lab, jdk, "semantics-tools", "beside/Waits")?;
    let (mut java, trace) = prepared.traced_java()?;
    let program = Waiting::start(java.arg("-cp").arg(prepared.rewritten()).arg(&prepared.name))?;
    let pid = program.pid();
    let jcmd = |words: &[&str]| -> Result<String> {
        let output = command::quiet(Command::new(lab.compiler.home.join("bin/jcmd")).arg(&pid).args(words))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let threads = jcmd(&["Thread.print"])?;
    ensure!(threads.contains("worker-0") && threads.contains("at Waits."), "{threads}");
    let histogram = jcmd(&["GC.class_histogram"])?;
    ensure!(histogram.contains("java.util.ArrayList"), "{histogram}");
    let dump = prepared.folder.join("heap.hprof");
    jcmd(&["GC.heap_dump", &dump.display().to_string()])?;
    ensure!(fs::metadata(&dump)?.len() > 1 << 20, "the heap dump is small");
    fs::remove_file(&dump)?;
    jcmd(&["GC.run"])?;
    let stacks = command::quiet(Command::new(lab.compiler.home.join("bin/jstack")).arg(&pid))?;
    ensure!(String::from_utf8_lossy(&stacks.stdout).contains("worker-1"), "jstack does not show worker-1");
    program.end()?;
    prepared.validate(&trace)?;
    prepared.clean()
}
