//! Heap walks: which objects exist, with address, kind, and strength of reachability.
//!
//! Uses a temporary JVMTI environment: only classes that a walk must distinguish have tags in it.
#![allow(unsafe_code, reason = "addresses of objects in structures of the VM")]

use std::sync::atomic::Ordering;

use et_ddm::segment::{Kind, Solidity, State};
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{Capability, HeapObject, Jvmti, JvmtiError, reference};
use et_jvm::mark_word;

use super::levels::Levels;
use crate::state::Monitor;

#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// 0 if addresses cannot be read.
    pub address: u64,
    /// Size in units of eight bytes.
    pub units: u32,
    pub state: State,
}

/// Levels in which objects are found: by strong references, then by those of each class of `java.lang.ref` as well.
const CLASSES: [(&std::ffi::CStr, Solidity); 4] = [
    (c"java/lang/ref/SoftReference", Solidity::Soft),
    (c"java/lang/ref/WeakReference", Solidity::Weak),
    (c"java/lang/ref/FinalReference", Solidity::Finalizable),
    (c"java/lang/ref/PhantomReference", Solidity::Phantom),
];
const HARD: u8 = 1;

/// Tags of classes: a kind, or for classes of references the level and the index of `referent`.
const KINDS: [(&str, Kind); 9] = [
    ("Ljava/lang/Class;", Kind::Class),
    ("[Z", Kind::Array1),
    ("[B", Kind::Array1),
    ("[C", Kind::Array2),
    ("[S", Kind::Array2),
    ("[I", Kind::Array4),
    ("[F", Kind::Array4),
    ("[J", Kind::Array8),
    ("[D", Kind::Array8),
];

fn kind_tag(kind: Kind) -> i64 {
    kind as i64
}

fn kind_of(class_tag: i64, length: i32) -> Kind {
    let named = Kind::ALL[1..6].iter().find(|kind| kind_tag(**kind) == class_tag);
    named.copied().unwrap_or(if length >= 0 { Kind::Array4 } else { Kind::Object })
}

/// Of a class of references: its level, and the index of `referent` among the fields as walks number them.
fn reference_tag(level: u8, index: u32) -> i64 {
    i64::from(level) << 8 | i64::from(index) << 16
}

fn reference_of(class_tag: i64) -> Option<(u8, u32)> {
    let level = (class_tag >> 8) as u8;
    (level > 0).then_some((level, (class_tag >> 16) as u32))
}

/// The environment; it ends with this.
struct Walker {
    jvmti: Jvmti,
}

impl Drop for Walker {
    fn drop(&mut self) {
        self.jvmti.dispose();
    }
}

impl Walker {
    fn new(monitor: &Monitor, env: Env) -> Result<Self, JvmtiError> {
        let walker = Self { jvmti: Jvmti::new(monitor.vm).ok_or(JvmtiError::NO_ENVIRONMENT)? };
        walker.jvmti.add_capabilities(&[Capability::TagObjects])?;
        env.frame(et_jvm::jvmti::CLASSES, |env| walker.tag_classes(env))?;
        Ok(walker)
    }

    fn tag_classes(&self, env: Env) -> Result<(), JvmtiError> {
        let references: Vec<(Object, u8)> =
            (HARD + 1..).zip(CLASSES).filter_map(|(level, (name, _))| Some((env.find_class(name)?, level))).collect();
        let base = env.find_class(c"java/lang/ref/Reference");
        let position = base.map_or(0, |base| self.position(base, "referent"));
        for class in self.jvmti.loaded_classes(env)? {
            let signature = self.jvmti.class_signature(class).unwrap_or_default();
            if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == signature) {
                self.jvmti.set_tag(class, kind_tag(*kind))?;
            } else if signature.starts_with('L')
                && let Some(level) = level_of(env, class, &references)
            {
                let index = position + self.interface_fields(env, class);
                self.jvmti.set_tag(class, reference_tag(level, index))?;
            }
            env.delete_local(class);
        }
        Ok(())
    }

    /// Which of the fields that a class declares itself.
    fn position(&self, class: Object, name: &str) -> u32 {
        let fields = self.jvmti.class_fields(class).unwrap_or_default();
        let is_it = |field: &_| self.jvmti.field_name(class, *field).is_ok_and(|member| member.name == name);
        fields.iter().position(is_it).unwrap_or(0) as u32
    }

    /// Fields of all interfaces of a class come before its own.
    fn interface_fields(&self, env: Env, class: Object) -> u32 {
        env.frame(32, |env| {
            let mut all: Vec<Object> = Vec::new();
            let mut classes = vec![class];
            classes.extend(std::iter::successors(env.superclass(class), |class| env.superclass(*class)));
            while let Some(next) = classes.pop() {
                for interface in self.jvmti.interfaces(env, next).unwrap_or_default() {
                    if !all.iter().any(|known| env.is_same(*known, interface)) {
                        all.push(interface);
                        classes.push(interface);
                    }
                }
            }
            all.iter()
                .map(|interface| self.jvmti.class_fields(*interface).map_or(0, |fields| fields.len()))
                .sum::<usize>() as u32
        })
    }
}

fn level_of(env: Env, class: Object, references: &[(Object, u8)]) -> Option<u8> {
    env.frame(16, |env| {
        let mut next = Some(class);
        while let Some(class) = next {
            if let Some((_, level)) = references.iter().find(|(known, _)| env.is_same(*known, class)) {
                return Some(*level);
            }
            next = env.superclass(class);
        }
        None
    })
}

/// Whether walks can find addresses: an object with a known identity hash must be found.
fn can_read_addresses(monitor: &Monitor, env: Env, walker: &Walker) -> bool {
    const PROBE: i64 = -1;
    let Some(hotspot) = monitor.hotspot.get() else { return false };
    env.frame(4, |env| {
        let Some(object) = env.new_byte_array(0) else { return false };
        let hash = hotspot.identity_hash(env, object);
        let mut is_found = false;
        let _ = walker.jvmti.set_tag(object, PROBE);
        let _ = walker.jvmti.heap_objects(|here| {
            // SAFETY: called by a visitor, with what it was given.
            let read = |shift| unsafe { mark_word::probe(here.tag_at, here.size, shift) };
            is_found |= *here.tag == PROBE && [8, 11, 10, 9].into_iter().any(|shift| read(shift) == Some(hash));
        });
        let _ = walker.jvmti.set_tag(object, 0);
        is_found
    })
}

/// So often it is tried to see the whole heap between two collections.
const ATTEMPTS: u32 = 3;

/// All objects, ordered by address, and whether addresses are known.
///
/// Reachable objects come from a single walk: between two walks objects move, and addresses become meaningless.
/// Unreachable objects come from another walk just before, and are omitted if there was, or may have been, a collection
/// in between; walks with concurrent collectors do not visit them anyway.
pub fn objects(monitor: &Monitor, env: Env) -> Result<(Vec<Found>, bool), JvmtiError> {
    static CAN_READ: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let walker = Walker::new(monitor, env)?;
    let has_addresses = *CAN_READ.get_or_init(|| can_read_addresses(monitor, env, &walker));
    if !has_addresses {
        return Ok((walker.all(|_| Some(0), Solidity::Hard)?, false));
    }
    for _ in 0..ATTEMPTS {
        if monitor.collects_concurrently() {
            break;
        }
        let collections = || monitor.hub.collections.load(Ordering::Acquire);
        let before = collections();
        // SAFETY: as above.
        let all = walker.all(|here| unsafe { mark_word::address(here.tag_at, here.size) }, Solidity::Sweep)?;
        let held = Held::find(&walker)?;
        if collections() == before {
            return Ok((held.with_garbage(all), true));
        }
    }
    Ok((Held::find(&walker)?.with_garbage(Vec::new()), true))
}

impl Walker {
    /// All objects that a walk shows, whether anything holds them or not.
    fn all(
        &self,
        address: impl Fn(&HeapObject) -> Option<usize>,
        solidity: Solidity,
    ) -> Result<Vec<Found>, JvmtiError> {
        let mut objects = Vec::new();
        let mut lost = 0;
        self.jvmti.heap_objects(|here| match address(&here) {
            Some(address) => {
                let state = State { solidity, kind: kind_of(here.class_tag, here.length) };
                objects.push(Found { address: address as u64, units: units(here.size), state });
            }
            None => lost += 1,
        })?;
        say_lost(lost);
        Ok(objects)
    }
}

fn units(size: u64) -> u32 {
    u32::try_from(size / 8).unwrap_or(u32::MAX)
}

fn say_lost(lost: u64) {
    if lost > 0 {
        crate::state::say(&format!("{lost} objects of the heap could not be located and are not shown"));
    }
}

/// The objects that can be reached, and how firmly each is held.
#[derive(Default)]
struct Held {
    levels: Levels,
    objects: Vec<Found>,
    loose: Vec<Loose>,
    lost: u64,
}

/// A reference of an object that was not known to be held firmly when the walk came by: it may be later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Loose {
    from: u64,
    /// An address, and in its low bits the level that the reference itself has.
    to: u64,
}

impl Loose {
    const LEVEL: u64 = 7;

    fn new(from: u64, to: u64, level: u8) -> Self {
        Self { from, to: to | u64::from(level) & Self::LEVEL }
    }

    fn to(self) -> (u64, u8) {
        (self.to & !Self::LEVEL, (self.to & Self::LEVEL) as u8)
    }
}

impl Held {
    fn find(walker: &Walker) -> Result<Self, JvmtiError> {
        let mut held = Self::default();
        walker.jvmti.follow_references(|edge| {
            // SAFETY: called by a visitor, with what it was given.
            let Some(to) = (unsafe { mark_word::address(edge.tag_at, edge.size) }) else {
                held.lost += 1;
                return true;
            };
            let from = if edge.referrer_tag_at.is_null() {
                None
            } else if std::ptr::eq(edge.referrer_tag_at, edge.tag_at) {
                Some(to)
            } else {
                // SAFETY: as above; it is not the object's own address.
                Some(unsafe { mark_word::referrer_address(edge.referrer_tag_at) })
            };
            let is_referent = |(_, index): &(u8, u32)| edge.kind == reference::FIELD && *index == edge.index;
            let needs = reference_of(edge.referrer_class_tag).filter(is_referent).map_or(HARD, |(level, _)| level);
            if held.meet(from.map(|from| from as u64), to as u64, needs) {
                let state = State { solidity: Solidity::Hard, kind: kind_of(edge.class_tag, edge.length) };
                held.objects.push(Found { address: to as u64, units: units(edge.size), state });
            }
            true
        })?;
        say_lost(held.lost);
        held.settle();
        Ok(held)
    }

    /// A reference, of a root if it is from nowhere. True if its object was not met before.
    fn meet(&mut self, from: Option<u64>, to: u64, needs: u8) -> bool {
        // The referrer was visited before.
        let level = from.map_or(HARD, |from| self.levels.get(from).max(HARD));
        if let Some(from) = from.filter(|_| level > HARD) {
            self.loose.push(Loose::new(from, to, needs));
        }
        self.levels.lower(to, level.max(needs)) == 0
    }

    /// Hands on what came to be known too late, the firmest first: each object is looked at once.
    fn settle(&mut self) {
        self.loose.sort_unstable();
        let of = |from: u64| {
            let first = self.loose.partition_point(|loose| loose.from < from);
            self.loose[first..].iter().take_while(move |loose| loose.from == from)
        };
        for level in HARD..=HARD + 4 {
            let mut waiting: Vec<u64> = self
                .loose
                .chunk_by(|a, b| a.from == b.from)
                .map(|all| all[0].from)
                .filter(|from| self.levels.get(*from) == level)
                .collect();
            while let Some(from) = waiting.pop() {
                for loose in of(from) {
                    let (to, needs) = loose.to();
                    let (before, now) = (self.levels.get(to), level.max(needs));
                    self.levels.lower(to, now);
                    if now == level && level < before {
                        waiting.push(to);
                    }
                }
            }
        }
        self.loose = Vec::new();
    }

    /// All of them, and those of the others that nothing holds, by address.
    fn with_garbage(self, others: Vec<Found>) -> Vec<Found> {
        let Self { levels, mut objects, .. } = self;
        for object in &mut objects {
            object.state.solidity = match levels.get(object.address) {
                0 | HARD => Solidity::Hard,
                level => CLASSES[usize::from(level - HARD - 1).min(3)].1,
            };
        }
        objects.extend(others.into_iter().filter(|object| levels.get(object.address) == 0));
        objects.sort_unstable_by_key(|object| object.address);
        objects
    }
}

/// How many objects there are, reachable or not.
pub fn count(monitor: &Monitor) -> u64 {
    let mut count = 0;
    let _ = monitor.jvmti.heap_objects(|_| count += 1);
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OBJECT: State = State { solidity: Solidity::Hard, kind: Kind::Object };

    /// Walks a graph as HotSpot does: depth first, each object's references in a row.
    fn walked(roots: &[u64], references: &[(u64, u64, u8)]) -> Held {
        let mut held = Held::default();
        let mut waiting = Vec::new();
        for root in roots {
            held.meet(None, *root, HARD);
            waiting.push(*root);
        }
        let mut visited = std::collections::HashSet::new();
        while let Some(from) = waiting.pop() {
            if visited.insert(from) {
                held.objects.push(Found { address: from, units: 2, state: OBJECT });
                for (_, to, needs) in references.iter().filter(|(it, ..)| *it == from) {
                    held.meet(Some(from), *to, *needs);
                    waiting.push(*to);
                }
            }
        }
        held.settle();
        held
    }

    /// The least, over all ways there, of the loosest reference on the way.
    fn level(roots: &[u64], references: &[(u64, u64, u8)], object: u64) -> u8 {
        let reached = |most: u8| {
            let mut all: std::collections::HashSet<u64> = roots.iter().copied().collect();
            while let Some((_, to, _)) =
                references.iter().find(|(from, to, needs)| *needs <= most && all.contains(from) && !all.contains(to))
            {
                all.insert(*to);
            }
            all.contains(&object)
        };
        (HARD..=HARD + 4).find(|most| reached(*most)).unwrap_or(0)
    }

    proptest! {
        #[test]
        fn one_walk_tells_how_firmly_each_object_is_held(
            roots in prop::collection::vec(1..25_u64, 1..4),
            references in prop::collection::vec((1..25_u64, 1..25_u64, 0..9_u8), 0..60),
        ) {
            let place = |number: u64| 0x7_0000_0000 + 16 * number;
            let roots: Vec<u64> = roots.into_iter().map(place).collect();
            let references: Vec<(u64, u64, u8)> =
                references.into_iter().map(|(from, to, needs)| (place(from), place(to), needs.clamp(HARD, 5))).collect();
            let held = walked(&roots, &references);
            for object in (1..25).map(place) {
                prop_assert_eq!(held.levels.get(object), level(&roots, &references, object));
            }
        }
    }

    #[test]
    fn what_nothing_holds_is_added_and_nothing_twice() {
        let mut held = walked(&[16], &[(16, 32, 3)]);
        let other =
            |address| Found { address, units: 2, state: State { solidity: Solidity::Sweep, kind: Kind::Object } };
        held.objects.reverse();
        let all = held.with_garbage([48, 16, 8, 32].map(other).into());
        let all: Vec<(u64, Solidity)> = all.iter().map(|object| (object.address, object.state.solidity)).collect();
        assert_eq!(all, [(8, Solidity::Sweep), (16, Solidity::Hard), (32, Solidity::Weak), (48, Solidity::Sweep)]);
    }

    #[test]
    fn tags_of_classes_tell_kinds_and_references_apart() {
        for (_, kind) in KINDS {
            assert_eq!(kind_of(kind_tag(kind), -1), kind);
            assert_eq!(reference_of(kind_tag(kind)), None);
        }
        assert_eq!((kind_of(0, -1), kind_of(0, 3)), (Kind::Object, Kind::Array4));
        for (level, index) in [(2, 0), (5, 7)] {
            assert_eq!(reference_of(reference_tag(level, index)), Some((level, index)));
            assert_eq!(kind_of(reference_tag(level, index), -1), Kind::Object);
        }
    }
}
