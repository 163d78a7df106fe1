//! `cargo xtask programs`: real programs, rewritten together with the JDK they run on, must do what they did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::instrumented::{self, InstrumentedJdk};
use crate::jdks::{self, Jdk};
use crate::layout::{Layout, Tools};
use crate::workloads::{self, Runner, Workload};
use crate::{build, command, markdown, setup};

/// Options of `cargo xtask programs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The programs, by name; the nine by default
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// The programs in other languages as well
    #[arg(long, conflicts_with = "programs")]
    languages: bool,
    /// Size of the work in per cent
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17,25")]
    jdk: Vec<u32>,
    /// Which uses of objects leave a record: none, refs or all
    #[arg(long, default_value = "none")]
    witness: String,
    /// Use the tools as they were built last
    #[arg(long)]
    no_build: bool,
    /// Where to write the table as well
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Keep the traces
    #[arg(long)]
    keep: bool,
}

/// A program that ran plain and traced, with the same result.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Seconds of the plain run.
    pub plain: f64,
    /// Seconds of the traced run.
    pub traced: f64,
    /// Its trace, validated.
    pub trace: PathBuf,
}

/// What a program printed, and how long it took.
struct Ran {
    stdout: Vec<u8>,
    seconds: f64,
}

fn ran(command: &mut Command) -> Result<Ran> {
    let start = Instant::now();
    let stdout = command::quiet(command)?.stdout;
    Ok(Ran { stdout, seconds: start.elapsed().as_secs_f64() })
}

/// Programs on one JDK, and on its instrumented copy.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The programs' inputs.
    pub runner: &'a Runner,
    /// The tools under test.
    pub tools: &'a Tools,
    /// The plain JDK.
    pub jdk: &'a Jdk,
    /// Its copy.
    pub traced_jdk: &'a InstrumentedJdk,
    /// Options of et-instrument for the programs; the copy was made with its own.
    pub options: &'a [&'a str],
}

impl Stage<'_> {
    /// Runs a program plain and traced: the same output and files, a valid trace, nothing lost. The trace stays in
    /// `folder`.
    pub fn runs_as_before(&self, workload: &Workload, folder: &Path) -> Result<Passed> {
        self.runner.prepare(workload, &self.jdk.java())?;
        let plain = ran(&mut self.runner.plain(workload, &self.jdk.java()))?;
        let plain_files = self.runner.written(workload)?;
        ensure!(!plain.stdout.is_empty(), "{} printed nothing", workload.name);
        let trace = folder.join("trace.ettrace");
        let traced = self.rewritten(workload, folder, &trace, &[])?;
        if plain.stdout != traced.stdout {
            let (plain, traced) = (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&traced.stdout));
            bail!("{} printed something else\nplain:\n{plain}\nrewritten:\n{traced}", workload.name);
        }
        ensure!(plain_files == self.runner.written(workload)?, "{} wrote other files than before", workload.name);
        let validate = if workload.long_start { validate_without_deaths } else { validate };
        validate(self.tools, &trace)?;
        Ok(Passed { plain: plain.seconds, traced: traced.seconds, trace })
    }

    /// Only runs it traced, with more options for the JVM.
    pub fn trace(&self, workload: &Workload, folder: &Path, jvm_options: &[String]) -> Result<PathBuf> {
        self.runner.prepare(workload, &self.jdk.java())?;
        let trace = folder.join("trace.ettrace");
        self.rewritten(workload, folder, &trace, jvm_options)?;
        Ok(trace)
    }

    /// `jvm_options` come before those of tracing.
    fn rewritten(&self, workload: &Workload, folder: &Path, trace: &Path, jvm_options: &[String]) -> Result<Ran> {
        let parts = self.runner.instrument(workload, self.tools, &folder.join("rewritten"), self.options)?;
        let _ = fs::remove_file(trace);
        let options = [jvm_options, &self.traced_jdk.options(trace)].concat();
        ran(&mut self.runner.rewritten(workload, &self.traced_jdk.java(), &parts, &options))
    }
}

/// Programs on several JDKs, one after the other: what chores do that hold a trace against what the JVM says.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Tour<'a> {
    pub tools: Tools,
    pub compiler: Jdk,
    layout: &'a Layout,
    programs: Vec<Workload>,
    options: &'a TourOptions,
    /// What the programs leave goes below.
    folder: PathBuf,
    /// Leave their folders there.
    keep: bool,
}

/// Options of such a chore.
#[derive(Clone, Debug, clap::Args)]
#[allow(missing_docs)]
pub struct TourOptions {
    /// Size of the work in per cent
    #[arg(long, default_value_t = 5)]
    pub scale: u32,
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17,25")]
    pub jdk: Vec<u32>,
    /// Use the tools as they were built last
    #[arg(long)]
    pub no_build: bool,
    /// Where to write the overview as well
    #[arg(long)]
    pub markdown: Option<PathBuf>,
}

impl<'a> Tour<'a> {
    /// Installs and builds what is missing. What these programs leave goes below a folder of that name.
    pub fn new(
        layout: &'a Layout,
        name: &str,
        programs: &[String],
        options: &'a TourOptions,
        keep: bool,
    ) -> Result<Self> {
        let programs = workloads::chosen(programs)?;
        setup::programs(layout)?;
        let tools = build::unless(layout, options.no_build)?;
        let compiler = jdks::compiler(layout)?;
        let folder = layout.target.join(name);
        Ok(Self { tools, compiler, layout, programs, options, folder, keep })
    }

    /// Calls `visit` for each program on each JDK, with what people call it and a folder of its own. Returns a line for each
    /// that was skipped or failed.
    pub fn run(&self, mut visit: impl FnMut(&Stage<'_>, &Workload, &str, &Path) -> Result<()>) -> Result<Notes> {
        let mut notes = Notes::default();
        for feature in &self.options.jdk {
            let Some(jdk) = jdks::of_feature(self.layout, *feature) else {
                notes.lines.push(format!("JDK {feature} skipped: {}", jdks::missing(*feature)));
                continue;
            };
            let traced_jdk = InstrumentedJdk::of(self.layout, &self.tools, &jdk, &[])?;
            let runner = Runner::new(self.layout, &self.folder, self.options.scale, &self.compiler, &jdk)?;
            let stage = Stage { runner: &runner, tools: &self.tools, jdk: &jdk, traced_jdk: &traced_jdk, options: &[] };
            for workload in &self.programs {
                let name = format!("{} on JDK {}", workload.name, jdk.version);
                if let Some(obstacle) = runner.obstacle(workload, &jdk) {
                    notes.lines.push(format!("{name} skipped: {obstacle}"));
                    continue;
                }
                eprintln!("{name}");
                let own = self.folder.join(format!("run-{feature}-{}", workload.name));
                fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
                if let Err(error) = visit(&stage, workload, &name, &own) {
                    notes.lines.push(format!("{name} failed: {error:#}"));
                    notes.failed = true;
                }
                if !self.keep {
                    fs::remove_dir_all(&own)?;
                }
            }
        }
        Ok(notes)
    }
}

/// What became of the programs that are in no table.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// One for each.
    pub lines: Vec<String>,
    failed: bool,
}

impl Notes {
    /// An error if one failed.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.failed, "a program failed");
        Ok(())
    }
}

/// `et-trace validate` finds nothing, lost events included.
pub fn validate(tools: &Tools, trace: &Path) -> Result<()> {
    command::quiet(Command::new(tools.et_trace()).args(["validate", "--no-lives"]).arg(trace)).map(drop)
}

/// As [`validate`], deaths apart: they take most of the time of a large trace.
pub fn validate_without_deaths(tools: &Tools, trace: &Path) -> Result<()> {
    command::quiet(Command::new(tools.et_trace()).args(["validate", "--deaths", "none"]).arg(trace)).map(drop)
}

/// Runs them all, prints a table; an error if one failed.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let mut programs = workloads::chosen(&options.programs)?;
    setup::programs(layout)?;
    if options.languages {
        setup::language_programs(layout)?;
        programs.extend(workloads::LANGUAGES);
    }
    let tools = build::unless(layout, options.no_build)?;
    let compiler = jdks::compiler(layout)?;
    let mut table = format!("`cargo xtask programs --scale {}`\n\n", options.scale);
    table += "| program | JDK | plain s | traced s | M records | trace MB | outcome |\n|---|---|--:|--:|--:|--:|---|\n";
    let mut failures = Vec::new();
    for feature in &options.jdk {
        let jdk = jdks::of_feature(layout, *feature).with_context(|| jdks::missing(*feature))?;
        let witness = ["--witness", &options.witness];
        let hooks: &[&str] = if options.witness == "none" { &[] } else { &witness };
        let traced_jdk = InstrumentedJdk::of(layout, &tools, &jdk, hooks)?;
        let folder = layout.target.join("programs");
        let runner = Runner::new(layout, &folder, options.scale, &compiler, &jdk)?;
        let stage = Stage { runner: &runner, tools: &tools, jdk: &jdk, traced_jdk: &traced_jdk, options: hooks };
        for workload in &programs {
            let name = workload.name;
            if let Some(obstacle) = runner.obstacle(workload, &jdk) {
                table += &format!("| {name} | {} | | | | | skipped: {obstacle} |\n", jdk.version);
                continue;
            }
            eprintln!("{name} on JDK {}", jdk.version);
            let own = folder.join(format!("run-{feature}-{name}"));
            fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
            table += &match stage.runs_as_before(workload, &own) {
                Ok(passed) => {
                    let records = instrumented::records(&tools, &passed.trace)? as f64 / 1e6;
                    let size = fs::metadata(&passed.trace)?.len() as f64 / 1e6;
                    let (version, plain, traced) = (&jdk.version, passed.plain, passed.traced);
                    format!(
                        "| {name} | {version} | {plain:.1} | {traced:.1} | {records:.1} | {size:.1} | as before |\n"
                    )
                }
                Err(error) => {
                    eprintln!("{name} on JDK {}: {error:#}", jdk.version);
                    failures.push(format!("{name} on JDK {}", jdk.version));
                    format!("| {name} | {} | | | | | **failed** |\n", jdk.version)
                }
            };
            if !options.keep {
                fs::remove_dir_all(&own)?;
            }
        }
    }
    println!("{table}");
    if let Some(path) = &options.markdown {
        markdown::write(path, &table)?;
    }
    ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    Ok(())
}
