//! Methods that the VM itself calls with arguments that it has created for the call.
//!
//! ```text
//! loadClass(String)   ->  aload_1  made(Object)  …
//! ```
//!
//! No other hook sees these objects first: no bytecode creates them, and no call returns them.

use super::{Emitter, Hook};
use crate::classfile::Member;
use crate::code::opcode::ALOAD;
use crate::code::{CodeEditor, parameter_slots, parameters};

/// Such methods of the JDK: class, name, start of the descriptor.
const UPCALLS: &[(&str, &str, &str)] = &[
    // Message of an exception that the VM throws.
    ("java/lang/Throwable", "<init>", "(Ljava/lang/String;"),
    // Name of a native method to be linked.
    ("java/lang/ClassLoader", "findNative", "("),
    // Parts of a constant or call site to be linked, and the array for its appendix.
    ("java/lang/invoke/MethodHandleNatives", "linkCallSite", "("),
    ("java/lang/invoke/MethodHandleNatives", "linkDynamicConstant", "("),
    ("java/lang/invoke/MethodHandleNatives", "linkMethod", "("),
    ("java/lang/invoke/MethodHandleNatives", "linkMethodHandleConstant", "("),
    ("java/lang/invoke/MethodHandleNatives", "findMethodHandleType", "("),
];

/// The local variables that, on entry of the method, hold objects that the VM may have created for the call.
pub fn upcall_arguments(class: &str, method: &Member<'_>, jdk: bool) -> Vec<u16> {
    let is =
        |name: &str, start: &str| method.name == name.as_bytes() && method.descriptor.starts_with(start.as_bytes());
    // The VM also calls the overriding methods in a program's class loaders.
    let loads = is("loadClass", "(Ljava/lang/String;)Ljava/lang/Class;") && !method.is_static();
    let listed = || UPCALLS.iter().any(|&(owner, name, start)| owner == class && is(name, start));
    if !(loads || jdk && listed()) {
        return Vec::new();
    }
    let mut slot = u16::from(!method.is_static());
    let mut found = Vec::new();
    for parameter in parameters(method.descriptor) {
        if matches!(parameter, [b'L' | b'[', ..]) && parameter != b"Ljava/lang/Class;" {
            found.push(slot);
        }
        slot += parameter_slots(&[b"(", parameter, b")"].concat()) as u16;
    }
    found
}

/// On entry, reports the objects in these local variables.
pub(crate) fn announce(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, locals: &[u16]) {
    emit.start();
    for &local in locals {
        emit.local(ALOAD, local).call(Hook::Made);
    }
    editor.at_entry(emit.bytes(), 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classfile::access;

    fn method<'a>(name: &'a str, descriptor: &'a str, access: u16) -> Member<'a> {
        let (name, descriptor) = (name.as_bytes(), descriptor.as_bytes());
        Member { access, name, descriptor, attributes: Vec::new(), bytes: &[] }
    }

    #[test]
    fn arguments_the_vm_makes() {
        let loads = method("loadClass", "(Ljava/lang/String;)Ljava/lang/Class;", 0);
        assert_eq!(upcall_arguments("app/Loader", &loads, false), [1]);
        let links = "(Ljava/lang/Class;ILjava/lang/Class;JLjava/lang/Object;[Ljava/lang/Object;)V";
        let links = method("linkMethod", links, access::STATIC);
        assert_eq!(upcall_arguments("java/lang/invoke/MethodHandleNatives", &links, true), [5, 6]);
    }

    #[test]
    fn methods_that_only_look_like_it() {
        let none = |class, name, descriptor, access, jdk| {
            assert_eq!(upcall_arguments(class, &method(name, descriptor, access), jdk), [0; 0], "{name}");
        };
        let descriptor = "(Ljava/lang/String;)Ljava/lang/Class;";
        none("app/Loader", "loadClass", descriptor, access::STATIC, false);
        none("app/Loader", "loadClass", "(Ljava/lang/String;Z)Ljava/lang/Class;", 0, false);
        none("java/lang/Throwable", "<init>", "(Ljava/lang/String;)V", 0, false);
        none("java/lang/Throwable", "<init>", "(Ljava/lang/Throwable;)V", 0, true);
    }
}
