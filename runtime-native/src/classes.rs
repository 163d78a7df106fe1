//! Class records: written once for each class, before an event names it.

use std::sync::{Mutex, PoisonError};

use et_trace::event::{ObjectHash, Ticket};
use et_trace::file::format::{ClassRecord, class_flags};
use rustc_hash::FxHashSet;

use crate::jvm::env::{Env, Object};
use crate::jvm::jvmti::JvmtiError;
use crate::tracer::Tracer;

/// Ids of the classes that have their record.
#[derive(Debug, Default)]
pub struct Classes {
    defined: Mutex<FxHashSet<u32>>,
}

impl Classes {
    /// The id of `class`, whose record is written if it was not. Tickets of classes that were there when tracing
    /// began are 0.
    pub fn define(&self, tracer: &Tracer, env: Env, class: Object, initial: bool) -> ObjectHash {
        let id = tracer.hotspot.identity_hash(env, class);
        let new = self.defined.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        if new {
            env.frame(8, |env| {
                let superclass = match env.superclass(class) {
                    Some(superclass) => self.define(tracer, env, superclass, initial),
                    None => ObjectHash::NULL,
                };
                let ticket = if initial { Ticket(0) } else { tracer.buffers.next_ticket() };
                match record(
                    tracer,
                    env,
                    class,
                    ClassRecord { ticket, class: ObjectHash(id), superclass, ..ClassRecord::default() },
                ) {
                    Ok(record) => tracer.queue.class(&record),
                    Err(error) => tracer.queue.problem(format!("class without a record: {error}"), 1),
                }
            });
        }
        ObjectHash(id)
    }
}

fn record(tracer: &Tracer, env: Env, class: Object, known: ClassRecord) -> Result<ClassRecord, JvmtiError> {
    let jvmti = tracer.jvmti;
    let signature = jvmti.class_signature(class)?;
    let loader = match jvmti.class_loader(env, class)? {
        Some(loader) => ObjectHash(tracer.hotspot.identity_hash(env, loader)),
        None => ObjectHash::NULL,
    };
    let (mut flags, mut instance_size) = (0, 0);
    if signature.starts_with('[') {
        flags |= class_flags::ARRAY;
    } else if signature.starts_with('L') {
        // `Lapp/Main$$Lambda.0x…;`: no other descriptor holds a dot.
        if signature.contains('.') {
            flags |= class_flags::HIDDEN;
        }
        if jvmti.is_interface(class)? {
            flags |= class_flags::INTERFACE;
        } else {
            match tracer.proxy.instance_size(env, class).filter(|_| tracer.sizes_known) {
                Some(size) => instance_size = size,
                None => flags |= class_flags::SIZE_UNKNOWN,
            }
        }
    }
    let mirror_size = jvmti.object_size(class)? as u32;
    Ok(ClassRecord { loader, instance_size, mirror_size, flags, signature, ..known })
}
