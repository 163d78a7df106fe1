//! The heap at moments of a run: `et-trace heap` agrees with its heap dump as other tools read it, and at the end with
//! the VM's own dump.
#![allow(clippy::print_stderr, reason = "tests tell what they do")]

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::compiled;
use et_tests::hprof::{self, Counts};
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run};
use serde_json::Value;
use xtask::command;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 3] = [
        ("dumps_at_three_moments", dumps_at_three_moments),
        ("the_same_from_tables", the_same_from_tables),
        ("as_in_the_dump_of_the_vm", as_in_the_dump_of_the_vm),
    ];
    let mut trials: Vec<_> = cases.into_iter().flat_map(|(name, case)| lab::on_one_jdk(name, case)).collect();
    if let Some(trace) = env::var_os(TRACE) {
        let case = move |lab: &Lab, _: &Jdk| dumps_of_that_trace(lab, Path::new(&trace));
        trials.push(lab::on_jdk_unless(17, "dumps_of_that_trace", |_, _| None, case));
    }
    lab::run(trials).exit_code()
}

/// Variable with the path of a trace whose dumps are compared as well: of a large program, which takes too long for
/// regular tests.
const TRACE: &str = "ET_HEAP_TRACE";

/// Output of `et-trace heap`, and of the heap dump that it writes.
struct Shown {
    json: Value,
    dump: PathBuf,
}

impl Shown {
    fn at(lab: &Lab, trace: &Path, moment: &str, dump: PathBuf) -> Result<Self> {
        let mut heap = Command::new(lab.tools.et_trace());
        heap.arg("heap").arg(trace).args(["--at", moment, "--top", "100000", "--json", "--hprof"]).arg(&dump);
        let json = serde_json::from_str(&command::read(&mut heap)?).context("et-trace heap --json")?;
        Ok(Self { json, dump })
    }

    fn classes(&self) -> BTreeMap<String, u64> {
        let lines = self.json["classes"].as_array().into_iter().flatten();
        let of = |line: &Value| Some((line["class"].as_str()?.to_owned(), line["objects"].as_u64()?));
        lines.filter_map(of).collect()
    }

    fn number(&self, key: &str) -> u64 {
        self.json["heap"][key].as_u64().unwrap_or_default()
    }
}

fn dumps_at_three_moments(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "dumps_at_three_moments", "facts/Heaps")?;
    let trees = |shown: &Shown| shown.classes().get("Heaps$Tree").copied().unwrap_or_default();
    let mut seen = Vec::new();
    for nth in 1..=3 {
        let dump = run.folder.join(format!("et{nth}.hprof"));
        let shown = Shown::at(lab, &run.trace, &format!("method:Heaps.mark#{nth}"), dump)?;
        others_read_the_same(lab, &shown)?;
        seen.push(trees(&shown));
    }
    // 31 nodes; without the left half 16; and ten times three more, of which eight remain: two take the places of others.
    ensure!(seen == [31, 16, 40], "{seen:?} trees");
    let path = command::read(Command::new(lab.tools.et_trace()).arg("heap").arg(&run.trace).args([
        "--at",
        "method:Heaps.mark#1",
        "--dominators",
    ]))?;
    ensure!(path.contains("class Heaps"), "{path}");
    held(lab, &run.trace)?;
    run.clean()
}

/// Why the trees are alive, by class and by object, and what holds one of them directly.
fn held(lab: &Lab, trace: &Path) -> Result<()> {
    let heap = |arguments: &[&str]| {
        let mut heap = Command::new(lab.tools.et_trace());
        heap.arg("heap").arg(trace).args(["--at", "method:Heaps.mark#1", "--json"]).args(arguments);
        heap
    };
    let ask = |arguments: &[&str]| -> Result<Value> {
        serde_json::from_str(&command::read(&mut heap(arguments))?).with_context(|| format!("{arguments:?}"))
    };
    let all = ask(&["--path-to", "Heaps$Tree", "--top", "1000"])?;
    let sum = |key: &str| -> u64 {
        all["paths"].as_array().into_iter().flatten().filter_map(|path| path[key].as_u64()).sum()
    };
    ensure!(all["objects"] == 31 && sum("objects") == 31, "{all}");
    ensure!(all["bytes"].as_u64() == Some(sum("bytes")), "{all}");
    let steps = all["paths"][0]["steps"].as_array().context("no steps")?;
    let (Some(last), Some(before)) = (steps.last(), steps.iter().rev().nth(1)) else { anyhow::bail!("{all}") };
    ensure!(last["class"] == "Heaps$Tree", "{all}");
    let held = ask(&["--holders", last["object"].as_str().context("no id")?])?;
    let holds = |line: &Value| line["object"] == before["object"] && line["via"] == last["via"];
    ensure!(
        held["class"] == "Heaps$Tree" && held["holders"].as_array().into_iter().flatten().any(holds),
        "{held} {all}"
    );
    for (asked, says) in [
        (["--path-to", "Heaps$Bush"], "no object of class Heaps$Bush is alive at method:Heaps.mark"),
        (["--holders", "7000000000000000"], "there is no object 7000000000000000"),
    ] {
        let refused = heap(&asked).output()?;
        let said = String::from_utf8_lossy(&refused.stderr);
        ensure!(refused.status.code() == Some(1) && said.contains(says), "{said}");
    }
    Ok(())
}

/// Tables beside a trace, which another command has made, tell what reading the trace tells.
fn the_same_from_tables(lab: &Lab, jdk: &Jdk) -> Result<()> {
    const MOMENTS: [&str; 4] = ["0%", "35%", "80%", "end"];
    let run = Run::of(lab, jdk, "the_same_from_tables", "facts/Heaps")?;
    let at = |moment: &str, kind: &str| {
        Shown::at(lab, &run.trace, moment, run.folder.join(format!("{kind}-{}.hprof", moment.trim_end_matches('%'))))
    };
    let read: Vec<Shown> = MOMENTS.iter().map(|moment| at(moment, "read")).collect::<Result<_>>()?;
    command::quiet(Command::new(lab.tools.et_trace()).arg("field").arg(&run.trace).arg("Heaps$Tree.left"))?;
    for (moment, read) in MOMENTS.iter().zip(read) {
        let asked = at(moment, "asked")?;
        ensure!(read.classes() == asked.classes(), "{moment}: {:?}", differences(&read.classes(), &asked.classes()));
        for key in ["tick", "allocatedBytes", "objects", "bytes", "references"] {
            ensure!(
                read.number(key) == asked.number(key),
                "{key} at {moment}: {} and {}",
                read.number(key),
                asked.number(key)
            );
        }
        others_read_the_same(lab, &asked).with_context(|| format!("at {moment}"))?;
        let heap = || {
            let mut heap = Command::new(lab.tools.et_trace());
            heap.arg("heap").arg(&run.trace).args(["--at", moment]);
            heap
        };
        let said = |heap: &mut Command| -> Result<String> {
            Ok(String::from_utf8_lossy(&command::quiet(heap)?.stderr).into_owned())
        };
        let (by_tables, by_reading) = (said(&mut heap())?, said(heap().arg("--stacks"))?);
        // Up to the first call there is little to read, and tables do not tell in which order it happened.
        ensure!(by_tables.contains("answered from the tables beside the trace") == (*moment != "0%"), "{by_tables}");
        ensure!(!by_reading.contains("answered from the tables"), "{by_reading}");
    }
    run.clean()
}

fn dumps_of_that_trace(lab: &Lab, trace: &Path) -> Result<()> {
    let folder = tempfile::tempdir_in(&lab.layout.target)?;
    for moment in ["25%", "60%", "end"] {
        // VisualVM's library keeps a cache beside a dump, by name.
        let dump = folder.path().join(format!("{}.hprof", moment.trim_end_matches('%')));
        let shown = Shown::at(lab, trace, moment, dump)?;
        eprintln!(
            "{moment}: {} objects of {} classes, {} references",
            shown.number("objects"),
            shown.classes().len(),
            shown.number("references")
        );
        others_read_the_same(lab, &shown).with_context(|| format!("at {moment}"))?;
    }
    Ok(())
}

/// Three readers that are not ours find in the dump what is shown.
fn others_read_the_same(lab: &Lab, shown: &Shown) -> Result<()> {
    let there = hprof::count(&shown.dump)?;
    compare(shown, &there)?;
    match visual_vm(lab, &shown.dump)? {
        Some(counts) => compare(shown, &counts).context("VisualVM's library")?,
        None => lab.not_tested("heap dumps read by VisualVM's library", "Debian's package visualvm cannot be fetched"),
    }
    let Some(slurped) = slurped(lab, &shown.dump)? else {
        lab.not_tested("heap dumps read by hprof-slurp", "cargo install hprof-slurp failed");
        return Ok(());
    };
    let plain = |all: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        all.iter().filter(|(name, _)| !name.contains('[')).map(|(name, count)| (name.clone(), *count)).collect()
    };
    let differ = differences(&plain(&there.objects), &plain(&slurped));
    ensure!(differ.is_empty(), "hprof-slurp: {differ:?}");
    let all = |counts: &BTreeMap<String, u64>| -> u64 { counts.values().sum() };
    let (ours, theirs) = (all(&there.objects), all(&slurped));
    ensure!(ours == theirs, "hprof-slurp: {theirs} objects, not {ours}");
    Ok(())
}

/// The dump has the same objects of each class, but that mirrors are classes there.
fn compare(shown: &Shown, counts: &Counts) -> Result<()> {
    let mut classes = shown.classes();
    let mirrors = classes.remove("java.lang.Class").unwrap_or_default();
    let mut there = counts.objects.clone();
    let instances = there.remove("java.lang.Class").unwrap_or_default();
    ensure!(classes == there, "{:?}", differences(&classes, &there));
    ensure!(counts.classes + instances >= mirrors, "{} classes for {mirrors} mirrors", counts.classes);
    let references = shown.number("references");
    ensure!(references == counts.references, "{references} references, in the dump {}", counts.references);
    Ok(())
}

fn differences(one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>) -> Vec<(String, u64, u64)> {
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let of = |all: &BTreeMap<String, u64>, name: &str| all.get(name).copied().unwrap_or_default();
    names
        .into_iter()
        .map(|name| (name.clone(), of(one, name), of(other, name)))
        .filter(|(_, one, other)| one != other)
        .collect()
}

/// The VM's own dump is made after the third call of `mark`, after a full collection.
fn as_in_the_dump_of_the_vm(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "as_in_the_dump_of_the_vm", "facts/Heaps")?;
    let shown = Shown::at(lab, &run.trace, "method:Heaps.mark#4", run.folder.join("et.hprof"))?;
    let (ours, vms) = (shown.classes(), hprof::count(&run.folder.join("vm.hprof"))?);
    let own = |all: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        // A lambda's class is named by its address.
        let is_own = |name: &str| name.starts_with("Heaps") && !name.contains("Lambda");
        all.iter().filter(|(name, _)| is_own(name)).map(|(name, count)| (name.clone(), *count)).collect()
    };
    ensure!(own(&ours).len() >= 4, "{ours:?}");
    ensure!(own(&ours) == own(&vms.objects), "{:?}", differences(&own(&ours), &own(&vms.objects)));
    // The rest is what docs/evidence/deaths.md explains: what the VM makes and holds, what is softly reachable.
    let all = |counts: &BTreeMap<String, u64>| -> u64 { counts.values().sum() };
    let differ: Vec<_> = differences(&ours, &vms.objects);
    let apart: u64 = differ.iter().map(|(_, one, other)| one.abs_diff(*other)).sum();
    let share = apart as f64 / all(&vms.objects) as f64;
    if lab::keep_traces() {
        eprintln!("{} of {} objects, {apart} apart: {differ:#?}", all(&ours), all(&vms.objects));
    }
    ensure!(share < 0.35, "{share:.3} of {} objects differ: {differ:?}", all(&vms.objects));
    run.clean()
}

/// Waits until no other test fetches or builds what is in a folder.
fn alone(folder: &Path) -> Result<File> {
    let path = folder.with_extension("lock");
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let lock = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(lock)
}

/// The result of VisualVM's library from Debian's package.
fn visual_vm(lab: &Lab, dump: &Path) -> Result<Option<Counts>> {
    let folder = lab.layout.target.join("e2e/visualvm");
    let jar = folder.join("usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar");
    let fetching = alone(&folder)?;
    if !jar.is_file() {
        let mut fetch = Command::new("apt-get");
        fetch.args(["download", "visualvm"]).current_dir(&folder);
        if !fetch.output().is_ok_and(|done| done.status.success()) {
            return Ok(None);
        }
        for file in
            std::fs::read_dir(&folder)?.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "deb"))
        {
            command::quiet(Command::new("dpkg").arg("-x").arg(file.path()).arg(&folder))?;
        }
    }
    drop(fetching);
    let source = program::programs(lab).join("facts/CountHprof.java");
    let classes = compiled::classes_with(lab, &source, 11, Some(&jar))?;
    let mut count = Command::new(lab.compiler.java());
    count.arg("-cp").arg(std::env::join_paths([&classes, &jar])?).arg("CountHprof").arg(dump);
    let mut counts = Counts::default();
    for line in command::read(&mut count)?.lines() {
        let mut words = line.split(' ');
        let (what, number) = (words.next(), words.next().and_then(|number| number.parse().ok()).unwrap_or_default());
        match (what, words.next()) {
            (Some("references"), _) => counts.references = number,
            (Some("classes"), _) => counts.classes = number,
            (_, Some(class)) => _ = counts.objects.insert(class.to_owned(), number),
            _ => {}
        }
    }
    Ok(Some(counts))
}

/// How many objects of each class the program `hprof-slurp` finds.
fn slurped(lab: &Lab, dump: &Path) -> Result<Option<BTreeMap<String, u64>>> {
    let root = lab.layout.target.join("e2e/hprof-slurp");
    let program = root.join("bin/hprof-slurp");
    let _alone = alone(&root)?;
    if !program.is_file() {
        // Dumps of the tests are small: it takes longer to be optimized than it ever runs.
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", "--debug", "--version", SLURP, "--root"]).arg(&root);
        install.arg("hprof-slurp").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        if !install.output().is_ok_and(|done| done.status.success()) {
            return Ok(None);
        }
    }
    let out = dump.with_extension("json");
    let mut slurp = Command::new(program);
    command::quiet(slurp.arg(dump).args(["--top", "1000000", "--json", "-o"]).arg(&out))?;
    let json: Value = serde_json::from_slice(&std::fs::read(&out)?)?;
    let lines = json["heap"]["top_allocated_classes"].as_array().context("no classes")?;
    let of = |line: &Value| Some((line["class_name"].as_str()?.to_owned(), line["instance_count"].as_u64()?));
    Ok(Some(lines.iter().filter_map(of).collect()))
}

const SLURP: &str = "0.10.0";
