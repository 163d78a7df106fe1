//! The tables of `cargo xtask bench`, in Markdown and in JSON.

use serde_json::json;

use crate::cost::Cost;

use super::figures::{Measured, Run, TraceFigures, geometric_mean};
use super::machine::Bandwidth;
use super::rewriting::Rewriting;
use super::{Kind, OnJdk, Options, Variant};

/// The tables for `docs/evidence/performance-tables.md`.
pub fn markdown(options: &Options, jdks: &[OnJdk], rewriting: &[Rewriting], bandwidth: Bandwidth) -> String {
    let versions: Vec<_> = jdks.iter().map(|on| on.jdk.version.as_str()).collect();
    let mut text = format!("`{}`, JDK {}, medians.\n", options.command(), versions.join(" and "));
    for on in jdks {
        text += &format!("\nJDK {}:\n", on.jdk.version);
        text += &times(&options.variants(), &on.measured, "s", |cost| cost.seconds);
        text += &times(&options.variants(), &on.measured, "CPU s", |cost| cost.processor);
        text += &memory(&options.variants(), &on.measured);
        for (index, variant) in
            options.variants().iter().enumerate().filter(|(_, variant)| variant.kind == Kind::Written)
        {
            text += &traces(variant, index, &on.measured, bandwidth);
        }
    }
    text += &limit(bandwidth);
    text + &rewritten(rewriting)
}

fn times(variants: &[&Variant], measured: &[Measured], unit: &str, of: impl Fn(&Cost) -> f64) -> String {
    let heads: String = variants.iter().map(|variant| format!(" {} {unit} | |", variant.name)).collect();
    let mut text = format!("\n| program | plain {unit} |{heads}\n|---|--:|{}\n", "--:|--:|".repeat(variants.len()));
    for program in measured {
        let plain = of(&program.plain);
        text += &format!("| {} | {plain:.2} |", program.program);
        for run in &program.runs {
            text += &format!(" {:.2} | {:.2}x |", of(&run.cost), of(&run.cost) / plain);
        }
        text += "\n";
    }
    text + &of_all(variants.len(), measured, |program, run| of(&run.cost) / of(&program.plain))
}

fn memory(variants: &[&Variant], measured: &[Measured]) -> String {
    let heads: String = variants.iter().map(|variant| format!(" {}, more MB | over plain |", variant.name)).collect();
    let mut text = format!("\n| peak memory | plain MB |{heads}\n|---|--:|{}\n", "--:|--:|".repeat(variants.len()));
    for program in measured {
        text += &format!("| {} | {:.0} |", program.program, program.plain.resident / 1e6);
        for Run { cost, .. } in &program.runs {
            let more = (cost.resident - program.plain.resident) / 1e6;
            text += &format!(" {more:.0} | {:.2}x |", cost.resident / program.plain.resident);
        }
        text += "\n";
    }
    text + &of_all(variants.len(), measured, |program, run| run.cost.resident / program.plain.resident)
}

/// The last two rows: the mean and the worst of a ratio for each kind of run.
fn of_all(runs: usize, measured: &[Measured], ratio: impl Fn(&Measured, &Run) -> f64) -> String {
    let (mut means, mut worst) = ("| geometric mean | |".to_owned(), "| worst | |".to_owned());
    for index in 0..runs {
        let of = |program: &Measured| ratio(program, &program.runs[index]);
        means += &format!(" | {:.2}x |", geometric_mean(measured.iter().map(of)));
        let most = measured.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
        worst += &most.map_or(" | |".to_owned(), |most| format!(" {} | {:.2}x |", most.program, of(most)));
    }
    format!("{means}\n{worst}\n")
}

fn traces(variant: &Variant, index: usize, measured: &[Measured], bandwidth: Bandwidth) -> String {
    let mut text = format!(
        "\n| {} | M events | M events/s | memory would take | bytes/event in memory | packed | on disk | MB/s packed | MB/s to disk | of the CPU time, the writer's |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        variant.name
    );
    for program in measured {
        let Run { cost, trace: Some(trace) } = &program.runs[index] else { continue };
        let TraceFigures { trace_bytes, event_bytes, packed_bytes, events, writer_share } = *trace;
        let in_memory = trace.per_event(event_bytes);
        text += &format!(
            "| {} | {:.1} | {:.1} | {:.0} | {in_memory:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.0} % |\n",
            program.program,
            events as f64 / 1e6,
            events as f64 / 1e6 / cost.seconds,
            bandwidth.one_thread / in_memory / 1e6,
            trace.per_event(packed_bytes),
            trace.per_event(trace_bytes),
            packed_bytes as f64 / 1e6 / cost.seconds,
            trace_bytes as f64 / 1e6 / cost.seconds,
            writer_share * 100.0
        );
    }
    let traces = || measured.iter().filter_map(|program| program.runs[index].trace.as_ref());
    let mean = |bytes: fn(&TraceFigures) -> u64| geometric_mean(traces().map(|trace| trace.per_event(bytes(trace))));
    text += &format!(
        "| geometric mean | | | | {:.2} | {:.2} | {:.2} | | | |\n",
        mean(|trace| trace.event_bytes),
        mean(|trace| trace.packed_bytes),
        mean(|trace| trace.trace_bytes)
    );
    text
}

fn limit(bandwidth: Bandwidth) -> String {
    format!(
        "\nThis machine's memory takes {:.1} GB/s from one thread that does nothing but store, {:.1} GB/s from {} threads. \"Memory would \
         take\" is how many million events of that size one thread could store in a second if nothing else had to be done: \
         neither the program's own work nor reading them again to pack them.\n",
        bandwidth.one_thread / 1e9,
        bandwidth.all_threads / 1e9,
        bandwidth.threads
    )
}

fn rewritten(rewriting: &[Rewriting]) -> String {
    let mut text = "\n| rewriting | classes | MB of classes | s | MB/s |\n|---|--:|--:|--:|--:|\n".to_owned();
    for row in rewriting {
        let rate = row.megabytes / row.seconds;
        text +=
            &format!("| {} | {} | {:.1} | {:.2} | {rate:.1} |\n", row.what, row.classes, row.megabytes, row.seconds);
    }
    text
}

/// The same figures as JSON.
pub fn as_json(options: &Options, jdks: &[OnJdk], rewriting: &[Rewriting], bandwidth: Bandwidth) -> serde_json::Value {
    let run = |(run, kind): (&Run, &Variant)| {
        let trace = run.trace.as_ref().map(|trace| {
            json!({ "traceBytes": trace.trace_bytes, "eventBytes": trace.event_bytes, "packedEventBytes": trace.packed_bytes, "events": trace.events, "writerShare": trace.writer_share })
        });
        json!({ "name": kind.name, "seconds": run.cost.seconds, "cpuSeconds": run.cost.processor, "residentBytes": run.cost.resident, "trace": trace })
    };
    let program = |program: &Measured| {
        let runs: Vec<_> = program.runs.iter().zip(options.variants()).map(run).collect();
        json!({ "name": program.program, "plainSeconds": program.plain.seconds, "plainCpuSeconds": program.plain.processor, "plainResidentBytes": program.plain.resident, "runs": runs })
    };
    let on_jdk = |on: &OnJdk| {
        let programs: Vec<_> = on.measured.iter().map(program).collect();
        json!({ "jdk": on.jdk.version, "programs": programs })
    };
    let row = |row: &Rewriting| json!({ "what": row.what, "classes": row.classes, "megabytes": row.megabytes, "seconds": row.seconds });
    json!({
        "command": options.command(),
        "memoryBytesPerSecond": { "oneThread": bandwidth.one_thread, "allThreads": bandwidth.all_threads, "threads": bandwidth.threads },
        "jdks": jdks.iter().map(on_jdk).collect::<Vec<_>>(),
        "rewriting": rewriting.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cost::Cost;
    use xtask::jdks::Jdk;

    #[test]
    fn the_tables_have_a_row_for_each_program_the_mean_and_the_worst() {
        let options = Options { programs: vec!["h2".into(), "ecj".into()], jdk: vec![17], ..Options::default() };
        let cost = |seconds, resident| Cost { seconds, processor: 3.0 * seconds, resident };
        let trace = TraceFigures {
            trace_bytes: 30_000_000,
            event_bytes: 40_000_000,
            packed_bytes: 35_000_000,
            events: 10_000_000,
            writer_share: 0.25,
        };
        let program = |program: &str, seconds| Measured {
            program: program.into(),
            plain: cost(2.0, 3e8),
            runs: vec![
                Run { cost: cost(seconds, 4.5e8), trace: Some(trace) },
                Run { cost: cost(4.0, 4.5e8), trace: None },
                Run { cost: cost(2.5, 3e8), trace: Some(trace) },
                Run { cost: cost(3.0, 6e8), trace: Some(trace) },
                Run { cost: cost(2.2, 3e8), trace: Some(trace) },
            ],
        };
        let jdk = Jdk { home: PathBuf::new(), version: "17.0.1".into(), feature: 17 };
        let on = OnJdk { jdk, measured: vec![program("h2", 8.0), program("ecj", 16.0)] };
        let rewriting = [Rewriting { what: "h2's jars".into(), classes: 7, megabytes: 3.0, seconds: 0.5 }];
        let bandwidth = Bandwidth { one_thread: 8e9, all_threads: 12e9, threads: 2 };
        let table = markdown(&options, std::slice::from_ref(&on), &rewriting, bandwidth);
        for row in [
            "| program | plain s | all events s | |",
            "| h2 | 2.00 | 8.00 | 4.00x | 4.00 | 2.00x | 2.50 | 1.25x | 3.00 | 1.50x | 2.20 | 1.10x |",
            "| program | plain CPU s | all events CPU s | |",
            "| h2 | 6.00 | 24.00 | 4.00x | 12.00 | 2.00x |",
            "| geometric mean | | | 5.66x | | 2.00x | | 1.25x | | 1.50x | | 1.10x |",
            "| worst | | ecj | 8.00x | ecj | 2.00x | ecj | 1.25x | ecj | 1.50x | ecj | 1.10x |",
            "| h2 | 300 | 150 | 1.50x | 150 | 1.50x | 0 | 1.00x | 300 | 2.00x | 0 | 1.00x |",
            "| h2 | 10.0 | 1.2 | 2000 | 4.00 | 3.50 | 3.00 | 4.4 | 3.8 | 25 % |",
            "| h2's jars | 7 | 3.0 | 0.50 | 6.0 |",
            "8.0 GB/s from one thread that does nothing but store, 12.0 GB/s from 2 threads",
        ] {
            assert!(table.contains(row), "{row} is missing in\n{table}");
        }
        let columns = |line: &str| line.matches('|').count();
        let mut lines = table.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(next) = lines.peek().filter(|next| line.starts_with('|') && next.starts_with('|')) {
                assert_eq!(columns(line), columns(next), "{line}\n{next}");
            }
        }
        assert_eq!(as_json(&options, &[on], &rewriting, bandwidth)["jdks"][0]["programs"][1]["name"], "ecj");
    }
}
