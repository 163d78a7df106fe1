//! Goes through all objects of a trace on all cores.

use std::io;

use et_reader::population::{Columns, Groups, Population, Rows};
use et_system::threads::Pool;
use rayon::prelude::*;

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
        // A few large parts: merging costs as much as what was taken in has kinds.
        let part = groups.len().div_ceil(rayon::current_num_threads().max(1)).max(1);
        groups
            .par_iter()
            .with_min_len(part)
            .try_fold(&new, |mut sum, &group| {
                each(&mut sum, group, &all.read(group, columns)?);
                Ok(sum)
            })
            .try_reduce(&new, |one, other| Ok(merge(one, other)))
    })
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

/// As [`fold`], one group after the other: those that died in the order of their deaths.
pub fn in_order(population: &Population, columns: Columns, mut each: impl FnMut(&Rows)) -> io::Result<()> {
    for group in 0..population.groups.len() {
        each(&population.groups.read(group, columns)?);
    }
    Ok(())
}
