//! Runs programs on several JDKs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, Tools};
use xtask::programs::Stage;
use xtask::workloads::{self, Runner, Workload};
use xtask::{build, setup};

/// Runs programs on several JDKs sequentially, for commands that compare a trace with what the JVM reports.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Tour<'a> {
    pub tools: Tools,
    pub compiler: Jdk,
    layout: &'a Layout,
    programs: Vec<Workload>,
    options: &'a TourOptions,
    /// Folder for the output of the programs.
    folder: PathBuf,
    /// Whether to keep that output.
    keep: bool,
}

/// Options of such a command.
#[derive(Clone, Debug, clap::Args)]
#[allow(missing_docs)]
pub struct TourOptions {
    /// Size of the work in percent of full size
    #[arg(long, default_value_t = 5)]
    pub scale: u32,
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17,25")]
    pub jdk: Vec<u32>,
    /// Do not build the tools: use those built last
    #[arg(long)]
    pub no_build: bool,
    /// Also write the overview to this file
    #[arg(long)]
    pub markdown: Option<PathBuf>,
}

impl<'a> Tour<'a> {
    /// Installs and builds what is missing. Output goes to the folder `target/NAME`.
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

    /// Calls `visit` for each program on each JDK, with a name to show and a separate folder. Returns a note for each
    /// program that was skipped or failed.
    pub fn run(&self, mut visit: impl FnMut(&Stage<'_>, &Workload, &str, &Path) -> Result<()>) -> Result<Notes> {
        let mut notes = Notes::default();
        for feature in &self.options.jdk {
            let Some(jdk) = jdks::of_feature(self.layout, *feature) else {
                notes.lines.push(format!("JDK {feature} skipped: {}", jdks::missing(*feature)));
                continue;
            };
            let traced_jdk = InstrumentedJdk::of(&self.tools, &jdk, &[])?;
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

/// Notes on programs that are missing in the tables.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// One line per program.
    pub lines: Vec<String>,
    failed: bool,
}

impl Notes {
    /// Returns an error if a program failed.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.failed, "a program failed");
        Ok(())
    }
}
