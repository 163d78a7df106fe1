//! The report of a cache simulation.

use std::fmt::Write;

use et_names::units::{bytes, number, percent};
use et_reader::types::for_people;
use serde::{Deserialize, Serialize};

use super::level::Level;
use super::{CacheSpec, Caches, Counts};
use crate::ops::Tables;

/// Counts of one level or of the TLB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelReport {
    /// Name of the level.
    pub name: String,
    /// Capacity in bytes.
    pub bytes: u64,
    /// Associativity: lines per set.
    pub ways: u64,
    /// Line size in bytes.
    pub line: u64,
    /// Lines accessed.
    pub accesses: u64,
    /// Misses by the program.
    pub mutator_misses: u64,
    /// Misses by the collector.
    pub collector_misses: u64,
}

/// Counts of one class or site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Name of the class or site.
    pub name: String,
    /// Lines accessed in the first level.
    pub accesses: u64,
    /// Misses, by level.
    pub misses: Vec<u64>,
}

/// Result of a cache simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheReport {
    /// The collector or allocator that chose the addresses of the objects.
    pub under: String,
    /// Lines of the first level accessed by the program.
    pub mutator_accesses: u64,
    /// Lines of the first level accessed by the collector.
    pub collector_accesses: u64,
    /// The levels, from the first on.
    pub levels: Vec<LevelReport>,
    /// The TLB, if one is simulated.
    pub tlb: Option<LevelReport>,
    /// Classes with the most misses in the last level.
    pub classes: Vec<Line>,
    /// Sites with the most misses in the last level.
    pub sites: Vec<Line>,
}

impl Caches {
    /// The counts, with at most `top` classes and sites.
    pub fn report(&self, under: String, tables: &Tables, top: usize) -> CacheReport {
        let [mutator, collector] = &self.phases;
        let of = |level: &Level, accesses, [mutator_misses, collector_misses]: [u64; 2]| {
            let CacheSpec { name, bytes, ways, line } = level.spec.clone();
            LevelReport { name, bytes, ways, line, accesses, mutator_misses, collector_misses }
        };
        let all = mutator.accesses + collector.accesses;
        let (mut levels, mut accesses) = (Vec::new(), all);
        for (at, level) in self.levels.iter().enumerate() {
            let misses = [mutator.misses[at], collector.misses[at]];
            levels.push(of(level, accesses, misses));
            accesses = misses.iter().sum();
        }
        let tlb = self.tlb.as_ref().map(|tlb| of(tlb, all, self.tlb_misses));
        let classes =
            (0..).zip(&self.classes).map(|(class, counts)| (for_people(&tables.classes[class].descriptor), counts));
        let names = tables.sites.iter().map(|site| site.name.clone()).chain(["not known".to_owned()]);
        let sites = names.zip(&self.sites);
        CacheReport {
            under,
            mutator_accesses: mutator.accesses,
            collector_accesses: collector.accesses,
            levels,
            tlb,
            classes: top_of(classes, top),
            sites: top_of(sites, top),
        }
    }
}

fn top_of<'a>(all: impl Iterator<Item = (String, &'a Counts)>, top: usize) -> Vec<Line> {
    let line =
        |(name, counts): (String, &Counts)| Line { name, accesses: counts.accesses, misses: counts.misses.clone() };
    let mut lines: Vec<Line> = all.map(line).filter(|line| line.accesses > 0).collect();
    let key =
        |line: &Line| std::cmp::Reverse((line.misses.last().copied(), line.misses.first().copied(), line.accesses));
    lines.sort_by(|one, other| key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name)));
    lines.truncate(top);
    lines
}

/// The report as text.
pub fn render(report: &CacheReport) -> String {
    let mut text = format!("{}\n\n", report.under);
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "{:<8} {:>10} {:>16} {:>16} {:>8} {:>16} {:>16}",
        "cache", "size", "lines accessed", "misses", "share", "by the program", "by the collector"
    );
    for level in report.levels.iter().chain(&report.tlb) {
        let misses = level.mutator_misses + level.collector_misses;
        let _ = writeln!(
            text,
            "{:<8} {:>10} {:>16} {:>16} {:>8} {:>16} {:>16}",
            level.name,
            bytes(level.bytes),
            number(level.accesses),
            number(misses),
            percent(misses, level.accesses),
            number(level.mutator_misses),
            number(level.collector_misses)
        );
    }
    let names: Vec<&str> = report.levels.iter().map(|level| &*level.name).collect();
    for (what, lines) in [("class", &report.classes), ("site", &report.sites)] {
        if lines.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{:>16}", "lines accessed");
        names.iter().for_each(|name| _ = write!(text, " {:>14}", format!("{name} misses")));
        let _ = writeln!(text, "  {what}");
        for line in lines {
            let _ = write!(text, "{:>16}", number(line.accesses));
            line.misses.iter().for_each(|&misses| _ = write!(text, " {:>14}", number(misses)));
            let _ = writeln!(text, "  {}", line.name);
        }
    }
    text
}
