//! `cargo xtask completeness`: what a trace holds of the objects that the VM itself says it made.
//!
//! In one and the same run the runtime traces and `tests/counter` counts (docs/evidence/completeness.md).

mod counts;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use crate::instrumented;
use crate::jdks::Jdk;
use crate::layout::Layout;
use crate::programs::{Tour, TourOptions};
use crate::{command, markdown};

pub use counts::{Comparison, Counted, Recorded};

/// Options of `cargo xtask completeness`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The programs, by name; all by default
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    #[command(flatten)]
    tour: TourOptions,
    /// Show where the missing objects are made; slower
    #[arg(long)]
    stacks: bool,
    /// How many classes to list for each program
    #[arg(long, default_value_t = 15)]
    top: usize,
    /// An error if less than this share of the objects, in per cent, is recorded
    #[arg(long)]
    at_least: Option<f64>,
}

/// Compiles the agent that counts.
pub fn counter(layout: &Layout, compiler: &Jdk) -> Result<PathBuf> {
    let folder = layout.target.join("counter");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Tests that run at the same time, in threads or processes, share it; none may find half a library.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let library = folder.join(format!("libcounter-{}-{number}.so", std::process::id()));
    let include = compiler.home.join("include");
    ensure!(include.join("jvmti.h").is_file(), "{} has no jvmti.h: the counting agent needs it", include.display());
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread"]);
    cc.arg("-I").arg(&include).arg("-I").arg(include.join("linux"));
    command::quiet(cc.arg("-o").arg(&library).arg(layout.repo.join("tests/counter/counter.c")))?;
    let finished = folder.join("libcounter.so");
    fs::rename(&library, &finished).with_context(|| format!("cannot write {}", finished.display()))?;
    Ok(finished)
}

/// The option that loads the agent; it has to come before those that load the runtime.
pub fn counter_option(counter: &Path, counts: &Path, stacks: bool) -> String {
    format!("-agentpath:{}={}{}", counter.display(), counts.display(), if stacks { ",stacks" } else { "" })
}

/// Reads both sides of a run.
pub fn compare(tools: &crate::layout::Tools, trace: &Path, counts: &Path) -> Result<Comparison> {
    let counted =
        Counted::parse(&fs::read_to_string(counts).with_context(|| format!("no counts in {}", counts.display()))?)?;
    let recorded = Recorded::of_summary(&instrumented::summary(tools, trace, usize::MAX)?)?;
    Ok(Comparison::of(&counted, &recorded))
}

/// Runs them all and prints the tables.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let tour = Tour::new(layout, "completeness", &options.programs, &options.tour, false)?;
    let counter = counter(layout, &tour.compiler)?;
    let mut results = Vec::new();
    let notes = tour.run(|stage, workload, name, own| {
        let counts = own.join("counts.tsv");
        let agents = [counter_option(&counter, &counts, options.stacks)];
        let comparison = compare(&tour.tools, &stage.trace(workload, own, &agents)?, &counts)?;
        eprintln!("{name}: {}", table::share(comparison.recorded(), comparison.made()));
        results.push((workload.name, stage.jdk.version.clone(), comparison));
        Ok(())
    })?;
    let text = table::overview(options, &results, &notes.lines);
    println!("{text}{}", table::by_class(options, &results));
    if let Some(path) = &options.tour.markdown {
        markdown::write(path, &text)?;
    }
    notes.check()?;
    if let Some(least) = options.at_least {
        for (program, version, comparison) in &results {
            let percent = comparison.recorded() as f64 * 100.0 / comparison.made().max(1) as f64;
            ensure!(percent >= least, "{program} on JDK {version}: only {percent:.2} % of the objects are recorded");
        }
    }
    Ok(())
}
