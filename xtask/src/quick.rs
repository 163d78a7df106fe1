//! `cargo xtask quick`: the checks for after each change: formatting, compilation, unit tests, and one program traced
//! on one JDK.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::completeness::Recorded;
use crate::instrumented::{self, InstrumentedJdk};
use crate::jdks::{self, Jdk};
use crate::layout::{Layout, Tools};
use crate::{build, command, folders, programs};

/// Cargo's profile with the shortest compilation time.
const PROFILE: &str = "quick";

/// The program of the smoke test. It creates objects, keeps some, and prints a line.
const PROGRAM: &str = "
import java.util.*;
public class Hello {
    static final class Letter { final String text; Letter(String text) { this.text = text; } }
    static final List<Letter> kept = new ArrayList<>();
    public static void main(String[] arguments) {
        for (int i = 0; i < 1000; i++) {
            Letter letter = new Letter(\"letter \" + i);
            if (i % 10 == 0) kept.add(letter);
        }
        System.out.println(kept.size() + \" letters kept, the last is \" + kept.get(99).text);
    }
}
";
const CLASS: &str = "Hello$Letter";
const OBJECTS: u64 = 1000;

/// Runs the checks; stops at the first failure.
pub fn run(layout: &Layout) -> Result<()> {
    let start = Instant::now();
    let step = |name: &str| eprintln!("quick: {name} (after {} s)", start.elapsed().as_secs());
    let cargo = |arguments: &[&str]| command::run(command::cargo(&layout.repo).args(arguments));
    step("formatting");
    cargo(&["fmt", "--all", "--check"])?;
    step("does everything compile");
    cargo(&["check", "--profile", PROFILE, "--workspace", "--all-targets", "--locked", "--quiet"])?;
    step("unit tests");
    let tests = ["--workspace", "--lib", "--bins", "--locked"];
    if command::exists("cargo-nextest") {
        cargo(
            &[&["nextest", "run", "--profile", "quick", "--cargo-profile", PROFILE, "--cargo-quiet"], &tests[..]]
                .concat(),
        )?;
    } else {
        cargo(&[&["test", "--profile", PROFILE, "--quiet"], &tests[..]].concat())?;
    }
    step("smoke test");
    let jdk = jdks::compiler(layout)?;
    smoke_test(layout, &build::for_smoke_test(layout)?, &jdk)?;
    step("done; cargo xtask test runs everything");
    Ok(())
}

/// Traces a small program: its output must be the same as without tracing, and its trace valid and complete.
fn smoke_test(layout: &Layout, tools: &Tools, jdk: &Jdk) -> Result<()> {
    let folder = layout.target.join("smoke-test/hello");
    folders::empty(&folder)?;
    let (source, plain, traced) = (folder.join("Hello.java"), folder.join("classes"), folder.join("classes-et"));
    fs::write(&source, PROGRAM).with_context(|| format!("cannot write {}", source.display()))?;
    let javac = jdk.javac().context("the JDK has no javac")?;
    command::quiet(Command::new(javac).args(["-g", "--release", "11", "-d"]).arg(&plain).arg(&source))?;
    command::quiet(Command::new(tools.et_instrument()).arg(&plain).arg("-o").arg(&traced))?;
    let traced_jdk = InstrumentedJdk::of(tools, jdk, &[])?;
    let trace = folder.join("hello.ettrace");
    let prints = |java: &Path, options: &[String], classes: &Path| {
        command::read(Command::new(java).args(options).arg("-cp").arg(classes).arg("Hello"))
    };
    let before = prints(&jdk.java(), &[], &plain)?;
    let after = prints(&traced_jdk.java(), &traced_jdk.options(&trace), &traced)?;
    ensure!(before == after, "the program printed {before:?}, traced it printed {after:?}");
    programs::validate(tools, &trace)?;
    let recorded = Recorded::of_summary(&instrumented::summary(tools, &trace, usize::MAX)?)?;
    let objects = recorded.objects.get(CLASS).map_or(0, |kinds| kinds.at_birth);
    ensure!(objects == OBJECTS, "the trace has {objects} objects of class {CLASS}, not {OBJECTS}");
    Ok(())
}
