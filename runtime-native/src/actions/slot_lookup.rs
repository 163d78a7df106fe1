//! Finds the field references of fields named by an offset or a JNI field id. What is found is kept in `slots`.

use std::sync::Arc;

use et_jvm::env::{Env, FieldId, Object};
use et_jvm::jvmti::JvmtiError;

use crate::actions::define::define;
use crate::classes::slots::{Layout, Own, no_layout};
use crate::tracer::Tracer;

/// The address of the layout of a class; of one without fields if the layout cannot be found out.
pub fn layout_address(tracer: &Tracer, env: Env, class: Object) -> usize {
    // When ids are used up, nothing can be kept.
    if tracer.id(env, class) == 0 {
        return no_layout();
    }
    layout(tracer, env, class).map_or(no_layout(), |layout| layout.address())
}

/// The field reference of this field of an instance of `class`; 0 for none.
pub fn instance_field(tracer: &Tracer, env: Env, class: Object, field: FieldId) -> u32 {
    let slot = tracer.classes.slots.instance_offset(field).and_then(|offset| {
        let layout = layout(tracer, env, class).ok()?;
        layout.slots().find(|slot| slot.offset == offset)
    });
    slot.map_or(0, |slot| slot.field)
}

/// The field reference of the static reference field that lies at that offset of the mirror; 0 for none.
pub fn static_field_at(tracer: &Tracer, env: Env, mirror: Object, offset: i64) -> u32 {
    let Ok(own) = own(tracer, env, mirror) else { return 0 };
    own.statics.iter().find(|(_, slot)| i64::from(slot.offset) == offset).map_or(0, |(_, slot)| slot.field)
}

/// The field reference of a static field by its id in JNI; 0 if it holds no reference.
pub fn static_field(tracer: &Tracer, env: Env, class: Object, field: FieldId) -> u32 {
    // The class may have inherited it, from an interface even.
    let Ok(Some(owner)) = tracer.machine.jvmti.field_declaring_class(env, class, field) else { return 0 };
    let Ok(own) = own(tracer, env, owner) else { return 0 };
    own.statics.iter().find(|(id, _)| *id == field.0 as usize).map_or(0, |(_, slot)| slot.field)
}

fn layout(tracer: &Tracer, env: Env, class: Object) -> Result<Layout, JvmtiError> {
    let id = tracer.id(env, class);
    if let Some(layout) = tracer.classes.slots.layout(id) {
        return Ok(layout);
    }
    // Superclasses first; the frame keeps the local references of one class at a time.
    let mut slots = env.frame(8, |env| match env.superclass(class) {
        Some(superclass) => layout(tracer, env, superclass).map(|layout| layout.slots().collect()),
        None => Ok(Vec::new()),
    })?;
    slots.extend_from_slice(&own(tracer, env, class)?.instance);
    Ok(tracer.classes.slots.keep(id, Layout::new(slots)))
}

fn own(tracer: &Tracer, env: Env, class: Object) -> Result<Arc<Own>, JvmtiError> {
    let id = tracer.id(env, class);
    if let Some(own) = tracer.classes.slots.own(id) {
        return Ok(own);
    }
    // So that its unloading is reported, when this is forgotten.
    define(tracer, env, class, false);
    // No lock is held while the VM is asked: if two threads ask, one answer is thrown away.
    let members = tracer.classes.slots.members(tracer.machine.jvmti, class)?;
    Ok(tracer.classes.slots.keep_own(id, members, tracer.classes.dynamic_ids, tracer.output.queue))
}
