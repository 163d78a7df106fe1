//! A heap as cells of equal size, however large it is: displayed on a canvas, with totals beside it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use et_ddm::segment::{Form, Kind, Segment, Solidity, State};
use serde_json::{Value, json};

/// The most cells there are. When the heap needs more, two become one.
const MOST_CELLS: usize = 1 << 16;
/// Maximum number of address ranges displayed; the regions of a large heap are too many.
const MOST_STRETCHES: usize = 4096;
/// Initial size of a cell in bytes.
const FIRST_CELL: u64 = 64;

/// The shades of cells by number: free, held by hard references by kind, and held by weaker references.
pub const SHADES: [&str; 13] = [
    "free",
    "object",
    "class object",
    "array of byte, boolean",
    "array of char, short",
    "array of references, int, float",
    "array of long, double",
    "native",
    "soft",
    "weak",
    "phantom",
    "waits for its finalizer",
    "will be swept",
];

fn shade(state: State) -> usize {
    match state.solidity {
        Solidity::Free => 0,
        Solidity::Hard => 1 + state.kind as usize,
        Solidity::Soft => 8,
        Solidity::Weak => 9,
        Solidity::Phantom => 10,
        Solidity::Finalizable => 11,
        Solidity::Sweep => 12,
    }
}

/// Bytes of each shade in a cell.
type Cell = [u32; SHADES.len()];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    address: u32,
    bytes: u64,
}

/// A heap that is being described, or was.
#[derive(Clone, Debug)]
pub struct Bitmap {
    heap: u32,
    form: Option<Form>,
    unit: u8,
    cell_bytes: u64,
    cells: Vec<Cell>,
    /// Bytes in the last cell.
    filled: u64,
    stretches: Vec<Stretch>,
    more_stretches: u64,
    /// Where the last stretch is expected to go on, in units.
    goes_on: Option<(u32, u64)>,
    bytes: [[u64; Kind::ALL.len()]; Solidity::ALL.len()],
    /// Objects, if runs end where they do.
    objects: u64,
    /// Number and bytes of free runs, by powers of two.
    free_runs: [(u64, u64); 64],
    /// The free run at the end, which may go on.
    free: u64,
    largest_free: u64,
    /// When its end came, in milliseconds since 1970.
    pub time_ms: u64,
}

impl Bitmap {
    /// Creates an empty bitmap.
    pub fn new(heap: u32) -> Self {
        Self {
            heap,
            form: None,
            unit: 8,
            cell_bytes: FIRST_CELL,
            cells: Vec::new(),
            filled: FIRST_CELL,
            stretches: Vec::new(),
            more_stretches: 0,
            goes_on: None,
            bytes: Default::default(),
            objects: 0,
            free_runs: [(0, 0); 64],
            free: 0,
            largest_free: 0,
            time_ms: 0,
        }
    }

    /// Adds a part of the heap.
    pub fn add(&mut self, segment: &Segment) {
        self.form = Some(segment.form);
        self.unit = segment.unit;
        let at = (segment.address, u64::from(segment.offset));
        let bytes = segment.units() * u64::from(segment.unit);
        if self.goes_on == Some(at) {
            if let Some(last) = self.stretches.last_mut() {
                last.bytes += bytes;
            }
        } else {
            self.end_free_run();
            if self.stretches.len() < MOST_STRETCHES {
                self.stretches.push(Stretch { address: segment.address, bytes });
            } else {
                self.more_stretches += 1;
            }
        }
        self.goes_on = Some((segment.address, at.1 + segment.units()));
        for run in &segment.runs {
            let bytes = u64::from(run.units) * u64::from(segment.unit);
            self.bytes[run.state.solidity as usize][run.state.kind as usize] += bytes;
            if run.state.solidity == Solidity::Free {
                self.free += bytes;
            } else {
                self.end_free_run();
                self.objects += u64::from(!run.is_partial);
            }
            self.fill(shade(run.state), bytes);
        }
    }

    /// Another heap follows this one: a VM may describe its memory in several parts.
    pub fn append(&mut self, other: &Self) {
        self.form = other.form.or(self.form);
        self.unit = other.unit;
        self.time_ms = self.time_ms.max(other.time_ms);
        for cell in &other.cells {
            cell.iter().enumerate().for_each(|(shade, &bytes)| self.fill(shade, bytes.into()));
        }
        for (mine, its) in self.bytes.iter_mut().flatten().zip(other.bytes.iter().flatten()) {
            *mine += its;
        }
        for (mine, its) in self.free_runs.iter_mut().zip(&other.free_runs) {
            *mine = (mine.0 + its.0, mine.1 + its.1);
        }
        self.objects += other.objects;
        self.largest_free = self.largest_free.max(other.largest_free);
        let room = MOST_STRETCHES.saturating_sub(self.stretches.len());
        let kept = other.stretches.len().min(room);
        self.stretches.extend(&other.stretches[..kept]);
        self.more_stretches += other.more_stretches + (other.stretches.len() - kept) as u64;
    }

    /// All parts have been added.
    pub fn end(&mut self, time_ms: u64) {
        self.end_free_run();
        self.time_ms = time_ms;
    }

    fn end_free_run(&mut self) {
        if self.free > 0 {
            let run = &mut self.free_runs[self.free.ilog2() as usize];
            *run = (run.0 + 1, run.1 + self.free);
            self.largest_free = self.largest_free.max(self.free);
            self.free = 0;
        }
    }

    fn fill(&mut self, shade: usize, mut bytes: u64) {
        while bytes > 0 {
            if self.filled == self.cell_bytes {
                if self.cells.len() == MOST_CELLS {
                    self.halve();
                    continue;
                }
                self.cells.push(Cell::default());
                self.filled = 0;
            }
            let here = bytes.min(self.cell_bytes - self.filled);
            if let Some(cell) = self.cells.last_mut() {
                cell[shade] = cell[shade].saturating_add(here as u32);
            }
            self.filled += here;
            bytes -= here;
        }
    }

    /// Two cells become one. The number of cells is even, and the last is full.
    fn halve(&mut self) {
        let pairs = self.cells.chunks(2);
        self.cells = pairs
            .map(|pair| {
                let mut sum = Cell::default();
                pair.iter().for_each(|cell| (0..sum.len()).for_each(|at| sum[at] = sum[at].saturating_add(cell[at])));
                sum
            })
            .collect();
        self.cell_bytes *= 2;
        self.filled = self.cell_bytes;
    }

    fn used(&self) -> u64 {
        self.total() - self.free_bytes()
    }

    fn free_bytes(&self) -> u64 {
        self.bytes[Solidity::Free as usize].iter().sum()
    }

    /// Total size in bytes.
    pub fn total(&self) -> u64 {
        self.bytes.iter().flatten().sum()
    }

    /// As the page and the shell take it.
    pub fn json(&self) -> Value {
        // The shade that most of a cell's used bytes have, and how much of it is used: a byte each.
        let main = self.cells.iter().map(|cell| {
            (1..cell.len()).max_by_key(|&at| (cell[at], SHADES.len() - at)).filter(|&at| cell[at] > 0).unwrap_or(0)
                as u8
        });
        let fill = self.cells.iter().map(|cell| {
            let (free, all) = (u64::from(cell[0]), cell.iter().map(|&it| u64::from(it)).sum::<u64>().max(1));
            // A cell in use is never displayed as empty, nor one with a gap as full.
            let share = ((all - free) * 255).div_ceil(all);
            if free > 0 { share.min(254) as u8 } else { 255 }
        });
        let by_shade = Solidity::ALL.iter().flat_map(|&solidity| {
            Kind::ALL.iter().filter_map(move |&kind| {
                let bytes = self.bytes[solidity as usize][kind as usize];
                (bytes > 0).then_some((State { solidity, kind }, bytes))
            })
        });
        let totals: Vec<Value> = by_shade
            .map(|(state, bytes)| {
                json!({ "solidity": name(state.solidity), "kind": kind_name(state.kind), "shade": shade(state), "bytes": bytes })
            })
            .collect();
        let gaps: Vec<Value> = self
            .free_runs
            .iter()
            .enumerate()
            .filter(|(_, run)| run.0 > 0)
            .map(|(power, (runs, bytes))| json!({ "atLeast": 1_u64 << power, "runs": runs, "bytes": bytes }))
            .collect();
        let free = self.free_bytes();
        // The share of free bytes outside the largest gap: 0 if there is a single gap.
        let fragmentation = if free == 0 { 0.0 } else { 1.0 - self.largest_free as f64 / free as f64 };
        json!({
            "heap": self.heap,
            "timeMs": self.time_ms,
            "form": match self.form { Some(Form::Objects) => "HPSO", Some(Form::Native) => "NHSG", _ => "HPSG" },
            "unitBytes": self.unit,
            "bytes": self.total(),
            "used": self.used(),
            "free": free,
            "objects": (self.form == Some(Form::Objects)).then_some(self.objects),
            "largestFree": self.largest_free,
            "fragmentation": fragmentation,
            "gaps": gaps,
            "totals": totals,
            "stretches": self.stretches.iter().map(|it| json!({ "address": it.address, "bytes": it.bytes })).collect::<Vec<_>>(),
            "moreStretches": self.more_stretches,
            "shades": SHADES,
            "cellBytes": self.cell_bytes,
            "cells": BASE64_STANDARD.encode(main.collect::<Vec<u8>>()),
            "fill": BASE64_STANDARD.encode(fill.collect::<Vec<u8>>()),
        })
    }
}

fn name(solidity: Solidity) -> &'static str {
    ["free", "hard", "soft", "weak", "phantom", "finalizable", "sweep"][solidity as usize]
}

fn kind_name(kind: Kind) -> &'static str {
    ["object", "class", "array1", "array2", "array4", "array8", "native"][kind as usize]
}

#[cfg(test)]
mod tests {
    use et_ddm::segment::SegmentWriter;
    use proptest::prelude::*;

    use super::*;

    const HARD: State = State { solidity: Solidity::Hard, kind: Kind::Array1 };

    proptest! {
        /// Totals and gaps are those of the objects one by one, however many cells there are.
        #[test]
        fn totals_are_exact(runs in prop::collection::vec((any::<bool>(), 1..200_000_u64), 1..60)) {
            let mut writer = SegmentWriter::new(Form::Objects, 1, 8, 0, 1000);
            runs.iter().for_each(|&(free, units)| writer.push(if free { State::FREE } else { HARD }, units));
            let mut bitmap = Bitmap::new(1);
            writer.finish().iter().for_each(|segment| bitmap.add(segment));
            bitmap.end(0);
            let (mut gaps, mut before) = (Vec::new(), false);
            for &(free, units) in &runs {
                match gaps.last_mut() {
                    Some(last) if free && before => *last += units * 8,
                    _ if free => gaps.push(units * 8),
                    _ => {}
                }
                before = free;
            }
            let json = bitmap.json();
            let sum = |free| runs.iter().filter(|run| run.0 == free).map(|run| run.1 * 8).sum::<u64>();
            prop_assert_eq!(json["free"].as_u64(), Some(sum(true)));
            prop_assert_eq!(json["used"].as_u64(), Some(sum(false)));
            prop_assert_eq!(json["objects"].as_u64(), Some(runs.iter().filter(|run| !run.0).count() as u64));
            prop_assert_eq!(json["largestFree"].as_u64(), Some(gaps.iter().copied().max().unwrap_or(0)));
            prop_assert_eq!(bitmap.free_runs.iter().map(|run| run.0).sum::<u64>(), gaps.len() as u64);
            prop_assert!(bitmap.cells.len() <= MOST_CELLS);
            // Cells add up to the whole, and each but the last is full.
            let in_cells: u64 = bitmap.cells.iter().flatten().map(|&bytes| u64::from(bytes)).sum();
            prop_assert_eq!(in_cells, bitmap.total());
            let full = |cell: &Cell| cell.iter().map(|&it| u64::from(it)).sum::<u64>() == bitmap.cell_bytes;
            prop_assert!(bitmap.cells.iter().rev().skip(1).all(full));
        }
    }

    #[test]
    fn heaps_are_put_behind_each_other() {
        let heap = |units| {
            let mut writer = SegmentWriter::new(Form::Objects, 1, 8, 0, 1000);
            [(HARD, units), (State::FREE, 2 * units)].iter().for_each(|&(state, units)| writer.push(state, units));
            let mut bitmap = Bitmap::new(1);
            writer.finish().iter().for_each(|segment| bitmap.add(segment));
            bitmap.end(units);
            bitmap
        };
        let mut all = heap(10_000_000);
        all.append(&heap(100));
        assert_eq!((all.total(), all.used(), all.objects), (240_002_400, 80_000_800, 2));
        assert_eq!((all.largest_free, all.stretches.len(), all.time_ms), (160_000_000, 2, 10_000_000));
        let in_cells: u64 = all.cells.iter().flatten().map(|&bytes| u64::from(bytes)).sum();
        assert_eq!(in_cells, all.total());
    }

    #[test]
    fn pieces_of_a_stretch_are_one_and_other_addresses_another() {
        let piece = |address, offset, units| {
            let mut writer = SegmentWriter::new(Form::Merged, 1, 8, address, 10);
            writer.push(State::FREE, units);
            let mut piece = writer.finish().remove(0);
            piece.offset = offset;
            piece
        };
        let mut bitmap = Bitmap::new(1);
        [piece(64, 0, 10), piece(64, 10, 10), piece(4096, 0, 5)].iter().for_each(|it| bitmap.add(it));
        bitmap.end(0);
        assert_eq!(bitmap.stretches, [Stretch { address: 64, bytes: 160 }, Stretch { address: 4096, bytes: 40 }]);
        assert_eq!(bitmap.largest_free, 160, "gaps do not reach from one stretch to the next");
    }
}
