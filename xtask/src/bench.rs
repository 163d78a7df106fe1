//! `cargo xtask bench`: slowdown, rewriting speed and trace size in one run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::cost::{self, Cost};
use crate::instrumented::{self, InstrumentedJdk};
use crate::jdks::Jdk;
use crate::layout::{Layout, Tools};
use crate::workloads::{self, Runner, Workload};
use crate::{build, command, jdks, markdown as docs};

/// Options of `cargo xtask bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The workloads, by name
    #[arg(long, value_delimiter = ',', default_value = "h2,xalan,luindex,antlr4,javac")]
    programs: Vec<String>,
    /// Size of the work in per cent
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// Runs of each kind; the median counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Measure kinds of witnesses instead of kinds of events
    #[arg(long)]
    witness: bool,
    /// Where to write the table as well, such as docs/performance.md's own part
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// How much is hooked.
const VARIANTS: &[Variant] = &[
    Variant { name: "all events", folder: "all", options: &[] },
    Variant { name: "allocations only", folder: "alloc", options: &["--events", "alloc"] },
];

/// The same with `--witness`.
const WITNESSES: &[Variant] = &[
    Variant { name: "no witnesses", folder: "all", options: &[] },
    Variant { name: "witnesses: refs", folder: "refs", options: &["--witness", "refs"] },
    Variant { name: "witnesses: all", folder: "uses", options: &["--witness", "all"] },
];

#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    folder: &'static str,
    options: &'static [&'static str],
}

impl Options {
    fn variants(&self) -> &'static [Variant] {
        if self.witness { WITNESSES } else { VARIANTS }
    }
}

/// What one workload showed.
struct Measured {
    program: String,
    plain: Cost,
    variants: Vec<MeasuredVariant>,
}

struct MeasuredVariant {
    cost: Cost,
    trace_bytes: u64,
    /// Of the events, as the hooks left them.
    event_bytes: u64,
    /// Of the events, packed but not compressed.
    packed_bytes: u64,
    records: u64,
}

/// Megabytes of class files and the seconds of a whole run of the rewriter over them.
#[derive(Default)]
struct Rewriting {
    what: String,
    classes: u64,
    megabytes: f64,
    seconds: f64,
}

impl Rewriting {
    fn of(what: String) -> Self {
        Self { what, ..Self::default() }
    }

    /// Adds a run: its report tells the classes, the clock the time, start and end of the process included.
    fn add(&mut self, rewrite: &mut Command) -> Result<()> {
        let start = Instant::now();
        let output = command::quiet(rewrite.args(["--report", "json", "--quiet"]))?;
        self.seconds += start.elapsed().as_secs_f64();
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("et-instrument --report json did not print JSON")?;
        for artifact in report["artifacts"].as_array().into_iter().flatten() {
            self.classes += artifact["classes"].as_u64().unwrap_or_default();
            self.megabytes += artifact["class_bytes_in"].as_f64().unwrap_or_default() / 1e6;
        }
        Ok(())
    }
}

/// Measures, prints the table, writes the figures.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.repetitions > 0, "--repetitions must be at least 1");
    let programs = workloads::chosen(&options.programs)?;
    let tools = build::run(layout)?;
    let compiler = jdks::compiler(layout)?;
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let folder = layout.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let runner = Runner::new(layout, &folder, options.scale, &compiler, &jdk)?;

    let mut rewriting = vec![rewrite_jdk(&tools, &jdk, &folder)?];
    let traced: Vec<InstrumentedJdk> = options
        .variants()
        .iter()
        .map(|variant| InstrumentedJdk::of(layout, &tools, &jdk, variant.options))
        .collect::<Result<_>>()?;
    let mut measured = Vec::new();
    for workload in &programs {
        if let Some(obstacle) = runner.obstacle(workload, &jdk) {
            eprintln!("skipped {}: {obstacle}", workload.name);
            continue;
        }
        runner.prepare(workload, &jdk.java())?;
        if let Some(jars) = rewrite_jars(&tools, workload, &folder)? {
            rewriting.push(jars);
        }
        measured.push(measure(&runner, workload, &tools, &jdk, &traced, &folder, options)?);
    }

    let start = start_up(layout, &compiler, &jdk, &traced[0], &folder, options.repetitions)?;

    let table = markdown(options, &jdk, &measured, start, &rewriting);
    println!("{table}");
    if let Some(path) = &options.markdown {
        docs::write(path, &table)?;
    }
    let figures = folder.join(format!("jdk-{}-scale-{}.json", jdk.version, options.scale));
    fs::write(&figures, format!("{:#}\n", as_json(options, &jdk, &measured, start, &rewriting)))?;
    eprintln!("figures: {}", figures.display());
    Ok(())
}

fn rewrite_jdk(tools: &Tools, jdk: &Jdk, folder: &Path) -> Result<Rewriting> {
    let out = folder.join("jdk-rewritten");
    let _ = fs::remove_dir_all(&out);
    let mut rewriting = Rewriting::of(format!("JDK {}: a whole instrumented copy", jdk.version));
    rewriting
        .add(Command::new(tools.et_instrument()).arg("jdk").arg("--java-home").arg(&jdk.home).arg("-o").arg(&out))?;
    fs::remove_dir_all(&out)?;
    Ok(rewriting)
}

fn rewrite_jars(tools: &Tools, workload: &Workload, folder: &Path) -> Result<Option<Rewriting>> {
    let jars = workload.installed_jars();
    if jars.is_empty() {
        return Ok(None);
    }
    let mut rewriting = Rewriting::of(format!("{}'s jars, one by one", workload.name));
    let out = folder.join("rewritten.jar");
    for jar in &jars {
        let _ = fs::remove_file(&out);
        rewriting.add(Command::new(tools.et_instrument()).arg(jar).arg("-o").arg(&out))?;
    }
    let _ = fs::remove_file(&out);
    Ok(Some(rewriting))
}

/// Plain and rewritten runs take turns, so that a busy spell of the machine hits all alike.
fn measure(
    runner: &Runner,
    workload: &Workload,
    tools: &Tools,
    jdk: &Jdk,
    traced: &[InstrumentedJdk],
    folder: &Path,
    options: &Options,
) -> Result<Measured> {
    let (variants, repetitions) = (options.variants(), options.repetitions);
    let trace = |variant: &Variant| folder.join(format!("{}-{}.ettrace", workload.name, variant.folder));
    let mut parts = Vec::new();
    for variant in variants {
        let into = folder.join("rewritten").join(workload.name).join(variant.folder);
        parts.push(runner.instrument(workload, tools, &into, variant.options)?);
    }
    let mut costs = vec![Vec::new(); variants.len() + 1];
    for repetition in 1..=repetitions {
        eprintln!("{}: run {repetition} of {repetitions}", workload.name);
        costs[0].push(cost::of(&runner.plain(workload, &jdk.java()), folder)?);
        for (index, variant) in variants.iter().enumerate() {
            let path = trace(variant);
            let _ = fs::remove_file(&path);
            let options = traced[index].options(&path);
            let run = runner.rewritten(workload, &traced[index].java(), &parts[index], &options);
            costs[index + 1].push(cost::of(&run, folder)?);
        }
    }
    let mut medians = costs.iter().map(|costs| median_cost(costs));
    let plain = medians.next().unwrap_or_default();
    let mut measured = Vec::new();
    for (variant, cost) in variants.iter().zip(medians) {
        let path = trace(variant);
        let summary = instrumented::summary(tools, &path, 1)?;
        let number = |value: &serde_json::Value| value.as_u64().context("the summary lacks a number");
        let (trace_bytes, event_bytes) = (number(&summary["traceBytes"])?, number(&summary["eventBytes"])?);
        let packed_bytes = number(&summary["packedEventBytes"])?;
        let records = number(&summary["records"]["total"])?;
        fs::remove_file(&path)?;
        measured.push(MeasuredVariant { cost, trace_bytes, event_bytes, packed_bytes, records });
    }
    Ok(Measured { program: workload.name.to_owned(), plain, variants: measured })
}

fn median_cost(costs: &[Cost]) -> Cost {
    let of = |value: fn(&Cost) -> f64| median(costs.iter().map(value).collect());
    Cost { seconds: of(|cost| cost.seconds), processor: of(|cost| cost.processor), resident: of(|cost| cost.resident) }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// Start-up: a program that does nothing, plain, on the copy with its hooks off, and traced.
fn start_up(
    layout: &Layout,
    compiler: &Jdk,
    jdk: &Jdk,
    traced: &InstrumentedJdk,
    folder: &Path,
    repetitions: usize,
) -> Result<[f64; 3]> {
    let classes = folder.join("nothing");
    fs::create_dir_all(&classes)?;
    let source = layout.target.join("bench/Nothing.java");
    fs::write(&source, "public class Nothing { public static void main(String[] args) { System.out.println(); } }\n")?;
    command::quiet(
        Command::new(compiler.home.join("bin/javac")).args(["--release", "11", "-d"]).arg(&classes).arg(&source),
    )?;
    let trace = folder.join("nothing.ettrace");
    let mut seconds = [const { Vec::new() }; 3];
    // They are short, and the first of each finds nothing in the page cache.
    for _ in 0..repetitions * 5 + 1 {
        let mut java = [Command::new(jdk.java()), Command::new(traced.java()), Command::new(traced.java())];
        java[2].args(traced.options(&trace));
        for (java, seconds) in java.iter_mut().zip(&mut seconds) {
            seconds.push(cost::of(java.arg("-cp").arg(&classes).arg("Nothing"), folder)?.seconds);
        }
    }
    fs::remove_file(&trace)?;
    Ok(seconds.map(median))
}

/// The mean of ratios.
fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

fn markdown(options: &Options, jdk: &Jdk, measured: &[Measured], start: [f64; 3], rewriting: &[Rewriting]) -> String {
    let mut text = format!(
        "`cargo xtask bench{} --programs {} --jdk {} --scale {} --repetitions {}`, JDK {}, medians.\n",
        if options.witness { " --witness" } else { "" },
        options.programs.join(","),
        options.jdk,
        options.scale,
        options.repetitions,
        jdk.version
    );
    for (index, variant) in options.variants().iter().enumerate() {
        text += &format!(
            "\n| {} | plain s | traced s | slowdown | plain MB | traced MB | M records | M records/s | bytes/record in memory | packed | on disk | MB/s to disk |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            variant.name
        );
        for program in measured {
            let (plain, MeasuredVariant { cost, trace_bytes, event_bytes, packed_bytes, records }) =
                (program.plain, &program.variants[index]);
            let per_record = |bytes: u64| bytes as f64 / (*records).max(1) as f64;
            text += &format!(
                "| {} | {:.2} | {:.2} | {:.1}x | {:.0} | {:.0} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.1} |\n",
                program.program,
                plain.seconds,
                cost.seconds,
                cost.seconds / plain.seconds,
                plain.resident / 1e6,
                cost.resident / 1e6,
                *records as f64 / 1e6,
                *records as f64 / 1e6 / cost.seconds,
                per_record(*event_bytes),
                per_record(*packed_bytes),
                per_record(*trace_bytes),
                *trace_bytes as f64 / 1e6 / cost.seconds
            );
        }
        let mean = geometric_mean(measured.iter().map(|one| one.variants[index].cost.seconds / one.plain.seconds));
        text += &format!("| geometric mean | | | {mean:.2}x | | | | | | | | |\n");
    }
    let [plain, off, on] = start.map(|seconds| seconds * 1e3);
    text += "\n| a program that does nothing | ms | over plain |\n|---|--:|--:|\n";
    for (what, time) in [("plain", plain), ("instrumented JDK, no agent", off), ("traced", on)] {
        text += &format!("| {what} | {time:.0} | {:.1}x |\n", time / plain);
    }
    text += "\n| rewriting | classes | MB of classes | s | MB/s |\n|---|--:|--:|--:|--:|\n";
    for row in rewriting {
        let rate = row.megabytes / row.seconds;
        text +=
            &format!("| {} | {} | {:.1} | {:.2} | {rate:.1} |\n", row.what, row.classes, row.megabytes, row.seconds);
    }
    text
}

fn as_json(
    options: &Options,
    jdk: &Jdk,
    measured: &[Measured],
    start: [f64; 3],
    rewriting: &[Rewriting],
) -> serde_json::Value {
    let variant = |(variant, kind): (&MeasuredVariant, &Variant)| json!({ "name": kind.name, "seconds": variant.cost.seconds, "residentBytes": variant.cost.resident, "traceBytes": variant.trace_bytes, "eventBytes": variant.event_bytes, "packedEventBytes": variant.packed_bytes, "records": variant.records });
    let program = |program: &Measured| {
        let variants: Vec<_> = program.variants.iter().zip(options.variants()).map(variant).collect();
        json!({ "name": program.program, "plainSeconds": program.plain.seconds, "plainResidentBytes": program.plain.resident, "variants": variants })
    };
    let row = |row: &Rewriting| json!({ "what": row.what, "classes": row.classes, "megabytes": row.megabytes, "seconds": row.seconds });
    json!({
        "jdk": jdk.version,
        "scale": options.scale,
        "repetitions": options.repetitions,
        "startUpSeconds": start,
        "programs": measured.iter().map(program).collect::<Vec<_>>(),
        "rewriting": rewriting.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn means_of_ratios() {
        assert!((geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_table_has_a_row_for_each_program() {
        let options =
            Options { programs: vec!["h2".into()], scale: 5, repetitions: 1, jdk: 17, witness: false, markdown: None };
        let jdk = Jdk { home: PathBuf::new(), version: "17.0.1".into(), feature: 17 };
        let cost = |seconds| Cost { seconds, processor: seconds, resident: 3e8 };
        let variant = |seconds| MeasuredVariant {
            cost: cost(seconds),
            trace_bytes: 30_000_000,
            event_bytes: 40_000_000,
            packed_bytes: 35_000_000,
            records: 10_000_000,
        };
        let measured =
            [Measured { program: "h2".into(), plain: cost(2.0), variants: vec![variant(8.0), variant(2.5)] }];
        let rewriting = [Rewriting { what: "h2's jars".into(), classes: 7, megabytes: 3.0, seconds: 0.5 }];
        let table = markdown(&options, &jdk, &measured, [0.04, 0.06, 0.1], &rewriting);
        assert!(
            table.contains("| h2 | 2.00 | 8.00 | 4.0x | 300 | 300 | 10.0 | 1.2 | 4.00 | 3.50 | 3.00 | 3.8 |"),
            "{table}"
        );
        assert!(table.contains("| geometric mean | | | 1.25x |"), "{table}");
        assert!(table.contains("| traced | 100 | 2.5x |"), "{table}");
        assert!(table.contains("| h2's jars | 7 | 3.0 | 0.50 | 6.0 |"), "{table}");
    }
}
