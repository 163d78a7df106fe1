//! Results of replays as a table.

use std::fmt::Write;

use et_names::units::{bytes, number, seconds};

use super::repeat::{Range, Replay};

/// A table with one row per replay; for several runs, minimum and maximum are below.
pub fn render(replays: &[Replay]) -> String {
    let mut text = row(&COLUMNS.map(str::to_owned));
    for Replay { report, spread } in replays {
        // Without pauses there is no pause time.
        let nanos = |nanos: u64| if report.collections == 0 { "-".to_owned() } else { seconds(nanos as f64 / 1e9) };
        text += &row(&[
            report.plan.name().to_owned(),
            bytes(report.heap),
            format!("{:.2}", report.heap_of_peak),
            report.collections.to_string(),
            nanos(report.pauses.median),
            nanos(report.pauses.percentile99),
            nanos(report.pauses.max),
            seconds(report.seconds),
            seconds(report.mutator_seconds),
            bytes(report.copied.bytes),
            bytes(report.scanned.bytes),
            bytes(report.peak_used),
            number(report.roots),
            number(report.rescued),
            number(report.records_per_second() as u64),
        ]);
        let Some(spread) = spread else { continue };
        let runs = spread.runs;
        for (what, of_whole, of_time) in [
            ("least", Range::least as fn(&Range<u64>) -> u64, Range::least as fn(&Range<f64>) -> f64),
            ("most", Range::most, Range::most),
        ] {
            let nanos = |range: &Range<u64>| match spread.collections.most {
                0 => "-".to_owned(),
                _ => seconds(of_whole(range) as f64 / 1e9),
            };
            text += &row(&[
                format!("  {what} of {runs}"),
                String::new(),
                String::new(),
                of_whole(&spread.collections).to_string(),
                nanos(&spread.median_pause),
                nanos(&spread.percentile99_pause),
                nanos(&spread.longest_pause),
                seconds(of_time(&spread.seconds)),
                seconds(of_time(&spread.mutator_seconds)),
            ]);
        }
    }
    text
}

const COLUMNS: [&str; 15] = [
    "plan",
    "heap",
    "times",
    "pauses",
    "median",
    "99th",
    "max",
    "total",
    "mutator",
    "copied",
    "scanned",
    "peak",
    "roots",
    "rescued",
    "records/s",
];
const WIDTHS: [usize; 15] = [16, 10, 6, 6, 9, 9, 9, 9, 9, 10, 10, 10, 9, 9, 11];

/// The first cell is left-aligned, the others are right-aligned.
fn row(cells: &[String]) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        // Writing to a `String` cannot fail.
        let _ = if at == 0 { write!(text, "{cell:<width$}") } else { write!(text, " {cell:>width$}") };
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::repeat::tests::replay_of;
    use super::*;

    #[test]
    fn the_spread_of_runs_is_below_the_row() {
        let text = render(&[replay_of(&[2]), replay_of(&[5, 1, 9])]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].starts_with("plan                   heap  times pauses    median"), "{text}");
        assert!(lines[2].contains("5.0 ms") && lines[2].contains("5.00 s"), "{text}");
        assert!(
            lines[3].starts_with("  least of 3") && lines[3].contains("1.0 ms") && lines[3].contains("1.00 s"),
            "{text}"
        );
        assert!(
            lines[4].starts_with("  most of 3") && lines[4].contains("9.0 ms") && lines[4].contains("9.00 s"),
            "{text}"
        );
        // Each number is aligned with its column title.
        let end = |line: &str, what: &str| line.find(what).map(|at| at + what.len());
        assert_eq!(end(lines[4], "9.00 s"), end(lines[0], "total"));
    }
}
