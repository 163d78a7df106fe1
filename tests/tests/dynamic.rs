//! Classes made at run time: all ways to define one, what is left alone, and what the summary says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run, Setup};
use et_tests::record::What;
use et_tests::window::Trace;
use serde_json::Value;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 6] = [
        ("all_ways_to_define_a_class", all_ways_to_define_a_class),
        ("hooks_pass_the_verifier", hooks_pass_the_verifier),
        ("switched_off", switched_off),
        ("excluded", excluded),
        ("allocations_only", allocations_only),
        ("a_program_that_was_not_instrumented", a_program_that_was_not_instrumented),
    ];
    let loaders: [(&str, lab::Case); 3] = [
        ("lambdas_from_before_tracing_have_hooks", lambdas_from_before_tracing_have_hooks),
        ("unloaded_classes_are_forgotten", unloaded_classes_are_forgotten),
        ("ids_of_unloaded_classes_are_used_again", ids_of_unloaded_classes_are_used_again),
    ];
    let old = |lab: &Lab, jdk: &Jdk| program::obstacle(lab, jdk, PROGRAM);
    let trials = cases.into_iter().flat_map(|(name, case)| lab::on_each_jdk_unless(name, old, case));
    let loaders = loaders.into_iter().flat_map(|(name, case)| lab::on_each_jdk(name, case));
    lab::run(trials.chain(loaders).collect()).exit_code()
}

const PROGRAM: &str = "dynamic/Definers";
const COPIED: &str = "Definers$Copied";

fn counts(summary: &Value) -> Result<BTreeMap<String, u64>> {
    let counts = summary["dynamic"].as_object().context("the summary tells nothing of classes made at run time")?;
    Ok(counts.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect())
}

/// Classes with methods that were entered, by name, with the ids of methods of that name.
fn entered(trace: &Trace, name: &str) -> BTreeMap<String, BTreeSet<u64>> {
    let mut found: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for record in &trace.records.all {
        if let What::Entry { method, .. } = record.what
            && let Some(named) = trace.names.methods.get(&method).filter(|named| named.name == name)
        {
            found.entry(named.class.to_string()).or_default().insert(method);
        }
    }
    found
}

fn is_hidden(class: &str) -> bool {
    class.contains(".0x")
}

fn all_ways_to_define_a_class(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "definers", PROGRAM)?;
    let trace = run.read(lab)?;

    // Six loaders made copies of a class that the application has, too, and two are hidden.
    let made = entered(&trace, "made");
    ensure!(made.get(COPIED).map(BTreeSet::len) == Some(7), "{made:?}");
    let hidden = made.keys().filter(|class| class.starts_with(COPIED) && is_hidden(class)).count();
    ensure!(hidden == 2, "{made:?}");
    ensure!(made.keys().any(|class| class.contains("$Proxy")), "no proxy: {made:?}");
    let sites: BTreeSet<u64> = trace
        .records
        .all
        .iter()
        .filter_map(|record| match &record.what {
            What::Born { site, descriptor, .. } if **descriptor == *"[I" => Some(*site),
            _ => None,
        })
        .filter(|site| {
            let site = trace.names.sites.get(site);
            site.is_some_and(|site| trace.source.labels.get(&site.line).is_some_and(|label| label == "copied"))
        })
        .collect();
    ensure!(sites.len() == 9, "{} sites of nine classes", sites.len());
    // Each class has its own field, though most have the same name.
    let mut fields: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for record in &trace.records.all {
        if let What::Update { field, .. } = record.what
            && let Some(named) = trace.names.fields.get(&field).filter(|named| named.class.starts_with(COPIED))
        {
            fields.entry(if named.is_static { "last" } else { "held" }).or_default().insert(field);
        }
    }
    ensure!(fields["last"].len() == 9 && fields["held"].len() == 9, "{fields:?}");

    let lambdas = entered(&trace, "applyAsInt");
    ensure!(lambdas.keys().filter(|class| class.starts_with("Definers$$Lambda")).count() == 2, "{lambdas:?}");
    let accessors = entered(&trace, "invoke").into_keys().filter(|class| class.contains("GeneratedMethodAccessor"));
    // From 18 on reflection goes through method handles.
    ensure!((accessors.count() > 0) == (jdk.feature < 18), "accessors of JDK {}", jdk.feature);
    let forms: Vec<&str> = trace
        .records
        .all
        .iter()
        .filter_map(|record| match record.what {
            What::Entry { method, .. } => trace.names.methods.get(&method).map(|method| &*method.class),
            _ => None,
        })
        .filter(|class| class.starts_with("java.lang.invoke.LambdaForm$") && is_hidden(class))
        .collect();
    ensure!(forms.is_empty(), "entries of LambdaForms: {forms:?}");

    let summary = run.summary(lab)?;
    let counts = counts(&summary)?;
    ensure!(counts["rewritten"] > 20 && counts["nanos"] > 0, "{counts:?}");
    // Five that cannot be read, one with a method name that only the VM minds; each by Java and by native code.
    ensure!(counts["malformed"] == 10 && counts["refused"] == 2 && counts["failed"] == 0, "{counts:?}");
    let sum: u64 = counts
        .iter()
        .filter(|(name, _)| !["seen", "redefined", "nanos"].contains(&name.as_str()))
        .map(|(_, n)| n)
        .sum();
    ensure!(counts["seen"] == sum, "{counts:?}");
    let own = without_hooks(&summary)?.into_iter().filter(|class| class.starts_with("Definers")).count();
    ensure!(own == 0, "{}", summary["notInstrumented"]);
    run.clean()
}

fn without_hooks(summary: &Value) -> Result<Vec<String>> {
    let top = summary["notInstrumented"]["top"].as_array().context("no list of classes without hooks")?;
    Ok(top.iter().filter_map(|class| class["type"].as_str()).map(str::to_owned).collect())
}

fn hooks_pass_the_verifier(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let verify = [
        "-Xshare:off",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+BytecodeVerificationLocal",
        "-Xcheck:jni",
        "-Xlog:disable",
    ];
    let setup = Setup { traced: &verify, ..Setup::default() };
    Run::with(lab, jdk, "definers_verified", PROGRAM, setup)?.clean()
}

fn switched_off(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { traced: &["-Det.dynamic=off"], ..Setup::default() };
    let run = Run::with(lab, jdk, "definers_off", PROGRAM, setup)?;
    let summary = run.summary(lab)?;
    ensure!(summary["dynamic"].is_null(), "{}", summary["dynamic"]);
    let without = without_hooks(&summary)?;
    let hidden = summary["notInstrumented"]["hidden"].as_u64().unwrap_or(0);
    ensure!(hidden > 4, "{hidden} hidden classes without hooks");
    ensure!(without.iter().any(|class| class == COPIED), "{without:?}");
    run.clean()
}

/// The module system makes lambdas before the VM is up when it is given such an option.
fn lambdas_from_before_tracing_have_hooks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let opens = ["--add-opens", "java.base/java.lang=ALL-UNNAMED"];
    let lambdas = |test: &str, traced: &[&str]| -> Result<Vec<String>> {
        let run = Run::with(lab, jdk, test, "facts/Threads", Setup { both: &opens, traced, ..Setup::default() })?;
        let mut without = without_hooks(&run.summary(lab)?)?;
        without.retain(|class| class.contains("Lambda"));
        run.clean()?;
        Ok(without)
    };
    let (on, off) = (lambdas("early_lambdas", &[])?, lambdas("early_lambdas_off", &["-Det.dynamic=off"])?);
    ensure!(on.is_empty(), "without hooks: {on:?}");
    ensure!(!off.is_empty(), "this JDK makes none, so the test tells nothing");
    Ok(())
}

fn excluded(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { traced: &["-Det.dynamicExclude=Definers$Copied,*Proxy*"], ..Setup::default() };
    let run = Run::with(lab, jdk, "definers_excluded", PROGRAM, setup)?;
    let made = entered(&run.read(lab)?, "made");
    ensure!(made.is_empty(), "{made:?}");
    let counts = counts(&run.summary(lab)?)?;
    ensure!(counts["excluded"] >= 7, "{counts:?}");
    run.clean()
}

/// With a JDK that only reports allocations, classes created at run time report nothing else.
fn allocations_only(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let setup = Setup { jdk: &["--events", "alloc"], ..Setup::default() };
    let run = Run::with(lab, jdk, "plain_alloc_only", "AtRunTime", setup)?;
    let trace = run.read(lab)?;
    let mut leaves = 0;
    for record in &trace.records.all {
        match &record.what {
            What::Born { descriptor, .. } => leaves += u32::from(**descriptor == *"LAtRunTime$Leaf;"),
            What::Update { field, .. } => {
                let class = trace.names.fields.get(field).map_or("", |field| &field.class);
                ensure!(!trace.is_own(class), "update of {class} in a trace of allocations");
            }
            // Methods of the JDK that ran when tracing began are known without hooks.
            What::Entry { method, .. } => {
                let class = trace.names.methods.get(method).map_or("", |method| &method.class);
                ensure!(!trace.is_own(class), "entry of {class} in a trace of allocations");
            }
            _ => {}
        }
    }
    ensure!(leaves == 6, "{leaves} leaves instead of 6");
    run.clean()
}

fn a_program_that_was_not_instrumented(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "plain", "AtRunTime")?;
    let counts = counts(&run.summary(lab)?)?;
    ensure!(counts["rewritten"] >= 4 && counts["alreadyInstrumented"] == 0, "{counts:?}");
    run.clean()
}

const LOADERS: &str = "dynamic/Loaders";
/// As many as the program makes.
const COUNT: usize = 500;

/// Events of other kinds would only take time.
fn loaders(lab: &Lab, jdk: &Jdk, test: &str, traced: &[&str], variable: (&str, &str)) -> Result<Run> {
    let (both, environment) = (&["-Xmx64m"], &[variable]);
    let setup = Setup { jdk: &["--events", "alloc"], both, traced, environment, ..Setup::default() };
    Run::with(lab, jdk, test, LOADERS, setup)
}

/// The runtime's tables by class do not grow with the classes that have come and gone.
fn unloaded_classes_are_forgotten(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = loaders(lab, jdk, "loaders", &[], ("ET_TEST_TABLES", "1"))?;
    let summary = run.summary(lab)?;
    let kept = |what: &str| -> Result<u64> {
        let problems = summary["problems"].as_array().context("nothing is told of the tables")?;
        let told = problems.iter().find(|problem| problem["what"] == format!("kept at the end: {what}"));
        told.and_then(|problem| problem["count"].as_u64()).with_context(|| format!("nothing is told of {what}"))
    };
    // Some 750 to 1,000 classes, and 10 to 30 of the others, exist even without the loaders, each of which has three or
    // more classes and one layout.
    for (what, most) in [("classes", 3 * COUNT), ("fields", COUNT / 2), ("layouts", COUNT / 2)] {
        let kept = kept(what)?;
        ensure!((1..most as u64).contains(&kept), "{kept} {what} are kept of {COUNT} loaders");
    }
    run.clean()
}

/// A class whose mirror reuses the id of an unloaded one has its own record. With tags, mirrors have ids like all other
/// objects; otherwise the VM assigns theirs.
fn ids_of_unloaded_classes_are_used_again(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = loaders(lab, jdk, "loaders_used_again", &["-Det.ids=tags"], ("ET_TEST_ID_LAP", "60000"))?;
    let trace = run.read(lab)?;
    let born = |wanted: &str| {
        // Created by `new`: for other objects with a reused id it is unknown whether they are new.
        let is_wanted =
            |what: &What| matches!(what, What::Born { descriptor, site, .. } if **descriptor == *wanted && *site != 0);
        trace.records.all.iter().filter(|record| is_wanted(&record.what)).count()
    };
    let (loaders, templates) = (born("LLoaders$Loader;"), born("LLoaders$Template;"));
    ensure!((loaders, templates) == (COUNT, COUNT), "{loaders} loaders and {templates} objects of their classes");
    let problems = run.summary(lab)?["problems"].to_string();
    ensure!(!problems.contains("used up"), "{problems}");
    run.clean()
}
