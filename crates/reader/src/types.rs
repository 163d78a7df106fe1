//! Interned JVM descriptors.

use std::borrow::Cow;

use et_names::escape;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// A type of the trace: handle of its JVM descriptor in [`Types`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TypeId(pub u32);

impl TypeId {
    /// An unknown type; its descriptor is `?`.
    pub const UNKNOWN: TypeId = TypeId(0);
}

/// Interned descriptors. Those of a trace file are all interned when it is opened.
#[derive(Clone, Debug)]
pub struct Types {
    descriptors: Vec<Box<str>>,
    index: FxHashMap<Box<str>, TypeId>,
    /// Descriptors that are escaped in a text.
    words: FxHashMap<TypeId, Box<str>>,
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Self { descriptors: Vec::new(), index: FxHashMap::default(), words: FxHashMap::default() };
        types.intern("?");
        types
    }
}

impl Types {
    /// Returns the handle of `descriptor`, after adding it if necessary.
    pub fn intern(&mut self, descriptor: &str) -> TypeId {
        if let Some(&known) = self.index.get(descriptor) {
            return known;
        }
        let id = TypeId(self.descriptors.len() as u32);
        self.descriptors.push(descriptor.into());
        let word = if descriptor.starts_with(|first: char| first.is_ascii_digit()) {
            // A type that begins with a digit would be read as a number.
            Cow::Owned(escape::word_of_odd_start(descriptor))
        } else {
            escape::word(descriptor)
        };
        if word != descriptor {
            self.words.insert(id, word.into());
        }
        self.index.insert(descriptor.into(), id);
        id
    }

    /// Returns the handle of the class with this internal name, after adding it if necessary.
    pub fn intern_class(&mut self, internal_name: &str) -> TypeId {
        self.intern(&class_descriptor(internal_name))
    }

    /// Handle of a known descriptor.
    pub fn get(&self, descriptor: &str) -> Option<TypeId> {
        self.index.get(descriptor).copied()
    }

    /// Handle of a known class, by its internal name.
    pub fn get_class(&self, internal_name: &str) -> Option<TypeId> {
        self.get(&class_descriptor(internal_name))
    }

    /// Descriptor of a handle.
    pub fn descriptor(&self, id: TypeId) -> &str {
        self.descriptors.get(id.0 as usize).map_or("?", |text| text)
    }

    /// The descriptor as one field of a line of text.
    #[inline]
    pub fn word(&self, id: TypeId) -> &str {
        let escaped = if self.words.is_empty() { None } else { self.words.get(&id) };
        match escaped {
            Some(word) => word,
            None => self.descriptor(id),
        }
    }

    /// Descriptors from that number on, to find those that were added.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &str> {
        self.descriptors.iter().skip(first).map(|descriptor| &**descriptor)
    }

    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Always false: there is always the unknown type.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }
}

fn class_descriptor(internal_name: &str) -> String {
    format!("L{internal_name};")
}

/// Internal name of a class descriptor: `a/B` for `La/B;`. `None` for arrays and primitives.
pub fn class_name(descriptor: &str) -> Option<&str> {
    descriptor.strip_prefix('L')?.strip_suffix(';')
}

/// A descriptor as in Java source: `java.lang.String[]`.
pub fn for_people(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let dimensions = descriptor.len() - element.len();
    let mut text = match element {
        "Z" => "boolean".to_owned(),
        "B" => "byte".to_owned(),
        "C" => "char".to_owned(),
        "S" => "short".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "F" => "float".to_owned(),
        "D" => "double".to_owned(),
        other => class_name(other).unwrap_or(other).replace('/', "."),
    };
    for _ in 0..dimensions {
        text.push_str("[]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_read_like_java() {
        assert_eq!(for_people("[[I"), "int[][]");
        assert_eq!(for_people("Ljava/util/Map$Entry;"), "java.util.Map$Entry");
        assert_eq!(for_people("?"), "?");
        assert_eq!(class_name("[La/B;"), None);
    }

    #[test]
    fn equal_descriptors_have_equal_handles() {
        let mut types = Types::default();
        let a = types.intern("La/B;");
        assert_eq!(types.intern_class("a/B"), a);
        assert_eq!(types.get_class("a/B"), Some(a));
        assert_eq!(types.get("[I"), None);
        assert_eq!(types.descriptor(TypeId::UNKNOWN), "?");
    }
}
