//! What changed between runs: bytes and objects by class, by site and by calling context. Items are matched by name,
//! whatever their id, line, or number assigned by the VM.

mod condition;
mod keys;
mod render;
mod stacks;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::io;

use et_names::MethodId;
use et_reader::made_in::MadeIn;
use et_reader::model::ContextId;
use et_reader::owners::Owners;
use et_reader::population::{Columns, Population, Rows};
use et_reader::source::Source;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::flame::FrameKind;
use crate::fold::fold;
use crate::labels::Labels;
use crate::profile::profile;
pub use condition::{BadCondition, Condition};
use et_reader::amount::Amount;
use keys::{Keys, stable};
pub use render::{more, more_bytes, relative, render, spread};
pub use stacks::Counted;

/// The numbers that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    /// Allocated while tracing was on.
    pub allocated: Amount,
    /// Objects alive at the end.
    pub alive: Amount,
}

/// A run, as far as it is compared.
#[derive(Debug, Default)]
struct Run {
    total: Numbers,
    /// The most bytes that were alive.
    peak: u64,
    classes: FxHashMap<u32, Numbers>,
    /// By method and class.
    sites: FxHashMap<(u32, u32), Numbers>,
    /// By context and class.
    contexts: FxHashMap<(u32, u32), Numbers>,
}

/// Takes runs, and compares those before with those after.
#[derive(Debug, Default)]
pub struct Differ {
    keys: Keys,
    /// Whose code each method is, by the number of its name.
    kinds: FxHashMap<u32, FrameKind>,
    sides: [Vec<Run>; 2],
}

/// Which runs are compared with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The runs before the change.
    Before,
    /// The runs after the change.
    After,
}

/// A number in the runs of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: u64,
    pub min: u64,
    pub max: u64,
}

impl Spread {
    fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else { return Self::default() };
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => values[middle - 1].midpoint(values[middle]),
        };
        Self { median, min, max }
    }

    fn overlaps(self, other: Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

/// One number before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// In the runs before.
    pub before: Spread,
    /// In the runs after.
    pub after: Spread,
}

impl Change {
    /// How much more there is after.
    pub fn by(&self) -> i64 {
        let [before, after] =
            [self.before.median, self.after.median].map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        after - before
    }

    /// Whether runs of one side differ by as much.
    fn is_noise(&self, has_several: bool) -> bool {
        has_several && self.before.overlaps(self.after)
    }
}

/// All numbers of something, before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    pub bytes: Change,
    pub objects: Change,
    pub alive_bytes: Change,
    pub alive_objects: Change,
}

/// An item with changed numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    #[serde(rename = "type")]
    pub ty: String,
    /// The method that allocates; none of a class.
    pub method: Option<String>,
    /// The methods that called it, innermost first; none but of a context.
    pub callers: Option<Vec<String>>,
    #[serde(flatten)]
    pub changes: Changes,
}

/// The comparison by one kind of key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Table {
    /// Changed items, largest change first.
    pub lines: Vec<Line>,
    /// Number of changed items.
    pub changed: usize,
    /// How many there are, changed or not.
    pub all: usize,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Number of runs before and after.
    pub runs: [usize; 2],
    /// Changes smaller than that share of all bytes allocated, or alive, are not listed.
    pub least_share: f64,
    pub total: Changes,
    /// The most bytes alive, to within a thousandth of the run.
    pub peak_bytes: Change,
    /// By class.
    pub classes: Table,
    /// By method and class.
    pub sites: Table,
    /// By calling context and class.
    pub contexts: Table,
}

/// Which changes are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Show {
    /// Minimum change to be listed, as a fraction of all bytes.
    pub least_share: f64,
    /// Maximum number of lines per table.
    pub top: usize,
    /// Only what has this in its class or in one of its methods.
    pub matching: Option<String>,
}

/// Points at which the peak is looked for.
const POINTS: usize = 1024;

/// The most bytes alive at a number of points of the run.
fn peak(population: &Population) -> io::Result<u64> {
    let end = population.end.bytes.max(1);
    let point = |bytes: u64| (u128::from(bytes.min(end)) * (POINTS as u128 - 1) / u128::from(end)) as usize;
    let columns = Columns::SIZE | Columns::BIRTH_BYTES | Columns::DEATH_BYTES;
    let each = |changes: &mut Vec<i64>, rows: &Rows| {
        for row in 0..rows.len {
            let size = i64::try_from(rows.size[row]).unwrap_or(i64::MAX);
            changes[point(rows.birth_bytes[row])] += size;
            if let Some(died) = rows.death_bytes[row] {
                // An object that dies before the next sample point is alive at none.
                changes[point(died)] -= size;
            }
        }
    };
    let merge = |mut one: Vec<i64>, other: Vec<i64>| {
        one.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
        one
    };
    let changes = fold(population, columns, || vec![0i64; POINTS], each, merge)?;
    let mut live = 0i64;
    let most = changes.into_iter().map(|change| {
        live += change;
        live
    });
    Ok(most.max().map_or(0, |most| u64::try_from(most).unwrap_or(0)))
}

impl Numbers {
    fn add(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.alive += other.alive;
    }
}

impl Differ {
    pub fn add(&mut self, side: Side, source: &Source, population: &Population) -> io::Result<()> {
        let mut run = Run { peak: peak(population)?, ..Run::default() };
        let (labels, mut owners) = (Labels::of(source, population), Owners::of(source));
        let (keys, kinds) = (&mut self.keys, &mut self.kinds);
        let mut name = |keys: &mut Keys, method: MethodId| {
            let name = keys.name(&labels.method(method));
            kinds.entry(name).or_insert_with(|| owners.place(method).into());
            name
        };
        // Contexts of the trace as those that all runs share, callers first.
        let mut contexts: Vec<u32> = Vec::with_capacity(population.contexts.len());
        let mut methods: FxHashMap<u32, u32> = FxHashMap::default();
        for (id, context) in population.contexts.iter() {
            let shared = if id == ContextId::EMPTY {
                0
            } else {
                let method = *methods.entry(context.method.0).or_insert_with(|| name(keys, context.method));
                keys.call(contexts[context.caller.0 as usize], method)
            };
            contexts.push(shared);
        }
        let mut classes: FxHashMap<u32, u32> = FxHashMap::default();
        let mut places: FxHashMap<MadeIn, u32> = FxHashMap::default();
        let naming = labels.naming();
        for (origin, cell) in profile(population, naming, 0)?.cells {
            let numbers = Numbers { allocated: cell.allocated, alive: cell.alive };
            let class = *classes.entry(origin.class.0).or_insert_with(|| keys.name(&labels.class(origin.class)));
            let made_in = origin.place.method(naming);
            let method = *places.entry(origin.place).or_insert_with(|| match made_in {
                Some(method) => name(keys, method),
                None => keys.stable_name(origin.place.text(naming)),
            });
            run.total.add(&numbers);
            run.classes.entry(class).or_default().add(&numbers);
            run.sites.entry((method, class)).or_default().add(&numbers);
            let context = contexts[origin.context.0 as usize];
            // The allocating method becomes the innermost if the context does not end with it.
            let is_top = population.contexts.get(origin.context).method;
            let context = match made_in {
                Some(made_in) if made_in != is_top => keys.call(context, method),
                _ => context,
            };
            run.contexts.entry((context, class)).or_default().add(&numbers);
        }
        self.sides[side as usize].push(run);
        Ok(())
    }

    /// Computes the differences. With several runs on a side, a difference counts only if it exceeds the variation
    /// between them.
    pub fn diff(&self, show: &Show) -> Diff {
        let least_share = show.least_share;
        let class = |&class: &u32| (self.keys.text(class).to_owned(), None, None);
        let site = |&(method, class): &(u32, u32)| {
            (self.keys.text(class).to_owned(), Some(self.keys.text(method).to_owned()), None)
        };
        let context = |&(context, class): &(u32, u32)| {
            let mut methods = self.keys.methods(context).into_iter().map(str::to_owned);
            let method = methods.next();
            (self.keys.text(class).to_owned(), method, Some(methods.collect()))
        };
        let total = self.changes(|run| Some(&run.total));
        let least = |change: &Change| {
            let whole = change.before.median.max(change.after.median);
            (whole as f64 * least_share) as i64
        };
        let least = [least(&total.bytes), least(&total.alive_bytes)];
        Diff {
            runs: [self.sides[0].len(), self.sides[1].len()],
            least_share,
            total,
            peak_bytes: self.change(|run| run.peak),
            classes: self.table(|run| &run.classes, least, show, class),
            sites: self.table(|run| &run.sites, least, show, site),
            contexts: self.table(|run| &run.contexts, least, show, context),
        }
    }

    fn has_several(&self) -> bool {
        self.sides.iter().any(|runs| runs.len() > 1)
    }

    /// The changes of one class, by its name; `None`: no run has objects of it.
    fn of_class(&self, name: &str) -> Option<Changes> {
        let class = self.keys.find(&stable(name))?;
        let is_class = self.sides.iter().flatten().any(|run| run.classes.contains_key(&class));
        is_class.then(|| self.changes(|run| run.classes.get(&class)))
    }

    /// The most similar class name in any run: without the package, or with different case.
    pub fn class_like(&self, name: &str) -> Option<&str> {
        let simple = |name: &str| name.rsplit(['.', '$', '/']).next().unwrap_or(name).to_lowercase();
        let wanted = simple(name);
        let classes = self.sides.iter().flatten().flat_map(|run| run.classes.keys());
        classes.map(|&class| self.keys.text(class)).filter(|class| simple(class) == wanted).min()
    }

    /// Whether anything that is compared has a class or a method with that in its name.
    pub fn has_name_with(&self, text: &str) -> bool {
        self.keys.texts().any(|name| name.contains(text))
    }

    fn change(&self, of: impl Fn(&Run) -> u64) -> Change {
        let spread = |runs: &[Run]| Spread::of(runs.iter().map(&of).collect());
        Change { before: spread(&self.sides[0]), after: spread(&self.sides[1]) }
    }

    fn changes<'a>(&'a self, of: impl Fn(&'a Run) -> Option<&'a Numbers>) -> Changes {
        let change = |number: &dyn Fn(&Numbers) -> u64| {
            let spread = |runs: &'a [Run]| Spread::of(runs.iter().map(|run| of(run).map_or(0, number)).collect());
            Change { before: spread(&self.sides[0]), after: spread(&self.sides[1]) }
        };
        Changes {
            bytes: change(&|numbers| numbers.allocated.bytes),
            objects: change(&|numbers| numbers.allocated.objects),
            alive_bytes: change(&|numbers| numbers.alive.bytes),
            alive_objects: change(&|numbers| numbers.alive.objects),
        }
    }

    /// All that any of the runs has, in order.
    fn keys_of<'a, K: Ord + Copy + 'a>(&'a self, of: impl Fn(&'a Run) -> &'a FxHashMap<K, Numbers>) -> Vec<K> {
        let mut keys: Vec<K> = self.sides.iter().flatten().flat_map(|run| of(run).keys().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn table<'a, K: std::hash::Hash + Eq + Ord + Copy + 'a>(
        &'a self,
        of: impl Fn(&'a Run) -> &'a FxHashMap<K, Numbers>,
        least: [i64; 2],
        show: &Show,
        name: impl Fn(&K) -> (String, Option<String>, Option<Vec<String>>),
    ) -> Table {
        let keys = self.keys_of(&of);
        let all = keys.len();
        let has_several = self.has_several();
        let counts = |change: &Change, least: i64| change.by().abs() >= least.max(1) && !change.is_noise(has_several);
        let mut changed: Vec<(K, Changes)> = keys
            .into_iter()
            .map(|key| (key, self.changes(|run| of(run).get(&key))))
            .filter(|(_, changes)| counts(&changes.bytes, least[0]) || counts(&changes.alive_bytes, least[1]))
            .collect();
        if let Some(text) = &show.matching {
            changed.retain(|(key, _)| {
                let (ty, method, callers) = name(key);
                [Some(ty), method]
                    .into_iter()
                    .flatten()
                    .chain(callers.into_iter().flatten())
                    .any(|name| name.contains(text))
            });
        }
        let weight = |changes: &Changes| changes.bytes.by().unsigned_abs().max(changes.alive_bytes.by().unsigned_abs());
        changed.sort_by_key(|(key, changes)| (Reverse(weight(changes)), *key));
        let count = changed.len();
        changed.truncate(show.top);
        let lines = changed
            .into_iter()
            .map(|(key, changes)| {
                let (ty, method, callers) = name(&key);
                Line { ty, method, callers, changes }
            })
            .collect();
        Table { lines, changed: count, all }
    }
}
