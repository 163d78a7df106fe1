//! Facts that take more than a list of records: threads, collections, narrowed hooks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup, problems};
use et_tests::record::{ObjectId, ThreadId, What};
use et_tests::window::Trace;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 14] = [
        ("allocations_only", allocations_only),
        ("threads_in_turn", threads_in_turn),
        ("threads_together", threads_together),
        ("threads_take_turns_at_a_slot", threads_take_turns_at_a_slot),
        ("a_thread_that_exits_is_listed_once", a_thread_that_exits_is_listed_once),
        ("collections_are_counted", collections_are_counted),
        ("chunks_tell_when_they_happened", chunks_tell_when_they_happened),
        ("another_agent_has_events_of_its_own", another_agent_has_events_of_its_own),
        ("entries_and_exits_match", entries_and_exits_match),
        ("sizes_are_the_vms", sizes_are_the_vms),
        ("compiled_code_misses_nothing", compiled_code_misses_nothing),
        ("overflows_are_reported_with_their_type", overflows_are_reported_with_their_type),
        ("references_are_cleared", references_are_cleared),
        ("huge_tables_miss_nothing", huge_tables_miss_nothing),
    ];
    let trials = cases.into_iter().flat_map(|(name, case)| lab::on_each_jdk(name, case));
    lab::run(trials.collect()).exit_code()
}

fn traced(lab: &Lab, jdk: &Jdk, test: &str, name: &str) -> Result<(Run, Trace)> {
    let run = Run::of(lab, jdk, test, &format!("facts/{name}"))?;
    let trace = run.read(lab)?;
    Ok((run, trace))
}

/// Allocations at the program's own sites: label and type to count.
fn made(trace: &Trace) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for record in &trace.records.all {
        let What::Born { descriptor, site, .. } = &record.what else { continue };
        let Some(site) = trace.names.sites.get(site) else { continue };
        if trace.is_own(&trace.names.methods[&site.method].class) {
            let label = trace.source.labels.get(&site.line).map_or("none", String::as_str);
            *made.entry(format!("{label} {}", trace.type_name(descriptor, None))).or_default() += 1;
        }
    }
    made
}

fn allocations_only(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "allocations_only", "AllocationsOnly")?;
    let expected = [
        ("holder Holder", 4),
        ("inside Leaf", 4),
        ("none java.lang.IllegalStateException", 1),
        ("table Leaf[]", 6),
        ("table Leaf[][]", 4),
    ];
    let expected: BTreeMap<String, usize> = expected.map(|(what, count)| (what.to_owned(), count)).into();
    ensure!(made(&trace) == expected, "{:?} instead of {expected:?}", made(&trace));
    for record in &trace.records.all {
        if let What::Entry { method, .. } | What::Exit { method, .. } | What::Exception { method, .. } = record.what {
            let class = trace.names.methods.get(&method).map_or("", |method| &method.class);
            ensure!(!trace.is_own(class), "{} shows though only allocations are hooked", trace.method_name(method));
        }
        if let What::Update { field, .. } = record.what {
            let field = trace.names.fields.get(&field).filter(|field| trace.is_own(&field.class));
            ensure!(field.is_none(), "an update of {field:?} shows though only allocations are hooked");
        }
    }
    run.clean()
}

fn threads_in_turn(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "threads_in_turn", "Threads")?;
    let calls = trace.calls("work");
    ensure!(calls.len() == 3, "{} calls of work instead of 3", calls.len());
    let threads: Vec<ThreadId> = calls.iter().map(|call| call.thread).collect();
    ensure!(threads.is_sorted() && threads[0] < threads[1] && threads[1] < threads[2], "thread ids {threads:?}");
    let main = trace.calls("main").first().context("no call of main")?.thread;
    ensure!(!threads.contains(&main), "work ran in the main thread");
    for (index, call) in calls.iter().enumerate() {
        // The first thread loads the class, too, and makes what that takes.
        let is_leaf = |what: &What| matches!(what, What::Born { descriptor, .. } if **descriptor == *"LThreads$Leaf;");
        let leaves = call.records.iter().filter(|record| is_leaf(&record.what)).count();
        ensure!(leaves == index + 1, "thread {} made {leaves} leaves", index + 1);
    }
    // The slot goes from one thread's last leaf to the next thread's first.
    let slot = updates(&trace, "handed");
    ensure!(slot.len() == 6, "{} updates of handed instead of 6", slot.len());
    ensure!(slot.windows(2).all(|pair| pair[0].new == pair[1].old), "old targets do not follow: {slot:?}");
    let shown: Vec<ThreadId> = slot.iter().map(|update| update.thread).collect();
    ensure!(shown.is_sorted(), "threads mixed: {shown:?}");
    let names = thread_names(&run, lab)?;
    for name in ["main", "turn-1", "turn-2", "turn-3", "busy-0", "busy-3", "ping", "pong"] {
        ensure!(names.contains(name), "no thread {name} in the summary: {names:?}");
    }
    run.clean()
}

fn threads_together(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "threads_together", "Threads")?;
    let calls = trace.calls("busy");
    let threads: HashSet<ThreadId> = calls.iter().map(|call| call.thread).collect();
    ensure!(threads.len() == 4, "busy ran in {} threads instead of 4", threads.len());
    for call in calls {
        let born: HashSet<ObjectId> = call
            .records
            .iter()
            .filter_map(|record| match record.what {
                What::Born { object, .. } => Some(object),
                _ => None,
            })
            .collect();
        let entered = call.records.iter().filter(|record| matches!(record.what, What::Entry { .. })).count();
        ensure!(born.len() == 5_000 && entered == 5_000, "{} leaves, {entered} constructors", born.len());
    }
    run.clean()
}

fn threads_take_turns_at_a_slot(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "threads_take_turns", "Threads")?;
    let slot = updates(&trace, "ball");
    ensure!(slot.len() == 100, "{} updates of ball instead of 100", slot.len());
    for pair in slot.windows(2) {
        ensure!(pair[0].new == pair[1].old, "the old target is not what the slot held: {pair:?}");
    }
    run.clean()
}

fn collections_are_counted(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "collections", "Collections")?;
    ensure!(made(&trace).get("garbage byte[]") == Some(&200_000), "{:?}", made(&trace));
    let summary = run.summary(lab)?;
    let collections = summary["gcs"].as_array().map(Vec::len).context("the summary has no list of collections")?;
    ensure!(collections >= 2, "{collections} collections in the summary, two were asked for");
    run.clean()
}

/// Each thread's chunks follow each other on the clock, within the time that the run took (docs/inside/trace-file.md).
fn chunks_tell_when_they_happened(lab: &Lab, jdk: &Jdk) -> Result<()> {
    const FILE_HEADER: usize = 16;
    const BLOCK_HEADER: usize = 40;
    const EVENTS: u8 = 3;
    const TIMED: u8 = 1;
    let run = Run::of(lab, jdk, "chunks_tell_when_they_happened", "facts/Threads")?;
    let trace = fs::read(&run.trace)?;
    let seconds = run.summary(lab)?["seconds"].as_f64().context("no seconds")?;
    let mut threads: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut rest = trace.get(FILE_HEADER..).context("no trace")?;
    while let Some((header, after)) = rest.split_at_checked(BLOCK_HEADER) {
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (stored, behind) = after.split_at_checked(word(16) as usize).context("the last block is cut off")?;
        ensure!(
            (header[4] == EVENTS) == (header[6] == TIMED),
            "a block of kind {} with flags {}",
            header[4],
            header[6]
        );
        if header[4] == EVENTS {
            let times = stored[..16].chunks_exact(8).map(|nanos| nanos.try_into().map(u64::from_le_bytes));
            threads.entry(word(8)).or_default().extend(times.collect::<Result<Vec<u64>, _>>()?);
        }
        rest = behind;
    }
    ensure!(threads.values().any(|times| times.len() > 2), "no thread has more than one chunk");
    for (thread, times) in threads {
        ensure!(times[0] > 0 && times.is_sorted(), "thread {thread}: {times:?}");
        ensure!(times.last().is_some_and(|last| (*last as f64) < 1e9 * seconds), "{times:?} in {seconds} s");
    }
    run.clean()
}

/// The tracer and an agent that uses the same crate, with two environments, in one process: each gets the events that
/// it has enabled. A panic in one does not affect the others.
fn another_agent_has_events_of_its_own(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let test = "another_agent";
    let report = lab.folder(jdk, test)?.join("bystander.txt");
    // Cargo builds it beside the tests that depend on it.
    let library = std::env::current_exe()?.with_file_name("libet_bystander.so");
    let agent = format!("-agentpath:{}={}", library.display(), report.display());
    let run = Run::with(lab, jdk, test, "facts/Threads", Setup { traced: &[&agent], ..Setup::default() })?;
    let told = fs::read_to_string(&report)?;
    let names = thread_names(&run, lab)?;
    let lines: Vec<&str> = told.lines().collect();
    let [inits, threads, panics, classes] = lines[..] else { bail!("{told}") };
    ensure!(inits == "inits 1", "{told}");
    let started: usize = threads.strip_prefix("threads ").context("no threads")?.parse()?;
    ensure!(started >= 8 && names.contains("turn-1"), "{started} threads, the trace has {names:?}");
    ensure!(panics == r#"panics ["at the first thread: Ok(()), env: true"]"#, "{told}");
    ensure!(classes.contains(r#""Threads""#) && classes.contains(r#""Threads$Leaf""#), "{told}");
    ensure!(run.read(lab)?.calls("work").len() == 3, "the trace misses calls of work");
    run.clean()
}

/// Over the whole trace, start-up and shutdown included.
fn entries_and_exits_match(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "entries_and_exits", "Threads")?;
    let mut stacks: HashMap<ThreadId, Vec<(u64, ObjectId)>> = HashMap::new();
    for (index, record) in trace.records.all.iter().enumerate() {
        let stack = stacks.entry(record.thread).or_default();
        match record.what {
            What::Entry { method, receiver } => stack.push((method, receiver)),
            What::Exit { method, receiver } | What::Exception { kind: 'X', method, receiver, .. } => {
                let top = stack.pop();
                // Methods that were running when tracing began have their entries at the start of the trace.
                let same = top == Some((method, receiver));
                ensure!(same, "record {index}: exit of {} {receiver:?}, top is {top:?}", trace.method_name(method));
            }
            _ => {}
        }
    }
    run.clean()
}

/// Compressed class pointers and references, as both JDKs have them by default on 64 bits.
fn sizes_are_the_vms(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "sizes", "Sizes")?;
    let mut sizes = BTreeMap::new();
    for record in &trace.records.all {
        if let What::Born { kind, size, descriptor, .. } = &record.what {
            ensure!(size % 8 == 0 && *size >= 16, "{kind} {descriptor} has {size} bytes");
            let name = trace.type_name(descriptor, None);
            if name.starts_with("Size") {
                sizes.insert(name, *size);
            }
        }
    }
    let expected = [("Size0", 16), ("Size1", 16), ("Size12", 24), ("Size16", 32), ("SizeLong", 24)];
    let expected: BTreeMap<String, u64> = expected.map(|(name, size)| (name.to_owned(), size)).into();
    ensure!(sizes == expected, "{sizes:?} instead of {expected:?}");
    run.clean()
}

#[derive(Debug)]
struct Update {
    thread: ThreadId,
    old: ObjectId,
    new: ObjectId,
}

fn updates(trace: &Trace, name: &str) -> Vec<Update> {
    let is_it =
        |id: &u64| trace.names.fields.get(id).is_some_and(|f| trace.is_own(&f.class) && f.name == name && f.is_static);
    let of_slot = trace.records.all.iter().filter_map(|record| match &record.what {
        What::Update { old, origin: ObjectId::NULL, new, field } if is_it(field) => {
            Some(Update { thread: record.thread, old: *old, new: *new })
        }
        _ => None,
    });
    of_slot.collect()
}

/// A thread that calls `System.exit` keeps its frames to the end, whichever threads end after it, and remains the same
/// thread.
fn a_thread_that_exits_is_listed_once(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "whoever_exits", "facts/Exits")?;
    let summary = run.summary(lab)?;
    let left = summary["anomalies"]["framesAtThreadEnd"].as_u64();
    ensure!(left == Some(0), "{left:?} frames are said to be left at the end of their thread");
    let threads = summary["threads"].as_array().context("the summary has no list of threads")?;
    let main: Vec<_> = threads.iter().filter(|thread| thread["name"] == "main").collect();
    let [main] = main.as_slice() else { anyhow::bail!("{} threads are called main: {main:?}", main.len()) };
    ensure!(main["ended"] == false, "its frames are there to the end: {main}");
    let ended = threads.iter().filter(|thread| thread["ended"] == true).count();
    ensure!(ended >= 60, "{ended} threads ended");
    run.clean()
}

fn thread_names(run: &Run, lab: &Lab) -> Result<HashSet<String>> {
    let summary = run.summary(lab)?;
    let threads = summary["threads"].as_array().context("the summary has no list of threads")?;
    Ok(threads.iter().filter_map(|thread| thread["name"].as_str()).map(str::to_owned).collect())
}

/// Turns of each loop of `Hot`.
const TURNS: usize = 20_000;

/// Each way to make an object, compiled by C2, leaves one record a turn.
fn compiled_code_misses_nothing(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "compiled_code", "Hot")?;
    // Method, what it makes each turn, and how many updates of such arrays each turn has.
    let expected = [
        ("arrayClone", "[LHot$Leaf;", 2),
        ("numbersClone", "[J", 0),
        ("objectClone", "LHot$Leaf;", 0),
        ("newInstance", "[LHot$Leaf;", 0),
        ("copyOf", "[LHot$Leaf;", 1),
        ("copyOfRange", "[LHot$Leaf;", 1),
        ("copyOfNumbers", "[J", 0),
        ("boxes", "Ljava/lang/Long;", 0),
        ("varargs", "[LHot$Leaf;", 2),
        ("builders", "Ljava/lang/String;", 0),
        ("builders", "Ljava/lang/StringBuilder;", 0),
        ("concatenations", "Ljava/lang/String;", 0),
        ("wideStrings", "Ljava/lang/String;", 0),
        ("nullPointers", "Ljava/lang/NullPointerException;", 0),
        ("reflection", "LHot$Twig;", 0),
        ("handles", "LHot$Bough;", 0),
    ];
    let mut wrong = Vec::new();
    for (method, made, _) in expected {
        let born = births(&trace, method, made)?;
        // Caches, class loading and the first call of a handle make a few of their own.
        let spare = if made.starts_with("Ljava/") { TURNS / 10 } else { 0 };
        if !(TURNS..=TURNS + spare).contains(&born) {
            wrong.push(format!("{method} made {born} of {made} in {TURNS} turns"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (method, array, changed) in expected.into_iter().filter(|(_, made, _)| made.starts_with("[L")) {
        let count = element_updates(&trace, method, "[LHot$Leaf;")?;
        ensure!(count == changed * TURNS, "{method}: {count} updates of {array} instead of {}", changed * TURNS);
    }
    let copied = element_updates(&trace, "arraycopies", "[LHot$Leaf;")?;
    ensure!(copied == TURNS, "{copied} slots changed by arraycopy instead of {TURNS}");
    let exchanged = field_updates(&trace, "references", "AtomicReference.value")?;
    ensure!(exchanged == 2 * TURNS, "{exchanged} updates of the AtomicReference instead of {}", 2 * TURNS);
    let backtraces = field_updates(&trace, "nullPointers", "Throwable.backtrace")?;
    ensure!(backtraces >= TURNS, "{backtraces} backtraces of {TURNS} exceptions");
    run.clean()
}

fn only_call<'t>(trace: &'t Trace, method: &str) -> Result<et_tests::window::Window<'t>> {
    trace.calls(method).into_iter().next().with_context(|| format!("no call of {method}"))
}

fn births(trace: &Trace, method: &str, type_made: &str) -> Result<usize> {
    let window = only_call(trace, method)?;
    let is_it = |what: &What| matches!(what, What::Born { descriptor, .. } if **descriptor == *type_made);
    Ok(window.records.iter().filter(|record| is_it(&record.what)).count())
}

fn element_updates(trace: &Trace, method: &str, array: &str) -> Result<usize> {
    let window = only_call(trace, method)?;
    let is_it = |what: &What| match what {
        What::Update { origin, .. } => {
            trace.records.descriptors.get(origin).is_some_and(|descriptor| **descriptor == *array)
        }
        _ => false,
    };
    Ok(window.records.iter().filter(|record| is_it(&record.what)).count())
}

fn field_updates(trace: &Trace, method: &str, name: &str) -> Result<usize> {
    let window = only_call(trace, method)?;
    Ok(window.records.iter().filter(|record| is_update_of(trace, &record.what, name)).count())
}

fn is_update_of(trace: &Trace, what: &What, name: &str) -> bool {
    let What::Update { field, origin, .. } = what else { return false };
    let is_array = trace.records.descriptors.get(origin).is_some_and(|descriptor| descriptor.starts_with('['));
    !is_array
        && trace.names.fields.get(field).is_some_and(|field| format!("{}.{}", field.class, field.name).ends_with(name))
}

fn references_are_cleared(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "references", "References")?;
    let cleared = |record: &et_tests::record::Record, types: &[&str]| match &record.what {
        What::Update { origin, new: ObjectId::NULL, old, .. } if *old != ObjectId::NULL => {
            is_update_of(&trace, &record.what, "Reference.referent")
                && trace.records.descriptors.get(origin).is_some_and(|found| types.contains(&&**found))
        }
        _ => false,
    };
    let weak = ["LReferences$Weak;"];
    let window = only_call(&trace, "byProgram")?;
    let by_program = window.records.iter().filter(|record| cleared(record, &weak)).count();
    ensure!(by_program == 2, "{by_program} references cleared by the program instead of 2");
    let all = trace.records.all.iter();
    let both = ["LReferences$Weak;", "LReferences$Phantom;"];
    let in_all = all.filter(|record| cleared(record, &both)).count();
    ensure!(in_all == 4, "{in_all} references cleared instead of 4");
    run.clean()
}

/// Their methods have no room for the usual hooks.
fn huge_tables_miss_nothing(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "huge_tables", "Tables")?;
    let (rows, tables) = (births(&trace, "numbers", "[J")?, births(&trace, "numbers", "[[J")?);
    ensure!((rows, tables) == (3600, 1), "{rows} rows in {tables} tables");
    let stored = element_updates(&trace, "numbers", "[[J")?;
    ensure!(stored == 3600, "{stored} rows stored");
    let constants = births(&trace, "strings", "Ljava/lang/String;")?;
    ensure!(constants == 10, "{constants} constants made");
    let stored = element_updates(&trace, "strings", "[Ljava/lang/String;")?;
    ensure!(stored == 3300, "{stored} constants stored");
    for method in ["numbers", "strings"] {
        let records = &only_call(&trace, method)?.records;
        let found = records.iter().filter(|record| matches!(record.what, What::Born { kind: 'P', .. })).count();
        ensure!(found == 0, "{method}: {found} objects were only seen when they were stored");
    }
    run.clean()
}

/// The VM creates the error when a hook does not fit on the stack. The first hook that fits must recognize it as new.
/// Where a stack ends depends on its last page and on the progress of the JIT compilers: occasionally a hook assigns
/// the error's id and has no stack left to report it, and then the trace must say that events are missing.
fn overflows_are_reported_with_their_type(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let (run, trace) = traced(lab, jdk, "overflown", "Overflown")?;
    let (mut errors, mut unknown) = (0, 0);
    for record in &trace.records.all {
        let What::Born { descriptor, size, kind, .. } = &record.what else { continue };
        if **descriptor == *"Ljava/lang/StackOverflowError;" {
            ensure!(*size > 0, "{record:?}");
            errors += 1;
        }
        unknown += u64::from(*kind == 'P' && *size == 0);
    }
    let summary = run.summary(lab)?;
    let said = problems(&summary)
        .into_iter()
        .filter(|problem| problem["what"].as_str().is_some_and(|what| what.contains("the stack ended there")));
    let said: u64 = said.filter_map(|problem| problem["count"].as_u64()).sum();
    // The VM initially keeps one or two of its own.
    let missing = 20_u64.saturating_sub(errors);
    ensure!(errors < 24 && missing <= said.min(3), "{errors} errors, {said} events are said to be missing");
    ensure!(unknown <= missing, "{unknown} objects that no hook told of");
    run.clean()
}
