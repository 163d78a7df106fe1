//! `cargo xtask monitoring`: what it costs a program to be looked at, and a monitor to look at many.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::figures::median;
use crate::jdks::{self, Jdk};
use crate::layout::{Layout, MONITOR_LIBRARY, Tools};
use crate::{build, command, markdown};

/// Two threads that compute and allocate; each line is the time of one round, in microseconds.
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
        int rounds = Integer.parseInt(arguments[0]);
        for (int i = 0; i < rounds; i++) {
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

/// Options of `cargo xtask monitoring`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Runs of each kind, in turns; the median of their best rounds counts
    #[arg(long, default_value_t = 7)]
    repetitions: usize,
    /// Rounds of a run; the first third warms up
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// VMs that one monitor is to look at
    #[arg(long, default_value_t = 50)]
    vms: usize,
    /// Take the tools as they were built last
    #[arg(long)]
    no_build: bool,
    /// Where to write the table as well
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// How a run is looked at, and what that may cost at most, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Agent,
    Idle,
    Looked,
    Filtered,
}

const KINDS: [(Kind, &str, Option<f64>); 5] = [
    (Kind::Plain, "plain", None),
    (Kind::Agent, "the agent, no monitor", Some(1.0)),
    (Kind::Idle, "a monitor, nobody looks", Some(1.0)),
    (Kind::Looked, "its page is open: states of threads at 2 Hz, sizes, contention", Some(2.0)),
    (Kind::Filtered, "heap profiler, a filter that selects nothing", Some(5.0)),
];

/// A process that does not outlive the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Bench<'a> {
    tools: &'a Tools,
    jdk: &'a Jdk,
    folder: &'a Path,
}

/// Measures and prints the tables.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.repetitions > 0 && options.rounds >= 3, "--repetitions must be at least 1, --rounds at least 3");
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
    let mut times = vec![Vec::new(); KINDS.len()];
    for repetition in 0..options.repetitions {
        for (kind, times) in KINDS.iter().zip(&mut times) {
            times.push(bench.time(kind.0, options.rounds)?);
        }
        eprintln!("run {} of {}", repetition + 1, options.repetitions);
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let mut table = format!("{}, {load}\n\n", jdk.version);
    table += "| | ms a round | more | may be | |\n|---|---|---|---|---|\n";
    for ((_, name, most), time) in KINDS.iter().zip(&medians) {
        let more = (time / medians[0] - 1.0) * 100.0;
        let (limit, verdict) = match most {
            Some(most) => (format!("{most} %"), if more <= *most { "kept" } else { "missed" }),
            None => Default::default(),
        };
        table += &format!("| {name} | {time:.1} | {more:.1} % | {limit} | {verdict} |\n");
    }
    table += &format!("\n{}\n", bench.many(options.vms)?);
    println!("{table}");
    options.markdown.as_ref().map_or(Ok(()), |path| markdown::write(path, &table))
}

/// What else the machine does.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let quiet =
        if load < 0.3 { "the machine was quiet" } else { "the machine was NOT quiet: figures are ratios at best" };
    format!("load {load:.1} on {processors} processors before it began; {quiet}")
}

impl Bench<'_> {
    /// Programs of others are not looked at.
    fn place(&self) -> Result<PathBuf> {
        let place = self.folder.join("run");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
        Ok(place)
    }

    fn program(&self, place: &Path, agent: Option<&str>, java: &[&str], arguments: &[String]) -> Result<Child> {
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

    /// Starts one; its URL.
    fn serve(&self, place: &Path) -> Result<(Running, String)> {
        let mut command = self.monitor(place, &["serve", "--port", "0", "--no-debugger"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("no output")?;
        let serving = Running(child);
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        Ok((serving, url.trim().to_owned()))
    }

    /// Waits until it knows so many.
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

    /// Milliseconds of a round: the best of the rounds behind the first third.
    fn time(&self, kind: Kind, rounds: usize) -> Result<f64> {
        let place = self.place()?;
        let filtered = format!("quiet=on,xml={},heap=on,filter=nothing.txt", self.folder.join("run.trcxml").display());
        let agent = match kind {
            Kind::Plain => None,
            Kind::Filtered => Some(filtered.as_str()),
            Kind::Agent | Kind::Idle | Kind::Looked => Some("quiet=on"),
        };
        let serving = if matches!(kind, Kind::Idle | Kind::Looked) { Some(self.serve(&place)?) } else { None };
        let mut child = self.program(&place, agent, &["-Xmx256m", "-XX:+UseSerialGC"], &[rounds.to_string()])?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut running = Running(child);
        if let Some((_, url)) = &serving {
            let all = self.found(&place, 1)?;
            if kind == Kind::Looked {
                look(url, all["vms"][0]["id"].as_u64().context("no id")?)?;
            }
        }
        let times: Vec<f64> = lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).collect();
        ensure!(running.0.wait()?.success() && times.len() == rounds, "the program has failed");
        let best = times[rounds / 3..].iter().copied().fold(f64::INFINITY, f64::min);
        Ok(best / 1000.0)
    }

    /// What one monitor takes for many VMs.
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
        for vm in all["vms"].as_array().context("no VMs")? {
            look(&url, vm["id"].as_u64().context("no id")?)?;
        }
        let looked = busy(pid, TIME)?;
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

/// Opens a page at a VM, until the process ends or the monitor does.
fn look(url: &str, vm: u64) -> Result<()> {
    let (host, path) = url.trim_start_matches("http://").split_once('/').context("no path")?;
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{path}api/events?vm={vm} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n")?;
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    Ok(())
}

/// Which part of a processor a process takes.
fn busy(pid: u32, time: Duration) -> Result<f64> {
    let before = ticks(pid)?;
    thread::sleep(time);
    // So many a second, on every Linux that runs a JVM.
    Ok((ticks(pid)? - before) as f64 / 100.0 / time.as_secs_f64())
}

fn ticks(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = stat.rsplit_once(')').context("no name in stat")?.1;
    let numbers: Vec<u64> = rest.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    Ok(numbers.get(11).zip(numbers.get(12)).map_or(0, |(user, system)| user + system))
}
