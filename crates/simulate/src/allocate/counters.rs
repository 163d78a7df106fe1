//! Hardware performance counters of a replay, where the machine and the kernel permit them.

use std::fmt::Write;

use et_names::units::number;
use perf_event::Builder;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware};
use serde::{Deserialize, Serialize};

use super::AllocateReport;

/// The value of one hardware counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    /// Name of the counted event.
    pub name: String,
    /// Number of events; extrapolated if the counter was multiplexed with others.
    pub count: u64,
    /// Whether the counter ran all the time, so that `count` is not extrapolated.
    pub is_exact: bool,
}

/// The available counters, for the current thread in user mode.
pub struct Counters {
    open: Vec<(&'static str, perf_event::Counter)>,
    /// Why no counter is available.
    why_none: Option<String>,
}

impl Counters {
    /// Opens the counters, stopped.
    pub fn open() -> Self {
        let missed = |which, operation| Cache { which, operation, result: CacheResult::MISS };
        let builders = [
            ("instructions", Builder::new(Hardware::INSTRUCTIONS)),
            ("cycles", Builder::new(Hardware::CPU_CYCLES)),
            ("L1 read misses", Builder::new(missed(CacheId::L1D, CacheOp::READ))),
            ("L1 write misses", Builder::new(missed(CacheId::L1D, CacheOp::WRITE))),
            ("last-level misses", Builder::new(Hardware::CACHE_MISSES)),
            ("TLB read misses", Builder::new(missed(CacheId::DTLB, CacheOp::READ))),
        ];
        let (mut open, mut why_none) = (Vec::new(), None);
        for (name, builder) in builders {
            match builder.build() {
                Ok(counter) => open.push((name, counter)),
                Err(error) => _ = why_none.get_or_insert_with(|| error.to_string()),
            }
        }
        if !open.is_empty() {
            // Not every processor has every counter.
            why_none = None;
        }
        Self { open, why_none }
    }

    /// Starts or resumes counting.
    pub fn start(&mut self) {
        // A counter that cannot be started is dropped, so that it is not read below.
        self.open.retain_mut(|(_, counter)| counter.enable().is_ok());
    }

    /// Stops counting without resetting.
    pub fn pause(&mut self) {
        self.open.retain_mut(|(_, counter)| counter.disable().is_ok());
    }

    /// The counts, and if there are none, the reason.
    pub fn read(mut self) -> (Vec<Counter>, Option<String>) {
        let mut counted = Vec::new();
        for (name, counter) in &mut self.open {
            match counter.read_count_and_time() {
                Ok(read) if read.time_running > 0 => {
                    let scale = read.time_enabled as f64 / read.time_running as f64;
                    let is_exact = read.time_enabled == read.time_running;
                    let count = if is_exact { read.count } else { (read.count as f64 * scale) as u64 };
                    counted.push(Counter { name: (*name).to_owned(), count, is_exact });
                }
                Ok(_) => _ = self.why_none.get_or_insert_with(|| format!("{name} was never scheduled")),
                Err(error) => _ = self.why_none.get_or_insert_with(|| error.to_string()),
            }
        }
        let why_none =
            if counted.is_empty() { self.why_none.or(Some("they could not be started".into())) } else { None };
        (counted, why_none)
    }
}

/// A table with one row per report, or one line with the reason why there are no counts.
pub fn render(reports: &[AllocateReport]) -> String {
    let mut text = String::new();
    let Some(most) = reports.iter().max_by_key(|report| report.counters.len()) else { return text };
    // Writing to a `String` cannot fail.
    if most.counters.is_empty() {
        if let Some(why) = &most.no_counters {
            let _ = writeln!(text, "\nno hardware counters on this machine: {why}");
        }
        return text;
    }
    let _ = write!(text, "\n{:<18}", "hardware counter");
    reports.iter().for_each(|report| _ = write!(text, " {:>18}", report.allocator));
    for Counter { name, .. } in &most.counters {
        let _ = write!(text, "\n{name:<18}");
        for report in reports {
            let shown = match report.counters.iter().find(|counter| counter.name == *name) {
                Some(counter) if counter.is_exact => number(counter.count),
                Some(counter) => format!("~{}", number(counter.count)),
                None => "-".to_owned(),
            };
            let _ = write!(text, " {shown:>18}");
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes on machines with and without counters.
    #[test]
    fn there_are_counts_or_a_reason() {
        let mut counters = Counters::open();
        counters.start();
        let sum: u64 = (0..100_000u64).map(std::hint::black_box).sum();
        counters.pause();
        let (counted, why) = counters.read();
        assert_eq!(counted.is_empty(), why.is_some(), "{counted:?} {why:?} {sum}");
        for counter in counted.iter().filter(|counter| counter.name == "instructions") {
            assert!(counter.count > 100_000, "{counter:?}");
        }
    }

    #[test]
    fn counts_stand_beside_each_other() {
        let counter = |name: &str, count, is_exact| Counter { name: name.into(), count, is_exact };
        let report = |allocator: &str, counters: Vec<Counter>| AllocateReport {
            allocator: allocator.into(),
            counters,
            no_counters: Some("no such file".into()),
            ..AllocateReport::default()
        };
        assert_eq!(render(&[]), "");
        assert_eq!(render(&[report("system", vec![])]), "\nno hardware counters on this machine: no such file\n");
        let both = [counter("cycles", 12_000, true), counter("TLB read misses", 7, false)];
        let text = render(&[report("system", both.to_vec()), report("jemalloc", both[..1].to_vec())]);
        let rows: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows, [vec!["cycles", "12,000", "12,000"], vec!["TLB", "read", "misses", "~7", "-"]]);
    }
}
