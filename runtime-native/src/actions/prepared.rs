//! What the VM makes for a class before anything of it runs, without a word to anybody:
//!
//! - the strings of its `static final` fields with a `ConstantValue` (JVMS §4.7.2), and
//! - the lock under which it will be initialised, an `int[0]`, when the class is defined;
//! - the array of its constant pool's resolved references, if that has any, when the class is linked.
//!
//! Nothing is read as a reference before it is known to be one: fields are, which JVMTI lists, and nothing else.

use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{CLASSES, class_status};

use crate::actions::define::define;
use crate::tracer::Tracer;

/// Tells of what was made for a class that has just been linked, and is not initialised.
pub fn announce(tracer: &Tracer, env: Env, class: Object) {
    tracer.machine.proxy.announce_mirror(env, class);
    with_resolved_references(tracer, env, class, |env, references| tracer.machine.proxy.made(env, references));
}

/// Tells at the end of what nobody else will tell of: classes that were loaded and never linked, and strings that a
/// compiler had resolved and no code has used.
pub fn announce_the_rest(tracer: &Tracer, env: Env) {
    env.frame(CLASSES, |env| {
        for class in tracer.machine.jvmti.loaded_classes(env).unwrap_or_default() {
            define(tracer, env, class, false);
            let Ok(status) = tracer.machine.jvmti.class_status(class) else { continue };
            if status & (class_status::PREPARED | class_status::NEVER_LINKED) == 0 {
                tracer.machine.proxy.announce_mirror(env, class);
            } else if status & class_status::NEVER_LINKED == 0 {
                with_resolved_references(tracer, env, class, |env, references| {
                    tracer.machine.proxy.announce_references(env, references);
                });
            }
        }
    });
}

/// Does something with the array of a linked class's resolved references, if it has one.
fn with_resolved_references(tracer: &Tracer, env: Env, class: Object, act: impl FnOnce(Env, Object)) {
    env.frame(8, |env| {
        let klass = tracer.machine.proxy.klass(env, class);
        if klass != 0
            && let Some(references) = tracer.machine.hotspot.resolved_references(env, klass)
        {
            act(env, references);
        }
    });
}
