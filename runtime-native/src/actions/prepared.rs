//! Records what the VM itself creates for a class before any of its code runs:
//!
//! - the strings of its `static final` fields with a `ConstantValue` (JVMS §4.7.2), and
//! - the lock under which it will be initialized, an `int[0]`, when the class is defined;
//! - the array of its constant pool's resolved references, if that has any, when the class is linked.
//!
//! A word is read as a reference only if it is known to be one: a field that JVMTI lists.

use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{CLASSES, class_status};

use crate::actions::define::define;
use crate::tracer::Tracer;
use crate::tracer::machine::Machine;

/// Records what was created for a class that has just been linked and is not initialized yet.
pub fn announce(tracer: &Tracer, env: Env, class: Object) {
    tracer.machine.proxy.announce_mirror(env, class);
    with_resolved_references(&tracer.machine, env, class, |env, references| tracer.machine.proxy.made(env, references));
}

/// Records at the end what is still missing: of classes that were loaded and never linked, and strings that a compiler
/// has resolved but no code has used.
pub fn announce_the_rest(tracer: &Tracer, env: Env) {
    env.frame(CLASSES, |env| {
        for class in tracer.machine.jvmti.loaded_classes(env).unwrap_or_default() {
            define(tracer, env, class, false);
            let Ok(status) = tracer.machine.jvmti.class_status(class) else { continue };
            if status & (class_status::PREPARED | class_status::NEVER_LINKED) == 0 {
                tracer.machine.proxy.announce_mirror(env, class);
            } else if status & class_status::NEVER_LINKED == 0 {
                with_resolved_references(&tracer.machine, env, class, |env, references| {
                    tracer.machine.proxy.announce_references(env, references);
                });
            }
        }
    });
}

/// Calls `act` with the array of resolved references of a linked class, if it has one.
fn with_resolved_references(machine: &Machine, env: Env, class: Object, act: impl FnOnce(Env, Object)) {
    env.frame(8, |env| {
        let klass = machine.proxy.klass(env, class);
        if klass != 0
            && let Some(references) = machine.hotspot.resolved_references(env, klass)
        {
            act(env, references);
        }
    });
}
