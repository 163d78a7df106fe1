//! Measurements and figures computed from them.

use crate::cost::Cost;

/// The measurements of one workload on one JDK.
pub struct Measured {
    pub program: String,
    pub plain: Cost,
    /// Runs in the order of the kinds of runs.
    pub runs: Vec<Run>,
}

/// Medians of one kind of run.
pub struct Run {
    pub cost: Cost,
    /// None if no trace was written.
    pub trace: Option<TraceFigures>,
}

/// Figures of a trace.
#[derive(Clone, Copy)]
pub struct TraceFigures {
    pub trace_bytes: u64,
    /// Bytes of events as written by hooks.
    pub event_bytes: u64,
    /// Bytes of events, packed but not compressed.
    pub packed_bytes: u64,
    /// Number of events without tickets.
    pub events: u64,
    /// Share of packing and writing in the processor time of all threads of the run.
    pub writer_share: f64,
}

impl TraceFigures {
    pub fn per_event(&self, bytes: u64) -> f64 {
        bytes as f64 / self.events.max(1) as f64
    }
}

/// The median of each figure.
pub fn median_cost(costs: &[Cost]) -> Cost {
    let of = |value: fn(&Cost) -> f64| median(costs.iter().map(value).collect());
    Cost { seconds: of(|cost| cost.seconds), processor: of(|cost| cost.processor), resident: of(|cost| cost.resident) }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// Geometric mean of ratios.
pub fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn means_of_ratios() {
        assert!((geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-9);
    }
}
