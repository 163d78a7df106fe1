//! The Maven plugin on the example project: run and tested with traces, and packaged; again when everything is up to
//! date; and after a change of one class.
//!
//! Starting Maven takes seconds, so a single test does everything in three starts.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use et_tests::example::{self, Ran};
use et_tests::lab::{self, Lab};
use et_tests::mockito;
use xtask::command;
use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::Jdk;
use xtask::plugins::maven;

const FEATURE: u32 = 17;

/// The jar goal on its own: the phase `package` would run the tests twice.
const GOALS: [&str; 4] = ["et:run", "et:test", "jar:jar", "et:jar"];

fn main() -> ExitCode {
    let no_maven = |lab: &Lab, _: &Jdk| maven::obstacle(&lab.layout);
    lab::run(vec![lab::on_jdk_unless(FEATURE, "maven_example", no_maven, maven_example)]).exit_code()
}

fn maven_example(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let build = Build { lab, jdk: lab.instrumented(jdk)?, folder: example::copy(lab, jdk, "maven", "maven")? };
    let lacks_mocks = mockito::obstacle();
    let has_mocks = lacks_mocks.is_none();
    match lacks_mocks {
        None => build.with_mocks()?,
        Some(why) => lab.not_tested("maven_example: mocks", &why),
    }

    let first = Ran::well(build.maven().args(GOALS))?;
    let (of_tests, ran) = match has_mocks {
        true => (" jars and 4 class files", "Tests run: 4, Failures: 0, Errors: 0"),
        false => (" jars and 2 class files", "Tests run: 3, Failures: 0, Errors: 0"),
    };
    for line in ["[INFO] rewrote 3 class files", of_tests, "[be 2, not 1, or 1, to 2]", ran] {
        first.says(line)?;
    }
    example::made(lab, &build.at("run.ettrace"), &["words.Word", "words.Index"])?;
    let traces = example::traces(&build.at("test-traces"))?;
    ensure!(traces.len() == 1, "{traces:?}");
    let mocks = has_mocks.then_some("words.MocksTest$Real");
    let classes = ["words.Word", "words.IndexTest", "org.junit.runner.Description"].into_iter().chain(mocks);
    example::made(lab, &traces[0], &classes.collect::<Vec<_>>())?;
    first.says(&format!("[INFO] next: et-trace summary {}", traces[0].display()))?;
    build.jar_is_instrumented()?;

    let second = Ran::well(build.maven().args(GOALS))?;
    second.says("[be 2, not 1, or 1, to 2]")?;
    second.says("words-1-et.jar is up to date")?;
    second.says("[INFO] nothing to rewrite: all copies are up to date")?;
    second.says_nothing_of("rewrote")?;
    let again = example::traces(&build.at("test-traces"))?;
    ensure!(again.len() == 1 && again != traces, "the traces are those of this run: {again:?}");

    // Tests that count, and leave no traces: well, too much allocated, and on a JDK where nothing counts.
    let counts = "-DelephantTracks.counts=true";
    Ran::well(build.maven().args([counts, "et:test"]))?;
    ensure!(example::traces(&build.at("test-traces"))?.is_empty(), "there are traces");
    example::allocate_more(&build.folder)?;
    let failed = Ran::of(build.maven().args([counts, "test", "et:test"]))?;
    ensure!(!failed.succeeded, "{}", failed.text);
    failed.says("AllocationsTest.aKnownWordCostsNothing")?;
    example::limits_in(&build.at("surefire-reports"), &build.folder.join("target/surefire-reports"))?;

    example::change_word(&build.folder)?;
    // As they are bound to phases; and a program that fails.
    let third =
        Ran::of(build.maven().args(["package", "-DskipTests", "et:run", "-DelephantTracks.jvmArgs=-XX:NoSuchFlag"]))?;
    ensure!(!third.succeeded, "{}", third.text);
    // Only once: et:run has nothing left to do.
    let rewrote: Vec<&str> = third.text.lines().filter(|line| line.contains("rewrote")).collect();
    ensure!(rewrote == ["[INFO] rewrote 1 class file", "[INFO] rewrote 3 classes"], "{}", third.text);
    third.says("target/words-1-et.jar")?;
    third.says("(default-cli) on project words: words.Main ended with exit code 1")
}

/// A copy of the example, and how Maven is to build it.
struct Build<'a> {
    lab: &'a Lab,
    jdk: InstrumentedJdk,
    folder: PathBuf,
}

impl Build<'_> {
    /// Path of an output of the plugin.
    fn at(&self, path: &str) -> PathBuf {
        self.folder.join("target/elephant-tracks").join(path)
    }

    fn with_mocks(&self) -> Result<()> {
        mockito::add_test(&self.folder)?;
        let project = self.folder.join("pom.xml");
        let dependencies = mockito::jars().map(|jar| {
            let name = jar.file_stem().unwrap_or_default().display();
            format!(
                "<dependency><groupId>debian</groupId><artifactId>{name}</artifactId><version>1</version>\
                 <scope>system</scope><systemPath>{}</systemPath></dependency>\n",
                jar.display()
            )
        });
        let end = "</dependencies>";
        let text = fs::read_to_string(&project)?.replacen(end, &format!("{}{end}", dependencies.concat()), 1);
        Ok(fs::write(&project, text)?)
    }

    fn maven(&self) -> Command {
        let mut maven = maven::maven(&self.lab.layout, &self.lab.compiler);
        maven.current_dir(&self.folder);
        for (name, value) in [
            ("etHome", self.lab.tools.root.as_path()),
            // With a JDK that is instrumented already, none has to be made; `run` has tests of that.
            ("elephantTracks.jdkHome", &self.jdk.home),
            ("elephantTracks.cacheDir", &self.folder.join("cache")),
        ] {
            maven.arg(format!("-D{name}={}", value.display()));
        }
        maven
    }

    /// It runs, and no class has to be rewritten then.
    fn jar_is_instrumented(&self) -> Result<()> {
        let trace = self.folder.join("jar.ettrace");
        let mut java = Command::new(self.jdk.home.join("bin/java"));
        java.arg(format!("@{}", self.at("main/et.args").display()));
        java.arg(format!("-Det.traceFile={}", trace.display()));
        java.arg("-cp").arg(self.folder.join("target/words-1-et.jar")).args(["words.Main", "be"]);
        let output = command::quiet(&mut java)?;
        ensure!(output.stdout == b"[be 1]\n", "{output:?}");
        example::made(self.lab, &trace, &["words.Word"])
    }
}
