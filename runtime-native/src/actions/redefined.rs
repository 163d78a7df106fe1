//! Adds hooks to class files that replace those of existing classes: by agents (`Instrumentation.redefineClasses`, `retransformClasses`)
//! and debuggers ("hot swap").

use et_rewriter::classfile::{ClassFile, to_string};
use et_rewriter::rewrite::ATTRIBUTE;

use crate::actions::define::define;
use crate::classes::dynamic::Purpose;
use crate::tracer::Tracer;
use et_jvm::env::{Env, Object};

/// The class file to use in place of `bytes`, the new class file of `class`; `None` to use `bytes` unchanged.
pub fn redefined(tracer: &Tracer, env: Env, class: Object, bytes: &[u8]) -> Option<Vec<u8>> {
    let Some(dynamic) = tracer.classes.dynamic else {
        if let Some(name) = name_without_hooks(bytes) {
            tracer
                .output
                .queue
                .problem(format!("redefined by an agent and left without hooks (dynamic=off): {name}"), 1);
        }
        return None;
    };
    let boot = tracer.machine.jvmti.class_loader(env, class).is_ok_and(|loader| loader.is_none());
    let rewritten =
        dynamic.rewrite(bytes, Purpose::Redefinition { boot }, tracer.classes.dynamic_ids, tracer.output.queue)?;
    // If the VM refuses the class file, nothing is lost: no event will have its ids.
    let mirror = define(tracer, env, class, false);
    tracer.stacks.methods_change();
    dynamic.defined(mirror, rewritten.class, tracer.output.queue);
    Some(rewritten.bytes)
}

fn name_without_hooks(bytes: &[u8]) -> Option<String> {
    let class = ClassFile::read(bytes).ok()?;
    class.attribute(ATTRIBUTE).is_none().then(|| to_string(class.name))
}
