//! `cargo xtask demo`: traces a small leaking program and shows what the trace reveals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::instrumented::InstrumentedJdk;
use crate::jdks::{self, Jdk};
use crate::layout::{Layout, Tools};
use crate::{build, command, folders};

const MAIN_CLASS: &str = "shop.Main";

/// Builds the example, instruments it and a JDK, runs it and shows the summary of the trace.
pub fn run(layout: &Layout) -> Result<()> {
    let tools = build::for_demo(layout)?;
    let jdk = jdks::compiler(layout)?;
    let javac = jdk.javac().context("the JDK has no javac")?;
    let folder = layout.target.join("demo");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let start = Instant::now();

    let traced_jdk = InstrumentedJdk::of(&tools, &small(&jdk, &folder)?, &[])?;
    let (plain, rewritten) = (folder.join("classes"), folder.join("classes-et"));
    for outdated in [&plain, &rewritten] {
        let _ = fs::remove_dir_all(outdated);
    }
    command::quiet(
        Command::new(javac)
            .args(["-g", "--release", "11", "-encoding", "UTF-8", "-d"])
            .arg(&plain)
            .args(sources(layout)?),
    )?;
    command::quiet(Command::new(tools.et_instrument()).arg(&plain).arg("-o").arg(&rewritten))?;

    let trace = folder.join("leaky-cache.ettrace");
    let _ = fs::remove_file(&trace);
    let mut program = Command::new(traced_jdk.java());
    program.args(traced_jdk.options(&trace)).arg("-cp").arg(&rewritten).arg(MAIN_CLASS);
    heading("The output of the program, unchanged");
    command::run(&mut program)?;

    fs::metadata(&trace).with_context(|| format!("the program ran, but left no trace: {}", trace.display()))?;
    heading("What its objects did");
    command::run(Command::new(tools.et_trace()).arg("summary").arg(&trace))?;
    heading("What to see there");
    let summary = command::read(Command::new(tools.et_trace()).args(["summary", "--json"]).arg(&trace))?;
    println!("{}", leak(&serde_json::from_str(&summary)?)?);

    heading("Try next");
    println!("{}", next_steps(&tools, &trace));
    eprintln!("\ndone in {:.1} s after the build", start.elapsed().as_secs_f64());
    Ok(())
}

/// A run-time image with only the modules that the example needs: creating and instrumenting it takes less time than
/// instrumenting a whole JDK. The JDK itself if it cannot link images.
fn small(jdk: &Jdk, folder: &Path) -> Result<Jdk> {
    let Some(jlink) = jdk.jlink() else { return Ok(jdk.clone()) };
    let home = folder.join("java");
    if let Some(made) = Jdk::at(&home).filter(|made| made.version == jdk.version) {
        return Ok(made);
    }
    folders::remove(&home)?;
    command::quiet(Command::new(jlink).args(["--add-modules", "java.base", "--output"]).arg(&home))?;
    Jdk::at(&home).with_context(|| format!("jlink made no JDK in {}", home.display()))
}

fn sources(layout: &Layout) -> Result<Vec<PathBuf>> {
    let folder = layout.repo.join("examples/leaky-cache/shop");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "java"));
    files.sort();
    Ok(files)
}

/// A description of the leak, with figures from the trace.
fn leak(summary: &Value) -> Result<String> {
    let grew = summary["grew"].as_array().context("the summary does not say what grew")?;
    let lines = grew.iter().find(|line| line["type"] == "shop.Line").context("shop.Line did not grow")?;
    let figure = |of: &Value| of.as_u64().context("no figure");
    let (made, alive) = (figure(&lines["made"]["objects"])?, figure(&lines["atTheEnd"]["objects"])?);
    let (site, middle) = (lines["site"].as_str().unwrap_or_default(), figure(&lines["inTheMiddle"]["objects"])?);
    Ok(format!(
        "The program says that its cache holds 100 pages, of 40 lines each. But \"Grew\" lists shop.Line, allocated\n\
         in {site}: {alive} of {made} are alive at the end, and there were {middle} halfway through\n\
         the run. None ever dies: ProductCache.evict does not remove pages from the index byWord.\n\
         examples/leaky-cache/README.md fixes it and traces it again."
    ))
}

fn heading(text: &str) {
    println!("\n== {text}");
}

fn next_steps(tools: &Tools, trace: &Path) -> String {
    format!(
        "# every record, with the names file that explains its ids\n\
         {et_trace} text {trace} --names {names} | less\n\
         # the same summary for a program\n\
         {et_trace} summary --json {trace}\n\
         # does the trace keep its invariants?\n\
         {et_trace} validate {trace}\n\
         # your own program; cargo xtask build makes all tools, and faster ones\n\
         {et_instrument} run -- java -jar app.jar",
        et_trace = tools.et_trace().display(),
        et_instrument = tools.et_instrument().display(),
        trace = trace.display(),
        names = trace.with_extension("names").display(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_leak_is_told_with_the_figures_of_the_trace() {
        let line = json!({
            "type": "shop.Line", "site": "shop.ProductCache.page:44",
            "made": { "objects": 80_000 }, "atTheEnd": { "objects": 72_345 }, "inTheMiddle": { "objects": 36_001 },
        });
        let told = leak(&json!({ "grew": [{ "type": "byte[]" }, line] })).unwrap();
        let told = told.replace('\n', " ");
        assert!(
            told.contains(
                "allocated in shop.ProductCache.page:44: 72345 of 80000 are alive at the end, and there were 36001"
            ),
            "{told}"
        );
        assert!(leak(&json!({ "grew": [{ "type": "byte[]" }] })).unwrap_err().to_string().contains("did not grow"));
    }
}
