//! Goes through all objects of a trace on all cores.

use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::hash::Hash;
use std::io;
use std::num::NonZeroUsize;
use std::ops::AddAssign;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use et_reader::population::{Columns, Groups, Population, Rows};
use et_system::threads::{on_all_cores, spawn_scoped};
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
    fold_read(groups, |group| all.read(group, columns), new, each, merge)
}

/// The same with rows that `read` returns.
pub fn fold_read<T: Send>(
    groups: &[usize],
    read: impl Fn(usize) -> io::Result<Rows> + Sync + Send,
    new: impl Fn() -> T + Sync + Send,
    each: impl Fn(&mut T, usize, &Rows) + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> io::Result<T> {
    // A part for each thread: merging costs as much as what was taken in has kinds.
    let part = groups.len().div_ceil(available_parallelism().map_or(1, NonZeroUsize::get)).max(1);
    let parts: Vec<&[usize]> = groups.chunks(part).collect();
    let fold_part = |(): &mut (), number: usize| {
        let mut sum = new();
        for &group in parts[number] {
            each(&mut sum, group, &read(group)?);
        }
        Ok::<T, io::Error>(sum)
    };
    let (sums, _) = on_all_cores(parts.len(), 1, || (), fold_part)?;
    Ok(merged(sums, merge).unwrap_or_else(new))
}

/// Merges neighbours until one is left, several pairs at a time.
fn merged<T: Send>(mut sums: Vec<T>, merge: impl Fn(T, T) -> T + Sync) -> Option<T> {
    while sums.len() > 1 {
        let mut rest = sums.into_iter();
        let pairs = std::iter::from_fn(|| Some((rest.next()?, rest.next())));
        let pairs: Vec<_> = pairs.map(|pair| Mutex::new(Some(pair))).collect();
        let merge_pair = |(): &mut (), number: usize| {
            let pair = pairs[number].lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok::<_, Infallible>(pair.map(|(one, other)| match other {
                Some(other) => merge(one, other),
                None => one,
            }))
        };
        let Ok((merged, _)) = on_all_cores(pairs.len(), 1, || (), merge_pair);
        sums = merged.into_iter().flatten().collect();
    }
    sums.pop()
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
    fn neighbours_are_merged_in_order() {
        let join = |one: String, other: String| one + &other;
        for count in [0, 1, 2, 3, 7, 16, 17] {
            let letters: Vec<String> = ('a'..).take(count).map(String::from).collect();
            let together = letters.concat();
            assert_eq!(merged(letters, join), (count > 0).then_some(together));
        }
    }

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
