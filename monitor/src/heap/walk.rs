//! Walks of the heap: which objects there are, where, of which kind, and how firmly they are held.
//!
//! An environment of JVMTI's of their own, for a moment: its only tags are those of classes that a walk must tell apart. Objects get none.
#![allow(unsafe_code, reason = "addresses of objects in structures of the VM")]

use et_ddm::segment::{Kind, Solidity, State};
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError, reference};
use et_jvm::mark_word;

use super::levels::Levels;
use crate::state::Monitor;

/// An object of the heap.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// 0 if addresses cannot be read.
    pub address: u64,
    /// Of eight bytes.
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

/// Whether walks show where objects are: one whose identity hash is known must be found so.
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

/// All objects, in the order of their addresses; whether these are known.
pub fn objects(monitor: &Monitor, env: Env) -> Result<(Vec<Found>, bool), JvmtiError> {
    static CAN_READ: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let walker = Walker::new(monitor, env)?;
    let has_addresses = *CAN_READ.get_or_init(|| can_read_addresses(monitor, env, &walker));
    let mut levels = Levels::default();
    if has_addresses {
        find_levels(&walker, &mut levels)?;
    }
    let mut objects = Vec::new();
    let mut lost = 0_u64;
    walker.jvmti.heap_objects(|here| {
        // SAFETY: as above.
        let address = if has_addresses { unsafe { mark_word::address(here.tag_at, here.size) } } else { Some(0) };
        let Some(address) = address.map(|address| address as u64) else {
            lost += 1;
            return;
        };
        let solidity = match levels.get(address) {
            _ if !has_addresses => Solidity::Hard,
            0 => Solidity::Sweep,
            HARD => Solidity::Hard,
            level => CLASSES[usize::from(level - HARD - 1).min(3)].1,
        };
        let state = State { solidity, kind: kind_of(here.class_tag, here.length) };
        objects.push(Found { address, units: u32::try_from(here.size / 8).unwrap_or(u32::MAX), state });
    })?;
    if lost > 0 {
        crate::state::say(&format!("{lost} objects of the heap could not be located and are not shown"));
    }
    if has_addresses {
        objects.sort_unstable_by_key(|object| object.address);
    }
    Ok((objects, has_addresses))
}

/// One walk for strong references, and one more for each class of references that leads to objects which no walk before has found.
fn find_levels(walker: &Walker, levels: &mut Levels) -> Result<(), JvmtiError> {
    let mut leads_on = [false; 6];
    leads_on[usize::from(HARD)] = true;
    for level in HARD..=HARD + 4 {
        if !leads_on[usize::from(level)] {
            continue;
        }
        walker.jvmti.follow_references(|edge| {
            // SAFETY: as above.
            let Some(address) = (unsafe { mark_word::address(edge.tag_at, edge.size) }) else { return true };
            let address = address as u64;
            if edge.kind == reference::FIELD
                && let Some((needs, index)) = reference_of(edge.referrer_class_tag)
                && index == edge.index
                && needs > level
            {
                if levels.get(address) == 0 {
                    leads_on[usize::from(needs)] = true;
                }
                return false;
            }
            levels.claim(address, level);
            true
        })?;
    }
    Ok(())
}

/// How many objects there are, reachable or not.
pub fn count(monitor: &Monitor) -> u64 {
    let mut count = 0;
    let _ = monitor.jvmti.heap_objects(|_| count += 1);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

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
