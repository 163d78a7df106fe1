//! Leak suspects: objects that retain more and more up to the end of the run.
//!
//! Retained sizes are computed several times in the second half of the run. An object grows if it retains more each
//! time, and at the end still at a third of the mean rate or more; an object that is filled once, or that discards as
//! much as it adds, does not grow. If one such object dominates another, each is accounted for what the other does not
//! retain, so that independent leaks are reported separately, however close they are.

use et_names::FieldId;
use et_reader::blocks::glimpse::SHARES;
use et_reader::model::Node;
use et_reader::record::ObjectId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::dominators::NONE;
use super::retained::Dominance;
use super::snapshot::{ClassNumber, RootKind, Snapshot, Via};
use et_names::SiteId;

/// Thousandths of the run at which the heap is looked at before its end: of its events, or of its calls and returns.
pub const LOOKS: [u64; 3] = SHARES;

/// Bytes at each look, and at the end.
pub type Course = [u64; LOOKS.len() + 1];

/// Objects that retain less than one in this many of the heap are not kept for earlier moments.
const LEAST_KEPT: u64 = 1000;
/// It counts as growth if it amounts to this share of what exists at the end.
const LEAST_GROWN: u64 = 10;
/// Slower than that part of the mean pace is standing still.
const PACE: f64 = 3.0;
/// Dominators that are asked whether they are of the same class.
const ABOVE: usize = 256;

/// What is retained at each look and at the end, and at the moment at which most was alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    course: Course,
    peak: u64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.course.iter_mut().zip(other.course).for_each(|(sum, other)| *sum += other);
        self.peak += other.peak;
    }

    /// What is left of it without what others retain.
    fn without(mut self, other: &Self) -> Self {
        self.course.iter_mut().zip(other.course).for_each(|(rest, other)| *rest = rest.saturating_sub(other));
        self.peak = self.peak.saturating_sub(other.peak);
        self
    }
}

/// Where the looks and the end are in the run, on any scale.
pub type Looks = [u64; LOOKS.len() + 1];

/// Whether bytes grew in the second half of the run, in each part of it, by `least` or more. `looks`: where these parts begin and end.
pub fn grows(course: &Course, looks: &Looks, least: u64) -> bool {
    let (first, last) = (course[0], course[LOOKS.len()]);
    let grown = last.saturating_sub(first);
    if grown == 0 || grown < least || grown * LEAST_GROWN < last {
        return false;
    }
    let half = looks[LOOKS.len()].saturating_sub(looks[0]).max(1);
    looks.windows(2).zip(course.windows(2)).all(|(when, bytes)| {
        let share = when[1].saturating_sub(when[0]) as f64 / half as f64;
        bytes[1].saturating_sub(bytes[0]) as f64 * PACE >= grown as f64 * share
    })
}

/// Retained sizes at an earlier moment.
#[derive(Debug, Default)]
pub struct Look {
    tick: u64,
    objects: FxHashMap<ObjectId, u64>,
    /// By the object that has the slot, null for a static field of a class without a mirror.
    slots: FxHashMap<(ObjectId, FieldId), u64>,
    /// What only the mirror of a class dominates, by descriptor.
    tops: FxHashMap<String, u64>,
}

impl Look {
    /// At a heap. `is_program` says of a field whether it is the program's.
    pub fn at(snapshot: &Snapshot<'_>, dominance: &Dominance, is_program: &mut dyn FnMut(FieldId) -> bool) -> Self {
        let mut look = Self { tick: snapshot.taken().tick, ..Self::default() };
        let root = snapshot.graph().root();
        let least = dominance.retained.get(root as usize).copied().unwrap_or(0) / LEAST_KEPT;
        let owned = Owned::of(snapshot, is_program);
        for &node in dominance.tree.order().iter().filter(|&&node| node != root) {
            let retained = dominance.retained[node as usize];
            let (object, is_top) = (snapshot.object(Node(node)), is_top(snapshot, dominance, node));
            if is_top {
                let descriptor = &snapshot.class(object.class).descriptor;
                match look.tops.get_mut(descriptor) {
                    Some(sum) => *sum += retained,
                    None => _ = look.tops.insert(descriptor.clone(), retained),
                }
            }
            if retained >= least && (is_top || owned.is_owned[node as usize]) {
                look.objects.insert(object.id, retained);
                if let Some(slot) = owned.slot(snapshot, dominance, node, is_program) {
                    look.slots.insert(slot, retained);
                }
            }
        }
        look
    }

    /// What an object retained then; nothing if that was a trifle, or if it was not there.
    fn of_object(&self, id: ObjectId) -> Option<u64> {
        self.objects.get(&id).copied()
    }

    /// What was in a slot and retained something.
    fn of_slot(&self, slot: Option<(ObjectId, FieldId)>) -> Option<u64> {
        self.slots.get(&slot?).copied()
    }
}

/// Whether no other object dominates it. A class may do so through several static fields: it is not a holder itself.
fn is_top(snapshot: &Snapshot<'_>, dominance: &Dominance, node: u32) -> bool {
    let (above, root) = (dominance.tree.above(node), snapshot.graph().root());
    let is_mirror = |node: u32| snapshot.mirrored(Node(node)).is_some();
    (above == root || is_mirror(above)) && !is_mirror(node)
}

/// Objects that a field of the program holds.
struct Owned {
    is_owned: Vec<bool>,
    /// Fields of statics in classes whose mirrors are unknown.
    statics: FxHashMap<u32, FieldId>,
}

impl Owned {
    fn of(snapshot: &Snapshot<'_>, is_program: &mut dyn FnMut(FieldId) -> bool) -> Self {
        let mut is_owned = vec![false; snapshot.len()];
        let mut statics = FxHashMap::default();
        let mut known: FxHashMap<FieldId, bool> = FxHashMap::default();
        let mut is_program = |field| *known.entry(field).or_insert_with(|| is_program(field));
        for (node, object) in snapshot.nodes() {
            if snapshot.class(object.class).is_array {
                continue;
            }
            for (slot, target) in snapshot.graph().slots(node.0) {
                is_owned[target as usize] |= is_program(FieldId(slot));
            }
        }
        for &(field, mirror, target) in snapshot.statics() {
            is_owned[target.0 as usize] |= is_program(field);
            if mirror.is_none() {
                statics.insert(target.0, field);
            }
        }
        Self { is_owned, statics }
    }

    /// The field of the object above in the tree that holds one.
    fn slot(
        &self,
        snapshot: &Snapshot<'_>,
        dominance: &Dominance,
        node: u32,
        is_program: &mut dyn FnMut(FieldId) -> bool,
    ) -> Option<(ObjectId, FieldId)> {
        let above = dominance.tree.above(node);
        if above == NONE || above == snapshot.graph().root() {
            return self.statics.get(&node).map(|&field| (ObjectId::NULL, field));
        }
        let above = Node(above);
        let object = snapshot.object(above);
        if snapshot.class(object.class).is_array {
            return None;
        }
        let fields = snapshot.graph().slots(above.0).filter(|&(_, target)| target == node);
        let mut fields = fields.filter_map(|(slot, _)| match snapshot.via(above, slot) {
            Via::Field(field) | Via::Static(field) => Some(field),
            Via::Element(_) => None,
        });
        fields.find(|&field| is_program(field)).map(|field| (object.id, field))
    }
}

/// Objects of one class in what a holder retains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub class: ClassNumber,
    /// Number of objects.
    pub objects: u64,
    /// Of them those that came in the second half of the run.
    pub new: u64,
    /// What the new ones retain together, without counting anything twice.
    pub retained: u64,
    /// Where most of the new ones were made.
    pub site: SiteId,
}

/// An object that retains more and more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The object; where none dominates what grew, one of those that grew.
    pub node: Node,
    /// Whether it is the object itself that holds what grew.
    pub is_holder: bool,
    /// What it retains, excluding what other reported holders retain; if it is not a holder itself, that of all objects
    /// of its class.
    pub course: Course,
    /// The same at the moment at which most was alive.
    pub at_peak: u64,
    /// What it retains at the end, including other holders.
    pub retained: u64,
    /// Contents, ordered by retained size.
    pub contents: Vec<Content>,
}

/// Finds all holders that have grown by at least this many bytes since the middle of the run, largest growth first. `peak`: the heap when most was
/// alive; `None`: that was at the end.
pub fn grown(
    snapshot: &Snapshot<'_>,
    dominance: &Dominance,
    looks: &[Look],
    peak: Option<&Look>,
    least: u64,
    is_program: &mut dyn FnMut(FieldId) -> bool,
) -> Vec<Grown> {
    let Ok(looks) = <&[Look; LOOKS.len()]>::try_from(looks) else { return Vec::new() };
    let owned = Owned::of(snapshot, is_program);
    let [half, three_quarters, last] = looks.each_ref().map(|look| look.tick);
    let when = [half, three_quarters, last, snapshot.taken().tick];
    let finder = Finder { snapshot, dominance, looks, peak, when, least };
    let root = snapshot.graph().root();
    // What the holders found so far retain, by the node that is accounted for the rest.
    let mut below: FxHashMap<u32, Sums> = FxHashMap::default();
    let mut found: Vec<(u32, Sums)> = Vec::new();
    for &node in dominance.tree.order().iter().rev().filter(|&&node| node != root) {
        let retained = dominance.retained[node as usize];
        let of_others = below.remove(&node).unwrap_or_default();
        if retained < least {
            continue;
        }
        let above = dominance.tree.above(node);
        let slot = owned.slot(snapshot, dominance, node, is_program);
        let is_top = is_top(snapshot, dominance, node);
        let is_owned = owned.is_owned[node as usize] || is_top;
        let mut passed = of_others;
        let is_mirror = snapshot.mirrored(Node(node)).is_some();
        if is_owned && !is_mirror && finder.was_there(node, slot) && !finder.is_link(node) {
            let retained = finder.retained(node, slot);
            let own = retained.without(&of_others);
            if grows(&own.course, &finder.when, least) {
                found.push((node, own));
                passed = retained;
            }
        }
        if passed != Sums::default() {
            below.entry(above).or_default().add(&passed);
            if is_top {
                below.insert(node, passed);
            }
        }
    }
    let holders: FxHashSet<u32> = found.iter().map(|&(node, _)| node).collect();
    let mut all: Vec<Grown> = found
        .into_iter()
        .map(|(node, Sums { course, peak })| Grown {
            node: Node(node),
            is_holder: true,
            course,
            at_peak: peak,
            retained: dominance.retained[node as usize],
            contents: finder.contents(&[node], &holders),
        })
        .collect();
    all.extend(finder.held_by_several(&below, &holders));
    all.sort_by_key(|grown| (std::cmp::Reverse(grown.course[LOOKS.len()] - grown.course[0]), grown.node));
    all
}

struct Finder<'f, 'a> {
    snapshot: &'f Snapshot<'a>,
    dominance: &'f Dominance,
    looks: &'f [Look; LOOKS.len()],
    peak: Option<&'f Look>,
    /// The ticks of the looks, and of the end.
    when: Looks,
    least: u64,
}

impl Finder<'_, '_> {
    fn is_new(&self, node: u32) -> bool {
        self.snapshot.object(Node(node)).born >= self.when[0]
    }

    /// Whether it existed in the middle of the run, or its slot was in use then.
    fn was_there(&self, node: u32, slot: Option<(ObjectId, FieldId)>) -> bool {
        !self.is_new(node) || slot.is_some_and(|slot| self.looks[0].slots.contains_key(&slot))
    }

    /// What it retained at each moment, or what was in its place retained.
    fn retained(&self, node: u32, slot: Option<(ObjectId, FieldId)>) -> Sums {
        let id = self.snapshot.object(Node(node)).id;
        let at_the_end = self.dominance.retained[node as usize];
        let course = self.course(at_the_end, |look| look.of_object(id).or_else(|| look.of_slot(slot)).unwrap_or(0));
        // The peak may be at any time, and the object just made then and not yet where it is now.
        let peak = self.peak.map_or(at_the_end, |look| look.of_object(id).max(look.of_slot(slot)).unwrap_or(0));
        Sums { course, peak }
    }

    /// What something retains at each look, and at the end.
    fn course(&self, at_the_end: u64, at: impl Fn(&Look) -> u64) -> Course {
        let mut course = Course::default();
        course.iter_mut().zip(self.looks).for_each(|(bytes, look)| *bytes = at(look));
        course[LOOKS.len()] = at_the_end;
        course
    }

    /// Whether it is a link of a list or a tree of the program's, of which the first answers for the others.
    fn is_link(&self, node: u32) -> bool {
        let class = self.snapshot.object(Node(node)).class;
        let is_jdk =
            ["Ljava/", "Ljdk/", "["].iter().any(|start| self.snapshot.class(class).descriptor.starts_with(start));
        let root = self.snapshot.graph().root();
        let next = |&at: &u32| Some(self.dominance.tree.above(at)).filter(|&above| above != NONE && above != root);
        let mut above = std::iter::successors(next(&node), next).take(ABOVE);
        !is_jdk && above.any(|above| self.snapshot.object(Node(above)).class == class)
    }

    /// What grew and is dominated by nothing because it has several holders, by class.
    fn held_by_several(&self, below: &FxHashMap<u32, Sums>, holders: &FxHashSet<u32>) -> Vec<Grown> {
        let threads: FxHashSet<u32> = self
            .snapshot
            .roots()
            .iter()
            .filter(|root| matches!(root.kind, RootKind::Thread(_)))
            .map(|root| root.node.0)
            .collect();
        let mut of_class: FxHashMap<ClassNumber, (Vec<u32>, Sums)> = FxHashMap::default();
        let all = self.dominance.tree.order().iter().copied().skip(1);
        for node in all.filter(|&node| is_top(self.snapshot, self.dominance, node) && !threads.contains(&node)) {
            let (nodes, told) = of_class.entry(self.snapshot.object(Node(node)).class).or_default();
            nodes.push(node);
            told.add(&below.get(&node).copied().unwrap_or_default());
        }
        let mut all = Vec::new();
        for (class, (nodes, told)) in of_class {
            let descriptor = &self.snapshot.class(class).descriptor;
            let retained = nodes.iter().map(|&node| self.dominance.retained[node as usize]).sum();
            let of_class = |look: &Look| look.tops.get(descriptor).copied().unwrap_or(0);
            let (course, peak) = (self.course(retained, of_class), self.peak.map_or(retained, of_class));
            let own = Sums { course, peak }.without(&told);
            let Some(&newest) = nodes.iter().rev().find(|&&node| self.is_new(node)) else { continue };
            if grows(&own.course, &self.when, self.least) {
                let contents = self.contents(&nodes, holders);
                let Sums { course, peak: at_peak } = own;
                all.push(Grown { node: Node(newest), is_holder: false, course, at_peak, retained, contents });
            }
        }
        all
    }

    /// Contents below these nodes, excluding what is below other holders.
    fn contents(&self, from: &[u32], holders: &FxHashSet<u32>) -> Vec<Content> {
        #[derive(Clone, Copy, Default)]
        struct Of {
            objects: u64,
            new: u64,
            retained: u64,
            above: u32,
        }
        let mut of: Vec<Of> = vec![Of::default(); self.snapshot.classes().count()];
        let mut sites: FxHashMap<(ClassNumber, SiteId), u64> = FxHashMap::default();
        enum Step {
            Into(u32),
            OutOf(u32),
        }
        let mut stack: Vec<Step> = from.iter().rev().map(|&node| Step::Into(node)).collect();
        while let Some(step) = stack.pop() {
            match step {
                Step::OutOf(class) => of[class as usize].above -= 1,
                Step::Into(node) => {
                    let object = self.snapshot.object(Node(node));
                    let sum = &mut of[object.class.0 as usize];
                    sum.objects += 1;
                    if self.is_new(node) {
                        sum.new += 1;
                        *sites.entry((object.class, object.site)).or_default() += 1;
                        if sum.above == 0 {
                            sum.retained += self.dominance.retained[node as usize];
                        }
                        sum.above += 1;
                        stack.push(Step::OutOf(object.class.0));
                    }
                    let is_told = |child: &u32| holders.contains(child);
                    stack.extend(self.dominance.children.of(node).filter(|child| !is_told(child)).map(Step::Into));
                }
            }
        }
        let mut most: FxHashMap<ClassNumber, (u64, SiteId)> = FxHashMap::default();
        for ((class, site), count) in sites {
            let known = most.entry(class).or_insert((count, site));
            *known = (*known).max((count, site));
        }
        let mut contents: Vec<Content> = (0..)
            .map(ClassNumber)
            .zip(of)
            .filter(|(_, of)| of.new > 0)
            .map(|(class, Of { objects, new, retained, .. })| {
                let site = most.get(&class).map_or(SiteId(0), |&(_, site)| site);
                Content { class, objects, new, retained, site }
            })
            .collect();
        contents.sort_by_key(|content| (std::cmp::Reverse(content.retained), content.class));
        contents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Looks = [500, 750, 875, 1000];

    #[test]
    fn what_grows_grows_to_the_end() {
        for (course, expected, what) in [
            ([50, 75, 88, 100], true, "a leak"),
            ([0, 0, 0, 0], false, "nothing"),
            ([100, 100, 100, 100], false, "a full cache"),
            ([50, 100, 100, 100], false, "a job that has loaded its rows"),
            ([0, 100, 100, 100], false, "a step"),
            ([0, 0, 0, 100], false, "a step at the end"),
            ([0, 0, 50, 100], false, "a step that takes until the end"),
            ([50, 75, 88, 89], false, "a cache that is full now"),
            ([100, 75, 50, 40], false, "what shrinks"),
            ([1000, 1020, 1030, 1040], false, "a trifle of it"),
            ([10, 40, 45, 60], true, "not evenly"),
        ] {
            assert_eq!(grows(&course, &EVEN, 10), expected, "{what}");
        }
        assert!(!grows(&[50, 75, 88, 100], &EVEN, 51), "less than is looked for");
        // Looks that are not where they were meant to be.
        let late = [600, 950, 960, 1000];
        assert!(grows(&[60, 95, 96, 100], &late, 10), "a leak");
        assert!(!grows(&[60, 60, 96, 100], &late, 10), "a step");
    }
}
