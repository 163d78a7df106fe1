//! Finds the field references of fields given by an offset or a JNI field id. Results are cached in `slots`.

use std::sync::Arc;

use et_jvm::env::{Env, FieldId, Object};
use et_jvm::jvmti::JvmtiError;

use crate::actions::define::define;
use crate::classes::slots::{Layout, Own, no_layout};
use crate::tracer::Tracer;

/// The address of the layout of a class; if the layout cannot be determined, that of a layout without fields.
pub fn layout_address(tracer: &Tracer, env: Env, class: Object) -> usize {
    // Without an id for the class nothing can be cached.
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

/// The field reference of the static reference field at that offset of the mirror; 0 if there is none.
pub fn static_field_at(tracer: &Tracer, env: Env, mirror: Object, offset: i64) -> u32 {
    let Ok(own) = own(tracer, env, mirror) else { return 0 };
    own.statics.iter().find(|(_, slot)| i64::from(slot.offset) == offset).map_or(0, |(_, slot)| slot.field)
}

/// The field reference of a static field with that JNI field id; 0 if it is primitive.
pub fn static_field(tracer: &Tracer, env: Env, class: Object, field: FieldId) -> u32 {
    // The class may have inherited it, even from an interface.
    let Ok(Some(owner)) = tracer.machine.jvmti.field_declaring_class(env, class, field) else { return 0 };
    let Ok(own) = own(tracer, env, owner) else { return 0 };
    own.statics.iter().find(|(id, _)| *id == field.0 as usize).map_or(0, |(_, slot)| slot.field)
}

fn layout(tracer: &Tracer, env: Env, class: Object) -> Result<Layout, JvmtiError> {
    let id = tracer.id(env, class);
    if let Some(layout) = tracer.classes.slots.layout(id) {
        return Ok(layout);
    }
    // Superclasses first; the JNI frame holds the local references of one class at a time.
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
    // Needed so that its unloading is reported, and this cached layout dropped.
    define(tracer, env, class, false);
    // No lock is held while the VM is called: if two threads ask, one answer is discarded.
    let members = tracer.classes.slots.members(tracer.machine.jvmti, class)?;
    Ok(tracer.classes.slots.keep_own(id, members, tracer.classes.dynamic_ids, tracer.output.queue))
}
