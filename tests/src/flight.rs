//! Monitor events of the JDK's own Flight Recorder, as a reference for ours.

use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use xtask::command;
use xtask::jdks::Jdk;

/// A time that a thread spent at a monitor.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Whether it is a `wait` and not contention.
    pub is_wait: bool,
    /// Class name with dots.
    pub class: String,
    pub thread: String,
    /// Name of the owner's thread.
    pub owner: Option<String>,
    /// Duration in milliseconds.
    pub millis: f64,
    /// Whether the wait ended by timeout.
    pub is_timed_out: bool,
}

/// The option that has a recording made; events of 1 ms and more, if the VM has that setting.
pub fn option(file: &Path) -> String {
    format!("-XX:StartFlightRecording=filename={},settings=profile", file.display())
}

/// The program that reads recordings, if the JDK has it.
pub fn reader(jdk: &Jdk) -> Option<std::path::PathBuf> {
    Some(jdk.home.join("bin/jfr")).filter(|path| path.exists())
}

/// The events of these kinds in a recording, as the JDK's `jfr` prints them, with at most `depth` frames of each stack.
pub fn events(jdk: &Jdk, file: &Path, kinds: &str, depth: u32) -> Result<Vec<Value>> {
    let mut print = Command::new(reader(jdk).context("no jfr")?);
    print.args(["print", "--json", "--stack-depth", &depth.to_string(), "--events", kinds]).arg(file);
    let mut read: Value = serde_json::from_slice(&command::quiet(&mut print)?.stdout)?;
    let Value::Array(events) = read["recording"]["events"].take() else { bail!("no events {kinds}") };
    Ok(events)
}

/// What the allocations in a recording that we have written add up to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub events: u64,
    /// Events with a stack of more than one frame.
    pub with_callers: u64,
    objects: u64,
    bytes: u64,
    weight: u64,
}

/// An event, as `jfr` prints it: a megabyte of text has about two hundred, so what is not needed is not kept.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    objects: u64,
    bytes: u64,
    weight: u64,
    alive_objects: u64,
    stack_trace: Option<Stack>,
}

#[derive(Deserialize)]
struct Stack {
    frames: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Printed {
    recording: Recording,
}

#[derive(Deserialize)]
struct Recording {
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    values: Made,
}

/// Checks that a recording that we have written has the objects and bytes of `summary`, as the JDK's `jfr` reads it.
pub fn sums_are_those_of(summary: &Value, jdk: &Jdk, file: &Path) -> Result<Sums> {
    let mut print = Command::new(reader(jdk).context("no jfr")?);
    print.args(["print", "--json", "--stack-depth", "2", "--events", "jdk.ObjectAllocationSample"]).arg(file);
    let mut child = print.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let printed = serde_json::from_reader(BufReader::new(child.stdout.take().context("its output is piped")?));
    let status = child.wait()?;
    ensure!(status.success(), "jfr: {status}");
    let Printed { recording } = printed?;
    let mut sums = Sums::default();
    for Event { values: made } in &recording.events {
        ensure!(made.alive_objects <= made.objects, "{} alive of {}", made.alive_objects, made.objects);
        sums.events += 1;
        sums.with_callers += u64::from(made.stack_trace.as_ref().is_some_and(|stack| stack.frames.len() > 1));
        sums.objects += made.objects;
        sums.bytes += made.bytes;
        sums.weight += made.weight;
    }
    let allocated = &summary["allocated"];
    ensure!(sums.objects == allocated["objects"] && sums.bytes == allocated["bytes"], "{sums:?}, not {allocated}");
    ensure!(sums.weight == sums.bytes, "{sums:?}");
    Ok(sums)
}

/// The monitor events in a recording.
pub fn stops(jdk: &Jdk, file: &Path) -> Result<Vec<Stop>> {
    events(jdk, file, "jdk.JavaMonitorEnter,jdk.JavaMonitorWait", 5)?.iter().map(stop).collect()
}

fn stop(event: &Value) -> Result<Stop> {
    let values = &event["values"];
    let is_wait = event["type"] == "jdk.JavaMonitorWait";
    let name = |thread: &Value| thread["javaName"].as_str().map(str::to_owned);
    let class = values["monitorClass"]["name"].as_str().unwrap_or_default().replace('/', ".");
    Ok(Stop {
        is_wait,
        class,
        thread: name(&values["eventThread"]).context("no thread")?,
        owner: name(&values["previousOwner"]).filter(|_| !is_wait),
        millis: millis(values["duration"].as_str().unwrap_or_default())
            .with_context(|| values["duration"].to_string())?,
        is_timed_out: values["timedOut"].as_bool().unwrap_or(false),
    })
}

/// Parses a duration: `PT0.400123S`, `PT1M2.5S`.
fn millis(text: &str) -> Option<f64> {
    let mut rest = text.strip_prefix("PT")?;
    let mut seconds = 0.0;
    for (unit, worth) in [('H', 3600.0), ('M', 60.0), ('S', 1.0)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            seconds += number.parse::<f64>().ok()? * worth;
            rest = behind;
        }
    }
    rest.is_empty().then_some(seconds * 1000.0)
}

/// Checks that the events of both are pairwise similar, for the threads with these names.
pub fn compare(ours: &[Stop], theirs: &[Stop], threads: &[&str], slack_millis: f64) -> Result<()> {
    for thread in threads {
        let of = |all: &[Stop]| all.iter().filter(|stop| stop.thread == *thread).cloned().collect::<Vec<_>>();
        let (ours, theirs) = (of(ours), of(theirs));
        ensure!(!theirs.is_empty() && ours.len() >= theirs.len(), "{thread}: {ours:?} instead of {theirs:?}");
        for stop in &theirs {
            let is_it = |other: &&Stop| {
                (stop.is_wait, &stop.class, stop.is_timed_out) == (other.is_wait, &other.class, other.is_timed_out)
                    && (stop.owner.is_none() || stop.owner == other.owner)
                    && (stop.millis - other.millis).abs() <= slack_millis
            };
            ensure!(ours.iter().any(|other| is_it(&other)), "{stop:?} is not among {ours:?}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn durations_are_read() {
        assert_eq!(millis("PT0.400123S"), Some(400.123));
        assert_eq!(millis("PT1M2.5S"), Some(62_500.0));
        assert_eq!(millis("0.4 s"), None);
    }
}
