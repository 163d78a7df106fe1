//! Instance sizes and array layouts: queried, or compared with what the VM reports, but never guessed.

use std::collections::BTreeMap;
use std::ffi::CStr;

use et_format::ArrayLayout;
use jni_sys::jvalue;

use crate::proxy::Proxy;
use et_jvm::env::{Env, Object};
use et_jvm::hotspot::{HotSpot, Layout};
use et_jvm::jvmti::Jvmti;
use et_jvm::memory;

const ARRAYS: [(&str, &CStr); 9] = [
    ("Z", c"[Z"),
    ("B", c"[B"),
    ("C", c"[C"),
    ("S", c"[S"),
    ("I", c"[I"),
    ("J", c"[J"),
    ("F", c"[F"),
    ("D", c"[D"),
    ("L", c"[Ljava/lang/Object;"),
];

/// Tells HeapProxy where instance sizes are, after a check that the sizes found there equal those that JVMTI reports
/// for objects of some classes. False if they differ: then HeapProxy must not read them.
pub fn check_instance_sizes(env: Env, jvmti: Jvmti, hotspot: &HotSpot, proxy: &Proxy, thread: Object) -> bool {
    let Some(layout) = hotspot.layout else { return false };
    let Some(string) = env.new_string(c"x") else { return false };
    let samples = [(c"java/lang/String", string), (c"java/lang/Thread", thread)];
    let agrees = samples.into_iter().all(|(name, sample)| {
        let size = env.find_class(name).and_then(|class| size_in(env, jvmti, proxy, layout, class));
        size.is_some() && size.map(u64::from) == jvmti.object_size(sample).ok()
    });
    if agrees {
        proxy.set_layout(env, layout);
    }
    agrees
}

/// The instance size of a class read from there; `None` if the address is not mapped.
fn size_in(env: Env, jvmti: Jvmti, proxy: &Proxy, layout: Layout, class: Object) -> Option<u32> {
    let offset = i64::try_from(layout.klass_offset).ok().filter(|offset| offset % 8 == 0)?;
    if layout.klass_offset + 8 > jvmti.object_size(class).ok()? {
        return None;
    }
    let klass = proxy.word(env, class, offset);
    let helper = i32::from_ne_bytes(memory::copy(klass.checked_add(layout.layout_helper_offset)?)?);
    u32::try_from(helper).ok().map(|helper| helper & !7)
}

/// The layout of arrays, from native methods of `Unsafe`, which return `int` in all versions, unlike its public
/// methods. `None` without such an Unsafe.
pub fn arrays(env: Env, jvmti: Jvmti) -> Option<ArrayLayout> {
    let modern = (c"jdk/internal/misc/Unsafe", c"Ljdk/internal/misc/Unsafe;", c"arrayBaseOffset0", c"arrayIndexScale0");
    let jdk8 = (c"sun/misc/Unsafe", c"Lsun/misc/Unsafe;", c"arrayBaseOffset", c"arrayIndexScale");
    let (class, (_, descriptor, base_name, scale_name)) = match env.find_class(modern.0) {
        Some(class) => (class, modern),
        None => (env.find_class(jdk8.0)?, jdk8),
    };
    let the_unsafe = env.get_static_object(class, env.static_field(class, c"theUnsafe", descriptor)?)?;
    let base = env.method(class, base_name, c"(Ljava/lang/Class;)I")?;
    let scale = env.method(class, scale_name, c"(Ljava/lang/Class;)I")?;
    let (mut base_offset, mut index_scale) = (BTreeMap::new(), BTreeMap::new());
    for (letter, name) in ARRAYS {
        let argument = [jvalue { l: env.find_class(name)?.raw() }];
        base_offset.insert(letter.to_owned(), env.call_int(the_unsafe, base, &argument)? as u32);
        index_scale.insert(letter.to_owned(), env.call_int(the_unsafe, scale, &argument)? as u32);
    }
    Some(ArrayLayout { base_offset, index_scale, object_alignment: alignment(env, jvmti)? })
}

/// Alignment of object sizes in bytes: the first step by which the size of a growing array increases. JVMs allow 8 to
/// 256.
fn alignment(env: Env, jvmti: Jvmti) -> Option<u32> {
    env.frame(600, |env| {
        let size = |length| env.new_byte_array(length).and_then(|array| jvmti.object_size(array).ok());
        let smallest = size(0)?;
        let first_step = (1..=256).map_while(size).find(|size| *size != smallest)?;
        let next = size((first_step - smallest) as i32 + 256)?;
        let step = first_step - smallest;
        // Both steps are multiples of the alignment, which exposes a wrong result.
        (next % step == 0).then_some(step as u32)
    })
}
