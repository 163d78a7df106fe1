//! Classes as reported by `CLASS_LOAD`. What was reported is kept: the agent may request it again, and dumps use its
//! order of fields.
#![allow(unsafe_code, reason = "pointers of the interface into what is kept here")]

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use et_jvm::env::{Env, FieldId, MethodId, Object};
use et_jvm::jvmti::{STATIC, class_status};
use et_jvm::profiling::Line;
use et_jvm::sync::{in_time, read, write};
use jni_sys::{JNIEnv, jmethodID};
use rustc_hash::FxHashMap;

use crate::abi::{self, ClassLoad, Details, ObjectId, event, kind};
use crate::deliver;
use crate::host::{self, Host};
use crate::ids;
use crate::records;
use crate::told::Told;

/// Kind of a class's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Instance,
    /// With the class of the elements.
    Objects(ObjectId),
    /// With the letter of the elements in JVM descriptors.
    Primitives(u8),
}

#[derive(Debug)]
pub struct Field {
    pub id: FieldId,
    pub name: CString,
    pub signature: CString,
    pub is_static: bool,
}

impl Field {
    /// The first letter of its signature, which says what its values are.
    pub fn letter(&self) -> u8 {
        self.signature.as_bytes().first().copied().unwrap_or(b'L')
    }
}

#[derive(Debug)]
pub struct Method {
    pub id: MethodId,
    pub name: CString,
    pub signature: CString,
    pub is_static: bool,
    pub is_native: bool,
    pub lines: Box<[Line]>,
    pub class: ObjectId,
}

impl Method {
    /// Source line of an instruction; -1 if unknown.
    pub fn line(&self, location: i64) -> i32 {
        let reached = self.lines.iter().filter(|line| line.start <= location).max_by_key(|line| line.start);
        reached.map_or(-1, |line| line.line)
    }
}

/// A class as reported.
#[derive(Debug)]
pub struct Class {
    pub id: ObjectId,
    /// With dots; arrays as JVM descriptors with dots.
    pub name: CString,
    pub source: CString,
    pub shape: Shape,
    pub is_interface: bool,
    /// Object id of the superclass; 0 if it has none.
    pub super_class: ObjectId,
    pub interfaces: Vec<ObjectId>,
    /// Fields in JVMTI's order.
    pub fields: Vec<Field>,
    pub methods: Vec<Arc<Method>>,
    /// For an array class: whether its mirror was reported, which the VM creates without an event.
    pub is_mirror_told: AtomicBool,
    told: Told,
}

static CLASSES: RwLock<Option<FxHashMap<ObjectId, Arc<Class>>>> = RwLock::new(None);
/// Set when the agent has been told about all classes at VM shutdown. It cannot know or request classes loaded later.
static WERE_ALL_TOLD: AtomicBool = AtomicBool::new(false);
static METHODS: RwLock<Option<FxHashMap<usize, Arc<Method>>>> = RwLock::new(None);

/// The class with this id, if it is known.
pub fn known(id: ObjectId) -> Option<Arc<Class>> {
    read(&CLASSES).as_ref()?.get(&id).cloned()
}

/// All known classes.
pub fn all() -> Vec<Arc<Class>> {
    let classes = read(&CLASSES);
    classes.iter().flat_map(|classes| classes.values().cloned()).collect()
}

/// A method of a known class.
pub fn known_method(method: jmethodID) -> Option<Arc<Method>> {
    read(&METHODS).as_ref()?.get(&(method as usize)).cloned()
}

/// Returns a method; queries its class if necessary.
pub fn method(host: &Host, env: Env, id: jmethodID) -> Option<Arc<Method>> {
    known_method(id).or_else(|| {
        env.frame(8, |env| {
            let class = host.jvmti.declaring_class(env, MethodId(id)).ok()??;
            of(host, env, class)?;
            known_method(id)
        })
    })
}

/// A class is gone. False if it was not known.
pub fn forget(id: ObjectId) -> Option<Arc<Class>> {
    let class = write(&CLASSES).as_mut()?.remove(&id)?;
    let mut methods = write(&METHODS);
    for method in &class.methods {
        methods.as_mut()?.remove(&(method.id.0 as usize));
    }
    Some(class)
}

/// The id of a class, which it gets here if it has none.
pub fn id_of(host: &Host, env: Env, class: Object) -> ObjectId {
    id_in_time(host, env, class, Duration::from_millis(200))
}

/// The same; waits no longer than that for another thread that gives one to a class.
fn id_in_time(host: &Host, env: Env, class: Object, patience: Duration) -> ObjectId {
    /// Held while the VM is called, so waiting for it has a timeout.
    static GIVING: Mutex<()> = Mutex::new(());
    if let Some(id) = ids::of_class(host, class) {
        return id;
    }
    let _alone = in_time(&GIVING, patience);
    ids::of_class(host, class).unwrap_or_else(|| ids::give_class(host, env, class, |id| known(id).is_some()))
}

/// Returns a class; queries and links it if necessary.
pub fn of(host: &Host, env: Env, class: Object) -> Option<Arc<Class>> {
    of_linked(host, env, class, true)
}

/// The same. If `links` is false, a class that is not linked stays unknown: linking may run code of the program, and other threads may be
/// suspended, for which nothing waits.
fn of_linked(host: &Host, env: Env, class: Object, links: bool) -> Option<Arc<Class>> {
    let id = if links { id_of(host, env, class) } else { id_in_time(host, env, class, Duration::ZERO) };
    if id == 0 {
        return None;
    }
    if let Some(class) = known(id) {
        return Some(class);
    }
    let found = Arc::new(env.frame(64, |env| find(host, env, class, id, links))?);
    // Methods first, so that they can be found when the class can.
    let mut methods = write(&METHODS);
    let by_id = found.methods.iter().map(|method| (method.id.0 as usize, Arc::clone(method)));
    methods.get_or_insert_default().extend(by_id);
    drop(methods);
    let mut classes = write(&CLASSES);
    Some(Arc::clone(classes.get_or_insert_default().entry(id).or_insert(found)))
}

fn find(host: &Host, env: Env, class: Object, id: ObjectId, links: bool) -> Option<Class> {
    let jvmti = host.jvmti;
    let signature = jvmti.class_signature_c(class).ok()?;
    let mut found = Class::bare(dotted(&signature), id);
    found.shape = shape(host, env, class, signature.to_bytes(), links)?;
    found.super_class = env.superclass(class).map_or(0, |class| id_of(host, env, class));
    if found.shape != Shape::Instance {
        return Some(found);
    }
    found.is_interface = jvmti.is_interface(class).unwrap_or(false);
    found.source = jvmti.source_file_c(class).unwrap_or_default();
    let mut status = jvmti.class_status(class).unwrap_or(0);
    if status & (class_status::PREPARED | class_status::NEVER_LINKED) == 0 {
        if !links {
            return None;
        }
        host.hotspot.get()?.link(env, class);
        status = jvmti.class_status(class).unwrap_or(0);
    }
    if status & class_status::PREPARED == 0 {
        return Some(found);
    }
    found.interfaces =
        jvmti.interfaces(env, class).unwrap_or_default().into_iter().map(|i| id_of(host, env, i)).collect();
    for field in jvmti.class_fields(class).unwrap_or_default() {
        let (name, signature) = jvmti.field_name_c(class, field).ok()?;
        let is_static = jvmti.field_modifiers(class, field).unwrap_or(0) & STATIC != 0;
        found.fields.push(Field { id: field, name, signature, is_static });
    }
    for method in jvmti.methods(class).unwrap_or_default() {
        let Ok((name, signature)) = jvmti.method_name_c(method) else { continue };
        let modifiers = jvmti.method_modifiers(method).unwrap_or(0);
        let lines = jvmti.lines(method).unwrap_or_default().into_boxed_slice();
        let (is_static, is_native) = (modifiers & STATIC != 0, modifiers & 0x100 != 0);
        let method = Method { id: method, name, signature, is_static, is_native, lines, class: id };
        found.methods.push(Arc::new(method));
    }
    Some(found)
}

/// `Ljava/lang/String;` becomes `java.lang.String`, and an array keeps its descriptor with dots. Names of hidden
/// classes have a dot that does not belong to a package.
fn dotted(signature: &CStr) -> CString {
    let bytes = signature.to_bytes();
    let inner = bytes.strip_prefix(b"L").and_then(|rest| rest.strip_suffix(b";")).unwrap_or(bytes);
    let name: Vec<u8> = inner.iter().map(|byte| if *byte == b'/' { b'.' } else { *byte }).collect();
    CString::new(name).unwrap_or_default()
}

fn shape(host: &Host, env: Env, class: Object, signature: &[u8], links: bool) -> Option<Shape> {
    Some(match signature {
        [b'[', b'L' | b'[', ..] => {
            let component = mirror_of_component(env, class)?;
            match host.jvmti.class_signature_c(component).ok()?.to_bytes() {
                // HotSpot's filler objects are named like an array of objects but are an array of primitives.
                [letter] => Shape::Primitives(*letter),
                // It is reported before its arrays.
                _ => Shape::Objects(of_linked(host, env, component, links)?.id),
            }
        }
        [b'[', letter] => Shape::Primitives(*letter),
        _ => Shape::Instance,
    })
}

/// The mirror of the class of an array's elements.
pub fn mirror_of_component<'a>(env: Env<'a>, class: Object) -> Option<Object<'a>> {
    let class_of_classes = env.class_of(class)?;
    // A field and no method: no Java code is to run here.
    let field = env.field(class_of_classes, c"componentType", c"Ljava/lang/Class;")?;
    env.get_object(class, field)
}

impl Class {
    /// Kind and class of an object for `OBJECT_ALLOC`.
    pub fn allocated(&self, object: ObjectId) -> (i32, ObjectId) {
        match self.shape {
            // The mirror of java.lang.Class is its own class.
            Shape::Instance if self.id == object => (kind::NORMAL_OBJECT, 0),
            Shape::Instance => (kind::NORMAL_OBJECT, self.id),
            Shape::Objects(element) => (kind::CLASS, element),
            Shape::Primitives(letter) => (kind::of_primitive(letter).unwrap_or(kind::NORMAL_OBJECT), 0),
        }
    }

    fn with_event(&self, tell: impl FnOnce(Details)) {
        let field = |field: &Field| abi::Field { name: field.name.as_ptr(), signature: field.signature.as_ptr() };
        let (statics, instances): (Vec<&Field>, Vec<&Field>) = self.fields.iter().partition(|field| field.is_static);
        let statics: Vec<abi::Field> = statics.into_iter().map(field).collect();
        let instances: Vec<abi::Field> = instances.into_iter().map(field).collect();
        let methods: Vec<abi::Method> = self
            .methods
            .iter()
            .map(|method| abi::Method {
                name: method.name.as_ptr(),
                signature: method.signature.as_ptr(),
                start_lineno: method.lines.iter().map(|line| line.line).min().unwrap_or(-1),
                end_lineno: method.lines.iter().map(|line| line.line).max().unwrap_or(-1),
                method_id: method.id.0,
            })
            .collect();
        let names = [&*self.name, &*self.source];
        let class_load = ClassLoad::new(names, self.interfaces.len(), &methods, &statics, &instances, self.id);
        tell(Details { class_load });
    }

    /// One of which nothing is known but its name.
    pub fn bare(name: CString, id: ObjectId) -> Self {
        Self {
            id,
            name,
            source: CString::default(),
            shape: Shape::Instance,
            is_interface: false,
            super_class: 0,
            interfaces: Vec::new(),
            fields: Vec::new(),
            methods: Vec::new(),
            is_mirror_told: AtomicBool::new(false),
            told: Told::default(),
        }
    }

    /// Whether `CLASS_LOAD` was reported.
    pub fn is_told(&self) -> bool {
        self.told.is_told()
    }
}

/// Reports a class, unless it has been or is not wanted.
pub fn tell(host: &Host, env: *mut JNIEnv, class: &Class) {
    if class.is_told() || !host.wants(event::CLASS_LOAD) {
        return;
    }
    if class.told.claim() {
        class.with_event(|details| {
            deliver::tell_definition(env, event::CLASS_LOAD, details);
        });
        class.told.done();
        return;
    }
    // Another thread is about to report it.
    records::wait_for_another(records::current(env), || class.is_told() || !host.wants(event::CLASS_LOAD));
}

/// Reports the class of a method, unless it has been. `None` if there is no such method.
pub fn tell_of_method(host: &Host, env: Env, id: jmethodID) -> Option<Arc<Method>> {
    let method = method(host, env, id)?;
    if host.wants(event::CLASS_LOAD)
        && let Some(class) = known(method.class)
    {
        tell(host, env.raw(), &class);
    }
    Some(method)
}

/// Reports a class at the agent's request. An id of 0 means `java.lang.Class` as its own class.
pub fn tell_requested(host: &Host, env: Env, id: ObjectId) -> bool {
    if id == 0 {
        let nothing = Class { source: c"Class.java".to_owned(), ..Class::bare(c"java.lang.Class".to_owned(), id) };
        nothing.with_event(|details| deliver::tell_requested(env.raw(), event::CLASS_LOAD, details));
        return true;
    }
    let Some(class) = known(id).or_else(|| loaded(host, env, id)) else { return false };
    // It need not be reported again.
    let first = class.told.claim();
    class.with_event(|details| deliver::tell_requested(env.raw(), event::CLASS_LOAD, details));
    if first {
        class.told.done();
    }
    true
}

/// A class that has an id, because its mirror was reported, but was not queried: it is not linked yet.
fn loaded(host: &Host, env: Env, id: ObjectId) -> Option<Arc<Class>> {
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        let mut classes = host.jvmti.loaded_classes(env).ok()?.into_iter();
        classes
            .find(|class| ids::of_class(host, *class).unwrap_or_else(|| ids::of(host, env, *class)) == id)
            .and_then(|class| of(host, env, class))
    })
}

/// Finds out about all classes that there are, and reports them.
pub fn tell_all(host: &Host, env: Env) {
    each_loaded(host, env, |env, class| {
        if let Some(found) = of(host, env, class).filter(|found| found.shape == Shape::Instance) {
            tell(host, env.raw(), &found);
        }
    });
}

fn each_loaded(host: &Host, env: Env, mut look: impl FnMut(Env, Object)) {
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        for class in host.jvmti.loaded_classes(env).unwrap_or_default() {
            look(env, class);
            env.delete_local(class);
        }
    });
}

/// At VM shutdown: reports all classes that the agent does not know.
pub fn tell_last(host: &Host, env: Env) {
    if host.wants(event::CLASS_LOAD) {
        tell_all(host, env);
        WERE_ALL_TOLD.store(true, Ordering::Release);
    }
}

/// Whether the agent hears of no further classes: it has disabled their event since all were told.
fn tells_no_more(host: &Host) -> bool {
    WERE_ALL_TOLD.load(Ordering::Acquire) && !host.wants(event::CLASS_LOAD)
}

/// The classes that a dump may contain. Other threads are suspended: the caller reports those that they have defined and linked since
/// [`prepare_dump`], once they run again.
pub fn for_dump(host: &Host, env: Env) -> FxHashMap<ObjectId, Arc<Class>> {
    let tells_no_more = tells_no_more(host);
    if !tells_no_more {
        each_loaded(host, env, |env, class| _ = of_linked(host, env, class, false));
    }
    let may_be_named = |class: &Arc<Class>| !tells_no_more || class.shape != Shape::Instance || class.is_told();
    all().into_iter().filter(may_be_named).map(|class| (class.id, class)).collect()
}

/// Before a dump: links and reports all classes that are to be.
pub fn prepare_dump(host: &Host, env: Env) {
    if !tells_no_more(host) {
        tell_all(host, env);
    }
}

/// The id of `java.lang.Class`.
pub fn of_classes(host: &Host, env: Env) -> ObjectId {
    env.frame(4, |env| env.find_class(c"java/lang/Class").map_or(0, |class| id_of(host, env, class)))
}

/// Reports a class by name; for those that the agent must know first.
pub fn tell_by_name(host: &Host, env: Env, name: &CStr) {
    env.frame(4, |env| {
        if let Some(class) = env.find_class(name).and_then(|class| of(host, env, class)) {
            tell(host, env.raw(), &class);
        }
    });
}

/// Reports a class, preceded by the class of its elements, which represents it in `OBJECT_ALLOC`.
pub fn tell_with_elements(host: &Host, env: *mut JNIEnv, class: &Class) {
    if let Shape::Objects(element) = class.shape
        && let Some(element) = known(element)
    {
        tell(host, env, &element);
    }
    if class.shape == Shape::Instance {
        tell(host, env, class);
    }
}

/// Object id of a method's class; `None` if there is no host.
pub fn id_of_method_class(id: jmethodID) -> Option<ObjectId> {
    let host = host::get()?;
    if let Some(method) = known_method(id) {
        return Some(method.class);
    }
    let env = host.env()?;
    method(host, env, id).map(|method| method.class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_dots() {
        assert_eq!(dotted(c"Ljava/lang/String;").as_c_str(), c"java.lang.String");
        assert_eq!(dotted(c"[[Ljava/lang/String;").as_c_str(), c"[[Ljava.lang.String;");
        assert_eq!(dotted(c"[I").as_c_str(), c"[I");
    }

    #[test]
    fn lines_are_those_of_the_instruction_or_before() {
        let lines = [(10, 7), (0, 5), (4, 6)].map(|(start, line)| Line { start, line }).into();
        let (name, signature) = (CString::default(), CString::default());
        let id = MethodId(std::ptr::null_mut());
        let method = Method { id, name, signature, is_static: false, is_native: false, lines, class: 1 };
        assert_eq!([0, 3, 4, 9, 10, 99].map(|at| method.line(at)), [5, 5, 6, 6, 7, 7]);
        assert_eq!(Method { lines: Box::default(), ..method }.line(0), -1);
    }
}
