//! `cargo xtask bench`: slowdown, rewriting speed and trace size in one run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

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
    /// Where to write the table as well, such as docs/performance.md's own part
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// How much is hooked.
const VARIANTS: [Variant; 2] = [
    Variant { name: "all events", folder: "all", options: &[] },
    Variant { name: "allocations only", folder: "alloc", options: &["--events", "alloc"] },
];

#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    folder: &'static str,
    options: &'static [&'static str],
}

/// What one workload showed.
struct Measured {
    program: String,
    plain: f64,
    variants: Vec<MeasuredVariant>,
}

struct MeasuredVariant {
    seconds: f64,
    trace_bytes: u64,
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
    let traced: Vec<InstrumentedJdk> = VARIANTS
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
        measured.push(measure(&runner, workload, &tools, &jdk, &traced, &folder, options.repetitions)?);
    }

    let table = markdown(options, &jdk, &measured, &rewriting);
    println!("{table}");
    if let Some(path) = &options.markdown {
        docs::write(path, &table)?;
    }
    let figures = folder.join(format!("jdk-{}-scale-{}.json", jdk.version, options.scale));
    fs::write(&figures, format!("{:#}\n", as_json(options, &jdk, &measured, &rewriting)))?;
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
    repetitions: usize,
) -> Result<Measured> {
    let trace = |variant: &Variant| folder.join(format!("{}-{}.ettrace", workload.name, variant.folder));
    let mut parts = Vec::new();
    for variant in &VARIANTS {
        let into = folder.join("rewritten").join(workload.name).join(variant.folder);
        parts.push(runner.instrument(workload, tools, &into, variant.options)?);
    }
    let mut seconds = vec![Vec::new(); VARIANTS.len() + 1];
    for repetition in 1..=repetitions {
        eprintln!("{}: run {repetition} of {repetitions}", workload.name);
        seconds[0].push(timed(&mut runner.plain(workload, &jdk.java()))?);
        for (index, variant) in VARIANTS.iter().enumerate() {
            let path = trace(variant);
            let _ = fs::remove_file(&path);
            let options = traced[index].options(&path);
            seconds[index + 1].push(timed(&mut runner.rewritten(
                workload,
                &traced[index].java(),
                &parts[index],
                &options,
            ))?);
        }
    }
    let mut medians = seconds.into_iter().map(median);
    let plain = medians.next().unwrap_or_default();
    let mut variants = Vec::new();
    for (variant, seconds) in VARIANTS.iter().zip(medians) {
        let path = trace(variant);
        let trace_bytes = fs::metadata(&path).with_context(|| format!("no trace {}", path.display()))?.len();
        let records = instrumented::records(tools, &path)?;
        fs::remove_file(&path)?;
        variants.push(MeasuredVariant { seconds, trace_bytes, records });
    }
    Ok(Measured { program: workload.name.to_owned(), plain, variants })
}

fn timed(run: &mut Command) -> Result<f64> {
    let start = Instant::now();
    command::quiet(run)?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn markdown(options: &Options, jdk: &Jdk, measured: &[Measured], rewriting: &[Rewriting]) -> String {
    let mut text = format!(
        "`cargo xtask bench --jdk {} --scale {} --repetitions {}`, JDK {}, medians of wall time.\n\n",
        options.jdk, options.scale, options.repetitions, jdk.version
    );
    text += "| program | plain s | all events s | slowdown | M records | bytes/record | allocations only s | slowdown | M records | bytes/record |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for program in measured {
        text += &format!("| {} | {:.2} ", program.program, program.plain);
        for variant in &program.variants {
            text += &format!(
                "| {:.2} | {:.1}x | {:.1} | {:.2} ",
                variant.seconds,
                variant.seconds / program.plain,
                variant.records as f64 / 1e6,
                variant.trace_bytes as f64 / variant.records.max(1) as f64
            );
        }
        text += "|\n";
    }
    text += "\n| rewriting | classes | MB of classes | s | MB/s |\n|---|--:|--:|--:|--:|\n";
    for row in rewriting {
        let rate = row.megabytes / row.seconds;
        text +=
            &format!("| {} | {} | {:.1} | {:.2} | {rate:.1} |\n", row.what, row.classes, row.megabytes, row.seconds);
    }
    text
}

fn as_json(options: &Options, jdk: &Jdk, measured: &[Measured], rewriting: &[Rewriting]) -> serde_json::Value {
    let variant = |(variant, kind): (&MeasuredVariant, &Variant)| json!({ "name": kind.name, "seconds": variant.seconds, "traceBytes": variant.trace_bytes, "records": variant.records });
    let program = |program: &Measured| {
        let variants: Vec<_> = program.variants.iter().zip(&VARIANTS).map(variant).collect();
        json!({ "name": program.program, "plainSeconds": program.plain, "variants": variants })
    };
    let row = |row: &Rewriting| json!({ "what": row.what, "classes": row.classes, "megabytes": row.megabytes, "seconds": row.seconds });
    json!({
        "jdk": jdk.version,
        "scale": options.scale,
        "repetitions": options.repetitions,
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
    fn the_table_has_a_row_for_each_program() {
        let options = Options { programs: vec![], scale: 5, repetitions: 1, jdk: 17, markdown: None };
        let jdk = Jdk { home: PathBuf::new(), version: "17.0.1".into(), feature: 17 };
        let variant = |seconds| MeasuredVariant { seconds, trace_bytes: 300, records: 100 };
        let measured = [Measured { program: "h2".into(), plain: 2.0, variants: vec![variant(8.0), variant(2.5)] }];
        let rewriting = [Rewriting { what: "h2's jars".into(), classes: 7, megabytes: 3.0, seconds: 0.5 }];
        let table = markdown(&options, &jdk, &measured, &rewriting);
        assert!(table.contains("| h2 | 2.00 | 8.00 | 4.0x | 0.0 | 3.00 | 2.50 | 1.2x | 0.0 | 3.00 |"), "{table}");
        assert!(table.contains("| h2's jars | 7 | 3.0 | 0.50 | 6.0 |"), "{table}");
    }
}
