//! What exists when tracing begins: objects, references between them, and frames of running threads.
//!
//! Found by a heap walk (`picture`), for which each object must have its id (`identify`). Tags are in a JVMTI
//! environment of their own, and are disposed of with it.

mod blocks;
mod identify;
pub mod marks;
mod picture;

use std::ffi::CStr;

use blocks::References;
use et_format::event::ObjectHash;
use et_format::{InitialField, InitialFrame, InitialReference, InitialSlot};
use rustc_hash::FxHashMap;

use crate::actions::define::define;
use crate::actions::threads;
use crate::tracer::Tracer;
use crate::tracer::machine::Machine;
use et_jvm::env::{Env, Field, Global, Object};
use et_jvm::jvmti::{CLASSES, Frame, Jvmti, JvmtiError, STATIC, reference};
pub use identify::{mark_shift, say_how_it_was_walked};
use picture::{Picture, id};

/// Capacity of local frames: there may be a reference for each object.
const LOCALS: i32 = 1 << 16;
/// Maximum number of frames recorded per thread.
const FRAMES: usize = 1 << 12;
/// Marks a field of a primitive type.
const NO_REFERENCE: u32 = u32::MAX;

/// Wrapper classes whose field `TYPE` contains the mirror of a primitive type; the VM does not list these mirrors.
const PRIMITIVES: [&CStr; 9] = [
    c"java/lang/Boolean",
    c"java/lang/Byte",
    c"java/lang/Character",
    c"java/lang/Short",
    c"java/lang/Integer",
    c"java/lang/Long",
    c"java/lang/Float",
    c"java/lang/Double",
    c"java/lang/Void",
];

/// Counts of the objects found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of objects.
    pub objects: usize,
    /// Number of objects that have the same id as another.
    pub shared_ids: usize,
}

/// Gives every object its id and queues all objects. The threads of the program must be stopped.
pub fn record(tracer: &Tracer, env: Env, walker: Jvmti, threads: &[Object]) -> Result<Found, JvmtiError> {
    env.frame(LOCALS, |env| {
        // Everything that runs Java code or creates objects comes first: objects not found by the last walk have no
        // record.
        let mut mirrors = primitives(env);
        let classes = walker.loaded_classes(env)?;
        mirrors.extend_from_slice(&classes);
        // The walk skips references from a mirror's fields of java.lang.Class. Local references to their targets make
        // it visit them.
        let mirror_slots = MirrorSlots::read(walker, env, &mirrors)?;
        let targets = mirror_slots.iter().flat_map(|mirrors| mirrors.slots.iter().map(|(_, _, target)| target));
        let held = Held::all(env, mirrors.iter().chain(targets));
        let (picture, shared_ids) = identify::identified(tracer, env, walker)?;
        drop(held);
        let mut by_id = FxHashMap::default();
        for class in mirrors {
            by_id.insert(define(tracer, env, class, true).0, class);
        }
        let mut fields = FieldLists {
            tracer,
            env,
            classes: by_id,
            own: FxHashMap::default(),
            slots: FxHashMap::default(),
            list: Vec::new(),
        };
        let bytes = blocks::bytes();
        blocks::write_objects(tracer.output.queue, &picture.objects, bytes);
        write_references(tracer, &picture, mirror_slots.as_ref(), &mut fields, bytes)?;
        for thread in threads {
            let frames = frames(tracer.machine.jvmti, env, walker, *thread, &picture).unwrap_or_default();
            threads::initial(tracer, env, *thread, frames);
        }
        Ok(Found { objects: picture.objects.len(), shared_ids })
    })
}

/// Links the classes of the boot loader. The VM can have instances of them from a CDS archive before it links them,
/// and would not report the fields of these. Call it while all threads run: one of them may be about to link a class.
pub fn link_archived(machine: &Machine, env: Env) -> Result<(), JvmtiError> {
    env.frame(CLASSES, |env| {
        for class in machine.jvmti.loaded_classes(env)? {
            if machine.jvmti.is_unlinked(class)? && machine.jvmti.class_loader(env, class)?.is_none() {
                machine.hotspot.link(env, class);
            }
        }
        Ok(())
    })
}

/// References held as roots of the walk. The walk does not treat a frame's references as roots where a thread has
/// stopped at a breakpoint.
struct Held<'a> {
    env: Env<'a>,
    references: Vec<Global>,
}

impl<'a> Held<'a> {
    fn all<'o>(env: Env<'a>, objects: impl Iterator<Item = &'o Object<'a>>) -> Self
    where
        'a: 'o,
    {
        Self { env, references: objects.filter_map(|object| env.global(*object)).collect() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.references.drain(..).for_each(|reference| self.env.delete_global(reference));
    }
}

/// Has the classes initialized that have the mirrors of primitive types in their fields.
pub fn initialize_wrappers(env: Env) {
    env.frame(32, |env| _ = primitives(env));
}

/// The mirrors of primitive types, which the VM does not list.
fn primitives<'a>(env: Env<'a>) -> Vec<Object<'a>> {
    let mirror = |name| {
        let wrapper = env.find_class(name)?;
        env.get_static_object(wrapper, env.static_field(wrapper, c"TYPE", c"Ljava/lang/Class;")?)
    };
    PRIMITIVES.into_iter().filter_map(mirror).collect()
}

/// References from mirrors in fields of `java.lang.Class`.
struct MirrorSlots<'a> {
    /// `java.lang.Class`.
    class: Object<'a>,
    fields: Vec<(Field, String, String)>,
    /// Class, index into `fields`, target.
    slots: Vec<(Object<'a>, usize, Object<'a>)>,
}

impl<'a> MirrorSlots<'a> {
    fn read(jvmti: Jvmti, env: Env<'a>, classes: &[Object<'a>]) -> Result<Option<Self>, JvmtiError> {
        let Some(class) = env.find_class(c"java/lang/Class") else { return Ok(None) };
        let mut read = Self { class, fields: Vec::new(), slots: Vec::new() };
        for field in jvmti.class_fields(class)? {
            let member = jvmti.field_name(class, field)?;
            let is_static = jvmti.field_modifiers(class, field)? & STATIC != 0;
            if !is_static && is_reference(&member.descriptor) {
                read.fields.push((Field(field.0), member.name, member.descriptor));
            }
        }
        for class in classes {
            for (index, (field, _, descriptor)) in read.fields.iter().enumerate() {
                // HotSpot keeps internal objects in some of them (JDK 17: the initialization lock of a class in
                // `componentType`), and removes them without a visible store.
                let is_own = |target| descriptor == "Ljava/lang/Class;" && !env.is_instance(target, read.class);
                if let Some(target) = env.get_object(*class, *field).filter(|target| !is_own(*target)) {
                    read.slots.push((*class, index, target));
                }
            }
        }
        Ok(Some(read))
    }
}

fn is_reference(descriptor: &str) -> bool {
    descriptor.starts_with(['L', '['])
}

fn write_references(
    tracer: &Tracer,
    picture: &Picture,
    mirrors: Option<&MirrorSlots>,
    fields: &mut FieldLists,
    bytes: usize,
) -> Result<(), JvmtiError> {
    let mut references = References::new(tracer.output.queue, bytes);
    for edge in &picture.edges {
        let (origin, target) = (ObjectHash(edge.origin), ObjectHash(edge.target));
        let (origin, slot) = match edge.kind {
            reference::ARRAY_ELEMENT => (origin, Some(InitialSlot::Element(edge.index))),
            reference::STATIC_FIELD => {
                (ObjectHash::NULL, fields.field(edge.origin, edge.index)?.map(InitialSlot::Static))
            }
            _ => {
                let class = picture.class_of.get(&edge.origin).copied().unwrap_or(0);
                (origin, fields.field(class, edge.index)?.map(InitialSlot::Field))
            }
        };
        if let Some(slot) = slot {
            references.push(&fields.list, InitialReference { origin, target, slot });
        }
    }
    if let Some(mirrors) = mirrors {
        let class = ObjectHash(tracer.id(fields.env, mirrors.class));
        let first = fields.list.len() as u32;
        fields.list.extend(mirrors.fields.iter().map(|(_, name, descriptor)| InitialField {
            class,
            name: name.clone(),
            descriptor: descriptor.clone(),
        }));
        for (mirror, field, target) in &mirrors.slots {
            // They have ids: the walk has found them through our local references.
            let known = |object| Some(tracer.id(fields.env, object)).filter(|id| picture.class_of.contains_key(id));
            if let (Some(origin), Some(target)) = (known(*mirror), known(*target)) {
                let slot = InitialSlot::Field(first + *field as u32);
                let (origin, target) = (ObjectHash(origin), ObjectHash(target));
                references.push(&fields.list, InitialReference { origin, target, slot });
            }
        }
    }
    references.finish();
    Ok(())
}

/// What the field indexes of the walk mean (JVMTI, `jvmtiHeapReferenceInfoField`): first the fields of all interfaces
/// of the class, although no index ever refers to one; then those of its superclasses from `Object` down, then its
/// own, each class's in the order of `GetClassFields`. For an interface: those of its superinterfaces, then its own.
struct FieldLists<'a> {
    tracer: &'a Tracer,
    env: Env<'a>,
    classes: FxHashMap<u32, Object<'a>>,
    /// By class: indexes into `list` of the fields that it declares.
    own: FxHashMap<u32, Vec<u32>>,
    /// By class: all fields that an index can refer to.
    slots: FxHashMap<u32, Vec<u32>>,
    list: Vec<InitialField>,
}

impl<'a> FieldLists<'a> {
    /// The field with that index of the walk, as an index into the list.
    fn field(&mut self, class: u32, index: u32) -> Result<Option<u32>, JvmtiError> {
        if !self.slots.contains_key(&class) {
            let slots = match self.classes.get(&class) {
                Some(object) if self.tracer.machine.jvmti.is_unlinked(*object)? => {
                    let line = "classes that were not linked: what their objects refer to at the start is missing";
                    self.tracer.output.queue.problem(line, 1);
                    Vec::new()
                }
                Some(object) => self.all(*object)?,
                None => Vec::new(),
            };
            self.slots.insert(class, slots);
        }
        let field = self.slots.get(&class).and_then(|slots| slots.get(index as usize)).copied();
        Ok(field.filter(|field| *field != NO_REFERENCE))
    }

    fn all(&mut self, class: Object<'a>) -> Result<Vec<u32>, JvmtiError> {
        let mut interfaces = FxHashMap::default();
        self.interfaces(class, &mut interfaces)?;
        let mut count = 0;
        for interface in interfaces.into_values() {
            count += self.own(interface)?.len();
        }
        let mut slots = vec![NO_REFERENCE; count];
        let mut chain = vec![class];
        while let Some(superclass) = chain.last().and_then(|class| self.env.superclass(*class)) {
            chain.push(superclass);
        }
        for class in chain.into_iter().rev() {
            slots.extend(self.own(class)?);
        }
        Ok(slots)
    }

    /// Collects the interfaces of a class, of its superclasses and of these interfaces.
    fn interfaces(&self, class: Object<'a>, found: &mut FxHashMap<u32, Object<'a>>) -> Result<(), JvmtiError> {
        for interface in self.tracer.machine.jvmti.interfaces(self.env, class)? {
            if found.insert(self.tracer.id(self.env, interface), interface).is_none() {
                self.interfaces(interface, found)?;
            }
        }
        match self.env.superclass(class) {
            Some(superclass) => self.interfaces(superclass, found),
            None => Ok(()),
        }
    }

    fn own(&mut self, class: Object) -> Result<Vec<u32>, JvmtiError> {
        let id = self.tracer.id(self.env, class);
        if let Some(own) = self.own.get(&id) {
            return Ok(own.clone());
        }
        let jvmti = self.tracer.machine.jvmti;
        let mut own = Vec::new();
        for field in jvmti.class_fields(class)? {
            let member = jvmti.field_name(class, field)?;
            if is_reference(&member.descriptor) {
                own.push(self.list.len() as u32);
                let (name, descriptor) = (member.name, member.descriptor);
                self.list.push(InitialField { class: ObjectHash(id), name, descriptor });
            } else {
                own.push(NO_REFERENCE);
            }
        }
        self.own.insert(id, own.clone());
        Ok(own)
    }
}

/// The frames of a thread, outermost first, without native methods, which have no hooks.
fn frames(
    jvmti: Jvmti,
    env: Env,
    walker: Jvmti,
    thread: Object,
    picture: &Picture,
) -> Result<Vec<InitialFrame>, JvmtiError> {
    const NATIVE: i32 = 0x100;
    let thread_id = id(walker.tag(thread)?).unwrap_or(0);
    let mut frames = Vec::new();
    for (depth, Frame { method, location }) in jvmti.stack_trace(thread, FRAMES)?.into_iter().enumerate() {
        // Its entry hook has not run yet.
        if depth == 0 && location == 0 {
            continue;
        }
        let modifiers = jvmti.method_modifiers(method)?;
        if modifiers & NATIVE != 0 {
            continue;
        }
        let member = jvmti.method_name(method)?;
        let class = match jvmti.declaring_class(env, method)? {
            Some(class) => jvmti.class_signature(class)?,
            None => continue,
        };
        let receiver = if modifiers & STATIC != 0 {
            ObjectHash::NULL
        } else {
            ObjectHash(picture.receivers.get(&(thread_id, depth as i32)).copied().unwrap_or(0))
        };
        frames.push(InitialFrame { class, method: member.name, descriptor: member.descriptor, receiver });
    }
    frames.reverse();
    Ok(frames)
}
