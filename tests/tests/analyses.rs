//! Analyses of `et-trace`: a program with known results, and their output in other tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use et_tests::flight;
use et_tests::lab::{self, Lab, SOME_JDKS};
use et_tests::program::{Run, Setup};
use serde_json::Value;
use xtask::jdks::{self, Jdk};
use xtask::{browser, command};

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 11] = [
        ("objects", objects),
        ("references", references),
        ("escape", escape),
        ("correlate", correlate),
        ("pretenure", pretenure),
        ("connectivity", connectivity),
        ("shape", shape),
        ("diff", diff),
        ("export", export),
        ("recording", recording),
        ("source", source),
    ];
    let mut trials: Vec<_> = cases.into_iter().flat_map(|(name, case)| lab::on_one_jdk(name, case)).collect();
    let no_javac = |_: &Lab, jdk: &Jdk| jdk.javac().is_none().then(|| format!("no javac in {}", jdk.home.display()));
    trials.push(lab::on_jdk_unless(17, "diff_of_compilers", no_javac, diff_of_compilers));
    let no_browser = |_: &Lab, _: &Jdk| browser::obstacle();
    trials.push(lab::on_jdk_unless(17, "profiles_in_other_tools", no_browser, in_other_tools));
    lab::run(trials).exit_code()
}

fn traced(lab: &Lab, jdk: &Jdk, test: &str, both: &[&str]) -> Result<Run> {
    let setup = Setup { both, ..Setup::default() };
    Run::with(lab, jdk, &format!("analyses_{test}"), "analyses/Lives", setup)
}

fn et_trace(lab: &Lab, arguments: &[&str], run: &Run) -> Command {
    let mut command = Command::new(lab.tools.et_trace());
    command.args(arguments).arg(&run.trace);
    command
}

fn json(lab: &Lab, arguments: &[&str], run: &Run) -> Result<Value> {
    let output = et_trace(lab, &[arguments, &["--json", "--top", "100000"]].concat(), run).output()?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The line of the site that makes objects of a class of the program.
fn line<'a>(found: &'a Value, class: &str) -> Result<&'a Value> {
    let name = format!("Lives${class}");
    let lines = found["sites"].as_array().context("no sites")?;
    lines.iter().find(|line| line["type"] == name.as_str()).with_context(|| format!("no site makes {name}"))
}

/// The same numbers as `escape`, and objects that outlived their method died later than those that did not.
fn objects(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "objects", &[])?;
    for (class, expected) in [("Local", 100), ("Returned", 50), ("Kept", 2000), ("Shared", 10)] {
        let name = format!("Lives${class}");
        let found = json(lab, &["objects", "--class", &name], &run)?;
        let listed = found["objects"].as_array().context("no objects")?;
        ensure!(found["found"]["objects"] == expected && listed.len() == expected, "{class}: {found}");
        for line in listed {
            let has_method = |method: &Value| method.as_str().is_some_and(|method| method.starts_with("Lives."));
            let context = line["context"].as_array().context("no context")?;
            ensure!(line["class"] == name.as_str() && context.iter().any(has_method), "{line}");
            ensure!(line["died"]["tick"].as_u64() >= line["born"]["tick"].as_u64() || line["died"].is_null(), "{line}");
        }
        // What was alive in the middle of the life of the first is found then.
        let (first, tick) = (&listed[0]["id"], &listed[0]["born"]["tick"]);
        let at = json(lab, &["objects", "--class", &name, "--alive-at", &format!("tick:{tick}")], &run)?;
        let alive = at["objects"].as_array().context("no objects")?;
        let has_died_at_once = listed[0]["died"]["tick"] == *tick;
        ensure!(has_died_at_once || alive.iter().any(|line| line["id"] == *first), "{first} is not alive: {at}");
    }
    Ok(())
}

/// What `object` and `field` say of boxes, each with its item; of what is kept in a list to the end; and of what is handed to a thread.
fn references(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "references", &[])?;
    let ask = |command: &str, what: &str, more: &[&str]| -> Result<Value> {
        let mut ask = Command::new(lab.tools.et_trace());
        let output = ask.arg(command).arg(&run.trace).arg(what).args(more).arg("--json").output()?;
        ensure!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let first = |class: &str| -> Result<String> {
        let found = json(lab, &["objects", "--class", class], &run)?;
        Ok(found["objects"][0]["id"].as_str().context("no id")?.to_owned())
    };
    let field = ask("field", "Lives$Box.item", &[])?;
    for (what, expected) in [("references", 40), ("objects", 40), ("writtenOnce", 40), ("values", 40)] {
        ensure!(field[what] == expected, "{what}: {field}");
    }
    ensure!(
        field["ended"]["origin died"] == 40 && field["classes"] == serde_json::json!([["Lives$Item", 40]]),
        "{field}"
    );
    let writer = &field["writers"][0];
    ensure!(writer["method"] == "Lives$Box.<init>" && writer["threadName"] == "main", "{field}");
    let item = ask("object", &first("Lives$Item")?, &[])?;
    let holder = &item["holders"][0];
    ensure!(item["holders"].as_array().is_some_and(|all| all.len() == 1), "{item}");
    ensure!(holder["slot"] == "Lives$Box.item" && holder["other"]["class"] == "Lives$Box", "{item}");
    ensure!(holder["from"]["context"][0] == "Lives$Box.<init>" && holder["ended"] == "origin died", "{item}");
    // Its box is used last when `get` returns.
    let death = &item["death"];
    ensure!(death["context"][0] == "Lives$Box.get" && death["context"][1] == "Lives.boxed", "{item}");
    ensure!(death["classes"][0][0] == "Lives$Box" && death["others"]["objects"] == 1, "{item}");
    let holder = holder["other"]["id"].as_str().context("no holder")?;
    let of_box = ask("object", holder, &[])?;
    ensure!(of_box["slots"][0]["held"][0]["other"]["id"] == item["object"]["id"], "{of_box}");
    let history = ask("field", "Lives$Box.item", &["--of", holder])?;
    ensure!(history["references"] == 1 && history["history"][0]["other"]["id"] == item["object"]["id"], "{history}");
    // Held by the elements of each array that the list had, by the last of them to the end.
    let kept = ask("object", &first("Lives$Kept")?, &[])?;
    let holders = kept["holders"].as_array().context("no holders")?;
    let lasting: Vec<&Value> = holders.iter().filter(|holder| holder["to"].is_null()).collect();
    ensure!(kept["death"].is_null() && lasting.len() == 1, "{kept}");
    ensure!(lasting[0]["other"]["class"] == "java.lang.Object[]", "{kept}");
    // Nothing stores it in another thread: its lambda has it from the start.
    let shared = ask("object", &first("Lives$Shared")?, &[])?;
    ensure!(shared["handed"] == serde_json::json!([]), "{shared}");
    ensure!(shared["holders"][0]["from"]["threadName"] == "main", "{shared}");
    let lists = ask("field", "Lives.KEPT", &[])?;
    ensure!(lists["references"] == 1 && lists["objects"] == 0, "{lists}");
    run.clean()
}

fn escape(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "escape", &[])?;
    let found = json(lab, &["escape"], &run)?;
    // All, captured, out of their frame, seen by another thread.
    let expected = [
        ("Local", [100, 100, 0, 0]),
        ("Returned", [50, 0, 50, 0]),
        ("Box", [40, 40, 0, 0]),
        ("Item", [40, 40, 0, 0]),
        ("Kept", [2000, 0, 2000, 0]),
        ("Shared", [10, 0, 0, 10]),
    ];
    for (class, expected) in expected {
        let line = line(&found, class)?;
        let counts =
            ["allocated", "captured", "escapedFrame", "escapedThread"].map(|reach| line[reach]["objects"].clone());
        ensure!(counts == expected.map(Value::from), "{class}: {counts:?} instead of {expected:?}");
    }
    let dies_in = |class| -> Result<_> {
        let at = &line(&found, class)?["diesIn"];
        Ok((at["method"].clone(), at["levelsUp"].clone(), at["objects"].clone()))
    };
    ensure!(dies_in("Returned")? == ("Lives.take".into(), 1.into(), 50.into()), "{:?}", dies_in("Returned")?);
    ensure!(dies_in("Local")? == ("Lives.local".into(), 0.into(), 100.into()), "{:?}", dies_in("Local")?);
    run.clean()
}

fn correlate(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "correlate", &[])?;
    for by in ["site", "class", "context"] {
        let found = json(lab, &["correlate", "--by", by], &run)?;
        let pairs = found["pairs"].as_array().context("no pairs")?;
        let is = |kind: &Value, class: &str| kind["type"] == format!("Lives${class}").as_str();
        let ours = |one: &str, other: &str| {
            pairs.iter().find(|pair| {
                is(&pair["one"], one) && is(&pair["other"], other) || is(&pair["one"], other) && is(&pair["other"], one)
            })
        };
        let pair = ours("Box", "Item").with_context(|| format!("by {by}: boxes and items do not die together"))?;
        for kind in ["one", "other"] {
            ensure!(pair[kind]["died"] == 40 && pair[kind]["withOther"] == 40, "by {by}: {pair}");
        }
        ensure!(ours("Local", "Returned").is_none(), "by {by}: these die alone");
    }
    run.clean()
}

fn pretenure(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "pretenure", &[])?;
    // Kept objects are some 32 KB: with a nursery of 1 KB all but the last few are alive at the next collection.
    let found = json(lab, &["pretenure", "--nursery", "1k,1G"], &run)?;
    let kept = line(&found, "Kept")?;
    let survived = kept["survived"][0]["objects"].as_u64().context("no number")?;
    ensure!((1900..=2000).contains(&survived), "{kept}");
    ensure!(kept["pretenureAt"] == serde_json::json!([1024]), "{kept}");
    let local = line(&found, "Local")?;
    ensure!(local["survived"][0]["objects"].as_u64().is_some_and(|survived| survived < 50), "{local}");
    ensure!(local["survived"][1]["objects"] == 0 && kept["survived"][1]["objects"] == 0, "nothing fills a gigabyte");
    run.clean()
}

fn connectivity(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "connectivity", &[])?;
    let found = json(lab, &["connectivity"], &run)?;
    let item = line(&found, "Item")?;
    ensure!(item["died"]["objects"] == 40 && item["withKey"]["objects"] == 40, "{item}");
    ensure!(item["key"]["type"] == "Lives$Box" && item["key"]["objects"] == 40, "{item}");
    let boxes = line(&found, "Box")?;
    ensure!(boxes["died"]["objects"] == 40 && boxes["withKey"]["objects"] == 0, "{boxes}");
    run.clean()
}

fn shape(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "shape", &[])?;
    let output = et_trace(lab, &["shape", "--json", "--moments", "10"], &run).output()?;
    let shapes: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    ensure!(shapes.len() == 10, "{} moments", shapes.len());
    let summary = json(lab, &["summary"], &run)?;
    let number = |value: &Value| value.as_u64().context("no number");
    let records = |letter: &str| summary["records"][letter].as_u64().unwrap_or(0);
    let born: u64 = ["A", "I", "N", "P", "V"].into_iter().map(records).sum();
    let last = &shapes[9];
    ensure!(number(&last["alive"]["objects"])? == born - records("D"), "{last}");
    for shape in &shapes {
        let objects = number(&shape["alive"]["objects"])?;
        ensure!(number(&shape["unreferenced"])? + number(&shape["referencedOnce"])? <= objects, "{shape}");
        ensure!(number(&shape["depth"])? >= 3, "a map of a list of strings is deeper: {shape}");
    }
    run.clean()
}

fn diff(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (before, same) = (traced(lab, jdk, "diff_before", &[])?, traced(lab, jdk, "diff_same", &[])?);
    let after = traced(lab, jdk, "diff_after", &["-Dfactor=3"])?;
    let path = |run: &Run| run.trace.display().to_string();
    let compare = |more: &[&str], other: &Run| -> Result<(Option<i32>, Value, String)> {
        let arguments = [&["diff", "--json", "--least", "1", "--top", "1000"], more].concat();
        let mut command = Command::new(lab.tools.et_trace());
        let output = command.args(&arguments).args([&before.trace, &other.trace]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let found = serde_json::from_slice(&output.stdout).with_context(|| said.clone())?;
        Ok((output.status.code(), found, said))
    };
    let (code, found, said) = compare(&["--fail-if", "bytes of Lives$Kept > +1%"], &same)?;
    ensure!(code == Some(0) && said.is_empty(), "{code:?} {said}");
    for table in ["classes", "sites", "contexts"] {
        let lines = found[table]["lines"].as_array().context("no lines")?;
        let ours: Vec<&Value> =
            lines.iter().filter(|line| line["type"].as_str().is_some_and(|ty| ty.starts_with("Lives"))).collect();
        ensure!(ours.is_empty(), "two equal runs differ: {ours:?}");
    }
    let condition = "objects of Lives$Kept > +100%";
    let (code, found, said) = compare(&["--fail-if", condition], &after)?;
    ensure!(code == Some(1) && said.contains(condition), "{code:?} {said}");
    let lines = found["sites"]["lines"].as_array().context("no lines")?;
    let kept = lines.iter().find(|line| line["type"] == "Lives$Kept").context("what changed is not found")?;
    ensure!(kept["method"] == "Lives.keep", "{kept}");
    ensure!(kept["objects"]["before"]["median"] == 2000 && kept["objects"]["after"]["median"] == 6000, "{kept}");
    ensure!(kept["aliveObjects"]["after"]["median"] == 6000, "{kept}");
    // Several of each: the median counts.
    let several = Command::new(lab.tools.et_trace())
        .args(["diff", "--json", "--before", &path(&before), &path(&same), "--after", &path(&after)])
        .output()?;
    let found: Value = serde_json::from_slice(&several.stdout)?;
    ensure!(found["runs"] == serde_json::json!([2, 1]), "{}", found["runs"]);
    before.clean()
}

/// Input of the compilers: an incomplete doc comment.
const DOCUMENTED: &str = "/** Words. */ public class Documented { /** Doubles.\n@param x what */ public int twice(int x) { return 2 * x; } }";

/// A real program with one flag more, and the same without it: only the flag's classes differ.
fn diff_of_compilers(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "analyses_compilers")?;
    let source = folder.join("Documented.java");
    fs::write(&source, DOCUMENTED)?;
    let java = lab.instrumented(jdk)?;
    let compiled = |name: &str, flags: &[&str]| -> Result<PathBuf> {
        let trace = folder.join(name).with_extension("ettrace");
        let mut javac = Command::new(java.java());
        javac.args(java.options(&trace)).args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none", "-d"]);
        // Always the same folder, for a path of another length takes another number of bytes, and empty each time.
        let classes = folder.join("classes");
        command::quiet(javac.arg(&classes).args(flags).arg(&source).current_dir(&folder))?;
        fs::remove_dir_all(&classes)?;
        Ok(trace)
    };
    let (before, same) = (compiled("before", &[])?, compiled("same", &[])?);
    let after = compiled("after", &["-Xdoclint:missing"])?;
    let compare = |after: &Path, least: &str| -> Result<Value> {
        let mut diff = Command::new(lab.tools.et_trace());
        diff.args(["diff", "--json", "--top", "1000", "--least", least]).args([&before, after]);
        Ok(serde_json::from_slice(&command::quiet(&mut diff)?.stdout)?)
    };
    // Not in less than a hundredth of all bytes: the order of sets and what soft references hold are chance.
    let equal = compare(&same, "1")?;
    for table in ["classes", "sites", "contexts"] {
        ensure!(equal[table]["changed"] == 0, "two equal runs differ in {table}: {}", equal[table]["lines"]);
    }
    let found = compare(&after, "0.1")?;
    let lines = found["classes"]["lines"].as_array().context("no lines")?;
    let of_flag = |line: &&Value| line["type"].as_str().is_some_and(|ty| ty.contains("doclint"));
    let classes: Vec<&Value> = lines.iter().filter(of_flag).collect();
    ensure!(!classes.is_empty(), "no class of the flag among {lines:?}");
    for class in classes {
        ensure!(class["bytes"]["before"]["max"] == 0, "there were some before: {class}");
    }
    fs::remove_dir_all(&folder).map_err(Into::into)
}

fn export(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "export", &[])?;
    let written = |format: &str, weight: &str| -> Result<Vec<u8>> {
        let output = et_trace(lab, &["export", "--to", format, "--weight", weight], &run).output()?;
        ensure!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    };
    let stacks = String::from_utf8(written("collapsed", "objects")?)?;
    let mut objects: BTreeMap<&str, u64> = BTreeMap::new();
    for line in stacks.lines() {
        let (stack, count) = line.rsplit_once(' ').context("no weight")?;
        let class = stack.rsplit(';').next().unwrap_or_default();
        *objects.entry(class).or_default() += count.parse::<u64>()?;
    }
    let ours = ["Local", "Returned", "Box", "Item", "Kept", "Shared"].map(|class| objects[&*format!("Lives${class}")]);
    ensure!(ours == [100, 50, 40, 40, 2000, 10], "{ours:?}");
    let keep = stacks.lines().find(|line| line.contains("Lives$Kept")).context("no stack")?;
    ensure!(keep.starts_with("Lives.main;Lives.keep:") && keep.ends_with(";Lives$Kept 2000"), "{keep}");
    let total: u64 = objects.values().sum();

    let short = ["export", "--to", "collapsed", "--weight", "objects", "--fold", "--hide", "java.*,jdk.*,sun.*"];
    let short = command::read(&mut et_trace(lab, &short, &run))?;
    let mut shown = 0;
    for line in short.lines() {
        let (stack, count) = line.rsplit_once(' ').context("no weight")?;
        shown += count.parse::<u64>()?;
        // The allocating method and the class are always there.
        let frames: Vec<&str> = stack.split(';').collect();
        let callers = frames.split_at(frames.len().saturating_sub(2)).0;
        let methods: BTreeSet<&str> = callers.iter().map(|frame| frame.split(':').next().unwrap_or_default()).collect();
        ensure!(methods.len() == callers.len(), "a method is there twice: {line}");
        ensure!(
            !methods.iter().any(|name| ["java.", "jdk.", "sun."].iter().any(|jdk| name.starts_with(jdk))),
            "{line}"
        );
    }
    ensure!(shown == total && short.lines().count() < stacks.lines().count(), "{shown} of {total}");

    let speedscope: Value = serde_json::from_slice(&written("speedscope", "objects")?)?;
    let profile = &speedscope["profiles"][0];
    let weights: u64 = profile["weights"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum();
    ensure!(weights == total && profile["endValue"] == total, "{weights} of {total}");
    let firefox: Value = serde_json::from_slice(&written("firefox", "objects")?)?;
    let weights: u64 =
        firefox["threads"][0]["samples"]["weight"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum();
    ensure!(weights == total, "{weights} of {total}");
    let chrome: Value = serde_json::from_slice(&written("chrome", "objects")?)?;
    let weights: u64 = chrome["samples"].as_array().into_iter().flatten().filter_map(|s| s["size"].as_u64()).sum();
    ensure!(weights == total && self_sizes(&chrome["head"]) == total, "{weights} of {total}");
    let pprof = written("pprof", "objects")?;
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(pprof.as_slice()).read_to_end(&mut raw)?;
    ensure!(raw.windows(10).any(|part| part == b"Lives.keep"), "names are strings of the profile");
    if serde_json::from_slice::<Value>(&pprof).is_ok() {
        bail!("a profile for pprof is no text");
    }
    run.clean()
}

/// A recording as the JDKs' own readers understand it: the counts of `summary`, stacks with lines, threads, and collections.
fn recording(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "recording", &["-Dcollect=true"])?;
    let file = run.folder.join("lives.jfr");
    let arguments = ["export", "--to", "jfr", "--old-objects", "4096", "-o", &file.to_string_lossy()];
    let written = et_trace(lab, &arguments, &run).output()?;
    ensure!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    ensure!(fs::metadata(&file)?.len() < 100_000_000, "a large recording");
    let summary = json(lab, &["summary"], &run)?;
    let collections = summary["gcs"].as_array().context("no collections")?.len();
    ensure!(collections > 0, "no collection");
    let mut readers = 0;
    for reader in SOME_JDKS.iter().filter_map(|&feature| jdks::of_feature(&lab.layout, feature)) {
        if flight::reader(&reader).is_none() {
            lab.not_tested("recordings", &format!("no jfr in {}", reader.home.display()));
            continue;
        }
        let context = || format!("read by the jfr of {}", reader.home.display());
        read_recording(&reader, &file, &summary, collections).with_context(context)?;
        readers += 1;
    }
    ensure!(readers > 0, "no JDK has jfr");
    nearly_empty_recording(lab, &run.folder)?;
    run.clean()
}

/// A text of one object of which hardly anything is known, and of none: readers refuse what they find odd.
fn nearly_empty_recording(lab: &Lab, folder: &Path) -> Result<()> {
    let (text, file) = (folder.join("one.txt"), folder.join("one.jfr"));
    for (objects, record) in [(1, "N 1 10 LA; 0 0 1\n"), (0, "")] {
        fs::write(&text, format!("# Elephant Tracks, dialect et\n# events alloc\n{record}# lost 0\n"))?;
        let mut export = Command::new(lab.tools.et_trace());
        command::quiet(export.args(["export", "--to", "jfr", "--force", "-o"]).arg(&file).arg(&text))?;
        for reader in SOME_JDKS.iter().filter_map(|&feature| jdks::of_feature(&lab.layout, feature)) {
            let Some(jfr) = flight::reader(&reader) else { continue };
            let printed = command::quiet(Command::new(jfr).arg("print").arg(&file))?;
            let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
            let found = printed.matches("jdk.ObjectAllocationSample {").count();
            ensure!(found == objects, "{found} and not {objects}: {printed}");
        }
    }
    Ok(())
}

fn read_recording(reader: &Jdk, file: &Path, summary: &Value, collections: usize) -> Result<()> {
    let jfr = flight::reader(reader).context("no jfr")?;
    let overview = command::quiet(Command::new(jfr).arg("summary").arg(file))?;
    let overview = String::from_utf8_lossy(&overview.stdout).into_owned();
    ensure!(overview.contains("jdk.ObjectAllocationSample"), "{overview}");
    let events = |wanted: &str| -> Result<Vec<Value>> {
        let events = flight::events(reader, file, wanted, 64)?;
        Ok(events.into_iter().map(|mut event| event["values"].take()).collect())
    };
    flight::sums_are_those_of(summary, reader, file)?;
    let made = events("jdk.ObjectAllocationSample")?;
    let kept: Vec<&Value> = made.iter().filter(|event| event["objectClass"]["name"] == "Lives$Kept").collect();
    ensure!(kept.iter().filter_map(|event| event["objects"].as_u64()).sum::<u64>() == 2000, "{kept:?}");
    for event in kept {
        ensure!(event["eventThread"]["javaName"] == "main", "{event}");
        ensure!(event["site"].as_str().is_some_and(|site| site.starts_with("Lives.keep:")), "{event}");
        let frames = event["stackTrace"]["frames"].as_array().context("no stack")?;
        let names: Vec<&str> = frames.iter().filter_map(|frame| frame["method"]["name"].as_str()).collect();
        ensure!(names == ["keep", "main"] && event["stackTrace"]["truncated"] == false, "{event}");
        ensure!(frames[0]["lineNumber"].as_i64().is_some_and(|line| line > 0), "{event}");
        ensure!(frames[1]["method"]["descriptor"] == "([Ljava/lang/String;)V", "{event}");
    }
    old_objects(&events("jdk.OldObjectSample")?)?;
    let pauses = events("jdk.GarbageCollection")?;
    ensure!(pauses.len() == collections, "{} collections, not {collections}", pauses.len());
    let heaps = events("jdk.GCHeapSummary")?;
    ensure!(heaps.len() <= pauses.len() && heaps.iter().all(|heap| heap["when"] == "After GC"), "{heaps:?}");
    let notes = events("org.elephanttracks.Note")?;
    ensure!(notes[0]["text"].as_str().is_some_and(|text| text.ends_with("weights are bytes allocated")), "{notes:?}");
    let jvm = events("jdk.JVMInformation")?;
    ensure!(jvm.len() == 1 && jvm[0]["pid"].as_u64().is_some_and(|pid| pid > 0), "{jvm:?}");
    Ok(())
}

/// Lines of sites, from the folder of the program's source: in the table and in the page; what has none is said once.
fn source(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "source", &[])?;
    let sources = lab.layout.repo.join("tests/java/analyses");
    let sources = sources.to_string_lossy();
    let shown = et_trace(lab, &["report", "--show", "allocation/source", "--source", &sources], &run).output()?;
    let (table, said) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    ensure!(shown.status.success(), "{said}");
    let line = table.lines().find(|line| line.contains("Lives.keep:")).context("no line of the site")?;
    ensure!(line.trim_end().ends_with("KEPT.add(new Kept());") && line.contains("  Lives.java:"), "{line}");
    ensure!(!table.contains("java.util"), "a line of a class whose source is not there: {table}");
    ensure!(said.matches("--source: no line of source for ").count() == 1, "{said}");
    let all: Value = serde_json::from_slice(
        &command::quiet(&mut et_trace(lab, &["report", "--json", "--source", &sources], &run))?.stdout,
    )?;
    let lines = all["source"].as_array().context("no lines in JSON")?;
    let is_keep = |line: &&Value| line["site"].as_str().is_some_and(|site| site.starts_with("Lives.keep:"));
    let keep = lines.iter().find(is_keep).context("no line of the site in JSON")?;
    let at = keep["line"].as_u64().zip(keep["first"].as_u64()).context("no numbers")?;
    ensure!(keep["site"] == format!("Lives.keep:{}", at.0), "{keep}");
    let text = keep["lines"][(at.0 - at.1) as usize].as_str();
    ensure!(text.is_some_and(|text| text.trim() == "KEPT.add(new Kept());"), "{keep}");
    let page = run.folder.join("source.html");
    let to = page.to_string_lossy();
    command::quiet(&mut et_trace(lab, &["report", "--force", "--source", &sources, "-o", &to], &run))?;
    ensure!(fs::read_to_string(&page)?.contains("KEPT.add(new Kept());"), "the page has no line");
    run.clean()
}

/// The list of kept objects and some of these, with the ways to them from the static field.
fn old_objects(survivors: &[Value]) -> Result<()> {
    ensure!((257..=4096).contains(&survivors.len()), "{} old objects", survivors.len());
    let retained = |event: &Value| event["retainedSize"].as_u64().unwrap_or(0);
    ensure!(survivors.windows(2).all(|pair| retained(&pair[0]) >= retained(&pair[1])), "not the largest first");
    let is_made_here = |event: &&Value, site: &str| event["site"].as_str().is_some_and(|at| at.starts_with(site));
    let list = survivors.iter().find(|event| is_made_here(event, "Lives.<clinit>:")).context("no list")?;
    let object = &list["object"];
    ensure!(object["type"]["name"] == "java/util/ArrayList" && retained(list) >= 2000 * 16, "{list}");
    ensure!(list["arrayElements"] == i64::from(i32::MIN) && list["objectSize"].as_u64() < Some(100), "{list}");
    ensure!(object["referrer"]["field"]["name"] == "KEPT", "{list}");
    ensure!(object["referrer"]["object"]["type"]["name"] == "java/lang/Class", "{list}");
    ensure!(object["referrer"]["object"]["description"] == "Class Name: Lives", "{list}");
    ensure!(list["root"]["description"] == "static field Lives.KEPT", "{list}");
    ensure!(list["root"]["system"] == "Class Loader Data", "{list}");
    let kept = survivors.iter().find(|event| is_made_here(event, "Lives.keep:")).context("none that is kept")?;
    ensure!(kept["object"]["type"]["name"] == "Lives$Kept" && kept["eventThread"]["javaName"] == "main", "{kept}");
    let names: Vec<&Value> = kept["stackTrace"]["frames"].as_array().into_iter().flatten().collect();
    ensure!(names.len() == 2 && names[0]["method"]["name"] == "keep", "{kept}");
    let array = &kept["object"]["referrer"];
    let (size, index) = (array["array"]["size"].as_u64(), array["array"]["index"].as_u64());
    ensure!(index.is_some() && index < size && size >= Some(2000), "{kept}");
    let holder = &array["object"]["referrer"];
    ensure!(holder["field"]["name"] == "elementData" && holder["skip"] == 0, "{kept}");
    ensure!(holder["object"]["address"] == object["address"], "{kept}");
    ensure!(kept["objectAge"].as_str().is_some_and(|age| age.starts_with("PT") && age != "PT0S"), "{kept}");
    Ok(())
}

fn self_sizes(node: &Value) -> u64 {
    let below: u64 = node["children"].as_array().into_iter().flatten().map(self_sizes).sum();
    below + node["selfSize"].as_u64().unwrap_or(0)
}

/// Profiles as `pprof-format`, speedscope and its schema understand them.
fn in_other_tools(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = traced(lab, jdk, "other_tools", &[])?;
    for format in ["pprof", "speedscope", "chrome", "collapsed"] {
        let out = run.folder.join(format!("p.{format}"));
        let arguments = ["export", "--to", format, "--weight", "objects", "-o"];
        let status = Command::new(lab.tools.et_trace()).args(arguments).arg(&out).arg(&run.trace).status()?;
        ensure!(status.success(), "{format}: {status}");
    }
    let stacks = fs::read_to_string(run.folder.join("p.collapsed"))?;
    let total: u64 = stacks.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    fs::write(run.folder.join("expected.json"), format!("{{\"total\": {total}, \"kept\": 2000}}"))?;
    let chromium = browser::find().context("no chromium")?;
    let script = browser::driver(&lab.layout, "export/consume.mjs", &lab.layout.target.join("browser/export"))?;
    let output = Command::new("node").arg(script).arg(chromium).arg(&run.folder).stdin(Stdio::null()).output()?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    run.clean()
}
