//! `EXIT`: the program ends as if it had called `System.exit`.

use et_jvm::env::Env;
use jni_sys::jvalue;

/// Shutdown hooks run before this comes back, if it does.
pub fn exit(env: Env, status: u32) {
    let Some(system) = env.find_class(c"java/lang/System") else { return };
    if let Some(exit) = env.static_method(system, c"exit", c"(I)V") {
        env.call_static_void(system, exit, &[jvalue { i: status.cast_signed() }]);
    }
}
