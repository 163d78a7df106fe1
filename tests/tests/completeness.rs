//! The trace compared with the VM's own count of allocated objects (docs/evidence/completeness.md).

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::Run;
use xtask::command;
use xtask::completeness::{self, Counted};
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 2] = [
        ("the_counter_misses_nothing", the_counter_misses_nothing),
        ("every_object_is_recorded", every_object_is_recorded),
    ];
    let trials = cases.into_iter().flat_map(|(name, case)| lab::on_some_jdks(name, case));
    lab::run(trials.collect()).exit_code()
}

/// Allocations that `tests/java/facts/Made.java` certainly makes.
fn made() -> BTreeMap<&'static str, u64> {
    const TIMES: u64 = 20_000;
    BTreeMap::from([
        ("Made$ByNew", TIMES),
        ("Made$Element[]", 2 * TIMES),
        ("Made$Element[][]", TIMES),
        ("Made$Element[][][]", TIMES),
        ("Made$ByReflection", TIMES),
        ("Made$ByReflection[]", TIMES),
        ("Made$ByClone", TIMES + 1),
        ("Made$ByClone[]", 3 * TIMES + 1),
        ("Made$Failure", TIMES / 10),
    ])
}

/// The counter itself must be accurate.
fn the_counter_misses_nothing(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "counter")?;
    let classes = folder.join("classes");
    let source = lab.layout.repo.join("tests/java/facts/Made.java");
    command::quiet(lab.compiler.compile()?.args(["--release", "11", "-d"]).arg(&classes).arg(source))?;
    let counts = folder.join("counts.tsv");
    let counter = completeness::counter(&lab.layout, &lab.compiler)?;
    let mut java = Command::new(jdk.java());
    // Compiled code may eliminate allocations without a visible effect, which are then made by neither.
    java.arg("-Xint").arg(completeness::counter_option(&counter, &counts, false));
    command::quiet(java.arg("-cp").arg(&classes).arg("Made"))?;
    let counted = Counted::parse(&fs::read_to_string(&counts)?)?;
    for (class, expected) in made() {
        let found = counted.objects.get(class).copied().unwrap_or_default();
        ensure!(found == expected, "{class}: {found} counted, {expected} made");
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn every_object_is_recorded(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let counter = completeness::counter(&lab.layout, &lab.compiler)?;
    let counts = lab.layout.target.join("e2e").join(format!("made-{}.tsv", jdk.feature));
    let option = completeness::counter_option(&counter, &counts, false);
    let run = Run::with_options(lab, jdk, "every_object", "facts/Made", &[option])?;
    let comparison = completeness::compare(&lab.tools, &run.trace, &counts)?;
    for (class, expected) in made() {
        let found = comparison.classes.iter().find(|found| found.name == class).context(class)?;
        ensure!(found.made == expected, "{class}: {} made instead of {expected}", found.made);
        ensure!(found.kinds.at_birth == expected, "{class}: {} of {expected} recorded", found.kinds.at_birth);
    }
    // Of these the VM makes one for each class, to lock while it initialises it, and no code sees any.
    let locks = comparison.classes.iter().find(|class| class.name == "int[]").context("no int[]")?;
    ensure!(locks.missing() <= 20, "{} of {} int[] are missing", locks.missing(), locks.made);
    // The JVM's start, with what it makes for each class it loads, weighs more here than in a longer run.
    let (made, recorded) = (comparison.made(), comparison.recorded());
    let missing = comparison.classes.iter().take(8).map(|class| format!("{} of {}", class.missing(), class.name));
    let missing: Vec<String> = missing.collect();
    ensure!(recorded * 100 >= made * 99, "{recorded} of {made} objects recorded; missing: {}", missing.join(", "));
    fs::remove_file(&counts)?;
    run.clean()
}
