//! Positions of fields in the dump record of an object: the class's own fields in the order of `CLASS_LOAD`, then those
//! of its superclass.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::abi::ObjectId;
use crate::classes::{Class, Shape};

/// Size of a value in bytes, by the type's descriptor letter.
pub fn bytes_of(letter: u8) -> usize {
    match letter {
        b'Z' | b'B' => 1,
        b'C' | b'S' => 2,
        b'I' | b'F' => 4,
        _ => 8,
    }
}

/// Whether a type is one of references.
pub fn is_reference(letter: u8) -> bool {
    matches!(letter, b'L' | b'[')
}

/// Position of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: usize,
    pub letter: u8,
}

/// The record of a class's instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Total length of the values in bytes.
    pub bytes: usize,
    /// By JVMTI's index: fields of interfaces, then of superclasses from the top down, then its own. None for those without a place.
    pub places: Vec<Option<Place>>,
}

/// A class and its superclasses, itself first.
pub fn chain(classes: &FxHashMap<ObjectId, Arc<Class>>, id: ObjectId) -> Vec<Arc<Class>> {
    let mut chain: Vec<Arc<Class>> = Vec::new();
    let mut next = id;
    while let Some(class) = classes.get(&next).filter(|_| chain.len() < 1000) {
        chain.push(Arc::clone(class));
        next = class.super_class;
    }
    chain
}

/// The layouts of all classes that have instances. Without `primitives` their fields have no place.
pub fn of_all(classes: &FxHashMap<ObjectId, Arc<Class>>, primitives: bool) -> FxHashMap<u32, Arc<Layout>> {
    let instances = classes.values().filter(|class| class.shape == Shape::Instance);
    instances.map(|class| (class.id as u32, Arc::new(of(classes, class.id, primitives)))).collect()
}

fn of(classes: &FxHashMap<ObjectId, Arc<Class>>, id: ObjectId, primitives: bool) -> Layout {
    let chain = chain(classes, id);
    let mut interfaces = FxHashSet::default();
    let mut waiting: Vec<ObjectId> = chain.iter().flat_map(|class| class.interfaces.iter().copied()).collect();
    let mut first = 0;
    while let Some(interface) = waiting.pop() {
        if let Some(class) = classes.get(&interface).filter(|_| interfaces.insert(interface)) {
            first += class.fields.len();
            waiting.extend(&class.interfaces);
        }
    }
    let mut layout = Layout { bytes: 0, places: vec![None; first] };
    let mut parts = Vec::new();
    for class in &chain {
        let place = |field: &crate::classes::Field| {
            let letter = field.letter();
            if field.is_static || !(primitives || is_reference(letter)) {
                return None;
            }
            let offset = layout.bytes;
            layout.bytes += bytes_of(letter);
            Some(Place { offset, letter })
        };
        parts.push(class.fields.iter().map(place).collect::<Vec<_>>());
    }
    layout.places.extend(parts.into_iter().rev().flatten());
    layout
}
