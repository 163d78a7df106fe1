//! The Gradle plugin on the example project: built, run and tested with traces; again when everything is up to date;
//! and after a change of one class.
//!
//! Starting Gradle takes seconds, so a single test does everything in three starts.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use et_tests::example::{self, Ran};
use et_tests::lab::{self, Lab};
use et_tests::mockito;
use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::Jdk;
use xtask::plugins::gradle;

/// The newest that Gradle 4.4 runs tests on.
const FEATURE: u32 = 17;

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
    lab::run(vec![lab::on_jdk_unless(FEATURE, "gradle_example", no_gradle, gradle_example)]).exit_code()
}

fn gradle_example(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let build = Build { lab, jdk: lab.instrumented(jdk)?, folder: example::copy(lab, jdk, "gradle")? };
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
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS", "ET_OPTIONS"] {
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
