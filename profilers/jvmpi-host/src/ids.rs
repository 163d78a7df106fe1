//! Object ids: identity hashes. They survive moves of objects, need no tags, and can be read during heap walks.
//!
//! Hashes may repeat. An object with the same hash as another that was reported and is not known to be dead gets a
//! separate id beyond the range of hashes, which is stored in its tag. Objects whose mark word is in use by a lock
//! during a walk are tagged temporarily and queried through JNI afterwards.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};
use std::time::Duration;

use et_jvm::env::{Env, Object};
use et_jvm::jvmti::JvmtiError;
use et_jvm::mark_word;
use et_jvm::sync::{in_time, lock, read, write};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::abi::ObjectId;
use crate::host::Host;

/// The part of a tag that is an id.
const ID: i64 = 0xffff_ffff;
/// Tag flag: the object was reported, or is otherwise known by its id.
pub const KNOWN: i64 = 1 << 40;
/// Tag flag: the object is a class.
pub const CLASS: i64 = 1 << 41;
/// For the moment: a number and no id.
const PASSING: i64 = 1 << 42;

/// The largest hash.
const HASHES: u32 = 0x7fff_ffff;
/// The next id beyond the range of hashes.
static BEYOND: AtomicU32 = AtomicU32::new(HASHES + 1);
/// Hashes that are not enough to know an object by.
static TWINS: RwLock<Option<FxHashMap<u32, Twin>>> = RwLock::new(None);

/// Which object has a hash that is not unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Twin {
    /// A class, which has the hash in its tag. Any other object with the hash and no tag gets a separate id.
    Class,
    /// Of several, of which one has no tag.
    Several,
}

const SHARDS: usize = 64;
/// Each with the number of the last sweep that it is known to be older than, and with `BEING_TOLD`.
static LIVE: [Mutex<Option<FxHashMap<u32, u32>>>; SHARDS] = [const { Mutex::new(None) }; SHARDS];
/// The number of the last sweep: what is put in before it has begun is older than its walk.
static SWEEP: AtomicU32 = AtomicU32::new(0);
/// Flag: the object is being reported, and the agent has not returned yet. The reporting thread keeps the object alive.
const BEING_TOLD: u32 = 1 << 31;

/// Held by whoever walks the heap: until the end of a walk some tags are numbers, and another walk would take them for
/// its own. The VM is called meanwhile, so waiting for it has a timeout.
static WALKING: Mutex<()> = Mutex::new(());
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to walk the heap.
#[derive(Debug)]
pub struct Alone(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

/// Waits until no other thread walks the heap. None if one does not come to an end: it may be suspended.
pub fn alone() -> Option<Alone> {
    in_time(&WALKING, PATIENCE).map(Alone)
}

/// What the agent knows about an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    No,
    /// It is being reported: see [`BEING_TOLD`].
    Soon,
    Yes,
}

fn shard(id: u32) -> &'static Mutex<Option<FxHashMap<u32, u32>>> {
    &LIVE[id.wrapping_mul(0x9e37_79b1) as usize >> 16 & (SHARDS - 1)]
}

/// Adds an id, which counts as reported after [`was_told`]. Returns false if it exists.
pub fn insert(id: ObjectId) -> bool {
    let sweep = SWEEP.load(Ordering::SeqCst);
    let mut shard = lock(shard(id as u32));
    let ids = shard.get_or_insert_default();
    let is_new = !ids.contains_key(&(id as u32));
    if is_new {
        ids.insert(id as u32, sweep | BEING_TOLD);
    }
    is_new
}

/// Marks an id as known to the agent.
pub fn was_told(id: ObjectId) {
    if let Some(there) = lock(shard(id as u32)).as_mut().and_then(|ids| ids.get_mut(&(id as u32))) {
        *there &= !BEING_TOLD;
    }
}

/// Whether the agent knows an id.
pub fn known(id: ObjectId) -> Known {
    match lock(shard(id as u32)).as_ref().and_then(|ids| ids.get(&(id as u32))) {
        None => Known::No,
        Some(there) if there & BEING_TOLD != 0 => Known::Soon,
        Some(_) => Known::Yes,
    }
}

/// Begins a sweep and returns its number.
pub fn begin_sweep() -> u32 {
    SWEEP.fetch_add(1, Ordering::SeqCst) + 1
}

/// Ids added before the sweep and not seen in it. They stay reserved until the agent has been told.
pub fn dead(sweep: u32, seen: &[u32]) -> Vec<u32> {
    for id in seen {
        if let Some(there) = lock(shard(*id)).as_mut().and_then(|ids| ids.get_mut(id)) {
            *there = *there & BEING_TOLD | sweep;
        }
    }
    let mut dead = Vec::new();
    for shard in &LIVE {
        // Ids added since then have the number of this sweep or a greater one; those being reported have a number
        // beyond all sweeps.
        dead.extend(lock(shard).iter().flatten().filter(|(_, there)| **there < sweep).map(|(id, _)| *id));
    }
    dead
}

/// Removes ids.
pub fn remove(dead: &[u32]) {
    for id in dead {
        if let Some(ids) = lock(shard(*id)).as_mut() {
            ids.remove(id);
        }
    }
}

/// Changes the state of a hash and returns the previous one.
fn change_twin(hash: u32, change: impl FnOnce(Option<Twin>) -> Twin) -> Option<Twin> {
    let mut twins = write(&TWINS);
    let twins = twins.get_or_insert_default();
    let before = twins.get(&hash).copied();
    twins.insert(hash, change(before));
    before
}

fn twin(hash: u32) -> Option<Twin> {
    read(&TWINS).as_ref()?.get(&hash).copied()
}

/// The id of an object; 0 before the VM is up.
pub fn of(host: &Host, env: Env, object: Object) -> ObjectId {
    let Some(hotspot) = host.hotspot.get() else { return 0 };
    let hash = hotspot.identity_hash(env, object);
    let Some(twin) = twin(hash) else { return hash as ObjectId };
    let tag = host.jvmti.tag(object).unwrap_or(0);
    match (in_tag(tag), twin) {
        (Some(id), _) => id as ObjectId,
        (None, Twin::Several) => hash as ObjectId,
        (None, Twin::Class) => {
            let (id, tag) = apart(hash);
            let _ = host.jvmti.set_tag(object, tag);
            id as ObjectId
        }
    }
}

/// Records a new object. Returns its id; `None` if it has already been reported.
pub fn born(host: &Host, env: Env, object: Object) -> Option<ObjectId> {
    let hash = host.hotspot.get()?.identity_hash(env, object);
    // In this order: a class that is about to take the hash first announces it, and then checks who has it.
    let is_first = insert(hash as ObjectId);
    let is_class = twin(hash) == Some(Twin::Class);
    if is_first && !is_class {
        return Some(hash as ObjectId);
    }
    if is_first {
        remove(&[hash]);
    }
    if host.jvmti.tag(object).unwrap_or(0) & KNOWN != 0 {
        return None;
    }
    let id = beyond(hash);
    host.jvmti.set_tag(object, KNOWN | id as i64).ok()?;
    insert(id);
    Some(id)
}

/// A new id for an object whose hash is taken.
fn beyond(hash: u32) -> ObjectId {
    change_twin(hash, |before| before.unwrap_or(Twin::Several));
    BEYOND.fetch_add(1, Ordering::Relaxed) as ObjectId
}

/// A new id for an object whose hash is taken, and the tag that it must get.
pub fn apart(hash: u32) -> (u32, i64) {
    let id = beyond(hash);
    (id as u32, KNOWN | id as i64)
}

/// Records an object that an event is about to refer to. Returns whether it has not been reported yet.
pub fn define(host: &Host, id: ObjectId, object: Object) -> bool {
    let is_new = insert(id);
    if is_new {
        let tag = host.jvmti.tag(object).unwrap_or(0);
        let _ = host.jvmti.set_tag(object, tag & CLASS | KNOWN | id as i64);
    }
    is_new
}

/// The id that a class was given; none if it has none yet.
pub fn of_class(host: &Host, class: Object) -> Option<ObjectId> {
    let tag = host.jvmti.tag(class).ok().filter(|tag| tag & CLASS != 0)?;
    in_tag(tag).map(|id| id as ObjectId)
}

/// Gives a class an id, which its tag holds from now on so that walks know it. `is_taken` says whether another class has a hash for its
/// id: those that an archive of classes brings along are often the same as some of the run.
pub fn give_class(host: &Host, env: Env, class: Object, is_taken: impl Fn(ObjectId) -> bool) -> ObjectId {
    let Some(hotspot) = host.hotspot.get() else { return 0 };
    let hash = hotspot.identity_hash(env, class);
    let id = match host.jvmti.tag(class).ok().and_then(in_tag) {
        // It was reported as an object before it was a class that could be queried.
        Some(id) => {
            is_class(id);
            id as ObjectId
        }
        None => {
            let is_anothers = || is_taken(hash as ObjectId) || known(hash as ObjectId) != Known::No;
            if is_anothers() {
                beyond(hash)
            } else {
                let before = change_twin(hash, |_| Twin::Class);
                if is_anothers() {
                    // An object that was made in this moment has it.
                    change_twin(hash, |_| before.unwrap_or(Twin::Several));
                    beyond(hash)
                } else {
                    hash as ObjectId
                }
            }
        }
    };
    let _ = host.jvmti.set_tag(class, CLASS | KNOWN | id as i64);
    id
}

/// The id is in the tag of a class; if it is a hash, no other object may use it.
fn is_class(id: u32) {
    if id <= HASHES {
        change_twin(id, |_| Twin::Class);
    }
}

/// The id in a tag, if it holds one.
pub fn in_tag(tag: i64) -> Option<u32> {
    (tag != 0 && tag & PASSING == 0).then_some((tag & ID) as u32)
}

/// Finds the position of the hash in mark words, given an object with a known hash.
pub fn probe_shift(host: &Host, env: Env, object: Object) -> Option<u32> {
    let hash = host.hotspot.get()?.identity_hash(env, object);
    let before = host.jvmti.tag(object).ok()?;
    host.jvmti.set_tag(object, PASSING).ok()?;
    let mut found = None;
    let walked = host.jvmti.heap_objects(|here| {
        if *here.tag == PASSING {
            found = [8, 11, 10, 9].into_iter().find(|shift| probe(here.tag_at, here.size, *shift) == Some(hash));
        }
    });
    host.jvmti.set_tag(object, before).ok()?;
    walked.ok().and(found)
}

#[allow(unsafe_code, reason = "structures of the VM")]
fn probe(tag: *const i64, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: called by a visitor, with what it was given.
    unsafe { mark_word::probe(tag, size, shift) }
}

/// A fresh hash for an object without one. They come in no order and none twice before all were given.
fn fresh_hash() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    loop {
        let hash = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x2545_f491) & HASHES;
        if hash != 0 {
            return hash;
        }
    }
}

/// An object in a walk.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    pub id: u32,
    /// Object id of its class; 0 if unknown.
    pub class: u32,
    pub size: u64,
    /// Whether the id is in its tag.
    pub is_tagged: bool,
}

/// Visits all objects of the heap that have an id; with `all`, those without get one. The visitor must not call the VM. Objects that are
/// locked come at the end. How many objects there are, those without an id among them.
pub fn walk(_alone: &Alone, host: &Host, env: Env, all: bool, mut visit: impl FnMut(Met)) -> Result<u64, JvmtiError> {
    let shift = host.shift.get().copied().flatten();
    let mut passing: Vec<Met> = Vec::new();
    let mut count = 0;
    host.jvmti.heap_objects(|object| {
        count += 1;
        let size = object.size;
        let class = in_tag(object.class_tag).unwrap_or(0);
        if let Some(id) = in_tag(*object.tag) {
            return visit(Met { id, class, size, is_tagged: true });
        }
        let hash = shift.and_then(|shift| match object.hash(shift) {
            Some(0) if all => give_hash(object.tag_at, size, shift),
            hash => hash,
        });
        match hash {
            Some(0) => {}
            Some(id) => visit(Met { id, class, size, is_tagged: false }),
            None => {
                *object.tag = PASSING | passing.len() as i64;
                passing.push(Met { id: 0, class, size, is_tagged: true });
            }
        }
    })?;
    for (first, batch) in (0..).step_by(1000).zip(passing.chunks(1000)) {
        let tags: Vec<i64> = (first..).take(batch.len()).map(|number: i64| PASSING | number).collect();
        env.frame(2000, |env| {
            for (object, tag) in host.jvmti.objects_with_tags(env, &tags)? {
                let id = of(host, env, object) as u32;
                // It stays: it may be locked again in the next walk.
                host.jvmti.set_tag(object, KNOWN | i64::from(id))?;
                if let Some(met) = passing.get((tag & !PASSING) as usize) {
                    visit(Met { id, ..*met });
                }
                env.delete_local(object);
            }
            Ok::<(), JvmtiError>(())
        })?;
    }
    Ok(count)
}

/// The hash of an untagged object of a walk, given if it has none. Nothing if its mark word is a lock's.
pub fn in_walk(tag: *const i64, size: u64, shift: u32) -> Option<u32> {
    match read_hash(tag, size, shift) {
        Some(0) => give_hash(tag, size, shift),
        hash => hash,
    }
}

#[allow(unsafe_code, reason = "headers of objects")]
fn read_hash(tag: *const i64, size: u64, shift: u32) -> Option<u32> {
    // SAFETY: called by a visitor, with what it was given, where mark words were found to be.
    unsafe { mark_word::hash(tag, size, shift) }
}

/// Tags a mirror with the id under which it was reported: its class, once there is one, gets the same id.
pub fn tag_mirror(host: &Host, mirror: Object, id: ObjectId) {
    if host.jvmti.tag(mirror).unwrap_or(0) == 0 {
        is_class(id as u32);
        let _ = host.jvmti.set_tag(mirror, KNOWN | id as i64);
    }
}

/// Tags an object with its id, for walks to know it by.
pub fn tag(host: &Host, object: Object, id: ObjectId) {
    if host.jvmti.tag(object).unwrap_or(0) == 0 {
        let _ = host.jvmti.set_tag(object, KNOWN | id as i64);
    }
}

#[allow(unsafe_code, reason = "headers of objects")]
fn give_hash(tag: *const i64, size: u64, shift: u32) -> Option<u32> {
    let hash = fresh_hash();
    // SAFETY: called by a visitor, with what it was given, where mark words were found to be.
    unsafe { mark_word::give_hash(tag, size, shift, hash) }.then_some(hash)
}

/// Assigns separate ids to objects that share their hash with another, and hashes to objects without one. To be done
/// before reporting all objects: class archives contain objects that no walk shows before their class is used. Mirrors
/// of classes that are not loaded yet, hundreds of which are in archives, have their ids in their tags afterwards:
/// their classes get the same ids. `mirrors` is the id of their class.
pub fn part_twins(alone: &Alone, host: &Host, env: Env, mirrors: ObjectId) -> Result<(), JvmtiError> {
    let shift = host.shift.get().copied().flatten();
    let (mut once, mut twice, mut kept) = (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
    walk(alone, host, env, true, |met| {
        if !once.insert(met.id) {
            twice.insert(met.id);
        }
        if met.is_tagged {
            kept.insert(met.id);
        }
    })?;
    let mut count = 0_i64;
    let mut tagged = Vec::new();
    host.jvmti.heap_objects(|object| {
        let hash = shift.filter(|_| *object.tag == 0).and_then(|shift| object.hash(shift));
        let Some(hash) = hash.filter(|hash| *hash != 0) else { return };
        // One of them keeps it, unless another has it in its tag.
        if twice.contains(&hash) && !kept.insert(hash) {
            *object.tag = PASSING | count;
            count += 1;
        } else if in_tag(object.class_tag).is_some_and(|class| class as ObjectId == mirrors) {
            *object.tag = KNOWN | i64::from(hash);
            tagged.push(hash);
        }
    })?;
    tagged.into_iter().for_each(is_class);
    for first in (0..count).step_by(1000) {
        let tags: Vec<i64> = (first..count.min(first + 1000)).map(|number| PASSING | number).collect();
        env.frame(2000, |env| {
            for (object, _) in host.jvmti.objects_with_tags(env, &tags)? {
                let hash = host.hotspot.get().map_or(0, |hotspot| hotspot.identity_hash(env, object));
                host.jvmti.set_tag(object, KNOWN | beyond(hash) as i64)?;
                env.delete_local(object);
            }
            Ok::<(), JvmtiError>(())
        })?;
    }
    Ok(())
}

/// The object with an id, looked for in the whole heap.
pub fn find<'a>(host: &Host, env: Env<'a>, id: ObjectId) -> Option<Object<'a>> {
    let _alone = alone()?;
    let shift = host.shift.get().copied().flatten();
    let wanted = u32::try_from(id).ok().filter(|id| *id != 0)?;
    let mut tags = vec![KNOWN | i64::from(wanted), CLASS | KNOWN | i64::from(wanted)];
    let mut locked = 0_i64;
    host.jvmti
        .heap_objects(|object| {
            // Numbers in tags are left from a walk that failed: no other is under way.
            if in_tag(*object.tag).is_some() {
                return;
            }
            match shift.and_then(|shift| object.hash(shift)) {
                Some(hash) if hash == wanted => {
                    *object.tag = PASSING;
                }
                Some(_) => {}
                None => {
                    locked += 1;
                    *object.tag = PASSING | locked;
                }
            }
        })
        .ok()?;
    tags.extend((0..=locked).map(|number| PASSING | number));
    let mut found = None;
    for some in tags.chunks(10_000) {
        for (object, tag) in host.jvmti.objects_with_tags(env, some).ok()? {
            // Unless another thread has put an id there meanwhile.
            if tag & PASSING != 0 && host.jvmti.tag(object) == Ok(tag) {
                let _ = host.jvmti.set_tag(object, 0);
            }
            if found.is_none() && of(host, env, object) == id {
                found = Some(object);
            } else {
                env.delete_local(object);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_after_a_sweep_began_is_not_dead() {
        let ids: Vec<ObjectId> = (1..100).collect();
        assert!(ids.iter().all(|id| insert(*id)));
        ids.iter().for_each(|id| was_told(*id));
        assert!(!insert(7));
        let sweep = begin_sweep();
        assert!(insert(1000));
        let mut gone = dead(sweep, &[7, 8, 2000]);
        gone.sort_unstable();
        assert_eq!(gone, (1..100).filter(|id| ![7, 8].contains(id)).collect::<Vec<u32>>());
        assert!(!insert(9), "nobody was told yet");
        remove(&gone);
        assert_eq!([7, 1000, 9].map(known), [Known::Yes, Known::Soon, Known::No]);
        assert_eq!(dead(begin_sweep(), &[7]), [8], "nobody may hear of the death of what is being told of");
        was_told(1000);
        let mut rest = dead(begin_sweep(), &[7]);
        rest.sort_unstable();
        assert_eq!(rest, [8, 1000]);
    }

    #[test]
    fn fresh_hashes_are_not_given_twice() {
        let hashes: FxHashSet<u32> = (0..100_000).map(|_| fresh_hash()).collect();
        assert_eq!(hashes.len(), 100_000);
    }

    #[test]
    fn tags_hold_ids() {
        assert_eq!(in_tag(0), None);
        assert_eq!(in_tag(KNOWN | CLASS | 0x9000_0001), Some(0x9000_0001));
        assert_eq!(in_tag(PASSING | 3), None);
    }
}
