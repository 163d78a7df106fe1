//! The tools under test, the JDKs to run on, and the cases that come of both.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Conclusion, Failed, Trial};
use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, Tools};
use xtask::skips::Skips;
use xtask::test::JDKS;

/// What all tests need.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Paths of files.
    pub layout: Layout,
    /// The tools under test.
    pub tools: Tools,
    /// The JDK that compiles test programs.
    pub compiler: Jdk,
}

impl Lab {
    /// Finds everything, or says what to do first. Then changes the current directory to one outside of the sources,
    /// since child processes and attaching tools leave files in it.
    pub fn open() -> Result<Self> {
        let layout = Layout::find()?;
        let tools = layout.tools();
        let built = tools.rewriter_files().into_iter().chain([tools.et_trace()]);
        for file in built {
            file.metadata().with_context(|| format!("{} is missing: run cargo xtask build first", file.display()))?;
        }
        let compiler = jdks::compiler(&layout)?;
        let here = layout.target.join("e2e").join("here");
        fs::create_dir_all(&here).with_context(|| format!("cannot make {}", here.display()))?;
        env::set_current_dir(&here).with_context(|| format!("cannot work in {}", here.display()))?;
        Ok(Self { layout, tools, compiler })
    }

    /// A fresh folder for one test.
    pub fn folder(&self, jdk: &Jdk, test: &str) -> Result<PathBuf> {
        let folder = self.layout.target.join("e2e").join(format!("jdk-{}", jdk.feature)).join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// A test, or a part of it, is not done; `cargo xtask test` says so at its end.
    pub fn not_tested(&self, test: &str, reason: &str) {
        if let Err(error) = Skips::of(&self.layout).note(test, reason) {
            eprintln!("{test}: {reason} ({error:#})");
        }
    }

    /// Whether there is what a test needs: the rights of root, or a program that `cargo xtask test` does not build, or why not: one from an earlier build may not be of these sources.
    pub fn has(&self, program: &str) -> Result<(), String> {
        if program == "root" {
            let is_root = fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0);
            return if is_root { Ok(()) } else { Err("only root can become another user".into()) };
        }
        let Some((_, variable)) = APART.into_iter().find(|(name, _)| *name == program) else { return Ok(()) };
        if env::var_os(variable).is_some() {
            return Ok(());
        }
        Err(format!("{program} is not built for the tests: cargo xtask collectors does that"))
    }

    /// Why this build of a JDK does not start with options, if it does not: not all have all collectors. Those that it
    /// starts with are kept in a file: each test is a process of its own.
    pub fn refusal(&self, jdk: &Jdk, options: &[&str]) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        (&jdk.home, &jdk.version, options).hash(&mut hasher);
        let starts = self.layout.target.join("e2e/starts").join(format!("{}-{:016x}", jdk.feature, hasher.finish()));
        if starts.exists() {
            return None;
        }
        // Whatever keeps it from starting at all, the test itself says.
        let output = Command::new(jdk.java()).args(options).arg("-version").output().ok()?;
        if !output.status.success() {
            return Some(format!("this build of Java {} has no {}", jdk.feature, options.join(" ")));
        }
        let _ = starts.parent().map(fs::create_dir_all);
        let _ = fs::write(&starts, options.join(" "));
        None
    }

    /// The instrumented copy of a JDK.
    pub fn instrumented(&self, jdk: &Jdk) -> Result<InstrumentedJdk> {
        self.instrumented_with(jdk, &[])
    }

    /// As [`Lab::instrumented`], with options of et-instrument.
    pub fn instrumented_with(&self, jdk: &Jdk, options: &[&str]) -> Result<InstrumentedJdk> {
        InstrumentedJdk::of(&self.tools, jdk, options)
    }
}

/// Programs that `cargo xtask test` does not build, and the variable that enables their tests.
const APART: [(&str, &str); 1] = [("et-collect", "ET_COLLECT")];

/// The newest JDK. It may be one that only runs programs.
const NEWEST: u32 = JDKS[JDKS.len() - 1];

/// JDKs of tests for which all would take too long, or that hardly depend on the JDK: an older one, which has all tools, and the newest. They make
/// lambdas in different ways.
pub const SOME_JDKS: [u32; 2] = [17, NEWEST];

/// A test that needs the tools and one JDK.
pub type Case = fn(&Lab, &Jdk) -> Result<()>;

/// Test cases for a JDK each: the newest, and one of the others that the name of the case chooses; all of them if the variable `ET_JDKS` is
/// `all`, as `cargo xtask test --all-jdks` sets it. Those for the others, and for a JDK that is missing, are listed as ignored.
pub fn on_each_jdk(name: &str, case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static) -> Vec<Trial> {
    on_each_jdk_unless(name, |_, _| None, case)
}

/// As [`on_each_jdk`]; a case with an obstacle is listed as ignored, too.
pub fn on_each_jdk_unless(
    name: &str,
    obstacle: impl Fn(&Lab, &Jdk) -> Option<String>,
    case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static,
) -> Vec<Trial> {
    let older: Vec<u32> = JDKS.into_iter().filter(|feature| *feature != NEWEST).collect();
    let obstacle = |lab: &Lab, jdk: &Jdk| match jdk.feature == NEWEST {
        true => obstacle(lab, jdk),
        false => unless_first(lab, jdk, &by_name(&older, name), &obstacle),
    };
    on_jdks_unless(name, obstacle, case)
}

/// As [`on_each_jdk`], for a case that takes long, or of which another JDK tells little: on one of [`SOME_JDKS`], which the name of the case chooses.
pub fn on_some_jdks(name: &str, case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static) -> Vec<Trial> {
    on_some_jdks_unless(name, |_, _| None, case)
}

/// As [`on_some_jdks`]; a case with an obstacle is listed as ignored, too.
pub fn on_some_jdks_unless(
    name: &str,
    obstacle: impl Fn(&Lab, &Jdk) -> Option<String>,
    case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static,
) -> Vec<Trial> {
    on_jdks_unless(name, |lab, jdk| unless_first(lab, jdk, &by_name(&SOME_JDKS, name), &obstacle), case)
}

/// As [`on_some_jdks`], for a case that hardly depends on the JDK: on the first of [`SOME_JDKS`] on which there is no obstacle.
pub fn on_one_jdk(name: &str, case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static) -> Vec<Trial> {
    on_one_jdk_unless(name, |_, _| None, case)
}

/// As [`on_one_jdk`]; a case with an obstacle on all of them is listed as ignored, too.
pub fn on_one_jdk_unless(
    name: &str,
    obstacle: impl Fn(&Lab, &Jdk) -> Option<String>,
    case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static,
) -> Vec<Trial> {
    on_jdks_unless(name, |lab, jdk| unless_first(lab, jdk, &SOME_JDKS, &obstacle), case)
}

fn on_jdks_unless(
    name: &str,
    obstacle: impl Fn(&Lab, &Jdk) -> Option<String>,
    case: impl Fn(&Lab, &Jdk) -> Result<()> + Clone + Send + 'static,
) -> Vec<Trial> {
    JDKS.into_iter().map(|feature| on_jdk_unless(feature, name, &obstacle, case.clone())).collect()
}

/// The same JDKs, beginning with one that the name chooses: always the same, on all machines.
fn by_name(features: &[u32], name: &str) -> Vec<u32> {
    // FNV-1a; its upper bits depend on all letters.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let first = (hash >> 32) as usize % features.len();
    [&features[first..], &features[..first]].concat()
}

/// Why a case does not run on a JDK that runs on the first of some JDKs on which there is no obstacle.
fn unless_first(
    lab: &Lab,
    jdk: &Jdk,
    features: &[u32],
    obstacle: impl Fn(&Lab, &Jdk) -> Option<String>,
) -> Option<String> {
    if has_all_jdks() {
        return obstacle(lab, jdk);
    }
    let mut installed = features.iter().filter_map(|feature| jdks::of_feature(&lab.layout, *feature));
    match installed.find(|jdk| obstacle(lab, jdk).is_none()) {
        Some(able) if able.feature == jdk.feature => None,
        Some(able) => Some(elsewhere(able.feature)),
        None => obstacle(lab, jdk).or_else(|| Some(elsewhere(features[0]))),
    }
}

/// Whether cases run on all JDKs that otherwise run on one or two.
pub fn has_all_jdks() -> bool {
    env::var_os("ET_JDKS").is_some_and(|which| which == "all")
}

/// Why a case does not run that takes so long that it only runs with `--all-jdks`.
pub fn unless_all_jdks() -> Option<String> {
    (!has_all_jdks()).then(|| "it runs with --all-jdks".to_owned())
}

/// Why a case does not run on a JDK.
fn elsewhere(feature: u32) -> String {
    format!("it runs on {feature}; on all with --all-jdks")
}

/// As [`on_each_jdk_unless`], for one JDK.
pub fn on_jdk_unless(
    feature: u32,
    name: &str,
    obstacle: impl Fn(&Lab, &Jdk) -> Option<String>,
    case: impl Fn(&Lab, &Jdk) -> Result<()> + Send + 'static,
) -> Trial {
    // Without the tools every case fails, and says why.
    static LAB: OnceLock<Result<Lab, String>> = OnceLock::new();
    let name = format!("jdk{feature}::{name}");
    if !may_run(&name) {
        return Trial::test(name, || Err(Failed::from("another test was asked for")));
    }
    let lab = LAB.get_or_init(|| Lab::open().map_err(|error| format!("{error:#}"))).clone();
    let found = lab.as_ref().ok().and_then(|lab| jdks::of_feature(&lab.layout, feature));
    let skipped = lab.as_ref().ok().and_then(|lab| match &found {
        Some(jdk) => obstacle(lab, jdk),
        None => Some(jdks::missing(feature)),
    });
    let is_skipped = skipped.is_some();
    if let (Some(reason), Ok(lab)) = (&skipped, &lab) {
        lab.not_tested(&name, reason);
    }
    let run = move || match (lab, found, skipped) {
        (Err(error), ..) => Err(Failed::from(error)),
        (_, _, Some(reason)) => Err(Failed::from(reason)),
        (Ok(lab), Some(jdk), None) => outcome(case(&lab, &jdk)),
        (Ok(_), None, None) => Err(Failed::from("no JDK")),
    };
    Trial::test(name, run).with_ignored_flag(is_skipped)
}

/// Whether the command line leaves a test to be run. A runner starts a process for each test and names it: if all
/// processes looked for the obstacles of all tests, which start JVMs, they would spend more on that than on many a test.
fn may_run(name: &str) -> bool {
    static ONLY: OnceLock<Option<String>> = OnceLock::new();
    let only = ONLY.get_or_init(|| {
        let arguments = Arguments::from_args();
        arguments.filter.filter(|_| arguments.exact)
    });
    only.as_ref().is_none_or(|only| only == name)
}

/// An error in full, as a failed test shows it.
pub fn outcome(result: Result<()>) -> Result<(), Failed> {
    result.map_err(|error| Failed::from(format!("{error:#}")))
}

/// Runs the cases as `cargo test` and `cargo nextest` want it.
pub fn run(trials: Vec<Trial>) -> Conclusion {
    libtest_mimic::run(&Arguments::from_args(), trials)
}

/// As [`run`], one after the other.
pub fn run_in_turn(trials: Vec<Trial>) -> Conclusion {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials)
}

/// Whether the user asked to keep what passing tests leave behind.
pub fn keep_traces() -> bool {
    env::var_os("ET_KEEP").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_jdks() {
        let first = |name: &str| by_name(&[11, 17, 21], name)[0];
        let names = ["Arrays", "Calls", "Fields", "Loops", "Threads", "Statics", "handovers", "log"];
        assert_eq!(names.map(first), [17, 17, 21, 21, 11, 17, 21, 17]);
        assert_eq!(by_name(&[11, 17, 21], "Loops"), [21, 11, 17]);
    }
}
