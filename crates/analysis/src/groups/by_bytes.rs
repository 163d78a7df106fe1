//! Traces whose clock stands still, as that of counts and of some texts does: bytes allocated take its place.

use std::io;

use et_reader::lifetimes::HeldByStack;
use et_reader::population::{Columns, Groups, Moment, Population, Rows};

/// A population whose clock counts the bytes that were allocated before an object was made, if it has no clock of its own; whether that is so.
pub fn by_bytes(population: Population) -> (Population, bool) {
    if population.end.tick > 0 || population.has_deaths {
        return (population, false);
    }
    let end = population.end;
    let groups = Box::new(ByBytes(population.groups));
    (Population { groups, end: Moment { tick: end.bytes, ..end }, ..population }, true)
}

struct ByBytes(Box<dyn Groups>);

impl Groups for ByBytes {
    fn len(&self) -> usize {
        self.0.len()
    }

    // The ticks that are known without reading are those of the clock that stands still.

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        if !columns.has(Columns::BIRTH_TICK) {
            return self.0.read(group, columns);
        }
        let mut rows = self.0.read(group, columns | Columns::BIRTH_BYTES | Columns::SIZE)?;
        // Those that were there when tracing began have bytes of none.
        rows.birth_tick =
            rows.birth_bytes.iter().zip(&rows.size).map(|(bytes, size)| bytes.saturating_sub(*size)).collect();
        Ok(rows)
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        self.0.held_by_stacks()
    }
}
