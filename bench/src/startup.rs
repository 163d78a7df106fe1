//! `cargo xtask startup`: measures the startup time of Hello World, plain and traced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, Tools};
use xtask::{build, command};

use crate::bench::figures::median;
use crate::cost::{self, Cost};
use crate::markdown;

const PROGRAM: &str =
    "public class Hello { public static void main(String[] args) { System.out.println(\"Hello World\"); } }\n";

/// Options of `cargo xtask startup`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Java versions to run on
    #[arg(long, value_delimiter = ',', default_value = "17,25")]
    jdk: Vec<u32>,
    /// Runs of each kind; the median counts
    #[arg(long, default_value_t = 21)]
    repetitions: usize,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Also write the table to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// The kinds of runs, plain ones first.
const KINDS: [&str; 5] =
    ["plain", "instrumented copy", "with the options of et.args", "with the agent, hooks off", "traced"];

/// Wall and processor time in seconds, medians, of each kind.
struct Measured {
    version: String,
    seconds: [f64; KINDS.len()],
    processor: [f64; KINDS.len()],
}

/// Measures and prints the table.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    ensure!(options.repetitions > 0, "--repetitions must be at least 1");
    let tools = build::unless(layout, options.no_build)?;
    let folder = layout.target.join("startup");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let classes = compiled(layout, &folder)?;
    let mut measured = Vec::new();
    for feature in &options.jdk {
        let jdk = jdks::of_feature(layout, *feature).with_context(|| jdks::missing(*feature))?;
        measured.push(measure(&tools, &jdk, &classes, &folder, options.repetitions)?);
    }
    let table = table(options, &measured);
    println!("{table}");
    options.markdown.as_ref().map_or(Ok(()), |path| markdown::write(path, &table))
}

fn compiled(layout: &Layout, folder: &Path) -> Result<PathBuf> {
    let (source, classes) = (folder.join("Hello.java"), folder.join("classes"));
    fs::create_dir_all(&classes).with_context(|| format!("cannot make {}", classes.display()))?;
    fs::write(&source, PROGRAM).with_context(|| format!("cannot write {}", source.display()))?;
    let javac = jdks::compiler(layout)?.home.join("bin/javac");
    command::quiet(Command::new(javac).args(["--release", "11", "-d"]).arg(&classes).arg(&source))?;
    Ok(classes)
}

/// The kinds alternate, so that other load on the machine affects all alike.
fn measure(tools: &Tools, jdk: &Jdk, classes: &Path, folder: &Path, repetitions: usize) -> Result<Measured> {
    let copy = InstrumentedJdk::of(tools, jdk, &[])?;
    let trace = folder.join("hello.ettrace");
    let file = copy.home.join("et.args");
    let args = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let flags: Vec<&str> = args.lines().filter(|line| line.starts_with("-XX:")).collect();
    let mut costs: [Vec<Cost>; KINDS.len()] = Default::default();
    // The first run of each kind warms the page cache.
    for repetition in 0..=repetitions {
        let mut java = [jdk.java(), copy.java(), copy.java(), copy.java(), copy.java()].map(Command::new);
        java[2].args(&flags);
        java[3].args(copy.options(&trace)).arg(format!("-Det.start=file:{}", folder.join("never").display()));
        java[4].args(copy.options(&trace));
        for (java, costs) in java.iter_mut().zip(&mut costs) {
            let cost = cost::of(java.arg("-cp").arg(classes).arg("Hello"), folder)?;
            if repetition > 0 {
                costs.push(cost);
            }
        }
    }
    fs::remove_file(&trace).with_context(|| format!("cannot remove {}", trace.display()))?;
    let of = |value: fn(&Cost) -> f64| costs.each_ref().map(|costs| median(costs.iter().map(value).collect()));
    let (seconds, processor) = (of(|cost| cost.seconds), of(|cost| cost.processor));
    Ok(Measured { version: jdk.version.clone(), seconds, processor })
}

fn table(options: &Options, measured: &[Measured]) -> String {
    let jdks: Vec<String> = options.jdk.iter().map(u32::to_string).collect();
    let mut text = format!(
        "`cargo xtask startup --jdk {} --repetitions {}`, medians.\n\n\
         | JDK | Hello World | ms | over plain | CPU ms | over plain |\n|---|---|--:|--:|--:|--:|\n",
        jdks.join(","),
        options.repetitions
    );
    for Measured { version, seconds, processor } in measured {
        for (index, kind) in KINDS.iter().enumerate() {
            let column = |times: &[f64]| format!("{:.0} | {:.1}x", times[index] * 1e3, times[index] / times[0]);
            text += &format!("| {version} | {kind} | {} | {} |\n", column(seconds), column(processor));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_row_and_its_ratio_to_plain() {
        let options = Options { jdk: vec![17], repetitions: 5, no_build: true, markdown: None };
        let measured = Measured {
            version: "17.0.1".into(),
            seconds: [0.04, 0.05, 0.05, 0.06, 0.1],
            processor: [0.05, 0.06, 0.06, 0.08, 0.16],
        };
        let table = table(&options, &[measured]);
        assert!(table.contains("`cargo xtask startup --jdk 17 --repetitions 5`"), "{table}");
        assert!(table.contains("| 17.0.1 | plain | 40 | 1.0x | 50 | 1.0x |"), "{table}");
        assert!(table.contains("| 17.0.1 | traced | 100 | 2.5x | 160 | 3.2x |"), "{table}");
        assert_eq!(table.lines().filter(|line| line.starts_with("| 17.0.1")).count(), KINDS.len());
    }
}
