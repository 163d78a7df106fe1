//! The tables of walks through the heap, and of what they say of each object: of traces that do not tell when objects die.

use std::fs::File;
use std::io;

use et_columns::{Encoder, Group, Rows, TableReader, TableWriter, Written};
use et_format::event::Ticket;
use et_format::{HeapWalk, Nanos};
use et_reader::population::{Columns, Moment};
use et_reader::survival::{Fate, Fates, Survival, Walk};
use et_system::threads::Pool;
use rayon::prelude::*;

use crate::rows::{GroupReader, stored};
use crate::tables::{fates, walks};

/// Groups that are worked out and encoded on all cores before they are written.
const GROUPS_AT_ONCE: usize = 16;

/// Writes the fate of each object of a table, in its order and its groups.
pub fn write(file: File, objects: File, known: &Fates) -> io::Result<Written> {
    let objects = TableReader::open(objects)?;
    let encoder = Encoder::new(&fates::TABLE)?;
    let mut writer = encoder.begin(file)?;
    let encoded = |group: &usize| {
        let rows = stored(&objects, *group, Columns::NUMBER | Columns::OBJECT)?;
        let mut all = fates::Rows::default();
        for (&number, &object) in rows.number.iter().zip(&rows.object) {
            all.push(row(number, known.of(number, object)));
        }
        encoder.encode(&all.values())
    };
    let groups: Vec<usize> = (0..objects.groups()).collect();
    for groups in groups.chunks(GROUPS_AT_ONCE) {
        let encoded: Vec<Group> = Pool::shared().run(|| groups.par_iter().map(encoded).collect::<io::Result<_>>())?;
        encoded.into_iter().try_for_each(|group| writer.append(group))?;
    }
    writer.finish()
}

/// The row of an object with that number, or of several of which it is the first.
pub fn row(number: u64, fate: Option<Fate>) -> fates::Row {
    fates::Row {
        number: number.cast_signed(),
        survived_collections: fate.map(|fate| fate.survived.into()),
        survived_at_most: fate.map(|fate| fate.survived_at_most.into()),
        first_walk: fate.map(|fate| fate.first.into()),
        seen_walk: fate.and_then(|fate| fate.seen).map(Into::into),
        missed_walk: fate.and_then(|fate| fate.missed).map(Into::into),
        survival_uncertain: fate.map(|fate| fate.is_uncertain),
    }
}

/// Reads what [`write()`] wrote of a group that has so many objects.
pub fn read(table: &TableReader, group: usize, objects: usize) -> io::Result<Vec<Option<Fate>>> {
    if group >= table.groups() || table.rows_of(group) != objects {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "fates are not those of the objects"));
    }
    let reader = GroupReader { table, group, columns: Columns::FATE };
    let numbers = |name| reader.maybe32(name, |number| number);
    let (survived, at_most) = (numbers("survived_collections")?, numbers("survived_at_most")?);
    let (first, seen, missed) = (numbers("first_walk")?, numbers("seen_walk")?, numbers("missed_walk")?);
    let uncertain = table.flags(group, "survival_uncertain")?;
    let fate = |row: usize| {
        Some(Fate {
            survived: survived[row]?,
            survived_at_most: at_most[row]?,
            first: first[row]?,
            seen: seen[row],
            missed: missed[row],
            is_uncertain: uncertain[row]?,
        })
    };
    Ok((0..objects).map(fate).collect())
}

/// Writes the walks, in order.
pub fn write_walks(file: File, survival: &Survival) -> io::Result<Written> {
    let mut writer = TableWriter::<walks::Rows>::new(file);
    for (number, walk) in survival.walks().iter().enumerate() {
        let Walk { heap, begin, end, born, collections, found } = *walk;
        writer.push(walks::Row {
            walk: number as i64,
            start_nanos: heap.nanos.0.cast_signed(),
            duration_nanos: heap.duration.0.cast_signed(),
            collections: collections.into(),
            found: found.cast_signed(),
            at_the_end: heap.at_the_end,
            is_exact: heap.is_exact,
            born: born.cast_signed(),
            begin_ticket: heap.begin.0.cast_signed(),
            begin_tick: begin.tick.cast_signed(),
            begin_bytes: begin.bytes.cast_signed(),
            begin_nanos: begin.nanos.map(u64::cast_signed),
            end_ticket: heap.end.0.cast_signed(),
            end_tick: end.tick.cast_signed(),
            end_bytes: end.bytes.cast_signed(),
            end_nanos: end.nanos.map(u64::cast_signed),
        });
    }
    writer.finish()
}

/// Reads what [`write_walks`] wrote, of a trace with that many collections.
pub fn read_walks(file: File, collections: u64) -> io::Result<Survival> {
    let table = TableReader::open(file)?;
    let mut all = Vec::new();
    for group in 0..table.groups() {
        let reader = GroupReader { table: &table, group, columns: Columns::FATE };
        let numbers = |name| reader.numbers(name, |number| number);
        let (starts, durations) = (numbers("start_nanos")?, numbers("duration_nanos")?);
        let (begins, ends) = (numbers("begin_ticket")?, numbers("end_ticket")?);
        let moments = |tick, bytes, nanos| -> io::Result<Vec<Moment>> {
            let (ticks, bytes, nanos) = (numbers(tick)?, numbers(bytes)?, reader.maybe(nanos)?);
            let each = ticks.into_iter().zip(bytes).zip(nanos);
            Ok(each.map(|((tick, bytes), nanos)| Moment { tick, bytes, nanos }).collect())
        };
        let begun = moments("begin_tick", "begin_bytes", "begin_nanos")?;
        let ended = moments("end_tick", "end_bytes", "end_nanos")?;
        let (born, found) = (numbers("born")?, numbers("found")?);
        let collections = reader.numbers32("collections", |number| number)?;
        let (at_the_end, is_exact) = (table.flags(group, "at_the_end")?, table.flags(group, "is_exact")?);
        all.extend((0..table.rows_of(group)).map(|row| Walk {
            heap: HeapWalk {
                begin: Ticket(begins[row]),
                end: Ticket(ends[row]),
                nanos: Nanos(starts[row]),
                duration: Nanos(durations[row]),
                at_the_end: at_the_end[row] == Some(true),
                is_exact: is_exact[row] == Some(true),
            },
            begin: begun[row],
            end: ended[row],
            born: born[row],
            collections: collections[row],
            found: found[row],
        }));
    }
    Ok(Survival::known(all, collections))
}
