//! Simulated caches: what the program and its collector read and write, and what of it is not in the cache.
//!
//! Each level is set-associative with the least recently used line replaced. Levels are filled on reads and writes alike; what is written
//! back is not counted. No prefetching, one core.

mod level;
mod report;

use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::events::Event;
use crate::ops::Tables;
use crate::simulate::{Access, Observer, Phase};
use level::Level;
pub use report::{CacheReport, LevelReport, Line, render};

/// A level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// `l1`
    pub name: String,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u64,
    /// Bytes of a line.
    pub line: u64,
}

impl CacheSpec {
    /// Fully associative, of pages.
    pub fn tlb(entries: u64) -> Self {
        Self { name: "tlb".into(), bytes: entries * PAGE, ways: entries, line: PAGE }
    }
}

const PAGE: u64 = 4096;
/// No cache is larger.
const MOST_LINES: u64 = 1 << 24;

impl FromStr for CacheSpec {
    type Err = String;

    /// `l1=32k,8,64`
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a cache is NAME=BYTES,WAYS,LINE: l1=32k,8,64".to_owned();
        let (name, numbers) = text.split_once('=').ok_or_else(wrong)?;
        let mut numbers = numbers.split(',');
        let (bytes, ways, line) = (numbers.next(), numbers.next(), numbers.next());
        let (Some(bytes), Some(ways), Some(line), None) = (bytes, ways, line, numbers.next()) else {
            return Err(wrong());
        };
        let bytes = match bytes
            .strip_suffix(['k', 'K'])
            .map(|kilo| (kilo, 10))
            .or(bytes.strip_suffix(['m', 'M']).map(|mega| (mega, 20)))
        {
            Some((number, shift)) => number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)),
            None => bytes.parse().ok(),
        };
        let number = |text: &str| text.parse::<u64>().ok().filter(|&number| number > 0);
        let (Some(bytes), Some(ways), Some(line)) = (bytes, number(ways), number(line)) else { return Err(wrong()) };
        let spec = Self { name: name.to_owned(), bytes, ways, line };
        let lines = bytes / line;
        let is_whole = bytes.is_multiple_of(line) && lines.is_multiple_of(ways) && lines > 0 && lines <= MOST_LINES;
        if name.is_empty() || !line.is_power_of_two() || !is_whole {
            return Err(format!("{text}: lines are a power of two, and fill whole sets"));
        }
        Ok(spec)
    }
}

/// Accesses and misses of each level, the first first.
#[derive(Clone, Debug, Default)]
struct Counts {
    accesses: u64,
    misses: Vec<u64>,
}

/// Caches that look on while a program runs.
#[derive(Debug)]
pub struct Caches {
    levels: Vec<Level>,
    tlb: Option<Level>,
    line: u64,
    /// Of the program, and of the collector.
    phases: [Counts; 2],
    tlb_misses: [u64; 2],
    classes: Vec<Counts>,
    sites: FxHashMap<u32, Counts>,
}

impl Caches {
    /// Empty ones. Where a level misses, the next is asked.
    pub fn new(specs: &[CacheSpec], tlb: Option<u64>, tables: &Tables) -> Self {
        let counts = Counts { accesses: 0, misses: vec![0; specs.len()] };
        Self {
            levels: specs.iter().map(Level::new).collect(),
            tlb: tlb.map(|entries| Level::new(&CacheSpec::tlb(entries))),
            line: specs.first().map_or(64, |spec| spec.line),
            phases: [counts.clone(), counts.clone()],
            tlb_misses: [0; 2],
            classes: vec![counts; tables.classes.len()],
            sites: FxHashMap::default(),
        }
    }

    fn line(&mut self, address: u64, access: &Access) {
        let phase = usize::from(access.phase == Phase::Collector);
        if let Some(tlb) = &mut self.tlb
            && !tlb.access(address)
        {
            self.tlb_misses[phase] += 1;
        }
        let levels = self.levels.len();
        let missed = self.levels.iter_mut().position(|level| level.access(address)).unwrap_or(levels);
        let new = || Counts { accesses: 0, misses: vec![0; levels] };
        let site = self.sites.entry(access.site).or_insert_with(new);
        let class = self.classes.get_mut(access.class as usize);
        for counts in [Some(&mut self.phases[phase]), class, Some(site)].into_iter().flatten() {
            counts.accesses += 1;
            counts.misses[..missed].iter_mut().for_each(|misses| *misses += 1);
        }
    }
}

impl Observer for Caches {
    const ACCESSES: bool = true;

    fn event(&mut self, _operation: u64, _event: &Event) {}

    fn access(&mut self, access: &Access) {
        let first = access.address / self.line;
        let last = (access.address + access.bytes.max(1) - 1) / self.line;
        for line in first..=last {
            self.line(line * self.line, access);
        }
    }
}

#[cfg(test)]
mod tests;
