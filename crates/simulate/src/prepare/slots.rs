//! Maps fields to slots.

use et_names::FieldId;
use et_reader::Trace;
use et_reader::names::{ClassRef, Names};
use et_reader::source::Source;
use et_reader::text::is_unknown_type;
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

use crate::ops::{Class, ClassKind};

/// Classes of a trace as the operations name them, and their reference slots: first those of the superclass, then
/// their own, in the order of the names tables. Fields that the tables lack follow in the order met.
#[derive(Debug)]
pub struct Slots<'a> {
    trace: Option<&'a Trace>,
    /// Whether a type may be only a number: in a text in dialect replayer without its names file.
    has_numbered_types: bool,
    classes: Vec<Class>,
    /// By class: number of slots according to the tables.
    told: Vec<u32>,
    /// Class by type; [`NONE`] for a type not met yet.
    by_type: Vec<u32>,
    /// Slots of the fields of classes visited so far.
    fields: FxHashMap<FieldId, u32>,
    /// Number of slots by class, superclasses included.
    counts: FxHashMap<ClassRef, u32>,
    /// Slots of other fields, by class and field.
    others: FxHashMap<(u32, u32), u32>,
}

const NONE: u32 = u32::MAX;
/// Maximum depth of a class hierarchy; in a damaged table a class could be its own superclass.
const MOST_ABOVE: usize = 1 << 10;

impl<'a> Slots<'a> {
    pub fn new(source: &'a Source) -> Self {
        let trace = source.trace();
        Self {
            trace,
            has_numbered_types: matches!(source, Source::Text(text) if text.form().is_replayer),
            classes: Vec::new(),
            told: Vec::new(),
            by_type: Vec::new(),
            fields: FxHashMap::default(),
            counts: FxHashMap::default(),
            others: FxHashMap::default(),
        }
    }

    /// The class of that type; added if new.
    #[inline]
    pub fn class(&mut self, ty: TypeId, descriptor: impl FnOnce() -> String) -> u32 {
        match self.by_type.get(ty.0 as usize) {
            Some(&class) if class != NONE => class,
            _ => self.add(ty, descriptor()),
        }
    }

    fn add(&mut self, ty: TypeId, descriptor: String) -> u32 {
        let kind = match descriptor.as_bytes() {
            [b'[', b'[' | b'L', ..] => ClassKind::References,
            [b'[', ..] => ClassKind::Numbers,
            _ => ClassKind::Scalar,
        };
        let mut slots = 0;
        if let (ClassKind::Scalar, Some(trace)) = (kind, self.trace) {
            for &class in trace.names.classes_of(ty) {
                slots = slots.max(self.slots_of(trace, class));
            }
        }
        self.put(ty, Class { descriptor, kind, slots })
    }

    /// Sets the class of a type.
    fn put(&mut self, ty: TypeId, class: Class) -> u32 {
        let number = self.classes.len() as u32;
        self.told.push(class.slots);
        self.classes.push(class);
        if self.by_type.len() <= ty.0 as usize {
            self.by_type.resize(ty.0 as usize + 1, NONE);
        }
        self.by_type[ty.0 as usize] = number;
        number
    }

    /// Whether an array class is assumed to have reference elements, because the text has only the number of the type.
    pub fn is_guess(&self, class: u32) -> bool {
        let Class { descriptor, kind, .. } = self.get(class);
        *kind == ClassKind::References && self.has_numbered_types && is_unknown_type(descriptor)
    }

    /// The primitive array class for a type whose arrays turn out too small for references. Arrays met before keep
    /// their class.
    pub fn numbers(&mut self, ty: TypeId, class: u32) -> u32 {
        let descriptor = self.get(class).descriptor.clone();
        self.put(ty, Class { descriptor, kind: ClassKind::Numbers, slots: 0 })
    }

    /// Number of slots of the objects of a class; also assigns the slots of its fields.
    fn slots_of(&mut self, trace: &Trace, class: ClassRef) -> u32 {
        let mut above = Vec::new();
        let (mut next, mut slots) = (Some(class), 0);
        while let Some(class) = next.filter(|_| above.len() < MOST_ABOVE) {
            if let Some(&known) = self.counts.get(&class) {
                slots = known;
                break;
            }
            above.push(class);
            let (table, entry, _) = trace.names.class(class);
            next = trace.names.class_near(table.str(entry.super_name), Some(class), &trace.types);
        }
        for class in above.into_iter().rev() {
            slots = self.own_fields(&trace.names, class, slots);
            self.counts.insert(class, slots);
        }
        slots
    }

    fn own_fields(&mut self, names: &Names, class: ClassRef, mut slots: u32) -> u32 {
        let table = names.class(class).0;
        for index in table.fields_of(names.index_of(class)) {
            let field = &table.fields[index];
            if !field.is_static() && table.str(field.descriptor).starts_with(['L', '[']) {
                self.fields.insert(table.field_id(index as u32), slots);
                slots += 1;
            }
        }
        slots
    }

    /// The slot of a field in objects of a class.
    #[inline]
    pub fn slot(&mut self, class: u32, field: FieldId) -> u32 {
        match self.fields.get(&field) {
            Some(&slot) if slot < self.told[class as usize] => slot,
            _ => self.other(class, field),
        }
    }

    fn other(&mut self, class: u32, field: FieldId) -> u32 {
        let slots = &mut self.classes[class as usize].slots;
        *self.others.entry((class, field.0)).or_insert_with(|| {
            *slots += 1;
            *slots - 1
        })
    }

    /// The class at that index, as known so far.
    #[inline]
    pub fn get(&self, class: u32) -> &Class {
        &self.classes[class as usize]
    }

    /// All classes.
    pub fn into_classes(self) -> Vec<Class> {
        self.classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};

    /// A subclass and its superclass in different artifacts; a primitive field, a static one, and one that no table
    /// has.
    #[test]
    fn slots_are_those_of_the_names_tables() {
        let mut builder = TraceBuilder::new();
        let base =
            class("a/Base", "java/lang/Object", &[]).with_fields(&["first La/Base;", "size I", "static all [La/Base;"]);
        builder.names(&table("base", 100, &[class("java/lang/Object", "", &[]), base]));
        let derived = class("b/Derived", "a/Base", &[]).with_fields(&["second [La/Base;", "third Ljava/lang/String;"]);
        builder.names(&table("derived", 1000, &[derived]));
        let source = Source::from_bytes(builder.finish()).unwrap();
        let Source::Trace(trace) = &source else { unreachable!() };
        let mut slots = Slots::new(&source);
        let mut of = |name: &str| {
            let ty = trace.types.get_class(name).unwrap();
            slots.class(ty, || format!("L{name};"))
        };
        let (derived, base) = (of("b/Derived"), of("a/Base"));
        assert_eq!((slots.get(derived).slots, slots.get(base).slots), (3, 1));
        assert_eq!(slots.slot(base, FieldId(100)), 0);
        assert_eq!([100, 1000, 1001].map(|field| slots.slot(derived, FieldId(field))), [0, 1, 2]);
        assert_eq!([7777, 7778, 7777].map(|field| slots.slot(base, FieldId(field))), [1, 2, 1]);
        assert_eq!((slots.get(derived).slots, slots.get(base).slots), (3, 3));
        // A field of the subclass in an object of another class: the trace is inconsistent, and the field gets a slot
        // of its own.
        assert_eq!(slots.slot(base, FieldId(1000)), 3);
    }

    #[test]
    fn kinds_of_classes_are_in_their_descriptors() {
        let source = Source::from_bytes(b"# Elephant Tracks, dialect et\n# lost 0\n".to_vec()).unwrap();
        let mut slots = Slots::new(&source);
        for (number, (descriptor, kind)) in [
            ("La/B;", ClassKind::Scalar),
            ("?", ClassKind::Scalar),
            ("[I", ClassKind::Numbers),
            ("[[I", ClassKind::References),
            ("[La/B;", ClassKind::References),
        ]
        .into_iter()
        .enumerate()
        {
            let class = slots.class(TypeId(number as u32), || descriptor.to_owned());
            assert_eq!((slots.get(class).kind, slots.get(class).slots), (kind, 0), "{descriptor}");
        }
    }
}
