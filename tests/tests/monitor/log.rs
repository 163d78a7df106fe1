//! The log for the viewers of TPTP.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use et_ddm::{Chunk, ChunkType, Message, Request};
use et_tests::compiled;
use et_tests::lab::{self, Lab};
use et_tests::trcxml::{check_definitions, count, elements, validate};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;

use crate::client::{Client, PATIENCE, Program, library};

pub fn trials() -> Vec<Trial> {
    let mut trials = lab::on_each_jdk("log", whole);
    trials.extend(lab::on_one_jdk("heap_dumps_on_demand", on_demand));
    trials.extend(lab::on_one_jdk("log_of_a_killed_program", killed));
    trials.extend(lab::on_one_jdk("log_on_a_full_disk", full));
    trials.push(lab::on_jdk_unless(25, "log_without_standard_files", |_, _| None, without_standard_files));
    trials.push(lab::on_jdk_unless(17, "options_that_make_no_sense", |_, _| None, nonsense));
    trials
}

fn whole(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_log")?;
    let filter = folder.join("filter.txt");
    fs::write(&filter, "# the first line that fits decides\nPattern$Item * INCLUDE\nlong[] * INCLUDE\n* * EXCLUDE\n")?;
    let options =
        format!("quiet=on,xml={},heap=on,filter={},dump=end", folder.join("run-%p.trcxml").display(), filter.display());
    // A collector that moves everything, and frees what is dead at once.
    let java = ["-XX:+UseSerialGC", "-Xmx64m"];
    let mut program = Program::start_in(lab, jdk, &folder, Some(&options), &java, "Pattern", &[])?;
    program.expect("ready")?;
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    let file = folder.join(format!("run-{}.trcxml", program.pid()));
    validate(lab, &file)?;
    let text = fs::read_to_string(&file)?;
    let elements = elements(&text)?;
    check_definitions(&elements)?;
    let class = |name: &str| -> Result<&str> {
        let def = elements.iter().find(|element| element.name == "classDef" && element.get("name") == Some(name));
        def.and_then(|element| element.get("classId")).with_context(|| format!("no {name}"))
    };
    let item = class("Pattern$Item")?;
    let items: HashSet<&str> = elements
        .iter()
        .filter(|element| element.name == "objAlloc" && element.get("classIdRef") == Some(item))
        .filter_map(|element| element.get("objId"))
        .collect();
    // The VM of 11 leaves allocations out now and then.
    let (least, of) = if jdk.feature == 11 { (400, "jdk11::log: all allocations") } else { (1000, "") };
    if !of.is_empty() && items.len() < 1000 {
        lab.not_tested(of, &format!("the VM has told of {} of 1000", items.len()));
    }
    ensure!((least..=1000).contains(&items.len()), "{} items", items.len());
    let freed = elements.iter().filter(|it| it.name == "objFree").filter_map(|it| it.get("objIdRef"));
    let freed = freed.filter(|id| items.contains(id)).count();
    ensure!(freed * 2 == items.len() || (jdk.feature == 11 && freed > 100), "{freed} freed");
    // Where it was, and nothing of classes outside the filter.
    let first = elements.iter().find(|it| it.name == "objAlloc" && it.get("classIdRef") == Some(item));
    let first = first.context("no allocation")?;
    let method = elements.iter().find(|it| it.name == "methodDef" && it.get("methodId") == first.get("methodIdRef"));
    let method = method.with_context(|| format!("{first:?}"))?;
    let source = fs::read_to_string(lab.layout.repo.join("tests/java/monitor/Pattern.java"))?;
    let line = source.lines().position(|line| line.contains("new Item()")).context("no allocation")? + 1;
    let is_there = first.get("lineNumber").is_some_and(|number| number == line.to_string());
    ensure!(method.get("name") == Some("main") && is_there, "{method:?} {first:?}");
    let thread = elements.iter().find(|it| it.name == "threadStart" && it.get("threadId") == first.get("threadIdRef"));
    let is_main = thread.is_some_and(|thread| thread.get("threadName") == Some("main"));
    ensure!(first.get("size") == Some("24") && is_main, "{first:?}");
    let longs = class("long[]")?;
    // Arrays follow the class of their elements.
    let allowed = [item, longs, class("Pattern$Item[]")?];
    let others = elements.iter().filter(|it| it.name == "objAlloc");
    let others = others.filter(|it| it.get("classIdRef").is_none_or(|class| !allowed.contains(&class))).count();
    ensure!(others == 0, "{others} of other classes");
    // The graph: the array of items holds those that live.
    let references = elements.iter().filter(|it| it.name == "objectReference" && it.get("index").is_some());
    let held = references.filter(|it| it.get("targetIdRef").is_some_and(|id| items.contains(id))).count();
    ensure!(held == items.len() - freed, "{held} references to items");
    for name in ["gcStart", "gcFinish", "gcRoot", "heapDumpDef", "threadEnd", "traceEnd", "node", "processCreate"] {
        ensure!(count(&elements, name) > 0, "no {name}");
    }
    Ok(())
}

/// Dumps reach the log while the program runs, each with all that can be reached then.
fn on_demand(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_on_demand")?;
    let file = folder.join("run.trcxml");
    let options = format!("quiet=on,xml={}", file.display());
    let mut program = Program::start_in(lab, jdk, &folder, Some(&options), &["-Xmx64m"], "Pattern", &[])?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    let Some(Message::Features(features)) = client.ask(Request::Features)? else { anyhow::bail!("no features") };
    ensure!(features.iter().any(|it| it == "et-log"), "{features:?}");
    let mut dumps = Vec::new();
    for name in ["before <the> order", "the same \u{1f418}"] {
        match client.ask(Request::LogHeap { name: name.to_owned() })? {
            Some(Message::HeapLogged(dump)) => dumps.push((dump, name)),
            reply => anyhow::bail!("{reply:?}"),
        }
    }
    // One that a monitor takes for itself is there, too.
    let graph = client.ask(Request::Other(Chunk::new(ChunkType(*b"ETRG"), vec![0])))?;
    ensure!(matches!(graph, Some(Message::Other(_))), "{graph:?}");
    // The program has not ended: what was asked for is in the file all the same.
    let text = fs::read_to_string(&file)?;
    let elements = elements(&text)?;
    check_definitions(&elements)?;
    validate(lab, &file)?;
    ensure!(count(&elements, "heapDumpDef") == 3 && count(&elements, "traceEnd") == 0, "{} dumps", dumps.len());
    let class = elements.iter().find(|it| it.name == "classDef" && it.get("name") == Some("Pattern$Item"));
    let class = class.and_then(|it| it.get("classId")).context("no Pattern$Item")?;
    let items: HashSet<&str> = elements
        .iter()
        .filter(|it| it.name == "objDef" && it.get("classIdRef") == Some(class))
        .filter_map(|it| it.get("objId"))
        .collect();
    ensure!(items.len() == 500, "{} items live", items.len());
    for (dump, name) in &dumps {
        let id = dump.dump.to_string();
        let def = elements.iter().find(|it| it.name == "heapDumpDef" && it.get("heapDumpId") == Some(&id));
        let def = def.with_context(|| format!("no dump {id}"))?;
        let escaped = name.replace('<', "&lt;").replace('>', "&gt;");
        ensure!(def.get("name") == Some(&escaped) && Path::new(&dump.file) == file, "{def:?} {dump:?}");
        let its = |name: &'static str| {
            let id = &id;
            elements.iter().filter(move |it| it.name == name && it.get("heapDumpIdRef") == Some(id))
        };
        let held = its("objectReference").filter(|it| it.get("targetIdRef").is_some_and(|id| items.contains(id)));
        ensure!(held.count() == 500, "not each item is held once in dump {id}");
        let told = (its("objectReference").count() as u64, its("gcRoot").count() as u64);
        ensure!(told == (dump.references, dump.roots) && dump.objects > 1000 && dump.roots > 10, "{told:?} {dump:?}");
    }
    drop(client);
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    // Without a log there is nothing that a dump could go to.
    let mut plain = Program::start(lab, jdk, "no_log", Some("quiet=on"), &[], "Pattern")?;
    plain.expect("ready")?;
    let reply = Client::new(&plain)?.ask(Request::LogHeap { name: "x".into() })?;
    ensure!(matches!(&reply, Some(Message::Fail(why)) if why.message.contains("no log")), "{reply:?}");
    plain.kill()
}

fn killed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_killed")?;
    let file = folder.join("run.trcxml");
    let options = format!("quiet=on,xml={},heap=on", file.display());
    let mut program = Program::start_in(lab, jdk, &folder, Some(&options), &[], "Contended", &[])?;
    program.expect("ready")?;
    program.go_on()?;
    // While a thread waits for a monitor and everything is being logged.
    let end = Instant::now() + PATIENCE;
    while !fs::read_to_string(&file).unwrap_or_default().contains(" threadOwner=") && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    program.kill()?;
    validate(lab, &file)?;
    let text = fs::read_to_string(&file)?;
    let elements = elements(&text)?;
    check_definitions(&elements)?;
    ensure!(count(&elements, "objAlloc") > 100 && count(&elements, "traceEnd") == 0, "{} elements", elements.len());
    let waits =
        elements.iter().any(|element| element.name == "monContendedEnter" && element.get("threadOwner").is_some());
    ensure!(waits, "no contention");
    let escaped = elements.iter().any(|element| element.get("threadName") == Some("waiter &lt;&amp;&quot;&gt;"));
    ensure!(escaped, "no thread of that name");
    Ok(())
}

/// The program continues, one line says why the log ends, and what has been written is well-formed.
fn full(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_full")?;
    let file = folder.join("run.trcxml");
    let source = lab.layout.repo.join("tests/java/monitor/Pattern.java");
    let classes = compiled::classes(lab, &source, 11)?;
    // 150 KB and no more, as a file system says it that is full.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 300; exec \"$@\"", "sh"]).arg(jdk.java()).arg("-XX:-UsePerfData");
    command.arg(format!("-agentpath:{}=quiet=on,xml={},heap=on", library()?.display(), file.display()));
    command.arg("-cp").arg(classes).arg("Pattern");
    let mut program = Program::spawn(command, &folder)?;
    program.expect("ready")?;
    program.go_on()?;
    program.expect("1600 1000 true")?;
    ensure!(program.end()?.success(), "{}", program.said());
    let said = program.said();
    let line = format!("monitor: cannot write {}: File too large (os error 27); the log ends here\n", file.display());
    ensure!(said == line, "{said}");
    let text = fs::read_to_string(&file)?;
    let elements = elements(&text)?;
    check_definitions(&elements)?;
    ensure!(elements.len() > 10 && count(&elements, "traceEnd") == 0, "{} elements", elements.len());
    validate(lab, &file)
}

/// If standard files are closed, output of the program does not get into the log.
fn without_standard_files(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_without_standard_files")?;
    let file = folder.join("run.trcxml");
    let classes = compiled::classes(lab, &lab.layout.repo.join("tests/java/endings/Busy.java"), 11)?;
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" <&- >&- 2>&-", "sh"]).arg(jdk.java());
    command.arg(format!("-agentpath:{}=xml={}", library()?.display(), file.display()));
    let status = command.arg("-cp").arg(classes).args(["Busy", "2000"]).current_dir(&folder).status()?;
    ensure!(status.code() == Some(7), "{status}");
    let text = fs::read_to_string(&file)?;
    ensure!(!text.contains("ready") && !text.contains("monitor: "), "{text}");
    validate(lab, &file)
}

/// One clear line, and no program.
fn nonsense(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for (options, says) in [
        ("prot=1", "monitor: unknown option prot: use listen, port, "),
        ("listen=off", "monitor: option listen=off needs a log: xml=FILE"),
        (
            "xml=/dev/null,heap=on,filter=a INCLUDE;b MAYBE",
            "monitor: filter: line 2: MAYBE is neither INCLUDE nor EXCLUDE",
        ),
        ("heap=on", "monitor: option heap has no effect without xml=FILE"),
        ("xml=/nowhere/x", "monitor: cannot write /nowhere/x: "),
        ("xml=/dev/null,heap=on,filter=/nowhere/f", "monitor: cannot read /nowhere/f: "),
    ] {
        let mut program = Program::start(lab, jdk, "nonsense", Some(options), &[], "Pattern")?;
        let status = program.end()?;
        let said = program.said();
        ensure!(!status.success() && said.starts_with(says), "{options}: {said}");
    }
    Ok(())
}
