//! `cargo xtask deaths`: compares deaths in traces of real programs with those that the collector reported
//! (docs/evidence/deaths.md).

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use xtask::deaths::{compared, objects};
use xtask::layout::Layout;

use crate::markdown;
use crate::tour::{Tour, TourOptions};

/// Options of `cargo xtask deaths`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The programs, by name
    #[arg(long, value_delimiter = ',', default_value = "h2,javac,xalan")]
    programs: Vec<String>,
    #[command(flatten)]
    tour: TourOptions,
    /// Size of the young generation: a smaller one means more collections and a closer comparison
    #[arg(long, default_value = "4m")]
    young: String,
    /// Which objects to compare: gc for all, gc/N for one in N
    #[arg(long, default_value = "gc")]
    deaths: String,
    /// Keep the traces
    #[arg(long)]
    keep: bool,
}

/// The comparison of one program.
struct Compared {
    name: String,
    seconds: f64,
    report: Value,
}

/// Runs the programs and prints the tables; fails if one failed, or if the collector freed an object that is alive in
/// the trace.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let tour = Tour::new(layout, "deaths", &options.programs, &options.tour, options.keep)?;
    let asked = [format!("-Xmn{}", options.young), format!("-Det.deaths={}", options.deaths)];
    let mut results = Vec::new();
    let notes = tour.run(|stage, workload, name, own| {
        let start = Instant::now();
        let trace = stage.trace(workload, own, &asked)?;
        let seconds = start.elapsed().as_secs_f64();
        results.push(Compared { name: name.to_owned(), seconds, report: compared(&tour.tools, &trace)? });
        Ok(())
    })?;
    let text = tables(options, &results, &notes.lines);
    println!("{text}");
    if let Some(path) = &options.tour.markdown {
        markdown::write(path, &text)?;
    }
    notes.check()?;
    for Compared { name, report, .. } in &results {
        let errors = objects(report, "errors");
        ensure!(errors == 0, "{name}: the collector freed {errors} objects that are alive in the trace");
    }
    Ok(())
}

fn tables(options: &Options, results: &[Compared], notes: &[String]) -> String {
    let Options { tour: TourOptions { scale, .. }, young, deaths, .. } = options;
    let mut text = format!("`cargo xtask deaths --scale {scale} --young {young} --deaths {deaths}`\n\n");
    text += "| program | traced s | collections | objects | dead in both | alive in both | held by definition | errors | held by the collector | share |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for Compared { name, seconds, report } in results {
        let count = |part: &str| report[part].as_u64().unwrap_or(0);
        let kept = objects(report, "kept");
        text += &format!(
            "| {name} | {seconds:.1} | {} | {} | {} | {} | {} | {} | {kept} | {:.3} % |\n",
            count("collections"),
            count("objects"),
            count("freedAtOnce") + count("freedLater"),
            count("alive"),
            objects(report, "byDefinition"),
            objects(report, "errors"),
            kept as f64 * 100.0 / count("objects").max(1) as f64,
        );
    }
    for (list, title) in [
        ("errors", "Freed by the collector, held by the trace: errors"),
        ("byDefinition", "Freed by the collector, held by the trace by definition"),
        ("kept", "Held by the collector at the end, dead in the trace"),
    ] {
        text += &by_cause(results, list, title);
    }
    for note in notes {
        text += &format!("\n{note}\n");
    }
    text
}

/// Sum over a program's groups with the same cause.
#[derive(Default)]
struct Sum<'a> {
    objects: u64,
    through: u64,
    classes: Vec<(u64, &'a str)>,
}

/// A list of groups by cause, with the classes that have most objects.
fn by_cause(results: &[Compared], list: &str, title: &str) -> String {
    let mut text = String::new();
    for Compared { name, report, .. } in results {
        let mut causes: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
        for group in report[list].as_array().into_iter().flatten() {
            let (cause, class) = (group["cause"].as_str().unwrap_or("?"), group["class"].as_str().unwrap_or("?"));
            let count = |part: &str| group[part].as_u64().unwrap_or(0);
            let sum = causes.entry(cause).or_default();
            sum.objects += count("objects");
            sum.through += count("through");
            sum.classes.push((count("objects"), class));
        }
        for (cause, Sum { objects, through, mut classes }) in causes {
            classes.sort_by(|a, b| b.cmp(a));
            let classes: Vec<String> =
                classes.iter().take(4).map(|(count, class)| format!("`{class}` {count}")).collect();
            text += &format!("| {name} | {cause} | {objects} | {through} | {} |\n", classes.join(", "));
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\n{title}:\n\n| program | cause | objects | of which through another | most are |\n|---|---|--:|--:|---|\n{text}"
    )
}
