//! One pass over the rows of the life table: objects, and how much each thread allocated when.

use std::io;

use et_names::SiteId;
use et_reader::made_in::{Made, MadeIn, Places};
use et_reader::model::ContextId;
use et_reader::population::{Columns, Moment, Population};
use et_reader::record::{AllocKind, ThreadId};
use et_reader::source::Source;
use et_reader::types::TypeId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::book::TableWriter;
use crate::meanings::Amount;
use crate::tables::{allocations_by_second, counts, objects};
use et_columns::Word;

/// What the rows refer to.
#[derive(Debug, Default)]
pub struct Met {
    pub classes: FxHashSet<TypeId>,
    pub sites: FxHashSet<SiteId>,
    /// Places without a site, each with a number in the range after those of sites.
    pub places: FxHashMap<MadeIn, i64>,
    /// Threads that allocated or made an object unreachable.
    pub threads: FxHashSet<ThreadId>,
    /// How much each thread allocated.
    pub allocated: FxHashMap<ThreadId, Amount>,
    /// The same by second.
    pub by_second: FxHashMap<(Option<i64>, ThreadId), Amount>,
}

/// First number of places that are not sites: ids of sites have 32 bits.
const FIRST_PLACE: i64 = 1 << 32;

impl Met {
    fn site(&mut self, place: MadeIn) -> i64 {
        match place {
            MadeIn::Site(site) => {
                self.sites.insert(site);
                site.0.into()
            }
            place => {
                let next = FIRST_PLACE + self.places.len() as i64;
                *self.places.entry(place).or_insert(next)
            }
        }
    }
}

fn signed(value: Option<u64>) -> Option<i64> {
    value.map(u64::cast_signed)
}

/// Processes all objects, or counts; fills the tables of both if they are wanted.
pub fn over(
    source: &Source,
    population: &Population,
    mut table: Option<TableWriter<objects::Rows>>,
    mut counts: Option<TableWriter<counts::Rows>>,
) -> io::Result<Met> {
    let mut met = Met::default();
    let mut places = Places::new(source.naming());
    for group in 0..population.groups.len() {
        let rows = population.groups.read(group, Columns::ALL)?;
        for at in 0..rows.len {
            let (thread, size) = (rows.thread[at], rows.size[at].cast_signed());
            let nanos = signed(rows.birth_nanos[at]);
            met.classes.insert(rows.class[at]);
            met.threads.insert(thread);
            met.threads.extend(rows.death_thread[at]);
            let made = Made { kind: rows.kind[at], site: rows.site[at], ty: rows.class[at] };
            let site = met.site(places.in_context(made, rows.context[at], &population.contexts, &population.types));
            if rows.kind[at] != AllocKind::Initial {
                let second = nanos.map(|nanos| nanos / 1_000_000_000);
                for amount in
                    [met.allocated.entry(thread).or_default(), met.by_second.entry((second, thread)).or_default()]
                {
                    amount.0 += rows.objects(at).cast_signed();
                    amount.1 += size;
                }
            }
            if !rows.counts.is_empty() {
                let Some(counts) = &mut counts else { continue };
                counts.push(counts::Row {
                    nanos,
                    thread: (thread.0 != 0).then_some(thread.0.into()),
                    class: rows.class[at].0.into(),
                    site,
                    context: rows.context[at].0.into(),
                    kind: Word(rows.kind[at].record_kind().text()),
                    objects: rows.objects(at).cast_signed(),
                    bytes: size,
                });
                continue;
            }
            let Some(table) = &mut table else { continue };
            let fate = rows.fate[at];
            let birth = Moment { tick: rows.birth_tick[at], bytes: rows.birth_bytes[at], nanos: rows.birth_nanos[at] };
            let gone = population.survival.as_ref().zip(fate).map(|(walks, fate)| walks.death_of(&fate, birth));
            let (after, by) = gone.map_or((None, None), |(after, by)| (Some(after), by));
            let bytes = |moment: Option<Moment>| moment.map(|moment| moment.bytes.cast_signed());
            let time = |moment: Option<Moment>| signed(moment.and_then(|moment| moment.nanos));
            table.push(objects::Row {
                number: rows.number[at].cast_signed(),
                object: rows.object[at].0.cast_signed(),
                class: rows.class[at].0.into(),
                kind: Word(rows.kind[at].record_kind().text()),
                size,
                length: rows.length[at].into(),
                site: Some(site),
                context: rows.context[at].0.into(),
                thread: (thread.0 != 0).then_some(thread.0.into()),
                birth_tick: rows.birth_tick[at].cast_signed(),
                birth_bytes: rows.birth_bytes[at].cast_signed(),
                birth_nanos: nanos,
                last_use_tick: population.has_uses.then_some(rows.last_use_tick[at].cast_signed()),
                death_tick: signed(rows.death_tick[at]),
                death_bytes: signed(rows.death_bytes[at]),
                death_nanos: signed(rows.death_nanos[at]),
                death_thread: rows.death_thread[at].filter(|thread| thread.0 != 0).map(|thread| thread.0.into()),
                death_context: rows.death_context[at].map(|ContextId(context)| context.into()),
                death_record: signed(rows.death_record[at]),
                escaped_thread: rows.escaped_thread[at],
                // Without deaths it is unknown which objects were dead when the method returned.
                escaped_frame: rows.escaped_frame[at].filter(|_| population.has_deaths),
                survived_collections: fate.map(|fate| fate.survived.into()),
                survived_at_most: fate.map(|fate| fate.survived_at_most.into()),
                gone_after_bytes: bytes(after),
                gone_by_bytes: bytes(by),
                gone_after_nanos: time(after),
                gone_by_nanos: time(by),
                survival_uncertain: fate.map(|fate| fate.is_uncertain),
            });
        }
        if table.as_ref().is_some_and(TableWriter::has_failed) || counts.as_ref().is_some_and(TableWriter::has_failed) {
            break;
        }
    }
    table.into_iter().for_each(TableWriter::finish);
    counts.into_iter().for_each(TableWriter::finish);
    Ok(met)
}

/// Writes how much each thread allocated in each second.
pub fn by_second(met: &Met, mut table: TableWriter<allocations_by_second::Rows>) {
    let mut all: Vec<_> = met.by_second.iter().collect();
    all.sort_unstable_by_key(|(key, _)| **key);
    for (&(second, thread), &(objects, bytes)) in all {
        let thread = (thread.0 != 0).then_some(thread.0.into());
        table.push(allocations_by_second::Row { second, thread, objects, bytes });
    }
    table.finish();
}
