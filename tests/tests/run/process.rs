//! Signals, and programs that start others.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use xtask::command;

use crate::Case;
use crate::bench::{Bench, text};
use crate::java::{MAIN, WAITING};

pub const CASES: &[(&str, Case)] =
    &[("signals_reach_the_program", signals_reach_the_program), ("programs_it_starts", programs_it_starts)];

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
    Ok(())
}
