//! Classes made at run time: the native methods of `java.base` that define them are called through stand-ins, which have
//! the bytes rewritten first. All that Java code defines comes by here: `ClassLoader.defineClass`, hidden classes,
//! lambdas, proxies.
//!
//! ```text
//! invokestatic  ClassLoader.defineClass1(…)  ->  invokestatic HeapProxyClasses.defineClass1(…)
//! invokevirtual Unsafe.defineClass0(…)       ->  invokestatic HeapProxyClasses.defineClass0(Unsafe,…)
//! ```

use super::Emitter;
use crate::classfile::{ConstantPool, Malformed, to_string};
use crate::code::{CodeEditor, Instruction};

struct Native {
    class: &'static str,
    name: &'static str,
    /// Start of the descriptor.
    descriptor: &'static str,
    /// The class that has a stand-in of the same name.
    stand_in: &'static str,
    /// The stand-in takes the receiver as its first parameter.
    has_receiver: bool,
}

const CLASSES: &str = "java/lang/HeapProxyClasses";
const LOADER: &str = "java/lang/ClassLoader";
const UNSAFE: &str = "jdk/internal/misc/Unsafe";

const NATIVES: [Native; 5] = [
    // 15 and later: hidden classes.
    Native {
        class: LOADER,
        name: "defineClass0",
        descriptor: "(Ljava/lang/ClassLoader;Ljava/lang/Class;",
        stand_in: CLASSES,
        has_receiver: false,
    },
    // 9 and later; in 8 the loader is the receiver.
    Native {
        class: LOADER,
        name: "defineClass1",
        descriptor: "(Ljava/lang/ClassLoader;",
        stand_in: CLASSES,
        has_receiver: false,
    },
    Native {
        class: LOADER,
        name: "defineClass2",
        descriptor: "(Ljava/lang/ClassLoader;",
        stand_in: CLASSES,
        has_receiver: false,
    },
    Native {
        class: UNSAFE,
        name: "defineClass0",
        descriptor: "(Ljava/lang/String;[BII",
        stand_in: CLASSES,
        has_receiver: true,
    },
    // 9 to 16. Not the native method behind it, which is private.
    Native {
        class: UNSAFE,
        name: "defineAnonymousClass",
        descriptor: "(Ljava/lang/Class;[B[Ljava/lang/Object;)",
        stand_in: "java/lang/HeapProxyAnonymous",
        has_receiver: true,
    },
];

/// In place of a call of one of them.
pub(crate) fn define_class(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    pool: &ConstantPool<'_>,
) -> Result<(), Malformed> {
    let called = pool.member_ref(instruction.pool_index())?;
    let native = NATIVES.iter().find(|native| {
        called.name == native.name.as_bytes()
            && called.class == native.class.as_bytes()
            && called.descriptor.starts_with(native.descriptor.as_bytes())
    });
    if let Some(native) = native {
        let mut descriptor = to_string(called.descriptor);
        if native.has_receiver {
            descriptor.insert_str(1, &format!("L{};", native.class));
        }
        editor.replace(instruction, emit.start().invoke_static(native.stand_in, native.name, &descriptor).bytes());
    }
    Ok(())
}
