//! Compares the objects of a trace, by class, with those that the VM itself counted (docs/evidence/completeness.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use crate::jdks::Jdk;
use crate::layout::{Layout, Tools};
use crate::{command, instrumented};

/// Compiles the agent that counts objects.
pub fn counter(layout: &Layout, compiler: &Jdk) -> Result<PathBuf> {
    agent(layout, compiler, "counter")
}

/// Compiles the agent that walks the stack of each allocation.
pub fn walker(layout: &Layout, compiler: &Jdk) -> Result<PathBuf> {
    agent(layout, compiler, "walker")
}

fn agent(layout: &Layout, compiler: &Jdk, name: &str) -> Result<PathBuf> {
    let folder = layout.target.join("counter");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Concurrent tests, in threads or processes, share the library, and must not load an incomplete one.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let library = folder.join(format!("lib{name}-{}-{number}.so", std::process::id()));
    let include = compiler.home.join("include");
    ensure!(include.join("jvmti.h").is_file(), "{} has no jvmti.h: the agent needs it", include.display());
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread"]);
    cc.arg("-I").arg(&include).arg("-I").arg(include.join("linux"));
    command::quiet(cc.arg("-o").arg(&library).arg(layout.repo.join(format!("tests/counter/{name}.c"))))?;
    let finished = folder.join(format!("lib{name}.so"));
    fs::rename(&library, &finished).with_context(|| format!("cannot write {}", finished.display()))?;
    Ok(finished)
}

/// The JVM option that loads the agent; it must come before those that load the runtime.
pub fn counter_option(counter: &Path, counts: &Path, stacks: bool) -> String {
    format!("-agentpath:{}={}{}", counter.display(), counts.display(), if stacks { ",stacks" } else { "" })
}

/// Compares the trace of a run with the counts of the agent.
pub fn compare(tools: &Tools, trace: &Path, counts: &Path) -> Result<Comparison> {
    let counted =
        Counted::parse(&fs::read_to_string(counts).with_context(|| format!("no counts in {}", counts.display()))?)?;
    let recorded = Recorded::of_summary(&instrumented::summary(tools, trace, usize::MAX)?)?;
    Ok(Comparison::of(&counted, &recorded))
}

/// The objects that the VM allocated, by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Objects by class.
    pub objects: BTreeMap<String, u64>,
    /// Objects allocated by the runtime's own threads, which must not be in the trace.
    pub ours: u64,
    /// Innermost frames of allocations, most frequent first, by class.
    pub stacks: BTreeMap<String, Vec<(u64, String)>>,
}

impl Counted {
    /// Reads what `tests/counter` wrote.
    pub fn parse(text: &str) -> Result<Self> {
        let mut counted = Self::default();
        for (index, line) in text.lines().enumerate() {
            counted.line(line).with_context(|| format!("counts, line {}: {line:?}", index + 1))?;
        }
        for stacks in counted.stacks.values_mut() {
            stacks.sort_by(|a, b| b.cmp(a));
        }
        Ok(counted)
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let mut fields = line.split('\t');
        let kind = fields.next();
        let class = class_name(fields.next().context("no class")?);
        let objects: u64 = fields.next().context("no number of objects")?.parse()?;
        if kind == Some("C") {
            let ours: u64 = fields.nth(1).context("no number of our own objects")?.parse()?;
            self.ours += ours;
            *self.objects.entry(class).or_default() += objects;
        } else {
            let frames = fields.next().context("no frames")?;
            let frames: Vec<String> = frames.split(';').filter(|part| !part.is_empty()).map(frame).collect();
            // `Lfoo/Bar;.baz` was cut in two at its semicolon.
            let joined = frames.chunks(2).map(|pair| pair.concat()).collect::<Vec<_>>().join(" < ");
            self.stacks.entry(class).or_default().push((objects, joined));
        }
        Ok(())
    }
}

fn frame(part: &str) -> String {
    match part.strip_prefix('.') {
        Some(method) => format!(".{method}"),
        None => class_name(&format!("{part};")),
    }
}

/// The objects of one class in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Recorded when they were allocated: records N, A and V.
    pub at_birth: u64,
    /// First seen later: records P.
    pub found: u64,
}

/// The objects in a trace, by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// By class.
    pub objects: BTreeMap<String, Kinds>,
}

impl Recorded {
    /// From `et-trace summary --json` with all classes.
    pub fn of_summary(summary: &serde_json::Value) -> Result<Self> {
        let mut recorded = Self::default();
        for class in summary["classes"].as_array().context("the summary has no list of classes")? {
            let name = class["type"].as_str().context("a class without type in the summary")?;
            let kinds = class["kinds"].as_object().context("a class without kinds in the summary")?;
            let sum = recorded.objects.entry(grouped(name)).or_default();
            for (letter, count) in kinds {
                let count = count.as_u64().context("a count in the summary is not a number")?;
                if letter == "P" { sum.found += count } else { sum.at_birth += count }
            }
        }
        Ok(recorded)
    }
}

/// One class of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name as in Java source; classes generated at run time are grouped.
    pub name: String,
    /// Number of objects that the VM counted.
    pub made: u64,
    /// Numbers of objects in the trace.
    pub kinds: Kinds,
    /// Where most of its objects are allocated.
    pub stacks: Vec<(u64, String)>,
}

impl Class {
    /// Number of objects recorded when they were allocated.
    pub fn recorded(&self) -> u64 {
        self.kinds.at_birth.min(self.made)
    }

    /// Number of objects whose allocation is not in the trace.
    pub fn missing(&self) -> u64 {
        self.made - self.recorded()
    }

    /// Number of objects in the trace beyond those that the VM counted: of another class, or recorded twice.
    pub fn surplus(&self) -> u64 {
        self.kinds.at_birth.saturating_sub(self.made)
    }
}

/// A trace compared with the VM's own count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Classes, those with the most missing objects first.
    pub classes: Vec<Class>,
    /// Objects allocated by the runtime's own threads.
    pub ours: u64,
}

impl Comparison {
    /// Compares the two.
    pub fn of(counted: &Counted, recorded: &Recorded) -> Self {
        let mut names: Vec<&String> = counted.objects.keys().chain(recorded.objects.keys()).collect();
        names.sort();
        names.dedup();
        let class = |name: &String| Class {
            name: name.clone(),
            made: counted.objects.get(name).copied().unwrap_or_default(),
            kinds: recorded.objects.get(name).copied().unwrap_or_default(),
            stacks: counted.stacks.get(name).cloned().unwrap_or_default(),
        };
        let mut classes: Vec<Class> = names.into_iter().map(class).collect();
        classes.sort_by_key(|class| std::cmp::Reverse((class.missing(), class.surplus())));
        Self { classes, ours: counted.ours }
    }

    /// Number of objects that the VM allocated.
    pub fn made(&self) -> u64 {
        self.classes.iter().map(|class| class.made).sum()
    }

    /// Number of objects whose allocation is in the trace.
    pub fn recorded(&self) -> u64 {
        self.classes.iter().map(Class::recorded).sum()
    }

    /// Number of objects that appear later in the trace.
    pub fn found(&self) -> u64 {
        self.classes.iter().map(|class| class.kinds.found).sum()
    }

    /// Number of objects in the trace that the VM did not count.
    pub fn surplus(&self) -> u64 {
        self.classes.iter().map(Class::surplus).sum()
    }
}

/// `Ljava/lang/String;` is `java.lang.String`, `[[I` is `int[][]`, as `et-trace summary` shows them; classes created
/// at run time lose their address.
fn class_name(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let name = match element {
        "Z" => "boolean".into(),
        "B" => "byte".into(),
        "C" => "char".into(),
        "S" => "short".into(),
        "I" => "int".into(),
        "J" => "long".into(),
        "F" => "float".into(),
        "D" => "double".into(),
        class => class.strip_prefix('L').and_then(|class| class.strip_suffix(';')).unwrap_or(class).replace('/', "."),
    };
    grouped(&(name + &"[]".repeat(descriptor.len() - element.len())))
}

/// One name for all classes of a kind that the VM creates: `Foo$$Lambda$14.0x0000000800c03000` is `Foo$$Lambda`.
fn grouped(name: &str) -> String {
    let class = name.trim_end_matches("[]");
    let cut = class.find("$$Lambda").map(|at| at + "$$Lambda".len());
    let cut = cut.or_else(|| [".0x", "+0x"].iter().filter_map(|mark| class.find(mark)).min());
    match cut {
        Some(cut) => format!("{}{}", &class[..cut], &name[class.len()..]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_summary() {
        for (descriptor, name) in [
            ("[[I", "int[][]"),
            ("[Ljava/util/Map$Entry;", "java.util.Map$Entry[]"),
            ("Lshop/Main$$Lambda$14.0x0000000800c03000;", "shop.Main$$Lambda"),
            ("Ljava/lang/invoke/LambdaForm$MH.0x0000000800c03000;", "java.lang.invoke.LambdaForm$MH"),
            ("Ljava/lang/invoke/LambdaForm$MH/0x0000000800c03000;", "java.lang.invoke.LambdaForm$MH"),
            ("?", "?"),
        ] {
            assert_eq!(class_name(descriptor), name);
        }
    }

    #[test]
    fn missing_and_surplus() {
        let counts = "C\t[I\t10\t160\t0\nC\tLa/B;\t3\t48\t2\nC\tLa/C;\t4\t64\t0\n\
                      S\t[I\t4\tLa/B;.copy;La/B;.<init>\nS\t[I\t6\tLa/C;.grow\n";
        let counted = Counted::parse(counts).unwrap();
        assert_eq!(counted.ours, 2);
        assert_eq!(counted.stacks["int[]"], [(6, "a.C.grow".to_owned()), (4, "a.B.copy < a.B.<init>".to_owned())]);
        let summary = serde_json::json!({ "classes": [
            { "type": "int[]", "kinds": { "A": 5, "V": 2, "P": 1 } },
            { "type": "a.B", "kinds": { "N": 5 } },
            { "type": "a.C", "kinds": { "N": 4 } },
        ]});
        let comparison = Comparison::of(&counted, &Recorded::of_summary(&summary).unwrap());
        assert_eq!(comparison.classes[0].name, "int[]");
        assert_eq!((comparison.classes[0].missing(), comparison.classes[0].kinds.found), (3, 1));
        assert_eq!((comparison.made(), comparison.recorded()), (17, 14));
        assert_eq!((comparison.found(), comparison.surplus(), comparison.ours), (1, 2, 2));
    }

    #[test]
    fn damaged_counts_are_named() {
        let error = format!("{:#}", Counted::parse("C\t[I\tmany\n").unwrap_err());
        assert!(error.contains("line 1"), "{error}");
    }
}
