//! Method entries and exits by hooks: on an instrumented JDK whose `HeapProxy` is the variant for JVMPI
//! (`runtime-java/src/jvmpi`), methods call the host, and code is compiled as usual. With JVMTI's events all code would
//! be interpreted.
//!
//! A hook identifies its method by a number that the rewriter assigned. When a number is first seen, the corresponding
//! `jmethodID` is taken from the stack.
#![allow(unsafe_code, reason = "entry points from the VM, and a table that grows under its readers")]

use std::cell::Cell;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use et_jvm::env::{Env, Global, Object, StaticField};
use et_jvm::profiling::RawFrame;
use et_jvm::sync::{lock, made_once};
use et_names::{ClassFlags, DynamicIds, EventSet, ID_LIMIT};
use et_rewriter::rewrite::{FirstIds, Options, Plan};
use jni_sys::{JNIEnv, jclass, jint, jmethodID, jobject};
use rustc_hash::FxHashMap;

use crate::abi::{ObjectId, event};
use crate::classes::{self, Class};
use crate::host::{Host, Phase, guarded};
use crate::methods;
use crate::objects;
use crate::starts;

/// Events that hooks report.
pub const EVENTS: &[jint] = &[event::METHOD_ENTRY, event::METHOD_ENTRY2, event::METHOD_EXIT];

/// The class that hooks call.
#[derive(Debug)]
struct Proxy {
    class: Global,
    /// The field that enables the hooks.
    told: StaticField,
    /// Exits that found no room on the stack.
    overflows: Option<StaticField>,
    /// The `jmethodID`s of the class, in order: its frames are not the program's.
    methods: Vec<usize>,
}

static PROXY: OnceLock<Proxy> = OnceLock::new();

/// Frames of hooks on a stack, at most: a native method, and what calls it.
const FRAMES: usize = 3;

/// Looks for the class that hooks call. Without it events come by JVMTI.
pub fn find(host: &Host, env: Env) {
    env.frame(16, |env| {
        let Some(class) = env.find_class(c"java/lang/HeapProxy") else { return };
        // The variant for traces has no such field and is not enabled.
        let Some(told) = env.static_field(class, c"told", c"Z") else { return };
        let Some(link) = env.static_method(class, c"link", c"()V") else { return };
        env.call_static_void(class, link, &[]);
        let mut methods: Vec<usize> =
            host.jvmti.methods(class).unwrap_or_default().iter().map(|method| method.0 as usize).collect();
        methods.sort_unstable();
        let overflows = env.static_field(class, c"overflows", c"I");
        if let Some(class) = env.global(class) {
            let _ = PROXY.set(Proxy { class, told, overflows, methods });
        }
    });
    if are_there() {
        classes::all().iter().for_each(|class| prepared(class));
    }
}

/// Whether methods come by hooks.
pub fn are_there() -> bool {
    PROXY.get().is_some()
}

/// Enables or disables the hooks.
pub fn switch(host: &Host, on: bool) {
    if let (Some(proxy), Some(env)) = (PROXY.get(), host.env()) {
        env.set_static_boolean(proxy.class.get(), proxy.told, on);
    }
}

/// At VM shutdown.
pub fn end(host: &Host, env: Env) {
    switch(host, false);
    if let Some(proxy) = PROXY.get()
        && let Some(overflows) = proxy.overflows
    {
        let overflows = env.get_static_int(proxy.class.get(), overflows).max(0) as u64;
        host.left_out.overflows.store(overflows, Ordering::Relaxed);
    }
}

/// How many frames more than the program's a stack may have.
pub fn frames() -> usize {
    if are_there() { FRAMES } else { 0 }
}

/// Whether a method belongs to the hooks.
pub fn is_own(method: jmethodID) -> bool {
    PROXY.get().is_some_and(|proxy| proxy.methods.binary_search(&(method as usize)).is_ok())
}

/// Numbers for methods of loaded classes, after those of artifacts on disk.
static NUMBERS_LEFT: DynamicIds = DynamicIds::new();

/// A class file with hooks, where they are there; none if it has them, or can have none. `replaces_boot`: it takes the place of one of the boot
/// loader's, and the special cases of `java.base` apply.
pub fn into_class(host: &Host, bytes: &[u8], replaces_boot: bool) -> Option<Vec<u8>> {
    if !are_there() {
        return None;
    }
    let mut options = Options {
        events: EventSet::METHOD,
        jdk: replaces_boot,
        artifact_hash: 0,
        base: 0,
        leaves: true,
        all_hooked: true,
    };
    // It has hooks, or something is wrong with it: the VM knows better what, and says so.
    let plan = Plan::new(bytes, true, &options).ok()?;
    if plan.is_lambda_form() {
        return None;
    }
    let left_out = &host.left_out;
    let Some(base) = NUMBERS_LEFT.take(plan.counts().methods.max(1)) else {
        left_out.unhooked.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    (options.base, options.artifact_hash) = (base, base.into());
    // Fields and sites are not reported, so their numbers do not matter.
    let first = FirstIds { class: base, method: base, field: base, site: base, field_ref: base };
    match plan.rewrite(first, &options) {
        Ok(done) => {
            left_out.too_large.fetch_add(done.names.shortfalls.len() as u64, Ordering::Relaxed);
            (!done.names.flags.has(ClassFlags::NOT_HOOKED)).then_some(done.bytes)
        }
        Err(_) => {
            left_out.unhooked.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

/// A method with a number.
#[derive(Debug)]
struct Known {
    id: usize,
    is_static: bool,
    /// Its class; none if the number is that of several methods.
    class: Option<Arc<Class>>,
}

const LEAF: usize = 1 << 12;
type Leaf = [AtomicPtr<Known>; LEAF];

/// By number. Memory that costs nothing before it is used.
static NUMBERS: [AtomicPtr<Leaf>; ID_LIMIT as usize / LEAF] =
    [const { AtomicPtr::new(ptr::null_mut()) }; ID_LIMIT as usize / LEAF];

/// An artifact may be loaded by several loaders: its numbers are then those of several methods, and the stack is asked each time.
static SEVERAL: Known = Known { id: 0, is_static: false, class: None };

/// The method with a number, if it is known.
#[inline]
fn known(number: u32) -> Option<&'static Known> {
    let leaf = NUMBERS.get(number as usize / LEAF)?.load(Ordering::Acquire);
    // SAFETY: null, or one that was put there for good.
    let known = unsafe { leaf.as_ref() }?[number as usize % LEAF].load(Ordering::Acquire);
    // SAFETY: as above.
    unsafe { known.as_ref() }
}

fn set(number: u32, known: &'static Known) {
    let Some(place) = NUMBERS.get(number as usize / LEAF) else { return };
    let mut leaf = place.load(Ordering::Acquire);
    if leaf.is_null() {
        let fresh = Box::into_raw(Box::new([const { AtomicPtr::new(ptr::null_mut()) }; LEAF]));
        leaf = match place.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: created above, and there is no other pointer to it.
                drop(unsafe { Box::from_raw(fresh) });
                other
            }
        };
    }
    // SAFETY: never freed, and immutable.
    let leaf = unsafe { &*leaf };
    leaf[number as usize % LEAF].store(ptr::from_ref(known).cast_mut(), Ordering::Release);
}

/// The classes with one name.
#[derive(Debug)]
struct Named {
    first: ObjectId,
    are_several: bool,
    /// Those of its methods that are known.
    numbers: Vec<u32>,
}

static BY_NAME: Mutex<Option<FxHashMap<CString, Named>>> = Mutex::new(None);

/// A class is linked. If another has its name, both may be of one artifact.
pub fn prepared(class: &Class) {
    if !are_there() {
        return;
    }
    Named::with(class, |_| {});
}

impl Named {
    /// Calls `then` with the classes of a class's name, it among them.
    fn with(class: &Class, then: impl FnOnce(&mut Self)) {
        let mut by_name = lock(&BY_NAME);
        let named = by_name.get_or_insert_default().entry(class.name.clone());
        let named = named.or_insert_with(|| Self { first: class.id, are_several: false, numbers: Vec::new() });
        if named.first != class.id {
            named.are_several = true;
            named.numbers.drain(..).for_each(|number| set(number, &SEVERAL));
        }
        then(named);
    }
}

/// A method has a number, which is its own as long as its class is the only one of its name.
fn learn(number: u32, method: &'static Known, class: &Class) {
    Named::with(class, |named| {
        if named.are_several {
            set(number, &SEVERAL);
        } else {
            named.numbers.push(number);
            set(number, method);
        }
    });
}

/// The method whose hook has called us, and the depth of its frame.
fn on_stack(host: &Host) -> Option<(jmethodID, usize)> {
    let mut frames = [RawFrame { method: ptr::null_mut(), location: 0 }; FRAMES + 1];
    let count = host.jvmti.current_stack(None, &mut frames).ok()?;
    let depth = frames[..count].iter().position(|frame| !is_own(frame.method))?;
    Some((frames[depth].method, depth))
}

/// Calls `then` with the method of a number: its id, whether it is static, and its class.
#[inline]
fn with_method(host: &Host, env: Env, number: u32, then: impl FnOnce(jmethodID, bool, &Class)) {
    if let Some(Known { id, is_static, class: Some(class) }) = known(number) {
        then(*id as jmethodID, *is_static, class);
    } else if let Some((id, is_static, class)) = ask_stack(host, env, number) {
        then(id, is_static, &class);
    }
}

#[cold]
fn ask_stack(host: &Host, env: Env, number: u32) -> Option<(jmethodID, bool, Arc<Class>)> {
    let (id, _) = on_stack(host)?;
    let method = classes::method(host, env, id)?;
    let class = classes::known(method.class)?;
    if known(number).is_none() {
        let fresh = Known { id: id as usize, is_static: method.is_static, class: Some(Arc::clone(&class)) };
        learn(number, Box::leak(Box::new(fresh)), &class);
    }
    Some((id, method.is_static, class))
}

fn entered(host: &'static Host, env: Env, receiver: Option<Object>, number: u32) {
    if is_left_out(host, env) {
        return;
    }
    let record = starts::announce(host, env);
    if record.is_inside() {
        return;
    }
    with_method(host, env, number, |id, is_static, class| {
        classes::tell(host, env.raw(), class);
        methods::enter(host, env, record, id, || match receiver {
            Some(receiver) => env.frame(4, |env| objects::define(host, env, receiver)),
            None if is_static => 0,
            // A constructor that has not called another yet: hooks may not touch its object.
            None => on_stack(host).map_or(0, |(_, depth)| methods::receiver(host, env, depth)),
        });
    });
}

fn left(host: &'static Host, env: Env, number: u32) {
    if is_left_out(host, env) {
        return;
    }
    let record = starts::announce(host, env);
    if record.is_inside() {
        return;
    }
    with_method(host, env, number, |id, _, _| methods::leave(env, record, id));
}

/// The class of threads that carry virtual ones, in releases that have any.
static CARRIER: OnceLock<Option<Global>> = OnceLock::new();

thread_local! {
    /// Whether the current thread is a carrier of virtual threads; `None` if unknown.
    static CARRIES: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether an event comes from a virtual thread or its carrier. Hooks also run while a thread is being mounted or
/// unmounted, when it must not wait for the agent: others would wait for it in JVMTI, holding the agent's lock. JVMTI's
/// own events exclude that; here the cases cannot be distinguished.
fn is_left_out(host: &'static Host, env: Env) -> bool {
    let carries = CARRIES.get().unwrap_or_else(|| {
        // Finding out may itself run hooks.
        CARRIES.set(Some(false));
        let make = || Some(env.find_class(c"jdk/internal/misc/CarrierThread").and_then(|class| env.global(class)));
        let discard = |another: Option<Global>| another.into_iter().for_each(|another| env.delete_global(another));
        let carries = made_once(&CARRIER, make, discard).and_then(Option::as_ref).is_some_and(|class| {
            env.frame(8, |env| {
                starts::platform_thread(host, env).is_some_and(|thread| env.is_instance(thread, class.get()))
            })
        });
        CARRIES.set(Some(carries));
        carries
    });
    if carries {
        host.left_out.virtual_threads.fetch_add(1, Ordering::Relaxed);
    }
    carries
}

/// Handles a call of a hook while events are enabled. Invalid numbers link the native methods.
fn told(env: *mut JNIEnv, number: jint, tell: impl FnOnce(&'static Host, Env, u32)) {
    let Ok(number) = u32::try_from(number) else { return };
    // SAFETY: as the VM hands it over.
    let Some(env) = (unsafe { Env::new(env) }) else { return };
    guarded((), |host| {
        if host.session.phase() == Phase::Live && host.is_any_enabled(EVENTS) {
            tell(host, env, number);
        }
    });
}

/// `HeapProxy.entered(Object, int)`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_entered(
    env: *mut JNIEnv,
    _class: jclass,
    receiver: jobject,
    number: jint,
) {
    // SAFETY: a local reference of this call, or null.
    let receiver = unsafe { Object::new(receiver) };
    told(env, number, |host, env, number| entered(host, env, receiver, number));
}

/// `HeapProxy.left(int)`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeapProxy_left(env: *mut JNIEnv, _class: jclass, number: jint) {
    told(env, number, left);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(id: usize, class: &Arc<Class>) -> &'static Known {
        Box::leak(Box::new(Known { id, is_static: false, class: Some(Arc::clone(class)) }))
    }

    #[test]
    fn a_number_is_a_method_until_another_class_has_the_name() {
        let [one, other] = [1, 2].map(|id| Arc::new(Class::bare(c"a.B".to_owned(), id)));
        assert!(known(5).is_none() && known(u32::MAX).is_none());
        learn(5, method(50, &one), &one);
        learn(ID_LIMIT - 1, method(60, &one), &one);
        let id = |number| known(number).map(|known| known.id);
        assert_eq!((id(5), id(ID_LIMIT - 1)), (Some(50), Some(60)));
        // Another loader has defined the same class file.
        learn(5, method(70, &other), &other);
        assert!([5, ID_LIMIT - 1].iter().all(|&number| known(number).unwrap().class.is_none()));
        learn(7, method(80, &one), &one);
        assert!(known(7).unwrap().class.is_none(), "numbers that come up later, too");
    }
}
