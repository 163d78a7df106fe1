//! Discards code compiled before tracing begins.
//!
//! Hooks test a plain static field, which a compiler may read once for all iterations of a loop. A loop that is
//! running when tracing begins late would never write events. A volatile field would cost every hook, also in runs
//! traced from the start. So when tracing begins late, the VM is made to discard its compiled code once: it does so
//! when a class is redefined, and the hook classes are redefined with their own bytes.

use std::ffi::CStr;

use et_jvm::env::{Env, Vm};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// Classes whose methods test the field and are inlined. If the VM records dependencies on inlined methods, as some
/// agents require, only code with methods of these classes is discarded.
const CLASSES: [&CStr; 3] = [c"java/lang/HeapProxy", c"java/lang/HeapProxyCalls", c"java/lang/HeapProxyUnsafe"];

/// Discards all compiled code that tests whether hooks are on. Uses a JVMTI environment of its own: with this
/// capability, the runtime's environment would get the class files of other agents in another order.
pub fn drop_code(vm: Vm, env: Env) -> Result<(), JvmtiError> {
    let jvmti = Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
    let dropped = jvmti.add_capabilities(&[Capability::RetransformClasses]).and_then(|()| {
        env.frame(CLASSES.len() as i32, |env| {
            let classes: Vec<_> = CLASSES.iter().filter_map(|name| env.find_class(name)).collect();
            jvmti.retransform(&classes)
        })
    });
    jvmti.dispose();
    dropped
}
