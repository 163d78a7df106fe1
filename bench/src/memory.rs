//! `cargo xtask memory`: measures whether the memory of the runtime grows during a long run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::{self, Jdk};
use xtask::layout::Layout;
use xtask::{build, command};

use crate::bench::figures::median;
use crate::markdown;

/// Options of `cargo xtask memory`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Minutes that the programs run
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Also write the table to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

const EVERY: Duration = Duration::from_secs(5);
/// The JVM's own count is requested less often, since that starts a JVM each time.
const COUNTED_EVERY: u32 = 3;
/// A heap that is fully resident from the start, so that it cannot grow.
const HEAP: [&str; 5] =
    ["-Xms128m", "-Xmx128m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"];

/// The runs, which are concurrent.
const RUNS: [(&str, bool, &str); 4] = [
    ("plain", false, "none"),
    ("traced", true, "none"),
    ("plain, classes made and unloaded", false, "classes"),
    ("traced, classes made and unloaded", true, "classes"),
];

struct Run {
    name: &'static str,
    child: Child,
    printed: PathBuf,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy)]
struct Sample {
    minute: u32,
    /// Resident memory, in megabytes.
    resident: f64,
    /// Memory by the JVM's own count, in megabytes: with the heap, without what the runtime allocates.
    of_jvm: Option<f64>,
}

/// Measures and prints the table.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.minutes >= 2, "--minutes must be at least 2: the first minute is compared with the last");
    let tools = build::unless(layout, options.no_build)?;
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let traced = InstrumentedJdk::of(&tools, &jdk, &[])?;
    let folder = layout.target.join("memory");
    let (classes, rewritten) = (folder.join("classes"), folder.join("rewritten"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&classes).with_context(|| format!("cannot make {}", classes.display()))?;
    let compiler = jdks::compiler(layout)?;
    let javac = compiler.javac().with_context(|| format!("{} has no javac", compiler.home.display()))?;
    let source = layout.repo.join("tests/java/memory/Steady.java");
    command::quiet(Command::new(&javac).args(["--release", "11", "-d"]).arg(&classes).arg(source))?;
    command::quiet(Command::new(tools.et_instrument()).arg("-q").arg(&classes).arg("-o").arg(&rewritten))?;

    let seconds = (options.minutes * 60).to_string();
    let mut runs = Vec::new();
    for (name, is_traced, makes) in RUNS {
        let mut java = Command::new(if is_traced { traced.java() } else { jdk.java() });
        if is_traced {
            java.args(traced.options(Path::new(">(cat > /dev/null)")));
        }
        java.args(HEAP).arg("-cp").arg(if is_traced { &rewritten } else { &classes });
        let printed = folder.join(format!("{}.txt", runs.len()));
        let out = File::create(&printed)?;
        java.args(["Steady", &seconds, makes]).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        runs.push(Run { name, child: java.spawn()?, printed, samples: Vec::new() });
    }
    let result = watch(&mut runs, javac.with_file_name("jcmd"), options.minutes);
    for run in &mut runs {
        if result.is_err() {
            let _ = run.child.kill();
        }
        let status = run.child.wait()?;
        let printed = fs::read_to_string(&run.printed)?;
        ensure!(status.success() || result.is_err(), "{}: {status}\n{printed}", run.name);
    }
    result?;

    let table = table(options, &jdk, &runs)?;
    println!("{table}");
    if let Some(path) = &options.markdown {
        markdown::write(path, &table)?;
    }
    Ok(())
}

fn watch(runs: &mut [Run], jcmd: PathBuf, minutes: u32) -> Result<()> {
    let start = Instant::now();
    let end = Duration::from_secs(60 * u64::from(minutes));
    for number in 1.. {
        // The last sample is taken well before the programs end.
        let due = EVERY * number;
        if due + EVERY > end {
            return Ok(());
        }
        thread::sleep(due.saturating_sub(start.elapsed()));
        let minute = (due.as_secs() / 60) as u32;
        for run in &mut *runs {
            let resident = resident(run.child.id()).with_context(|| {
                format!("{} ended early: {}", run.name, fs::read_to_string(&run.printed).unwrap_or_default())
            })?;
            let of_jvm = number.is_multiple_of(COUNTED_EVERY).then(|| of_jvm(&jcmd, run.child.id())).flatten();
            run.samples.push(Sample { minute, resident, of_jvm });
        }
    }
    Ok(())
}

/// Resident memory of a process, in megabytes.
fn resident(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes(line).map(|kilobytes| kilobytes / 1e3 * 1.024)
}

fn of_jvm(jcmd: &Path, pid: u32) -> Option<f64> {
    let output = command::quiet(Command::new(jcmd).arg(pid.to_string()).arg("VM.native_memory")).ok()?;
    committed(&String::from_utf8_lossy(&output.stdout))
}

/// The committed size in a line like `Total: reserved=1500KB, committed=1000KB`.
fn committed(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Total:"))?;
    kilobytes(line.split_once("committed=")?.1).map(|kilobytes| kilobytes / 1e3 * 1.024)
}

fn kilobytes(text: &str) -> Option<f64> {
    let text = text.trim();
    text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
}

/// The median; NaN if nothing was measured, which the table shows.
fn median_if_any(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    if values.is_empty() { f64::NAN } else { median(values) }
}

fn table(options: &Options, jdk: &Jdk, runs: &[Run]) -> Result<String> {
    let last = options.minutes - 1;
    let minutes = [0, 1, last / 2, last];
    let mut text = format!(
        "`cargo xtask memory --jdk {} --minutes {}`, JDK {}: medians of a minute, in MB.\n\n| | loaders |",
        options.jdk, options.minutes, jdk.version
    );
    for minute in minutes {
        text += &format!(" in memory, minute {} | of it the JVM's |", minute + 1);
    }
    text += &format!(" growth from minute 2 | of it the JVM's |\n|---|--:|{}\n", "--:|".repeat(10));
    for run in runs {
        let loaders = fs::read_to_string(&run.printed)?;
        text += &format!("| {} | {} |", run.name, loaders.trim());
        let of = |minute| {
            let samples = || run.samples.iter().filter(move |sample| sample.minute == minute);
            (
                median_if_any(samples().map(|sample| sample.resident)),
                median_if_any(samples().filter_map(|sample| sample.of_jvm)),
            )
        };
        for (resident, of_jvm) in minutes.map(of) {
            text += &format!(" {resident:.1} | {of_jvm:.1} |");
        }
        let ((before, jvm_before), (after, jvm_after)) = (of(1), of(last));
        text += &format!(" {:.1} | {:.1} |\n", after - before, jvm_after - jvm_before);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory() {
        assert!(resident(std::process::id()).unwrap() > 0.1);
        assert_eq!(resident(u32::MAX), None);
    }

    #[test]
    fn what_the_jvm_says_is_read() {
        let text = "7:\n\nNative Memory Tracking:\n\nTotal: reserved=1500000KB, committed=125000KB\n-  Java Heap (x)\n";
        assert_eq!(committed(text), Some(128.0));
        assert_eq!(committed("none"), None);
    }
}
