//! When the most bytes were alive, from rows alone.
//!
//! What is alive grows with each birth and shrinks with each death, so it is highest just before a death or at the end.
//! Then it is what was there when tracing began, and what was made by then (`death_bytes`), less all that died before.
//! So the deaths are gone through in the order of `death_bytes`; of those with the same bytes the order does not matter,
//! since only the first has the highest sum. Rows of the dead come in this order, but for a few at most: those that are
//! late are sorted in.

use std::io;

use et_names::MethodId;
use rustc_hash::FxHashSet;

use super::Amount;
use crate::fold::fold_groups;
use et_reader::attribution::NONE;
use et_reader::model::ContextId;
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::AllocKind;

/// The most bytes that were alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeakTally {
    pub live: Amount,
    pub tick: u64,
    /// Bytes allocated by then.
    pub made_bytes: u64,
    /// The innermost method outside the JDK that made the object that came last, or the innermost of all.
    pub caller: MethodId,
}

/// A death: how much had been made by then, and how much died.
#[derive(Clone, Copy, Debug)]
struct Death {
    made: u64,
    size: u64,
}

/// The columns that deaths are read from.
const DEATHS: [Columns; 2] = [Columns::DEATH_BYTES, Columns::SIZE];

fn deaths(rows: &Rows) -> impl Iterator<Item = Death> + '_ {
    rows.death_bytes.iter().zip(&rows.size).filter_map(|(made, &size)| Some(Death { made: (*made)?, size }))
}

/// A moment: how much had been made by then, and what had died.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    made: u64,
    died: Amount,
}

impl Moment {
    /// What is alive, without what was there when tracing began: that may have died, too.
    fn live(&self) -> i128 {
        i128::from(self.made) - i128::from(self.died.bytes)
    }
}

/// Deaths one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    died: Amount,
    /// The first moment with the most bytes.
    most: Option<Moment>,
}

impl Walk {
    fn look(&mut self, moment: Moment) {
        if self.most.is_none_or(|most| moment.live() > most.live()) {
            self.most = Some(moment);
        }
    }

    fn death(&mut self, death: Death) {
        self.look(Moment { made: death.made, died: self.died });
        self.died.add(death.size);
    }

    /// Others follow.
    fn append(&mut self, other: &Self) {
        if let Some(Moment { made, mut died }) = other.most {
            died += self.died;
            self.look(Moment { made, died });
        }
        self.died += other.died;
    }
}

/// The deaths of a group of rows.
#[derive(Debug)]
pub(super) struct Course {
    group: usize,
    /// How much had been made at the first and at the last of them that are in order.
    first: u64,
    last: u64,
    /// Of those before the group, at the last.
    after: u64,
    in_order: Walk,
    /// Those before which less had been made than before others that precede them.
    late: Vec<Death>,
    /// Whether the group has objects that are alive at the end as well.
    has_alive: bool,
}

impl Course {
    /// Of a group without any: `None`.
    pub fn of(group: usize, rows: &Rows) -> Option<Self> {
        rows.death_bytes.iter().any(Option::is_some).then(|| Self::after(group, rows, 0))
    }

    fn after(group: usize, rows: &Rows, after: u64) -> Self {
        let mut course = Self {
            group,
            first: after,
            last: after,
            after,
            in_order: Walk::default(),
            late: Vec::new(),
            has_alive: rows.death_bytes.iter().any(Option::is_none),
        };
        for death in deaths(rows) {
            if death.made < course.last {
                course.late.push(death);
                continue;
            }
            if course.in_order.most.is_none() {
                course.first = death.made;
            }
            course.last = death.made;
            course.in_order.death(death);
        }
        course
    }
}

/// Goes through all deaths, whose groups may come in any order.
fn most(population: &Population, mut courses: Vec<Course>) -> io::Result<Moment> {
    let read = |group| population.groups.read(group, DEATHS[0] | DEATHS[1]);
    courses.sort_unstable_by_key(|course| course.group);
    let (mut late, mut last) = (Vec::new(), 0);
    for course in &mut courses {
        if course.first < last {
            *course = Course::after(course.group, &read(course.group)?, last);
        }
        course.after = last;
        last = last.max(course.last);
        late.append(&mut course.late);
    }
    late.sort_by_key(|death| death.made);
    let mut late = late.into_iter().peekable();
    let mut walk = Walk::default();
    for course in &courses {
        while let Some(death) = late.next_if(|death| death.made <= course.first) {
            walk.death(death);
        }
        if late.peek().is_none_or(|death| death.made >= course.last) {
            walk.append(&course.in_order);
            continue;
        }
        let mut last = course.after;
        for death in deaths(&read(course.group)?).filter(|death| {
            let is_in_order = death.made >= last;
            last = last.max(death.made);
            is_in_order
        }) {
            while let Some(late) = late.next_if(|late| late.made <= death.made) {
                walk.death(late);
            }
            walk.death(death);
        }
    }
    late.for_each(|death| walk.death(death));
    walk.look(Moment { made: population.end.bytes, died: walk.died });
    Ok(walk.most.unwrap_or_default())
}

/// The object that was allocated last before a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Birth {
    /// Objects that were there when tracing began count as allocated then.
    is_traced: bool,
    number: u64,
    tick: u64,
    context: ContextId,
}

/// Finds the birth with which that much had been made; in these groups.
fn birth(population: &Population, groups: &[usize], made: u64) -> io::Result<Option<Birth>> {
    // An object of no size changes nothing.
    let is_it = |rows: &Rows, at: usize| rows.birth_bytes[at] == made && rows.size[at] > 0;
    let bytes = Columns::BIRTH_BYTES | Columns::SIZE;
    let there: Vec<usize> = fold_groups(
        &*population.groups,
        groups,
        bytes,
        Vec::new,
        |there, group, rows| there.extend((0..rows.len).any(|at| is_it(rows, at)).then_some(group)),
        |mut one, other| {
            one.extend(other);
            one
        },
    )?;
    let mut found = None;
    for group in there {
        let columns = bytes | Columns::NUMBER | Columns::KIND | Columns::BIRTH_TICK | Columns::CONTEXT;
        let rows = population.groups.read(group, columns)?;
        let births = (0..rows.len).filter(|&at| is_it(&rows, at)).map(|at| Birth {
            is_traced: rows.kind[at] != AllocKind::Initial,
            number: rows.number[at],
            tick: rows.birth_tick[at],
            context: rows.context[at],
        });
        found = found.max(births.max());
    }
    Ok(found)
}

impl PeakTally {
    /// Finds it, given the courses of all groups, what was there when tracing began, and which method counts in a context.
    pub fn find(
        population: &Population,
        courses: Vec<Course>,
        initial: Amount,
        nearest: impl Fn(ContextId) -> MethodId,
    ) -> io::Result<Self> {
        let dead = courses.iter().filter(|course| !course.has_alive);
        let ends: Vec<(usize, u64)> = dead.map(|course| (course.group, course.last)).collect();
        let Moment { made, died } = most(population, courses)?;
        let bytes = initial.bytes.saturating_add(made).saturating_sub(died.bytes);
        // The object that brought it there died later, if at all.
        let over: FxHashSet<usize> =
            ends.into_iter().filter(|(_, last)| *last < made).map(|(group, _)| group).collect();
        let groups: Vec<usize> = (0..population.groups.len()).filter(|group| !over.contains(group)).collect();
        let birth = if bytes > 0 { birth(population, &groups, made)? } else { None };
        Ok(match birth {
            Some(Birth { number, tick, context, .. }) => {
                let objects = number.saturating_add(1).saturating_sub(died.objects);
                Self { live: Amount { objects, bytes }, tick, made_bytes: made, caller: nearest(context) }
            }
            None => Self { live: Amount { objects: 0, bytes }, tick: 0, made_bytes: 0, caller: NONE },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use et_reader::lifetimes::HeldByStack;
    use et_reader::model::Contexts;
    use et_reader::population::{self, Groups};
    use et_reader::resolve::Lost;
    use et_reader::types::Types;
    use proptest::prelude::*;

    use super::*;

    /// Rows in memory.
    struct Table(Vec<Rows>);

    impl Groups for Table {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn read(&self, group: usize, _: Columns) -> io::Result<Rows> {
            Ok(self.0[group].clone())
        }

        fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
            Ok(Vec::new())
        }
    }

    /// An object: its size, and when it was allocated and died, in bytes allocated by then.
    #[derive(Clone, Copy, Debug)]
    struct Life {
        number: u64,
        size: u64,
        birth: u64,
        death: Option<u64>,
    }

    fn table(lives: &[Life], in_group: usize) -> Population {
        let rows = |lives: &[Life]| Rows {
            len: lives.len(),
            number: lives.iter().map(|life| life.number).collect(),
            kind: vec![AllocKind::New; lives.len()],
            size: lives.iter().map(|life| life.size).collect(),
            context: vec![ContextId::EMPTY; lives.len()],
            birth_tick: lives.iter().map(|life| life.number).collect(),
            birth_bytes: lives.iter().map(|life| life.birth).collect(),
            death_bytes: lives.iter().map(|life| life.death).collect(),
            ..Rows::default()
        };
        Population {
            groups: Box::new(Table(lives.chunks(in_group).map(rows).collect())),
            objects: lives.len() as u64,
            contexts: Contexts::default(),
            types: Arc::new(Types::default()),
            has_deaths: true,
            has_uses: true,
            survival: None,
            end: population::Moment { tick: 0, bytes: lives.iter().map(|life| life.size).sum(), nanos: None },
            lost: Lost::default(),
            warnings: Vec::new(),
        }
    }

    fn find(population: &Population) -> PeakTally {
        let groups = 0..population.groups.len();
        let courses =
            groups.filter_map(|group| Course::of(group, &population.groups.read(group, Columns::ALL).unwrap()));
        PeakTally::find(population, courses.collect(), Amount::default(), |_| NONE).unwrap()
    }

    /// Objects that are allocated one after the other, with their sizes; each dies so many births later, if there are as
    /// many.
    fn lives(all: &[(u64, usize)]) -> Vec<Life> {
        let mut made = 0;
        let births: Vec<u64> = all
            .iter()
            .map(|(size, _)| {
                made += size;
                made
            })
            .collect();
        let life = |(index, &(size, later)): (usize, &(u64, usize))| Life {
            number: index as u64,
            size,
            birth: births[index],
            death: births.get(index + later).copied(),
        };
        let mut lives: Vec<Life> = all.iter().enumerate().map(life).collect();
        lives.sort_by_key(|life| (life.death.is_none(), life.death, life.number));
        lives
    }

    /// What is alive is looked at after each birth.
    fn expected(lives: &[Life]) -> PeakTally {
        let mut by_birth = lives.to_vec();
        by_birth.sort_by_key(|life| life.number);
        let mut peak = PeakTally { live: Amount::default(), tick: 0, made_bytes: 0, caller: NONE };
        for (index, birth) in by_birth.iter().enumerate() {
            let mut live = Amount::default();
            let is_alive = |life: &&Life| life.death.is_none_or(|death| death >= birth.birth);
            by_birth[..=index].iter().filter(is_alive).for_each(|life| live.add(life.size));
            if live.bytes > peak.live.bytes {
                peak = PeakTally { live, tick: birth.number, made_bytes: birth.birth, caller: NONE };
            }
        }
        peak
    }

    #[test]
    fn the_first_of_equal_peaks_counts() {
        let population = table(&lives(&[(10, 0), (10, 0), (10, 9)]), 2);
        let peak = find(&population);
        assert_eq!((peak.live.bytes, peak.tick, peak.made_bytes), (10, 0, 10));
    }

    #[test]
    fn nothing_is_no_peak() {
        assert_eq!(find(&table(&[], 2)).live, Amount::default());
        assert_eq!(find(&table(&lives(&[(0, 0), (0, 1)]), 1)).live, Amount::default());
    }

    proptest! {
        /// In any order of the rows of the dead.
        #[test]
        fn late_rows_are_sorted_in(
            all in prop::collection::vec((1..50u64, 0..20usize), 1..60),
            late in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
            in_group in 1..9usize,
        ) {
            let mut lives = lives(&all);
            let expected = expected(&lives);
            prop_assert_eq!(find(&table(&lives, in_group)), expected);
            let mut dead = lives.iter().take_while(|life| life.death.is_some()).count();
            let mut section = Vec::new();
            for index in late.into_iter().take(dead) {
                section.push(lives.remove(index.index(dead)));
                dead -= 1;
            }
            section.sort_by_key(|life| life.death);
            lives.splice(dead..dead, section);
            prop_assert_eq!(find(&table(&lives, in_group)), expected);
            lives[..].reverse();
            prop_assert_eq!(find(&table(&lives, in_group)), expected);
        }
    }
}
