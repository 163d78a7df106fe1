//! The objects reported to the agent as allocated but not as dead, by id.

use et_reader::record::ObjectId;
use et_reader::types::TypeId;
use jni_sys::jint;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its id in the trace.
    pub object: ObjectId,
    pub ty: TypeId,
    pub size: u64,
    pub arena: jint,
}

/// Ids are those of the trace; under a simulated collector they are addresses, and change.
#[derive(Debug, Default)]
pub struct Heap {
    objects: FxHashMap<usize, Object>,
    objects_move: bool,
    /// Ids in the replay of objects that differ from their ids in the trace.
    places: FxHashMap<ObjectId, usize>,
    bytes: u64,
    most: u64,
}

impl Heap {
    /// An empty one, in which objects move or stay.
    pub fn new(objects_move: bool) -> Self {
        Self { objects_move, ..Self::default() }
    }

    pub fn insert(&mut self, id: usize, object: Object) {
        if self.objects_move || id != object.object.0 as usize {
            self.places.insert(object.object, id);
        }
        self.bytes += object.size;
        self.most = self.most.max(self.bytes);
        self.objects.insert(id, object);
    }

    pub fn remove(&mut self, id: usize) -> Option<Object> {
        let object = self.objects.remove(&id)?;
        self.gone(&object);
        Some(object)
    }

    fn gone(&mut self, object: &Object) {
        self.bytes -= object.size;
        self.places.remove(&object.object);
    }

    /// Returns false if there is no such object.
    pub fn move_to(&mut self, id: usize, new_id: usize, arena: jint) -> bool {
        let Some(object) = self.objects.remove(&id) else { return false };
        self.places.insert(object.object, new_id);
        self.objects.insert(new_id, Object { arena, ..object });
        true
    }

    /// All that is left in an arena goes.
    pub fn delete_arena(&mut self, arena: jint) {
        let gone: Vec<Object> =
            self.objects.extract_if(|_, object| object.arena == arena).map(|(_, object)| object).collect();
        gone.iter().for_each(|object| self.gone(object));
    }

    pub fn get(&self, id: usize) -> Option<&Object> {
        self.objects.get(&id)
    }

    /// The id that an object has now; 0 if the agent does not know it.
    pub fn id_of(&self, object: ObjectId) -> usize {
        let own = Some(object.0 as usize).filter(|id| !self.objects_move && self.objects.contains_key(id));
        self.places.get(&object).copied().or(own).unwrap_or(0)
    }

    pub fn objects(&self) -> u64 {
        self.objects.len() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Maximum size in bytes so far.
    pub fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: u64, arena: jint) -> Object {
        Object { object: ObjectId(number), ty: TypeId(1), size: 16, arena }
    }

    #[test]
    fn objects_are_found_where_they_have_gone() {
        let mut heap = Heap::new(true);
        heap.insert(0x1000, object(1, 1));
        heap.insert(0x1010, object(2, 1));
        assert!(heap.move_to(0x1010, 0x2000, 2));
        assert_eq!((heap.id_of(ObjectId(1)), heap.id_of(ObjectId(2))), (0x1000, 0x2000));
        heap.delete_arena(1);
        assert_eq!((heap.id_of(ObjectId(1)), heap.id_of(ObjectId(2))), (0, 0x2000));
        assert_eq!((heap.objects(), heap.bytes(), heap.most()), (1, 16, 32));
        assert_eq!(heap.remove(0x2000), Some(object(2, 2)));
        assert_eq!((heap.id_of(ObjectId(2)), heap.bytes()), (0, 0));
    }

    #[test]
    fn objects_that_stay_have_their_own_numbers() {
        let mut heap = Heap::new(false);
        heap.insert(7, object(7, 1));
        assert_eq!((heap.id_of(ObjectId(7)), heap.id_of(ObjectId(8))), (7, 0));
        // But for mirrors, which have those of their classes.
        heap.insert(0x9000, object(9, 3));
        assert_eq!((heap.id_of(ObjectId(9)), heap.get(9)), (0x9000, None));
        assert!(!heap.move_to(9, 10, 1));
    }
}
