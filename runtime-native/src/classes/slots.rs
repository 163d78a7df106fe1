//! Maps offsets to fields, for stores that give an object and an offset, or a JNI field id, instead of a field.
//!
//! A class's *layout* is the list of the reference fields of its instances, each with the field reference that its
//! updates name. Layouts are created on first use, and kept until the class is unloaded.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use et_format::dynamic::DynamicClass;
use et_format::event::ObjectHash;
use et_jvm::sync::lock;
use et_names::{ArtifactKind, ClassId, DynamicIds, FieldRefNames, NamesTable};
use rustc_hash::FxHashMap;

use crate::base::id_table::{self, IdTable};
use crate::classes::dynamic_ids;
use crate::output::queue::Queue;
use et_jvm::env::{Env, FieldId, Object};
use et_jvm::field_ids::FieldIds;
use et_jvm::jvmti::{Jvmti, JvmtiError, STATIC};

/// Number of slots of the table that HeapProxy searches; HeapProxy has the same constant.
const SLOTS: usize = 1 << 18;

/// A field that JVMTI does not list: the stack trace of an exception.
const BACKTRACE: (&str, &str) = ("java/lang/Throwable", "backtrace");

/// An entry of the table, as HeapProxy reads it.
#[derive(Debug)]
#[repr(C)]
struct TableEntry {
    class: AtomicU32,
    padding: AtomicU32,
    layout: AtomicI64,
}

impl TableEntry {
    const fn none() -> Self {
        Self { class: AtomicU32::new(0), padding: AtomicU32::new(0), layout: AtomicI64::new(0) }
    }
}

impl id_table::Slot for TableEntry {
    fn id(&self) -> &AtomicU32 {
        &self.class
    }
}

/// The table that HeapProxy searches. Its pages take no memory until they are used.
static TABLE: [TableEntry; SLOTS] = [const { TableEntry::none() }; SLOTS];

/// The table's address, for HeapProxy.
pub fn table_address() -> usize {
    TABLE.as_ptr() as usize
}

/// A layout without fields, for unknown classes.
static NO_FIELDS: [i32; 1] = [0];

/// Address of a layout without fields, for unknown classes.
pub fn no_layout() -> usize {
    NO_FIELDS.as_ptr() as usize
}

/// A reference field: its offset, and its id in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Bytes from the start of the object or of the mirror.
    pub offset: i32,
    /// The id of the field reference that events name.
    pub field: u32,
}

/// The reference fields that a class declares itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Fields of instances.
    pub instance: Vec<Slot>,
    /// Static fields, each with its JNI field id.
    pub statics: Vec<(usize, Slot)>,
}

/// A layout in the form that HeapProxy reads: the number of fields, then offset and field reference of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout(Arc<[i32]>);

impl Layout {
    /// A layout of these fields.
    pub fn new(mut slots: Vec<Slot>) -> Self {
        slots.sort_unstable();
        let words = slots.iter().flat_map(|slot| [slot.offset, slot.field as i32]);
        Self([slots.len() as i32].into_iter().chain(words).collect())
    }

    /// The fields of the layout.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0[1..].chunks_exact(2).map(|pair| Slot { offset: pair[0], field: pair[1] as u32 })
    }

    /// The layout's address, for HeapProxy.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

/// Offsets of fields that the VM itself stores into, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct HiddenStores {
    /// `Reference.referent`.
    pub referent: Option<i32>,
    /// `Reference.discovered`, which links the references that the collector has cleared.
    pub discovered: Option<i32>,
    /// `CallSite.target`.
    pub target: Option<i32>,
}

/// The reference fields of classes.
#[derive(Debug)]
pub struct Slots {
    ids: FieldIds,
    /// Offset of `Throwable.backtrace`.
    backtrace: Option<i32>,
    hidden: HiddenStores,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    own: FxHashMap<u32, Arc<Own>>,
    /// HeapProxy has their addresses, and uses them as long as it has an object of the class.
    layouts: FxHashMap<u32, Layout>,
    /// The same layouts, in the table that HeapProxy searches.
    table: IdTable<TableEntry>,
}

impl State {
    fn new(table: &'static [TableEntry]) -> Self {
        Self { own: FxHashMap::default(), layouts: FxHashMap::default(), table: IdTable::new(table) }
    }
}

/// Number of classes with cached data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Classes whose own fields are kept.
    pub own: usize,
    /// Classes whose layouts are kept.
    pub layouts: usize,
}

impl Slots {
    /// Determines how to read field ids. Runs Java code, so it is called before the hooks are on.
    pub fn new(env: Env, jvmti: Jvmti) -> Self {
        let ids = FieldIds::probe(env, jvmti);
        let offset = |class, name, descriptor| {
            let field = env.find_class(class).and_then(|class| env.field(class, name, descriptor))?;
            ids.instance_offset(FieldId(field.0))
        };
        let (reference, reference_type) = (c"java/lang/ref/Reference", c"Ljava/lang/ref/Reference;");
        Self {
            ids,
            backtrace: offset(c"java/lang/Throwable", c"backtrace", c"Ljava/lang/Object;"),
            hidden: HiddenStores {
                referent: offset(reference, c"referent", c"Ljava/lang/Object;"),
                discovered: offset(reference, c"discovered", reference_type),
                target: offset(c"java/lang/invoke/CallSite", c"target", c"Ljava/lang/invoke/MethodHandle;"),
            },
            state: Mutex::new(State::new(&TABLE)),
        }
    }

    /// The fields that the VM itself stores into.
    pub fn hidden_stores(&self) -> HiddenStores {
        self.hidden
    }

    /// Whether field ids can be read.
    pub fn are_known(&self) -> bool {
        self.ids.are_known()
    }

    /// Forgets the class with this id, which was unloaded.
    pub fn forget(&self, class: u32) {
        let mut state = lock(&self.state);
        state.own.remove(&class);
        if state.layouts.remove(&class).is_some() {
            state.table.remove(class);
        }
    }

    /// Number of classes with cached data.
    pub fn kept(&self) -> Kept {
        let state = lock(&self.state);
        Kept { own: state.own.len(), layouts: state.layouts.len() }
    }

    /// The offset of an instance field, read from its JNI field id.
    pub fn instance_offset(&self, field: FieldId) -> Option<i32> {
        self.ids.instance_offset(field)
    }

    /// The layout of the class with this id, if it was created.
    pub fn layout(&self, class: u32) -> Option<Layout> {
        lock(&self.state).layouts.get(&class).cloned()
    }

    /// The fields that the class with this id declares, if they are cached.
    pub fn own(&self, class: u32) -> Option<Arc<Own>> {
        lock(&self.state).own.get(&class).cloned()
    }

    /// Caches the fields that a class declares, and queues their names. Existing entries stay.
    pub fn keep_own(&self, class: u32, members: Members, ids: &DynamicIds, queue: &Queue) -> Arc<Own> {
        let mut state = lock(&self.state);
        let publish = || Arc::new(members.publish(ObjectHash(class), ids, queue));
        state.own.entry(class).or_insert_with(publish).clone()
    }

    /// Asks the VM for the reference fields that a class declares.
    pub fn members(&self, jvmti: Jvmti, class: Object) -> Result<Members, JvmtiError> {
        let signature = jvmti.class_signature(class)?;
        let name = signature.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or_default();
        let mut members = Members { class: name.to_owned(), fields: Vec::new() };
        if name.is_empty() {
            return Ok(members);
        }
        for field in jvmti.class_fields(class)? {
            let member = jvmti.field_name(class, field)?;
            if !member.descriptor.starts_with(['L', '[']) {
                continue;
            }
            let is_static = jvmti.field_modifiers(class, field)? & STATIC != 0;
            let offset = if is_static { self.ids.static_offset(field) } else { self.ids.instance_offset(field) };
            if let Some(offset) = offset {
                members.fields.push(Declared {
                    name: member.name,
                    descriptor: member.descriptor,
                    static_id: is_static.then_some(field.0 as usize),
                    offset,
                });
            }
        }
        if name == BACKTRACE.0
            && let Some(offset) = self.backtrace
            && members.fields.iter().all(|field| field.name != BACKTRACE.1)
        {
            let (name, descriptor) = (BACKTRACE.1.to_owned(), "Ljava/lang/Object;".to_owned());
            members.fields.push(Declared { name, descriptor, static_id: None, offset });
        }
        Ok(members)
    }

    /// Caches a layout. An existing one stays.
    pub fn keep(&self, class: u32, layout: Layout) -> Layout {
        let mut state = lock(&self.state);
        if let Some(known) = state.layouts.get(&class) {
            return known.clone();
        }
        state.layouts.insert(class, layout.clone());
        state.table.insert(class, |entry| entry.layout.store(layout.address() as i64, Ordering::Relaxed));
        layout
    }
}

/// The reference fields of a class as the VM lists them, before they have ids.
#[derive(Debug)]
pub struct Members {
    class: String,
    fields: Vec<Declared>,
}

#[derive(Debug)]
struct Declared {
    name: String,
    descriptor: String,
    /// The JNI field id, of a static field.
    static_id: Option<usize>,
    offset: i32,
}

impl Members {
    /// Gives ids to the fields, and their names to the trace. If no ids are left, there are no fields. `class` is the
    /// id of the class, because its name need not be unique.
    fn publish(self, class: ObjectHash, ids: &DynamicIds, queue: &Queue) -> Own {
        let mut own = Own::default();
        if self.fields.is_empty() {
            return own;
        }
        let Some(base) = ids.take(self.fields.len() as u32) else { return own };
        let mut names =
            NamesTable::new(dynamic_ids::artifact(base, format!("fields of {}", self.class), ArtifactKind::Dynamic));
        for (field, declared) in (base..).zip(self.fields) {
            let slot = Slot { offset: declared.offset, field };
            match declared.static_id {
                Some(id) => own.statics.push((id, slot)),
                None => own.instance.push(slot),
            }
            names.push_field_ref(&FieldRefNames {
                class: self.class.clone(),
                name: declared.name,
                descriptor: declared.descriptor,
                is_static: declared.static_id.is_some(),
            });
        }
        dynamic_ids::publish(queue, &names);
        queue.dynamic_class(&DynamicClass { mirror: class, class: ClassId(base) });
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::{DYNAMIC_BASE, FieldRefId};

    fn slots(table: &'static [TableEntry]) -> Slots {
        Slots {
            ids: FieldIds::default(),
            backtrace: None,
            hidden: HiddenStores::default(),
            state: Mutex::new(State::new(table)),
        }
    }

    fn layout(offsets: &[i32]) -> Layout {
        Layout::new(offsets.iter().map(|&offset| Slot { offset, field: 7 }).collect())
    }

    #[test]
    fn fields_of_a_layout_are_sorted_by_offset() {
        let unsorted = vec![Slot { offset: 24, field: 1 }, Slot { offset: 12, field: u32::MAX >> 2 }];
        let layout = Layout::new(unsorted);
        assert_eq!(*layout.0, [2, 12, (u32::MAX >> 2) as i32, 24, 1]);
        assert_eq!(layout.slots().map(|slot| slot.offset).collect::<Vec<_>>(), [12, 24]);
    }

    #[test]
    fn a_classs_first_layout_stays_and_collisions_stand_in_a_row() {
        const COUNT: usize = 8;
        let table: &'static [TableEntry] = Vec::leak((0..COUNT).map(|_| TableEntry::none()).collect());
        let slots = slots(table);
        let first = slots.keep(15, layout(&[12]));
        assert_eq!(slots.keep(15, layout(&[16])), first);
        let second = slots.keep(7, layout(&[20]));
        let at = |slot: usize| (table[slot].class.load(Ordering::Relaxed), table[slot].layout.load(Ordering::Relaxed));
        assert_eq!(at(7), (15, first.address() as i64));
        assert_eq!(at(0), (7, second.address() as i64));
        assert_eq!(at(1), (0, 0));
        assert_eq!(slots.kept(), Kept { own: 0, layouts: 2 });
        slots.forget(7);
        slots.forget(8);
        assert_eq!((at(7).0, at(0).0), (15, 0));
        assert_eq!(slots.kept(), Kept { own: 0, layouts: 1 });
        let again = slots.keep(7, layout(&[28]));
        assert_eq!(at(0), (7, again.address() as i64));
    }

    #[test]
    fn fields_get_ids_with_names_in_the_trace() {
        let declared = |name: &str, static_id, offset| Declared {
            name: name.into(),
            descriptor: "La/B;".into(),
            static_id,
            offset,
        };
        let fields = vec![declared("x", None, 12), declared("Y", Some(1000), 112)];
        let (ids, queue) = (DynamicIds::default(), Queue::default());
        let own = Members { class: "a/A".into(), fields }.publish(ObjectHash(9), &ids, &queue);
        assert_eq!(own.instance, [Slot { offset: 12, field: DYNAMIC_BASE }]);
        assert_eq!(own.statics, [(1000, Slot { offset: 112, field: DYNAMIC_BASE + 1 })]);
        let table = queue.take_names().remove(0);
        let name = |id| table.field_ref(FieldRefId(id)).map(|field| (table.str(field.name), field.is_static));
        assert_eq!(name(DYNAMIC_BASE), Some(("x", false)));
        assert_eq!(name(DYNAMIC_BASE + 1), Some(("Y", true)));
        assert!(table.classes.is_empty());
        assert_eq!(
            Members { class: "a/A".into(), fields: Vec::new() }.publish(ObjectHash(9), &ids, &queue),
            Own::default()
        );
        assert!(queue.take_names().is_empty());
    }
}
