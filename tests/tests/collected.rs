//! Deaths in a trace compared with those reported by the collector (docs/evidence/deaths.md).

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup};
use serde_json::Value;
use xtask::deaths::{compared, objects};
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let mut trials = lab::on_one_jdk("a_share_is_enough", a_share_is_enough);
    for collector in ["Serial", "Parallel", "G1", "Z"] {
        let name = format!("the_collector_agrees_{collector}");
        trials.extend(lab::on_some_jdks_unless(
            &name,
            move |_, jdk| (collector == "Z" && jdk.feature < 17).then(|| "ZGC is experimental there".to_owned()),
            move |lab, jdk| agrees(lab, jdk, collector),
        ));
    }
    lab::run(trials).exit_code()
}

/// The program's own classes in a list of groups, with causes and objects.
fn own(report: &Value, list: &str) -> BTreeMap<String, (String, u64)> {
    let text = |group: &Value, key: &str| group[key].as_str().unwrap_or_default().to_owned();
    let groups = report[list].as_array().into_iter().flatten();
    groups
        .filter_map(|group| {
            let class = text(group, "class").strip_prefix("Fates$")?.to_owned();
            // Lambda classes have names of the day.
            let is_named = !class.contains("Lambda");
            is_named.then(|| (class, (text(group, "cause"), group["objects"].as_u64().unwrap_or(0))))
        })
        .collect()
}

fn agrees(lab: &Lab, jdk: &Jdk, collector: &str) -> Result<()> {
    // Compiled code knows more of what is used again; here it matters that it is the same on each JDK.
    let options = ["-Det.deaths=gc", "-Xint", &format!("-XX:+Use{collector}GC")];
    let setup = Setup { traced: &options, ..Setup::default() };
    let run = Run::with(lab, jdk, &format!("deaths_{collector}"), "facts/Fates", setup)?;
    let report = compared(&lab.tools, &run.trace)?;
    ensure!(objects(&report, "errors") == 0, "the trace holds what the collector freed: {report:#}");
    if collector == "Z" {
        // It cannot be asked at the end.
        let freed = report["freedAtOnce"].as_u64().unwrap_or(0) + report["freedLater"].as_u64().unwrap_or(0);
        ensure!(report["askedAtEnd"] == false && freed > 1000, "{report:#}");
        return run.clean();
    }
    for (what, key) in [("was not told of", "notTold"), ("has no clear id", "unclear"), ("is unknown", "unknown")] {
        let count = report[key].as_u64().context("no count")?;
        ensure!(count == 0, "{count} objects: one {what}: {report:#}");
    }
    let kept = BTreeMap::from([
        ("Softly".to_owned(), ("softly reachable".to_owned(), 1)),
        ("Local".to_owned(), ("last used by a thread that still ran: a local variable may hold it".to_owned(), 1)),
    ]);
    ensure!(own(&report, "kept") == kept, "{:#}", report["kept"]);
    ensure!(own(&report, "byDefinition").is_empty(), "{:#}", report["byDefinition"]);
    run.clean()
}

fn a_share_is_enough(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { traced: &["-Det.deaths=gc/16"], ..Setup::default() };
    let run = Run::with(lab, jdk, "deaths_share", "facts/Fates", setup)?;
    let report = compared(&lab.tools, &run.trace)?;
    ensure!(objects(&report, "errors") == 0, "the trace holds what the collector freed: {report:#}");
    ensure!(report["share"] == 16, "{report:#}");
    let (asked, agreed) = (report["objects"].as_u64().unwrap_or(0), report["alive"].as_u64().unwrap_or(0));
    ensure!(agreed > 100 && asked > agreed && asked < 10_000, "{asked} asked about, {agreed} alive: {report:#}");
    run.clean()
}
