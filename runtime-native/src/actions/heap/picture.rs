//! A heap walk, and its result.

use et_format::InitialObject;
use et_format::event::ObjectHash;
use rustc_hash::{FxHashMap, FxHashSet};

use super::marks::{CLASS, Marks, Met};
use et_jvm::jvmti::{Jvmti, JvmtiError, Reference, reference};
use et_jvm::mark_word;

/// Tag of objects that have no id yet. No id is negative.
pub const MARKED: i64 = -1;
/// Tag of the object that shows whether mark words can be found.
pub const PROBE: i64 = -3;

/// Numbers from here on are not ids, which have 31 bits. Objects with unusable mark words, such as those that threads
/// wait for, are identified by such numbers until the walk ends.
pub const NAMELESS: u32 = 1 << 31;
/// Maximum number of such objects: the VM compares each with all tags.
const MOST_NAMELESS: u32 = 256;

/// A reference as the walk reports it.
pub struct Edge {
    /// The kind of reference, one of [`reference`].
    pub kind: i32,
    /// Ids of origin and target.
    pub origin: u32,
    pub target: u32,
    /// The index of a field or element.
    pub index: u32,
}

/// The result of a walk.
#[derive(Default)]
pub struct Picture {
    /// Number of objects without an id, which are marked now. If there are any, the rest is incomplete.
    pub marked: u64,
    pub objects: Vec<InitialObject>,
    /// Class of each object, by id.
    pub class_of: FxHashMap<u32, u32>,
    pub edges: Vec<Edge>,
    /// Id of the object in slot 0 of a frame, by id of the thread and depth.
    pub receivers: FxHashMap<(u32, i32), u32>,
    /// Number of objects with a number instead of an id. The number is the tag: the first ones from [`NAMELESS`] on.
    pub nameless: u32,
    /// Number of untagged objects that have the same id as another.
    pub shared: usize,
    /// Objects visited before their class had a tag.
    classless: FxHashSet<u32>,
    /// References whose origin was not found.
    strays: u64,
}

impl Picture {
    /// Walks the heap. Objects whose id is neither in their tag nor found by `marks` are tagged `MARKED`.
    pub fn take(walker: Jvmti, mut marks: Option<&mut Marks>) -> Result<Self, JvmtiError> {
        let mut picture = Picture::default();
        if let Some(marks) = &mut marks {
            picture.tag_roots(walker, marks)?;
            marks.begin();
        }
        // Not `IterateThroughHeap`: it also finds dead objects, which our references would resurrect.
        walker.follow_references(|found| {
            picture.visit(found, marks.as_deref_mut());
            true
        })?;
        Ok(picture)
    }

    /// Replaces numbers by ids.
    pub fn name(&mut self, ids: &FxHashMap<u32, u32>) {
        // The collector may have freed an object before it got its id; then another walk is needed.
        self.marked += u64::from(self.nameless) - ids.len() as u64;
        let name = |name: &mut u32| *name = ids.get(name).copied().unwrap_or(*name);
        for object in &mut self.objects {
            name(&mut object.object.0);
            name(&mut object.class.0);
        }
        for edge in &mut self.edges {
            name(&mut edge.origin);
            name(&mut edge.target);
        }
        self.class_of.values_mut().for_each(name);
        for ((mut thread, depth), mut receiver) in std::mem::take(&mut self.receivers) {
            name(&mut thread);
            name(&mut receiver);
            self.receivers.insert((thread, depth), receiver);
        }
        for (number, id) in ids {
            if self.classless.remove(number) {
                self.classless.insert(*id);
            }
            if let Some(class) = self.class_of.remove(number) {
                self.shared += usize::from(self.class_of.insert(*id, class).is_some());
            }
        }
    }

    /// Whether every object has an id or a number, and a class, and every reference has an origin.
    pub fn is_complete(&self) -> bool {
        self.marked == 0 && !self.has_gaps()
    }

    /// Whether something is missing apart from ids of marked objects.
    pub fn has_gaps(&self) -> bool {
        self.strays > 0 || self.classless.iter().any(|object| !self.class_of.contains_key(object))
    }

    /// Gives an object a number; false if there are no more.
    fn number(&mut self, tag: &mut i64) -> bool {
        let has_more = self.nameless < MOST_NAMELESS;
        if has_more {
            *tag = (NAMELESS + self.nameless).into();
            self.nameless += 1;
        }
        has_more
    }

    /// Tags what JVMTI identifies only by tags: classes, reported with each object, and threads, reported with
    /// references from stacks.
    fn tag_roots(&mut self, walker: Jvmti, marks: &mut Marks) -> Result<(), JvmtiError> {
        marks.begin();
        walker.follow_references(|found| {
            let is_class = found.class_tag == marks.class_of_classes;
            if (*found.tag == 0 || *found.tag == CLASS) && (is_class || found.kind == reference::THREAD) {
                let is_class_of_classes = *found.tag == CLASS;
                match met(marks, &found) {
                    Some(Met { id, .. }) => *found.tag = id.into(),
                    None => self.strays += u64::from(!self.number(found.tag)),
                }
                if is_class_of_classes {
                    marks.class_of_classes = *found.tag;
                }
            }
            false
        })
    }

    fn visit(&mut self, found: Reference, mut marks: Option<&mut Marks>) {
        let reads_marks = marks.is_some();
        let untagged = if *found.tag == 0 { marks.as_deref_mut().and_then(|marks| met(marks, &found)) } else { None };
        if *found.tag == 0 && untagged.is_none() && !(reads_marks && self.number(found.tag)) {
            *found.tag = MARKED;
            self.marked += 1;
        }
        let Some(target) = untagged.map(|met| met.id).or(id(*found.tag)) else { return };
        if let Some(class) = id(found.class_tag) {
            if self.class_of.insert(target, class).is_none() {
                let size = u32::try_from(found.size).unwrap_or(InitialObject::LARGEST);
                let (object, class) = (ObjectHash(target), ObjectHash(class));
                self.objects.push(InitialObject { object, class, size, length: found.length });
            } else if let Some(Met { is_new: true, .. }) = untagged {
                self.shared += 1;
            }
        } else if reads_marks {
            self.classless.insert(target);
        }
        match (found.kind, found.local) {
            (reference::FIELD | reference::STATIC_FIELD | reference::ARRAY_ELEMENT, _) => {
                match id(found.referrer_tag).or_else(|| referrer(marks, &found, target)) {
                    Some(origin) => self.edges.push(Edge { kind: found.kind, origin, target, index: found.index }),
                    // A marked object will have an id in the next walk.
                    None => self.strays += u64::from(reads_marks && found.referrer_tag == 0),
                }
            }
            (reference::STACK_LOCAL, Some(local)) if local.slot == 0 => {
                if let Some(thread) = id(local.thread_tag) {
                    self.receivers.insert((thread, local.depth), target);
                }
            }
            _ => {}
        }
    }
}

/// Whether the mark word of an object with this identity hash and with the tag [`PROBE`] is at the expected place. A
/// root must hold the object.
pub fn finds_mark_words(walker: Jvmti, shift: u32, hash: u32) -> Result<bool, JvmtiError> {
    let mut finds = false;
    walker.follow_references(|found| {
        if *found.tag == PROBE {
            // SAFETY: called by a visitor with its arguments.
            #[allow(unsafe_code, reason = "what the walk gives is handed on")]
            let there = unsafe { mark_word::probe(found.tag_at, found.size, shift) };
            finds = there == Some(hash);
        }
        false
    })?;
    Ok(finds)
}

fn met(marks: &mut Marks, found: &Reference) -> Option<Met> {
    // SAFETY: called by a visitor with its arguments.
    #[allow(unsafe_code, reason = "what the walk gives is handed on")]
    unsafe {
        marks.object(found.tag_at, found.size)
    }
}

fn referrer(marks: Option<&mut Marks>, found: &Reference, target: u32) -> Option<u32> {
    let marks = marks?;
    if found.referrer_tag_at == found.tag_at {
        return Some(target);
    }
    // SAFETY: called by a visitor with its arguments; the tag is not the object's own. References from fields and
    // elements have an origin.
    #[allow(unsafe_code, reason = "what the walk gives is handed on")]
    unsafe {
        marks.referrer(found.referrer_tag_at)
    }
}

/// The id in a tag; `None` for one that is only a mark.
pub fn id(tag: i64) -> Option<u32> {
    u32::try_from(tag).ok().filter(|id| *id != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced_everywhere() {
        let (number, other) = (NAMELESS, NAMELESS + 1);
        let initial = |object, class| InitialObject {
            object: ObjectHash(object),
            class: ObjectHash(class),
            size: 16,
            length: -1,
        };
        let mut picture = Picture {
            objects: vec![initial(number, 5), initial(5, number), initial(other, 5)],
            class_of: [(number, 5), (5, number), (other, 5)].into_iter().collect(),
            edges: vec![Edge { kind: 2, origin: number, target: other, index: 0 }],
            receivers: [((number, 1), number), ((other, 2), 5)].into_iter().collect(),
            nameless: 2,
            ..Picture::default()
        };
        picture.name(&[(number, 9), (other, 10)].into_iter().collect());
        assert_eq!(picture.objects, [initial(9, 5), initial(5, 9), initial(10, 5)]);
        assert_eq!(picture.class_of, [(9, 5), (5, 9), (10, 5)].into_iter().collect());
        assert_eq!((picture.edges[0].origin, picture.edges[0].target), (9, 10));
        assert_eq!(picture.receivers, [((9, 1), 9), ((10, 2), 5)].into_iter().collect());
        assert_eq!(picture.shared, 0);
    }

    #[test]
    fn a_number_that_gets_the_id_of_another_object_is_counted() {
        let mut picture =
            Picture { class_of: [(9, 5), (NAMELESS, 5)].into_iter().collect(), nameless: 1, ..Picture::default() };
        picture.name(&[(NAMELESS, 9)].into_iter().collect());
        assert_eq!((picture.shared, picture.class_of.len(), picture.marked), (1, 1, 0));
    }

    #[test]
    fn an_object_that_is_gone_before_it_has_an_id_makes_another_walk() {
        let mut picture = Picture { nameless: 2, ..Picture::default() };
        picture.name(&[(NAMELESS, 9)].into_iter().collect());
        assert!(!picture.is_complete() && !picture.has_gaps());
    }

    #[test]
    fn what_has_no_class_is_a_gap_until_it_has_one() {
        let mut picture = Picture::default();
        picture.classless.insert(7);
        assert!(picture.has_gaps() && !picture.is_complete());
        picture.class_of.insert(7, 5);
        assert!(picture.is_complete());
        picture.marked = 1;
        assert!(!picture.has_gaps() && !picture.is_complete());
    }
}
