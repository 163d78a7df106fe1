//! The Gradle plugin on the example project: built, run and tested with traces; again when everything is up to date;
//! and after a change of one class.
//!
//! Starting Gradle takes seconds, so a single test does everything in three starts. Another has `et-instrument run` trace a build as it is, with a daemon.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use et_tests::example::{self, Ran};
use et_tests::lab::{self, Lab};
use et_tests::mockito;
use xtask::instrumented::{self, InstrumentedJdk};
use xtask::jdks::Jdk;
use xtask::plugins::gradle;
use xtask::{command, programs};

/// The newest that Gradle 4.4 runs tests on.
const FEATURE: u32 = 17;

/// Variables that change what JVMs do.
const VARIABLES: [&str; 5] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS", "ET_OPTIONS"];

/// One task sees other settings than the one before, and a program that fails.
const MISTAKES: &str = "
allprojects {
    afterEvaluate {
        etRun.jvmArgs '-XX:NoSuchFlag'
        etInstrumentTest.mustRunAfter etRun
        etInstrumentTest.doFirst { elephantTracks.events = 'bogus' }
    }
}
";

fn main() -> ExitCode {
    let no_gradle = |lab: &Lab, _: &Jdk| gradle::obstacle(&lab.layout, &lab.compiler);
    let trials = vec![
        lab::on_jdk_unless(FEATURE, "gradle_example", no_gradle, gradle_example),
        lab::on_jdk_unless(FEATURE, "gradle_daemon", no_gradle, gradle_daemon),
    ];
    lab::run(trials).exit_code()
}

/// A build without our plugin.
const PLAIN: &str = "
apply plugin: 'java'
dependencies {
    testCompile files('/usr/share/java/junit4.jar')
}
";

/// A Gradle with a daemon of its own, which ends with the test.
struct Daemon {
    home: PathBuf,
    folder: PathBuf,
    java: PathBuf,
}

impl Daemon {
    /// Gradle's variables, and no others that matter.
    fn surrounds<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for name in VARIABLES {
            command.env_remove(name);
        }
        let options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";
        command.env("GRADLE_OPTS", options).env("JAVA_HOME", &self.java).env("GRADLE_USER_HOME", &self.home);
        command.current_dir(&self.folder)
    }

    fn stop(&self) -> Result<()> {
        command::quiet(self.surrounds(&mut Command::new("gradle")).args(["--offline", "--stop"])).map(drop)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// `run` traces Gradle, its daemon and the JVM of the tests, each whole and into a file of its own.
fn gradle_daemon(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let build = example::copy(lab, jdk, "gradle", "gradle_daemon")?;
    fs::write(build.join("build.gradle"), PLAIN)?;
    for file in ["settings.gradle", "gradle.properties", "src/test/java/words/AllocationsTest.java"] {
        fs::remove_file(build.join(file))?;
    }
    let folder = build.join("traces");
    fs::create_dir(&folder)?;
    let daemon = Daemon { home: build.join("gradle-home"), folder: build.clone(), java: jdk.home.clone() };
    let mut run = Command::new(lab.tools.et_instrument());
    run.args(["run", "--events", "alloc", "--cache-dir"]).arg(instrumented::run_cache(&lab.layout, &lab.tools)?);
    run.arg("--trace").arg(format!("{}/", folder.display()));
    run.args(["--", "gradle", "--offline", "--daemon", "--console=plain", "test"]);
    let ran = Ran::well(daemon.surrounds(&mut run))?;
    ran.says("BUILD SUCCESSFUL")?;
    // Gradle itself and the JVM of the tests have ended; the daemon has not.
    ran.says("traces of JVMs that the program started: ")?;
    daemon.stop()?;

    let mains = ["org.gradle.launcher.GradleMain", "org.gradle.launcher.daemon.bootstrap.GradleDaemon", WORKER];
    let started = Instant::now();
    // While a trace is written, its buffers are beside it.
    let traces = loop {
        let (traces, others): (Vec<PathBuf>, Vec<PathBuf>) =
            example::traces(&folder)?.into_iter().partition(|path| is_trace(path));
        if others.is_empty() || started.elapsed() > Duration::from_secs(60) {
            break traces;
        }
        sleep(Duration::from_millis(200));
    };
    let mut found = BTreeMap::new();
    for trace in &traces {
        programs::validate_without_deaths(&lab.tools, trace)?;
        let summary = instrumented::summary(&lab.tools, trace, 100_000)?;
        ensure!(summary["complete"] == true && summary["lost"] == 0, "{}", summary["trace"]);
        let command = summary["program"]["command"].as_str().unwrap_or_default();
        if command.is_empty() {
            // The script that starts Gradle has asked for the version of Java.
            continue;
        }
        let main = mains.iter().find(|main| command.split(' ').any(|word| word == **main));
        found.insert(*main.with_context(|| format!("what is {command}?"))?, (trace, summary));
    }
    ensure!(found.len() == mains.len(), "{:?} of {traces:?}", found.keys());
    let has = |main: &str, class: &str| {
        let classes = found[main].1["classes"].as_array();
        classes.is_some_and(|classes| classes.iter().any(|known| known["type"] == class))
    };
    ensure!(has(WORKER, "words.Word") && has(WORKER, "words.IndexTest"), "the tests are not in the trace of their JVM");
    ensure!(
        has(mains[1], "org.gradle.api.internal.file.DefaultProjectLayout"),
        "the build is not in the trace of the daemon"
    );
    ensure!(!has(mains[0], "words.Word") && !has(mains[1], "words.Word"), "the tests are in another trace");

    // What joins them.
    let pages = build.join("pages");
    command::quiet(Command::new(lab.tools.et_trace()).arg("report").args(&traces).arg("-o").arg(&pages))?;
    let index = fs::read_to_string(pages.join("index.html"))?;
    for main in ["GradleMain", "GradleDaemon", "GradleWorkerMain"] {
        ensure!(index.contains(main), "{main} is not on the page that joins them");
    }
    ensure!(fs::read_dir(&pages)?.count() == traces.len() + 1, "not a page for each process");
    let tables = build.join("all.tables");
    let mut write = Command::new(lab.tools.et_trace());
    command::quiet(write.args(["tables", "--only", "objects,trace", "-o"]).arg(&tables).args(&traces))?;
    ensure!(fs::read_dir(tables.join("_runs"))?.count() == traces.len(), "not the rows of all processes");
    drop(daemon);
    fs::remove_dir_all(&build).map_err(Into::into)
}

/// What runs the tests of a build.
const WORKER: &str = "worker.org.gradle.process.internal.worker.GradleWorkerMain";

fn is_trace(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ettrace")
}

fn gradle_example(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let build = Build { lab, jdk: lab.instrumented(jdk)?, folder: example::copy(lab, jdk, "gradle", "gradle")? };
    let lacks_mocks = mockito::obstacle();
    let has_mocks = lacks_mocks.is_none();
    match lacks_mocks {
        None => build.with_mocks()?,
        Some(why) => lab.not_tested("gradle_example: mocks", &why),
    }

    let first = Ran::well(build.gradle().args(["etRun", "etTest"]))?;
    let of_tests = if has_mocks { " jars and 4 class files" } else { " jars and 2 class files" };
    for line in ["rewrote 3 class files", of_tests, "[be 2, not 1, or 1, to 2]"] {
        first.says(line)?;
    }
    example::made(lab, &build.at("run.ettrace"), &["words.Word", "words.Index"])?;
    let traces = example::traces(&build.at("test-traces"))?;
    ensure!(traces.len() == 1, "{traces:?}");
    let mocks = has_mocks.then_some("words.MocksTest$Real");
    example::made(lab, &traces[0], &["words.Word", "words.IndexTest"].into_iter().chain(mocks).collect::<Vec<_>>())?;
    first.says(&format!("next: et-trace summary {}", traces[0].display()))?;

    let second = Ran::well(build.gradle().args(["etRun", "etTest"]))?;
    for task in [":etInstrument", ":etInstrumentTest", ":etTest"] {
        second.says(&format!("{task} UP-TO-DATE"))?;
    }
    second.says("[be 2, not 1, or 1, to 2]")?;
    second.says_nothing_of("rewrote")?;
    let kept = example::traces(&build.at("test-traces"))?;
    ensure!(kept == traces, "the tests were not run, and their trace has gone");

    // Tests that count, and leave no traces: well, too much allocated, and on a JDK where nothing counts.
    let counts = "-PelephantTracks.counts=true";
    Ran::well(build.gradle().args([counts, "etTest"]))?;
    ensure!(example::traces(&build.at("test-traces"))?.is_empty(), "there are traces");
    example::allocate_more(&build.folder)?;
    let failed = Ran::of(build.gradle().args([counts, "--continue", "test", "etTest"]))?;
    ensure!(!failed.succeeded, "{}", failed.text);
    failed.says("Execution failed for task ':etTest'")?;
    failed.says_nothing_of("Execution failed for task ':test'")?;
    let results = |task: &str| build.folder.join(format!("build/test-results/{task}"));
    example::limits_in(&results("etTest"), &results("test"))?;

    example::change_word(&build.folder)?;
    let mistakes = build.folder.join("mistakes.gradle");
    fs::write(&mistakes, MISTAKES)?;
    let init = mistakes.display().to_string();
    let third = Ran::of(build.gradle().args(["-I", &init, "--continue", "etInstrument", "etRun", "etTest"]))?;
    ensure!(!third.succeeded, "{}", third.text);
    third.says("rewrote 1 class file")?;
    example::only_word_was_rewritten(&build.at("main/report.json"))?;
    third.says("Execution failed for task ':etRun'.\n> words.Main ended with exit code 1")?;
    third.says("Execution failed for task ':etInstrumentTest'.\n> error: invalid value 'bogus' for '--events <LIST>'")
}

/// A copy of the example, and how Gradle is to build it.
struct Build<'a> {
    lab: &'a Lab,
    jdk: InstrumentedJdk,
    folder: PathBuf,
}

impl Build<'_> {
    /// Path of an output of the plugin.
    fn at(&self, path: &str) -> PathBuf {
        self.folder.join("build/elephant-tracks").join(path)
    }

    fn with_mocks(&self) -> Result<()> {
        mockito::add_test(&self.folder)?;
        let script = self.folder.join("build.gradle");
        let jars = mockito::jars().map(|jar| format!("'{}'", jar.display())).join(", ");
        let text = fs::read_to_string(&script)?;
        // The old Byte Buddy cannot change classes that have nest mates.
        let more = format!("sourceCompatibility = '1.8'\ndependencies {{\n    testImplementation files({jars})\n}}\n");
        Ok(fs::write(&script, format!("{text}\n{more}"))?)
    }

    fn gradle(&self) -> Command {
        let mut gradle = Command::new("gradle");
        for name in VARIABLES {
            gradle.env_remove(name);
        }
        // Each start is over before much of Gradle is worth compiling well.
        gradle.env("GRADLE_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
        gradle.env("JAVA_HOME", &self.lab.compiler.home);
        // Gradle's compiled build scripts are the same each time.
        gradle.env("GRADLE_USER_HOME", self.lab.layout.target.join("e2e/gradle-home"));
        gradle.current_dir(&self.folder).args(["--offline", "--no-daemon", "--console=plain"]);
        for (name, value) in [
            ("etHome", self.lab.tools.root.as_path()),
            // With a JDK that is instrumented already, none has to be made; `run` has tests of that.
            ("elephantTracks.jdkHome", &self.jdk.home),
            ("elephantTracks.cacheDir", &self.folder.join("cache")),
        ] {
            gradle.arg(format!("-P{name}={}", value.display()));
        }
        gradle
    }
}
