//! Time and pauses against the size of the heap.

use et_names::units::bytes;
use serde::Serialize;

use et_simulate::mmtk::{CollectReport, Plan};

use super::{Range, Spread};
use crate::chart::{Chart, Series, side_by_side};

/// Heaps as multiples of the smallest.
pub const TIMES: [f64; 8] = [1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0];

/// A heap.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// As a multiple of the smallest.
    pub times: f64,
    /// What the replay came to.
    pub report: CollectReport,
    /// How far several runs were apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// A plan in heaps of several sizes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// The collector.
    pub plan: Plan,
    /// The smallest heap in which it can run the trace.
    pub smallest: u64,
    /// From the smallest to the largest.
    pub points: Vec<Point>,
}

/// Time and pauses. Where there were several runs a bar goes from the least to the most.
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

/// Both beside each other, as SVG.
pub fn draw(trace: &str, curves: &[Curve]) -> String {
    side_by_side(&charts(trace, curves))
}
