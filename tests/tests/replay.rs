//! Traces replayed: what simulated collectors keep is what was alive, whatever form the trace comes in.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::old_replayers::{self, Replayed};
use et_tests::program::Run;
use serde_json::Value;
use xtask::command;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    lab::run(lab::on_one_jdk("collectors_keep_what_is_alive", keep_what_is_alive)).exit_code()
}

fn et_replay(lab: &Lab, run: &Run, args: &[&str]) -> Result<String> {
    command::read(Command::new(lab.tools.et_replay()).args(args).current_dir(&run.folder))
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("et-replay did not print JSON")
}

fn keep_what_is_alive(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "replay", "facts/Heaps")?;
    let tables = json(&et_replay(lab, &run, &["prepare", "trace.ettrace", "-o", "app.ops", "--json"])?)?;
    let (totals, summary) = (&tables["totals"], run.summary(lab)?);
    ensure!(totals["putOff"] == 0 && totals["leftOut"] == 0, "{totals}");
    ensure!(tables["notes"].as_array().is_some_and(Vec::is_empty), "{}", tables["notes"]);
    let records = summary["records"].as_object().context("records by letter")?;
    let of = |letters: &str| -> u64 {
        letters.chars().filter_map(|letter| records.get(&letter.to_string())?.as_u64()).sum()
    };
    ensure!(totals["births"] == of("AINPV"), "{totals}, {records:?}");
    let bytes = run.folder.join("app.ops").metadata()?.len();
    let operations = totals["operations"].as_u64().unwrap_or_default();
    ensure!(operations > 100_000 && bytes < 16 * operations, "{bytes} bytes for {operations} operations");

    let simulate = ["simulate", "app.ops", "--heap", "2.5x", "--check", "--json"];
    let shown = json(&et_replay(lab, &run, &simulate)?)?;
    let all = shown["simulations"].as_array().context("no simulations")?;
    ensure!(all.len() == 5, "{} collectors", all.len());
    for one in all {
        let name = one["collector"].as_str().unwrap_or_default();
        let (end, leaked) = (one["atEnd"]["bytes"].as_u64(), one["leaked"]["bytes"].as_u64().unwrap_or_default());
        let alive = totals["atEnd"]["bytes"].as_u64();
        ensure!(
            end.map(|end| end - leaked) == alive,
            "{name}: {end:?} bytes at the end, {leaked} of them leaked, {alive:?} are alive"
        );
        ensure!(leaked == 0 || name == "reference-counting", "{name}: {leaked}");
        ensure!(one["events"]["newObject"] == totals["births"], "{name}: {}", one["events"]);
    }

    // By class what `et-trace heap` finds at the end.
    et_replay(
        lab,
        &run,
        &["simulate", "app.ops", "--collector", "generational", "--heap", "3x", "--events", "events.csv"],
    )?;
    let mut heap = Command::new(lab.tools.et_trace());
    heap.args(["heap", "trace.ettrace", "--json", "--top", "100000"]).current_dir(&run.folder);
    let heap = json(&command::read(&mut heap)?)?;
    let lines = heap["classes"].as_array().context("no classes")?.iter();
    let known: BTreeMap<String, u64> =
        lines.filter_map(|line| Some((line["class"].as_str()?.to_owned(), line["objects"].as_u64()?))).collect();
    let left = left_by_events(&run.folder.join("events.csv"))?;
    ensure!(left == known, "{left:?}, not {known:?}");

    // The trace itself, and texts of it, come to the same.
    let mut text = Command::new(lab.tools.et_trace());
    text.args(["text", "trace.ettrace", "--dialect", "replayer", "-o", "app.txt", "--names", "app.names"]);
    command::quiet(text.current_dir(&run.folder))?;
    let mut text = Command::new(lab.tools.et_trace());
    text.args(["text", "trace.ettrace", "--dialect", "oracle", "-o", "app.csv"]);
    command::quiet(text.current_dir(&run.folder))?;
    old_replayers_agree(&run, totals)?;
    let compact = |input: &[&str]| -> Result<Value> {
        let args = [&["simulate"], input, &["--collector", "mark-compact", "--heap", "2x", "--json"]].concat();
        Ok(json(&et_replay(lab, &run, &args)?)?["simulations"][0].take())
    };
    let ops = compact(&["app.ops"])?;
    ensure!(compact(&["trace.ettrace"])? == ops, "the trace gives other results than its operations");
    let text = compact(&["app.txt", "--with-names", "app.names", "--no-touches"])?;
    // Sizes are in the text, so no names are needed.
    let nameless = compact(&["app.txt", "--no-touches"])?;
    let oracle = compact(&["app.csv"])?;
    for key in ["events", "fullCollections", "moved", "freed", "atEnd"] {
        ensure!(text[key] == ops[key], "dialect replayer: {key}: {}, not {}", text[key], ops[key]);
        ensure!(nameless[key] == ops[key], "without names: {key}: {}, not {}", nameless[key], ops[key]);
        ensure!(oracle[key] == ops[key], "dialect oracle: {key}: {}, not {}", oracle[key], ops[key]);
    }
    match lab.has("et-collect") {
        Ok(()) => collect(lab, &run, totals)?,
        Err(reason) => lab.not_tested("replay under MMTk's collectors", &reason),
    }
    // Every birth and death is a call; the caches see the same under any collector, but for what the collector does.
    let allocated = json(&et_replay(lab, &run, &["allocate", "app.ops", "--json"])?)?[0].take();
    let calls = totals["births"].as_u64().zip(totals["deaths"].as_u64()).map(|(births, deaths)| births + deaths);
    ensure!(
        allocated["calls"].as_u64() == calls && allocated["atEnd"]["liveBytes"] == totals["atEnd"]["bytes"],
        "{allocated}"
    );
    let footprint = allocated["peakFootprintBytes"].as_u64().unwrap_or_default();
    ensure!(footprint > totals["atEnd"]["bytes"].as_u64().unwrap_or_default() / 2, "{footprint} bytes in memory");
    let misses = |collector: &str| -> Result<Value> {
        json(&et_replay(
            lab,
            &run,
            &["cache", "app.ops", "--collector", collector, "--heap", "3x", "--tlb", "64", "--json"],
        )?)
    };
    let (copying, counting) = (misses("copying")?, misses("mark-sweep")?);
    cachegrind_agrees(lab, &run)?;
    // The same where malloc puts the objects, which has no collector.
    let args = ["cache", "app.ops", "--allocator", "system", "--tlb", "64", "--json"];
    let system = json(&et_replay(lab, &run, &args)?)?;
    ensure!(system["under"] == "system" && system["collectorAccesses"] == 0, "{}", system["levels"]);
    for of in [&copying, &counting, &system] {
        let levels = of["levels"].as_array().context("no levels")?;
        let missed = |at: usize| levels[at]["mutatorMisses"].as_u64().unwrap_or_default();
        ensure!(levels.len() == 2 && missed(0) >= missed(1) && missed(1) > 0, "{}", of["levels"]);
        ensure!(of["tlb"]["mutatorMisses"].as_u64().is_some_and(|misses| misses > 0), "{}", of["tlb"]);
        ensure!(of["sites"].as_array().is_some_and(|sites| sites.len() == 10), "{}", of["sites"]);
    }
    run.clean()
}

/// Programs that read texts as they are described see the same objects live and die.
fn old_replayers_agree(run: &Run, totals: &Value) -> Result<()> {
    let of = |path: &[&str]| path.iter().fold(totals, |value, key| &value[*key]).as_u64().unwrap_or_default();
    let expected = Replayed {
        births: of(&["births"]),
        deaths: of(&["deaths"]),
        peak: of(&["peak", "bytes"]),
        left: of(&["atEnd", "bytes"]),
    };
    let read = |name: &str| std::fs::read_to_string(run.folder.join(name));
    let (text, csv) = (old_replayers::trace_replayer(&read("app.txt")?)?, old_replayers::oracle(&read("app.csv")?)?);
    ensure!(text == expected, "TraceReplayer comes to {text:?}, not {expected:?}");
    ensure!(csv == expected, "a reader of dialect oracle comes to {csv:?}, not {expected:?}");
    Ok(())
}

/// Cachegrind sees the replay itself as well, its table of objects and what malloc keeps: more misses, and not of another order.
fn cachegrind_agrees(lab: &Lab, run: &Run) -> Result<()> {
    if !command::exists("valgrind") {
        lab.not_tested("replay::cachegrind_agrees", "there is no valgrind");
        return Ok(());
    }
    const CACHES: [(&str, &str); 2] = [("--D1=32768,8,64", "D1  misses:"), ("--LL=1048576,16,64", "LLd misses:")];
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--cachegrind-out-file=/dev/null",
        CACHES[0].0,
        CACHES[1].0,
    ]);
    valgrind.arg(lab.tools.et_replay()).args(["allocate", "app.ops", "--here"]).current_dir(&run.folder);
    let said = String::from_utf8(command::quiet(&mut valgrind)?.stderr)?;
    let ours = json(&et_replay(lab, run, &["cache", "app.ops", "--allocator", "system", "--json"])?)?;
    for (level, (_, line)) in CACHES.iter().enumerate() {
        let counted = said.split(line).nth(1).and_then(|rest| rest.split('(').next()).context("cachegrind's misses")?;
        let theirs: u64 = counted.trim().replace(',', "").parse()?;
        let ours = ours["levels"][level]["mutatorMisses"].as_u64().context("our misses")?;
        ensure!((ours..10 * ours).contains(&theirs), "{line} {theirs} in cachegrind, {ours} here");
    }
    Ok(())
}

/// Real collectors, all of them: checked after each collection, and in the end as simulated ones.
fn collect(lab: &Lab, run: &Run, totals: &Value) -> Result<()> {
    const PLANS: &str =
        "NoGC,SemiSpace,GenCopy,MarkSweep,MarkCompact,Compressor,Immix,StickyImmix,GenImmix,ConcurrentImmix";
    let args = ["collect", "app.ops", "--plan", PLANS, "--heap", "64m", "--stress", "64k", "--check", "--json"];
    let shown = json(&et_replay(lab, run, &args)?)?;
    let all = shown["replays"].as_array().context("no replays")?;
    ensure!(all.len() == 10, "{} plans", all.len());
    for one in all {
        let name = one["plan"].as_str().unwrap_or_default();
        ensure!(one["operations"] == totals["operations"] && one["isChecked"] == true, "{name}: {one}");
        ensure!(one["allocated"]["objects"] == totals["births"], "{name}: {}", one["allocated"]);
        ensure!(one["grown"]["objects"] == 0, "{name}: {}", one["grown"]);
        ensure!(one["atEnd"]["alive"] == totals["atEnd"], "{name}: {}", one["atEnd"]);
        let (reached, collections) = (&one["atEnd"]["reached"], one["collections"].as_u64().unwrap_or_default());
        if name == "NoGC" {
            ensure!(reached.is_null() && collections == 0, "{name}: {reached}, {collections} collections");
        } else {
            ensure!(*reached == totals["atEnd"] && collections > 2, "{name}: {reached}, {collections} collections");
        }
    }
    // Curves: a page, and what it is drawn from.
    const MMTK: &str = "immix_always_defrag=true";
    let args =
        ["collect", "app.ops", "--plan", "SemiSpace,GenImmix", "--curve", "curves.html", "--mmtk", MMTK, "--json"];
    let shown = json(&et_replay(lab, run, &args)?)?;
    let curves = shown["curves"].as_array().context("no curves")?;
    for curve in curves {
        let points = curve["points"].as_array().context("no points")?;
        let heaps: Vec<u64> = points.iter().filter_map(|point| point["report"]["heap"].as_u64()).collect();
        ensure!(heaps.len() >= 6 && heaps.is_sorted(), "{heaps:?}");
        ensure!(points.iter().all(|point| point["report"]["mmtk"][0] == MMTK), "{}", points[0]);
        let pauses = |point: &Value| point["report"]["collections"].as_u64();
        ensure!(pauses(&points[0]) >= pauses(&points[points.len() - 1]), "more memory, more collections: {curve}");
    }
    let page = std::fs::read_to_string(run.folder.join("curves.html"))?;
    ensure!(
        curves.len() == 2 && page.starts_with("<!DOCTYPE html><html") && page.contains("<svg"),
        "{} curves",
        curves.len()
    );
    ensure!(!page.contains("src=") && !page.contains("<link"), "the page loads something");
    Ok(())
}

/// Number of objects of each class after the last event, computed from the events alone.
fn left_by_events(csv: &Path) -> Result<BTreeMap<String, u64>> {
    let text = std::fs::read_to_string(csv)?;
    let mut objects: HashMap<String, (String, String)> = HashMap::new();
    for line in text.lines().skip(1) {
        // No class of the program has a comma in its name.
        let cells: Vec<&str> = line.split(',').collect();
        let [_, event, arena, object, name, _, _, new_arena, new_object] = cells[..] else {
            anyhow::bail!("not a row: {line}")
        };
        match event {
            "new_object" => _ = objects.insert(object.to_owned(), (arena.to_owned(), name.to_owned())),
            "delete_object" => _ = objects.remove(object),
            "move_object" => {
                let (_, name) = objects.remove(object).with_context(|| format!("no such object: {line}"))?;
                objects.insert(new_object.to_owned(), (new_arena.to_owned(), name));
            }
            "delete_arena" => objects.retain(|_, (inside, _)| inside != arena),
            _ => {}
        }
    }
    let mut left = BTreeMap::new();
    objects.into_values().for_each(|(_, name)| *left.entry(name).or_default() += 1);
    Ok(left)
}
