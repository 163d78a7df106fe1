//! `cargo xtask jvmpi`: stresses the JVMPI host with each collector, by an agent that takes a lock in every event, requests dumps, runs the
//! collector and suspends threads to sample them, all at once. With `--cost`: measures what an agent costs that does nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::{self, Jdk};
use xtask::jvmpi::{compile, hooks};
use xtask::layout::{JVMPI_LIBRARY, Layout, Tools};
use xtask::workloads::{self, Runner, Workload};
use xtask::{build, command, setup};

use crate::bench::figures::median_cost;
use crate::cost::{self, Cost};
use crate::markdown;

/// Options of `cargo xtask jvmpi`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of runs with each collector, on two JDKs
    #[arg(long, default_value_t = 10, conflicts_with = "cost")]
    runs: u32,
    /// Measure instead what events cost that the agent ignores, from JVMTI and from hooks
    #[arg(long)]
    cost: bool,
    /// The workloads, by name
    #[arg(long, value_delimiter = ',', default_value = "h2,xalan,javac", requires = "cost")]
    programs: Vec<String>,
    /// Size of their work in percent of full size
    #[arg(long, default_value_t = 5, requires = "cost")]
    scale: u32,
    /// Java version to run on
    #[arg(long, default_value_t = 17, requires = "cost")]
    jdk: u32,
    /// Runs of each kind, alternating; the median counts
    #[arg(long, default_value_t = 3, requires = "cost")]
    repetitions: usize,
    /// Do not build the tools: use those built last
    #[arg(long, requires = "cost")]
    no_build: bool,
    /// Also write the table to this file
    #[arg(long, requires = "cost")]
    markdown: Option<PathBuf>,
}

/// Repeats the tests of `tests/tests/jvmpi.rs` that do everything at once; or measures.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    if options.cost {
        return measure(layout, options);
    }
    let mut cargo = command::cargo(&layout.repo);
    cargo.env("ET_JVMPI_RUNS", options.runs.to_string());
    command::run(cargo.args(["test", "-p", "et-tests", "--test", "jvmpi", "--locked", "--", "all_at_once"]))
}

/// Which events an agent receives, and how.
struct Kind {
    name: &'static str,
    /// Options of the agent; `None` for a run without one.
    events: Option<&'static str>,
    by_hooks: bool,
}

const KINDS: [Kind; 6] = [
    Kind { name: "plain", events: None, by_hooks: false },
    Kind { name: "allocations with call traces", events: Some("alloc"), by_hooks: false },
    Kind { name: "methods, by JVMTI", events: Some("methods"), by_hooks: false },
    Kind { name: "methods, by hooks", events: Some("methods"), by_hooks: true },
    Kind { name: "both, by JVMTI", events: Some("methods,alloc"), by_hooks: false },
    Kind { name: "both, by hooks", events: Some("methods,alloc"), by_hooks: true },
];

struct Bench<'a> {
    tools: &'a Tools,
    jdk: &'a Jdk,
    hooked: InstrumentedJdk,
    agent: PathBuf,
    folder: &'a Path,
    runner: Runner,
}

fn measure(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.repetitions > 0, "--repetitions must be at least 1");
    setup::programs(layout)?;
    let tools = build::unless(layout, options.no_build)?;
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let compiler = jdks::compiler(layout)?;
    let folder = layout.target.join("jvmpi");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bench = Bench {
        agent: agent(layout, &compiler, &folder)?,
        hooked: InstrumentedJdk::of(&tools, &jdk, &["--events", "method"])?,
        runner: Runner::new(layout, &folder, options.scale, &compiler, &jdk)?,
        tools: &tools,
        jdk: &jdk,
        folder: &folder,
    };
    let mut table = format!(
        "`cargo xtask jvmpi --cost --programs {} --scale {} --jdk {} --repetitions {}`, JDK {}: wall time, CPU time.\n\n| |",
        options.programs.join(","),
        options.scale,
        options.jdk,
        options.repetitions,
        jdk.version
    );
    KINDS.iter().for_each(|kind| table += &format!(" {} |", kind.name));
    table += &format!("\n|---|{}\n", "--:|".repeat(KINDS.len()));
    for workload in workloads::chosen(&options.programs)? {
        if let Some(obstacle) = bench.runner.obstacle(&workload, &jdk) {
            anyhow::bail!("{}: {obstacle}", workload.name);
        }
        bench.runner.prepare(&workload, &jdk.java())?;
        let mut costs = vec![Vec::new(); KINDS.len()];
        for repetition in 0..options.repetitions {
            for (kind, costs) in KINDS.iter().zip(&mut costs) {
                costs.push(bench.cost(&workload, kind)?);
            }
            eprintln!("{}: run {} of {}", workload.name, repetition + 1, options.repetitions);
        }
        let medians: Vec<Cost> = costs.iter().map(|costs| median_cost(costs)).collect();
        table += &format!("| {} | {:.2} s, {:.2} s |", workload.name, medians[0].seconds, medians[0].processor);
        for cost in &medians[1..] {
            let ratio = |of: fn(&Cost) -> f64| of(cost) / of(&medians[0]);
            table += &format!(" {:.1}x, {:.1}x |", ratio(|cost| cost.seconds), ratio(|cost| cost.processor));
        }
        table += "\n";
    }
    println!("{table}");
    match &options.markdown {
        Some(path) => markdown::write(path, &table),
        None => Ok(()),
    }
}

/// An agent that ignores all events.
fn agent(layout: &Layout, compiler: &Jdk, folder: &Path) -> Result<PathBuf> {
    let library = folder.join("libempty.so");
    let source = layout.repo.join("tests/jvmpi/empty.c");
    compile(layout, compiler, &["-shared", "-fPIC", "-O2"], &source, &library)?;
    Ok(library)
}

impl Bench<'_> {
    fn cost(&self, workload: &Workload, kind: &Kind) -> Result<Cost> {
        let java = if kind.by_hooks { self.hooked.java() } else { self.jdk.java() };
        let mut command = self.runner.plain(workload, &java);
        if let Some(events) = kind.events {
            let host = self.tools.lib().join(JVMPI_LIBRARY);
            let mut options = vec![format!("-agentpath:{}={}:{events}", host.display(), self.agent.display())];
            if kind.by_hooks {
                options.extend(hooks(self.tools));
            }
            command.env("JAVA_OPTS_EXTRA", options.join(" "));
        }
        cost::of(&command, self.folder).with_context(|| format!("{}, {}", workload.name, kind.name))
    }
}
