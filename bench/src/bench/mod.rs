//! `cargo xtask bench`: measures slowdown, memory, rewriting speed and trace size.

pub(crate) mod figures;
mod machine;
mod rewriting;
mod table;
mod threads;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use xtask::instrumented::{self, InstrumentedJdk};
use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, Tools};
use xtask::workloads::{self, RewrittenParts, Runner, Workload};
use xtask::{build, completeness};

use crate::cost::{self, Cost};
use crate::markdown;

use figures::{Measured, Run, TraceFigures, median_cost};
use machine::Bandwidth;

/// Options of `cargo xtask bench`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The programs, by name [default: the nine]
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    /// Size of the work in percent of full size
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// Runs of each kind; the median counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17")]
    jdk: Vec<u32>,
    /// Measure instead two programs with these numbers of threads, which share nothing or everything
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["programs", "witness"])]
    threads: Vec<usize>,
    /// Compare kinds of witnesses instead of kinds of events
    #[arg(long)]
    witness: bool,
    /// Compare the modes of `et-instrument run`, and an agent that walks the stack of each allocation by JVMTI
    #[arg(long, conflicts_with = "witness")]
    modes: bool,
    /// Of the kinds of runs, only these, by their names in the tables, such as counts,objects
    #[arg(long, value_delimiter = ',', conflicts_with = "threads")]
    kinds: Vec<String>,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Also write the tables to this file, such as docs/evidence/performance-tables.md, between its marks
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// Hooks and output of each kind of run.
const VARIANTS: &[Variant] = &[
    Variant { name: "all events", ..Variant::ALL },
    Variant {
        name: "all events, not written",
        jvm_options: &["-Det.discard=on"],
        kind: Kind::Discarded,
        ..Variant::ALL
    },
    Variant::ALLOCATIONS,
    Variant::STACKS,
    Variant::COUNTS,
];

/// As [`VARIANTS`], with `--modes`.
const MODES: &[Variant] = &[
    Variant::ALLOCATIONS,
    Variant::COUNTS,
    Variant::STACKS,
    Variant { name: "objects", jvm_options: &["-Det.survival=5"], ..Variant::STACKS },
    Variant { name: "references", folder: "references", options: &["--events", "alloc,update,stacks"], ..Variant::ALL },
    Variant { name: "everything", ..Variant::ALL },
    Variant { name: "walks by JVMTI", kind: Kind::Walker, ..Variant::ALL },
];

/// As [`VARIANTS`], with `--witness`.
const WITNESSES: &[Variant] = &[
    Variant { name: "no witnesses", ..Variant::ALL },
    Variant { name: "witnesses: refs", folder: "refs", options: &["--witness", "refs"], ..Variant::ALL },
    Variant { name: "witnesses: all", folder: "uses", options: &["--witness", "all"], ..Variant::ALL },
];

#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    /// Folder of the instrumented JDK and programs.
    folder: &'static str,
    /// Options of et-instrument.
    options: &'static [&'static str],
    /// Options of the runtime.
    jvm_options: &'static [&'static str],
    kind: Kind,
}

/// What becomes of events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// They are written to a trace.
    Written,
    /// Full buffers are discarded.
    Discarded,
    /// There are none: the plain program runs with an agent that walks stacks.
    Walker,
}

impl Variant {
    const ALL: Self = Self { name: "", folder: "all", options: &[], jvm_options: &[], kind: Kind::Written };
    const ALLOCATIONS: Self =
        Self { name: "allocations only", folder: "alloc", options: &["--events", "alloc"], ..Self::ALL };
    const STACKS: Self =
        Self { name: "with stacks", folder: "stacks", options: &["--events", "alloc,stacks"], ..Self::ALL };
    const COUNTS: Self = Self { name: "counts", jvm_options: &["-Det.counts=1s"], ..Self::STACKS };
}

impl Options {
    fn variants(&self) -> Vec<&'static Variant> {
        let is_wanted =
            |variant: &&Variant| self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == variant.name);
        self.all_variants().iter().filter(is_wanted).collect()
    }

    fn all_variants(&self) -> &'static [Variant] {
        match (self.witness, self.modes) {
            (true, _) => WITNESSES,
            (false, true) => MODES,
            (false, false) => VARIANTS,
        }
    }

    /// The command line that repeats the measurement.
    fn command(&self) -> String {
        let joined = |versions: &[u32]| versions.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut command = "cargo xtask bench".to_owned();
        if !self.threads.is_empty() {
            let threads: Vec<_> = self.threads.iter().map(usize::to_string).collect();
            command += &format!(" --threads {}", threads.join(","));
        }
        if self.witness {
            command += " --witness";
        }
        if self.modes {
            command += " --modes";
        }
        if !self.kinds.is_empty() {
            command += &format!(" --kinds '{}'", self.kinds.join(","));
        }
        if !self.programs.is_empty() {
            command += &format!(" --programs {}", self.programs.join(","));
        }
        command + &format!(" --jdk {} --scale {} --repetitions {}", joined(&self.jdk), self.scale, self.repetitions)
    }
}

/// The measurements on one JDK.
struct OnJdk {
    jdk: Jdk,
    measured: Vec<Measured>,
}

/// The setup for one JDK.
struct Bench<'a> {
    options: &'a Options,
    tools: &'a Tools,
    folder: &'a Path,
    jdk: &'a Jdk,
    runner: Runner,
    /// The agent that walks stacks, if one of the kinds of runs has it.
    walker: Option<&'a Path>,
    /// One instrumented JDK per kind of run.
    traced: Vec<InstrumentedJdk>,
}

/// Measures, prints the tables, and writes the figures.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.repetitions > 0, "--repetitions must be at least 1");
    ensure!(!options.threads.contains(&0), "--threads must be at least 1");
    if !options.threads.is_empty() {
        return threads::run(layout, &build::unless(layout, options.no_build)?, options);
    }
    if let Some(unknown) =
        options.kinds.iter().find(|kind| !options.all_variants().iter().any(|one| one.name == **kind))
    {
        let known: Vec<_> = options.all_variants().iter().map(|variant| variant.name).collect();
        bail!("--kinds {unknown}: there are {}", known.join(", "));
    }
    let programs = match &options.programs[..] {
        [] => workloads::nine(),
        names => workloads::chosen(names)?,
    };
    let tools = build::unless(layout, options.no_build)?;
    let compiler = jdks::compiler(layout)?;
    let found = |feature| jdks::of_feature(layout, feature).with_context(|| jdks::missing(feature));
    let jdks: Vec<Jdk> = options.jdk.iter().map(|&feature| found(feature)).collect::<Result<_>>()?;
    let folder = layout.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bandwidth = Bandwidth::measure();
    let walks = options.variants().iter().any(|variant| variant.kind == Kind::Walker);
    let walker = walks.then(|| completeness::walker(layout, &compiler)).transpose()?;

    let mut rewriting = Vec::new();
    let mut benches = Vec::new();
    for jdk in &jdks {
        rewriting.push(rewriting::jdk(&tools, jdk, &folder)?);
        let instrument = |variant: &Variant| InstrumentedJdk::of(&tools, jdk, variant.options);
        let traced = options.variants().into_iter().map(instrument).collect::<Result<_>>()?;
        let runner = Runner::new(layout, &folder, options.scale, &compiler, jdk)?;
        benches.push(Bench { options, tools: &tools, folder: &folder, jdk, runner, walker: walker.as_deref(), traced });
    }
    let mut measured: Vec<Vec<Measured>> = benches.iter().map(|_| Vec::new()).collect();
    for workload in &programs {
        if let Some(jars) = rewriting::jars(&tools, workload, &folder)? {
            rewriting.push(jars);
        }
        measure(&benches, workload, &mut measured)?;
    }
    let on = |(jdk, measured): (&Jdk, Vec<Measured>)| OnJdk { jdk: jdk.clone(), measured };
    let all: Vec<OnJdk> = jdks.iter().zip(measured).map(on).collect();

    let tables = table::markdown(options, &all, &rewriting, bandwidth);
    println!("{tables}");
    if let Some(path) = &options.markdown {
        markdown::write(path, &tables)?;
    }
    let versions: Vec<_> = jdks.iter().map(|jdk| jdk.version.as_str()).collect();
    let figures = folder.join(format!("jdk-{}-scale-{}.json", versions.join("-"), options.scale));
    fs::write(&figures, format!("{:#}\n", table::as_json(options, &all, &rewriting, bandwidth)))?;
    eprintln!("figures: {}", figures.display());
    Ok(())
}

/// Runs of all kinds and on all JDKs alternate, so that other load on the machine affects all alike.
fn measure(benches: &[Bench<'_>], workload: &Workload, into: &mut [Vec<Measured>]) -> Result<()> {
    let mut ready = Vec::new();
    for (bench, into) in benches.iter().zip(into) {
        if let Some(obstacle) = bench.runner.obstacle(workload, bench.jdk) {
            eprintln!("skipped {} on JDK {}: {obstacle}", workload.name, bench.jdk.version);
            continue;
        }
        bench.runner.prepare(workload, &bench.jdk.java())?;
        ready.push((bench, bench.rewrite(workload)?, vec![Vec::new(); bench.traced.len() + 1], into));
    }
    let Some(repetitions) = benches.first().map(|bench| bench.options.repetitions) else { return Ok(()) };
    for repetition in 1..=repetitions {
        eprintln!("{}: run {repetition} of {repetitions}", workload.name);
        for (bench, parts, costs, _) in &mut ready {
            bench.run_each(workload, parts, costs)?;
        }
    }
    for (bench, _, costs, into) in ready {
        into.push(bench.figures(workload, &costs)?);
    }
    Ok(())
}

impl Bench<'_> {
    fn place(&self, workload: &Workload, variant: &Variant) -> PathBuf {
        self.folder.join("rewritten").join(&self.jdk.version).join(workload.name).join(variant.folder)
    }

    fn trace(&self, workload: &Workload, index: usize) -> PathBuf {
        self.folder.join(format!("{}-{}-{index}.ettrace", workload.name, self.jdk.version))
    }

    fn rewrite(&self, workload: &Workload) -> Result<Vec<RewrittenParts>> {
        let rewrite = |variant: &Variant| {
            let into = self.place(workload, variant);
            self.runner.instrument(workload, self.tools, &into, variant.options)
        };
        self.options.variants().into_iter().map(rewrite).collect()
    }

    /// One run of each kind, plain first.
    fn run_each(&self, workload: &Workload, parts: &[RewrittenParts], costs: &mut [Vec<Cost>]) -> Result<()> {
        costs[0].push(cost::of(&self.runner.plain(workload, &self.jdk.java()), self.folder)?);
        for (index, variant) in self.options.variants().iter().enumerate() {
            let trace = self.trace(workload, index);
            let _ = fs::remove_file(&trace);
            if let (Kind::Walker, Some(walker)) = (variant.kind, self.walker) {
                let mut run = self.runner.plain(workload, &self.jdk.java());
                run.env("JAVA_OPTS_EXTRA", format!("-agentpath:{}", walker.display()));
                costs[index + 1].push(cost::of(&run, self.folder)?);
                continue;
            }
            let mut options = self.traced[index].options(&trace);
            options.extend(variant.jvm_options.iter().map(|option| (*option).to_owned()));
            let run = self.runner.rewritten(workload, &self.traced[index].java(), &parts[index], &options);
            costs[index + 1].push(cost::of(&run, self.folder)?);
        }
        Ok(())
    }

    /// Computes the figures of all runs of a workload, and removes the traces of the last ones.
    fn figures(&self, workload: &Workload, costs: &[Vec<Cost>]) -> Result<Measured> {
        let [plain, traced @ ..] = costs else { anyhow::bail!("nothing was run") };
        let variants = self.options.variants();
        let mut runs = Vec::new();
        for (index, (variant, costs)) in variants.iter().zip(traced).enumerate() {
            let last = costs.last().copied().unwrap_or_default();
            let trace = match variant.kind {
                Kind::Written => Some(self.trace_figures(workload, index, last)?),
                Kind::Discarded | Kind::Walker => None,
            };
            runs.push(Run { cost: median_cost(costs), trace });
        }
        for (index, _) in variants.iter().enumerate().filter(|(_, variant)| variant.kind != Kind::Walker) {
            fs::remove_file(self.trace(workload, index))?;
        }
        Ok(Measured { program: workload.name.to_owned(), plain: median_cost(plain), runs })
    }

    /// The figures of the trace of one kind of run.
    fn trace_figures(&self, workload: &Workload, index: usize, cost: Cost) -> Result<TraceFigures> {
        let path = self.trace(workload, index);
        let sizes = instrumented::sizes(self.tools, &path)?;
        let number = |value: &Value| value.as_u64().context("et-trace info lacks a number");
        let writer = sizes["writerCpuSeconds"].as_f64().context("et-trace info lacks the writer's processor time")?;
        Ok(TraceFigures {
            trace_bytes: number(&sizes["traceBytes"])?,
            event_bytes: number(&sizes["eventBytes"])?,
            packed_bytes: number(&sizes["packedEventBytes"])?,
            events: number(&sizes["events"])?,
            writer_share: writer / cost.processor,
        })
    }
}
