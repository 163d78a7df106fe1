//! A folder for a program, and both ways to run it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use et_tests::lab::Lab;
use et_tests::program;
use serde_json::Value;
use xtask::command;
use xtask::instrumented;
use xtask::jdks::Jdk;
use xtask::programs;

/// Variables that change what a JVM does; only tests set them.
const VARIABLES: [&str; 6] =
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "JAVA_HOME", "ET_OPTIONS"];

#[derive(Clone)]
pub struct Bench {
    pub lab: Lab,
    pub jdk: Jdk,
    /// The program's folder, where it runs.
    pub folder: PathBuf,
    /// Shared by all tests, but for those that want one of their own.
    pub cache: PathBuf,
}

/// How a program ended, and what it left.
pub struct Ran {
    pub output: Output,
    pub stderr: String,
    /// Output of `et-trace summary` for its trace.
    pub summary: Value,
}

impl Bench {
    pub fn new(lab: &Lab, jdk: &Jdk, test: &str) -> Result<Self> {
        let folder = fs::canonicalize(lab.folder(jdk, &format!("run-{test}"))?)?;
        let cache = instrumented::run_cache(&lab.layout, &lab.tools)?;
        Ok(Self { lab: lab.clone(), jdk: jdk.clone(), folder, cache })
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    pub fn write(&self, path: &str, content: &str) -> Result<PathBuf> {
        let path = self.at(path);
        fs::create_dir_all(path.parent().context("a path in the folder has a parent")?)?;
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Compiles sources, named by their files, to a folder of classes.
    pub fn compile(&self, sources: &[(&str, &str)], options: &[&str], to: &str) -> Result<()> {
        let mut compile = self.lab.compiler.compile()?;
        compile.current_dir(&self.folder).args(["-Xlint:-options", "-d", to]).args(options);
        if !options.contains(&"--release") {
            compile.args(["--release", "11"]);
        }
        for (name, text) in sources {
            compile.arg(self.write(&format!("src/{to}/{name}"), text)?);
        }
        command::quiet(&mut compile).map(|_| ())
    }

    /// Makes a jar of a folder; options such as `--manifest=FILE`.
    pub fn jar(&self, jar: &str, options: &[&str], folder: &str) -> Result<()> {
        let jar = self.at(jar);
        fs::create_dir_all(jar.parent().context("a jar lies in a folder")?)?;
        let mut make = Command::new(self.lab.compiler.home.join("bin/jar"));
        make.current_dir(&self.folder).arg("--create").arg("--file").arg(jar).args(options).args(["-C", folder, "."]);
        command::quiet(&mut make).map(|_| ())
    }

    pub fn launcher(&self, name: &str) -> PathBuf {
        self.jdk.home.join("bin").join(name)
    }

    fn clean(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
        command.current_dir(&self.folder);
        command
    }

    pub fn plain(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.clean(self.launcher(program));
        command.args(arguments);
        command
    }

    pub fn tool(&self) -> Command {
        self.clean(self.lab.tools.et_instrument())
    }

    /// `et-instrument run` of a program; its trace is `trace.ettrace`.
    pub fn traced(&self, options: &[&str], program: &str, arguments: &[&str]) -> Command {
        let mut command = self.clean(self.lab.tools.et_instrument());
        command.arg("run").arg("--cache-dir").arg(&self.cache).arg("--trace").arg(self.at("trace.ettrace"));
        command.args(options).arg("--").arg(self.launcher(program)).args(arguments);
        command
    }

    /// Runs a command line of `java` both ways.
    pub fn both(&self, arguments: &[&str]) -> Result<Ran> {
        self.both_with("", &[], arguments)
    }

    /// As [`both`](Self::both), with something to read, and variables.
    pub fn both_with(&self, input: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Result<Ran> {
        let set = |mut command: Command| {
            command.envs(variables.iter().copied());
            command
        };
        let plain = feed(&mut set(self.plain("java", arguments)), input)?;
        let ran = self.ran(feed(&mut set(self.traced(&[], "java", arguments)), input)?)?;
        let (expected, found) = (text(&plain.stdout), text(&ran.output.stdout));
        ensure!(expected == found, "plain: {expected}\ntraced: {found}\n{}{}", text(&plain.stderr), ran.stderr);
        ensure!(plain.status.code() == ran.output.status.code(), "{:?}, {:?}", plain.status, ran.output.status);
        Ok(ran)
    }

    /// Looks at what a traced run left.
    pub fn ran(&self, output: Output) -> Result<Ran> {
        let stderr = text(&output.stderr);
        let trace = self.at("trace.ettrace");
        ensure!(trace.is_file(), "no trace: {stderr}");
        let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("et-instrument: ")).collect();
        let last = lines.last_chunk::<2>().with_context(|| format!("no two lines: {stderr}"))?;
        let path = trace.display().to_string();
        ensure!(last[0].starts_with(&format!("et-instrument: trace: {path} (")), "{stderr}");
        ensure!(last[1] == format!("et-instrument: next: et-trace summary {path}"), "{stderr}");
        let summary = instrumented::summary(&self.lab.tools, &trace, 5000)?;
        ensure!(summary["complete"] == true, "{}", summary["trace"]);
        let problems = program::problems(&summary);
        ensure!(problems.is_empty(), "{problems:?}");
        ensure!(summary["overlaps"].as_array().is_none_or(Vec::is_empty), "{}", summary["overlaps"]);
        // Names of all that has hooks, among others: whichever way a class came.
        programs::validate_without_deaths(&self.lab.tools, &trace)?;
        Ok(Ran { output, stderr, summary })
    }

    /// All that the cache holds of JDKs.
    pub fn jdks_in(&self, cache: &Path) -> usize {
        let items = fs::read_dir(cache.join("jdks")).into_iter().flatten().flatten();
        items.filter(|item| item.path().is_dir()).count()
    }
}

impl Ran {
    /// Objects of these classes were made.
    pub fn made(&self, classes: &[&str]) -> Result<()> {
        let known = self.summary["classes"].as_array().context("the summary lists no classes")?;
        for class in classes {
            ensure!(known.iter().any(|known| known["type"] == *class), "no objects of {class}");
        }
        Ok(())
    }

    /// Objects of these classes were made, and this many classes came rewritten.
    pub fn has(&self, classes: &[&str], rewritten_before: u64) -> Result<()> {
        self.made(classes)?;
        let found = &self.summary["dynamic"]["alreadyInstrumented"];
        ensure!(found.as_u64() == Some(rewritten_before), "{found} classes were rewritten before: {}", self.stderr);
        Ok(())
    }

    /// What was instrumented for the run: `1 jar`.
    pub fn rewrote(&self) -> Option<&str> {
        self.stderr.lines().find_map(|line| line.strip_prefix("et-instrument: rewrote "))
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command to its end with something on its standard input.
pub fn feed(command: &mut Command, input: &str) -> Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // A program that does not read its input is not an error.
    let _ = child.stdin.take().context("its input is piped")?.write_all(input.as_bytes());
    Ok(child.wait_with_output()?)
}
