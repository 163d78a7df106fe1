//! The pools of values that events refer to: names, classes, methods, stacks, threads. Number 0 is none.

use std::hash::Hash;

use et_names::MethodId;
use et_reader::naming::{MethodName, Naming};
use rustc_hash::FxHashMap;

use super::encode::{event, int, number, numbers, string};
use super::metadata::Type;

/// Values of a type with their numbers, from 1.
#[derive(Debug)]
struct Pool<K> {
    numbers: FxHashMap<K, u64>,
    content: Vec<u8>,
}

impl<K> Default for Pool<K> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), content: Vec::new() }
    }
}

impl<K: Eq + Hash> Pool<K> {
    /// The number of a value, and whether it is new: then the caller encodes it.
    fn of(&mut self, key: K) -> (u64, bool) {
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        (number, number == next)
    }

    /// Appends its values, if it has any; whether it has.
    fn write(&self, ty: Type, out: &mut Vec<u8>) -> bool {
        if self.numbers.is_empty() {
            return false;
        }
        numbers(out, &[ty as u64, self.numbers.len() as u64]);
        out.extend_from_slice(&self.content);
        true
    }
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Number of the method in its pool.
    pub method: u64,
    /// -1 if it is not known.
    pub line: i32,
}

/// An object on the way from outside to one that is alive at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OldObject {
    /// Its id in texts of the trace.
    pub id: u64,
    /// Number of its class in its pool.
    pub class: u64,
    pub description: String,
    /// Number of the reference that holds it in its pool; 0 if it is held from outside.
    pub referrer: u64,
}

/// A slot of an object that holds another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Numbers of the slot in its pool: one of them is 0.
    pub array: u64,
    pub field: u64,
    /// Number of the holder in its pool.
    pub object: u64,
    /// How many objects between both are left out.
    pub skip: u32,
}

/// The pools of a recording.
#[derive(Debug, Default)]
pub struct Pools {
    strings: Pool<String>,
    symbols: Pool<String>,
    packages: Pool<String>,
    classes: Pool<String>,
    methods: Pool<MethodName>,
    stacks: Pool<(bool, Box<[Frame]>)>,
    threads: Pool<u32>,
    names: Pool<&'static str>,
    causes: Pool<&'static str>,
    whens: Pool<&'static str>,
    old_objects: Pool<OldObject>,
    references: Pool<Reference>,
    array_slots: Pool<(u32, u32)>,
    field_slots: Pool<(String, bool)>,
    root_systems: Pool<&'static str>,
    root_types: Pool<&'static str>,
    roots: Pool<(String, u64, u64)>,
    of_methods: FxHashMap<MethodId, u64>,
}

fn text_in<K: Eq + Hash + AsRef<str> + Clone>(pool: &mut Pool<K>, text: K) -> u64 {
    let (at, is_new) = pool.of(text.clone());
    if is_new {
        number(&mut pool.content, at);
        string(&mut pool.content, text.as_ref());
    }
    at
}

/// All frames have this type: a trace does not say how a method was executed.
const FRAME_TYPE: (u64, &str) = (1, "Unknown");

impl Pools {
    pub fn string(&mut self, text: String) -> u64 {
        text_in(&mut self.strings, text)
    }

    fn symbol(&mut self, text: &str) -> u64 {
        text_in(&mut self.symbols, text.to_owned())
    }

    pub fn gc_name(&mut self, text: &'static str) -> u64 {
        text_in(&mut self.names, text)
    }

    pub fn gc_cause(&mut self, text: &'static str) -> u64 {
        text_in(&mut self.causes, text)
    }

    pub fn gc_when(&mut self, text: &'static str) -> u64 {
        text_in(&mut self.whens, text)
    }

    pub fn old_object(&mut self, object: OldObject) -> u64 {
        let (at, is_new) = self.old_objects.of(object.clone());
        if is_new {
            let out = &mut self.old_objects.content;
            numbers(out, &[at, object.id, object.class]);
            string(out, &object.description);
            number(out, object.referrer);
        }
        at
    }

    pub fn reference(&mut self, reference: Reference) -> u64 {
        let (at, is_new) = self.references.of(reference);
        if is_new {
            let Reference { array, field, object, skip } = reference;
            numbers(&mut self.references.content, &[at, array, field, object, skip.into()]);
        }
        at
    }

    /// An element of an array of this length.
    pub fn array_slot(&mut self, length: u32, index: u32) -> u64 {
        let (at, is_new) = self.array_slots.of((length, index));
        if is_new {
            numbers(&mut self.array_slots.content, &[at, length.into(), index.into()]);
        }
        at
    }

    pub fn field_slot(&mut self, name: String, is_static: bool) -> u64 {
        // JVMS table 4.5-A; of other fields a trace does not tell the flags.
        const STATIC: u64 = 8;
        let (at, is_new) = self.field_slots.of((name.clone(), is_static));
        if is_new {
            let out = &mut self.field_slots.content;
            number(out, at);
            string(out, &name);
            number(out, if is_static { STATIC } else { 0 });
        }
        at
    }

    pub fn root(&mut self, description: String, system: &'static str, ty: &'static str) -> u64 {
        let (system, ty) = (text_in(&mut self.root_systems, system), text_in(&mut self.root_types, ty));
        let (at, is_new) = self.roots.of((description.clone(), system, ty));
        if is_new {
            let out = &mut self.roots.content;
            number(out, at);
            string(out, &description);
            numbers(out, &[system, ty]);
        }
        at
    }

    fn package(&mut self, name: &str) -> u64 {
        let (at, is_new) = self.packages.of(name.to_owned());
        if is_new {
            let symbol = self.symbol(name);
            // Its module is not known.
            let (module, is_exported) = (0, 1);
            numbers(&mut self.packages.content, &[at, symbol, module, is_exported]);
        }
        at
    }

    /// A class by its internal name: `java/lang/String`, `[I`, `[Ljava/lang/String;`.
    pub fn class(&mut self, name: &str) -> u64 {
        let (at, is_new) = self.classes.of(name.to_owned());
        if is_new {
            let symbol = self.symbol(name);
            let package = match name.rsplit_once('/') {
                Some((package, _)) if !name.starts_with('[') => self.package(package),
                _ => 0,
            };
            let (loader, modifiers, is_hidden) = (0, 0, 0);
            numbers(&mut self.classes.content, &[at, loader, symbol, package, modifiers, is_hidden]);
        }
        at
    }

    pub fn method(&mut self, id: MethodId, naming: Naming<'_>) -> u64 {
        if let Some(&known) = self.of_methods.get(&id) {
            return known;
        }
        let name = naming.name_of_method(id);
        let class = self.class(&name.class);
        let (symbol, descriptor) = (self.symbol(&name.name), self.symbol(&name.descriptor));
        let access = name.access;
        let (at, is_new) = self.methods.of(name);
        if is_new {
            let is_hidden = 0;
            numbers(&mut self.methods.content, &[at, class, symbol, descriptor, access.into(), is_hidden]);
        }
        self.of_methods.insert(id, at);
        at
    }

    /// A stack, innermost frame first; none if it is empty.
    pub fn stack(&mut self, frames: &[Frame], is_cut: bool) -> u64 {
        if frames.is_empty() {
            return 0;
        }
        let (at, is_new) = self.stacks.of((is_cut, frames.into()));
        if is_new {
            let out = &mut self.stacks.content;
            numbers(out, &[at, is_cut.into(), frames.len() as u64]);
            for frame in frames {
                let bytecode_index = -1;
                number(out, frame.method);
                int(out, frame.line);
                int(out, bytecode_index);
                number(out, FRAME_TYPE.0);
            }
        }
        at
    }

    /// A thread, for which `name` is called if it is new; 0 is none.
    pub fn thread(&mut self, id: u32, name: impl FnOnce() -> (String, bool)) -> u64 {
        if id == 0 {
            return 0;
        }
        let (at, is_new) = self.threads.of(id);
        if is_new {
            let (name, is_virtual) = name();
            let out = &mut self.threads.content;
            let group = 0;
            number(out, at);
            string(out, &name);
            number(out, id.into());
            string(out, &name);
            number(out, id.into());
            number(out, group);
            out.push(is_virtual.into());
        }
        at
    }

    /// Appends all pools.
    pub fn write(&self, out: &mut Vec<u8>, start: u64) {
        let mut frame_types = Pool::default();
        text_in(&mut frame_types, FRAME_TYPE.1);
        // Readers refuse pools without values.
        let mut pools = Vec::new();
        let count = [
            self.strings.write(Type::String, &mut pools),
            self.symbols.write(Type::Symbol, &mut pools),
            self.packages.write(Type::Package, &mut pools),
            self.classes.write(Type::Class, &mut pools),
            self.methods.write(Type::Method, &mut pools),
            frame_types.write(Type::FrameKind, &mut pools),
            self.stacks.write(Type::StackTrace, &mut pools),
            self.threads.write(Type::Thread, &mut pools),
            self.names.write(Type::GcName, &mut pools),
            self.causes.write(Type::GcCause, &mut pools),
            self.whens.write(Type::GcWhen, &mut pools),
            self.old_objects.write(Type::OldObject, &mut pools),
            self.references.write(Type::Reference, &mut pools),
            self.array_slots.write(Type::OldObjectArray, &mut pools),
            self.field_slots.write(Type::OldObjectField, &mut pools),
            self.root_systems.write(Type::OldObjectRootSystem, &mut pools),
            self.root_types.write(Type::OldObjectRootKind, &mut pools),
            self.roots.write(Type::OldObjectGcRoot, &mut pools),
        ]
        .iter()
        .filter(|is_written| **is_written)
        .count() as u64;
        let (duration, to_the_one_before, kind) = (0, 0, 1);
        let mut content = Vec::new();
        numbers(&mut content, &[Type::Pools as u64, start, duration, to_the_one_before, kind, count]);
        content.extend(pools);
        event(out, &content);
    }
}
