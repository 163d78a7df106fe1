//! Where what changed is allocated: a flame graph over all runs.

use std::ops::AddAssign;

use super::{Change, Differ, Numbers};
use crate::flame::{self, Flame, FrameKind, FrameName, Parts};
use et_reader::amount::Amount;

/// The values of a context. Increases and decreases of different callers do not cancel out: both are kept.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    after: Amount,
    before: Amount,
    more: Amount,
    less: Amount,
}

impl AddAssign for Sides {
    fn add_assign(&mut self, other: Self) {
        self.after += other.after;
        self.before += other.before;
        self.more += other.more;
        self.less += other.less;
    }
}

impl Parts for Sides {
    fn all(&self) -> impl Iterator<Item = Amount> {
        [self.after, self.before, self.more, self.less].into_iter()
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Everything that was allocated.
    Allocated,
    /// Everything alive at the end.
    Alive,
}

impl Differ {
    /// Flame graph from the outermost method to the class, with four parts: after, before, increase, decrease. With
    /// several runs on a side, changes within the variation between them count neither as increase nor as decrease.
    pub fn flame(&self, counted: Counted) -> Flame {
        let amount = |numbers: &Numbers| match counted {
            Counted::Allocated => numbers.allocated,
            Counted::Alive => numbers.alive,
        };
        let has_several = self.has_several();
        let leaves: Vec<((u32, u32), Sides)> = self
            .keys_of(|run| &run.contexts)
            .into_iter()
            .map(|key| {
                let of = |number: &dyn Fn(Amount) -> u64| {
                    self.change(|run| run.contexts.get(&key).map_or(0, |numbers| number(amount(numbers))))
                };
                let (bytes, objects) = (of(&|amount| amount.bytes), of(&|amount| amount.objects));
                (key, sides(&bytes, &objects, has_several))
            })
            .collect();
        let method = |name: u32| (self.kinds.get(&name).copied().unwrap_or(FrameKind::Library), name);
        // The chains are those of all contexts but the empty one.
        let chains = self.keys.chains();
        let context = |index: u32| {
            let (caller, name) = chains[index as usize - 1];
            (caller, method(name))
        };
        let leaves = leaves.iter().map(|&((context, class), sides)| ((context, (FrameKind::Class, class)), sides));
        flame::by_context((FrameKind::Root, 0), chains.len() as u32 + 1, context, leaves).finish(|(kind, name)| {
            match kind {
                FrameKind::Root => flame::root(),
                kind => FrameName { name: self.keys.text(name).to_owned(), kind },
            }
        })
    }
}

fn sides(bytes: &Change, objects: &Change, has_several: bool) -> Sides {
    let amount = |of: &dyn Fn(&Change) -> u64| Amount { objects: of(objects), bytes: of(bytes) };
    let beyond = |change: &Change, by: i64| if change.is_noise(has_several) { 0 } else { by.max(0).cast_unsigned() };
    Sides {
        after: amount(&|change| change.after.median),
        before: amount(&|change| change.before.median),
        more: amount(&|change| beyond(change, change.by())),
        less: amount(&|change| beyond(change, -change.by())),
    }
}
