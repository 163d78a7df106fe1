//! What a command line of `java` may contain.

use anyhow::{Result, ensure};

use crate::Case;
use crate::bench::{Bench, text};
use crate::java::{AGENT, APP, MAIN, ONE, TWO};

pub const CASES: &[(&str, Case)] = &[
    ("wildcards_and_class_path_variable", wildcards_and_class_path_variable),
    ("argument_files", argument_files),
    ("options_in_variables", options_in_variables),
    ("java_agent", java_agent),
    ("boot_class_path", boot_class_path),
    ("no_program", no_program),
    ("events_and_filters", events_and_filters),
    ("where_the_trace_went", where_the_trace_went),
];

/// `lib/one.jar`, `lib/two.jar` and the folder `app`.
fn libraries(bench: &Bench) -> Result<()> {
    bench.compile(&[("One.java", ONE)], &[], "one")?;
    bench.compile(&[("Two.java", TWO)], &[], "two")?;
    bench.compile(&[("App.java", APP)], &["-cp", "one:two"], "app")?;
    bench.jar("lib/one.jar", &[], "one")?;
    bench.jar("lib/two.jar", &[], "two")
}

fn wildcards_and_class_path_variable(bench: &Bench) -> Result<()> {
    libraries(bench)?;
    bench.both(&["-cp", "app:lib/*", "App"])?.has(&["one.One", "two.Two"], 4)?;
    bench.both_with("", &[("CLASSPATH", "app:lib/*:nowhere")], &["App"])?.has(&["one.One", "two.Two"], 4)
}

fn argument_files(bench: &Bench) -> Result<()> {
    libraries(bench)?;
    bench
        .write("args", "# what to run\n-cp \"app:lib/one.jar:\\\n      lib/two.jar\" '-Dx=a b'\nApp first # rest\n")?;
    let ran = bench.both(&["@args", "@args", "second"])?;
    ran.has(&["one.One", "two.Two"], 4)?;
    // The launcher itself reads a file as we do.
    let echo = "public class Echo { public static void main(String[] a) { for (var x : a) System.out.println(x); } }";
    bench.compile(&[("Echo.java", echo)], &[], "echo")?;
    bench
        .write("echo.args", "-cp echo Echo a\\b \"c\\\\d\\te\" '' x'y'\"z\" p#q\n\"open\nr \"s \\\n   t\" @u\t\x0cv")?;
    let ran = bench.both(&["@echo.args", "@w"])?;
    ensure!(text(&ran.output.stdout).lines().count() > 8);
    Ok(())
}

fn options_in_variables(bench: &Bench) -> Result<()> {
    libraries(bench)?;
    let variables = [("JDK_JAVA_OPTIONS", "-cp 'app:lib/*' -Dx=y"), ("JAVA_TOOL_OPTIONS", "-Xmx300m")];
    let ran = bench.both_with("", &variables, &["App"])?;
    ran.has(&["one.One", "two.Two"], 4)?;
    ensure!(ran.stderr.contains("Picked up JAVA_TOOL_OPTIONS: -Xmx300m"), "{}", ran.stderr);
    // The command line's class path is the one that counts.
    let ran = bench.both_with("", &[("JDK_JAVA_OPTIONS", "-cp nowhere")], &["-cp", "app:lib/*", "App"])?;
    ran.has(&["one.One", "two.Two"], 4)
}

fn java_agent(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.compile(&[("Agent.java", AGENT)], &[], "agent")?;
    bench.write("agent.mf", "Premain-Class: agent.Agent\n")?;
    bench.jar("agent.jar", &["--manifest=agent.mf"], "agent")?;
    let ran = bench.both(&["-javaagent:agent.jar=some=options", "-cp", "classes", "Main"])?;
    ran.has(&["Main$Leaf", "agent.Agent$Seen"], 4)
}

fn boot_class_path(bench: &Bench) -> Result<()> {
    libraries(bench)?;
    let ran = bench.both(&["-Xbootclasspath/a:lib/one.jar:lib/two.jar", "-cp", "app", "App"])?;
    // Classes of the boot loader are not defined by Java code, and so not counted.
    ran.has(&["one.One", "two.Two", "App$Own"], 2)
}

fn no_program(bench: &Bench) -> Result<()> {
    let ran = bench.both(&["-version"])?;
    ensure!(ran.stderr.contains("openjdk version") || ran.stderr.contains("java version"), "{}", ran.stderr);
    Ok(())
}

fn events_and_filters(bench: &Bench) -> Result<()> {
    libraries(bench)?;
    let arguments = ["-cp", "app:lib/*", "App"];
    let ran = bench.ran(bench.traced(&["--exclude", "one.**"], "java", &arguments).output()?)?;
    // Objects are seen where they are made: in the constructor of Object, which is the JDK's.
    ran.has(&["one.One", "two.Two"], 4)?;
    let without = ran.summary["notInstrumented"]["top"].to_string();
    ensure!(without.contains("one.One") && !without.contains("two.Two"), "{without}");
    Ok(())
}

fn where_the_trace_went(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    let said = |trace: &str| -> Result<String> {
        let mut command = bench.tool();
        command.args(["run", "--in-place", "--cache-dir"]).arg(&bench.cache).args(["--trace", trace, "--"]);
        let output = command.arg(bench.launcher("java")).args(["-cp", "classes", "Main"]).output()?;
        ensure!(output.status.success(), "{}", text(&output.stderr));
        Ok(text(&output.stderr)
            .lines()
            .filter(|line| line.starts_with("et-instrument: "))
            .collect::<Vec<_>>()
            .join("\n"))
    };
    let expected =
        "et-instrument: the trace went to the command (cat > there.ettrace)\net-instrument: read it with et-trace";
    let found = said(">(cat > there.ettrace)")?;
    ensure!(found == expected, "{found}");
    // The same as without any.
    let found = said("")?;
    let start = format!("et-instrument: trace: {}/et-", bench.folder.display());
    ensure!(found.starts_with(&start) && found.contains("next: et-trace summary"), "{found}");
    Ok(())
}
