//! The heap as runs, compared with what the VM says of it.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use et_ddm::heap::{Walk, When};
use et_ddm::segment::{Form, Kind, Solidity};
use et_ddm::wire::Reader;
use et_ddm::{Chunk, ChunkType, Message, Request};
use et_tests::lab::{self, Lab};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;

use crate::client::{Client, Program};

const COLLECTORS: [&str; 5] = ["Serial", "Parallel", "G1", "Shenandoah", "Z"];
/// Number of objects of each kind that the program allocates.
const COUNT: u64 = 400;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let missing = |collector| move |lab: &Lab, jdk: &Jdk| lab.refusal(jdk, &[&format!("-XX:+Use{collector}GC")]);
    for collector in COLLECTORS {
        let case = move |lab: &Lab, jdk: &Jdk| pattern(lab, jdk, collector);
        trials.extend(lab::on_some_jdks_unless(&format!("heap_{collector}"), missing(collector), case));
    }
    for collector in ["G1", "Z", "Shenandoah"] {
        let case = move |lab: &Lab, jdk: &Jdk| churn(lab, jdk, collector);
        trials.extend(lab::on_one_jdk_unless(&format!("heap_at_work_{collector}"), missing(collector), case));
    }
    trials.extend(lab::on_one_jdk("what_only_references_hold", references));
    trials.extend(lab::on_one_jdk("reference_graph", graph));
    trials.extend(lab::on_one_jdk("heap_of_more_than_four_gigabytes", huge));
    trials
}

/// Bytes by what they are, and how many objects.
#[derive(Debug, Default)]
struct Totals {
    bytes: BTreeMap<(String, String), u64>,
    objects: u64,
    heaps: u64,
}

impl Totals {
    fn of(&self, is_it: impl Fn(&str, &str) -> bool) -> u64 {
        self.bytes.iter().filter(|((kind, solidity), _)| is_it(kind, solidity)).map(|(_, bytes)| bytes).sum()
    }
}

/// Totals of the heap as reported, up to its end.
fn totals(client: &mut Client, native: bool) -> Result<Totals> {
    client.until(|message| matches!(message, Message::HeapEnd { native: it, .. } if *it == native))?;
    let mut totals = Totals::default();
    let mut is_open = false;
    let mut next = BTreeMap::new();
    for message in client.told.drain(..) {
        match message {
            Message::HeapStart { native: it, heap } if it == native => {
                // Another may be there already, of an earlier collection.
                if heap <= 1 {
                    totals = Totals::default();
                    next.clear();
                }
                is_open = true;
                totals.heaps += 1;
            }
            Message::HeapSegment(segment) if (segment.form == Form::Native) == native => {
                ensure!(is_open, "a segment outside");
                // Pieces of a stretch follow each other.
                let expected = next.entry((segment.heap, segment.address)).or_insert(0);
                ensure!(segment.offset == *expected, "{} instead of {expected}", segment.offset);
                *expected += segment.units() as u32;
                for run in &segment.runs {
                    let bytes = u64::from(run.units) * u64::from(segment.unit);
                    let kind = format!("{:?}", run.state.kind);
                    let solidity = format!("{:?}", run.state.solidity);
                    *totals.bytes.entry((kind, solidity)).or_default() += bytes;
                    let is_object = run.state.solidity != Solidity::Free && !run.is_partial;
                    totals.objects += u64::from(is_object && segment.form == Form::Objects);
                }
            }
            Message::HeapEnd { native: it, .. } if it == native => is_open = false,
            _ => {}
        }
    }
    Ok(totals)
}

/// Output of `jcmd`.
fn jcmd(lab: &Lab, program: &Program, command: &[&str]) -> Result<String> {
    let output =
        Command::new(lab.compiler.home.join("bin/jcmd")).arg(program.pid().to_string()).args(command).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Objects and bytes of a class, in a histogram of the VM's.
fn row(histogram: &str, class: &str) -> Result<(u64, u64)> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows = histogram.lines().map(words);
    let row = rows
        .into_iter()
        .find(|row| row.get(3).is_some_and(|name| name == class) || row.first().is_some_and(|name| name == class));
    let row = row.with_context(|| format!("no {class} in {histogram}"))?;
    let numbers: Vec<u64> = row.iter().filter_map(|word| word.parse().ok()).collect();
    let last = numbers.len().checked_sub(2).context("no numbers")?;
    Ok((numbers[last], numbers[last + 1]))
}

/// Bytes by kind, of the rows of a histogram of the VM's.
fn by_kind(histogram: &str) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    for line in histogram.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, _, bytes, class, ..] = words[..] else { continue };
        let (true, Ok(bytes)) = (number.ends_with(':'), bytes.parse::<u64>()) else { continue };
        let kind = match class {
            "[B" | "[Z" => "Array1",
            "[C" | "[S" => "Array2",
            "[J" | "[D" => "Array8",
            "java.lang.Class" => "Class",
            _ if class.starts_with('[') || class.contains("Filler") => "Array4",
            _ => "Object",
        };
        *kinds.entry(kind.to_owned()).or_default() += bytes;
    }
    kinds
}

/// The bytes that the VM has of the heap, in all its spaces.
fn committed(info: &str, collector: &str) -> Option<u64> {
    let kilobytes = |line: &str, name: &str| -> Option<u64> {
        let rest = &line[line.find(name)? + name.len()..];
        rest.trim_start().split(['K', ' ', ',']).next()?.parse::<u64>().ok().map(|number| number << 10)
    };
    match collector {
        "G1" => info.lines().find_map(|line| line.contains("garbage-first").then(|| kilobytes(line, "total"))?),
        // The survivor space reserved for copying is not included in the total there.
        "Serial" | "Parallel" => {
            let spaces =
                ["eden space", "from space", "to   space", "from  space", "to    space", "the space", "object space"];
            let sizes = info.lines().filter_map(|line| {
                let space = spaces.iter().find(|space| line.trim_start().starts_with(*space))?;
                kilobytes(line, space)
            });
            let sum: u64 = info
                .lines()
                .filter(|line| line.to_lowercase().contains("tenured") || line.contains("ParOldGen"))
                .filter_map(|line| kilobytes(line, "total"))
                .sum();
            let young: u64 = sizes.take(3).sum();
            Some(sum + young)
        }
        _ => None,
    }
}

fn pattern(lab: &Lab, jdk: &Jdk, collector: &str) -> Result<()> {
    let option = format!("-XX:+Use{collector}GC");
    let options = [&option, "-Xms96m", "-Xmx96m"];
    let mut program = Program::start(lab, jdk, &format!("heap{collector}"), Some("quiet=on"), &options, "Pattern")?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    client.tell(Request::CollectGarbage)?;
    client.tell(Request::HeapSegments { when: Walk::Now, objects: true })?;
    let objects = totals(&mut client, false)?;
    client.tell(Request::HeapSegments { when: Walk::Now, objects: false })?;
    let merged = totals(&mut client, false)?;
    let histogram = jcmd(lab, &program, &["GC.class_histogram", "-all"])?;
    let info = jcmd(lab, &program, &["GC.heap_info"])?;

    // For each kind the same number of bytes as in the VM's histogram, except for allocations caused by `jcmd`. The VM
    // also counts fillers at unused ends of buffers, which look like an `int[]`, or in later releases have their own
    // class.
    let theirs = by_kind(&histogram);
    for (kind, bytes) in &theirs {
        let ours = objects.of(|it, solidity| it == kind && solidity != "Free");
        ensure!(!kind.starts_with("Array") || ours >= COUNT * 10_016, "{kind}: {objects:?}");
        let slack = if kind == "Array4" { 8 << 20 } else { bytes / 50 + (64 << 10) };
        ensure!(bytes.abs_diff(ours) <= slack, "{kind}: {ours} of {bytes} bytes\n{histogram}");
    }
    // Soft is what only the reference holds, and nothing else so large.
    let soft = objects.of(|kind, solidity| kind == "Array2" && solidity == "Soft");
    if ["Z", "Shenandoah"].contains(&collector) {
        let why = "full collections of Shenandoah and ZGC clear soft references";
        lab.not_tested(&format!("jdk{}::heap_{collector}: soft references", jdk.feature), why);
    } else {
        ensure!((2_000_016..2_100_000).contains(&soft), "{soft} soft bytes: {objects:?}");
    }
    // All objects.
    let (count, _) = row(&histogram, "Total")?;
    let ours = objects.of(|_, solidity| solidity != "Free");
    ensure!(objects.objects.abs_diff(count) <= count / 10, "{} of {count} objects", objects.objects);
    // The same bytes without the ends of objects, but for what the walks themselves have made the VM allocate.
    let others = merged.of(|_, solidity| solidity != "Free");
    ensure!(others.abs_diff(ours) <= 8 << 20, "{others} and {ours} bytes");
    if let Some(committed) = committed(&info, collector) {
        let all = objects.of(|_, _| true);
        ensure!(all == committed, "{all} of {committed} bytes of heap\n{info}");
    }
    let Some(Message::HeapInfo(heaps)) = client.ask(Request::HeapInfo(When::Now))? else { anyhow::bail!("no heap") };
    let heap = heaps[0];
    ensure!(heap.most <= 96 << 20 && heap.size <= 96 << 20 && heap.used <= heap.size, "{heap:?}");
    ensure!(u64::from(heap.objects).abs_diff(count) <= count / 10, "{heap:?}, {count} objects");
    let Some(Message::Histogram(ours)) = client.ask(Request::Histogram { rows: 50 })? else { anyhow::bail!("none") };
    let items = ours.rows.iter().find(|row| row.name == "Pattern$Item");
    if let Some(items) = items {
        ensure!(items.objects == 500, "{items:?}");
        let class = items.class;
        let Some(Message::Instances(found)) = client.ask(Request::Instances { class, most: 3 })? else {
            anyhow::bail!("none")
        };
        ensure!(found.total == 500 && found.objects.len() == 3, "{found:?}");
    } else {
        ensure!(ours.rows.len() == 50, "{ours:?}");
    }

    // At collections.
    client.tell(Request::HeapInfo(When::NextGc))?;
    client.tell(Request::HeapSegments { when: Walk::EveryGc, objects: false })?;
    client.tell(Request::NativeSegments { when: Walk::EveryGc })?;
    std::thread::sleep(Duration::from_millis(50));
    client.tell(Request::CollectGarbage)?;
    client.until(|message| matches!(message, Message::HeapInfo(heaps) if heaps[0].reason == When::NextGc))?;
    let again = totals(&mut client, false)?;
    ensure!(again.of(|kind, solidity| kind == "Array8" && solidity != "Free") >= COUNT * 10_016, "{again:?}");
    client.tell(Request::NativeSegments { when: Walk::Now })?;
    let native = totals(&mut client, true)?;
    ensure!(
        native.of(|kind, solidity| kind == format!("{:?}", Kind::Native) && solidity == "Hard") > 1 << 20,
        "{native:?}"
    );
    // A dump made by the VM itself.
    let dump = lab.folder(jdk, &format!("monitor_dump_{collector}"))?.join("ä.hprof");
    let path = dump.to_string_lossy().into_owned();
    let reply = client.ask(Request::DumpHeap { path: path.clone() })?;
    ensure!(reply == Some(Message::HeapDumped(0)), "{reply:?}");
    ensure!(std::fs::read(&dump)?.starts_with(b"JAVA PROFILE"), "no dump");
    let reply = client.ask(Request::DumpHeap { path })?;
    ensure!(matches!(&reply, Some(Message::Fail(failure)) if failure.message.contains("exist")), "{reply:?}");
    std::fs::remove_file(dump)?;
    program.go_on()?;
    let line = program.line()?;
    ensure!(line.starts_with("1600 1000 "), "{line}");
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}

/// Live objects are reported as such, whatever the collector moves in the meantime; and a collection counts once,
/// however many pauses it has.
fn churn(lab: &Lab, jdk: &Jdk, collector: &str) -> Result<()> {
    const HELD: u64 = 200 * 250 * 24;
    // Bytes of that kind in the JDK itself.
    const MORE: u64 = 128 << 10;
    let option = format!("-XX:+Use{collector}GC");
    let name = format!("churn{collector}");
    let mut program = Program::start(lab, jdk, &name, Some("quiet=on"), &[&option, "-Xmx64m"], "Churn")?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    for round in 0..8 {
        client.tell(Request::HeapSegments { when: Walk::Now, objects: true })?;
        let heap = totals(&mut client, false)?;
        let hard = heap.of(|kind, solidity| kind == "Array2" && solidity == "Hard");
        ensure!((HELD..HELD + MORE).contains(&hard), "round {round}: {hard} of {HELD} bytes are held: {heap:?}");
        let others = heap.of(|kind, solidity| kind == "Array2" && !["Hard", "Free"].contains(&solidity));
        ensure!(others <= MORE, "round {round}: {others} bytes are not held: {heap:?}");
    }
    program.go_on()?;
    program.expect("quiet")?;
    client.tell(Request::HeapSegments { when: Walk::EveryGc, objects: false })?;
    // So that earlier collections are not mistaken for this one.
    std::thread::sleep(Duration::from_millis(600));
    client.told.clear();
    client.tell(Request::CollectGarbage)?;
    client.until(|message| matches!(message, Message::HeapEnd { .. }))?;
    std::thread::sleep(Duration::from_millis(1500));
    client.ask(Request::HeapInfo(When::Now))?;
    let maps = client.told.iter().filter(|message| matches!(message, Message::HeapEnd { .. })).count();
    // On a machine with other work the pauses of a concurrent collector may be far apart.
    let most = if collector == "G1" { 1 } else { 2 };
    ensure!((1..=most).contains(&maps), "{maps} maps of one collection");
    program.go_on()?;
    program.expect("done")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}

/// Objects held by weak, final and phantom references, and unreachable ones.
fn references(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let options = ["-Xms96m", "-Xmx96m", "-XX:+UseSerialGC"];
    let mut program = Program::start(lab, jdk, "references", Some("quiet=on"), &options, "References")?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    client.tell(Request::HeapSegments { when: Walk::Now, objects: true })?;
    let found = totals(&mut client, false)?;
    for (kind, solidity, bytes) in [
        ("Array8", "Weak", 2_000_016),
        ("Array1", "Phantom", 3_000_016),
        ("Array2", "Finalizable", 2_000_016),
        ("Array4", "Sweep", 2_000_016),
    ] {
        let ours = found.of(|it, how| it == kind && how == solidity);
        // Unused ends of buffers are unreachable int arrays.
        let more = if kind == "Array4" { 8 << 20 } else { 100_000 };
        ensure!((bytes..bytes + more).contains(&ours), "{kind} {solidity}: {ours} instead of {bytes}: {found:?}");
    }
    program.go_on()?;
    program.expect("done")?;
    ensure!(program.end()?.success() && program.said().is_empty(), "{}", program.said());
    Ok(())
}

const ETRG: ChunkType = ChunkType(*b"ETRG");

/// The received parts of the reference graph.
#[derive(Debug, Default)]
struct Graph {
    classes: BTreeMap<u64, String>,
    /// Class and size of each object.
    objects: BTreeMap<u64, (u64, u64)>,
    roots: u64,
    /// Source, target, kind and index of each reference.
    references: Vec<(u64, u64, u8, u32)>,
}

impl Graph {
    fn take(&mut self, data: &[u8]) -> Result<()> {
        let mut reader = Reader::new("a piece of the graph", data);
        let (what, count) = (reader.u1()?, reader.u4()?);
        for _ in 0..count {
            match what {
                1 => _ = self.classes.insert(reader.u8()?, reader.text()?),
                2 => _ = self.objects.insert(reader.u8()?, (reader.u8()?, reader.u8()?)),
                3 => {
                    ensure!(self.objects.contains_key(&reader.u8()?), "a root that is no object");
                    reader.u1()?;
                    self.roots += 1;
                }
                4 => self.references.push((reader.u8()?, reader.u8()?, reader.u1()?, reader.u4()?)),
                other => anyhow::bail!("a piece of kind {other}"),
            }
        }
        Ok(reader.end()?)
    }
}

/// All objects and references, over the connection.
fn graph(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let program = Program::start(lab, jdk, "graph", Some("quiet=on"), &["-Xmx96m"], "Pattern")?;
    program.expect("ready")?;
    let mut guest = Client::without_token(&program)?;
    ensure!(guest.ask(Request::Other(Chunk::new(ETRG, vec![0])))?.is_none(), "who has no token is told");
    let mut client = Client::new(&program)?;
    // Numbers that objects get for the walk are gone with it, unless they are to stay.
    for keeps in [0, 1] {
        client.told.clear();
        let reply = client.ask(Request::Other(Chunk::new(ETRG, vec![keeps])))?;
        let Some(Message::Other(totals)) = reply else { anyhow::bail!("{reply:?}") };
        let mut reader = Reader::new("the totals", &totals.data);
        let [objects, bytes, references, roots] = [reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?];
        let mut graph = Graph::default();
        for message in client.told.drain(..) {
            if let Message::Other(chunk) = message {
                graph.take(&chunk.data)?;
            }
        }
        let sizes: u64 = graph.objects.values().map(|(_, size)| size).sum();
        ensure!(
            (graph.objects.len() as u64, sizes, graph.references.len() as u64, graph.roots)
                == (objects, bytes, references, roots),
            "{objects} objects, {bytes} bytes, {references} references, {roots} roots"
        );
        ensure!(graph.objects.values().all(|(class, _)| graph.classes.contains_key(class)), "a class without a name");
        let of = |name: &str| -> Vec<u64> {
            let is_it = |class: &u64| graph.classes.get(class).is_some_and(|it| it == name);
            graph.objects.iter().filter(|(_, (class, _))| is_it(class)).map(|(object, _)| *object).collect()
        };
        let (items, arrays) = (of("Pattern$Item"), of("Pattern$Item[]"));
        ensure!(items.len() == 500 && arrays.len() == 1, "{} items, {} arrays", items.len(), arrays.len());
        let mut indexes: Vec<u32> = graph
            .references
            .iter()
            .filter(|(from, to, ..)| *from == arrays[0] && items.contains(to))
            .map(|(_, _, _, index)| *index)
            .collect();
        indexes.sort_unstable();
        ensure!(indexes.iter().copied().eq((0..500).map(|index| 2 * index + 1)), "{indexes:?}");
        let answer = client.ask(Request::Object(items[0]))?;
        let is_known = matches!(&answer, Some(Message::Object(object)) if object.class_name == "Pattern$Item");
        ensure!(is_known == (keeps == 1), "kept: {keeps}, {answer:?}");
    }
    Ok(())
}

fn huge(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let options = ["-Xms5g", "-Xmx5g", "-XX:+UseSerialGC"];
    let program = Program::start(lab, jdk, "huge", Some("quiet=on"), &options, "Pattern")?;
    program.expect("ready")?;
    let mut client = Client::new(&program)?;
    client.tell(Request::HeapSegments { when: Walk::Now, objects: false })?;
    // The second of two heaps ends last.
    client.until(|message| matches!(message, Message::HeapEnd { heap: 2, .. }))?;
    let totals = totals(&mut client, false)?;
    let all = totals.of(|_, _| true);
    ensure!(totals.heaps == 2 && all == 5 << 30, "{all} bytes in {} heaps", totals.heaps);
    Ok(())
}
