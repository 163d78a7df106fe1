//! Time and pauses against the size of the heap.

use et_names::units::bytes;
use serde::Serialize;

use super::{CollectReport, Plan};
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

/// Two charts beside each other, as SVG.
pub fn draw(trace: &str, curves: &[Curve]) -> String {
    let series = |value: fn(&CollectReport) -> f64| -> Vec<Series> {
        let of = |curve: &Curve| Series {
            name: format!("{} ({})", curve.plan.name(), bytes(curve.smallest)),
            points: curve.points.iter().map(|point| (point.times, value(&point.report))).collect(),
        };
        curves.iter().map(of).collect()
    };
    let heap = "heap, as a multiple of the plan's smallest";
    let time = Chart {
        title: format!("{trace}: time"),
        x: heap.into(),
        y: "seconds, pauses included".into(),
        series: series(|report| report.seconds),
        is_log: false,
    };
    let pauses = Chart {
        title: format!("{trace}: longest pause"),
        x: heap.into(),
        y: "milliseconds".into(),
        series: series(|report| report.pauses.max as f64 / 1e6),
        is_log: true,
    };
    side_by_side(&[time, pauses])
}
