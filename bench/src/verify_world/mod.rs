//! `cargo xtask verify-world`: instruments every class of several JDKs and of hundreds of jars, and lets a JVM verify
//! them.

mod jars;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, Tools};
use xtask::linking::{Comparison, Linker, Outcomes};
use xtask::{build, packages};

use crate::markdown;

use jars::RewrittenJar;

/// Options of `cargo xtask verify-world`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Java versions whose classes to instrument, and on which to link the classes of the jars
    #[arg(long, value_delimiter = ',', default_value = "11,17,21,25")]
    jdk: Vec<u32>,
    /// Leave out the JDKs' own classes
    #[arg(long)]
    no_jdks: bool,
    /// Leave out the jars
    #[arg(long, conflicts_with = "no_jdks")]
    no_jars: bool,
    /// Use these jars instead of those of Debian packages
    #[arg(long, value_delimiter = ',', conflicts_with = "no_jars")]
    jars: Vec<PathBuf>,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Also write the tables to this file
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// Number of jars linked in one JVM: enough to amortize its startup, but limited by its memory.
const JARS_AT_ONCE: usize = 40;

/// The classes of a JDK.
struct JdkResult {
    version: String,
    rewriting: Rewriting,
    comparison: Comparison,
    seconds: f64,
}

/// Sums from the report of et-instrument.
#[derive(Clone, Debug, Default)]
struct Rewriting {
    classes: u64,
    methods: u64,
    hooks: u64,
    shortfalls: Vec<Shortfall>,
    skipped: Vec<String>,
}

/// A method that did not get all hooks.
#[derive(Clone, Debug)]
struct Shortfall {
    hooks: String,
    why: String,
}

impl Rewriting {
    fn of_report(report: &serde_json::Value) -> Self {
        let mut sum = Self::default();
        for artifact in report["artifacts"].as_array().into_iter().flatten() {
            let number = |name: &str| artifact[name].as_u64().unwrap_or_default();
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            sum.classes += number("classes");
            sum.methods += number("methods");
            let hooks = artifact["hooks"].as_object().into_iter().flatten();
            sum.hooks += hooks.filter_map(|(_, count)| count.as_u64()).sum::<u64>();
            for shortfall in artifact["shortfalls"].as_array().into_iter().flatten() {
                sum.shortfalls.push(Shortfall { hooks: text(&shortfall["hooks"]), why: text(&shortfall["why"]) });
            }
            for skip in artifact["skipped"].as_array().into_iter().flatten() {
                sum.skipped.push(format!("{}: {}", text(&skip["entry"]), text(&skip["reason"])));
            }
        }
        sum
    }
}

/// Instruments, links, and prints the tables; fails if a class failed.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let from_debian = !options.no_jars && options.jars.is_empty();
    let packages = jars::packages(layout)?;
    if from_debian {
        packages::ensure(&packages)?;
    }
    let tools = build::unless(layout, options.no_build)?;
    let compiler = jdks::compiler(layout)?;
    if let Err(error) = jdks::fetch_missing(layout) {
        eprintln!("note: some JDKs are missing: {error:#}");
    }
    let mut notes = Vec::new();
    let mut found: Vec<Jdk> = Vec::new();
    for feature in &options.jdk {
        match jdks::of_feature(layout, *feature) {
            Some(jdk) => found.push(jdk),
            None => notes.push(format!("JDK {feature} skipped: {}", jdks::missing(*feature))),
        }
    }
    let folder = layout.target.join("verify-world");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let linker = Linker::new(layout, &compiler, &folder)?;

    let mut of_jdks = Vec::new();
    if !options.no_jdks {
        for jdk in &found {
            of_jdks.push(whole_jdk(&tools, &linker, jdk)?);
        }
    }
    let mut of_jars = Vec::new();
    let mut jars = Vec::new();
    if !options.no_jars {
        let originals = if from_debian { jars::of_packages(&packages)? } else { options.jars.clone() };
        jars = jars::rewrite_all(&tools, &originals, &folder, &mut notes)?;
        for jdk in &found {
            of_jars.push(all_jars(&tools, &linker, jdk, &jars)?);
        }
    }
    let text = table::markdown(&of_jdks, &jars, &of_jars, &notes);
    println!("{text}");
    if let Some(path) = &options.markdown {
        markdown::write(path, &text)?;
    }
    fs::remove_dir_all(&folder)?;
    let failures: usize = of_jdks.iter().map(|jdk| jdk.comparison.failures.len()).sum::<usize>()
        + of_jars.iter().map(|result| result.comparison.failures.len()).sum::<usize>();
    ensure!(failures == 0, "{failures} classes failed");
    ensure!(jars.iter().all(|jar| jar.failure.is_none()), "some jars could not be instrumented");
    Ok(())
}

fn whole_jdk(tools: &Tools, linker: &Linker, jdk: &Jdk) -> Result<JdkResult> {
    eprintln!("the classes of JDK {}", jdk.version);
    let start = Instant::now();
    let traced_jdk = InstrumentedJdk::of(tools, jdk, &[])?;
    let comparison = linker.jdk(&jdk.java())?.compare(&linker.jdk(&traced_jdk.java())?);
    say(jdk, &comparison);
    Ok(JdkResult {
        version: jdk.version.clone(),
        rewriting: Rewriting::of_report(&traced_jdk.report()?),
        comparison,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Prints the outcome of a part immediately, because the whole takes long.
fn say(jdk: &Jdk, comparison: &Comparison) {
    let (linked, failures) = (comparison.all_linked(), &comparison.failures);
    eprintln!("JDK {}: {linked} classes link, {} failures", jdk.version, failures.len());
    for failure in failures.iter().take(10) {
        eprintln!("  {} {}: {} (plain: {})", failure.jar, failure.class, failure.after, failure.before);
    }
}

/// The classes of the jars on one JDK.
struct JarsResult {
    version: String,
    feature: u32,
    comparison: Comparison,
    seconds: f64,
}

fn all_jars(tools: &Tools, linker: &Linker, jdk: &Jdk, jars: &[RewrittenJar]) -> Result<JarsResult> {
    let start = Instant::now();
    let traced_jdk = InstrumentedJdk::of(tools, jdk, &[])?;
    let whole: Vec<&RewrittenJar> = jars.iter().filter(|jar| jar.failure.is_none()).collect();
    let paths =
        |of: fn(&RewrittenJar) -> &PathBuf| -> Vec<PathBuf> { whole.iter().map(|jar| of(jar).clone()).collect() };
    let link = |java: &Path, all: &[PathBuf]| -> Result<Outcomes> {
        let mut outcomes = Outcomes::default();
        for some in all.chunks(JARS_AT_ONCE) {
            outcomes.extend(linker.jars(java, some, all)?);
            eprintln!("JDK {}: linked or refused {} classes of jars so far", jdk.version, outcomes.len());
        }
        Ok(outcomes)
    };
    let plain = link(&jdk.java(), &paths(|jar| &jar.plain))?;
    let comparison = plain.compare(&link(&traced_jdk.java(), &paths(|jar| &jar.rewritten))?);
    say(jdk, &comparison);
    Ok(JarsResult {
        version: jdk.version.clone(),
        feature: jdk.feature,
        comparison,
        seconds: start.elapsed().as_secs_f64(),
    })
}
