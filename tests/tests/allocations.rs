//! Tests that count allocations (`et-test.jar`): the counts of known code, limits in JUnit 5, and JVMs that cannot count.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::example::Ran;
use et_tests::lab::{self, Lab};
use xtask::jdks::Jdk;
use xtask::layout::TEST_JAR;
use xtask::workloads::SHARE_JAVA;

/// A traced JVM whose trace goes nowhere.
const ONLY_COUNTS: [&str; 2] = ["-Det.traceFile=/dev/null", "-Det.discard=on"];

/// What the launcher of JUnit 5 needs, as Debian has it.
const JUNIT: [&str; 8] = [
    "junit-jupiter-api",
    "junit-jupiter-engine",
    "junit-platform-commons",
    "junit-platform-console",
    "junit-platform-engine",
    "junit-platform-launcher",
    "junit-platform-reporting",
    "opentest4j",
];
/// These as well, in some versions of Debian only.
const JUNIT_NEEDS: [&str; 4] = ["apiguardian-api", "picocli", "univocity-parsers", "opentest4j-reporting-events"];

fn main() -> ExitCode {
    let mut trials = lab::on_each_jdk("counted", counted);
    let none = |_: &Lab, _: &Jdk| None;
    trials.push(lab::on_jdk_unless(17, "cannot_count", none, cannot_count));
    let no_junit = |_: &Lab, _: &Jdk| junit_obstacle();
    trials.extend(lab::on_some_jdks_unless("limits", no_junit, limits));
    lab::run(trials).exit_code()
}

fn in_debian(name: &str) -> PathBuf {
    Path::new(SHARE_JAVA).join(format!("{name}.jar"))
}

fn junit_obstacle() -> Option<String> {
    let missing = JUNIT.iter().any(|name| !in_debian(name).is_file());
    missing.then(|| "please install junit5 (Debian's name)".to_owned())
}

fn junit() -> Vec<PathBuf> {
    JUNIT.iter().chain(&JUNIT_NEEDS).map(|name| in_debian(name)).filter(|jar| jar.is_file()).collect()
}

/// Compiles a program of `tests/java/allocations`; the class path to run it with.
fn compiled(lab: &Lab, folder: &Path, program: &str, more: Vec<PathBuf>) -> Result<String> {
    let classes = folder.join("classes");
    let mut path = vec![lab.tools.lib().join(TEST_JAR), classes.clone()];
    path.extend(more);
    let path = std::env::join_paths(path)?.into_string().ok().context("a path that is no text")?;
    let mut compile = lab.compiler.compile()?;
    compile.args(["--release", "11", "-cp", &path, "-d"]).arg(&classes);
    compile.arg(lab.layout.repo.join(format!("tests/java/allocations/{program}.java")));
    xtask::command::quiet(&mut compile)?;
    Ok(path)
}

/// On a JDK without other hooks, and on one with all, where a trace may be written as well.
fn counted(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "allocations_counted")?;
    let path = compiled(lab, &folder, "Counted", Vec::new())?;
    let trace = format!("-Det.traceFile={}", folder.join("counted.ettrace").display());
    for (hooks, options) in [(&["--events", "alloc"][..], &ONLY_COUNTS[..]), (&[], &[trace.as_str()])] {
        let instrumented = lab.instrumented_with(jdk, hooks)?;
        let mut java = Command::new(instrumented.java());
        java.arg(format!("@{}", instrumented.home.join("et.args").display())).args(options);
        let ran = Ran::well(java.args(["-cp", &path, "Counted"]))?;
        ensure!(ran.text == "as expected\n", "{hooks:?}: {}", ran.text);
    }
    fs::remove_dir_all(&folder).map_err(Into::into)
}

fn limits(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "allocations_limits")?;
    let path = compiled(lab, &folder, "LimitsTest", junit())?;
    let run = |mut java: Command| -> Result<String> {
        java.args(["-cp", &path, "org.junit.platform.console.ConsoleLauncher", "--disable-banner"]);
        java.args(["--disable-ansi-colors", "--include-classname", ".*", "--scan-classpath"])
            .arg(folder.join("classes"));
        Ok(Ran::of(&mut java)?.text)
    };
    let instrumented = lab.instrumented_with(jdk, &["--events", "alloc"])?;
    let mut java = Command::new(instrumented.java());
    java.arg(format!("@{}", instrumented.home.join("et.args").display())).args(ONLY_COUNTS);
    let text = run(java)?;
    let says = |what: &str| {
        ensure!(text.contains(what), "not said: {what}\n{text}");
        Ok(())
    };
    says("[        11 tests found           ]")?;
    says("[         7 tests successful      ]")?;
    says("[         4 tests failed          ]")?;
    says("at most 0 objects allowed, but 1 object (16 bytes) was allocated in one run after 1 run to warm up")?;
    says("1  LimitsTest$Point (16 bytes)")?;
    says("at LimitsTest.failsWithOne(LimitsTest.java:")?;
    says("at most 400 bytes allowed, but 1 object (416 bytes) was allocated")?;
    says("@MaxAllocations of void LimitsTest.failsWithoutLimit() has no limit: say objects = …, bytes = … or both")?;
    says("failsAsItsClassSays()")?;

    // Tests with limits are skipped where nothing counts; a mistake is one there, too.
    let text = run(Command::new(jdk.java()))?;
    for what in [
        "[        10 tests aborted         ]",
        "[         1 tests failed          ]",
        "allocations are not counted: this JDK is not instrumented",
    ] {
        ensure!(text.contains(what), "not said: {what}\n{text}");
    }
    fs::remove_dir_all(&folder).map_err(Into::into)
}

/// Each JVM that cannot count says why.
fn cannot_count(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "allocations_cannot_count")?;
    let path = compiled(lab, &folder, "Counted", Vec::new())?;
    let [all, other] = [&[][..], &["--events", "update"][..]].map(|hooks| lab.instrumented_with(jdk, hooks));
    let (all, other) = (all?, other?);
    let with = |home: &Path| vec![format!("@{}", home.join("et.args").display())];
    let cases = [
        (jdk.java(), Vec::new(), "this JDK is not instrumented"),
        (all.java(), Vec::new(), "the JVM was started without the options in et.args of its JDK"),
        (other.java(), with(&other.home), "the JDK was instrumented without hooks for allocations (--events alloc)"),
    ];
    for (java, options, why) in cases {
        let mut java = Command::new(java);
        if !options.is_empty() {
            java.args(options).args(ONLY_COUNTS);
        }
        let ran = Ran::of(java.args(["-cp", &path, "Counted"]))?;
        ensure!(!ran.succeeded, "{}", ran.text);
        ran.says(&format!("IllegalStateException: allocations are not counted: {why}"))?;
    }
    fs::remove_dir_all(&folder).map_err(Into::into)
}
