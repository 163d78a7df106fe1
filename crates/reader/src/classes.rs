//! The classes that the run loaded, found by their mirrors.

use et_format::event::{ObjectHash, Ticket};
use et_format::{ClassRecord, class_flags};
use rustc_hash::FxHashMap;

use crate::types::{TypeId, Types};

/// Index of a class in [`Classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassIndex(pub u32);

/// A class that the run loaded.
#[derive(Clone, Debug)]
pub struct Class {
    pub record: ClassRecord,
    pub ty: TypeId,
    pub superclass: Option<ClassIndex>,
    /// For hidden classes: type according to the class file, which is also the one in its hooks if it was instrumented
    /// ahead of time.
    pub file_ty: Option<TypeId>,
    /// Whether it has a names table of its own because it was created at run time.
    pub has_table: bool,
}

/// All classes, in order of their tickets.
#[derive(Debug, Default)]
pub struct Classes {
    all: Vec<Class>,
    by_mirror: FxHashMap<u32, ClassIndex>,
    /// Later classes whose mirror reuses the id of an unloaded one's, in order of their tickets.
    reused: FxHashMap<u32, Vec<ClassIndex>>,
    by_type: FxHashMap<TypeId, ClassIndex>,
}

impl Classes {
    /// Builds the index from class records.
    pub fn new(mut records: Vec<ClassRecord>, types: &mut Types) -> Self {
        records.sort_by_key(|record| record.ticket);
        let mut classes = Self::default();
        for record in records {
            let ty = types.intern(&record.signature);
            let index = ClassIndex(classes.all.len() as u32);
            let mirror = record.class.0;
            match classes.by_mirror.get(&mirror) {
                Some(&known) if classes.get(known).record.signature == record.signature => continue,
                Some(_) => classes.reused.entry(mirror).or_default().push(index),
                None => {
                    classes.by_mirror.insert(mirror, index);
                }
            }
            classes.by_type.entry(ty).or_insert(index);
            let file_ty = file_signature(&record).map(|signature| types.intern(&signature));
            classes.all.push(Class { record, ty, superclass: None, file_ty, has_table: false });
        }
        for at in 0..classes.all.len() {
            let record = &classes.all[at].record;
            classes.all[at].superclass = classes.at(record.superclass, record.ticket);
        }
        classes
    }

    pub fn iter(&self) -> impl Iterator<Item = &Class> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Records that this class has a names table of its own.
    pub fn has_table(&mut self, index: ClassIndex) {
        self.all[index.0 as usize].has_table = true;
    }

    /// Returns the class with this index.
    pub fn get(&self, index: ClassIndex) -> &Class {
        &self.all[index.0 as usize]
    }

    /// The class whose mirror has this id at the given time.
    #[inline]
    pub fn at(&self, mirror: ObjectHash, ticket: Ticket) -> Option<ClassIndex> {
        let first = *self.by_mirror.get(&mirror.0)?;
        if self.reused.is_empty() {
            return Some(first);
        }
        let later = self.reused.get(&mirror.0).map_or(&[][..], Vec::as_slice);
        let before = later.partition_point(|&index| self.get(index).record.ticket <= ticket);
        Some(before.checked_sub(1).map_or(first, |last| later[last]))
    }

    /// Whether an object with this id has been the mirror of a class.
    pub fn is_mirror(&self, object: ObjectHash) -> bool {
        self.by_mirror.contains_key(&object.0)
    }

    /// Whether the id of each mirror stands for the same class all the time.
    pub fn have_own_mirrors(&self) -> bool {
        self.reused.is_empty()
    }

    /// The first class loaded with this descriptor.
    pub fn of_type(&self, ty: TypeId) -> Option<ClassIndex> {
        self.by_type.get(&ty).copied()
    }

    /// Whether the class or one of its superclasses has this descriptor, or had it in its class file.
    #[inline]
    pub fn is_subclass(&self, class: ClassIndex, ancestor: TypeId) -> bool {
        let mut at = Some(class);
        // Damaged records may contain a cycle.
        for _ in 0..1000 {
            let Some(index) = at else { return false };
            let class = self.get(index);
            if class.ty == ancestor || class.file_ty == Some(ancestor) {
                return true;
            }
            at = class.superclass;
        }
        false
    }
}

/// Descriptor in the class file of a hidden class: `LFoo;` for `LFoo.0x1f;` (JVMTI's `GetClassSignature`).
fn file_signature(record: &ClassRecord) -> Option<String> {
    let name = record.signature.strip_suffix(';').filter(|_| record.flags & class_flags::HIDDEN != 0)?;
    let (name, _suffix) = name.rsplit_once('.')?;
    Some(format!("{name};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ticket: u64, class: u32, superclass: u32, signature: &str) -> ClassRecord {
        ClassRecord {
            ticket: Ticket(ticket),
            class: ObjectHash(class),
            superclass: ObjectHash(superclass),
            signature: signature.into(),
            ..ClassRecord::default()
        }
    }

    #[test]
    fn a_mirror_id_may_be_used_again() {
        let mut types = Types::default();
        let classes = Classes::new(
            vec![record(9, 5, 1, "LC;"), record(1, 1, 0, "LA;"), record(2, 5, 1, "LB;"), record(3, 5, 1, "LB;")],
            &mut types,
        );
        assert_eq!(classes.len(), 3);
        let signature =
            |ticket| classes.at(ObjectHash(5), Ticket(ticket)).map(|c| classes.get(c).record.signature.as_str());
        assert_eq!(signature(0), Some("LB;"), "a use before the record belongs to the first");
        assert_eq!(signature(8), Some("LB;"));
        assert_eq!(signature(9), Some("LC;"));
        let c = classes.at(ObjectHash(5), Ticket(9)).unwrap();
        assert!(classes.is_subclass(c, types.get("LA;").unwrap()));
        assert!(!classes.is_subclass(c, types.get("LB;").unwrap()));
    }
}
