//! One Java program through all steps: compile, rewrite, run plain, run traced, validate, read back.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use xtask::command;
use xtask::instrumented;
use xtask::jdks::Jdk;
use xtask::layout::Layout;
use xtask::programs;

use crate::compiled;
use crate::expect::Source;
use crate::lab::{self, Lab};
use crate::names::Names;
use crate::record::Records;
use crate::window::Trace;

/// A program that ran plain and traced with the same result.
#[derive(Debug)]
pub struct Run {
    /// Everything it left is below.
    pub folder: PathBuf,
    pub trace: PathBuf,
    /// Standard output.
    pub stdout: String,
    source: Source,
    main_class: String,
}

/// Waits for the end of a process; `None` if it has not come in time, and the process was killed.
pub fn ended(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(Duration::from_millis(20));
    }
}

/// The folder of the test programs.
pub fn programs(lab: &Lab) -> PathBuf {
    lab.layout.repo.join("tests/java")
}

/// The programs of `tests/java` or of a folder in it, in order.
pub fn in_folder(layout: &Layout, folder: &str) -> Result<Vec<String>> {
    let path = layout.repo.join("tests/java").join(folder);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
        let file = entry?.path();
        if let (Some("java"), Some(name)) = (file.extension().and_then(|e| e.to_str()), file.file_stem()) {
            names.push(Path::new(folder).join(name).to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Reads what a program's source states about it.
fn source(lab: &Lab, program: &str) -> Result<Source> {
    let file = programs(lab).join(format!("{program}.java"));
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Source::parse(&text).with_context(|| format!("{}", file.display()))
}

/// The Java version to compile a program for.
fn release(source: &Source) -> u32 {
    source.needs.unwrap_or_default().max(OLDEST)
}

/// The oldest Java version that tests run on.
const OLDEST: u32 = 11;

/// Why a program cannot run on a JDK, if it cannot.
pub fn obstacle(lab: &Lab, jdk: &Jdk, program: &str) -> Option<String> {
    // Whatever is wrong with the source is for the test itself to say.
    let source = source(lab, program).ok()?;
    match source.needs {
        Some(needs) if needs > jdk.feature => Some(format!("{program} needs Java {needs}")),
        _ => compiled::compiler(lab, release(&source)).is_none().then(|| format!("{program} needs a newer javac")),
    }
}

/// How a program runs, apart from what its source says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// Options for `et-instrument jdk`.
    pub jdk: &'a [&'a str],
    /// Options for `et-instrument` of the program, besides those of its source.
    pub program: &'a [&'a str],
    /// Options for java, of both runs.
    pub both: &'a [&'a str],
    /// Options for java, of the traced run only.
    pub traced: &'a [&'a str],
    /// Options after those in `et.args`.
    pub after: &'a [&'a str],
    /// Variables of the traced run.
    pub environment: &'a [(&'a str, &'a str)],
    /// Expected messages of the runtime, one per line; usually none.
    pub says: &'a str,
}

impl Run {
    /// Runs `tests/java/<program>.java` in the folder of a test.
    pub fn of(lab: &Lab, jdk: &Jdk, test: &str, program: &str) -> Result<Self> {
        Self::with(lab, jdk, test, program, Setup::default())
    }

    /// As [`Run::of`], with options for the JVM of the traced run.
    pub fn with_options(lab: &Lab, jdk: &Jdk, test: &str, program: &str, jvm_options: &[String]) -> Result<Self> {
        let traced: Vec<&str> = jvm_options.iter().map(String::as_str).collect();
        Self::with(lab, jdk, test, program, Setup { traced: &traced, ..Setup::default() })
    }

    /// As [`Run::of`], with other options.
    pub fn with(lab: &Lab, jdk: &Jdk, test: &str, program: &str, setup: Setup<'_>) -> Result<Self> {
        let source = source(lab, program)?;
        let name = program.rsplit('/').next().unwrap_or(program);
        let folder = lab.folder(jdk, test)?;
        let classes = compiled::classes(lab, &programs(lab).join(format!("{program}.java")), release(&source))?;
        let rewritten = folder.join("classes-et");
        let run = if source.is_plain {
            &classes
        } else {
            let mut rewrite = Command::new(lab.tools.et_instrument());
            rewrite.arg(&classes).args(&source.options).args(setup.program);
            command::quiet(rewrite.arg("-o").arg(&rewritten))?;
            &rewritten
        };

        let mut library = Vec::new();
        if let Some(code) = &source.library {
            let code = programs(lab).join(program).with_file_name(code);
            build_library(&lab.compiler, &code, &folder.join("libnative.so"))?;
            library.push(format!("-Djava.library.path={}", folder.display()));
            if jdk.feature >= 17 {
                library.push("--enable-native-access=ALL-UNNAMED".to_owned());
            }
        }

        let mut plain = Command::new(jdk.java());
        plain
            .args(setup.both)
            .args(&library)
            .args(&source.java)
            .arg("-cp")
            .arg(&classes)
            .arg(name)
            .current_dir(&folder);
        let plain = run_java(&mut plain)?;
        let traced_jdk = instrumented::InstrumentedJdk::of(&lab.tools, jdk, setup.jdk)?;
        let trace = folder.join("trace.ettrace");
        let mut traced = Command::new(traced_jdk.java());
        traced
            .args(setup.both)
            .args(setup.traced)
            .args(traced_jdk.options(&trace))
            .args(setup.after)
            .envs(setup.environment.iter().copied())
            .args(&library)
            .args(&source.java)
            .arg("-cp")
            .arg(run)
            .arg(name)
            .current_dir(&folder);
        let rerun = run_java(&mut traced)?;
        let expected = Seen { stderr: format!("{}{}", plain.stderr, setup.says), ..plain.clone() };
        ensure!(
            expected == rerun,
            "the rewritten program behaves differently\nplain: {plain:?}\nrewritten: {rerun:?}\n{}",
            command::shown(&traced)
        );
        programs::validate(&lab.tools, &trace)?;
        Ok(Self { folder, trace, stdout: plain.stdout, source, main_class: name.to_owned() })
    }

    /// Reads the trace back as text, without deaths: most expectations are about what hooks report.
    pub fn read(&self, lab: &Lab) -> Result<Trace> {
        self.text(lab, &["--deaths", "none"])
    }

    /// As [`Run::read`], with deaths.
    pub fn read_with_deaths(&self, lab: &Lab) -> Result<Trace> {
        self.text(lab, &[])
    }

    fn text(&self, lab: &Lab, options: &[&str]) -> Result<Trace> {
        let names_file = self.folder.join("trace.names");
        let mut text = Command::new(lab.tools.et_trace());
        text.arg("text").args(options).arg(&self.trace).arg("--names").arg(&names_file);
        let mut child =
            text.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {}", command::shown(&text)))?;
        let stdout = child.stdout.take().context("no pipe to et-trace")?;
        let records = Records::read(BufReader::with_capacity(1 << 20, stdout))?;
        let status = child.wait()?;
        ensure!(status.success(), "{} failed ({status})", command::shown(&text));
        ensure!(
            records.comments.iter().any(|comment| comment == "lost 0"),
            "the text output does not end with # lost 0: {:?}",
            records.comments
        );
        let names = fs::read_to_string(&names_file).with_context(|| format!("cannot read {}", names_file.display()))?;
        Ok(Trace {
            main_class: self.main_class.clone(),
            source: self.source.clone(),
            names: Names::parse(&names)?,
            records,
        })
    }

    /// Output of `et-trace summary --json`.
    pub fn summary(&self, lab: &Lab) -> Result<serde_json::Value> {
        instrumented::summary(&lab.tools, &self.trace, 10)
    }

    /// Removes what a passed test does not need any more: traces are large.
    pub fn clean(&self) -> Result<()> {
        if !lab::keep_traces() {
            fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))?;
        }
        Ok(())
    }
}

/// Problems in a summary. Excludes events during VM shutdown, whose number is random.
pub fn problems(summary: &serde_json::Value) -> Vec<&serde_json::Value> {
    let all = summary["problems"].as_array().into_iter().flatten();
    all.filter(|problem| !problem["what"].as_str().is_some_and(|what| what.contains("while the VM went down")))
        .collect()
}

/// Compares a program with what its comments say.
pub fn check(lab: &Lab, jdk: &Jdk, name: &str) -> Result<()> {
    check_with(lab, jdk, name, name, Setup::default())
}

/// As [`check`], set up in another way.
pub fn check_with(lab: &Lab, jdk: &Jdk, test: &str, name: &str, setup: Setup<'_>) -> Result<()> {
    checked(lab, jdk, test, name, setup)?.0.clean()
}

/// As [`check_with`], and returns the run and its trace, for more to be compared with them.
pub fn checked(lab: &Lab, jdk: &Jdk, test: &str, name: &str, setup: Setup<'_>) -> Result<(Run, Trace)> {
    source(lab, name)?.has_expectations_or_says_why().with_context(|| format!("{name}.java"))?;
    let run = Run::with(lab, jdk, test, name, setup)?;
    let trace = run.read(lab)?;
    let mut wrong = String::new();
    for expectation in &run.source.expectations {
        let calls = trace.calls(&expectation.method);
        let call = if expectation.first { calls.first() } else { calls.last() };
        let call = call.with_context(|| format!("{}.{} does not show in the trace", name, expectation.method))?;
        let shown = trace.show(call, expectation.view);
        if shown != expectation.lines {
            let (expected, shown) = (expectation.lines.join("\n  "), shown.join("\n  "));
            wrong +=
                &format!("\n{}.{}\n expected\n  {expected}\n but the trace has\n  {shown}\n", name, expectation.method);
        }
    }
    ensure!(wrong.is_empty(), "{wrong}trace: {}", run.trace.display());
    Ok((run, trace))
}

/// The visible behaviour of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub stdout: String,
    pub stderr: String,
    /// Exit code; none if a signal ended it.
    pub code: Option<i32>,
}

/// Compiles native methods, with the machine's C compiler and the headers of a JDK.
fn build_library(jdk: &Jdk, code: &Path, library: &Path) -> Result<()> {
    let include = jdk.home.join("include");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-g", "-pthread", "-o"]).arg(library).arg(code);
    command::quiet(cc.arg("-I").arg(&include).arg("-I").arg(include.join("linux")))
        .map(drop)
        .context("native methods need a C compiler, cc, and a JDK with headers")
}

/// Runs to the end, with nothing on standard input.
pub fn run_java(java: &mut Command) -> Result<Seen> {
    let output =
        java.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", command::shown(java)))?;
    Ok(Seen {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    })
}
