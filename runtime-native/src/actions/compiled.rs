//! Code that was compiled before tracing begins.
//!
//! Hooks test a plain static field, and a compiler may read it once for all iterations of a loop. A loop that goes on after a late start
//! would never write events. A volatile field would cost each hook, also in runs that are traced from the start. So the VM is made to discard
//! its compiled code, once, when tracing begins late: it does so when a class is redefined, and the classes of the hooks are, with their own
//! bytes.

use std::ffi::CStr;

use et_jvm::env::{Env, Vm};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};

/// The classes whose methods test the field, and are inlined. If the VM keeps record of what was inlined where, as agents may ask for, only
/// code with methods of these classes is discarded.
const CLASSES: [&CStr; 3] = [c"java/lang/HeapProxy", c"java/lang/HeapProxyCalls", c"java/lang/HeapProxyUnsafe"];

/// Has all compiled code discarded that tests whether hooks are on. Uses a JVMTI environment of its own: with this capability the runtime's
/// would get the class files of other agents in another order.
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
