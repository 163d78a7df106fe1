//! Code that was compiled before tracing begins.
//!
//! Hooks ask whether they are on by a plain field, and a compiler may read that once for all rounds of a loop. A loop that goes on
//! behind a late start would never tell of anything. A field that compilers must read each time would cost each hook, in runs
//! that are traced from the start as well. So the VM throws its compiled code away, once, when tracing begins late: it does when a class is
//! redefined, and the hooks' own classes are, as they are.

use std::ffi::CStr;

use et_jvm::env::{Env, Vm};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// The classes whose methods ask, and are inlined. Where an agent has had the VM keep record of what was inlined where, only code
/// that has something of theirs goes.
const CLASSES: [&CStr; 3] = [c"java/lang/HeapProxy", c"java/lang/HeapProxyCalls", c"java/lang/HeapProxyUnsafe"];

/// Has all code read again whether hooks are on. The environment is one of its own: with this capability the runtime's would be told
/// of other agents' class files in another order.
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
