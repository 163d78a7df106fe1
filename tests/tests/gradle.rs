//! The Gradle plugin on the example project: built, run and tested with traces; a second time, when all is up to date;
//! and after a change of one class.
//!
//! A start of Gradle takes seconds, so one test does it all in three.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use serde_json::Value;
use xtask::gradle_plugin;
use xtask::instrumented::{self, InstrumentedJdk};
use xtask::jdks::Jdk;

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
    let no_gradle = |lab: &Lab, _: &Jdk| gradle_plugin::obstacle(&lab.layout, &lab.compiler);
    lab::run(vec![lab::on_jdk_unless(FEATURE, "gradle_example", no_gradle, gradle_example)]).exit_code()
}

fn gradle_example(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let build = Build::new(lab, jdk)?;

    let first = build.gradle(&["etRun", "etTest"])?;
    ensure!(first.succeeded, "{}", first.text);
    for line in ["rewrote 3 class files", " jars and 1 class file", "[be 2, not 1, or 1, to 2]"] {
        first.says(line)?;
    }
    build.made(&build.at("run.ettrace"), &["words.Word", "words.Index"])?;
    let traces = build.test_traces()?;
    ensure!(traces.len() == 1, "{traces:?}");
    build.made(&traces[0], &["words.Word", "words.IndexTest"])?;
    first.says(&format!("next: et-trace summary {}", traces[0].display()))?;

    let second = build.gradle(&["etRun", "etTest"])?;
    ensure!(second.succeeded, "{}", second.text);
    for task in [":etInstrument", ":etInstrumentTest", ":etTest"] {
        second.says(&format!("{task} UP-TO-DATE"))?;
    }
    second.says("[be 2, not 1, or 1, to 2]")?;
    ensure!(!second.text.contains("rewrote"), "{}", second.text);
    ensure!(build.test_traces()? == traces, "the tests were not run, and their trace has gone");

    let word = build.folder.join("src/main/java/words/Word.java");
    let text = fs::read_to_string(&word)?;
    fs::write(&word, text.replace("text + \" \" + count", "text + \"=\" + count"))?;
    let mistakes = build.folder.join("mistakes.gradle");
    fs::write(&mistakes, MISTAKES)?;
    let init = mistakes.display().to_string();
    let third = build.gradle(&["-I", &init, "--continue", "etInstrument", "etRun", "etTest"])?;
    ensure!(!third.succeeded, "{}", third.text);
    third.says("rewrote 1 class file")?;
    let report: Value = serde_json::from_slice(&fs::read(build.at("main/report.json"))?)?;
    let rewritten = report["rewritten"].as_array().context("the report lists what was rewritten")?;
    let paths: Vec<&str> = rewritten.iter().filter_map(Value::as_str).collect();
    ensure!(paths.len() == 1 && paths[0].ends_with("/words/Word.class"), "{paths:?}");
    third.says("Execution failed for task ':etRun'.\n> words.Main ended with exit code 1")?;
    third.says("Execution failed for task ':etInstrumentTest'.\n> error: invalid value 'bogus' for '--events <LIST>'")
}

/// A copy of the example, and how Gradle is to build it.
struct Build<'a> {
    lab: &'a Lab,
    jdk: InstrumentedJdk,
    folder: PathBuf,
}

struct Ran {
    succeeded: bool,
    text: String,
}

impl<'a> Build<'a> {
    fn new(lab: &'a Lab, jdk: &Jdk) -> Result<Self> {
        let folder = fs::canonicalize(lab.folder(jdk, "gradle")?)?;
        copy(&lab.layout.repo.join("examples/gradle"), &folder)?;
        Ok(Self { lab, jdk: lab.instrumented(jdk)?, folder })
    }

    /// What the plugin has left.
    fn at(&self, path: &str) -> PathBuf {
        self.folder.join("build/elephant-tracks").join(path)
    }

    fn gradle(&self, arguments: &[&str]) -> Result<Ran> {
        let mut gradle = Command::new("gradle");
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS", "ET_OPTIONS"] {
            gradle.env_remove(name);
        }
        // Each start is over before much of Gradle is worth compiling well.
        gradle.env("GRADLE_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
        gradle.env("JAVA_HOME", &self.lab.compiler.home);
        // What Gradle makes of build scripts is the same each time.
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
        Ran::of(gradle.args(arguments).output().context("cannot start gradle")?)
    }

    /// Objects of these classes were made, and no class of the program was rewritten only when it was defined.
    fn made(&self, trace: &Path, classes: &[&str]) -> Result<()> {
        let summary = instrumented::summary(&self.lab.tools, trace, 5000)?;
        ensure!(summary["complete"] == true, "{}", summary["trace"]);
        ensure!(summary["overlaps"].as_array().is_none_or(Vec::is_empty), "{}", summary["overlaps"]);
        let known = summary["classes"].as_array().context("the summary lists no classes")?;
        for class in classes {
            ensure!(known.iter().any(|known| known["type"] == *class), "no objects of {class}");
        }
        let before = &summary["dynamic"]["alreadyInstrumented"];
        ensure!(before.as_u64().is_some_and(|count| count >= 3), "{before} classes were rewritten before");
        Ok(())
    }

    fn test_traces(&self) -> Result<Vec<PathBuf>> {
        let items = fs::read_dir(self.at("test-traces")).context("no traces of tests")?;
        Ok(items.flatten().map(|item| item.path()).collect())
    }
}

impl Ran {
    fn of(output: Output) -> Result<Self> {
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok(Self { succeeded: output.status.success(), text })
    }

    fn says(&self, what: &str) -> Result<()> {
        ensure!(self.text.contains(what), "not said: {what}\n{}", self.text);
        Ok(())
    }
}

/// The files of a project, without what Gradle has made of them.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for item in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let (path, target) = {
            let item = item?;
            (item.path(), to.join(item.file_name()))
        };
        if path.is_file() {
            fs::copy(&path, &target)?;
        } else if !["build", ".gradle"].iter().any(|made| path.ends_with(made)) {
            fs::create_dir_all(&target)?;
            copy(&path, &target)?;
        }
    }
    Ok(())
}
