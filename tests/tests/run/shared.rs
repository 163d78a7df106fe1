//! The cache, used by several runs and emptied.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use xtask::command;

use crate::Case;
use crate::bench::{Bench, text};
use crate::java::MAIN;

pub const CASES: &[(&str, Case)] =
    &[("two_runs_with_an_empty_cache", two_runs_with_an_empty_cache), ("cache_of_root", cache_of_root)];

fn two_runs_with_an_empty_cache(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.jar("main.jar", &["--main-class=Main"], "classes")?;
    let cache = bench.at("cache");
    let start = |number: usize| {
        let mut command = bench.traced(&[], "java", &["-jar", "main.jar", "x"]);
        // The last of an option counts.
        let trace = bench.at(&format!("{number}.ettrace"));
        command = replace(command, "--cache-dir", &cache);
        command = replace(command, "--trace", &trace);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let children = [start(0)?, start(1)?];
    let outputs = children.into_iter().map(|child| child.wait_with_output()).collect::<Result<Vec<_>, _>>()?;
    for (number, output) in outputs.iter().enumerate() {
        ensure!(output.status.success() && text(&output.stdout) == "[x]Main$Leaf\n", "{}", text(&output.stderr));
        let trace = bench.at(&format!("{number}.ettrace"));
        let summary = xtask::instrumented::summary(&bench.lab.tools, &trace, 5000)?;
        ensure!(summary["dynamic"]["alreadyInstrumented"] == 2, "{}", summary["dynamic"]);
    }
    ensure!(bench.jdks_in(&cache) == 1);
    let said: String = outputs.iter().map(|output| text(&output.stderr)).collect();
    ensure!(said.matches("preparing an instrumented copy").count() == 1, "{said}");
    ensure!(said.matches("waiting for another run").count() == 1, "{said}");
    ensure!(said.matches("rewrote 1 jar").count() == 1, "{said}");

    // The copy's own java is known for what it is, and no copy of it is made.
    let copy = fs::read_dir(cache.join("jdks"))?.flatten().map(|item| item.path()).find(|path| path.is_dir());
    let java = copy.unwrap_or_default().join("bin/java");
    let mut own = Command::new(bench.lab.tools.et_instrument());
    own.current_dir(&bench.folder).args(["run", "--trace", "own.ettrace", "--cache-dir"]).arg(&cache).arg("--");
    let own = own.arg(java).args(["-jar", "main.jar"]).output()?;
    ensure!(own.status.success() && bench.at("own.ettrace").is_file(), "{}", text(&own.stderr));
    ensure!(bench.jdks_in(&cache) == 1);

    let manage = |what: &str| {
        let mut command = Command::new(bench.lab.tools.et_instrument());
        Ok::<_, anyhow::Error>(text(&command::quiet(command.args(["cache", what, "--cache-dir"]).arg(&cache))?.stdout))
    };
    let listed = manage("list")?;
    ensure!(listed.lines().count() == 3 && listed.starts_with("JDK ") && listed.contains("\nprogram "), "{listed}");
    ensure!(listed.lines().next_back().is_some_and(|line| line.starts_with("total ")), "{listed}");
    let cleared = manage("clear")?;
    ensure!(cleared.starts_with("removed 2 entries, ") && cleared.lines().count() == 1, "{cleared}");
    let listed = manage("list")?;
    ensure!(listed.starts_with("total ") && listed.lines().count() == 1 && bench.jdks_in(&cache) == 0, "{listed}");
    Ok(())
}

/// A cache created by root, as in a container image, is used by another user, who cannot write to it.
fn cache_of_root(bench: &Bench) -> Result<()> {
    const OTHER: u32 = 4711;
    if fs::metadata("/proc/self")?.uid() != 0 {
        bench.lab.not_tested("run::cache_of_root", "only root can become another user");
        return Ok(());
    }
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.jar("main.jar", &["--main-class=Main"], "classes")?;
    let mut prepare = bench.tool();
    prepare.args(["prepare", "--class-path", "main.jar:classes", "--cache-dir"]).arg(&bench.cache);
    command::quiet(prepare.arg("--java-home").arg(&bench.jdk.home))?;
    let traces = bench.at("traces");
    fs::create_dir(&traces)?;
    std::os::unix::fs::chown(&traces, Some(OTHER), Some(OTHER))?;
    let run = |arguments: &[&str]| -> Result<String> {
        let mut command = replace(bench.traced(&[], "java", arguments), "--trace", &traces.join("t.ettrace"));
        let output = command.uid(OTHER).gid(OTHER).env("HOME", "/").output()?;
        let said = text(&output.stderr);
        ensure!(output.status.success() && text(&output.stdout) == "[x]Main$Leaf\n", "{said}");
        let summary = xtask::instrumented::summary(&bench.lab.tools, &traces.join("t.ettrace"), 5000)?;
        ensure!(
            summary["dynamic"]["alreadyInstrumented"].as_u64() == Some(if said.contains("no copy") { 0 } else { 2 })
        );
        Ok(said)
    };
    for arguments in [&["-jar", "main.jar", "x"][..], &["-cp", "classes", "Main", "x"]] {
        let said = run(arguments)?;
        ensure!(said.lines().count() == 2 && said.contains("trace: "), "{said}");
    }
    // What is not in the cache is instrumented when it is defined.
    bench.compile(&[("Main.java", &format!("{MAIN} class More {{}}"))], &[], "classes")?;
    let said = run(&["-cp", "classes", "Main", "x"])?;
    ensure!(
        said.contains("has no copy of ") && said.contains("until then classes are instrumented when they are defined"),
        "{said}"
    );
    Ok(())
}

/// The command with another value for an option.
fn replace(command: Command, option: &str, value: &std::path::Path) -> Command {
    let mut changed = Command::new(command.get_program());
    changed.current_dir(command.get_current_dir().unwrap_or(std::path::Path::new(".")));
    let mut arguments = command.get_args();
    while let Some(argument) = arguments.next() {
        changed.arg(argument);
        if argument == option {
            arguments.next();
            changed.arg(value);
        }
    }
    changed
}
