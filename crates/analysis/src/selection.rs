//! What some threads allocated, or what was allocated in a range of the run: analyses of the rows of objects see these objects alone.

use std::io;
use std::ops::RangeInclusive;

use et_reader::lifetimes::HeldByStack;
use et_reader::population::{Columns, Groups, Key, Population, Rows};
use et_reader::record::{AllocKind, ObjectId, ThreadId};
use et_reader::source::Source;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::fold::fold;
use crate::heap::Moment;
use crate::numbers::Numbers;
use crate::objects::born;
use crate::pattern::fits;
use crate::span::{Bounds, QueryError, Span};

/// Names that are listed at most where a thread is not found.
const NAMES: usize = 12;

/// Which allocations are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Threads that allocated, by their names, in which `*` is any text, or by their numbers; none: all threads.
    pub threads: Vec<String>,
    /// When it was allocated.
    pub span: Span,
}

/// Why there is no selection.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("no thread is named {wanted}, nor is that the number of one; there are: {there}")]
    NoThread { wanted: String, there: String },
}

/// What was selected, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selected {
    /// Names of the threads, or their numbers; none: all threads.
    pub threads: Vec<String>,
    /// `None`: from the start.
    pub from: Option<String>,
    /// `None`: up to the end.
    pub to: Option<String>,
}

impl Selected {
    /// `by main, worker-1 from 40% to 60%`
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.threads.is_empty() {
            let mut names = self.threads.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            if let Some(more) = self.threads.len().checked_sub(NAMES).filter(|&more| more > 0) {
                names += &format!(" and {more} more");
            }
            parts.push(format!("by {names}"));
        }
        parts.extend(self.from.as_ref().map(|from| format!("from {from}")));
        parts.extend(self.to.as_ref().map(|to| format!("to {to}")));
        parts.join(" ")
    }
}

impl Selection {
    /// Whether all allocations are wanted.
    pub fn is_all(&self) -> bool {
        self.threads.is_empty() && self.span.is_all()
    }

    /// Leaves out of a population what is not wanted, what was there when tracing began included. Its number of objects and its end remain
    /// those of the trace, to which numbers and clocks refer.
    ///
    /// # Errors
    /// There is no such thread or range in the trace, or rows do not tell it.
    pub fn of(&self, source: &Source, population: Population) -> Result<(Population, Selected), SelectionError> {
        let born = Bounds::within(&self.span, &population)?;
        let threads = match self.threads.as_slice() {
            [] => None,
            wanted => Some(self::threads(wanted, source)?),
        };
        let text = |moment: &Option<Moment>| moment.as_ref().map(ToString::to_string);
        let mut names: Vec<String> = Vec::new();
        for &thread in threads.iter().flatten() {
            names.push(crate::named::thread(source, thread));
        }
        names.dedup();
        let said = Selected { threads: names, from: text(&self.span.from), to: text(&self.span.to) };
        let threads = threads.map(|threads| threads.into_iter().collect());
        let groups = Box::new(SelectedGroups { all: population.groups, threads, born });
        Ok((Population { groups, ..population }, said))
    }
}

/// The threads that fit, by number.
fn threads(wanted: &[String], source: &Source) -> Result<Vec<ThreadId>, SelectionError> {
    let all = source.trace().map(|trace| &*trace.threads).unwrap_or_default();
    let mut found = Vec::new();
    for pattern in wanted {
        let before = found.len();
        found.extend(all.iter().filter(|thread| fits(pattern, &thread.name)).map(|thread| ThreadId(thread.index)));
        if let Ok(number) = pattern.parse::<u32>() {
            // Texts do not list threads, and traces no virtual ones.
            let may_be = all.is_empty() || number >= FIRST_VIRTUAL || all.iter().any(|thread| thread.index == number);
            found.extend(may_be.then_some(ThreadId(number)));
        }
        if found.len() == before {
            let mut there: Vec<&str> = Vec::new();
            for thread in all.iter().filter(|thread| !thread.name.is_empty()) {
                if !there.contains(&thread.name.as_str()) && there.len() <= NAMES {
                    there.push(&thread.name);
                }
            }
            if there.len() > NAMES {
                there[NAMES] = "…";
            }
            let there = if there.is_empty() { "no names".to_owned() } else { there.join(", ") };
            return Err(SelectionError::NoThread { wanted: pattern.clone(), there });
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Numbers of virtual threads begin here.
const FIRST_VIRTUAL: u32 = 1 << 31;

/// The numbers of all objects of a population.
///
/// # Errors
/// The rows cannot be read.
pub(crate) fn numbers(population: &Population) -> io::Result<Numbers> {
    let each = |numbers: &mut Numbers, rows: &Rows| {
        rows.number.iter().for_each(|&number| _ = numbers.insert(number));
    };
    let merge = |mut one: Numbers, other: Numbers| {
        one.append(&other);
        one
    };
    fold(population, Columns::NUMBER, Numbers::default, each, merge)
}

/// The ids of the objects of a population that are alive at the end.
///
/// # Errors
/// The rows cannot be read.
pub fn alive(population: &Population) -> io::Result<FxHashSet<ObjectId>> {
    let columns = Columns::OBJECT | Columns::DEATH_TICK;
    let each = |ids: &mut FxHashSet<ObjectId>, rows: &Rows| {
        ids.extend((0..rows.len).filter(|&row| rows.death_tick[row].is_none()).map(|row| rows.object[row]));
    };
    let merge = |mut one: FxHashSet<ObjectId>, other| {
        one.extend(other);
        one
    };
    fold(population, columns, FxHashSet::default, each, merge)
}

/// The rows of some objects.
struct SelectedGroups {
    all: Box<dyn Groups>,
    /// `None`: all threads.
    threads: Option<FxHashSet<ThreadId>>,
    born: Bounds,
}

impl SelectedGroups {
    fn has(&self, rows: &Rows, row: usize) -> bool {
        rows.kind[row] != AllocKind::Initial
            && self.threads.as_ref().is_none_or(|threads| threads.contains(&rows.thread[row]))
            && self.born.has(born(rows, row))
    }
}

impl Groups for SelectedGroups {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        self.all.may_have(group, tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        self.all.range(group, key)
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        if !self.born.may_have(&self.all.range(group, Key::BirthTick)?) {
            return Ok(Rows::default());
        }
        let needed = Columns::KIND | Columns::THREAD | self.born.columns();
        let rows = self.all.read(group, columns | needed)?;
        let wanted: Vec<usize> = (0..rows.len).filter(|&row| self.has(&rows, row)).collect();
        Ok(rows.only(&wanted, columns))
    }

    /// What only stacks hold belongs to no thread's allocations.
    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use et_reader::Trace;
    use et_reader::source::Reading;

    use super::*;
    use crate::fold::in_order;
    use crate::profile::profile;
    use crate::summary::{summarize, summarize_selected};
    use crate::testing::REAL;
    use et_reader::amount::Amount;

    fn open() -> (Source, Population) {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let population = et_lives::population(&source, None, Reading::default()).unwrap();
        (source, population)
    }

    fn selection(threads: &[&str], from: Option<&str>, to: Option<&str>) -> Selection {
        let moment = |text: Option<&str>| text.map(|text| text.parse::<Moment>().unwrap());
        let span = Span { from: moment(from), to: moment(to) };
        Selection { threads: threads.iter().map(|&text| text.to_owned()).collect(), span }
    }

    /// What rows say by heart.
    fn by_heart(population: &Population, holds: impl Fn(&Rows, usize) -> bool) -> [Amount; 2] {
        let [mut made, mut alive] = [Amount::default(); 2];
        in_order(population, Columns::ALL, |rows| {
            for row in (0..rows.len).filter(|&row| rows.kind[row] != AllocKind::Initial && holds(rows, row)) {
                made.add(rows.size[row]);
                if rows.death_tick[row].is_none() {
                    alive.add(rows.size[row]);
                }
            }
        })
        .unwrap();
        [made, alive]
    }

    #[test]
    fn only_what_is_selected_is_summed_up() {
        let (source, all) = open();
        let end = all.end;
        let (third, bytes) = (end.tick / 5, end.bytes / 10 * 9);
        let main = |rows: &Rows, row: usize| rows.thread[row] == ThreadId(1);
        let name = crate::named::thread(&source, ThreadId(1));
        let tick = format!("tick:{third}");
        type Holds<'h> = &'h dyn Fn(&Rows, usize) -> bool;
        let cases: [(Selection, Holds<'_>, String); 4] = [
            (selection(&[&name], None, None), &main, format!("by {name}")),
            (
                selection(&[], Some(&tick), None),
                &|rows, row| rows.birth_tick[row] > third,
                format!("from tick:{third}"),
            ),
            (
                selection(&["1"], Some(&tick), Some(&format!("bytes:{bytes}"))),
                &|rows, row| main(rows, row) && rows.birth_tick[row] > third && rows.birth_bytes[row] <= bytes,
                format!("by {name} from tick:{third} to bytes:{bytes}"),
            ),
            (
                selection(&["*"], None, Some("40%")),
                &|rows, row| rows.birth_tick[row] <= (end.tick as f64 * 0.4) as u64 && rows.thread[row].0 != 0,
                String::new(),
            ),
        ];
        let (_, observed) = et_lives::observe(&source, None, Reading::default(), |_, _| {}).unwrap();
        let whole = summarize(&source, &all, &observed, 5).unwrap().allocated;
        for (selection, holds, said) in cases {
            let expected @ [made, alive] = by_heart(&all, holds);
            assert!(made.objects > 0 && made.objects < whole.objects, "{said}: {made:?}");
            let (some, selected) = selection.of(&source, open().1).unwrap();
            assert!(said.is_empty() || selected.text() == said, "{}", selected.text());
            let summary = summarize_selected(&source, &some, &observed, selected, 5).unwrap();
            assert_eq!(summary.allocated, made, "{said}");
            assert_eq!(summary.lifetimes.unwrap().alive_at_end, alive, "{said}");
            assert!(summary.peak.is_none() && summary.grew.is_empty());
            let total = profile(&some, source.naming(), 1 << 20).unwrap().total;
            assert_eq!([total.allocated, total.alive], expected, "{said}");
            assert_eq!(super::alive(&some).unwrap().len() as u64, alive.objects, "{said}");
            assert_eq!(numbers(&some).unwrap().len(), made.objects, "{said}");
        }
    }

    #[test]
    fn parts_of_the_run_are_the_run() {
        let (source, all) = open();
        let [whole, _] = by_heart(&all, |_, _| true);
        for moment in ["tick:1000", "33.3%", "bytes:100000"] {
            let parts = [selection(&[], None, Some(moment)), selection(&[], Some(moment), None)];
            let sums = parts.map(|part| by_heart(&part.of(&source, open().1).unwrap().0, |_, _| true)[0]);
            assert!(sums.iter().all(|sum| sum.objects > 0), "{moment}: {sums:?}");
            let mut sum = sums[0];
            sum += sums[1];
            assert_eq!(sum, whole, "{moment}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let (source, _) = open();
        let refused = |selection: Selection| {
            let refused = selection.of(&source, open().1).map(|_| ());
            refused.unwrap_err().to_string()
        };
        let error = refused(selection(&["nobody"], None, None));
        assert!(
            error.starts_with("no thread is named nobody, nor is that the number of one; there are: main"),
            "{error}"
        );
        assert!(refused(selection(&["77"], None, None)).starts_with("no thread is named 77, "));
        let error = refused(selection(&[], Some("60%"), Some("40%")));
        assert_eq!(error, "60% is not before 40%: give the earlier moment first");
        let error = refused(selection(&[], Some("tick:99999999999"), None));
        assert!(error.starts_with("tick:99999999999 is past the end of the trace"), "{error}");
        let error = refused(selection(&[], Some("method:a.B.c"), None));
        assert!(error.starts_with("method:a.B.c#1: when a method is entered"), "{error}");
    }
}
