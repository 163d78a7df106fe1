//! Signals, and programs that start others.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use xtask::{command, instrumented, programs};

use crate::Case;
use crate::bench::{Bench, text};
use crate::java::{MAIN, WAITING};

pub const CASES: &[(&str, Case)] = &[
    ("signals_reach_the_program", signals_reach_the_program),
    ("programs_it_starts", programs_it_starts),
    ("programs_of_several_jvms", programs_of_several_jvms),
];

fn signals_reach_the_program(bench: &Bench) -> Result<()> {
    bench.compile(&[("Waiting.java", WAITING)], &[], "classes")?;
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut command = bench.traced(&[], "java", &["-cp", "classes", "Waiting"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("its output is piped")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        ensure!(line == "ready\n", "{line}");
        command::quiet(Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()))?;
        line.clear();
        out.read_line(&mut line)?;
        ensure!(line == "ended\n", "after SIG{signal}: {line}");
        let ran = bench.ran(child.wait_with_output()?)?;
        ensure!(ran.output.status.code() == Some(code), "{:?} after SIG{signal}", ran.output.status);
    }
    Ok(())
}

/// A JVM that is started with the program's own class path must be the instrumented one.
fn programs_it_starts(bench: &Bench) -> Result<()> {
    let parent = "
        public class Parent {
            public static void main(String[] arguments) throws Exception {
                for (String java : new String[] {\"java\", System.getenv(\"JAVA_HOME\") + \"/bin/java\"}) {
                    var command = new ProcessBuilder(java, \"-cp\", System.getProperty(\"java.class.path\"), \"Main\");
                    System.out.println(command.inheritIO().start().waitFor());
                }
            }
        }";
    bench.compile(&[("Main.java", MAIN), ("Parent.java", parent)], &[], "classes")?;
    let home = bench.jdk.home.display().to_string();
    let mut command = bench.traced(&[], "java", &["-cp", "classes", "Parent"]);
    let ran = bench.ran(command.env("JAVA_HOME", &home).output()?)?;
    let said = text(&ran.output.stdout);
    ensure!(said == "[]Main$Leaf\n0\n[]Main$Leaf\n0\n", "{said}{}", ran.stderr);
    ensure!(ran.stderr.contains("2 traces of JVMs that the program started: "), "{}", ran.stderr);
    traces_of_main(bench, &bench.folder, 2)
}

/// A program of several JVMs, none of which it starts by name: as Spark, Surefire and build daemons do.
fn programs_of_several_jvms(bench: &Bench) -> Result<()> {
    let parent = "
        public class Parent {
            public static void main(String[] arguments) throws Exception {
                int depth = Integer.parseInt(arguments[0]);
                String java = System.getProperty(\"java.home\") + \"/bin/java\";
                String classes = System.getProperty(\"java.class.path\");
                var next = depth == 0 ? new ProcessBuilder(java, \"-cp\", classes, \"Main\")
                    : new ProcessBuilder(java, \"-cp\", classes, \"Parent\", \"\" + (depth - 1));
                System.exit(next.directory(new java.io.File(\"/\")).inheritIO().start().waitFor());
            }
        }";
    bench.compile(&[("Main.java", MAIN), ("Parent.java", parent)], &[], "classes")?;
    let run = |options: &[&str], trace: &str, program: &str, arguments: &[&str]| -> Result<(String, String)> {
        let mut command = bench.tool();
        command.arg("run").arg("--cache-dir").arg(&bench.cache).args(["--trace", trace]).args(options).arg("--");
        let output = command.env("JAVA_HOME", &bench.jdk.home).arg(program).args(arguments).output()?;
        ensure!(output.status.success(), "{}", text(&output.stderr));
        Ok((text(&output.stdout), text(&output.stderr)))
    };
    let java = bench.launcher("java").display().to_string();
    let started = ["-cp", "classes", "Parent", "1"];

    // The program and two generations of children, each with a trace in the folder.
    let (said, told) = run(&[], "all/", &java, &started)?;
    ensure!(said == "[]Main$Leaf\n" && told.contains("2 traces of JVMs that the program started: "), "{said}{told}");
    ensure!(traces_in(&bench.at("all"))?.len() == 3, "{told}");
    traces_of_main(bench, &bench.at("all"), 1)?;

    let (_, told) = run(&["--no-children"], "one/", &java, &started)?;
    ensure!(traces_in(&bench.at("one"))?.len() == 1 && !told.contains("that the program started"), "{told}");

    let (_, told) = run(&[], ">(cat > whole)", &java, &started)?;
    ensure!(
        told.contains("not traced: 2 JVMs that the program started: ") && told.contains("write %p into it"),
        "{told}"
    );

    let script = bench.write("start.sh", "#!/bin/sh\nexec \"$JAVA_HOME/bin/java\" -cp classes Main\n")?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
    let (said, told) = run(&[], "script/", &script.display().to_string(), &[])?;
    ensure!(said == "[]Main$Leaf\n" && told.contains("1 trace of JVMs that the program started: "), "{said}{told}");
    traces_of_main(bench, &bench.at("script"), 1)
}

fn traces_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut traces = Vec::new();
    for item in std::fs::read_dir(folder)? {
        let path = item?.path();
        if path.extension().is_some_and(|extension| extension == "ettrace") {
            traces.push(path);
        }
    }
    Ok(traces)
}

/// Checks that this many traces in a folder are complete, valid and of [`MAIN`].
fn traces_of_main(bench: &Bench, folder: &Path, count: usize) -> Result<()> {
    let mut found = 0;
    for trace in traces_in(folder)? {
        programs::validate_without_deaths(&bench.lab.tools, &trace)?;
        let summary = instrumented::summary(&bench.lab.tools, &trace, 5000)?;
        ensure!(summary["complete"] == true, "{}", summary["trace"]);
        let classes = summary["classes"].as_array().context("the summary lists no classes")?;
        found += usize::from(classes.iter().any(|known| known["type"] == "Main$Leaf"));
    }
    ensure!(found == count, "{found} of {count} traces have objects of Main");
    Ok(())
}
