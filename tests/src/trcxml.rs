//! Reads logs in the format of TPTP's viewers, and has a validator of others look at them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::flight::Stop;
use crate::lab::Lab;

/// An element: its name, and its attributes as they are written.
#[derive(Debug)]
pub struct Element<'a> {
    pub name: &'a str,
    /// Attributes in order.
    pub attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Element<'a> {
    /// An attribute, as it is written.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(it, _)| *it == name).map(|(_, value)| *value)
    }
}

/// One a line, between the lines of `TRACE`.
pub fn elements(text: &str) -> Result<Vec<Element<'_>>> {
    let inner = text.split_once("<TRACE>\n").context("no TRACE")?.1;
    let inner = inner
        .strip_suffix("</TRACE>\n")
        .with_context(|| format!("no end: {}", &inner[inner.len().saturating_sub(200)..]))?;
    inner
        .lines()
        .filter(|line| !line.starts_with("<!--"))
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

/// Each use comes after its definition, and no number is defined twice.
pub fn check_definitions(elements: &[Element]) -> Result<()> {
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

/// Validates a file with a third-party validator.
pub fn validate(lab: &Lab, file: &Path) -> Result<()> {
    let schema = lab.layout.repo.join("docs/trcxml.xsd");
    let lint = Command::new("xmllint").args(["--noout", "--schema"]).args([&schema, file]).output();
    let Ok(output) = lint else {
        lab.not_tested("logs against their schema", "there is no xmllint (Debian: libxml2-utils)");
        return Ok(());
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}", said.lines().take(5).collect::<Vec<_>>().join("\n"));
    Ok(())
}

/// How many there are of a name.
pub fn count(elements: &[Element], name: &str) -> usize {
    elements.iter().filter(|element| element.name == name).count()
}

/// A text as it was before it was written.
fn unescaped(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Times that threads spent at monitors.
pub fn stops(elements: &[Element]) -> Result<Vec<Stop>> {
    let names = |element: &str, id: &str, name: &str| -> HashMap<String, String> {
        let all = elements.iter().filter(|it| it.name == element);
        all.filter_map(|it| Some((it.get(id)?.to_owned(), unescaped(it.get(name)?)))).collect()
    };
    let (threads, classes) = (names("threadStart", "threadId", "threadName"), names("classDef", "classId", "name"));
    let objects = elements.iter().filter(|it| it.name == "objAlloc" || it.name == "objDef");
    let objects: HashMap<&str, &str> =
        objects.filter_map(|it| Some((it.get("objId")?, it.get("classIdRef")?))).collect();
    let mut entering: HashMap<(&str, &str), (f64, Option<&str>)> = HashMap::new();
    let mut found = Vec::new();
    for element in elements.iter().filter(|it| it.name.starts_with("mon")) {
        let attribute = |name: &str| element.get(name).with_context(|| format!("{element:?}"));
        let (thread, object) = (attribute("threadIdRef")?, attribute("objIdRef")?);
        let time: f64 = attribute("time")?.parse()?;
        let (is_wait, owner, millis) = match element.name {
            "monContendedEnter" => {
                entering.insert((thread, object), (time, element.get("threadOwner")));
                continue;
            }
            "monContendedEntered" => match entering.remove(&(thread, object)) {
                Some((since, owner)) => (false, owner, (time - since) * 1000.0),
                None => continue,
            },
            "monWaited" => (true, None, attribute("timeout")?.parse()?),
            _ => continue,
        };
        let class = objects.get(object).and_then(|class| classes.get(*class)).cloned().unwrap_or_default();
        found.push(Stop {
            is_wait,
            class,
            thread: threads.get(thread).cloned().unwrap_or_default(),
            owner: owner.and_then(|owner| threads.get(owner)).cloned(),
            millis,
            is_timed_out: false,
        });
    }
    Ok(found)
}
