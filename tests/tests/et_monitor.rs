//! `et-monitor` with real VMs and our agent: commands, the page in a browser, a debugger on the same connection.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use et_tests::trcxml;
use serde_json::Value;
use xtask::jdks::Jdk;
use xtask::layout::MONITOR_LIBRARY;
use xtask::{browser, command};

const FEATURE: u32 = 17;
/// A thread name that browsers might interpret as markup.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";

fn main() -> ExitCode {
    let mut trials = lab::on_one_jdk("commands_ask_a_vm_that_was_attached_to", commands);
    trials.extend(lab::on_some_jdks_unless("jdb_steps_while_threads_are_shown", without_jdb, debugger));
    trials.extend(lab::on_one_jdk("a_traced_program_says_what_it_allocates", traced));
    trials.push(lab::on_jdk_unless(FEATURE, "a_page_with_two_vms", |_, _| browser::obstacle(), page));
    lab::run(trials).exit_code()
}

fn without_jdb(_: &Lab, jdk: &Jdk) -> Option<String> {
    let jdb = jdk.home.join("bin/jdb");
    (!jdb.is_file()).then(|| format!("no jdb in {}", jdk.home.display()))
}

/// Programs and monitors of one test: they see only each other.
struct Place<'a> {
    lab: &'a Lab,
    jdk: &'a Jdk,
    folder: PathBuf,
}

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'a> Place<'a> {
    fn new(lab: &'a Lab, jdk: &'a Jdk, test: &str) -> Result<Self> {
        let folder = lab.folder(jdk, test)?;
        fs::create_dir(folder.join("run"))?;
        let classes = folder.join("classes");
        fs::create_dir(&classes)?;
        let sources = ["Shop", "Mill"].map(|name| lab.layout.repo.join(format!("tests/java/live/{name}.java")));
        let mut javac = lab.compiler.compile()?;
        command::quiet(javac.args(["-g", "--release", "11", "-d"]).arg(&classes).args(sources))?;
        Ok(Self { lab, jdk, folder })
    }

    fn agent(&self) -> PathBuf {
        self.lab.tools.lib().join(MONITOR_LIBRARY)
    }

    /// Starts a program, and waits until it says that it is open.
    fn start(&self, main: &str, options: &[String]) -> Result<Running> {
        self.start_on(&self.jdk.home.join("bin/java"), main, options)
    }

    /// The same with tracing.
    fn start_traced(&self, main: &str, options: &[&str]) -> Result<Running> {
        let traced = self.lab.instrumented(self.jdk)?;
        let mut all = traced.options(&self.folder.join("trace.ettrace"));
        all.extend(options.iter().map(|&option| option.to_owned()));
        self.start_on(&traced.java(), main, &all)
    }

    fn start_on(&self, java: &Path, main: &str, options: &[String]) -> Result<Running> {
        let mut java = Command::new(java);
        java.args(["-Xmx64m"]).args(options).arg("-cp").arg(self.folder.join("classes")).arg(main);
        java.env("XDG_RUNTIME_DIR", self.folder.join("run")).current_dir(&self.folder);
        let mut child = java.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = child.stdout.take().context("no output")?;
        let running = Running(child);
        let mut said = String::new();
        BufReader::new(out).read_line(&mut said)?;
        ensure!(said == "open\n", "{main} says {said:?}");
        Ok(running)
    }

    fn et_monitor(&self, arguments: &[&str]) -> Command {
        let mut monitor = Command::new(self.lab.tools.et_monitor());
        // Programs of other tests are not to be found.
        monitor.args(arguments).args(["--scan", "1"]).env("XDG_RUNTIME_DIR", self.folder.join("run"));
        monitor.current_dir(&self.folder);
        monitor
    }

    fn say(&self, arguments: &[&str]) -> Result<String> {
        let output = command::quiet(&mut self.et_monitor(arguments))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    fn json(&self, arguments: &[&str]) -> Result<Value> {
        serde_json::from_str(&self.say(arguments)?).context("no JSON")
    }

    /// The monitor with its page: its URL, and the port for debuggers.
    fn serve(&self) -> Result<(Running, String, u16)> {
        let debugger = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut serve = self.et_monitor(&["serve", "--port", "0", "--debugger-port", &debugger.to_string()]);
        let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("no output")?;
        let running = Running(child);
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        ensure!(url.starts_with("http://127.0.0.1:"), "it says {url:?}");
        Ok((running, url.trim().to_owned(), debugger))
    }
}

fn until<T>(what: &str, mut is: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        let last = is();
        if let Ok(Some(found)) = last {
            return Ok(found);
        }
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(last.err().unwrap_or_else(|| anyhow::anyhow!("it is not so")))
                .context(format!("{what}: not within two minutes"));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn with_agent(place: &Place<'_>, options: &str) -> Vec<String> {
    vec![format!("-agentpath:{}={options}", place.agent().display())]
}

fn commands(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let place = Place::new(lab, jdk, "et_monitor_commands")?;
    let mut shop = place.start("Shop", &[])?;
    let pid = shop.0.id().to_string();
    let before = place.et_monitor(&["ls"]).output()?;
    ensure!(!before.status.success(), "a VM without the agent is listed");
    let attached = place.json(&["attach", &pid, "--json"])?;
    ensure!(attached["port"].as_u64().is_some(), "{attached}");
    // By its process, or by a part of its name.
    let list = place.json(&["ls", "--json"])?;
    let vm = &list["vms"][0];
    ensure!(
        vm["pid"].as_u64() == pid.parse().ok() && vm["application"].as_str().is_some_and(|it| it.contains("Shop")),
        "{list}"
    );
    let threads = place.json(&["threads", "Shop", "--json"])?;
    let state = |name: &str| {
        let found = threads.as_array().into_iter().flatten().find(|it| it["name"] == name);
        found.and_then(|it| Some((it["state"].as_str()?.to_owned(), it["id"].to_string())))
    };
    let (_, main) = state("main").context("no main thread")?;
    ensure!(state("main").is_some_and(|it| ["sleeping", "running"].contains(&&*it.0)), "{threads}");
    ensure!(state(HOSTILE).is_some_and(|it| ["waiting", "sleeping"].contains(&&*it.0)), "{threads}");
    let stack = place.say(&["threads", &pid, "--thread", &main])?;
    ensure!(stack.contains("at Shop.main(Shop.java:"), "{stack}");
    // The total of the map equals the heap size according to the VM.
    let map = place.json(&["heap", &pid, "--map", "--collect", "--json"])?;
    let (used, free, all) = (map["used"].as_u64(), map["free"].as_u64(), map["bytes"].as_u64());
    ensure!(used.zip(free).map(|(used, free)| used + free) == all && used > Some(500_000), "{map}");
    let heap = place.json(&["heap", &pid, "--json"])?;
    ensure!(heap["size"].as_u64() == all, "the map has {all:?} bytes, the heap {}", heap["size"]);
    let classes = place.say(&["heap", &pid, "--classes", "5"])?;
    ensure!(classes.contains("byte[]"), "{classes}");
    // From a class to an object to its class.
    let histogram = place.json(&["heap", &pid, "--classes", "500", "--json"])?;
    let row = histogram["rows"].as_array().into_iter().flatten().find(|it| it["name"] == "java.lang.String");
    let class = row.and_then(|it| it["class"].as_str()).context("no strings")?;
    let instances = place.json(&["ask", &pid, "instances", class])?;
    let object = instances["objects"][0]["id"].as_str().context("no object")?;
    let object = place.json(&["ask", &pid, "object", object])?;
    ensure!(object["className"] == "java.lang.String" && object["class"] == class, "{object}");
    place.say(&["gc", &pid])?;
    let dump = place.say(&["dump", &pid, "shop.hprof"])?;
    let mut start = [0; 18];
    fs::File::open(place.folder.join("shop.hprof"))?.read_exact(&mut start)?;
    ensure!(start.starts_with(b"JAVA PROFILE 1.0") && dump.contains("shop.hprof, "), "{dump}");
    let no_log = place.et_monitor(&["dump", &pid, "--log"]).output()?;
    let said = String::from_utf8_lossy(&no_log.stderr);
    ensure!(!no_log.status.success() && said.contains("its agent writes no log (option xml=FILE)"), "{said}");
    let again = place.et_monitor(&["dump", &pid, "shop.hprof"]).output()?;
    ensure!(String::from_utf8_lossy(&again.stderr).contains("exists"), "a file is overwritten");
    // Dumps to a log, on demand.
    let log = place.folder.join("mill.trcxml");
    let mill = place.start("Mill", &with_agent(&place, &format!("quiet=on,xml={}", log.display())))?;
    let mill_pid = mill.0.id().to_string();
    let said = place.say(&["dump", &mill_pid, "--log", "--name", "at noon"])?;
    ensure!(
        said.starts_with(&format!("dump 1 in {}: ", log.display())) && said.contains("the program was stopped for"),
        "{said}"
    );
    let second = place.json(&["dump", &mill_pid, "--log", "--json"])?;
    let text = fs::read_to_string(&log)?;
    let elements = trcxml::elements(&text)?;
    trcxml::check_definitions(&elements)?;
    let dumps: Vec<_> = elements.iter().filter(|it| it.name == "heapDumpDef").filter_map(|it| it.get("name")).collect();
    ensure!(dumps == ["at noon", "on demand"] && second["dump"] == 2, "{dumps:?}, {second}");
    let references = trcxml::count(&elements, "objectReference") as u64;
    ensure!(references > second["references"].as_u64().context("no references")?, "{references} references");
    drop(mill);
    place.say(&["exit", &pid, "--status", "7"])?;
    let code = shop.0.wait()?.code();
    ensure!(code == Some(7), "the program ended with {code:?}");
    fs::remove_dir_all(&place.folder).map_err(Into::into)
}

/// A debugger and what it has said.
struct Jdb {
    child: Running,
    to: ChildStdin,
    from: ChildStdout,
    said: String,
}

impl Jdb {
    fn say(&mut self, line: &str, until: &str) -> Result<&str> {
        let begin = self.said.len();
        if !line.is_empty() {
            writeln!(self.to, "{line}")?;
        }
        while !self.said[begin..].contains(until) {
            let mut bytes = [0; 4096];
            match self.from.read(&mut bytes)? {
                0 => bail!("jdb ended instead of saying {until:?}: {}", self.said),
                count => self.said += &String::from_utf8_lossy(&bytes[..count]),
            }
        }
        Ok(&self.said[begin..])
    }
}

fn debugger(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let place = Place::new(lab, jdk, "et_monitor_debugger")?;
    let shop = place.start("Shop", &with_agent(&place, "debug=on,quiet=on"))?;
    let (_serving, _, port) = place.serve()?;
    let pid = shop.0.id().to_string();
    until("the VM", || Ok(place.say(&["ls"])?.contains(&pid).then_some(())))?;
    let mut jdb = Command::new(jdk.home.join("bin/jdb"));
    jdb.args(["-attach", &format!("127.0.0.1:{port}")]).env("LANG", "C");
    let mut child = jdb.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (to, from) = (child.stdin.take().context("no input")?, child.stdout.take().context("no output")?);
    // One that waits for ever ends, and says so.
    let (id, done) = (child.id().to_string(), Arc::new(AtomicBool::new(false)));
    let is_done = done.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(240));
        if !is_done.load(Relaxed) {
            let _ = Command::new("kill").arg(id).status();
        }
    });
    let mut jdb = Jdb { child: Running(child), to, from, said: String::new() };
    jdb.say("", "> ")?;
    // Threads and heap are shown all the while.
    let states = || -> Result<String> { Ok(place.json(&["threads", &pid, "--json"])?.to_string()) };
    jdb.say("stop in Shop.count(int)", "reakpoint")?;
    jdb.say("", "main[1]")?;
    // Waits for the prompt each time: output that arrives late would be attributed to the next command.
    let stack = jdb.say("where", "main[1]")?;
    ensure!(stack.contains("[1] Shop.count") && stack.contains("[2] Shop.main"), "{}", jdb.said);
    ensure!(states()?.contains("clerk-1"), "no threads while the program stands");
    for _ in 0..2 {
        ensure!(jdb.say("step", "main[1]")?.contains("Step completed"), "{}", jdb.said);
        ensure!(place.json(&["heap", &pid, "--json"])?["used"].as_u64() > Some(0), "no heap while the program stands");
    }
    ensure!(jdb.say("print step", "main[1]")?.contains("step = 7"), "{}", jdb.said);
    ensure!(jdb.say("clear Shop.count(int)", "main[1]")?.contains("emoved"), "{}", jdb.said);
    jdb.say("resume", "resumed")?;
    let mut seen = HashSet::new();
    until("states that change again", || {
        seen.insert(states()?);
        Ok((seen.len() > 1).then_some(()))
    })?;
    let list = place.json(&["ls", "--json"])?;
    ensure!(list["vms"][0]["debugger"] == true && list["vms"][0]["malformed"] == 0, "{list}");
    // It goes; the VM runs on, and another may come.
    writeln!(jdb.to, "exit")?;
    jdb.child.0.wait()?;
    done.store(true, Relaxed);
    until("the debugger's end", || Ok((place.json(&["ls", "--json"])?["vms"][0]["debugger"] == false).then_some(())))?;
    place.say(&["exit", &pid])?;
    drop(shop);
    fs::remove_dir_all(&place.folder).map_err(Into::into)
}

/// By class, site and callers, while there is a watcher.
fn traced(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let place = Place::new(lab, jdk, "et_monitor_traced")?;
    let log = place.folder.join("run.trcxml");
    let xml = format!("-Det.xml={}", log.display());
    let filter = "-Det.filter=Shop* INCLUDE;byte[] INCLUDE;* EXCLUDE";
    let mut shop = place.start_traced("Shop", &["-Det.ddm=quiet=on", &xml, "-Det.profile=heap", filter])?;
    let (_serving, url, _) = place.serve()?;
    let id = until("the VM", || Ok(place.json(&["ls", "--json"])?["vms"][0]["id"].as_u64()))?;
    let (host, path) = url.trim_start_matches("http://").split_once('/').context("no path")?;
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    write!(stream, "GET /{path}api/events?vm={id} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n")?;
    let begun = Instant::now();
    let mut is_allocations = false;
    let mut sums = (0, 0);
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if let Some(event) = line.strip_prefix("event:") {
            is_allocations = event.trim() == "allocations";
        } else if let Some(data) = line.strip_prefix("data:").filter(|_| is_allocations) {
            let report: Value = serde_json::from_str(data)?;
            for site in report["sites"].as_array().context("no sites")? {
                // At 10,000 bytes and more each, called by a lambda of the thread's.
                let is_it =
                    site["class"] == "byte[]" && site["site"].as_str().is_some_and(|it| it.starts_with("Shop.stock:"));
                let (objects, bytes) = (site["objects"].as_u64().unwrap_or(0), site["bytes"].as_u64().unwrap_or(0));
                let has_context = site["context"].as_str().is_some_and(|it| it.contains("Shop"));
                if is_it && has_context {
                    ensure!(bytes >= objects * 10_016 && bytes <= objects * 10_528, "{site}");
                    sums = (sums.0 + objects, sums.1 + bytes);
                }
            }
        }
        if sums.0 > 100 {
            break;
        }
        ensure!(begun.elapsed() < Duration::from_secs(240), "only {sums:?} of Shop.stock");
    }
    place.say(&["exit", &shop.0.id().to_string(), "--status", "5"])?;
    let code = shop.0.wait()?.code();
    ensure!(code == Some(5), "the program ended with {code:?}");
    xtask::programs::validate(&lab.tools, &place.folder.join("trace.ettrace"))?;
    // The log of the same run has what the filter includes, and nothing else.
    let text = fs::read_to_string(&log)?;
    let elements = trcxml::elements(&text)?;
    trcxml::check_definitions(&elements)?;
    let names: std::collections::HashMap<_, _> = elements
        .iter()
        .filter(|it| it.name == "classDef")
        .filter_map(|it| Some((it.get("classId")?, it.get("name")?)))
        .collect();
    let made: HashSet<_> = elements
        .iter()
        .filter(|it| it.name == "objAlloc")
        .filter_map(|it| names.get(it.get("classIdRef")?).copied())
        .collect();
    ensure!(
        made.contains("byte[]") && made.iter().all(|name| *name == "byte[]" || name.starts_with("Shop")),
        "{made:?}"
    );
    ensure!(trcxml::count(&elements, "objFree") > 0, "nothing was freed");
    trcxml::validate(lab, &log)?;
    fs::remove_dir_all(&place.folder).map_err(Into::into)
}

fn page(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let place = Place::new(lab, jdk, "et_monitor_page")?;
    // Allocations are known for traced programs only.
    let mut shop = place.start_traced("Shop", &["-Det.ddm=quiet=on"])?;
    let mut mill = Some(place.start("Mill", &with_agent(&place, "quiet=on"))?);
    let (_serving, url, _) = place.serve()?;
    let chromium = browser::find().context("no chromium")?;
    let script = browser::driver(&lab.layout, "report/monitor.mjs", &lab.layout.target.join("browser/monitor"))?;
    let screenshots = lab.layout.target.join("report/monitor");
    fs::create_dir_all(&screenshots)?;
    let mut node = Command::new("node");
    node.arg(script).arg(chromium).arg(&url).arg(&screenshots).args(["Shop", "Mill"]);
    let mut node = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start node")?;
    let (mut to, from) = (node.stdin.take().context("no input")?, node.stdout.take().context("no output")?);
    let mut browsing = Running(node);
    let mut said = String::new();
    for line in BufReader::new(from).lines() {
        let line = line?;
        match line.strip_prefix("please ") {
            Some("kill") => mill = None,
            Some("restart") => mill = Some(place.start("Mill", &with_agent(&place, "quiet=on"))?),
            Some(_) => {
                let code = shop.0.wait()?.code();
                ensure!(code == Some(7), "the program ended with {code:?}");
            }
            None => said += &format!("{line}\n"),
        }
        if line.starts_with("please ") {
            writeln!(to, "done")?;
        }
    }
    ensure!(browsing.0.wait()?.success(), "{said}");
    drop(mill);
    let dumps = |folder: &Path| -> Result<usize> {
        Ok(fs::read_dir(folder)?.flatten().filter(|it| it.path().extension().is_some_and(|it| it == "hprof")).count())
    };
    ensure!(dumps(&place.folder)? == 1, "the page's heap dump is not where the monitor runs");
    fs::remove_dir_all(&place.folder).map_err(Into::into)
}
