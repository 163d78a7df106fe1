//! `cargo xtask completeness`: compares the objects in traces with the VM's own count.
//!
//! In the same run, the runtime traces and the agent in `tests/counter` counts (docs/evidence/completeness.md).

mod table;

use anyhow::{Result, ensure};

use xtask::completeness::{compare, counter, counter_option};
use xtask::layout::Layout;

use crate::markdown;
use crate::tour::{Tour, TourOptions};

/// Options of `cargo xtask completeness`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The programs, by name; all by default
    #[arg(long, value_delimiter = ',')]
    programs: Vec<String>,
    #[command(flatten)]
    tour: TourOptions,
    /// Show where the missing objects are allocated; slower
    #[arg(long)]
    stacks: bool,
    /// Number of classes to list for each program
    #[arg(long, default_value_t = 15)]
    top: usize,
    /// Fail if less than this percentage of the objects is recorded
    #[arg(long)]
    at_least: Option<f64>,
}

/// Runs the programs and prints the tables.
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
