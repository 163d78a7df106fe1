//! Hides members that the rewriter adds to JDK classes from reflection: programs list the fields of `Thread`.

use std::ffi::CString;

use et_rewriter::hooks::thread_fields;
use jni_sys::jvalue;

use et_jvm::env::Env;

/// Makes the JDK filter these fields like some of its own. False if that fails: they are still synthetic, which tools
/// respect.
pub fn hide_fields(env: Env) -> bool {
    env.frame(32, |env| hide(env).is_some())
}

fn hide(env: Env<'_>) -> Option<()> {
    let reflection = [c"jdk/internal/reflect/Reflection", c"sun/reflect/Reflection"];
    let reflection = reflection.into_iter().find_map(|name| env.find_class(name))?;
    let thread = env.find_class(c"java/lang/Thread")?;
    let string = env.find_class(c"java/lang/String")?;
    let intern = env.method(string, c"intern", c"()Ljava/lang/String;")?;
    // JDK 11 compares names by identity; names of fields are interned.
    let name = |name| env.call_object(env.new_string(&CString::new(name).ok()?)?, intern, &[]);
    let names = env.new_object_array(string, &thread_fields().map(name).collect::<Option<Vec<_>>>()?)?;
    let name = c"registerFieldsToFilter";
    // A `Set` since JDK 12.
    let (method, names) = match env.static_method(reflection, name, c"(Ljava/lang/Class;Ljava/util/Set;)V") {
        Some(method) => {
            let set = env.find_class(c"java/util/Set")?;
            let of = env.static_method(set, c"of", c"([Ljava/lang/Object;)Ljava/util/Set;")?;
            (method, env.call_static_object(set, of, &[jvalue { l: names.raw() }])?)
        }
        None => (env.static_method(reflection, name, c"(Ljava/lang/Class;[Ljava/lang/String;)V")?, names),
    };
    env.call_static_void(reflection, method, &[jvalue { l: thread.raw() }, jvalue { l: names.raw() }]);
    Some(())
}
