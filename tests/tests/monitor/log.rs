//! The log for the viewers of TPTP.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;

use crate::client::{PATIENCE, Program};

pub fn trials() -> Vec<Trial> {
    let mut trials = lab::on_each_jdk("log", whole);
    trials.extend(lab::on_each_jdk("log_of_a_killed_program", killed));
    trials.push(lab::on_jdk_unless(17, "options_that_make_no_sense", |_, _| None, nonsense));
    trials
}

/// An element: its name, and its attributes as they are written.
#[derive(Debug)]
struct Element<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Element<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(it, _)| *it == name).map(|(_, value)| *value)
    }
}

/// One a line, between the lines of `TRACE`.
fn elements(text: &str) -> Result<Vec<Element<'_>>> {
    let inner = text.split_once("<TRACE>\n").context("no TRACE")?.1;
    let inner = inner
        .strip_suffix("</TRACE>\n")
        .with_context(|| format!("no end: {}", &inner[inner.len().saturating_sub(200)..]))?;
    inner
        .lines()
        .map(|line| {
            let line =
                line.strip_prefix('<').and_then(|line| line.strip_suffix("/>")).with_context(|| line.to_owned())?;
            let (name, mut rest) = line.split_once(' ').unwrap_or((line, ""));
            let mut attributes = Vec::new();
            while let Some((name, behind)) = rest.split_once("=\"") {
                let (value, behind) = behind.split_once('"').with_context(|| line.to_owned())?;
                attributes.push((name.trim_start(), value));
                rest = behind;
            }
            Ok(Element { name, attributes })
        })
        .collect()
}

/// Each use behind its definition, and no number defined twice.
fn check_definitions(elements: &[Element]) -> Result<()> {
    let defines = |element: &Element| match element.name {
        "classDef" => Some(("class", "classId")),
        "methodDef" => Some(("method", "methodId")),
        "threadStart" => Some(("thread", "threadId")),
        "objAlloc" | "objDef" => Some(("object", "objId")),
        "heapDumpDef" => Some(("dump", "heapDumpId")),
        _ => None,
    };
    let uses = |name: &str| match name {
        "classIdRef" => Some("class"),
        "methodIdRef" => Some("method"),
        "threadIdRef" | "threadOwner" => Some("thread"),
        "objIdRef" | "srcIdRef" | "targetIdRef" => Some("object"),
        "heapDumpIdRef" => Some("dump"),
        _ => None,
    };
    let mut defined: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for element in elements {
        for (name, value) in &element.attributes {
            if let Some(kind) = uses(name) {
                // A class is the first of all; it is its own class.
                let is_there = defined.get(kind).is_some_and(|known| known.contains(value));
                ensure!(is_there, "{name} is not defined before {element:?}");
            }
        }
        if let Some((kind, name)) = defines(element) {
            let id = element.get(name).with_context(|| format!("{element:?}"))?;
            ensure!(defined.entry(kind).or_default().insert(id), "{element:?} is the second");
        }
    }
    Ok(())
}

/// By a validator of others.
fn validate(lab: &Lab, file: &Path) -> Result<()> {
    let schema = lab.layout.repo.join("docs/trcxml.xsd");
    let lint = Command::new("xmllint").args(["--noout", "--schema"]).args([&schema, file]).output();
    let Ok(output) = lint else {
        lab.not_tested("monitor::log against its schema", "there is no xmllint (Debian: libxml2-utils)");
        return Ok(());
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}", said.lines().take(5).collect::<Vec<_>>().join("\n"));
    Ok(())
}

fn count(elements: &[Element], name: &str) -> usize {
    elements.iter().filter(|element| element.name == name).count()
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

fn killed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_killed")?;
    let file = folder.join("run.trcxml");
    let options = format!("quiet=on,xml={},heap=on", file.display());
    let mut program = Program::start_in(lab, jdk, &folder, Some(&options), &[], "Contended", &[])?;
    program.expect("ready")?;
    program.go_on()?;
    // In the middle of it: a thread waits for a monitor, and everything is told of.
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

/// One clear line, and no program.
fn nonsense(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for (options, says) in [
        ("prot=1", "monitor: unknown option prot: there are port, "),
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
