//! `cargo xtask fuzz`: runs the fuzzers for hours, in turns, and sums up their work.

mod record;
mod slice;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Error, Result, bail, ensure};

use xtask::command;
use xtask::layout::Layout;

use crate::markdown;
use record::{Done, Record};
use slice::Slice;

/// Options of `cargo xtask fuzz`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The targets to fuzz [default: all]
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// Minutes of processor time for each target, including earlier runs
    #[arg(long, default_value_t = 120)]
    minutes: u64,
    /// Number of fuzzers that run at a time [default: the number of processors]
    #[arg(long)]
    jobs: Option<usize>,
    /// Seconds after which the next target takes its turn
    #[arg(long, default_value_t = 300)]
    slice: u64,
    /// Only print the sums of all runs so far
    #[arg(long)]
    table: bool,
    /// Also write the table to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// One of `fuzz/targets`, as listed by its example `seeds`.
#[derive(Clone, Debug, PartialEq)]
struct Target {
    name: String,
    /// The name of its seeds and of its kept corpus.
    inputs: String,
    /// Maximum length of inputs in bytes.
    longest: usize,
    /// Whether libFuzzer traces comparisons.
    compares: bool,
}

/// Fuzzes until each target has used up its time or found something.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let folder = layout.target.join("fuzz");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let record = folder.join("record.json");
    if options.table {
        return show(&Record::open(&record)?, options);
    }
    // Two processes would overwrite each other's sums, logs and inputs.
    let lock = folder.join("lock");
    let lock = File::create(&lock).with_context(|| format!("cannot make {}", lock.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            bail!("another cargo xtask fuzz is running in {}: wait until it ends", folder.display())
        }
        Err(TryLockError::Error(error)) => return Err(error).context("cannot lock target/fuzz"),
    }
    let record = Record::open(&record)?;
    ensure!(options.slice > 0 && options.jobs != Some(0), "--slice and --jobs must be at least 1");
    command::quiet(Command::new("cargo").args(["fuzz", "--version"]))
        .context("cargo-fuzz is missing: cargo install cargo-fuzz")?;
    let seeds = folder.join("seeds");
    let mut cargo = command::cargo(&layout.repo);
    cargo.args(["run", "--quiet", "--locked", "-p", "et-fuzz-targets", "--example", "seeds", "--"]);
    let mut targets = listed(&command::read(cargo.arg(&seeds))?)?;
    if let Some(unknown) = options.targets.iter().find(|name| targets.iter().all(|target| target.name != **name)) {
        let known: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
        bail!("no target named {unknown}; there are {}", known.join(", "));
    }
    targets.retain(|target| options.targets.is_empty() || options.targets.contains(&target.name));
    let goal = options.minutes * 60;
    targets.retain(|target| record.of(&target.name).processor < goal as f64);
    let programs = build(layout, &folder, &targets)?;
    let turns = Turns { goal, state: Mutex::new(State { record, ..State::default() }) };
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let work = || {
        while let Some(target) = turns.next(&targets) {
            let slice = Slice {
                program: &programs[&target.name],
                target,
                seconds: options.slice,
                inputs: [seeds.join(&target.inputs), layout.repo.join("fuzz/corpus").join(&target.inputs)],
                folder: &folder,
            };
            turns.done(target, slice.run());
        }
    };
    thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let state = turns.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    show(&state.record, options)?;
    if let Some(error) = state.failed {
        return Err(error);
    }
    let found: Vec<String> = state.found.iter().map(|(name, found)| format!("{name}: {found}")).collect();
    ensure!(found.is_empty(), "the fuzzers found:\n{}", found.join("\n"));
    Ok(())
}

fn show(record: &Record, options: &Options) -> Result<()> {
    let table = record.table();
    println!("{table}");
    options.markdown.as_ref().map_or(Ok(()), |path| markdown::write(path, &table))
}

/// Parses the output of the example `seeds`: name, inputs, longest input, and whether comparisons are traced.
fn listed(text: &str) -> Result<Vec<Target>> {
    let target = |line: &str| -> Option<Target> {
        let [name, inputs, longest, compares] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let (longest, compares) = (longest.parse().ok()?, compares.parse().ok()?);
        Some(Target { name: name.into(), inputs: inputs.into(), longest, compares })
    };
    text.lines().map(|line| target(line).with_context(|| format!("not a target: {line}"))).collect()
}

/// The fuzzers by the names of their targets.
fn build(layout: &Layout, folder: &Path, targets: &[Target]) -> Result<BTreeMap<String, PathBuf>> {
    let version = command::read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not tell its host")?;
    let mut programs = BTreeMap::new();
    for target in targets {
        // Each variant has its own compiler flags: in one folder, each would recompile everything.
        let (flags, place): (&[&str], _) =
            if target.compares { (&[], "build") } else { (&["--no-trace-compares"], "build-plain") };
        let place = folder.join(place);
        let mut cargo = command::cargo(&layout.repo.join("fuzz"));
        cargo.args(["fuzz", "build", "-s", "none"]).args(flags);
        command::run(cargo.arg("--target-dir").arg(&place).arg(&target.name))?;
        programs.insert(target.name.clone(), place.join(host).join("release").join(&target.name));
    }
    Ok(programs)
}

/// Determines which target is next.
struct Turns {
    /// Seconds of processor time for each target.
    goal: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    record: Record,
    running: BTreeSet<String>,
    /// Findings of the targets that have stopped.
    found: BTreeMap<String, String>,
    /// The first error; no further slices are started.
    failed: Option<Error>,
}

impl Turns {
    /// Of the waiting targets, the one with the least time so far.
    fn next<'t>(&self, targets: &'t [Target]) -> Option<&'t Target> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failed.is_some() {
            return None;
        }
        let waits = |target: &&Target| !state.running.contains(&target.name) && !state.found.contains_key(&target.name);
        let had = |target: &&Target| state.record.of(&target.name).processor;
        let next = targets.iter().filter(waits).min_by(|a, b| had(a).total_cmp(&had(b)))?;
        if had(&next) >= self.goal as f64 {
            return None;
        }
        state.running.insert(next.name.clone());
        Some(next)
    }

    fn done(&self, target: &Target, slice: Result<Done>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = slice.and_then(|done| state.add(&target.name, done, self.goal)) {
            eprintln!("{}: {error:#}; what runs is waited for", target.name);
            state.failed.get_or_insert(error);
        }
    }
}

impl State {
    fn add(&mut self, name: &str, done: Done, goal: u64) -> Result<()> {
        self.running.remove(name);
        self.record.add(name, &done);
        self.record.save()?;
        let (had, executions) = (self.record.of(name).processor, done.executions);
        println!("{name}: {executions} executions; processor time {had:.0} of {goal} s");
        if let Some(found) = done.found {
            println!("{name}: {found}");
            self.found.insert(name.to_owned(), found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn targets() -> Vec<Target> {
        listed("class class 16384 true\ntrace trace 12288 false\n").unwrap()
    }

    #[test]
    fn the_list_is_read() {
        let [class, trace] = &targets()[..] else { panic!() };
        assert_eq!((&*class.name, class.longest, class.compares), ("class", 16384, true));
        assert!(!trace.compares);
        assert_eq!(listed("class class 1\n").unwrap_err().to_string(), "not a target: class class 1");
    }

    #[test]
    fn who_had_least_is_next_until_all_had_enough_or_found_something() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::open(&folder.path().join("record.json")).unwrap();
        let turns = Turns { goal: 100, state: Mutex::new(State { record, ..State::default() }) };
        let targets = targets();
        let next = || turns.next(&targets).map(|target| &*target.name);
        let done = |at: usize, processor, found: Option<&str>| {
            let found = found.map(String::from);
            turns.done(&targets[at], Ok(Done { processor, found, ..Done::default() }));
        };
        assert_eq!((next(), next(), next()), (Some("class"), Some("trace"), None), "each once at a time");
        done(0, 60.0, None);
        done(1, 50.0, None);
        assert_eq!(next(), Some("trace"));
        done(1, 60.0, None);
        assert_eq!(next(), Some("class"));
        done(0, 1.0, Some("a crash"));
        assert_eq!(next(), None, "one had enough, the other found something");
        // Saved for the next run.
        let again = Record::open(&folder.path().join("record.json")).unwrap();
        assert_eq!((again.of("class").processor, again.of("trace").processor), (61.0, 110.0));
    }

    #[test]
    fn nothing_is_started_after_an_error() {
        let turns = Turns { goal: 100, state: Mutex::default() };
        let targets = targets();
        assert!(turns.next(&targets).is_some());
        turns.done(&targets[0], Err(anyhow!("no room")));
        assert!(turns.next(&targets).is_none());
    }
}
