//! Stacks of allocations (`--events alloc,stacks`): what the trace says of them, compared with what the program sees of its own.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup, ended, programs};
use et_tests::{compiled, flight};
use serde_json::Value;
use xtask::instrumented::InstrumentedJdk;
use xtask::jdks::Jdk;
use xtask::{browser, command, completeness, python};

const EVENTS: &[&str] = &["--events", "alloc,stacks"];
/// The class whose allocations the program reports.
const LEAF: &str = "Stacks$Leaf";
/// Bytes of one.
const LEAF_BYTES: u64 = 16;

fn main() -> ExitCode {
    let mut trials = lab::on_each_jdk("stacks_are_those_of_the_program", exact);
    trials.extend(lab::on_one_jdk("beyond_the_limit", beyond_the_limit));
    trials.push(lab::on_jdk_unless(
        17,
        "other_collector",
        |_, _| None,
        |lab, jdk| compare(lab, jdk, "stacks_parallel", &["-XX:+UseParallelGC"]),
    ));
    trials.push(lab::on_jdk_unless(17, "killed", |_, _| None, |lab, jdk| killed(lab, jdk, "stacks_killed", &[])));
    trials.push(lab::on_jdk_unless(17, "ends_while_others_walk", |_, _| None, ends_while_others_walk));
    trials.extend(lab::on_some_jdks("counts_are_those_of_the_program", counted));
    trials.push(lab::on_jdk_unless(
        17,
        "counts_of_a_killed_program",
        |_, _| None,
        |lab, jdk| killed(lab, jdk, "counts_killed", &["-Det.counts=60m"]),
    ));
    trials.extend(lab::on_each_jdk("made_without_hooks", made_without_hooks));
    trials.extend(lab::on_some_jdks("walked_by_the_vm", |lab, jdk| walked_by_the_vm(lab, jdk, "stacks_walked", &[])));
    lab::run(trials).exit_code()
}

fn traced(lab: &Lab, jdk: &Jdk, test: &str, both: &[&str], traced: &[&str]) -> Result<Run> {
    Run::with(lab, jdk, test, "stacks/Stacks", Setup { jdk: EVENTS, program: EVENTS, both, traced, ..Setup::default() })
}

fn et_trace(lab: &Lab, arguments: &[&str], trace: &std::path::Path) -> Result<String> {
    let output = Command::new(lab.tools.et_trace()).args(arguments).arg(trace).output()?;
    // The trace of a killed program is read as far as it goes, and the exit code says so.
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() || said.contains("the program was killed"), "{arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Allocations of leaves by the methods of the program on the stack, outermost first, with their lines.
fn in_trace(lab: &Lab, trace: &std::path::Path) -> Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    for line in et_trace(lab, &["export", "--to", "collapsed"], trace)?.lines() {
        let (stack, bytes) = line.rsplit_once(' ').context("no weight")?;
        let Some(stack) = stack.strip_suffix(LEAF).and_then(|stack| stack.strip_suffix(';')) else { continue };
        let ours = |frame: &&str| frame.starts_with("Stacks") && !frame.contains("$$");
        let frames: Vec<&str> = stack.split(';').filter(ours).collect();
        *found.entry(frames.join(";")).or_default() += bytes.parse::<u64>()? / LEAF_BYTES;
    }
    Ok(found)
}

/// The same, as the program has printed it.
fn printed(output: &str) -> Result<BTreeMap<String, u64>> {
    let line = |line: &str| {
        let (count, stack) = line.split_once(' ').context("no count")?;
        Ok((stack.to_owned(), count.parse()?))
    };
    output.lines().map(line).collect()
}

fn compare(lab: &Lab, jdk: &Jdk, test: &str, both: &[&str]) -> Result<()> {
    let run = traced(lab, jdk, test, both, &[])?;
    same(lab, &run.stdout, &run.trace)
}

/// What the program has printed is in the trace.
fn same(lab: &Lab, stdout: &str, trace: &std::path::Path) -> Result<()> {
    let (expected, found) = (printed(stdout)?, in_trace(lab, trace)?);
    ensure!(expected.len() > 1_000, "only {} stacks", expected.len());
    let all: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differences: Vec<String> = all
        .into_iter()
        .filter(|stack| expected.get(*stack) != found.get(*stack))
        .map(|stack| format!("{:?} rather than {:?}: {stack}", found.get(stack), expected.get(stack)))
        .collect();
    ensure!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(10)].join("\n")
    );
    Ok(())
}

fn exact(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "stacks_exact", &[], &[])?;
    same(lab, &run.stdout, &run.trace)?;
    lines_in_every_format(lab, jdk, &run)
}

/// The table of counts has the leaves, and what threads allocated is its sum.
fn tabled(lab: &Lab, program: &Program, trace: &std::path::Path, leaves: u64) -> Result<()> {
    let folder = program.folder.join("counts.tables");
    et_trace(lab, &["tables", "-o", &folder.to_string_lossy()], trace)?;
    let duckdb = python::fetched(&lab.layout, python::DUCKDB)?;
    let query = format!(
        "select (select sum(objects) from counts join classes using (run, class) where name = '{LEAF}') as leaves,
                (select sum(objects) from counts) as counted, (select sum(objects) from allocations_by_second) as made,
                (select count(*) from counts c anti join contexts x using (run, context)) as without_context,
                (select count(*) from objects) as objects"
    );
    let mut sql = Command::new(lab.tools.et_trace());
    sql.env("PYTHONPATH", python::path(std::slice::from_ref(&duckdb))?)
        .arg("sql")
        .arg(&folder)
        .args([&query, "--json"]);
    let rows: Value = serde_json::from_slice(&command::quiet(&mut sql)?.stdout)?;
    let number = |column: &str| rows[0][column].as_u64();
    ensure!(number("leaves") == Some(leaves), "{leaves} leaves: {rows}");
    ensure!(number("counted") > Some(0) && number("counted") == number("made"), "{rows}");
    ensure!(number("without_context") == Some(0) && number("objects") == Some(0), "{rows}");
    Ok(())
}

/// Frames of the program's `main`, which allocates no leaves itself, have lines wherever stacks go.
fn lines_in_every_format(lab: &Lab, jdk: &Jdk, run: &Run) -> Result<()> {
    let folded = et_trace(lab, &["export", "--to", "collapsed"], &run.trace)?;
    let is_leaf = |line: &&str| {
        line.contains(";Stacks$Leaf ") && line.starts_with("Stacks.main:") && line.matches(';').count() > 1
    };
    let shortest = folded.lines().filter(is_leaf).min_by_key(|line| line.matches(';').count());
    let stack = shortest.context("no stack of a leaf below main")?;
    let line = stack.split([':', ';']).nth(1).context("no line")?.to_owned();
    let firefox = et_trace(lab, &["export", "--to", "firefox"], &run.trace)?;
    ensure!(firefox.contains(&format!("Stacks.main (Stacks.java:{line})")), "no line {line} for Firefox");
    let speedscope: Value = serde_json::from_str(&et_trace(lab, &["export", "--to", "speedscope"], &run.trace)?)?;
    let mut frames = speedscope["shared"]["frames"].as_array().context("no frames")?.iter();
    let number = line.parse::<u64>().ok();
    let is_main = |frame: &Value| frame["name"] == "Stacks.main" && frame["line"].as_u64() == number;
    ensure!(frames.any(is_main), "no line {line} for speedscope");
    // As text: a tree this deep is beyond a reader of JSON that recurses. Lines count from 0.
    let chrome = et_trace(lab, &["export", "--to", "chrome"], &run.trace)?;
    let at = format!("\"url\":\"Stacks.java\",\"lineNumber\":{}", line.parse::<u64>()? - 1);
    let mut mains = chrome.split("\"functionName\":\"Stacks.main\"").skip(1);
    ensure!(mains.any(|main| main.split('}').next().unwrap_or_default().contains(&at)), "no line {line} for Chrome");
    if let Some(why) = browser::without_npm() {
        lab.not_tested("lines for pprof", &why);
    } else {
        let profile = run.folder.join("stacks.pprof");
        let to = profile.to_string_lossy();
        et_trace(lab, &["export", "--to", "pprof", "--force", "-o", &to], &run.trace)?;
        let folder = lab.layout.target.join(format!("browser/line-{}", jdk.feature));
        let script = browser::driver(&lab.layout, "export/line.mjs", &folder)?;
        command::quiet(Command::new("node").arg(script).arg(&profile).args(["Stacks.main", &line]))?;
    }
    let Some(jfr) = flight::reader(jdk) else {
        lab.not_tested("lines in recordings", &format!("no jfr in {}", jdk.home.display()));
        return Ok(());
    };
    let recording = run.folder.join("stacks.jfr");
    let to = recording.to_string_lossy();
    et_trace(lab, &["export", "--to", "jfr", "--force", "-o", &to], &run.trace)?;
    // As text, and no deeper than this stack: that of the deepest ones is gigabytes.
    let depth = stack.matches(';').count().to_string();
    let events = ["print", "--stack-depth", &depth, "--events", "jdk.ObjectAllocationSample"];
    let printed = command::quiet(Command::new(jfr).args(events).arg(&recording))?;
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let frames: Vec<&str> = printed.lines().map(str::trim).collect();
    let main = format!("Stacks.main(String[]) line: {line}");
    let is_called = |pair: &[&str]| pair[1].starts_with(&main) && pair[0].contains(" line: ");
    ensure!(frames.windows(2).any(is_called), "no line {line} in the recording");
    Ok(())
}

/// Counts are exact, too, however often slices end, and there is nothing of single objects in the trace: of that, commands say so.
fn counted(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let program = Program::of(lab, jdk, "counts_exact")?;
    let trace = program.folder.join("counts.ettrace");
    let mut run = program.command(&trace);
    let output = command::quiet(run.args(["-Det.counts=20ms", "-Det.bufferSize=64k"]).arg("Stacks"))?;
    let stdout = String::from_utf8(output.stdout)?;
    same(lab, &stdout, &trace)?;
    let summary: Value = serde_json::from_str(&et_trace(lab, &["summary", "--json", "--top", "100000"], &trace)?)?;
    let leaves = summary["classes"].as_array().context("no classes")?.iter().find(|class| class["type"] == LEAF);
    let leaves = leaves.context("no leaves")?;
    let expected: u64 = printed(&stdout)?.values().sum();
    ensure!(
        leaves["objects"] == expected && leaves["bytes"] == expected * LEAF_BYTES,
        "{leaves} rather than {expected}"
    );
    ensure!(summary["lost"] == 0 && summary["complete"] == true, "{summary}");
    let report = et_trace(lab, &["report", "--json"], &trace)?;
    ensure!(report.contains(LEAF), "the report has no leaves");
    // Two parts of the run, and what each thread allocated, are the run.
    let allocated = |arguments: &[&str]| -> Result<u64> {
        let summary: Value =
            serde_json::from_str(&et_trace(lab, &[&["summary", "--json"], arguments].concat(), &trace)?)?;
        summary["allocated"]["objects"].as_u64().with_context(|| format!("{arguments:?}: no objects"))
    };
    let all = summary["allocated"]["objects"].as_u64().context("no objects")?;
    let seconds = summary["seconds"].as_f64().context("no duration")?;
    let mut splits = 0;
    for tenth in 1..10 {
        let moment = format!("{:.3}s", seconds * f64::from(tenth) / 10.0);
        let parts = [allocated(&["--to", &moment])?, allocated(&["--from", &moment])?];
        ensure!(parts[0] + parts[1] == all, "{parts:?} of {all} at {moment}");
        splits += u32::from(parts.iter().all(|&part| part > 0));
    }
    ensure!(splits > 0, "all was allocated between two of nine moments");
    let main = allocated(&["--threads", "main"])?;
    ensure!(main > 0 && main <= all && allocated(&["--threads", "*"])? == all, "{main} of {all}");
    tabled(lab, &program, &trace, expected)?;
    for command in [["validate"].as_slice(), &["text"], &["objects"], &["heap", "--at", "50%"]] {
        let output = Command::new(lab.tools.et_trace()).args(command).arg(&trace).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1) && said.contains("counts allocations and tells of no single objects"),
            "{command:?}: {said}"
        );
    }
    Ok(())
}

/// All allocations have their site and their nearest callers, and the summary says of how many that is all.
fn beyond_the_limit(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "stacks_limited", &[], &["-Det.stacks=2000"])?;
    let (expected, found) = (printed(&run.stdout)?, in_trace(lab, &run.trace)?);
    ensure!(expected.values().sum::<u64>() == found.values().sum::<u64>(), "not all allocations are there");
    for stack in found.keys() {
        let whole = stack.rsplit(';').next().unwrap_or_default();
        ensure!(expected.keys().any(|known| known.ends_with(stack.as_str())) && !whole.is_empty(), "{stack:?}");
    }
    let summary: Value = serde_json::from_str(&et_trace(lab, &["summary", "--json"], &run.trace)?)?;
    let beyond = summary["stacks"]["beyondLimit"].as_u64().context("no count")?;
    ensure!(beyond > 1000 && summary["stacks"]["frames"].as_u64().is_some_and(|frames| frames < 10_000), "{summary}");
    let text = et_trace(lab, &["summary"], &run.trace)?;
    ensure!(text.contains("beyond the limit of stacks have only their nearest callers"), "{text}");
    Ok(())
}

/// The program, instrumented, to be started by tests themselves.
struct Program {
    folder: PathBuf,
    rewritten: PathBuf,
    java: InstrumentedJdk,
}

impl Program {
    fn of(lab: &Lab, jdk: &Jdk, test: &str) -> Result<Self> {
        Self::with(lab, jdk, test, "Stacks", &[])
    }

    fn with(lab: &Lab, jdk: &Jdk, test: &str, program: &str, options: &[&str]) -> Result<Self> {
        let folder = lab.folder(jdk, test)?;
        let classes = compiled::classes(lab, &programs(lab).join(format!("stacks/{program}.java")), 11)?;
        let rewritten = folder.join("classes-et");
        let mut rewrite = Command::new(lab.tools.et_instrument());
        command::quiet(rewrite.arg(&classes).args(EVENTS).args(options).arg("-o").arg(&rewritten))?;
        Ok(Self { folder, rewritten, java: lab.instrumented_with(jdk, EVENTS)? })
    }

    /// The command line up to the main class.
    fn command(&self, trace: &std::path::Path) -> Command {
        let mut run = Command::new(self.java.java());
        run.args(self.java.options(trace)).arg("-cp").arg(&self.rewritten);
        run
    }
}

/// Classes whose methods run before there are threads, and have no hooks for stacks.
const WITHOUT_HOOKS: [&str; 11] = [
    "java.lang.Class.",
    "java.lang.Object.",
    "java.lang.ThreadGroup.",
    "java.lang.StringCoding.",
    "java.lang.StringUTF16.",
    "java.lang.String$CaseInsensitiveComparator.",
    "java.lang.Runtime.",
    "java.lang.Runtime$Version.",
    "java.io.ObjectStreamField.",
    "jdk.internal.misc.VM.",
    "jdk.internal.misc.Unsafe.",
];

/// Native methods whose result is certainly new, or whose constructor runs at once.
const CERTAINLY_NEW: [&str; 3] = [
    "java.lang.Object.clone",
    "java.lang.reflect.Array.newArray",
    "jdk.internal.reflect.NativeConstructorAccessorImpl.newInstance0",
];

/// A class and a stack, outermost frame first, as the agent tells it. `None`: it has methods without hooks, or ends in native code.
fn walked(line: &str) -> Option<(String, String)> {
    let (descriptor, stack) = line.split_once('\t')?;
    // What other native methods make is in the trace where it is seen first.
    let last = stack.rsplit(';').next()?;
    if last.ends_with(":-1") && !CERTAINLY_NEW.iter().any(|made| last.starts_with(made)) {
        return None;
    }
    // What the runtime itself calls, and native methods.
    let is_ours = |frame: &&str| !frame.ends_with(":-1") && !frame.contains(".HeapProxy") && !is_hidden(frame);
    let frames: Vec<&str> =
        stack.split(';').filter(is_ours).map(|frame| frame.strip_suffix(":0").unwrap_or(frame)).collect();
    let is_without = |frame: &&str| WITHOUT_HOOKS.iter().any(|class| frame.starts_with(class));
    (!descriptor.contains("$$Lambda") && !frames.iter().any(is_without)).then(|| (name(descriptor), frames.join(";")))
}

/// Frames of classes that the VM hides, or that are made for method handles.
fn is_hidden(frame: &str) -> bool {
    ["$$Lambda", "LambdaForm$", "$Holder", "/0x", ".0x"].iter().any(|part| frame.contains(part))
}

fn name(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let dimensions = descriptor.len() - element.len();
    let name = match element {
        "B" => "byte".to_owned(),
        "C" => "char".to_owned(),
        "D" => "double".to_owned(),
        "F" => "float".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "S" => "short".to_owned(),
        "Z" => "boolean".to_owned(),
        class => class.trim_start_matches('L').trim_end_matches(';').replace('/', "."),
    };
    name + &"[]".repeat(dimensions)
}

fn without_lines(stack: &str) -> String {
    let method = |frame: &str| frame.split(':').next().unwrap_or_default().to_owned();
    stack.split(';').map(method).collect::<Vec<_>>().join(";")
}

/// An agent walks the stack of every tenth allocation: those stacks are in the trace.
fn walked_by_the_vm(lab: &Lab, jdk: &Jdk, test: &str, both: &[&str]) -> Result<()> {
    let walker = completeness::walker(&lab.layout, &lab.compiler)?;
    let walks = lab.layout.target.join(format!("walks-{}-{test}-{}.tsv", jdk.feature, std::process::id()));
    let agent = format!("-agentpath:{}={},10", walker.display(), walks.display());
    let run = traced(lab, jdk, test, both, &[&agent])?;
    let mut stacks = HashSet::new();
    for line in et_trace(lab, &["export", "--to", "collapsed", "--weight", "objects"], &run.trace)?.lines() {
        let (stack, _) = line.rsplit_once(' ').context("no weight")?;
        let (stack, class) = stack.rsplit_once(';').unwrap_or(("", stack));
        let is_frame = |frame: &&str| !frame.starts_with('(') && !is_hidden(frame);
        stacks.insert((class.to_owned(), stack.split(';').filter(is_frame).collect::<Vec<_>>().join(";")));
    }
    let methods: HashSet<_> = stacks.iter().map(|(class, stack)| (class.clone(), without_lines(stack))).collect();
    let (mut all, mut elsewhere, mut on_other_lines, mut by_vm) = (0, Vec::new(), 0, 0);
    for (class, stack) in fs::read_to_string(&walks)?.lines().filter_map(walked) {
        all += 1;
        if stacks.contains(&(class.clone(), stack.clone())) {
            continue;
        }
        // Where the VM calls, the frame has the line of the nearest call or allocation, and none if its method has neither.
        if stack.contains(".loadClass:") || stack.contains("<clinit>") {
            by_vm += 1;
        } else if methods.contains(&(class.clone(), without_lines(&stack))) {
            on_other_lines += 1;
        } else {
            elsewhere.push(format!("{class} on {stack}"));
        }
    }
    fs::remove_file(&walks)?;
    ensure!(all > 3_000, "only {all} walks");
    // What the VM makes for itself, such as constants, is in the trace where it is seen first.
    let most = all / 50;
    ensure!(
        elsewhere.len() + on_other_lines <= most && by_vm <= all / 200,
        "of {all}: {by_vm} below what the VM calls, {on_other_lines} on other lines, {} are not there:\n{}",
        elsewhere.len(),
        elsewhere[..elsewhere.len().min(8)].join("\n")
    );
    run.clean()
}

/// What classes without hooks, native code and the VM make has the stack of the call, and no site that makes something else.
fn made_without_hooks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let program = Program::with(lab, jdk, "unhooked", "Unhooked", &["--exclude", "Unhooked$Plain"])?;
    for (test, options) in [("objects", &[][..]), ("counts", &["-Det.counts=1s"])] {
        let trace = program.folder.join(format!("{test}.ettrace"));
        command::quiet(program.command(&trace).args(options).arg("Unhooked"))?;
        let folded = et_trace(lab, &["export", "--to", "collapsed", "--weight", "objects"], &trace)?;
        let of = |wanted: &str| {
            let count = |line: &str| line.rsplit_once(' ').filter(|(stack, _)| *stack == wanted)?.1.parse::<u64>().ok();
            folded.lines().filter_map(count).sum::<u64>()
        };
        for (stack, expected) in [
            ("Unhooked.main:27;Unhooked$Plain", 10),
            ("Unhooked.main:28;Unhooked$Derived", 10),
            ("Unhooked.main;(by the VM or native code);Unhooked$Leaf", 20),
            ("Unhooked.main:29;(by the VM or native code);Unhooked$Leaf", 10),
            ("Unhooked.main:31;(by the VM or native code);java.lang.NullPointerException", 10),
        ] {
            ensure!(of(stack) == expected, "{test}: {} rather than {expected} {stack}", of(stack));
        }
        let is_reflected = |line: &&str| line.starts_with("Unhooked.main:30;") && line.contains(";Unhooked$Leaf ");
        let reflected =
            folded.lines().filter(is_reflected).filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        ensure!(reflected.sum::<u64>() == 10, "{test}: {folded}");
        let summary: Value = serde_json::from_str(&et_trace(lab, &["summary", "--json"], &trace)?)?;
        ensure!(summary["lost"] == 0 && summary["complete"] == true, "{test}: {summary}");
    }
    Ok(())
}

/// At its end a program does not wait for a thread that was suspended in the midst of a walk.
fn ends_while_others_walk(lab: &Lab, jdk: &Jdk) -> Result<()> {
    // Without the lock of its own that counts have now, one run in six never ended.
    const RUNS: usize = 8;
    const PATIENCE: Duration = Duration::from_secs(60);
    let program = Program::with(lab, jdk, "stacks_ends", "Ends", &[])?;
    for round in 0..RUNS {
        let trace = program.folder.join(format!("{round}.ettrace"));
        let mut child = program.command(&trace).arg("Ends").spawn()?;
        let status = ended(&mut child, PATIENCE)?;
        let status = status.with_context(|| format!("run {round} has not ended after {PATIENCE:?}"))?;
        ensure!(status.success(), "run {round}: {status}");
        let summary: Value = serde_json::from_str(&et_trace(lab, &["summary", "--json"], &trace)?)?;
        ensure!(
            summary["complete"] == true && summary["stacks"]["stacks"].as_u64() > Some(100),
            "run {round}: {summary}"
        );
    }
    Ok(())
}

/// A program that is killed leaves the stacks of all its allocations.
fn killed(lab: &Lab, jdk: &Jdk, test: &str, options: &[&str]) -> Result<()> {
    let program = Program::of(lab, jdk, test)?;
    let kills: u64 = std::env::var("ET_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let mut seen = 0;
    for round in 0..15.max(kills) {
        // On a busy machine it takes long until the program allocates.
        if round >= kills && seen > 1000 {
            break;
        }
        let trace = program.folder.join(format!("{round}.ettrace"));
        let mut run = program.command(&trace);
        run.args(options).arg("Stacks").stdout(Stdio::null());
        let mut child = run.spawn()?;
        // Most of the time the program is on a stack that is new, and is being walked.
        sleep(Duration::from_millis(700 + 400 * (round % 10) + round * 7919 % 397));
        child.kill()?;
        child.wait()?;
        if !trace.exists() {
            continue;
        }
        let found = in_trace(lab, &trace)?;
        seen += found.values().sum::<u64>();
        // Those of other threads, if the program has come so far, begin in a lambda.
        let is_whole = |stack: &String| stack.starts_with("Stacks.main:") || stack.starts_with("Stacks.lambda$main$");
        let unknown: Vec<&String> = found.keys().filter(|stack| !is_whole(stack)).collect();
        ensure!(unknown.is_empty(), "round {round}: {unknown:?}");
    }
    ensure!(seen > 1000, "only {seen} allocations in all");
    Ok(())
}
