//! `HEAP_DUMP` and `OBJECT_DUMP`.
//!
//! Everything in a dump except classes is written during a single walk that follows references: HotSpot visits object
//! by object. Classes are added afterwards through JNI, with the other threads suspended; these are resumed before the
//! event is delivered, since the agent may need their locks. They run on meanwhile, and what the dump shows may die:
//! deaths that are found after the walk are reported after the dump (`shown`).
#![allow(unsafe_code, reason = "structures of the VM in a walk")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use et_jvm::env::{Env, Global, Object};
use et_jvm::jvmti::reference;
use et_jvm::mark_word;
use et_jvm::profiling::{Contents, Edge, reference_kind};
use jni_sys::{JNIEnv, jint, jlong, jvalue};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::abi::{self, CallFrame, CallTrace, Details, ObjectId, kind, record};
use crate::classes::{self, Class, Shape};
use crate::deliver;
use crate::host::Host;
use crate::ids;
use crate::layout::{self, Layout, bytes_of, is_reference};
use crate::records::{self, Record};
use crate::refs;
use crate::shown::{self, Shown, Undelivered, UnderWay};
use crate::sizes;
use crate::starts;
use crate::trace;
use crate::values::{self, Bytes, Writer};

/// Frames that are shown of each thread.
const DEPTH: usize = 256;

/// Suspended threads of the program; not those of the agent, which may be about to suspend this one. They are resumed
/// when this is dropped, except those that had been suspended before. Only [`ids::alone`]: two threads must not suspend
/// each other.
struct Stopped<'a> {
    host: &'a Host,
    threads: Vec<Global>,
}

impl<'a> Stopped<'a> {
    fn others(host: &'a Host, env: Env) -> Self {
        let mut all = Self { host, threads: Vec::new() };
        let mut seen = FxHashSet::from_iter([env.raw() as usize]);
        // Those that still run may start others.
        while host.can_suspend && all.more(env, &mut seen) {}
        all
    }

    /// Suspends threads that were not seen before. False if there are none.
    fn more(&mut self, env: Env, seen: &mut FxHashSet<usize>) -> bool {
        starts::find_all(self.host, env);
        let others: Vec<Global> = records::all()
            .into_iter()
            .filter(|record| seen.insert(record.env.load(Ordering::Relaxed)))
            .filter(|record| !record.is_system.load(Ordering::Relaxed) && !record.is_suspended.load(Ordering::Relaxed))
            .filter_map(|record| record.thread())
            .collect();
        if others.is_empty() {
            return false;
        }
        let objects: Vec<Object> = others.iter().map(Global::get).collect();
        let stopped = self.host.jvmti.suspend_each(&objects);
        self.threads.extend(others.iter().zip(stopped).filter(|(_, stopped)| *stopped).map(|(thread, _)| *thread));
        true
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        for thread in &self.threads {
            let _ = self.host.jvmti.resume_thread(thread.get());
        }
    }
}

/// An object in the walk.
#[derive(Clone, Copy, Debug)]
struct Met {
    id: u32,
    class: u32,
    length: i32,
    size: u32,
    /// Where its record starts; `NOWHERE` if it has none.
    record: usize,
}

const NOWHERE: usize = usize::MAX;

struct Walk<'a> {
    shift: u32,
    level: jint,
    classes: &'a FxHashMap<ObjectId, Arc<Class>>,
    layouts: FxHashMap<u32, Arc<Layout>>,
    /// Object id of `java.lang.Class`.
    class_of_classes: u32,
    /// `JNIEnv` by thread object id.
    envs: FxHashMap<u32, usize>,
    /// Those that were not named yet: an object may have several.
    globals: FxHashMap<ObjectId, Vec<usize>>,
    /// The frames that the dump shows of each thread, by its `JNIEnv`; those of hooks on top are not among them.
    frames: FxHashMap<usize, Range<usize>>,
    met: FxHashMap<usize, Met>,
    /// Object ids in use.
    used: FxHashSet<u32>,
    /// In the order in which they were met.
    order: Vec<usize>,
    roots: Bytes,
    out: Bytes,
    last: (usize, Option<Arc<Layout>>),
    /// References to objects that could not be identified, or whose classes are not known.
    lost: u64,
}

impl Walk<'_> {
    fn address(tag_at: *mut jlong, size: u64) -> Option<usize> {
        // SAFETY: called by a visitor, with what it was given.
        unsafe { mark_word::address(tag_at, size) }
    }

    fn meet(&mut self, edge: &Edge) -> Option<usize> {
        let address = Self::address(edge.tag_at, edge.size)?;
        if self.met.contains_key(&address) {
            return Some(address);
        }
        let class = ids::in_tag(edge.class_tag).unwrap_or(0);
        // A dump names no object that it has no record of.
        if !self.classes.contains_key(&(class as ObjectId)) {
            self.lost += 1;
            return None;
        }
        // SAFETY: the visitor's place of the object's tag.
        let tag = unsafe { *edge.tag_at };
        let id = ids::in_tag(tag).or_else(|| ids::in_walk(edge.tag_at, edge.size, self.shift));
        let Some(mut id) = id else {
            self.lost += 1;
            return None;
        };
        // Some objects of archives are shown by no other walk: G1 of Java 17 leaves their regions out.
        let is_taken = !self.used.insert(id) || self.classes.contains_key(&(id as ObjectId));
        if tag == 0 && is_taken {
            let (own, tag) = ids::apart(id);
            id = own;
            self.used.insert(id);
            // SAFETY: as above; a visitor may change tags.
            unsafe { *edge.tag_at = tag };
        }
        let size = u32::try_from(edge.size).unwrap_or(u32::MAX);
        self.met.insert(address, Met { id, class, length: edge.length, size, record: NOWHERE });
        self.order.push(address);
        Some(address)
    }

    fn root(&mut self, edge: &Edge, id: ObjectId) {
        let env = |tag: jlong| ids::in_tag(tag).and_then(|id| self.envs.get(&id)).copied().unwrap_or(0);
        let out = &mut self.roots;
        match edge.kind {
            reference_kind::SYSTEM_CLASS => {
                out.byte(record::ROOT_STICKY_CLASS);
                out.pointer(id);
            }
            reference_kind::MONITOR => {
                out.byte(record::ROOT_MONITOR_USED);
                out.pointer(id);
            }
            reference::THREAD => {
                out.byte(record::ROOT_THREAD_BLOCK);
                out.pointer(id);
                out.pointer(self.envs.get(&(id as u32)).copied().unwrap_or(0));
            }
            reference::STACK_LOCAL | reference_kind::JNI_LOCAL => {
                let (thread, depth) = edge.frame.unwrap_or((0, -1));
                let is_local = edge.kind == reference::STACK_LOCAL;
                out.byte(if is_local { record::ROOT_JAVA_FRAME } else { record::ROOT_JNI_LOCAL });
                let thread = env(thread);
                out.pointer(id);
                out.pointer(thread);
                out.u4(index_of_frame(depth, self.frames.get(&thread)));
            }
            _ => {
                let is_global = edge.kind == reference_kind::JNI_GLOBAL;
                let reference = if is_global { self.globals.get_mut(&id).and_then(Vec::pop) } else { None };
                out.byte(if reference.is_some() { record::ROOT_JNI_GLOBAL } else { record::ROOT_UNKNOWN });
                out.pointer(id);
                reference.into_iter().for_each(|reference| out.pointer(reference));
            }
        }
    }

    /// Begins the record of an object; the elements of an array of primitives are still to come.
    fn begin(&mut self, address: usize) -> Option<Met> {
        let mut met = *self.met.get(&address)?;
        if met.record != NOWHERE || self.level == 0 {
            return Some(met);
        }
        if met.class == self.class_of_classes
            && self.classes.get(&(met.id as ObjectId)).is_some_and(|class| class.shape == Shape::Instance)
        {
            return None;
        }
        let class = self.classes.get(&(met.class as ObjectId))?;
        let start = self.out.0.len();
        match class.shape {
            Shape::Instance => {
                let bytes = self.layouts.get(&met.class).map_or(0, |layout| layout.bytes);
                self.out.byte(record::INSTANCE_DUMP);
                self.out.pointer(met.id as ObjectId);
                self.out.pointer(class.id);
                self.out.u4(bytes as u32);
                self.out.0.resize(self.out.0.len() + bytes, 0);
            }
            Shape::Objects(element) => {
                let length = met.length.max(0) as usize;
                self.out.byte(record::OBJ_ARRAY_DUMP);
                self.out.pointer(met.id as ObjectId);
                self.out.u4(length as u32);
                self.out.pointer(element);
                self.out.0.resize(self.out.0.len() + length * size_of::<usize>(), 0);
            }
            Shape::Primitives(letter) => {
                self.out.byte(record::PRIM_ARRAY_DUMP);
                self.out.pointer(met.id as ObjectId);
                self.out.u4(met.length.max(0) as u32);
                self.out.byte(kind::of_primitive(letter).unwrap_or(0) as u8);
                if self.level > 1 {
                    let bytes = met.length.max(0) as usize * bytes_of(letter);
                    self.out.0.resize(self.out.0.len() + bytes, 0);
                }
            }
        }
        met.record = start;
        self.met.insert(address, met);
        Some(met)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.out.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn place(&mut self, address: usize, met: &Met, index: u32) -> Option<layout::Place> {
        if self.last.0 != address || self.last.1.is_none() {
            self.last = (address, self.layouts.get(&met.class).cloned());
        }
        self.last.1.as_ref()?.places.get(index as usize).copied().flatten()
    }
}

/// Index of the frame in a stack trace with these values; -1 if there is none.
fn index_of_frame(depth: jint, frames: Option<&Range<usize>>) -> u32 {
    let depth = usize::try_from(depth).ok();
    let frame = depth.zip(frames).filter(|(depth, frames)| frames.contains(depth));
    frame.map_or(u32::MAX, |(depth, frames)| (depth - frames.start) as u32)
}

/// Length in bytes of the record of an instance before the values.
const INSTANCE_HEAD: usize = 1 + 8 + 8 + 4;
/// Length in bytes of the record of a reference array before the elements.
const ARRAY_HEAD: usize = 1 + 8 + 4 + 8;
/// Length in bytes of the record of a primitive array before the elements.
const PRIMITIVES_HEAD: usize = 1 + 8 + 4 + 1;

impl Contents for Walk<'_> {
    fn edge(&mut self, edge: Edge) {
        let Some(address) = self.meet(&edge) else { return };
        let id = self.met[&address].id as ObjectId;
        if edge.referrer_tag_at.is_null() {
            return self.root(&edge, id);
        }
        let referrer = if std::ptr::eq(edge.referrer_tag_at, edge.tag_at) {
            address
        } else {
            // SAFETY: called by a visitor with its arguments; it is not the object's own address.
            unsafe { mark_word::referrer_address(edge.referrer_tag_at) }
        };
        let Some(met) = self.begin(referrer).filter(|met| met.record != NOWHERE) else { return };
        match edge.kind {
            reference::FIELD => {
                if let Some(place) = self.place(referrer, &met, edge.index).filter(|place| is_reference(place.letter)) {
                    self.put(met.record + INSTANCE_HEAD + place.offset, &id.to_ne_bytes());
                }
            }
            reference::ARRAY_ELEMENT if (edge.index as i64) < i64::from(met.length) => {
                self.put(met.record + ARRAY_HEAD + edge.index as usize * size_of::<usize>(), &id.to_ne_bytes());
            }
            _ => {}
        }
    }

    fn field(&mut self, kind: jint, index: u32, tag_at: *mut jlong, value: jvalue, letter: u8) {
        if kind != reference::FIELD || self.level < 2 {
            return;
        }
        // SAFETY: as the module `mark_word` says: the word before a tag is the object's size.
        let size = unsafe { tag_at.sub(1).read() } as u64;
        let Some(address) = Self::address(tag_at, size) else { return };
        let Some(met) = self.begin(address).filter(|met| met.record != NOWHERE) else { return };
        let Some(place) = self.place(address, &met, index).filter(|place| place.letter == letter) else { return };
        // SAFETY: eight bytes, of which the type says how many count.
        let mut bytes = unsafe { value.j }.to_ne_bytes();
        let bytes = &mut bytes[..bytes_of(letter)];
        bytes.reverse();
        self.put(met.record + INSTANCE_HEAD + place.offset, bytes);
    }

    fn array(&mut self, size: u64, tag_at: *mut jlong, count: usize, letter: u8, elements: *const u8) {
        if self.level < 2 {
            return;
        }
        let Some(address) = Self::address(tag_at, size) else { return };
        let Some(met) = self.begin(address).filter(|met| met.record != NOWHERE) else { return };
        if met.length < 0 || count > met.length as usize || elements.is_null() {
            return;
        }
        // SAFETY: this many elements of that type, according to the VM.
        let mut bytes = unsafe { std::slice::from_raw_parts(elements, count * bytes_of(letter)) }.to_vec();
        values::swap(&mut bytes, letter);
        self.put(met.record + PRIMITIVES_HEAD, &bytes);
    }
}

/// A dump that is to be delivered.
struct Taken {
    known: FxHashMap<ObjectId, Arc<Class>>,
    bytes: Vec<u8>,
    objects: FxHashMap<u32, Shown>,
    stacks: Vec<(usize, Vec<CallFrame>)>,
    lost: u64,
}

/// Reports the heap. Returns false if it cannot be walked.
pub fn heap(host: &Host, env: Env, level: jint) -> bool {
    let Some(shift) = host.shift.get().copied().flatten() else { return false };
    if !(0..=2).contains(&level) {
        return false;
    }
    let _undelivered = Undelivered::begin();
    let Some(taken) = take(host, env, level, shift) else { return false };
    let Taken { known, bytes, objects, mut stacks, lost } = taken;
    host.left_out.objects.fetch_add(lost, Ordering::Relaxed);
    for class in known.values().filter(|class| class.shape == Shape::Instance) {
        classes::tell(host, env.raw(), class);
    }
    let mut traces: Vec<CallTrace> = Vec::new();
    for (there, frames) in &mut stacks {
        traces.push(CallTrace {
            env_id: *there as *mut JNIEnv,
            num_frames: frames.len() as jint,
            frames: frames.as_mut_ptr(),
        });
    }
    for frame in stacks.iter().flat_map(|(_, frames)| frames) {
        classes::tell_of_method(host, env, frame.method_id);
    }
    let dump = Arc::new(UnderWay { bytes, classes: known, objects });
    let span = dump.bytes.as_ptr_range();
    let heap_dump = abi::HeapDump {
        dump_level: level,
        begin: span.start,
        end: span.end,
        num_traces: traces.len() as jint,
        traces: traces.as_ptr(),
    };
    shown::during(dump, || deliver::tell_requested(env.raw(), abi::event::HEAP_DUMP, Details { heap_dump }));
    true
}

/// Walks the heap once.
fn take(host: &Host, env: Env, level: jint, shift: u32) -> Option<Taken> {
    // Everything that links, loads or reports classes comes before suspending other threads, and before taking the
    // lock: the agent may hold a lock that it needs in these events while it requests a dump on another thread.
    classes::prepare_dump(host, env);
    let class_of_classes = classes::of_classes(host, env);
    let alone = ids::alone()?;
    let stopped = Stopped::others(host, env);
    let known = classes::for_dump(host, env);
    let layouts = layout::of_all(&known, level > 1);
    let (mut envs, mut shown_frames) = (FxHashMap::default(), FxHashMap::default());
    let mut stacks: Vec<(usize, Vec<CallFrame>)> = Vec::new();
    // Of a thread that the agent has not heard of yet nothing has run.
    let is_heard_of = |record: &&Record| record.told.is_claimed() || !host.wants(abi::event::THREAD_START);
    for record in records::all().into_iter().filter(is_heard_of) {
        let there = record.env.load(Ordering::Relaxed);
        let Some(thread) = record.thread() else { continue };
        let id = ids::of(host, env, thread.get());
        ids::tag(host, thread.get(), id);
        envs.insert(id as u32, there);
        if level > 0 {
            let other = (there != env.raw() as usize).then_some(thread);
            let (own, frames) = (trace::own_on_top(host, other), trace::frames_quietly(host, other, DEPTH));
            shown_frames.insert(there, own..own + frames.len());
            stacks.push((there, frames));
        }
    }
    // Also tags the objects whose mark words are in use by locks.
    ids::part_twins(&alone, host, env, class_of_classes).ok()?;
    let mut walk = Walk {
        shift,
        level,
        classes: &known,
        layouts,
        class_of_classes: class_of_classes as u32,
        envs,
        globals: refs::by_object(),
        frames: shown_frames,
        met: FxHashMap::default(),
        used: FxHashSet::default(),
        order: Vec::new(),
        roots: Bytes::default(),
        out: Bytes::default(),
        last: (0, None),
        lost: 0,
    };
    host.jvmti.follow_contents(&mut walk).ok()?;
    let order = std::mem::take(&mut walk.order);
    if level == 0 {
        for address in &order {
            let met = walk.met[address];
            let class = known.get(&(met.class as ObjectId));
            walk.out.byte(class.map_or(0, |class| class.allocated(met.id as ObjectId).0) as u8);
            walk.out.pointer(met.id as ObjectId);
        }
    } else {
        // Mirrors of arrays and of primitive types, which refer to nothing.
        for address in &order {
            walk.begin(*address);
        }
        class_records(host, env, &mut walk, &known, level > 1);
    }
    drop(stopped);
    drop(alone);
    let mut bytes = if level == 0 { Vec::new() } else { walk.roots.0 };
    let roots = bytes.len();
    bytes.append(&mut walk.out.0);
    let objects = by_id(walk.met.into_values().collect(), roots, bytes.len());
    let lost = walk.lost;
    Some(Taken { known, bytes, objects, stacks, lost })
}

/// The objects of a dump whose records start behind `roots` bytes and end at `end`.
fn by_id(mut all: Vec<Met>, roots: usize, end: usize) -> FxHashMap<u32, Shown> {
    all.sort_unstable_by_key(|met| met.record);
    let starts = all.iter().skip(1).map(|met| met.record).chain([NOWHERE]);
    let shown = all.iter().zip(starts).map(|(met, next)| {
        let record = match (met.record, next) {
            (NOWHERE, _) => 0..0,
            (start, NOWHERE) => start + roots..end,
            (start, next) => start + roots..next + roots,
        };
        (met.id, Shown { class: met.class, size: met.size, record })
    });
    shown.collect()
}

fn class_records(host: &Host, env: Env, walk: &mut Walk, known: &FxHashMap<ObjectId, Arc<Class>>, primitives: bool) {
    // Where HotSpot does not say it, what JVMTI says of instances that there are.
    let mut sizes: FxHashMap<u32, u32> = FxHashMap::default();
    for met in walk.met.values().filter(|met| met.class != walk.class_of_classes) {
        sizes.insert(met.class, met.size);
    }
    sizes.extend(sizes::of_all(host));
    let by_id: FxHashMap<u32, usize> = walk.met.iter().map(|(address, met)| (met.id, *address)).collect();
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        for mirror in host.jvmti.loaded_classes(env).unwrap_or_default() {
            let class = ids::of_class(host, mirror)
                .and_then(|id| known.get(&id))
                .filter(|class| class.shape == Shape::Instance);
            // Those that nothing leads to are about to be unloaded, with what they refer to.
            if let Some(class) = class
                && let Some(met) = by_id.get(&(class.id as u32)).and_then(|address| walk.met.get_mut(address))
            {
                let size = sizes.get(&(class.id as u32)).copied().unwrap_or(0);
                met.record = walk.out.0.len();
                let lost = &mut walk.lost;
                let name = &mut |id: ObjectId| {
                    let is_shown = by_id.contains_key(&(id as u32));
                    *lost += u64::from(!is_shown);
                    if is_shown { id } else { 0 }
                };
                Writer { host, env, name, out: &mut walk.out }.class(mirror, class, size, primitives);
            }
            env.delete_local(mirror);
        }
    });
}

/// Reports a single object.
pub fn object(host: &Host, env: Env, id: ObjectId) -> bool {
    let dump = shown::under_way();
    if let Some(record) = dump.as_ref().and_then(|dump| dump.record(id)) {
        tell_object(env, record);
        return true;
    }
    let mut out = Bytes::default();
    env.frame(16, |env| {
        let Some(object) = ids::find(host, env, id) else { return };
        let mut writer = Writer { host, env, name: &mut |id| id, out: &mut out };
        if let Some(class) = classes::known(id).filter(|class| class.shape == Shape::Instance) {
            let size = sizes::of_instances(host, id).unwrap_or(0);
            return writer.class(object, &class, size, true);
        }
        let Some(class) = env.class_of(object).and_then(|class| classes::of(host, env, class)) else { return };
        let known: FxHashMap<ObjectId, Arc<Class>> =
            classes::all().into_iter().map(|class| (class.id, class)).collect();
        writer.object(object, id, &layout::chain(&known, class.id));
    });
    let is_found = !out.0.is_empty();
    if is_found {
        tell_object(env, &out.0);
    }
    is_found
}

fn tell_object(env: Env, bytes: &[u8]) {
    let object_dump = abi::ObjectDump { data_len: bytes.len() as jint, data: bytes.as_ptr() };
    deliver::tell_requested(env.raw(), abi::event::OBJECT_DUMP, Details { object_dump });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_name_frames_that_the_traces_have() {
        let frames = |depth, frames: Range<usize>| index_of_frame(depth, Some(&frames));
        assert_eq!([frames(0, 0..2), frames(1, 0..2), frames(3, 3..5)], [0, 1, 0]);
        assert_eq!([frames(2, 0..2), frames(-1, 0..2), frames(2, 3..5), index_of_frame(0, None)], [u32::MAX; 4]);
    }
}
