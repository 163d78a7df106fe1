//! Time and pauses by heap size.

use et_names::units::bytes;
use serde::Serialize;

use et_simulate::mmtk::{CollectReport, Plan};

use super::{Range, Spread};
use crate::chart::{Chart, Series, side_by_side};

/// Heap sizes as multiples of the smallest heap.
pub const TIMES: [f64; 8] = [1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0];

/// The result for one heap size.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Heap size as a multiple of the smallest heap.
    pub times: f64,
    /// Report of the replay.
    pub report: CollectReport,
    /// Spread over several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// Results of one plan for several heap sizes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// The collector.
    pub plan: Plan,
    /// Smallest heap in which the plan can run the trace, in bytes.
    pub smallest: u64,
    /// Results from the smallest heap to the largest.
    pub points: Vec<Point>,
}

/// Charts of time and of pauses. With several runs, error bars show the minimum and the maximum.
pub(super) fn charts(trace: &str, curves: &[Curve]) -> [Chart; 2] {
    let series = |value: fn(&CollectReport) -> f64, range: fn(&Spread) -> Range<f64>| -> Vec<Series> {
        let of = |curve: &Curve| Series {
            name: format!("{} ({})", curve.plan.name(), bytes(curve.smallest)),
            points: curve.points.iter().map(|point| (point.times, value(&point.report))).collect(),
            bars: curve
                .points
                .iter()
                .filter_map(|point| point.spread.as_ref().map(|spread| (point.times, range(spread))))
                .map(|(times, range)| (times, range.least, range.most))
                .collect(),
        };
        curves.iter().map(of).collect()
    };
    let heap = "heap, as a multiple of the plan's smallest";
    let time = Chart {
        title: format!("{trace}: time"),
        x: heap.into(),
        y: "seconds, pauses included".into(),
        series: series(|report| report.seconds, |spread| spread.seconds),
        is_log: false,
    };
    let pauses = Chart {
        title: format!("{trace}: longest pause"),
        x: heap.into(),
        y: "milliseconds".into(),
        series: series(
            |report| report.pauses.max as f64 / 1e6,
            |spread| Range {
                least: spread.longest_pause.least as f64 / 1e6,
                most: spread.longest_pause.most as f64 / 1e6,
            },
        ),
        is_log: true,
    };
    [time, pauses]
}

/// Both charts side by side, as SVG.
pub fn draw(trace: &str, curves: &[Curve]) -> String {
    side_by_side(&charts(trace, curves))
}
