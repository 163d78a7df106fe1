//! Goes through all objects of a trace on all cores.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::io;
use std::ops::AddAssign;
use std::sync::mpsc::sync_channel;

use et_reader::population::{Columns, Groups, Population, Rows};
use et_system::threads::{Pool, spawn_scoped};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Folds all groups of rows on several threads: each starts with `new()`, and the results are merged. The order of the
/// groups is unspecified.
pub fn fold<T: Send>(
    population: &Population,
    columns: Columns,
    new: impl Fn() -> T + Sync + Send,
    each: impl Fn(&mut T, &Rows) + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> io::Result<T> {
    let groups: Vec<usize> = (0..population.groups.len()).collect();
    fold_groups(&*population.groups, &groups, columns, new, |sum, _, rows| each(sum, rows), merge)
}

/// The same with some groups, whose numbers `each` gets as well.
pub fn fold_groups<T: Send>(
    all: &dyn Groups,
    groups: &[usize],
    columns: Columns,
    new: impl Fn() -> T + Sync + Send,
    each: impl Fn(&mut T, usize, &Rows) + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> io::Result<T> {
    Pool::shared().run(|| {
        // A part for each thread: merging costs as much as what was taken in has kinds. `with_min_len` would leave an odd number of groups
        // to one of two threads.
        let part = groups.len().div_ceil(rayon::current_num_threads().max(1)).max(1);
        groups
            .par_chunks(part)
            .map(|part| {
                let mut sum = new();
                for &group in part {
                    each(&mut sum, group, &all.read(group, columns)?);
                }
                Ok(sum)
            })
            .try_reduce(&new, |one, other| Ok(merge(one, other)))
    })
}

/// Adds sums to those of the same kinds, to merge what two threads have folded.
pub fn add_all<K: Eq + Hash, V: AddAssign>(to: &mut FxHashMap<K, V>, others: FxHashMap<K, V>) {
    for (kind, sum) in others {
        match to.entry(kind) {
            Entry::Occupied(mut known) => *known.get_mut() += sum,
            Entry::Vacant(new) => _ = new.insert(sum),
        }
    }
}

/// The groups for which `may_have` holds: those that are worth reading.
pub fn groups_where(all: &dyn Groups, may_have: impl Fn(usize) -> io::Result<bool>) -> io::Result<Vec<usize>> {
    let mut groups = Vec::new();
    for group in 0..all.len() {
        if may_have(group)? {
            groups.push(group);
        }
    }
    Ok(groups)
}

/// As [`fold`], one group after the other: those that died in the order of their deaths. While `each` has one, the next are read.
pub fn in_order(population: &Population, columns: Columns, mut each: impl FnMut(&Rows)) -> io::Result<()> {
    let groups = &*population.groups;
    let mut numbers = 0..groups.len();
    let mut next = || Some(groups.read(numbers.next()?, columns));
    ahead(2, &mut next, |rows| {
        each(&rows?);
        Ok(())
    })
}

/// Passes on what `next` returns, which is called on a thread of its own meanwhile. `most` is the maximum number of items that wait, besides
/// the one that was made last. Not to be called from within the shared pool, which `next` may use.
///
/// # Errors
/// That of `take`, after which the item being made is the last, and is dropped.
pub fn ahead<T: Send, E>(
    most: usize,
    next: &mut (impl FnMut() -> Option<T> + Send),
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let is_done = std::thread::scope(|scope| {
        let (send, made) = sync_channel(most);
        let make = || {
            let send = send;
            while let Some(item) = next() {
                if send.send(item).is_err() {
                    break;
                }
            }
        };
        let Ok(making) = spawn_scoped(scope, make) else { return Ok(false) };
        made.iter().try_for_each(&mut take)?;
        making.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(true)
    })?;
    // There is no other thread.
    match is_done {
        true => Ok(()),
        false => std::iter::from_fn(next).try_for_each(take),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_taken_in_order_until_an_error() {
        for (stops_at, expected) in [(100, 50), (7, 8), (0, 1)] {
            let (mut numbers, mut taken) = (0..50, Vec::new());
            let done = ahead(stops_at % 3, &mut || numbers.next(), |number| {
                taken.push(number);
                if number == stops_at { Err(number) } else { Ok(()) }
            });
            assert_eq!(done.err(), (stops_at < 50).then_some(stops_at));
            assert_eq!(taken, (0..expected).collect::<Vec<_>>());
        }
    }
}
