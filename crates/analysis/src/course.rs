//! An allocation profile over the course of a run: by thread and time as well.

use std::io;

use et_reader::made_in::Places;
use et_reader::naming::Naming;
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::ThreadId;

use crate::fold::fold;
use crate::profile::{Cell, Cells, Origin, Row, origin, row};

/// Where, by whom and when objects were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share {
    /// Number of the span of time, from 0.
    pub span: u32,
    pub thread: ThreadId,
    pub origin: Origin,
}

/// All objects of a trace by origin, thread and time.
#[derive(Clone, Debug)]
pub struct Course {
    /// In the order of time.
    pub cells: Vec<(Share, Cell)>,
    /// Duration of a span in nanoseconds.
    pub span_nanos: u64,
    /// Their sum.
    pub total: Cell,
}

/// The run is divided into this many spans.
const SPANS: u64 = 1 << 10;
/// If there are more cells, spans are made twice as long until there are fewer, or until one is the whole run. So memory is bounded by the
/// number of origins, not by the length of the run.
const MOST: usize = 1 << 20;

type Key = (Row, ThreadId, u32);

struct Growing {
    cells: Cells<Key>,
    young: u64,
    /// Spans are that many times doubled.
    doubled: u32,
    most: usize,
}

impl Growing {
    fn lengthen(&mut self, doubled: u32) {
        if doubled > self.doubled {
            let by = doubled - self.doubled;
            let finer = std::mem::replace(&mut self.cells, Cells::new(self.young));
            self.cells.merge(finer, |(row, thread, span)| (row, thread, span >> by));
            self.doubled = doubled;
        }
    }

    fn tidy(&mut self) {
        while self.cells.len() > self.most && self.doubled < SPANS.ilog2() {
            self.lengthen(self.doubled + 1);
        }
    }

    fn merged(mut self, mut other: Self) -> Self {
        self.lengthen(other.doubled);
        other.lengthen(self.doubled);
        self.cells.merge(other.cells, |key| key);
        self.tidy();
        self
    }
}

/// Computes it. Objects that die before `young` bytes were allocated after them die young.
pub fn course(population: &Population, naming: Naming<'_>, young: u64) -> io::Result<Course> {
    with_limit(population, naming, young, MOST)
}

fn with_limit(population: &Population, naming: Naming<'_>, young: u64, most: usize) -> io::Result<Course> {
    // The last moment is in the last span.
    let span_nanos = population.end.nanos.unwrap_or(0) / SPANS + 1;
    let columns = Cells::<Key>::COLUMNS | Columns::THREAD | Columns::BIRTH_NANOS;
    let each = |growing: &mut Growing, rows: &Rows| {
        for at in 0..rows.len {
            let span = (rows.birth_nanos[at].unwrap_or(0) / span_nanos).min(SPANS - 1) as u32 >> growing.doubled;
            growing.cells.add((row(rows, at), rows.thread[at], span), rows, at);
        }
        growing.tidy();
    };
    let new = || Growing { cells: Cells::new(young), young, doubled: 0, most };
    let Growing { cells: by_row, doubled, .. } = fold(population, columns, new, each, Growing::merged)?;
    let mut places = Places::new(naming);
    let mut cells = Cells::new(young);
    cells.merge(by_row, |(row, thread, span)| Share { span, thread, origin: origin(row, &mut places, population) });
    let mut cells: Vec<(Share, Cell)> = cells.finish().collect();
    let mut total = Cell::default();
    cells.iter().for_each(|(_, cell)| total.merge(cell));
    cells.sort_unstable_by_key(|(share, _)| *share);
    Ok(Course { cells, span_nanos: span_nanos << doubled, total })
}

#[cfg(test)]
mod tests {
    use et_names::SiteId;
    use et_reader::model::ContextId;
    use et_reader::record::AllocKind;
    use et_reader::types::TypeId;

    use super::*;

    /// Objects of two threads, one of each in each of `count` spans.
    fn rows(count: u32) -> Rows {
        let len = count as usize * 2;
        Rows {
            len,
            kind: vec![AllocKind::New; len],
            size: vec![16; len],
            class: vec![TypeId(1); len],
            site: vec![SiteId(7); len],
            context: vec![ContextId::EMPTY; len],
            thread: (0..len).map(|row| ThreadId(row as u32 % 2 + 1)).collect(),
            birth_bytes: vec![16; len],
            last_use_tick: vec![0; len],
            death_tick: vec![None; len],
            death_bytes: vec![None; len],
            ..Rows::default()
        }
    }

    fn grown(count: u32, first: u32, most: usize) -> Growing {
        let rows = rows(count);
        let mut growing = Growing { cells: Cells::new(0), young: 0, doubled: 0, most };
        for at in 0..rows.len {
            let span = first + at as u32 / 2;
            growing.cells.add((row(&rows, at), rows.thread[at], span), &rows, at);
        }
        growing.tidy();
        growing
    }

    #[test]
    fn spans_become_longer_and_nothing_is_lost() {
        let fine = grown(8, 0, 100);
        assert_eq!((fine.doubled, fine.cells.len()), (0, 16));
        let coarse = grown(512, 0, 100);
        assert_eq!((coarse.doubled, coarse.cells.len()), (4, 64));
        // What is merged has the longer spans of both.
        let merged = coarse.merged(grown(8, 512, 100));
        assert_eq!((merged.doubled, merged.cells.len()), (4, 66));
        let cells: Vec<(Key, Cell)> = merged.cells.finish().collect();
        assert_eq!(cells.iter().map(|(_, cell)| cell.allocated.objects).sum::<u64>(), 2 * 520);
        let last = cells.iter().filter(|((_, _, span), _)| *span == 512 >> 4);
        assert_eq!(last.map(|(_, cell)| cell.allocated.objects).collect::<Vec<_>>(), [8, 8]);
        // One span is the least.
        let least = grown(512, 0, 1);
        assert_eq!((least.doubled, least.cells.len()), (SPANS.ilog2(), 2));
    }
}
