//! How objects get their ids: each way, on each JDK, with each collector, and when ids begin to be used again.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup};
use et_tests::record::{ObjectId, What};
use xtask::jdks::Jdk;

/// Options of a run.
#[derive(Clone)]
struct Variant {
    name: &'static str,
    /// Java versions that know the options.
    versions: RangeInclusive<u32>,
    /// Options of both runs.
    both: &'static [&'static str],
    traced: &'static [&'static str],
    /// The scheme that the trace must name.
    scheme: &'static str,
    /// Number of nodes per thread.
    rounds: usize,
}

impl Variant {
    /// Where ids of locked objects are.
    fn locked(&self, jdk: &Jdk) -> &'static str {
        let has = |option: &str| self.both.contains(&option);
        if self.scheme == "tags" || has("-XX:LockingMode=0") {
            "VM"
        } else if has("-XX:LockingMode=2") || jdk.feature >= 23 {
            "mark word"
        } else {
            "stack"
        }
    }
}

const MARK: &str = "mark word";
const ALL: RangeInclusive<u32> = 11..=99;

const fn with(name: &'static str, versions: RangeInclusive<u32>, both: &'static [&'static str]) -> Variant {
    Variant { name, versions, both, traced: &[], scheme: MARK, rounds: 10_000 }
}

const VARIANTS: [Variant; 15] = [
    with("serial", ALL, &["-XX:+UseSerialGC"]),
    with("parallel", ALL, &["-XX:+UseParallelGC"]),
    with("g1", ALL, &["-XX:+UseG1GC"]),
    with("cms", 11..=13, &["-XX:+UseConcMarkSweepGC"]),
    with("z", 15..=99, &["-XX:+UseZGC"]),
    with("generational_z", 21..=23, &["-XX:+UseZGC", "-XX:+ZGenerational"]),
    with("shenandoah", 15..=99, &["-XX:+UseShenandoahGC"]),
    with("epsilon", ALL, &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC", "-Xmx1g", "-Xlog:disable"]),
    with("compact_headers", 25..=99, &["-XX:+UseCompactObjectHeaders"]),
    with("inflated_locks", 21..=99, &["-XX:+UnlockExperimentalVMOptions", "-XX:LockingMode=0"]),
    with("lightweight_locks", 21..=99, &["-XX:+UnlockExperimentalVMOptions", "-XX:LockingMode=2"]),
    with("interpreted", ALL, &["-Xint"]),
    Variant { scheme: "hashCode=0", traced: &["-Det.ids=hash"], ..with("drawn", ALL, &[]) },
    Variant { scheme: "tags", traced: &["-Det.ids=tags"], rounds: 5_000, ..with("tags", ALL, &[]) },
    Variant {
        scheme: "tags",
        traced: &["-Det.ids=tags"],
        rounds: 5_000,
        ..with("tags_with_compact_headers", 25..=99, &["-XX:+UseCompactObjectHeaders"])
    },
];

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for variant in VARIANTS {
        let (one, other) = (variant.clone(), variant.clone());
        trials.extend(lab::on_each_jdk_unless(
            variant.name,
            move |lab, jdk| obstacle(lab, jdk, &one),
            move |lab, jdk| kept_apart(lab, jdk, &other),
        ));
    }
    trials.extend(lab::on_some_jdks("used_again", used_again));
    trials.extend(lab::on_some_jdks("random_hashes_are_reported", random_hashes_are_reported));
    lab::run(trials).exit_code()
}

/// Not all builds have all collectors.
fn obstacle(lab: &Lab, jdk: &Jdk, variant: &Variant) -> Option<String> {
    match variant.versions.contains(&jdk.feature) {
        false => Some(format!("Java {} has no {}", jdk.feature, variant.both.join(" "))),
        true => lab.refusal(jdk, variant.both),
    }
}

/// The program finds its hashes as they were, and each node is one object of the trace.
fn kept_apart(lab: &Lab, jdk: &Jdk, variant: &Variant) -> Result<()> {
    let rounds = format!("-Drounds={}", variant.rounds);
    let both = [variant.both, &[&rounds]].concat();
    let setup = Setup { both: &both, traced: variant.traced, ..Setup::default() };
    let run = Run::with(lab, jdk, &format!("ids_{}", variant.name), "facts/Ids", setup)?;
    let scheme = run.summary(lab)?["program"]["idScheme"].clone();
    ensure!(scheme == variant.scheme, "{scheme} instead of {}", variant.scheme);
    let locked = run.summary(lab)?["program"]["lockedIds"].clone();
    let expected = variant.locked(jdk);
    ensure!(locked == expected, "ids of locked objects: {locked} instead of {expected}");
    let laps = nodes(lab, &run, variant.rounds)?;
    ensure!(laps == 0, "ids of nodes were used {laps} times");
    run.clean()
}

/// Ids restart after 80,000, several times in the run, and ids of live objects are never reused, however these are
/// searched for.
fn used_again(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for (way, by) in [("mark", "by mark words"), ("tags", "by tags")] {
        let environment = [("ET_TEST_ID_LAP", "80000"), ("ET_TEST_WALKS", way)];
        let setup = Setup { both: &["-Drounds=60000", "-Xmx64m"], environment: &environment, ..Setup::default() };
        let run = Run::with(lab, jdk, &format!("ids_used_again_{way}"), "facts/Ids", setup)?;
        let laps = nodes(lab, &run, 60_000)?;
        ensure!(laps >= 3, "no id was used more than {laps} times again");
        let problems = run.summary(lab)?["problems"].to_string();
        ensure!(!problems.contains("used up"), "{problems}");
        let looked = format!("ids that objects still have were looked for {by}");
        ensure!(problems.contains(&looked), "{problems} without {looked}");
        run.clean()?;
    }
    Ok(())
}

/// Without the option that `et.args` has, the runtime says what it does instead.
fn random_hashes_are_reported(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { both: &["-Drounds=2000"], after: &["-XX:hashCode=5"], ..Setup::default() };
    let error = Run::with(lab, jdk, "ids_random", "facts/Ids", setup).err().context("the run is like the plain one")?;
    let told = "elephant-tracks: identity hashes may repeat, so every object is tagged, which is slow";
    ensure!(format!("{error:#}").contains(told), "{error:#}");
    Ok(())
}

/// Checks the records of nodes; returns how often an id was reused at most.
fn nodes(lab: &Lab, run: &Run, rounds: usize) -> Result<u64> {
    let trace = run.read(lab)?;
    let is_before = |field: u64| {
        trace.names.fields.get(&field).is_some_and(|field| trace.is_own(&field.class) && field.name == "before")
    };
    let (mut born, mut before) = (HashSet::new(), HashMap::new());
    for record in &trace.records.all {
        match &record.what {
            What::Born { kind, object, descriptor, .. } if **descriptor == *"LIds$Node;" => {
                ensure!(*kind == 'N' && born.insert(*object), "{kind} of node {object:?}");
            }
            What::Update { old, origin, new, field } if is_before(*field) => {
                ensure!(born.contains(origin), "a store into {origin:?}, which is no node");
                ensure!(*new == ObjectId::NULL || before.contains_key(new), "{origin:?} gets {new:?}");
                let held = before.insert(*origin, *new).unwrap_or(ObjectId::NULL);
                ensure!(*old == held, "{origin:?} held {held:?} and not {old:?}");
            }
            _ => {}
        }
    }
    ensure!(born.len() == 3 * rounds, "{} nodes instead of {}", born.len(), 3 * rounds);
    ensure!(before.len() == 3 * rounds.div_ceil(50), "{} nodes in chains", before.len());
    Ok(born.iter().map(|object| object.0 >> 31).max().unwrap_or(0))
}
