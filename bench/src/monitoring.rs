//! `cargo xtask monitoring`: measures the cost of a monitor for the VM it watches, and the cost of watching many VMs
//! for the monitor.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, MONITOR_LIBRARY, Tools};
use xtask::{build, command};

use crate::bench::figures::median;
use crate::markdown;

/// Two threads that compute and allocate, until the process is killed; each line is the time of one round, in microseconds.
const PROGRAM: &str = r#"
public class Work {
    static volatile long sink;

    static void half() {
        java.util.HashMap<Integer, int[]> map = new java.util.HashMap<>();
        java.util.Random random = new java.util.Random(7);
        for (int i = 0; i < 2_000_000; i++) {
            map.put(random.nextInt(5000), new int[] {i, i + 1});
        }
        long sum = 0;
        for (int[] value : map.values()) {
            sum += value[0];
        }
        sink = sum;
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("open");
        if (arguments.length == 0) {
            Thread.sleep(600_000);
        }
        while (true) {
            long start = System.nanoTime();
            Thread other = new Thread(Work::half);
            other.start();
            half();
            other.join();
            System.out.println((System.nanoTime() - start) / 1000);
        }
    }
}
"#;

/// Rounds before the measurement, until the JIT compilers have finished.
const WARM_UP: usize = 40;
/// Rounds per block.
const BLOCK: usize = 12;
/// If each block needs its own process, blocks are longer by this factor, and pairs fewer.
const LONG: usize = 4;

/// Options of `cargo xtask monitoring`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Pairs of measurements, without and with the monitor; the median of their ratios counts
    #[arg(long, default_value_t = 40)]
    pairs: usize,
    /// Number of VMs that one monitor watches
    #[arg(long, default_value_t = 50)]
    vms: usize,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Also write the table to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// What is measured. Monitors come and go while a program runs; an agent is loaded at the start of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing: the difference between processes without any change.
    Nothing,
    Agent,
    Filtered,
    Idle,
    Looked,
}

/// The kinds, with limits in percent.
const KINDS: [(Kind, &str, Option<f64>); 5] = [
    (Kind::Nothing, "nothing: two equal processes", None),
    (Kind::Agent, "the agent, no monitor", Some(1.0)),
    (Kind::Idle, "a monitor, nobody looks", Some(1.0)),
    (Kind::Looked, "its page is open: states of threads at 2 Hz, sizes, contention", Some(2.0)),
    (Kind::Filtered, "heap profiler, a filter that selects nothing", Some(5.0)),
];

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running program, and the durations of its rounds.
struct Program {
    _process: Running,
    rounds: Receiver<(Instant, f64)>,
}

/// A client that watches a VM until this is dropped.
struct Look(TcpStream);

impl Drop for Look {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

struct Bench<'a> {
    tools: &'a Tools,
    jdk: &'a Jdk,
    folder: &'a Path,
}

/// Measures and prints the tables.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.pairs > 0, "--pairs must be at least 1");
    let tools = build::unless(layout, options.no_build)?;
    let folder = layout.target.join("monitoring");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(folder.join("Work.java"), PROGRAM)?;
    fs::write(folder.join("nothing.txt"), "com.acme.nothing.* * INCLUDE\n* * EXCLUDE\n")?;
    let javac = jdks::compiler(layout)?.home.join("bin/javac");
    command::quiet(Command::new(javac).args(["--release", "11", "-d"]).arg(&folder).arg(folder.join("Work.java")))?;
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let bench = Bench { tools: &tools, jdk: &jdk, folder: &folder };
    let load = load();
    let mut table = format!("JDK {}, {load}\n\n", jdk.version);
    table += "| | more time | the middle half of the pairs | may be | |\n|---|--:|--:|--:|---|\n";
    for (kind, name, most) in KINDS {
        let mut more = bench.more(kind, options.pairs)?;
        more.sort_by(f64::total_cmp);
        let (low, high) = (more[more.len() / 4], more[more.len() * 3 / 4]);
        let middle = median(more);
        let (limit, verdict) = most.map_or_else(Default::default, |most| {
            let verdict = match most {
                _ if middle <= most => "kept",
                _ if low <= most => "missed, as far as the spread lets us tell",
                _ => "missed",
            };
            (format!("{most} %"), verdict)
        });
        table += &format!("| {name} | {middle:.1} % | {low:.1} % to {high:.1} % | {limit} | {verdict} |\n");
        eprintln!("{name}: {middle:.1} %");
    }
    table += &format!("\n{}\n", bench.many(options.vms)?);
    println!("{table}");
    options.markdown.as_ref().map_or(Ok(()), |path| markdown::write(path, &table))
}

/// The current load of the machine.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let quiet =
        if load < 0.3 { "the machine was quiet" } else { "the machine was NOT quiet: figures are ratios at best" };
    format!("load {load:.1} on {processors} processors before it began; {quiet}")
}

impl Bench<'_> {
    /// A separate folder, so that VMs of other programs are not watched.
    fn place(&self) -> Result<PathBuf> {
        let place = self.folder.join("run");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
        Ok(place)
    }

    fn program(&self, place: &Path, agent: Option<&str>, java: &[&str], arguments: &[&str]) -> Result<Child> {
        let mut command = Command::new(self.jdk.java());
        if let Some(options) = agent {
            command.arg(format!("-agentpath:{}={options}", self.tools.lib().join(MONITOR_LIBRARY).display()));
        }
        command.args(java).arg("-cp").arg(self.folder).arg("Work").args(arguments).env("XDG_RUNTIME_DIR", place);
        command.current_dir(self.folder).stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().with_context(|| format!("cannot start {}", command::shown(&command)))
    }

    fn monitor(&self, place: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.tools.et_monitor());
        command.args(arguments).args(["--scan", "1"]).env("XDG_RUNTIME_DIR", place).stdin(Stdio::null());
        command
    }

    /// Starts a monitor, and returns its URL.
    fn serve(&self, place: &Path) -> Result<(Running, String)> {
        let mut command = self.monitor(place, &["serve", "--port", "0", "--no-debugger"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("no output")?;
        let serving = Running(child);
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        Ok((serving, url.trim().to_owned()))
    }

    /// Waits until the monitor has found `count` VMs.
    fn found(&self, place: &Path, count: usize) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let output = command::quiet(&mut self.monitor(place, &["ls", "--json"]))?;
            let all: Value = serde_json::from_slice(&output.stdout)?;
            if all["vms"].as_array().is_some_and(|vms| vms.len() >= count) {
                return Ok(all);
            }
            ensure!(begun.elapsed() < Duration::from_secs(60), "et-monitor has not found {count} VMs within a minute");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The increase of round durations in percent, for each pair of blocks.
    fn more(&self, kind: Kind, pairs: usize) -> Result<Vec<f64>> {
        let log = self.folder.join("run.trcxml");
        let filtered = format!("quiet=on,xml={},heap=on,filter=nothing.txt", log.display());
        match kind {
            Kind::Nothing => self.processes(None, pairs.div_ceil(LONG)),
            Kind::Agent => self.processes(Some("quiet=on"), pairs.div_ceil(LONG)),
            Kind::Filtered => self.processes(Some(&filtered), pairs.div_ceil(LONG)),
            Kind::Idle | Kind::Looked => self.blocks(kind == Kind::Looked, pairs),
        }
    }

    /// Alternates processes without and with an agent: the best round of each.
    fn processes(&self, agent: Option<&str>, pairs: usize) -> Result<Vec<f64>> {
        let best = |agent: Option<&str>| -> Result<f64> {
            let program = self.worker(&self.place()?, agent)?;
            program.times(WARM_UP)?;
            Ok(program.times(BLOCK * LONG)?.into_iter().fold(f64::INFINITY, f64::min))
        };
        (0..pairs)
            .map(|_| {
                let without = best(None)?;
                Ok((best(agent)? / without - 1.0) * 100.0)
            })
            .collect()
    }

    /// In one process with the agent, alternates blocks of rounds without and with a monitor, or with a monitor,
    /// without and with a client.
    fn blocks(&self, looks: bool, pairs: usize) -> Result<Vec<f64>> {
        let place = self.place()?;
        let program = self.worker(&place, Some("quiet=on"))?;
        let page = if looks {
            let serving = self.serve(&place)?;
            Some((serving, self.found(&place, 1)?["vms"][0]["id"].as_u64().context("no id")?))
        } else {
            None
        };
        program.times(WARM_UP)?;
        let mut more = Vec::new();
        for _ in 0..pairs {
            let without = median(program.times(BLOCK)?);
            let (mut serving, mut looking) = (None, None);
            match &page {
                Some(((_, url), vm)) => looking = Some(look(url, *vm)?),
                None => {
                    serving = Some(self.serve(&place)?);
                    self.found(&place, 1)?;
                }
            }
            more.push((median(program.times(BLOCK)?) / without - 1.0) * 100.0);
            drop((serving, looking));
        }
        Ok(more)
    }

    /// A program that runs until it is dropped.
    fn worker(&self, place: &Path, agent: Option<&str>) -> Result<Program> {
        let mut child = self.program(place, agent, &["-Xmx256m", "-XX:+UseSerialGC"], &["work"])?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let (send, rounds) = channel();
        thread::spawn(move || {
            let times = lines.map_while(Result::ok).filter_map(|line| line.parse().ok());
            times.map(|micros: f64| micros / 1000.0).try_for_each(|millis| send.send((Instant::now(), millis)))
        });
        Ok(Program { _process: Running(child), rounds })
    }

    /// The cost of one monitor with many VMs.
    fn many(&self, count: usize) -> Result<String> {
        const TIME: Duration = Duration::from_secs(20);
        let place = self.place()?;
        let java = ["-Xmx16m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
        let mut vms = Vec::new();
        for _ in 0..count {
            let mut child = self.program(&place, Some("quiet=on"), &java, &[])?;
            let mut out = BufReader::new(child.stdout.take().context("no output")?);
            vms.push(Running(child));
            out.read_line(&mut String::new())?;
        }
        let (serving, url) = self.serve(&place)?;
        let begun = Instant::now();
        let all = self.found(&place, count)?;
        let found = begun.elapsed();
        let pid = serving.0.id();
        let idle = busy(pid, TIME)?;
        let listed = all["vms"].as_array().context("no VMs")?.iter();
        let looking = listed.map(|vm| look(&url, vm["id"].as_u64().context("no id")?)).collect::<Result<Vec<_>>>()?;
        let looked = busy(pid, TIME)?;
        drop(looking);
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("").trim().to_owned();
        Ok(format!(
            "{count} VMs on one monitor: found within {:.1} s, {:.1} % of a processor while nobody looks, {:.1} % with a page open \
             at each of them, {resident} of memory.",
            found.as_secs_f64(),
            idle * 100.0,
            looked * 100.0
        ))
    }
}

/// Opens the page of a VM.
fn look(url: &str, vm: u64) -> Result<Look> {
    let (host, path) = url.trim_start_matches("http://").split_once('/').context("no path")?;
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{path}api/events?vm={vm} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n")?;
    let looking = Look(stream.try_clone()?);
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    Ok(looking)
}

impl Program {
    /// Durations of the next rounds in milliseconds.
    fn times(&self, count: usize) -> Result<Vec<f64>> {
        let begun = Instant::now();
        let mut times = Vec::new();
        while times.len() < count {
            let next = self.rounds.recv_timeout(Duration::from_secs(60));
            let (end, millis) = next.context("the program has printed nothing for a minute")?;
            if end >= begun + Duration::from_secs_f64(millis / 1000.0) {
                times.push(millis);
            }
        }
        Ok(times)
    }
}

/// The share of one processor that a process uses.
fn busy(pid: u32, time: Duration) -> Result<f64> {
    let before = ticks(pid)?;
    thread::sleep(time);
    // Clock ticks per second, the same on every Linux that runs a JVM.
    Ok((ticks(pid)? - before) as f64 / 100.0 / time.as_secs_f64())
}

fn ticks(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = stat.rsplit_once(')').context("no name in stat")?.1;
    let numbers: Vec<u64> = rest.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    Ok(numbers.get(11).zip(numbers.get(12)).map_or(0, |(user, system)| user + system))
}
