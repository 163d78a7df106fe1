//! `cargo xtask bench --threads`: measures two programs with many threads, which share nothing or everything.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Options;
use super::figures::{median, median_cost};
use xtask::command;
use xtask::instrumented::{self, InstrumentedJdk};
use xtask::jdks::{self, Jdk};
use xtask::layout::{Layout, Tools};

use crate::cost::{self, Cost};
use crate::markdown;

/// Iterations of all threads together at full size; an iteration produces about 350 events.
const TURNS: u32 = 1_000_000;
/// What threads share.
const MODES: [&str; 2] = ["own", "shared"];
/// Numbers of cores to predict the throughput for.
const MODEL_CORES: f64 = 32.0;
/// Additions to one number in memory, by all threads together.
const ADDITIONS: u64 = 20_000_000;

/// One row: medians.
struct Row {
    mode: &'static str,
    threads: usize,
    plain: Cost,
    written: Cost,
    discarded: Cost,
    trace: Figures,
}

/// Medians of the figures of traces.
#[derive(Clone, Copy, Default)]
struct Figures {
    events: f64,
    tickets: f64,
    bytes: f64,
    helped: f64,
    blocks: f64,
    writers: f64,
    packing: f64,
    append: f64,
}

/// Measures and prints the tables.
pub fn run(layout: &Layout, tools: &Tools, options: &Options) -> Result<()> {
    let folder = layout.target.join("bench/threads");
    let (classes, rewritten) = (folder.join("classes"), folder.join("rewritten"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&classes).with_context(|| format!("cannot make {}", classes.display()))?;
    let compiler = jdks::compiler(layout)?;
    let javac = compiler.javac().with_context(|| format!("{} has no javac", compiler.home.display()))?;
    let source = layout.repo.join("tests/java/threads/Threads.java");
    command::quiet(Command::new(javac).args(["--release", "11", "-d"]).arg(&classes).arg(source))?;
    command::quiet(Command::new(tools.et_instrument()).arg("-q").arg(&classes).arg("-o").arg(&rewritten))?;
    let mut text = format!("`{}`, medians.\n", options.command());
    let mut figures = Vec::new();
    for &feature in &options.jdk {
        let jdk = jdks::of_feature(layout, feature).with_context(|| jdks::missing(feature))?;
        let traced = InstrumentedJdk::of(tools, &jdk, &[])?;
        let bench = Bench { tools, options, jdk: &jdk, traced: &traced, folder: &folder };
        let rows = bench.rows()?;
        let additions = [1, processors()].map(addition);
        text += &format!("\nJDK {}:\n\n{}{}", jdk.version, table(&rows), model(&rows, additions));
        figures.push(as_json(&jdk, &rows, additions));
    }
    println!("{text}");
    if let Some(path) = &options.markdown {
        markdown::write(path, &text)?;
    }
    let path = layout.target.join("bench/threads.json");
    fs::write(&path, format!("{:#}\n", json!({ "command": options.command(), "jdks": figures })))?;
    eprintln!("figures: {}", path.display());
    Ok(())
}

struct Bench<'a> {
    tools: &'a Tools,
    options: &'a Options,
    jdk: &'a Jdk,
    traced: &'a InstrumentedJdk,
    folder: &'a Path,
}

impl Bench<'_> {
    fn rows(&self) -> Result<Vec<Row>> {
        let kinds =
            || MODES.into_iter().flat_map(|mode| self.options.threads.iter().map(move |&threads| (mode, threads)));
        let mut costs: Vec<[Vec<Cost>; 3]> = kinds().map(|_| Default::default()).collect();
        let mut traces: Vec<Vec<Figures>> = kinds().map(|_| Vec::new()).collect();
        // They alternate, so that other load on the machine affects all alike.
        for repetition in 1..=self.options.repetitions {
            for (index, (mode, threads)) in kinds().enumerate() {
                eprintln!("{mode}, {threads} threads: run {repetition} of {}", self.options.repetitions);
                costs[index][0].push(self.run(None, mode, threads, false)?);
                let trace = self.folder.join("threads.ettrace");
                costs[index][1].push(self.run(Some(&trace), mode, threads, false)?);
                traces[index].push(self.figures(&trace)?);
                costs[index][2].push(self.run(Some(&trace), mode, threads, true)?);
                fs::remove_file(&trace)?;
            }
        }
        let row = |((mode, threads), (costs, traces)): ((_, _), (&[Vec<Cost>; 3], &Vec<Figures>))| {
            let [plain, written, discarded] = costs.each_ref().map(|costs| median_cost(costs));
            Row { mode, threads, plain, written, discarded, trace: median_figures(traces) }
        };
        Ok(kinds().zip(costs.iter().zip(&traces)).map(row).collect())
    }

    fn run(&self, trace: Option<&Path>, mode: &str, threads: usize, discards: bool) -> Result<Cost> {
        let mut java = Command::new(if trace.is_some() { self.traced.java() } else { self.jdk.java() });
        if let Some(trace) = trace {
            let _ = fs::remove_file(trace);
            java.args(self.traced.options(trace));
        }
        if discards {
            java.arg("-Det.discard=on");
        }
        // The same collector on every machine, with a young generation in which young objects die.
        java.args(["-XX:+UseParallelGC", "-Xmn256m", "-Xmx512m"]);
        java.arg("-cp").arg(self.folder.join(if trace.is_some() { "rewritten" } else { "classes" }));
        let turns = TURNS / 100 * self.options.scale;
        cost::of(java.args(["Threads", &threads.to_string(), &turns.to_string(), mode]), self.folder)
    }

    fn figures(&self, trace: &Path) -> Result<Figures> {
        let sizes = instrumented::sizes(self.tools, trace)?;
        let number = |value: &Value| value.as_f64().with_context(|| format!("et-trace info lacks a number: {sizes}"));
        let packing = &sizes["packing"];
        Ok(Figures {
            events: number(&sizes["events"])?,
            tickets: number(&sizes["endTicket"])?,
            bytes: number(&sizes["traceBytes"])?,
            helped: number(&packing["helpedBlocks"])?,
            blocks: number(&sizes["eventBlocks"])?,
            writers: number(&packing["writers"])?,
            packing: number(&packing["cpuSeconds"])?,
            append: number(&packing["appendSeconds"])?,
        })
    }
}

fn median_figures(all: &[Figures]) -> Figures {
    let of = |value: fn(&Figures) -> f64| median(all.iter().map(value).collect());
    Figures {
        events: of(|figures| figures.events),
        tickets: of(|figures| figures.tickets),
        bytes: of(|figures| figures.bytes),
        helped: of(|figures| figures.helped),
        blocks: of(|figures| figures.blocks),
        writers: of(|figures| figures.writers),
        packing: of(|figures| figures.packing),
        append: of(|figures| figures.append),
    }
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Seconds per addition when all threads add to one number in memory, as they do to take a ticket.
fn addition(threads: usize) -> f64 {
    let (counter, barrier) = (AtomicU64::new(0), Barrier::new(threads));
    let each = ADDITIONS / threads as u64;
    let add = || {
        barrier.wait();
        let start = Instant::now();
        (0..each).for_each(|_| _ = counter.fetch_add(1, Ordering::SeqCst));
        (start, Instant::now())
    };
    let times: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(add)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let (start, end) = (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max());
    let seconds = start.zip(end).map_or(f64::NAN, |(start, end)| end.duration_since(start).as_secs_f64());
    seconds / (each * threads as u64) as f64
}

fn table(rows: &[Row]) -> String {
    let mut text = "| threads share | threads | plain s | CPU s | written s | over plain | CPU s | over plain | \
        against one thread, s | CPU s | M events | M events/s | tickets an event | bytes an event | packed by the program | \
        more MB | not written s | over plain | CPU s | against one thread, CPU |\n\
        |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for row in rows {
        let Row { mode, threads, plain, written, discarded, trace } = row;
        let one = rows.iter().find(|other| other.mode == *mode && other.threads == 1);
        let against =
            |mine: f64, of: fn(&Row) -> f64| one.map_or("–".to_owned(), |one| format!("{:.2}x", mine / of(one)));
        let what = if *mode == "own" { "nothing" } else { "everything" };
        let _ = writeln!(
            text,
            "| {what} | {threads} | {:.2} | {:.2} | {:.2} | {:.1}x | {:.2} | {:.1}x | {} | {} | {:.0} | {:.0} | {:.4} | {:.2} | {:.0} % | \
             {:.0} | {:.2} | {:.1}x | {:.2} | {} |",
            plain.seconds,
            plain.processor,
            written.seconds,
            written.seconds / plain.seconds,
            written.processor,
            written.processor / plain.processor,
            against(written.seconds, |one| one.written.seconds),
            against(written.processor, |one| one.written.processor),
            trace.events / 1e6,
            trace.events / 1e6 / written.seconds,
            trace.tickets / trace.events,
            trace.bytes / trace.events,
            100.0 * trace.helped / trace.blocks.max(1.0),
            (written.resident - plain.resident) / 1e6,
            discarded.seconds,
            discarded.seconds / plain.seconds,
            discarded.processor,
            against(discarded.processor, |one| one.discarded.processor),
        );
    }
    text
}

/// The cost of an event, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Parts {
    program: f64,
    hook: f64,
    packing: f64,
    append: f64,
    tickets: f64,
}

impl Parts {
    fn of(row: &Row) -> Self {
        let each = |seconds: f64| seconds * 1e9 / row.trace.events;
        Self {
            program: each(row.plain.processor),
            hook: each(row.discarded.processor - row.plain.processor),
            packing: each(row.trace.packing),
            append: each(row.trace.append),
            tickets: row.trace.tickets / row.trace.events,
        }
    }

    /// Millions of events per second with as many threads as cores: as limited by the cores, by appending, and
    /// by the ticket counter, given the time of an addition.
    fn model(self, cores: f64, addition: f64) -> [f64; 3] {
        let Self { program, hook, packing, append, tickets } = self;
        [cores * 1e3 / (program + hook + packing), 1e3 / append, 1e3 / (tickets * addition)]
    }
}

fn model(rows: &[Row], [alone, contended]: [f64; 2]) -> String {
    let mut text = format!(
        "\nAn addition to one number takes {:.1} ns from one thread, {:.1} ns from {} that all add to it. Of each row, nanoseconds \
         of processor time an event, and a **model**, not a measurement, of {MODEL_CORES} cores with as many threads: what the cores manage \
         if each part costs what it costs here; what one thread can append; how many tickets the counter gives out; the least of \
         the three; and how much slower than plain that is, if the plain program uses all cores.\n\n\
         | threads share | threads | program | hooks | packing | append | cores, M events/s | append | tickets | least | over plain |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        alone * 1e9,
        contended * 1e9,
        processors()
    );
    for row in rows {
        let parts = Parts::of(row);
        let rates = parts.model(MODEL_CORES, contended * 1e9);
        let least = rates.into_iter().fold(f64::INFINITY, f64::min);
        let [cores, append, tickets] = rates;
        let Parts { program, hook, packing, append: appending, .. } = parts;
        let what = if row.mode == "own" { "nothing" } else { "everything" };
        let _ = writeln!(
            text,
            "| {what} | {} | {program:.2} | {hook:.2} | {packing:.2} | {appending:.3} | {cores:.0} | {append:.0} | {tickets:.0} | {least:.0} | {:.1}x |",
            row.threads,
            MODEL_CORES * 1e3 / program / least,
        );
    }
    text
}

fn as_json(jdk: &Jdk, rows: &[Row], [alone, contended]: [f64; 2]) -> Value {
    let cost =
        |cost: &Cost| json!({ "seconds": cost.seconds, "cpuSeconds": cost.processor, "residentBytes": cost.resident });
    let row = |row: &Row| {
        json!({
            "share": row.mode, "threads": row.threads, "plain": cost(&row.plain), "written": cost(&row.written),
            "notWritten": cost(&row.discarded), "events": row.trace.events, "tickets": row.trace.tickets,
            "traceBytes": row.trace.bytes, "helpedBlocks": row.trace.helped, "eventBlocks": row.trace.blocks,
            "writers": row.trace.writers, "packingCpuSeconds": row.trace.packing, "appendSeconds": row.trace.append,
        })
    };
    json!({
        "jdk": jdk.version,
        "additionSeconds": { "oneThread": alone, "allThreads": contended },
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mode: &'static str, threads: usize, seconds: f64) -> Row {
        let cost = |seconds: f64| Cost { seconds, processor: seconds, resident: 1e8 };
        let trace = Figures {
            events: 1e8,
            tickets: 1e6,
            bytes: 3e7,
            helped: 25.0,
            blocks: 100.0,
            writers: 1.0,
            packing: 0.6,
            append: 0.05,
        };
        Row { mode, threads, plain: cost(0.2), written: cost(seconds), discarded: cost(1.2), trace }
    }

    #[test]
    fn rows_are_compared_with_one_thread_of_the_same_program() {
        let table = table(&[row("own", 1, 2.0), row("own", 2, 2.4), row("shared", 1, 1.0)]);
        assert!(table.contains("| nothing | 2 | 0.20 | 0.20 | 2.40 | 12.0x | 2.40 | 12.0x | 1.20x | 1.20x | 100 | 42 | 0.0100 | 0.30 | 25 % |"), "{table}");
        let columns = |line: &str| line.matches('|').count();
        assert!(table.lines().all(|line| columns(line) == columns(&table[..table.find('\n').unwrap()])), "{table}");
    }

    #[test]
    fn the_model_is_made_of_the_parts() {
        // 2 ns the program, 10 the hooks, 6 packing; half a nanosecond appending; a ticket each hundred events.
        let rates = Parts::of(&row("own", 1, 2.0)).model(32.0, 20.0);
        for (rate, expected) in rates.into_iter().zip([32e3 / 18.0, 2000.0, 5000.0]) {
            assert!((rate - expected).abs() < 1e-6 * expected, "{rates:?}");
        }
        let text = model(&[row("own", 1, 2.0)], [5e-9, 2e-8]);
        assert!(
            text.contains("| nothing | 1 | 2.00 | 10.00 | 6.00 | 0.500 | 1778 | 2000 | 5000 | 1778 | 9.0x |"),
            "{text}"
        );
    }

    #[test]
    fn additions_take_time() {
        assert!((1e-10..1e-5).contains(&addition(2)));
    }
}
