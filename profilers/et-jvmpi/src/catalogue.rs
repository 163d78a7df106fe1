//! The classes of the trace as reported to the agent: names, methods and fields from the names tables.
//!
//! The id of a class differs from all object ids and never changes: class objects are in a separate arena that is not
//! collected. A class is reported before its first object, while a simulated collector knows the address of its mirror
//! only from its birth on: so the class object that the agent knows is a synthetic one, independent of the mirror.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use et_format::event::{ObjectHash, Ticket};
use et_jvmpi_interface::abi::{self, ClassLoad, Details, ObjAlloc, kind};
use et_names::MethodId;
use et_reader::Trace;
use et_reader::names::ClassRef;
use et_reader::source::Source;
use et_reader::types::TypeId;
use jni_sys::{jint, jmethodID};
use rustc_hash::FxHashMap;

/// The arena of class objects.
pub const ARENA: jint = 3;

/// Ids of classes begin there. No object is so far up.
const FIRST: usize = 1 << 63;
/// Agents drop the low bits of ids in their tables.
const SHIFT: u32 = 4;

/// The agent's word for a method.
pub fn method_id(method: MethodId) -> jmethodID {
    ((method.0 as usize) << SHIFT) as jmethodID
}

/// Converts a JVMPI method id back.
pub fn method_of(id: jmethodID) -> MethodId {
    MethodId((id as usize >> SHIFT) as u32)
}

/// A method or field of a class.
#[derive(Debug)]
struct Member {
    name: CString,
    descriptor: CString,
}

#[derive(Debug)]
struct Method {
    member: Member,
    id: MethodId,
    lines: [jint; 2],
}

/// A class as reported to the agent.
#[derive(Debug)]
pub struct Class {
    pub id: usize,
    name: CString,
    source: CString,
    interfaces: usize,
    methods: Vec<Method>,
    statics: Vec<Member>,
    instances: Vec<Member>,
    /// Of its mirror; 0 if that is not known.
    size: u32,
    is_told: AtomicBool,
    is_object_told: AtomicBool,
    has_mirror: AtomicBool,
}

impl Class {
    /// Of which only the name is known, and the size of its mirror.
    fn named(id: usize, name: CString, size: u32) -> Self {
        Self {
            id,
            name,
            size,
            source: CString::default(),
            interfaces: 0,
            methods: Vec::new(),
            statics: Vec::new(),
            instances: Vec::new(),
            is_told: AtomicBool::new(false),
            is_object_told: AtomicBool::new(false),
            has_mirror: AtomicBool::new(false),
        }
    }

    /// `java.lang.Class`, for requests for the class of its mirror, which has no id.
    pub fn of_classes() -> Self {
        Self::named(0, c"java.lang.Class".to_owned(), 0)
    }

    /// Whether this is the first call for the class.
    pub fn is_first_time(&self) -> bool {
        is_first(&self.is_told)
    }

    /// Whether this is the first call for the class's object.
    pub fn is_new_object(&self) -> bool {
        is_first(&self.is_object_told)
    }

    /// Whether this mirror is the first. Classes of that name in other loaders have more.
    pub fn takes_mirror(&self) -> bool {
        is_first(&self.has_mirror)
    }

    /// Whether it is the class of arrays.
    pub fn is_array(&self) -> bool {
        self.name.as_bytes().starts_with(b"[")
    }

    /// Data of `OBJECT_ALLOC` for the class object. `of_classes` is the id of `java.lang.Class`, whose own object has
    /// no class.
    pub fn object(&self, of_classes: usize) -> ObjAlloc {
        ObjAlloc {
            arena_id: ARENA,
            class_id: if of_classes == self.id { 0 } else { of_classes },
            is_array: kind::NORMAL_OBJECT,
            size: jint::try_from(self.size).unwrap_or(jint::MAX),
            obj_id: self.id,
        }
    }

    /// Calls `tell` with the data of `CLASS_LOAD`.
    pub fn with_event(&self, tell: impl FnOnce(Details)) {
        let field = |of: &Member| abi::Field { name: of.name.as_ptr(), signature: of.descriptor.as_ptr() };
        let statics: Vec<abi::Field> = self.statics.iter().map(field).collect();
        let instances: Vec<abi::Field> = self.instances.iter().map(field).collect();
        let method = |of: &Method| abi::Method {
            name: of.member.name.as_ptr(),
            signature: of.member.descriptor.as_ptr(),
            start_lineno: of.lines[0],
            end_lineno: of.lines[1],
            method_id: method_id(of.id),
        };
        let methods: Vec<abi::Method> = self.methods.iter().map(method).collect();
        let names = [&*self.name, &*self.source];
        let class_load = ClassLoad::new(names, self.interfaces, &methods, &statics, &instances, self.id);
        tell(Details { class_load });
    }
}

fn is_first(flag: &AtomicBool) -> bool {
    !flag.load(Ordering::Relaxed) && !flag.swap(true, Ordering::AcqRel)
}

/// Data of `OBJECT_ALLOC` for objects of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The field `is_array`.
    pub kind: jint,
    /// Their class, or that of the elements; arrays of numbers have none.
    pub class: Option<u32>,
}

#[derive(Debug, Default)]
struct Inner {
    classes: Vec<Arc<Class>>,
    by_ref: FxHashMap<ClassRef, u32>,
    /// Classes that no names table has.
    by_descriptor: FxHashMap<Box<str>, u32>,
    shapes: FxHashMap<TypeId, Shape>,
}

/// All classes that were needed so far.
#[derive(Debug)]
pub struct Catalogue {
    source: Arc<Source>,
    /// The last line of each method that is known: of its sites.
    last_lines: FxHashMap<MethodId, u32>,
    inner: Mutex<Inner>,
}

/// Names may hold anything but a zero.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

fn dotted(name: &str) -> CString {
    c_string(&name.replace('/', "."))
}

fn line(line: u32) -> jint {
    if line == 0 { -1 } else { jint::try_from(line).unwrap_or(-1) }
}

impl Catalogue {
    /// Creates the catalogue of a trace; `None` for a text.
    pub fn new(source: Arc<Source>) -> Option<Self> {
        let mut last_lines = FxHashMap::default();
        for table in source.trace()?.names.tables() {
            for site in &table.sites {
                let last = last_lines.entry(table.method_id(site.method)).or_insert(0);
                *last = site.line.max(*last);
            }
        }
        Some(Self { source, last_lines, inner: Mutex::default() })
    }

    fn trace(&self) -> Option<&Trace> {
        self.source.trace()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, index: u32) -> Option<Arc<Class>> {
        self.inner().classes.get(index as usize).cloned()
    }

    pub fn of_id(&self, id: usize) -> Option<Arc<Class>> {
        self.get(u32::try_from(id.checked_sub(FIRST)? >> SHIFT).ok()?.checked_sub(1)?)
    }

    /// The class of that internal name, if the trace has one.
    pub fn by_name(&self, name: &str) -> Option<u32> {
        let trace = self.trace()?;
        let ty = trace.types.get_class(name)?;
        self.shape(ty).class
    }

    /// The class `java.lang.Class`.
    pub fn of_classes(&self) -> Option<Arc<Class>> {
        self.get(self.by_name("java/lang/Class")?)
    }

    /// The class whose mirror has this id at the given time.
    pub fn of_mirror(&self, mirror: ObjectHash, ticket: Ticket) -> Option<Arc<Class>> {
        let trace = self.trace()?;
        let class = trace.classes.get(trace.classes.at(mirror, ticket)?);
        let mut inner = self.inner();
        let index = self.of_descriptor(&mut inner, trace.types.descriptor(class.ty));
        inner.classes.get(index as usize).cloned()
    }

    /// Bytes of the mirror of a type's class; 0 if they are not known.
    fn mirror_size(&self, ty: Option<TypeId>) -> u32 {
        let of = |trace: &Trace| Some(trace.classes.get(trace.classes.of_type(ty?)?).record.mirror_size);
        self.trace().and_then(of).unwrap_or(0)
    }

    /// The class that declares a method; `None` if no names table has it.
    pub fn of_method(&self, method: MethodId) -> Option<Arc<Class>> {
        let class = self.trace()?.names.class_of_method(method)?;
        let mut inner = self.inner();
        let index = self.of_ref(&mut inner, class);
        inner.classes.get(index as usize).cloned()
    }

    /// Data of `OBJECT_ALLOC` for objects of this type.
    pub fn shape(&self, ty: TypeId) -> Shape {
        let mut inner = self.inner();
        if let Some(known) = inner.shapes.get(&ty) {
            return *known;
        }
        let descriptor = self.trace().map_or("?", |trace| trace.types.descriptor(ty));
        let shape = match descriptor.as_bytes() {
            [b'[', b'L' | b'[', ..] => {
                Shape { kind: kind::CLASS, class: Some(self.of_descriptor(&mut inner, &descriptor[1..])) }
            }
            [b'[', letter] => Shape { kind: kind::of_primitive(*letter).unwrap_or(kind::NORMAL_OBJECT), class: None },
            _ => Shape { kind: kind::NORMAL_OBJECT, class: Some(self.of_descriptor(&mut inner, descriptor)) },
        };
        inner.shapes.insert(ty, shape);
        shape
    }

    fn of_descriptor(&self, inner: &mut Inner, descriptor: &str) -> u32 {
        let class = self.trace().and_then(|trace| {
            let ty = trace.types.get(descriptor)?;
            trace.names.classes_of(ty).first().copied()
        });
        if let Some(class) = class {
            return self.of_ref(inner, class);
        }
        if let Some(&known) = inner.by_descriptor.get(descriptor) {
            return known;
        }
        let name = descriptor.strip_prefix('L').and_then(|rest| rest.strip_suffix(';')).unwrap_or(descriptor);
        let index = inner.classes.len() as u32;
        inner.by_descriptor.insert(descriptor.into(), index);
        let size = self.mirror_size(self.trace().and_then(|trace| trace.types.get(descriptor)));
        inner.classes.push(Arc::new(Class::named(id_of(index), dotted(name), size)));
        index
    }

    fn of_ref(&self, inner: &mut Inner, class: ClassRef) -> u32 {
        if let Some(&known) = inner.by_ref.get(&class) {
            return known;
        }
        let index = inner.classes.len() as u32;
        if let Some(trace) = self.trace() {
            inner.classes.push(Arc::new(self.made(trace, class, id_of(index))));
            inner.by_ref.insert(class, index);
        }
        index
    }

    fn made(&self, trace: &Trace, class: ClassRef, id: usize) -> Class {
        let (table, entry, _) = trace.names.class(class);
        let at = trace.names.index_of(class);
        let member =
            |name, descriptor| Member { name: c_string(table.str(name)), descriptor: c_string(table.str(descriptor)) };
        let methods = table.methods_of(at).map(|index| {
            let (method, id) = (&table.methods[index], table.method_id(index as u32));
            let first = line(method.line);
            let last = self.last_lines.get(&id).map_or(-1, |last| line(*last));
            Method { member: member(method.name, method.descriptor), id, lines: [first, last.max(first)] }
        });
        let (statics, instances): (Vec<_>, Vec<_>) =
            table.fields_of(at).map(|index| &table.fields[index]).partition(|field| field.is_static());
        let members = |fields: Vec<&et_names::Field>| {
            fields.into_iter().map(|field| member(field.name, field.descriptor)).collect()
        };
        let size = self.mirror_size(trace.types.get_class(table.str(entry.name)));
        Class {
            source: c_string(table.str(entry.source_file)),
            interfaces: entry.interfaces.len(),
            methods: methods.collect(),
            statics: members(statics),
            instances: members(instances),
            ..Class::named(id, dotted(table.str(entry.name)), size)
        }
    }
}

fn id_of(index: u32) -> usize {
    FIRST | (index as usize + 1) << SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};

    fn catalogue() -> Catalogue {
        let mut builder = TraceBuilder::new();
        let thing = class("shop/Thing", "java/lang/Object", &["<init> ()V", "sell ()V"])
            .with_fields(&["next Lshop/Thing;", "static all [Lshop/Thing;"])
            .with_sites(&[(1, "Lshop/Thing;", 5), (1, "[I", 0), (1, "[[I", 29), (0, "[Lshop/Thing;", 3)]);
        builder.names(&table("jdk", 1, &[class("java/lang/Object", "", &["<init> ()V"])]));
        builder.names(&table("app.jar", 1000, &[thing]));
        Catalogue::new(Arc::new(Source::from_bytes(builder.finish()).unwrap())).unwrap()
    }

    #[test]
    fn classes_are_what_their_tables_say() {
        let catalogue = catalogue();
        let class = catalogue.get(catalogue.by_name("shop/Thing").unwrap()).unwrap();
        assert_eq!(class.name.as_c_str(), c"shop.Thing");
        assert_eq!((class.statics.len(), class.instances.len(), class.methods.len()), (1, 1, 2));
        assert_eq!(class.methods[1].member.name.as_c_str(), c"sell");
        assert_eq!(class.methods[1].lines, [20, 29]);
        assert_eq!(catalogue.of_method(MethodId(1001)).unwrap().id, class.id);
        assert_eq!(catalogue.of_id(class.id).unwrap().id, class.id);
        assert_eq!(method_of(method_id(MethodId(1001))), MethodId(1001));
        for id in [0, 1, FIRST, class.id + 160, usize::MAX] {
            assert!(catalogue.of_id(id).is_none(), "{id:x}");
        }
        assert!(catalogue.of_method(MethodId(77)).is_none());
        assert!(class.is_first_time() && !class.is_first_time());
        let of_classes = FIRST | 0x7770;
        let object = class.object(of_classes);
        assert_eq!((object.obj_id, object.class_id, object.arena_id), (class.id, of_classes, ARENA));
        assert_eq!(class.object(class.id).class_id, 0, "java.lang.Class is its own class");
        assert!(class.is_new_object() && !class.is_new_object() && class.takes_mirror() && !class.takes_mirror());
    }

    #[test]
    fn arrays_are_reported_by_their_elements() {
        let catalogue = catalogue();
        let trace = catalogue.trace().unwrap();
        let shape = |descriptor: &str| catalogue.shape(trace.types.get(descriptor).unwrap());
        let thing = catalogue.by_name("shop/Thing");
        assert_eq!(shape("Lshop/Thing;"), Shape { kind: 0, class: thing });
        assert_eq!(shape("[Lshop/Thing;"), Shape { kind: 2, class: thing });
        assert_eq!(shape("[I"), Shape { kind: 10, class: None });
        let ints = shape("[[I");
        assert_eq!(ints.kind, 2);
        assert_eq!(catalogue.get(ints.class.unwrap()).unwrap().name.as_c_str(), c"[I");
    }
}
