//! Allocations, and the objects that other events name.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use et_jvm::env::{Env, Object};
use jni_sys::JNIEnv;

use crate::abi::{Details, ObjAlloc, ObjectId, event};
use crate::classes::{self, Class, Shape};
use crate::deliver;
use crate::host::{self, Host};
use crate::ids::{self, Known, Met};
use crate::records;
use crate::shown;

/// The only arena.
pub const ARENA: i32 = 1;

thread_local! {
    /// The `OBJECT_ALLOC` events that this thread is delivering, nested if the agent caused further ones.
    static UNDER_WAY: RefCell<Vec<ObjAlloc>> = const { RefCell::new(Vec::new()) };
}

fn details(class: Option<&Class>, id: ObjectId, size: u64) -> ObjAlloc {
    let (is_array, class_id) = class.map_or((0, 0), |class| class.allocated(id));
    ObjAlloc { arena_id: ARENA, class_id, is_array, size: i32::try_from(size).unwrap_or(i32::MAX), obj_id: id }
}

fn tell(host: &Host, env: *mut JNIEnv, class: Option<&Class>, id: ObjectId, size: u64) {
    if let Some(class) = class {
        classes::tell_with_elements(host, env, class);
    }
    let alloc = details(class, id, size);
    UNDER_WAY.with_borrow_mut(|all| all.push(alloc));
    deliver::tell_definition(env, event::OBJECT_ALLOC, Details { obj_alloc: alloc });
    UNDER_WAY.with_borrow_mut(Vec::pop);
    ids::was_told(id);
}

/// The event that this thread is delivering for the object.
fn under_way(id: ObjectId) -> Option<ObjAlloc> {
    UNDER_WAY.with_borrow(|all| all.iter().copied().find(|alloc| alloc.obj_id == id))
}

/// The current thread has made an object.
pub fn made(host: &Host, env: Env, object: Object, mirror: Object, size: u64) {
    if let Some(id) = ids::born(host, env, object) {
        let class = classes::of(host, env, mirror);
        if class.as_ref().is_some_and(|class| class.name.as_c_str() == c"java.lang.Class") {
            // Its id as a class is to be the same.
            ids::tag_mirror(host, object, id);
        }
        if let Some(class) = &class {
            tell_mirrors(host, env, mirror, class);
        }
        tell(host, env.raw(), class.as_deref(), id, size);
    }
}

/// Reports the mirrors of an array's class and of its element classes.
fn tell_mirrors(host: &Host, env: Env, mirror: Object, class: &Class) {
    if class.shape == Shape::Instance || class.is_mirror_told.swap(true, Ordering::Relaxed) {
        return;
    }
    env.frame(8, |env| {
        define(host, env, mirror);
        if let Shape::Objects(element) = class.shape
            && let Some(element) = classes::known(element)
            && let Some(mirror) = classes::mirror_of_component(env, mirror)
        {
            tell_mirrors(host, env, mirror, &element);
        }
    });
}

/// Id of an object that an event is about to refer to; reports the object first if necessary.
pub fn define(host: &Host, env: Env, object: Object) -> ObjectId {
    let id = ids::of(host, env, object);
    if id == 0 || !host.wants(event::OBJECT_ALLOC) {
        return id;
    }
    match ids::known(id) {
        Known::Yes => {}
        Known::No if ids::define(host, id, object) => {
            let size = host.jvmti.object_size(object).unwrap_or(0);
            env.frame(4, |env| {
                let mirror = env.class_of(object);
                let class = mirror.and_then(|mirror| classes::of(host, env, mirror));
                if let (Some(mirror), Some(class)) = (mirror, &class) {
                    tell_mirrors(host, env, mirror, class);
                }
                tell(host, env.raw(), class.as_deref(), id, size);
            });
        }
        // This thread is about to, or another.
        Known::No | Known::Soon if under_way(id).is_some() => {}
        Known::No | Known::Soon => {
            let is_told = || ids::known(id) != Known::Soon || !host.wants(event::OBJECT_ALLOC);
            records::wait_for_another(records::current(env.raw()), is_told);
        }
    }
    id
}

/// Reports all existing objects that have not been reported.
pub fn tell_all(host: &Host, env: Env) {
    let mut found: Vec<Met> = Vec::new();
    let mirrors = classes::of_classes(host, env);
    let Some(alone) = ids::alone() else {
        return host::say("objects that exist already are not reported: another thread walks the heap all the time");
    };
    let parted = ids::part_twins(&alone, host, env, mirrors);
    if parted.and_then(|()| ids::walk(&alone, host, env, true, |met| found.push(met))).is_err() {
        return;
    }
    drop(alone);
    for met in found {
        if met.class != 0 && ids::insert(met.id as ObjectId) {
            let class = classes::known(met.class as ObjectId);
            tell(host, env.raw(), class.as_deref(), met.id as ObjectId, met.size);
        }
    }
}

/// Reports an object at the agent's request: that of the current event, or of the dump under way,
/// or one that is searched for in the heap.
pub fn tell_requested(host: &Host, env: Env, id: ObjectId) -> bool {
    if let Some(alloc) = under_way(id) {
        deliver::tell_requested(env.raw(), event::OBJECT_ALLOC, Details { obj_alloc: alloc });
        return true;
    }
    // What is in a dump may have died since.
    let dump = shown::under_way();
    let shown = dump.as_ref().and_then(|dump| {
        let shown = dump.object(id)?;
        Some((dump.classes.get(&(shown.class as ObjectId)).cloned(), u64::from(shown.size)))
    });
    let in_heap = || in_heap(host, env, id).map(|(class, size)| (classes::known(class), size));
    let Some((class, size)) = shown.or_else(in_heap) else { return false };
    let is_new = ids::insert(id);
    let alloc = details(class.as_deref(), id, size);
    deliver::tell_requested(env.raw(), event::OBJECT_ALLOC, Details { obj_alloc: alloc });
    if is_new {
        ids::was_told(id);
    }
    true
}

/// The class of an object, and its size in bytes.
fn in_heap(host: &Host, env: Env, id: ObjectId) -> Option<(ObjectId, u64)> {
    let mut found = None;
    let walked = ids::walk(&ids::alone()?, host, env, false, |met| {
        // An object without a tag may have the hash of one that has its id in it.
        if met.id as ObjectId == id && (met.is_tagged || found.is_none()) {
            found = Some(met);
        }
    });
    walked.ok()?;
    found.map(|met| (met.class as ObjectId, met.size))
}
