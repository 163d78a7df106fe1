//! `cargo xtask exploring`: measures how long the explorer takes to answer, on traces of a given number of objects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask::instrumented::InstrumentedJdk;
use xtask::layout::{Layout, Tools};
use xtask::{build, command, jdks};

/// Options of `cargo xtask exploring`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Million objects of the traces, one trace each
    #[arg(long, value_delimiter = ',', default_value = "1,10")]
    objects: Vec<f64>,
    /// Clicks of a session
    #[arg(long, default_value_t = 200)]
    clicks: usize,
    /// Java version to run on
    #[arg(long, default_value_t = 17)]
    jdk: u32,
    /// Do not build the tools: use those built last
    #[arg(long)]
    no_build: bool,
    /// Keep the traces with their tables, and use those kept by an earlier call
    #[arg(long)]
    keep: bool,
}

/// Traces, lets the session click, and prints what it says.
pub fn run(layout: &Layout, options: &Options) -> Result<()> {
    let tools = build::unless(layout, options.no_build)?;
    let folder = layout.target.join("exploring");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for millions in &options.objects {
        let trace = folder.join(format!("orders-{millions}.ettrace"));
        if !(options.keep && trace.exists()) {
            traced(layout, &tools, options, *millions, &trace)?;
        }
        println!("\n{millions} million objects, {} MB", trace.metadata()?.len() / 1_000_000);
        let mut session = command::cargo(&layout.repo);
        session.args(["run", "--quiet", "--locked", "--release", "-p", "et-explorer", "--example", "session", "--"]);
        command::run(session.arg(&trace).arg(options.clicks.to_string()))?;
        let lives = et_system::files::lives_of(&trace);
        for file in fs::read_dir(&lives).into_iter().flatten().flatten() {
            println!("{:>10} MB {}", file.metadata()?.len() / 1_000_000, file.file_name().display());
        }
        if !options.keep {
            fs::remove_file(&trace)?;
            let _ = fs::remove_dir_all(&lives);
        }
    }
    Ok(())
}

/// Traces `bench/java/Orders.java`.
fn traced(layout: &Layout, tools: &Tools, options: &Options, millions: f64, trace: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(et_system::files::lives_of(trace));
    let _ = fs::remove_file(trace);
    let jdk = jdks::of_feature(layout, options.jdk).with_context(|| jdks::missing(options.jdk))?;
    let (classes, rewritten): (PathBuf, PathBuf) = (trace.with_extension("classes"), trace.with_extension("rewritten"));
    for folder in [&classes, &rewritten] {
        let _ = fs::remove_dir_all(folder);
    }
    fs::create_dir_all(&classes)?;
    let mut compile = jdks::compiler(layout)?.compile()?;
    compile.args(["-g", "--release", "17", "-encoding", "UTF-8", "-d"]).arg(&classes);
    command::quiet(compile.arg(layout.repo.join("bench/java/Orders.java")))?;
    command::quiet(Command::new(tools.et_instrument()).arg(&classes).arg("-o").arg(&rewritten))?;
    let java = InstrumentedJdk::of(tools, &jdk, &[])?;
    let mut run = Command::new(java.java());
    run.args(java.options(trace)).arg("-cp").arg(&rewritten).arg("Orders").arg(millions.to_string());
    command::run(&mut run)
}
