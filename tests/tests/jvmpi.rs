//! The JVMPI host: agents in C on unmodified JDKs. One agent checks the rules of the interface and counts events; the
//! programs have known counts. The example is a heap profiler.

use std::fs;
use std::mem::{offset_of, size_of};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_jvmpi::abi;
use et_tests::compiled;
use et_tests::jvmpi::{NOT_ALL, Report, Tier, agent, agent_with, conform, host, java, leaves_out, unexpected};
use et_tests::lab::{self, Lab};
use xtask::command;
use xtask::instrumented::run_cache;
use xtask::jdks::Jdk;

/// Everything that the agent can enable, with collections, dumps and samples by suspension at the same time.
const ALL: &str = "suspend,alloc,trace,gc,dump,monitors,refs,compiled,methods,files";
const COLLECTORS: [&str; 5] = ["G1", "Serial", "Parallel", "Z", "Shenandoah"];

fn main() -> ExitCode {
    let mut trials = Vec::new();
    trials.push(lab::on_jdk_unless(17, "layouts_are_those_of_c", |_, _| None, layouts));
    for tier in Tier::ALL {
        let case = move |lab: &Lab, jdk: &Jdk| counts(lab, jdk, tier);
        trials.extend(lab::on_each_jdk(&format!("counts{}", tier.suffix()), case));
    }
    trials.extend(lab::on_one_jdk("waits", waits));
    trials.extend(lab::on_one_jdk("sleeps", sleeps));
    trials.extend(lab::on_one_jdk("sites", sites));
    for collector in COLLECTORS {
        let missing = move |lab: &Lab, jdk: &Jdk| {
            leaves_out(lab, jdk).or_else(|| lab.refusal(jdk, &[&format!("-XX:+Use{collector}GC")]))
        };
        for tier in Tier::ALL {
            let case = move |lab: &Lab, jdk: &Jdk| everything_at_once(lab, jdk, tier, collector);
            let name = format!("all_at_once_{collector}{}", tier.suffix());
            trials.extend(lab::on_some_jdks_unless(&name, missing, case));
        }
    }
    trials.extend(lab::on_one_jdk("dumps_when_all_is_switched_off", silent));
    trials.extend(lab::on_some_jdks_unless("dumps_of_what_changes", leaves_out, dumps_of_what_changes));
    trials.extend(lab::on_some_jdks_unless("objects_are_of_the_classes_that_jni_says", leaves_out, classes_by_jni));
    trials.extend(lab::on_one_jdk("monitors_that_are_handed_on", handed));
    for feature in [21, 25] {
        trials.push(lab::on_jdk_unless(feature, "virtual_threads", |_, _| None, virtual_threads));
        let name = "virtual_threads_are_left_out_by_hooks";
        trials.push(lab::on_jdk_unless(feature, name, |_, _| None, virtual_threads_by_hooks));
    }
    trials.push(lab::on_jdk_unless(17, "run_with_hooks", |_, _| None, run_with_hooks));
    trials.push(lab::on_jdk_unless(17, "instructions", |_, _| None, instructions));
    trials.push(lab::on_jdk_unless(17, "what_cannot_be_loaded", |_, _| None, cannot_load));
    trials.extend(lab::on_one_jdk("agents_end_the_program", profiler_exit));
    let not_caught =
        || (!cfg!(target_arch = "x86_64")).then(|| "exceptions of agents are caught on x86_64 only".to_owned());
    for tier in Tier::ALL {
        let case = move |lab: &Lab, jdk: &Jdk| exceptions_of_the_agent(lab, jdk, tier);
        let name = format!("exceptions_of_the_agent{}", tier.suffix());
        trials.extend(lab::on_some_jdks_unless(&name, move |_, _| not_caught(), case));
    }
    let obstacle =
        move |_: &Lab, _: &Jdk| not_caught().or((!command::exists("c++")).then(|| "there is no c++".to_owned()));
    trials.extend(lab::on_some_jdks_unless("exceptions_of_cxx", obstacle, exceptions_of_cxx));
    trials.extend(lab::on_each_jdk("not_all_allocations", not_all_allocations));
    trials.extend(lab::on_one_jdk("class_files", class_files));
    trials.extend(lab::on_one_jdk("what_is_returned_may_die", returns));
    trials.extend(lab::on_one_jdk("a_thread_that_stays_in_the_agent", stays));
    lab::run(trials).exit_code()
}

fn counts(lab: &Lab, jdk: &Jdk, tier: Tier) -> Result<()> {
    let options = "alloc,trace,methods,entry2,monitors,refs,compiled";
    // Java 11 leaves out samples in thread-local buffers of G1: docs/jvmpi.md says so.
    let buffers = if jdk.feature == 11 { "-XX:-UseTLAB" } else { "-XX:+UseTLAB" };
    let report = conform(lab, jdk, tier, "counts", options, &["-Xcheck:jni", "-Xmx48m", buffers], "Counted")?;
    for (class, count) in [("Counted$Node", 2004), ("Counted$Thrown", 200)] {
        ensure!(report.number(&format!("allocated {class}"))? == count, "{class}: {}", report.0);
    }
    let methods = [
        ("Counted.main([Ljava/lang/String;)V", 1),
        ("Counted.work()V", 4),
        ("Counted.recurse(I)I", 8000),
        ("Counted.fail(I)V", 2000),
        ("Counted$Node.<init>(J)V", 2004),
        ("Counted$Node.twice()J", 2000),
        ("Counted$Thrown.<init>()V", 200),
    ];
    for (method, count) in methods {
        let told = report.line(&format!("method {method}"))?;
        ensure!(told == format!("{count} {count}"), "{method}: {told}");
    }
    // Arrays and nodes of each round, and what was thrown in each tenth.
    ensure!(report.number("event 5")? >= 2000 + 2000 + 200 - 8, "not all deaths: {}", report.0);
    ensure!(report.number("event 60")? == report.number("event 61")?, "GC_START and GC_FINISH");
    ensure!(report.number("event 7")? > 0, "no compiled method");
    Ok(())
}

/// It is said at the start, where it is so and nowhere else.
fn not_all_allocations(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let library = agent(lab, "tests/jvmpi/empty.c")?;
    let says = |events: &str, java_options: &[&str]| -> Result<bool> {
        let mut all = vec![format!("{}={}:{events}", host()?, library.display())];
        all.extend(java_options.iter().map(|option| (*option).to_owned()));
        let output = java(lab, jdk, Tier::Jvmti, &all, "Sites", 11)?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && unexpected(jdk, &stderr).is_empty(), "{}: {stderr}", output.status);
        Ok(stderr.contains(NOT_ALL))
    };
    ensure!(says("alloc", &["-XX:+UseG1GC"])? == (jdk.feature == 11), "G1");
    for (events, options) in [
        ("alloc", vec!["-XX:+UseG1GC", "-XX:-UseTLAB"]),
        ("alloc", vec!["-XX:+UseParallelGC"]),
        ("alloc", vec!["-XX:+UseSerialGC"]),
        ("methods", vec!["-XX:+UseG1GC"]),
    ] {
        ensure!(!says(events, &options)?, "{events} {options:?}");
    }
    Ok(())
}

/// As users do it: the copy of the JDK has no other hooks, and the program gets its own as it is loaded.
fn run_with_hooks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let file = lab.folder(jdk, "jvmpi_run_with_hooks")?.join("conform.txt");
    let agent = format!(
        "{}:file={},methods,entry2,trace,alloc",
        agent(lab, "tests/jvmpi/conform.c")?.display(),
        file.display()
    );
    let classes = compiled::classes(lab, &lab.layout.repo.join("tests/java/jvmpi/Counted.java"), 11)?;
    let mut run = Command::new(lab.tools.et_instrument());
    run.args(["run", "--quiet", "--jvmpi", &agent, "--hooks", "--cache-dir"]).arg(run_cache(&lab.layout, &lab.tools)?);
    run.arg("--").arg(jdk.java()).arg("-cp").arg(classes).arg("Counted");
    let said = command::quiet(&mut run)?;
    let stderr = String::from_utf8_lossy(&said.stderr);
    ensure!(unexpected(jdk, &stderr).is_empty(), "{stderr}");
    let report = Report::read(&file)?;
    for (method, count) in [("Counted.work()V", 4), ("Counted.recurse(I)I", 8000), ("Counted$Node.twice()J", 2000)] {
        let told = report.line(&format!("method {method}"))?;
        ensure!(told == format!("{count} {count}"), "{method}: {told}");
    }
    // Of the JDK's own methods as well.
    ensure!(report.0.contains("method java.lang.String."), "{}", report.0);
    Ok(())
}

fn waits(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let report = conform(lab, jdk, Tier::Jvmti, "waits", "alloc,monitors,trace", &["-Xmx48m"], "Waits")?;
    // The VM's own threads wait as well.
    ensure!(report.number("event 57")? >= 20 && report.number("event 58")? >= 20, "{}", report.0);
    // The owner may release the monitor before it can be determined: then its release is not reported.
    for (kind, least) in [(54, 5), (55, 5), (56, 1)] {
        ensure!(report.number(&format!("event {kind}"))? >= least, "event {kind}: {}", report.0);
    }
    Ok(())
}

/// Two threads wait for one monitor: the first to enter it also reports its release.
fn handed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let report = conform(lab, jdk, Tier::Jvmti, "handed", "monitors", &[], "Handed")?;
    let left = |name: &str| report.number(&format!("left by {name}"));
    ensure!((left("main")?, left("guest")?) == (10, 10), "{}", report.0);
    Ok(())
}

/// Like hprof: in `JVM_SHUT_DOWN` it disables all events and requests dumps. By then it must know what they refer to,
/// including classes that were never linked.
fn silent(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let report = conform(lab, jdk, Tier::Jvmti, "silent", "alloc,silent", &["-Xmx48m"], "Unlinked")?;
    ensure!((report.number("requested 37")?, report.number("requested 59")?) == (3, 1), "{}", report.0);
    ensure!(report.number("requested 50")? > 20 && report.number("classes without objects")? == 0, "{}", report.0);
    Ok(())
}

fn classes_by_jni(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let file = lab.folder(jdk, "jvmpi_classes")?.join("classes.txt");
    let library = agent(lab, "tests/jvmpi/classes.c")?;
    let source = lab.layout.repo.join("tests/java/jvmpi/Twins.java");
    let mut java = Command::new(jdk.java());
    java.arg(format!("{}={}:file={}", host()?, library.display(), file.display())).arg("-XX:+UseG1GC");
    java.arg("-cp").arg(compiled::classes(lab, &source, 11)?).arg("Twins").arg(&library);
    command::quiet(&mut java)?;
    ensure!(Report::read(&file)?.number("checked")? == 900, "not all were checked");
    Ok(())
}

/// Waits without an object.
fn sleeps(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let report = conform(lab, jdk, Tier::Jvmti, "sleeps", "alloc,monitors,trace", &["-Xcheck:jni"], "Sleeps")?;
    let told: Vec<u64> = report.line("sleeps")?.split(' ').filter_map(|word| word.parse().ok()).collect();
    ensure!(told.len() == 3 && told[..2] == [9, 100_000] && told[2] >= 250, "{told:?}");
    Ok(())
}

fn everything_at_once(lab: &Lab, jdk: &Jdk, tier: Tier, collector: &str) -> Result<()> {
    let collector = format!("-XX:+Use{collector}GC");
    // `cargo xtask jvmpi` wants more than one.
    let runs: u32 = std::env::var("ET_JVMPI_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1);
    (0..runs).try_for_each(|_| once(lab, jdk, tier, &collector))
}

fn once(lab: &Lab, jdk: &Jdk, tier: Tier, collector: &str) -> Result<()> {
    let report = conform(lab, jdk, tier, &format!("all{collector}"), ALL, &[collector, "-Xmx48m"], "Counted")?;
    ensure!(report.number("allocated Counted$Node")? == 2004, "{}", report.0);
    ensure!(report.line("method Counted.recurse(I)I")? == "8000 8000", "{}", report.0);
    for kind in [37, 59, 50] {
        ensure!(report.number(&format!("requested {kind}"))? > 0, "no dump {kind}: {}", report.0);
    }
    Ok(())
}

/// Classes are defined while a dump is made, and objects die before it arrives: what it names has a record, and can be
/// asked for.
fn dumps_of_what_changes(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for collector in COLLECTORS {
        let collector = format!("-XX:+Use{collector}GC");
        if leaves_out(lab, jdk).or_else(|| lab.refusal(jdk, &[&collector])).is_some() {
            continue;
        }
        let name = format!("changing{collector}");
        let report = conform(lab, jdk, Tier::Jvmti, &name, "alloc,gc,dump,dumpgc", &[&collector], "Changing")?;
        ensure!(report.number("requested 37")? >= 3, "too few dumps: {}", report.0);
    }
    Ok(())
}

fn virtual_threads(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let report = conform(lab, jdk, Tier::Jvmti, "virtual", "methods,alloc,trace,monitors", &[], "Virtual")?;
    ensure!(report.line("method Virtual.deep(I)I")?.starts_with("3000 "), "{}", report.0);
    Ok(())
}

/// Mounting and unmounting continues while the agent holds its locks, and what is not reported to it is counted.
fn virtual_threads_by_hooks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let file = lab.folder(jdk, "jvmpi_virtual_by_hooks")?.join("conform.txt");
    let library = agent(lab, "tests/jvmpi/conform.c")?;
    let option = format!("{}={}:file={},methods,alloc,trace,monitors", host()?, library.display(), file.display());
    let output = java(lab, jdk, Tier::Hooks, &[option], "Virtual", 21)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", output.status);
    ensure!(said.starts_with("jvmpi: left out: ") && said.contains("of virtual threads and their carriers"), "{said}");
    let report = Report::read(&file)?;
    ensure!(report.line("method Virtual.main([Ljava/lang/String;)V")? == "1 1", "{}", report.0);
    ensure!(!report.0.contains("method Virtual.deep"), "{}", report.0);
    Ok(())
}

fn instructions(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let report = conform(lab, jdk, Tier::Jvmti, "instructions", "steps,methods", &["-Drounds=50"], "Counted")?;
    ensure!(report.number("event 9")? > 10_000, "{}", report.0);
    let branches: Vec<&str> = report.line("monitor dumps")?.split(' ').collect();
    ensure!(branches.last().is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count > 1000)), "{branches:?}");
    Ok(())
}

/// `-Xrun`, as in 1999, with the example.
fn sites(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "jvmpi_sites")?;
    let library = agent(lab, "examples/jvmpi/heapprof.c")?;
    fs::copy(library, folder.join("libheapprof.so"))?;
    let file = folder.join("sites.txt");
    let library_path = format!("-Dsun.boot.library.path={}:{}", jdk.home.join("lib").display(), folder.display());
    let options = [host()?, library_path, format!("-Xrunheapprof:{}", file.display())];
    let output = java(lab, jdk, Tier::Jvmti, &options, "Sites", 11)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
    let expected =
        "Sites$Item live 100 (17600 bytes) made 2000 (352000 bytes)\n    Sites.item line 10\n    Sites.main line 15\n";
    ensure!(told.contains(expected), "{told}");
    Ok(())
}

fn profiler_exit(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let library = agent(lab, "tests/jvmpi/conform.c")?;
    let option = format!("{}={}:file=/dev/null,alloc,methods,exit=7", host()?, library.display());
    let output = java(lab, jdk, Tier::Jvmti, &[option], "Sites", 11)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(7) && output.stdout.is_empty(), "{}: {said}", output.status);
    Ok(())
}

/// A run with the misbehaving agent: its report, the program's output, and the host's messages.
fn rough(lab: &Lab, jdk: &Jdk, tier: Tier, test: &str, options: &str) -> Result<(Report, String, String)> {
    let file = lab.folder(jdk, &format!("jvmpi_{test}{}", tier.suffix()))?.join("rough.txt");
    let library = agent(lab, "tests/jvmpi/rough.c")?;
    let option = format!("{}={}:file={},{options}", host()?, library.display(), file.display());
    let output = java(lab, jdk, tier, &[option, "-Xcheck:jni".to_owned(), "-Xmx48m".to_owned()], "Rough", 11)?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    ensure!(output.status.success(), "{}\n{stdout}{stderr}", output.status);
    let report = Report::read(&file)?;
    ensure!(report.number("late")? == 1, "functions after the end: {}", report.0);
    Ok((report, stdout, stderr))
}

const PRINTED: &str = "Rough-before 10000\n";

/// Those of C++ and those of Java: the program sees neither, and the host counts them.
fn exceptions_of_the_agent(lab: &Lab, jdk: &Jdk, tier: Tier) -> Result<()> {
    let (report, stdout, stderr) = rough(lab, jdk, tier, "raises", "alloc,methods,raise,system")?;
    ensure!(stdout == PRINTED, "{stdout}{stderr}");
    let count = |said: &str, what: &str| -> Result<u64> {
        let found = said.split("left out: ").nth(1).and_then(|all| all.split("; ").find(|one| one.contains(what)));
        Ok(found.and_then(|one| one.split(' ').next()).with_context(|| format!("no {what}: {said}"))?.parse()?)
    };
    let (told, raised, dropped) =
        (count(&stderr, "threw and did not catch")?, report.number("raised")?, report.number("dropped")?);
    // A thread may be throwing when the program ends.
    ensure!(
        told > 5_000 && raised.abs_diff(told) <= 10 && raised.abs_diff(dropped) <= 2,
        "{told} of {raised}, {dropped} dropped"
    );
    let (report, stdout, stderr) = rough(lab, jdk, tier, "throws", "alloc,java")?;
    ensure!(stdout == PRINTED, "{stdout}{stderr}");
    let (told, thrown) = (count(&stderr, "exceptions of Java")?, report.number("thrown")?);
    ensure!(told > 1_000 && thrown.abs_diff(told) <= 10, "{told} of {thrown}");
    if tier == Tier::Jvmti {
        let library = agent(lab, "tests/jvmpi/rough.c")?;
        let output = java(lab, jdk, tier, &[format!("{}={}:load", host()?, library.display())], "Rough", 11)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && said.contains("JVM_OnLoad of ") && said.contains(" threw an exception"),
            "{said}"
        );
    }
    Ok(())
}

/// They are ended as `catch (...)` does it, whichever library of C++ the agent has.
fn exceptions_of_cxx(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for options in [&[][..], &["-static-libgcc", "-static-libstdc++"]] {
        let library = agent_with(lab, "tests/jvmpi/throws.cc", options)?;
        let file = lab.folder(jdk, "jvmpi_cxx")?.join("throws.txt");
        let option = format!("{}={}:{}", host()?, library.display(), file.display());
        let output = java(lab, jdk, Tier::Jvmti, &[option, "-Xcheck:jni".to_owned()], "Rough", 11)?;
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        ensure!(output.status.success() && stdout == PRINTED, "{options:?}: {}\n{stdout}{stderr}", output.status);
        ensure!(stderr.contains("threw and did not catch"), "{options:?}: {stderr}");
        let report = Report::read(&file)?;
        let (made, gone) = (report.number("made")?, report.number("gone")?);
        // One is kept, and a thread may be throwing when the program ends.
        ensure!(made > 1_000 && gone < made && made - gone <= 3, "{options:?}: {gone} of {made}");
        ensure!(report.number("uncaught")? == 0 && report.number("kept")? == 100, "{options:?}: {}", report.0);
    }
    Ok(())
}

/// JVMTI's exits leave a reference to what is returned, in HotSpot.
fn returns(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let library = agent(lab, "tests/jvmpi/empty.c")?;
    let options =
        [format!("{}={}:methods", host()?, library.display()), "-Xmx20m".to_owned(), "-Xcheck:jni".to_owned()];
    let output = java(lab, jdk, Tier::Jvmti, &options, "Returns", 11)?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    ensure!(output.status.success() && stdout == "60000000\n" && stderr.is_empty(), "{stdout}{stderr}");
    Ok(())
}

/// From the VM's first on; and what the agent makes of them is what the VM gets.
fn class_files(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (report, stdout, stderr) = rough(lab, jdk, Tier::Jvmti, "files", "files")?;
    ensure!(stdout == "Rough-after! 10000\n" && stderr.is_empty(), "{stdout}{stderr}");
    let (early, files) = (report.number("early")?, report.number("files")?);
    ensure!(report.number("object")? == 1 && early > 300 && files > early, "{early} of {files} files");
    if cfg!(target_arch = "x86_64") {
        let (_, stdout, stderr) = rough(lab, jdk, Tier::Jvmti, "files_half", "files,raise")?;
        ensure!(stdout == PRINTED && stderr.contains("threw and did not catch"), "{stdout}{stderr}");
    }
    Ok(())
}

/// Stays in an event forever, holding a lock of the agent: the program continues, and so do deaths.
fn stays(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (report, stdout, stderr) = rough(lab, jdk, Tier::Jvmti, "stays", "alloc,hold")?;
    ensure!(stdout == PRINTED, "{stdout}{stderr}");
    ensure!(stderr.contains("batches of deaths that went on without a thread inside the agent"), "{stderr}");
    ensure!(report.number("holds")? == 1 && report.number("event 5")? > 10_000, "{}", report.0);
    Ok(())
}

fn cannot_load(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let said = |option: String| -> Result<String> {
        let output = java(lab, jdk, Tier::Jvmti, &[option], "Sites", 11)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let alone = said(host()?)?;
    ensure!(alone.starts_with("jvmpi: no agent requested the interface"), "{alone}");
    let missing = said(format!("{}=/nowhere/libnone.so:x", host()?))?;
    ensure!(missing.starts_with("jvmpi: cannot load /nowhere/libnone.so: "), "{missing}");
    let host_itself = std::env::current_exe()?.with_file_name("libet_jvmpi.so");
    let none = said(format!("{}={}", host()?, host_itself.display()))?;
    ensure!(none.contains("is not a JVMPI agent: it has no JVM_OnLoad"), "{none}");
    Ok(())
}

macro_rules! places {
    ($all:ident, $event:literal: $($c:literal = $type:ident.$field:ident),* $(,)?) => {$(
        $all.push((format!("offsetof(JVMPI_Event, u.{}.{}) - offsetof(JVMPI_Event, u)", $event, $c), offset_of!(abi::$type, $field)));
    )*};
}

/// Sizes and offsets according to the C compiler.
fn layouts(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut all: Vec<(String, usize)> = vec![
        ("sizeof(JVMPI_Event)".to_owned(), size_of::<abi::Event>()),
        ("offsetof(JVMPI_Event, env_id)".to_owned(), offset_of!(abi::Event, env_id)),
        ("offsetof(JVMPI_Event, u)".to_owned(), offset_of!(abi::Event, u)),
        ("sizeof(JVMPI_Interface)".to_owned(), size_of::<abi::Interface>()),
        ("sizeof(JVMPI_Field)".to_owned(), size_of::<abi::Field>()),
        ("sizeof(JVMPI_Method)".to_owned(), size_of::<abi::Method>()),
        ("offsetof(JVMPI_Method, method_id)".to_owned(), offset_of!(abi::Method, method_id)),
        ("offsetof(JVMPI_Method, end_lineno)".to_owned(), offset_of!(abi::Method, end_lineno)),
        ("sizeof(JVMPI_Lineno)".to_owned(), size_of::<abi::Lineno>()),
        ("sizeof(JVMPI_CallFrame)".to_owned(), size_of::<abi::CallFrame>()),
        ("offsetof(JVMPI_CallFrame, method_id)".to_owned(), offset_of!(abi::CallFrame, method_id)),
        ("sizeof(JVMPI_CallTrace)".to_owned(), size_of::<abi::CallTrace>()),
        ("offsetof(JVMPI_CallTrace, frames)".to_owned(), offset_of!(abi::CallTrace, frames)),
        ("sizeof(JVMPI_HeapDumpArg)".to_owned(), size_of::<abi::HeapDumpArg>()),
    ];
    places!(all, "class_load": "class_name" = ClassLoad.class_name, "source_name" = ClassLoad.source_name,
        "num_interfaces" = ClassLoad.num_interfaces, "num_methods" = ClassLoad.num_methods, "methods" = ClassLoad.methods,
        "num_static_fields" = ClassLoad.num_static_fields, "statics" = ClassLoad.statics,
        "num_instance_fields" = ClassLoad.num_instance_fields, "instances" = ClassLoad.instances,
        "class_id" = ClassLoad.class_id);
    places!(all, "class_load_hook": "class_data_len" = ClassLoadHook.class_data_len,
        "new_class_data" = ClassLoadHook.new_class_data, "new_class_data_len" = ClassLoadHook.new_class_data_len,
        "malloc_f" = ClassLoadHook.malloc_f);
    places!(all, "new_arena": "arena_name" = NewArena.arena_name);
    places!(all, "delete_arena": "arena_id" = DeleteArena.arena_id);
    places!(all, "obj_alloc": "class_id" = ObjAlloc.class_id, "is_array" = ObjAlloc.is_array, "size" = ObjAlloc.size,
        "obj_id" = ObjAlloc.obj_id);
    places!(all, "obj_move": "obj_id" = ObjMove.obj_id, "new_arena_id" = ObjMove.new_arena_id,
        "new_obj_id" = ObjMove.new_obj_id);
    places!(all, "gc_info": "used_object_space" = GcInfo.used_object_space,
        "total_object_space" = GcInfo.total_object_space);
    places!(all, "method_entry2": "obj_id" = MethodEntry2.obj_id);
    places!(all, "compiled_method_load": "code_addr" = CompiledMethodLoad.code_addr,
        "code_size" = CompiledMethodLoad.code_size, "lineno_table_size" = CompiledMethodLoad.lineno_table_size,
        "lineno_table" = CompiledMethodLoad.lineno_table);
    places!(all, "compiled_method_unload": "code_addr" = CompiledMethodUnload.code_addr);
    places!(all, "instruction": "offset" = Instruction.offset, "u.if_info.is_true" = Instruction.branch,
        "u.tableswitch_info.key" = Instruction.branch, "u.lookupswitch_info.chosen_pair_index" = Instruction.branch);
    places!(all, "thread_start": "group_name" = ThreadStart.group_name, "parent_name" = ThreadStart.parent_name,
        "thread_id" = ThreadStart.thread_id, "thread_env_id" = ThreadStart.thread_env_id);
    places!(all, "heap_dump": "begin" = HeapDump.begin, "end" = HeapDump.end, "num_traces" = HeapDump.num_traces,
        "traces" = HeapDump.traces);
    places!(all, "jni_globalref_alloc": "ref_id" = GlobalRefAlloc.ref_id);
    places!(all, "raw_monitor": "id" = RawMonitorEvent.id);
    places!(all, "monitor_dump": "end" = MonitorDump.end, "num_traces" = MonitorDump.num_traces,
        "traces" = MonitorDump.traces, "threads_status" = MonitorDump.threads_status);
    places!(all, "monitor_wait": "timeout" = MonitorWait.timeout);
    places!(all, "object_dump": "data" = ObjectDump.data);
    macro_rules! functions {
        ($($c:literal = $field:ident),* $(,)?) => {$(
            all.push((format!("offsetof(JVMPI_Interface, {})", $c), offset_of!(abi::Interface, $field)));
        )*};
    }
    functions!(
        "NotifyEvent" = notify_event,
        "EnableEvent" = enable_event,
        "DisableEvent" = disable_event,
        "RequestEvent" = request_event,
        "GetCallTrace" = get_call_trace,
        "ProfilerExit" = profiler_exit,
        "RawMonitorCreate" = raw_monitor_create,
        "RawMonitorEnter" = raw_monitor_enter,
        "RawMonitorExit" = raw_monitor_exit,
        "RawMonitorWait" = raw_monitor_wait,
        "RawMonitorNotifyAll" = raw_monitor_notify_all,
        "RawMonitorDestroy" = raw_monitor_destroy,
        "GetCurrentThreadCpuTime" = get_current_thread_cpu_time,
        "SuspendThread" = suspend_thread,
        "ResumeThread" = resume_thread,
        "GetThreadStatus" = get_thread_status,
        "ThreadHasRun" = thread_has_run,
        "CreateSystemThread" = create_system_thread,
        "SetThreadLocalStorage" = set_thread_local_storage,
        "GetThreadLocalStorage" = get_thread_local_storage,
        "DisableGC" = disable_gc,
        "EnableGC" = enable_gc,
        "RunGC" = run_gc,
        "GetThreadObject" = get_thread_object,
        "GetMethodClass" = get_method_class,
        "jobjectID2jobject" = id_to_object,
        "jobject2jobjectID" = object_to_id,
        "SuspendThreadList" = suspend_thread_list,
        "ResumeThreadList" = resume_thread_list,
    );
    let folder = lab.folder(jdk, "jvmpi_layouts")?;
    let (source, program) = (folder.join("layouts.c"), folder.join("layouts"));
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n#include \"jvmpi.h\"\nint main(void) {\n");
    for (expression, _) in &all {
        text.push_str(&format!("    printf(\"%zu\\n\", (size_t)({expression}));\n"));
    }
    text.push_str("    return 0;\n}\n");
    fs::write(&source, text)?;
    xtask::jvmpi::compile(&lab.layout, &lab.compiler, &["-O1"], &source, &program)?;
    let output = Command::new(&program).output()?;
    let told = String::from_utf8(output.stdout)?;
    ensure!(told.lines().count() == all.len(), "{told}");
    for ((expression, ours), theirs) in all.iter().zip(told.lines()) {
        ensure!(*ours == theirs.parse::<usize>()?, "{expression}: {theirs} in C, {ours} here");
    }
    Ok(())
}
