//! `cargo xtask programs`: checks that real programs, instrumented together with their JDK, have the same result as
//! before.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use xtask::instrumented::{self, InstrumentedJdk};
use xtask::jdks;
use xtask::layout::Layout;
use xtask::programs::Stage;
use xtask::workloads::{self, Runner};
use xtask::{build, setup};

use crate::markdown;

/// Options of `cargo xtask programs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The programs, by name [default: all but those in other languages]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Also run the programs in other languages
    #[arg(long, conflicts_with = "programs")]
    languages: bool,
    /// Size of the work in percent of full size
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17,25")]
    jdk: Vec<u32>,
    /// Which uses of objects to record: none, refs or all
    #[arg(long, default_value = "none")]
    witness: String,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Also write the table to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Keep the traces
    #[arg(long)]
    keep: bool,
}

/// Runs the programs and prints a table; fails if one failed.
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
        let traced_jdk = InstrumentedJdk::of(&tools, &jdk, hooks)?;
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
