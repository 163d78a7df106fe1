//! The ways in which classes reach a JVM. Class path, module path, agents, boot class path, fat jars, images and source
//! files have their own tests; here are the others. `docs/running.md` lists them all.
//!
//! Each program does the same with and without tracing, and its trace is valid: classes with hooks have names.

use anyhow::{Result, ensure};

use crate::Case;
use crate::bench::Bench;
use crate::java::ONE;

pub const CASES: &[(&str, Case)] = &[
    ("upgrade_module_path", upgrade_module_path),
    ("patched_module", patched_module),
    ("multi_release_jar", multi_release_jar),
    ("loader_of_its_own", loader_of_its_own),
];

/// A module `app` that uses the module `lib`, which is compiled to `mods/lib`.
fn modules(bench: &Bench) -> Result<()> {
    let library = [("module-info.java", "module lib { exports one; }"), ("One.java", ONE)];
    bench.compile(&library, &[], "mods/lib")?;
    let app = "package app; public class Main { public static void main(String[] a) {
        System.out.println(new one.One() + \" \" + Main.class.getModule() + a.length); } }";
    let sources = [("module-info.java", "module app { requires lib; }"), ("Main.java", app)];
    bench.compile(&sources, &["-p", "mods"], "app")
}

fn upgrade_module_path(bench: &Bench) -> Result<()> {
    modules(bench)?;
    bench.both(&["--upgrade-module-path", "mods", "-p", "app", "-m", "app/app.Main", "x"])?.has(&["one.One"], 2)?;
    bench.jar("upgrades/lib.jar", &[], "mods/lib")?;
    bench.both(&["--upgrade-module-path=upgrades/lib.jar", "-p", "app", "-m", "app/app.Main"])?.has(&["one.One"], 2)
}

fn patched_module(bench: &Bench) -> Result<()> {
    modules(bench)?;
    let other = "package one; public class One { static class Patch {}
        public String toString() { return \"patched \" + new Patch().getClass().getName(); } }";
    bench.compile(&[("One.java", other)], &["--patch-module=lib=src", "-p", "mods"], "patch")?;
    bench.jar("patch.jar", &[], "patch")?;
    for patch in ["lib=patch", "lib=patch.jar"] {
        let ran = bench.both(&["--patch-module", patch, "-p", "mods:app", "-m", "app/app.Main"])?;
        ran.has(&["one.One", "one.One$Patch"], 3)?;
    }
    Ok(())
}

fn multi_release_jar(bench: &Bench) -> Result<()> {
    let main = "public class Main { public static void main(String[] a) { System.out.println(new one.One()); } }";
    bench.compile(&[("One.java", ONE)], &[], "base")?;
    bench.compile(&[("Main.java", main)], &["-cp", "base"], "base")?;
    let newer = ONE
        .replace("\"one\"", "new Newer().toString().substring(0, 3)")
        .replace("{ public", "{ static class Newer {} public");
    bench.compile(&[("One.java", &newer)], &[], "base/META-INF/versions/11")?;
    bench.write("multi.mf", "Multi-Release: true\n")?;
    bench.jar("multi.jar", &["--manifest=multi.mf", "--main-class=Main"], "base")?;
    bench.both(&["-jar", "multi.jar"])?.has(&["one.One", "one.One$Newer"], 3)
}

/// A jar that no option names: its classes get their hooks when they are defined.
fn loader_of_its_own(bench: &Bench) -> Result<()> {
    let main = "public class Main { public static void main(String[] a) throws Exception {
        java.net.URL[] urls = { new java.io.File(a[0]).toURI().toURL() };
        try (var loader = new java.net.URLClassLoader(urls, null)) {
            System.out.println(loader.loadClass(\"one.One\").getConstructor().newInstance());
        } } }";
    bench.compile(&[("Main.java", main)], &[], "classes")?;
    bench.compile(&[("One.java", ONE)], &[], "one")?;
    bench.jar("plug/one.jar", &[], "one")?;
    let ran = bench.both(&["-cp", "classes", "Main", "plug/one.jar"])?;
    ran.has(&["one.One"], 1)?;
    ensure!(ran.summary["dynamic"]["rewritten"].as_u64() > Some(0), "{}", ran.summary["dynamic"]);
    Ok(())
}
