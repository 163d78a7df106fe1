//! How objects fared over the run: curves of live bytes by where they were made, and the whole run on a timeline.

use std::io;

use et_reader::population::{Columns, Population, Rows};
use et_reader::record::{AllocKind, ThreadId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{Level, Line, Wanted};
use crate::fold::fold;
use crate::heap::died_at;
use crate::profile;
use et_reader::amount::Amount;

/// Moments of a curve.
const MOMENTS: usize = 24;

type Curve = [f32; MOMENTS];

/// In which of so many parts of a whole a tick is, and whether the part begins there. It is asked twice for each object: 128 bits, which take
/// ten times as long to divide, are only used where 64 are too few.
fn part_of(tick: u64, parts: u64, whole: u64) -> (u64, bool) {
    match tick.checked_mul(parts) {
        Some(product) => (product / whole, product % whole == 0),
        None => {
            let (product, whole) = (u128::from(tick) * u128::from(parts), u128::from(whole));
            (u64::try_from(product / whole).unwrap_or(u64::MAX), product % whole == 0)
        }
    }
}

/// Live bytes over the run of all objects that were made alike.
#[derive(Debug, Default)]
pub struct Course {
    /// A row for each kind: context, site, class, kind and thread.
    rows: Rows,
    curves: Vec<Curve>,
}

impl Course {
    /// Goes through all objects once.
    ///
    /// # Errors
    /// The life table cannot be read.
    pub fn of(population: &Population) -> io::Result<Self> {
        let columns = Columns::CONTEXT
            | Columns::SITE
            | Columns::CLASS
            | Columns::KIND
            | Columns::THREAD
            | Columns::SIZE
            | Columns::BIRTH_TICK
            | Columns::DEATH_TICK
            | Columns::DEATH_KIND;
        let end = population.end.tick.max(1);
        // The first moment that is not before the tick.
        let moment = |tick: u64| {
            let (part, is_exact) = part_of(tick, MOMENTS as u64, end);
            (part as usize + usize::from(!is_exact)).saturating_sub(1).min(MOMENTS)
        };
        let sums = fold(
            population,
            columns,
            FxHashMap::<(profile::Row, ThreadId), Curve>::default,
            |sums, rows| {
                for row in 0..rows.len {
                    let key = (profile::row(rows, row), rows.thread[row]);
                    let curve = sums.entry(key).or_default();
                    let size = rows.size[row] as f32;
                    let born = if rows.kind[row] == AllocKind::Initial { 0 } else { moment(rows.birth_tick[row] + 1) };
                    let died = died_at(rows, row).map_or(MOMENTS, |tick| moment(tick + 1));
                    curve[born.min(died)..died].iter_mut().for_each(|bytes| *bytes += size);
                }
            },
            |mut one, other| {
                for (key, curve) in other {
                    let sum = one.entry(key).or_default();
                    sum.iter_mut().zip(curve).for_each(|(sum, bytes)| *sum += bytes);
                }
                one
            },
        )?;
        let mut course = Self::default();
        for (((context, site, class, kind), thread), curve) in sums {
            let rows = &mut course.rows;
            rows.len += 1;
            rows.context.push(context);
            rows.site.push(site);
            rows.class.push(class);
            rows.kind.push(kind);
            rows.thread.push(thread);
            course.curves.push(curve);
        }
        Ok(course)
    }

    /// Adds curves to the groups of a level.
    pub(super) fn add_curves(&self, wanted: &Wanted<'_, '_>, level: Level, lines: &mut [Line]) {
        let numbers: FxHashMap<String, usize> =
            lines.iter().enumerate().map(|(number, line)| (line.key.clone(), number)).collect();
        let mut curves = vec![Curve::default(); lines.len()];
        let (mut known, mut of_key) = (wanted.known(), FxHashMap::default());
        for (row, curve) in self.curves.iter().enumerate() {
            if !wanted.holds(&mut known, &self.rows, row) {
                continue;
            }
            let key = wanted.keys.of(level, &self.rows, row);
            let places = &mut known.places;
            let number =
                *of_key.entry(key).or_insert_with(|| numbers.get(&wanted.keys.name(level, key, places).0).copied());
            if let Some(number) = number {
                curves[number].iter_mut().zip(curve).for_each(|(sum, bytes)| *sum += bytes);
            }
        }
        for (line, curve) in lines.iter_mut().zip(curves) {
            line.curve = Some(curve.iter().map(|&bytes| bytes as u64).collect());
        }
    }
}

/// The run in buckets of the same number of calls and returns. Each list has a number for each bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The clock at the end of the bucket.
    pub ticks: Vec<u64>,
    /// Bytes allocated by then.
    pub bytes: Vec<u64>,
    /// Wall time by then, in nanoseconds since the start of the run; `None` if the trace has no times.
    pub nanos: Option<Vec<u64>>,
    /// Bytes alive at the end of the bucket.
    pub live: Vec<u64>,
    pub live_objects: Vec<u64>,
    /// Bytes allocated in the bucket.
    pub allocated: Vec<u64>,
    /// Bytes that died in it.
    pub died: Vec<u64>,
}

/// Sums of a bucket.
#[derive(Clone, Copy, Default)]
struct Bucket {
    born: Amount,
    died: Amount,
    bytes: u64,
    nanos: u64,
}

/// The whole run in so many buckets, or fewer if it has fewer ticks.
///
/// # Errors
/// The life table cannot be read.
pub fn timeline(population: &Population, buckets: usize) -> io::Result<Timeline> {
    let end = population.end;
    // What happens at the last tick is in the last bucket.
    let ticks = end.tick + 1;
    let buckets = buckets.max(1).min(usize::try_from(ticks).unwrap_or(usize::MAX));
    let bucket = |tick: u64| (part_of(tick, buckets as u64, ticks).0 as usize).min(buckets - 1);
    let columns = Columns::KIND
        | Columns::SIZE
        | Columns::BIRTH_TICK
        | Columns::BIRTH_BYTES
        | Columns::BIRTH_NANOS
        | Columns::DEATH_TICK
        | Columns::DEATH_KIND
        | Columns::DEATH_BYTES
        | Columns::DEATH_NANOS;
    let (all, initial) = fold(
        population,
        columns,
        || (vec![Bucket::default(); buckets], Amount::default()),
        |(all, initial), rows| {
            for row in 0..rows.len {
                if rows.kind[row] == AllocKind::Initial {
                    *initial += Amount::of(rows, row);
                } else {
                    let bucket = &mut all[bucket(rows.birth_tick[row])];
                    bucket.born += Amount::of(rows, row);
                    bucket.bytes = bucket.bytes.max(rows.birth_bytes[row]);
                    bucket.nanos = bucket.nanos.max(rows.birth_nanos[row].unwrap_or(0));
                }
                if let Some(tick) = died_at(rows, row) {
                    let bucket = &mut all[bucket(tick)];
                    bucket.died += Amount::of(rows, row);
                    bucket.bytes = bucket.bytes.max(rows.death_bytes[row].unwrap_or(0));
                    bucket.nanos = bucket.nanos.max(rows.death_nanos[row].unwrap_or(0));
                }
            }
        },
        |(mut one, mut initial), (other, more)| {
            initial += more;
            for (sum, bucket) in one.iter_mut().zip(other) {
                sum.born += bucket.born;
                sum.died += bucket.died;
                sum.bytes = sum.bytes.max(bucket.bytes);
                sum.nanos = sum.nanos.max(bucket.nanos);
            }
            (one, initial)
        },
    )?;
    let mut line = Timeline { nanos: end.nanos.map(|_| Vec::new()), ..Timeline::default() };
    let (mut live, mut bytes, mut nanos) = (initial, 0, 0);
    for (number, bucket) in all.iter().enumerate() {
        live += bucket.born;
        live.bytes = live.bytes.saturating_sub(bucket.died.bytes);
        live.objects = live.objects.saturating_sub(bucket.died.objects);
        (bytes, nanos) = (bucket.bytes.max(bytes), bucket.nanos.max(nanos));
        let is_last = number + 1 == buckets;
        line.ticks.push((u128::from(ticks) * (number as u128 + 1)).div_ceil(buckets as u128) as u64);
        line.bytes.push(if is_last { end.bytes } else { bytes });
        if let Some(all) = &mut line.nanos {
            all.push(if is_last { end.nanos.unwrap_or(nanos).max(nanos) } else { nanos });
        }
        line.live.push(live.bytes);
        line.live_objects.push(live.objects);
        line.allocated.push(bucket.born.bytes);
        line.died.push(bucket.died.bytes);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::part_of;

    #[test]
    fn parts_are_the_same_by_64_and_by_128_bits() {
        for (tick, parts, whole) in
            [(0, 7, 10), (9, 7, 10), (10, 7, 10), (u64::MAX, 400, u64::MAX), (u64::MAX / 3, 24, u64::MAX), (5, 1, 5)]
        {
            let product = u128::from(tick) * u128::from(parts);
            let (part, is_exact) = part_of(tick, parts, whole);
            assert_eq!(u128::from(part), product / u128::from(whole), "{tick} {parts} {whole}");
            assert_eq!(u128::from(part) + u128::from(!is_exact), product.div_ceil(u128::from(whole)));
        }
    }
}
