//! Cache simulation of the accesses by the program and by its collector.
//!
//! Each level is set-associative with LRU replacement and allocates on reads and on writes. Write-backs are not
//! counted. One core, no prefetching.

mod level;
mod report;

use std::fmt;
use std::str::FromStr;

use et_names::size::size;
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::allocate::{AllocateError, Allocator, watched};
use crate::collectors::{Access, Observer, Phase};
use crate::events::Event;
use crate::ops::{OpsReader, Tables};
use level::Level;
pub use report::{CacheReport, LevelReport, Line, render};

/// Why a cache configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum CacheError {
    #[error(
        "{name} has lines of {line} bytes, but {before}, the level before it, has lines of {of_before}: lines must not get shorter"
    )]
    ShorterLines { name: String, line: u64, before: String, of_before: u64 },
    #[error("two caches have the name {name}")]
    SameName { name: String },
}

/// Configuration of one cache level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Name, for example `l1`.
    pub name: String,
    /// Capacity in bytes.
    pub bytes: u64,
    /// Associativity: lines per set.
    pub ways: u64,
    /// Line size in bytes.
    pub line: u64,
}

impl CacheSpec {
    /// A fully associative TLB, whose lines are pages.
    pub fn tlb(entries: u64) -> Self {
        Self { name: "tlb".into(), bytes: entries * PAGE, ways: entries, line: PAGE }
    }
}

/// As written on the command line.
impl fmt::Display for CacheSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={},{},{}", self.name, self.bytes, self.ways, self.line)
    }
}

/// Replays the operations with an allocator of this process and simulates the caches. The report lists the `top`
/// classes and sites.
pub fn under<A: Allocator>(
    ops: &mut OpsReader,
    allocator: &str,
    specs: &[CacheSpec],
    tlb: Option<u64>,
    top: usize,
) -> Result<CacheReport, AllocateError> {
    let mut caches = Caches::new(specs, tlb, ops.tables());
    watched::<A, _>(ops, allocator, &mut caches)?;
    Ok(caches.report(allocator.to_owned(), ops.tables(), top))
}

/// Whether these levels form a hierarchy.
pub fn check(specs: &[CacheSpec]) -> Result<(), CacheError> {
    for (before, spec) in specs.iter().zip(specs.iter().skip(1)) {
        // With shorter lines below, one miss would become several accesses.
        if spec.line < before.line {
            let (name, before, of_before) = (spec.name.clone(), before.name.clone(), before.line);
            return Err(CacheError::ShorterLines { name, line: spec.line, before, of_before });
        }
    }
    let is_known = |(at, spec): (usize, &CacheSpec)| specs[..at].iter().any(|before| before.name == spec.name);
    match specs.iter().enumerate().find(|&numbered| is_known(numbered)) {
        Some((_, spec)) => Err(CacheError::SameName { name: spec.name.clone() }),
        None => Ok(()),
    }
}

const PAGE: u64 = 4096;
/// Maximum number of lines of one level.
const MOST_LINES: u64 = 1 << 24;

impl FromStr for CacheSpec {
    type Err = String;

    /// Parses `l1=32k,8,64`: name, capacity, ways, line size.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected NAME=BYTES,WAYS,LINE, as in l1=32k,8,64".to_owned();
        let (name, numbers) = text.split_once('=').ok_or_else(wrong)?;
        let mut numbers = numbers.split(',');
        let (bytes, ways, line) = (numbers.next(), numbers.next(), numbers.next());
        let (Some(bytes), Some(ways), Some(line), None) = (bytes, ways, line, numbers.next()) else {
            return Err(wrong());
        };
        let number = |text: &str| text.parse::<u64>().ok().filter(|&number| number > 0);
        let (Some(bytes), Some(ways), Some(line)) = (size(bytes), number(ways), number(line)) else {
            return Err(wrong());
        };
        let spec = Self { name: name.to_owned(), bytes, ways, line };
        let lines = bytes / line;
        let is_whole = bytes.is_multiple_of(line) && lines.is_multiple_of(ways) && lines > 0;
        if name.is_empty() {
            return Err(wrong());
        }
        if !line.is_power_of_two() {
            return Err(format!("a line of {line} bytes is not a power of two"));
        }
        if lines > MOST_LINES {
            return Err(format!("{lines} lines are more than the {MOST_LINES} that can be simulated"));
        }
        if !is_whole {
            return Err(format!("{bytes} bytes are not a whole number of sets of {ways} lines of {line} bytes"));
        }
        Ok(spec)
    }
}

/// Accesses and misses of each level, from the first level on.
#[derive(Clone, Debug, Default)]
struct Counts {
    accesses: u64,
    misses: Vec<u64>,
}

/// An observer that simulates a cache hierarchy.
#[derive(Debug)]
pub struct Caches {
    levels: Vec<Level>,
    tlb: Option<Level>,
    line: u64,
    /// Counts of the program and of the collector.
    phases: [Counts; 2],
    tlb_misses: [u64; 2],
    classes: Vec<Counts>,
    /// In the order of the tables; the last one is for unknown sites.
    sites: Vec<Counts>,
    /// Index into `sites` by site id.
    site_at: FxHashMap<u32, usize>,
}

impl Caches {
    /// Empty caches. A miss in one level accesses the next.
    pub fn new(specs: &[CacheSpec], tlb: Option<u64>, tables: &Tables) -> Self {
        let counts = Counts { accesses: 0, misses: vec![0; specs.len()] };
        Self {
            levels: specs.iter().map(Level::new).collect(),
            tlb: tlb.map(|entries| Level::new(&CacheSpec::tlb(entries))),
            line: specs.first().map_or(64, |spec| spec.line),
            phases: [counts.clone(), counts.clone()],
            tlb_misses: [0; 2],
            classes: vec![counts.clone(); tables.classes.len()],
            // Allocated ahead: during a replay with this process's own allocator nothing else may allocate.
            sites: vec![counts; tables.sites.len() + 1],
            site_at: tables.sites.iter().zip(0..).map(|(site, at)| (site.site, at)).collect(),
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
        let site = self.site_at.get(&access.site).copied().unwrap_or(self.site_at.len());
        let (site, class) = (self.sites.get_mut(site), self.classes.get_mut(access.class as usize));
        for counts in [Some(&mut self.phases[phase]), class, site].into_iter().flatten() {
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
