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
use crate::{build, command, setup};

/// Options of `cargo xtask programs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The programs, by name; all by default
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Size of the work in per cent
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17,25")]
    jdk: Vec<u32>,
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

/// Runs a program plain and traced: the same output and files, a valid trace, nothing lost. `agents` are more
/// options for the traced run. The trace stays in `folder`.
pub fn runs_as_before(
    runner: &Runner,
    tools: &Tools,
    jdk: &Jdk,
    traced_jdk: &InstrumentedJdk,
    workload: &Workload,
    folder: &Path,
    agents: &[String],
) -> Result<Passed> {
    runner.prepare(workload, &jdk.java())?;
    let start = Instant::now();
    let plain = command::quiet(&mut runner.plain(workload, &jdk.java()))?;
    let plain_seconds = start.elapsed().as_secs_f64();
    let plain_files = runner.written(workload)?;
    ensure!(!plain.stdout.is_empty(), "{} printed nothing", workload.name);

    let parts = runner.instrument(workload, tools, &folder.join("rewritten"), &[])?;
    let trace = folder.join("trace.ettrace");
    let _ = fs::remove_file(&trace);
    let options = [agents, &traced_jdk.options(&trace)].concat();
    let start = Instant::now();
    let rewritten = command::quiet(&mut runner.rewritten(workload, &traced_jdk.java(), &parts, &options))?;
    let traced_seconds = start.elapsed().as_secs_f64();
    if plain.stdout != rewritten.stdout {
        let (plain, rewritten) = (String::from_utf8_lossy(&plain.stdout), String::from_utf8_lossy(&rewritten.stdout));
        bail!("{} printed something else\nplain:\n{plain}\nrewritten:\n{rewritten}", workload.name);
    }
    ensure!(plain_files == runner.written(workload)?, "{} wrote other files than before", workload.name);
    validate(tools, &trace)?;
    Ok(Passed { plain: plain_seconds, traced: traced_seconds, trace })
}

/// `et-trace validate` finds nothing, and nothing was lost.
pub fn validate(tools: &Tools, trace: &Path) -> Result<()> {
    command::quiet(Command::new(tools.et_trace()).arg("validate").arg(trace))?;
    let lost =
        instrumented::summary(tools, trace, 1)?["lost"].as_u64().context("the summary does not say what was lost")?;
    ensure!(lost == 0, "{lost} events were lost: {}", trace.display());
    Ok(())
}

/// Runs them all, prints a table; an error if one failed.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let programs = workloads::chosen(&options.programs)?;
    setup::programs(layout)?;
    let tools = build::run(layout)?;
    let compiler = jdks::compiler(layout)?;
    let mut table = format!("`cargo xtask programs --scale {}`\n\n", options.scale);
    table += "| program | JDK | plain s | traced s | M records | trace MB | outcome |\n|---|---|--:|--:|--:|--:|---|\n";
    let mut failures = Vec::new();
    for feature in &options.jdk {
        let jdk = jdks::of_feature(layout, *feature).with_context(|| jdks::missing(*feature))?;
        let traced_jdk = InstrumentedJdk::of(layout, &tools, &jdk, &[])?;
        let folder = layout.target.join("programs");
        let runner = Runner::new(layout, &folder, options.scale, &compiler, &jdk)?;
        for workload in &programs {
            let name = workload.name;
            if let Some(obstacle) = runner.obstacle(workload, &jdk) {
                table += &format!("| {name} | {} | | | | | skipped: {obstacle} |\n", jdk.version);
                continue;
            }
            eprintln!("{name} on JDK {}", jdk.version);
            let own = folder.join(format!("run-{feature}-{name}"));
            fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
            table += &match runs_as_before(&runner, &tools, &jdk, &traced_jdk, workload, &own, &[]) {
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
        fs::write(path, &table).with_context(|| format!("cannot write {}", path.display()))?;
    }
    ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    Ok(())
}
