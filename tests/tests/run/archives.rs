//! Archives of class data and AOT caches of the user: a traced run neither reads nor writes them.

use std::fs;

use anyhow::{Result, ensure};
use xtask::command;

use crate::Case;
use crate::bench::{Bench, text};
use crate::java::MAIN;

pub const CASES: &[(&str, Case)] = &[("class_data_archive", class_data_archive)];

/// Features that JDK 17 does not have.
pub const FOR_25: &[(&str, Case)] = &[("aot_cache", aot_cache)];

fn main_jar(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.jar("main.jar", &["--main-class=Main"], "classes")
}

/// A traced run says once what is left out, prints nothing that the program does not, and leaves the user's files alone.
fn left_out(bench: &Bench, variables: &[(&str, &str)], options: &[&str], file: &str) -> Result<()> {
    let before = fs::read(bench.at(file)).ok();
    let arguments = [options, &["-jar", "main.jar", "x"]].concat();
    let mut traced = bench.traced(&[], "java", &arguments);
    let ran = bench.ran(traced.envs(variables.iter().copied()).output()?)?;
    ensure!(text(&ran.output.stdout) == "[x]Main$Leaf\n", "{}\n{}", text(&ran.output.stdout), ran.stderr);
    ensure!(ran.stderr.matches("et-instrument: left out, because").count() == 1, "{}", ran.stderr);
    ran.has(&["Main$Leaf"], 2)?;
    ensure!(fs::read(bench.at(file)).ok() == before, "{file} was written: {}", ran.stderr);
    Ok(())
}

fn class_data_archive(bench: &Bench) -> Result<()> {
    main_jar(bench)?;
    command::quiet(&mut bench.plain("java", &["-XX:ArchiveClassesAtExit=app.jsa", "-jar", "main.jar"]))?;
    left_out(bench, &[], &["-Xshare:on", "-XX:SharedArchiveFile=app.jsa"], "app.jsa")?;
    left_out(bench, &[("JAVA_TOOL_OPTIONS", "-XX:ArchiveClassesAtExit=app.jsa")], &[], "app.jsa")?;
    // The plain run has its archive as before.
    let with = ["-Xshare:on", "-XX:SharedArchiveFile=app.jsa", "-Xlog:class+load", "-jar", "main.jar"];
    let plain = text(&command::quiet(&mut bench.plain("java", &with))?.stdout);
    ensure!(plain.contains("Main$Leaf source: shared objects file (top)"), "{plain}");
    let refused = bench.traced(&[], "java", &["-Xshare:dump"]).output()?;
    ensure!(
        refused.status.code() == Some(2) && text(&refused.stderr).lines().count() == 1,
        "{}",
        text(&refused.stderr)
    );
    Ok(())
}

fn aot_cache(bench: &Bench) -> Result<()> {
    // The copy that other tests use as well.
    let copy = bench.lab.instrumented(&bench.jdk)?.home;
    let traced = Bench { jdk: xtask::jdks::Jdk { home: copy, ..bench.jdk.clone() }, ..bench.clone() };
    main_jar(bench)?;
    command::quiet(&mut bench.plain("java", &["-XX:AOTCacheOutput=app.aot", "-jar", "main.jar", "x"]))?;
    let auto = ["-XX:+AutoCreateSharedArchive", "-XX:SharedArchiveFile=auto.jsa"];
    command::quiet(&mut bench.plain("java", &[&auto[..], &["-jar", "main.jar"]].concat()))?;
    left_out(&traced, &[], &auto, "auto.jsa")?;
    left_out(&traced, &[("JAVA_TOOL_OPTIONS", "-XX:AOTCache=app.aot -XX:AOTMode=on")], &[], "app.aot")?;
    bench.write("list", "-XX:AOTCacheOutput=other.aot")?;
    left_out(&traced, &[], &["-XX:VMOptionsFile=list"], "other.aot")
}
