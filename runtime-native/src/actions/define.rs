//! Class records: how the trace describes a class.

use et_format::event::{ObjectHash, Ticket};
use et_format::{ClassRecord, class_flags};
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::JvmtiError;

use crate::tracer::Tracer;

/// Returns the id of `class`, and queues its record unless it has one. `initial` classes existed when tracing began;
/// their tickets are 0.
pub fn define(tracer: &Tracer, env: Env, class: Object, initial: bool) -> ObjectHash {
    let id = tracer.id(env, class);
    if tracer.classes.records.has(id) {
        return ObjectHash(id);
    }
    env.frame(8, |env| {
        let superclass = match env.superclass(class) {
            Some(superclass) => define(tracer, env, superclass, initial),
            None => ObjectHash::NULL,
        };
        let known = ClassRecord { class: ObjectHash(id), superclass, ..ClassRecord::default() };
        // No lock is held here: if two threads do the same, the first record counts.
        let record = record(tracer, env, class, known);
        // Classes of the boot loader are never unloaded, except hidden ones; those that existed when tracing began stay as well.
        let stays = initial && record.as_ref().is_ok_and(|record| record.loader == ObjectHash::NULL);
        let ticket = || if initial { Ticket(0) } else { tracer.output.buffers.next_ticket() };
        tracer.classes.records.enter(id, record, tracer.output.queue, ticket);
        tracer.tag(class, id);
        if let Some(unloading) = tracer.classes.unloading.get().filter(|_| !stays) {
            unloading.watch(class, id);
        }
    });
    ObjectHash(id)
}

fn record(tracer: &Tracer, env: Env, class: Object, known: ClassRecord) -> Result<ClassRecord, JvmtiError> {
    let jvmti = tracer.machine.jvmti;
    let signature = jvmti.class_signature(class)?;
    let loader = match jvmti.class_loader(env, class)? {
        Some(loader) => ObjectHash(tracer.id(env, loader)),
        None => ObjectHash::NULL,
    };
    let (mut flags, mut instance_size) = (0, 0);
    if signature.starts_with('[') {
        flags |= class_flags::ARRAY;
    } else if signature.starts_with('L') {
        // `Lapp/Main$$Lambda.0x…;`: no other descriptor contains a dot.
        if signature.contains('.') {
            flags |= class_flags::HIDDEN;
        }
        if jvmti.is_interface(class)? {
            flags |= class_flags::INTERFACE;
        } else {
            match tracer.machine.proxy.instance_size(env, class).filter(|_| tracer.machine.sizes_known) {
                Some(size) => instance_size = size,
                None => flags |= class_flags::SIZE_UNKNOWN,
            }
        }
    }
    let mirror_size = jvmti.object_size(class)? as u32;
    Ok(ClassRecord { loader, instance_size, mirror_size, flags, signature, ..known })
}
