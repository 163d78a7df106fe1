//! Repeated replays: they differ only in time.

use serde::Serialize;

use et_simulate::mmtk::CollectReport;

/// Range over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Range<T> {
    /// Minimum.
    pub least: T,
    /// Maximum.
    pub most: T,
}

impl<T: Copy> Range<T> {
    pub(super) fn least(&self) -> T {
        self.least
    }

    pub(super) fn most(&self) -> T {
        self.most
    }
}

/// Spread over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// Number of runs.
    pub runs: u64,
    /// Pauses before the program's end.
    pub collections: Range<u64>,
    /// Median pause in nanoseconds.
    pub median_pause: Range<u64>,
    /// 99th percentile of pauses in nanoseconds.
    pub percentile99_pause: Range<u64>,
    /// Longest pause in nanoseconds.
    pub longest_pause: Range<u64>,
    /// Seconds from the first operation to the last.
    pub seconds: Range<f64>,
    /// Seconds without pauses.
    pub mutator_seconds: Range<f64>,
}

/// Result of a replay: of several runs the one with the median total time, and their spread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The report of that run.
    #[serde(flatten)]
    pub report: CollectReport,
    /// `None` for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

impl Replay {
    /// Runs that many times; stops at the first error.
    pub fn repeat<E>(times: u16, mut run: impl FnMut() -> Result<CollectReport, E>) -> Result<Self, E> {
        let first = run()?;
        let mut reports = vec![first];
        for _ in 1..times {
            reports.push(run()?);
        }
        let spread = (reports.len() > 1).then(|| Spread::of(&reports));
        reports.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let middle = (reports.len() - 1) / 2;
        Ok(Self { report: reports.swap_remove(middle), spread })
    }
}

impl Spread {
    fn of(reports: &[CollectReport]) -> Self {
        let whole = |value: fn(&CollectReport) -> u64| {
            let values = || reports.iter().map(value);
            Range { least: values().min().unwrap_or_default(), most: values().max().unwrap_or_default() }
        };
        let time = |value: fn(&CollectReport) -> f64| {
            let values = || reports.iter().map(value);
            Range { least: values().fold(f64::INFINITY, f64::min), most: values().fold(0.0, f64::max) }
        };
        Self {
            runs: reports.len() as u64,
            collections: whole(|report| report.collections),
            median_pause: whole(|report| report.pauses.median),
            percentile99_pause: whole(|report| report.pauses.percentile99),
            longest_pause: whole(|report| report.pauses.max),
            seconds: time(|report| report.seconds),
            mutator_seconds: time(|report| report.mutator_seconds),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use et_simulate::testing::mmtk_report as report;

    /// Replays of that many seconds each, with a pause of as many milliseconds.
    pub(in crate::collect) fn replay_of(seconds: &[u64]) -> Replay {
        let mut left = seconds.iter();
        let run = || left.next().map(|&seconds| report(seconds as f64, seconds * 1_000_000)).ok_or("no more");
        Replay::repeat(seconds.len() as u16, run).unwrap()
    }

    #[test]
    fn the_run_in_the_middle_stands_for_all() {
        let replay = replay_of(&[5, 1, 9, 2, 3]);
        assert_eq!(replay.report.seconds, 3.0);
        let spread = replay.spread.unwrap();
        assert_eq!((spread.runs, spread.seconds), (5, Range { least: 1.0, most: 9.0 }));
        assert_eq!(spread.longest_pause, Range { least: 1_000_000, most: 9_000_000 });
        assert_eq!(replay_of(&[4, 2]).report.seconds, 2.0);
        assert_eq!(replay_of(&[4]).spread, None);
    }

    #[test]
    fn the_first_run_that_fails_is_the_last() {
        let mut runs = 0;
        let failed = Replay::repeat(5, || {
            runs += 1;
            if runs < 3 { Ok(report(1.0, 1)) } else { Err("too small") }
        });
        assert_eq!((failed, runs), (Err("too small"), 3));
    }
}
