//! What exists when tracing begins: objects, the references between them, and the frames of running threads.
//!
//! The heap walk of JVMTI knows objects by their tags only, and calls nothing that could tell an identity hash. So
//! it is done twice: once to mark all objects, whose hashes then become their tags, and once to write them down; and
//! again if objects have come to be meanwhile. Such must not be left out: in newer JVMs (25) every object that a walk
//! has seen has a hash, which is how hooks tell the objects that they need not announce.
//! Tags live in an environment of their own and go with it.

use std::ffi::CStr;

use et_trace::event::ObjectHash;
use et_trace::file::format::{
    BlockKind, InitialField, InitialFrame, InitialObject, InitialReference, InitialReferences, InitialSlot,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids;
use crate::jvm::env::{Env, Field, Object};
use crate::jvm::jvmti::{CLASSES, Frame, Jvmti, JvmtiError, STATIC, reference};
use crate::tracer::Tracer;

/// Tag of objects that have no id yet. No id is negative.
const MARKED: i64 = -1;
/// Walks at most, should something go on making objects.
const MAX_WALKS: u32 = 8;
/// Local references that JNI is told of; there are as many as objects.
const LOCALS: i32 = 1 << 16;
/// Frames of a thread that are looked at.
const FRAMES: usize = 1 << 12;
/// A field of a primitive type.
const NO_REFERENCE: u32 = u32::MAX;

/// Mirrors that the VM lists nowhere.
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

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Objects.
    pub objects: usize,
    /// Objects that have the id of another.
    pub shared_ids: usize,
}

/// Gives every object its id and writes all to the trace. The threads of the program stand still meanwhile.
pub fn record(tracer: &Tracer, env: Env, walker: Jvmti, threads: &[Object]) -> Result<Found, JvmtiError> {
    env.frame(LOCALS, |env| {
        // All that runs Java code or makes objects comes first: what the last walk does not find has no record.
        let mut mirrors = primitives(env);
        let classes = walker.loaded_classes(env)?;
        mirrors.extend_from_slice(&classes);
        // The walk leaves out what a mirror holds in fields of java.lang.Class. Our references to it make it do.
        let mirror_slots = MirrorSlots::read(walker, env, &mirrors)?;
        let (picture, shared_ids) = identified(tracer, env, walker)?;
        let mut by_id = FxHashMap::default();
        for class in mirrors {
            by_id.insert(tracer.classes.define(tracer, env, class, true).0, class);
        }
        let mut fields = FieldLists {
            tracer,
            env,
            classes: by_id,
            own: FxHashMap::default(),
            slots: FxHashMap::default(),
            list: Vec::new(),
        };
        write_objects(tracer, &picture);
        write_references(tracer, walker, &picture, mirror_slots.as_ref(), &mut fields)?;
        for thread in threads {
            let frames = frames(tracer, env, walker, *thread, &picture).unwrap_or_default();
            tracer.threads.initial(tracer, env, *thread, frames);
        }
        Ok(Found { objects: picture.objects.len(), shared_ids })
    })
}

/// Links the boot loader's classes. The VM can have objects of theirs from a CDS archive before it does, and
/// would not tell the fields of these. To be called while all threads run: one may be about to link a class itself.
pub fn link_archived(tracer: &Tracer, env: Env) -> Result<(), JvmtiError> {
    env.frame(CLASSES, |env| {
        for class in tracer.jvmti.loaded_classes(env)? {
            if tracer.jvmti.is_unlinked(class)? && tracer.jvmti.class_loader(env, class)?.is_none() {
                tracer.hotspot.link(env, class);
            }
        }
        Ok(())
    })
}

/// The mirrors of primitive types, which the VM lists nowhere.
fn primitives<'a>(env: Env<'a>) -> Vec<Object<'a>> {
    let mirror = |name| {
        let wrapper = env.find_class(name)?;
        env.get_static_object(wrapper, env.static_field(wrapper, c"TYPE", c"Ljava/lang/Class;")?)
    };
    PRIMITIVES.into_iter().filter_map(mirror).collect()
}

/// Walks the heap until every object on the way has its id. That takes two walks, more if objects come to be between
/// them. Returns the last walk's result, and how many objects share their id with another.
fn identified(tracer: &Tracer, env: Env, walker: Jvmti) -> Result<(Picture, usize), JvmtiError> {
    let mut taken = FxHashSet::default();
    let mut shared = 0;
    let mut left = MAX_WALKS;
    // What the first calls make would cost another walk.
    draw(tracer, env);
    tracer.proxy.skip_hashes(env, 1);
    if let Some(thread) = env.find_class(c"java/lang/Thread") {
        tracer.proxy.peek_hash(env, thread);
    }
    loop {
        let picture = Picture::take(walker)?;
        if picture.marked == 0 {
            return Ok((picture, shared));
        }
        left -= 1;
        if left == 0 {
            let line = "objects that came to be while the initial objects were written down have no record";
            tracer.queue.problem(line, picture.marked);
            return Ok((picture, shared));
        }
        let objects = walker.objects_with_tag(env, MARKED)?;
        shared += give_ids(tracer, env, walker, &objects, &mut taken)?;
        objects.into_iter().for_each(|object| env.delete_local(object));
    }
}

/// Tags objects with their ids. Returns how many share theirs with another, of all that are in `taken`.
fn give_ids(
    tracer: &Tracer,
    env: Env,
    walker: Jvmti,
    objects: &[Object],
    taken: &mut FxHashSet<u32>,
) -> Result<usize, JvmtiError> {
    let mut ids: Vec<u32> = objects.iter().map(|object| tracer.id_if_any(env, *object)).collect();
    let mut shared = 0;
    for id in ids.iter().filter(|id| **id != 0) {
        shared += usize::from(!taken.insert(*id));
    }
    // Objects without an id get one only now: what is drawn from here on is nobody's. Where the generator has got to
    // must be asked: in newer JVMs the walk has drawn hashes itself, to find tags by.
    if tracer.tags.get().is_none()
        && let Some(drawn) = draw(tracer, env)
    {
        tracer.proxy.skip_hashes(env, ids::draws_to_skip(drawn, taken) as i32);
    }
    for (object, id) in objects.iter().zip(&mut ids) {
        if *id == 0 {
            *id = tracer.id(env, *object);
            shared += usize::from(!taken.insert(*id));
        }
        walker.set_tag(*object, (*id).into())?;
        tracer.tag(*object, *id);
    }
    Ok(shared)
}

/// The identity hash of a fresh object, which nobody keeps.
fn draw(tracer: &Tracer, env: Env) -> Option<u32> {
    env.frame(1, |env| env.new_byte_array(0).map(|object| tracer.hotspot.identity_hash(env, object)))
}

/// The references that class mirrors hold in fields of `java.lang.Class`.
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
                // HotSpot keeps things of its own in some (JDK 17: the lock of a class's initialisation in `componentType`),
                // and drops them without a store that anybody could see.
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

/// A reference as the walk reports it.
struct Edge {
    kind: i32,
    origin: u32,
    target: u32,
    index: u32,
}

/// A walk's result.
#[derive(Default)]
struct Picture {
    /// Objects that had no id, which are marked now. As long as there are any, the rest is incomplete.
    marked: u64,
    objects: Vec<InitialObject>,
    /// Class of each object, by id.
    class_of: FxHashMap<u32, u32>,
    edges: Vec<Edge>,
    /// Id of what slot 0 of a frame holds, by id of the thread and depth.
    receivers: FxHashMap<(u32, i32), u32>,
}

impl Picture {
    fn take(walker: Jvmti) -> Result<Self, JvmtiError> {
        let mut picture = Picture::default();
        // Not `IterateThroughHeap`: it also finds the dead, whom our references would then bring back.
        walker.follow_references(|found| {
            if *found.tag == 0 {
                *found.tag = MARKED;
                picture.marked += 1;
            }
            let Some(target) = id(*found.tag) else { return };
            if let Some(class) = id(found.class_tag)
                && picture.class_of.insert(target, class).is_none()
            {
                let size = u32::try_from(found.size).unwrap_or(u32::MAX);
                let (object, class) = (ObjectHash(target), ObjectHash(class));
                picture.objects.push(InitialObject { object, class, size, length: found.length });
            }
            match (found.kind, found.local, id(found.referrer_tag)) {
                (reference::FIELD | reference::STATIC_FIELD | reference::ARRAY_ELEMENT, _, Some(origin)) => {
                    picture.edges.push(Edge { kind: found.kind, origin, target, index: found.index });
                }
                (reference::STACK_LOCAL, Some(local), _) if local.slot == 0 => {
                    if let Some(thread) = id(local.thread_tag) {
                        picture.receivers.insert((thread, local.depth), target);
                    }
                }
                _ => {}
            }
        })?;
        Ok(picture)
    }
}

/// The id in a tag; none for what is only marked.
fn id(tag: i64) -> Option<u32> {
    u32::try_from(tag).ok().filter(|id| *id != 0)
}

fn write_objects(tracer: &Tracer, picture: &Picture) {
    let mut raw = Vec::with_capacity(picture.objects.len() * InitialObject::BYTES);
    for object in &picture.objects {
        object.encode(&mut raw);
    }
    tracer.queue.block(BlockKind::InitialObjects, raw);
}

fn write_references(
    tracer: &Tracer,
    walker: Jvmti,
    picture: &Picture,
    mirrors: Option<&MirrorSlots>,
    fields: &mut FieldLists,
) -> Result<(), JvmtiError> {
    let mut references = Vec::with_capacity(picture.edges.len() + mirrors.map_or(0, |mirrors| mirrors.slots.len()));
    for edge in &picture.edges {
        let (origin, target) = (ObjectHash(edge.origin), ObjectHash(edge.target));
        match edge.kind {
            reference::ARRAY_ELEMENT => {
                references.push(InitialReference { origin, target, slot: InitialSlot::Element(edge.index) });
            }
            reference::STATIC_FIELD => {
                if let Some(field) = fields.field(edge.origin, edge.index)? {
                    let (origin, slot) = (ObjectHash::NULL, InitialSlot::Static(field));
                    references.push(InitialReference { origin, target, slot });
                }
            }
            _ => {
                let class = picture.class_of.get(&edge.origin).copied().unwrap_or(0);
                if let Some(field) = fields.field(class, edge.index)? {
                    references.push(InitialReference { origin, target, slot: InitialSlot::Field(field) });
                }
            }
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
            if let (Some(origin), Some(target)) = (id(walker.tag(*mirror)?), id(walker.tag(*target)?)) {
                let slot = InitialSlot::Field(first + *field as u32);
                references.push(InitialReference { origin: ObjectHash(origin), target: ObjectHash(target), slot });
            }
        }
    }
    let mut raw = Vec::new();
    InitialReferences { fields: std::mem::take(&mut fields.list), references }.encode(&mut raw);
    tracer.queue.block(BlockKind::InitialReferences, raw);
    Ok(())
}

/// What the field indexes of the walk mean (JVMTI, `jvmtiHeapReferenceInfoField`): the fields of all interfaces of
/// the class count first, though none is ever named by an index; then come those of its superclasses from `Object`
/// down, then its own, each class's in the order of `GetClassFields`. For an interface: those of its
/// superinterfaces, then its own.
struct FieldLists<'a> {
    tracer: &'a Tracer,
    env: Env<'a>,
    classes: FxHashMap<u32, Object<'a>>,
    /// By class: its own fields as indexes into `list`.
    own: FxHashMap<u32, Vec<u32>>,
    /// By class: all fields that an index can mean.
    slots: FxHashMap<u32, Vec<u32>>,
    list: Vec<InitialField>,
}

impl<'a> FieldLists<'a> {
    /// The field with that index, as an index into the list.
    fn field(&mut self, class: u32, index: u32) -> Result<Option<u32>, JvmtiError> {
        if !self.slots.contains_key(&class) {
            let slots = match self.classes.get(&class) {
                Some(object) if self.tracer.jvmti.is_unlinked(*object)? => {
                    let line = "classes that were not linked: what their objects refer to at the start is missing";
                    self.tracer.queue.problem(line, 1);
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
        for interface in self.tracer.jvmti.interfaces(self.env, class)? {
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
        let jvmti = self.tracer.jvmti;
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

/// The frames of a thread, outermost first. Native methods are left out: they have no hooks.
fn frames(
    tracer: &Tracer,
    env: Env,
    walker: Jvmti,
    thread: Object,
    picture: &Picture,
) -> Result<Vec<InitialFrame>, JvmtiError> {
    const NATIVE: i32 = 0x100;
    let jvmti = tracer.jvmti;
    let thread_id = id(walker.tag(thread)?).unwrap_or(0);
    let mut frames = Vec::new();
    for (depth, Frame { method, location }) in jvmti.stack_trace(thread, FRAMES)?.into_iter().enumerate() {
        // Its hook is still to come.
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
