//! Offsets of fields, which are encoded in HotSpot's field ids but available through neither JNI nor JVMTI. Asking
//! `Unsafe` requires a `Field`, and creating one may load classes, which is impossible inside a hook.
//!
//! The id of an instance field is its offset with two flags; that of a static field points to a record that contains it
//! (jfieldIDWorkaround.hpp, jniid.hpp; unchanged since 8). Both are verified with `Unsafe` before they are used.
#![allow(unsafe_code, reason = "reads a record of HotSpot's")]

use std::ffi::CStr;

use jni_sys::jvalue;

use crate::env::{Env, FieldId, Method, Object};
use crate::jvmti::{Jvmti, STATIC};

/// The id is that of an instance field.
const INSTANCE: usize = 2;
/// It has a hash of the class in its upper bits, and seven bits for the offset.
const CHECKED: usize = 1;
const CHECKED_MASK: usize = 0x7f;
const SHIFT: u32 = 2;

/// HotSpot's `JNIid`.
#[repr(C)]
struct StaticId {
    holder: *const (),
    next: *const (),
    offset: i32,
}

/// Which kinds of field ids can be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldIds {
    /// Ids of instance fields.
    instances: bool,
    /// Ids of static fields.
    statics: bool,
}

impl FieldIds {
    /// Compares what the ids of some fields say with what `Unsafe` says. Runs Java code.
    pub fn probe(env: Env, jvmti: Jvmti) -> Self {
        let Some(offsets) = Offsets::find(env) else { return Self::default() };
        let (mut instances, mut statics) = (Vec::new(), Vec::new());
        for name in [c"java/lang/Thread", c"java/lang/Class", c"java/lang/String", c"java/lang/System"] {
            let same = env.frame(8, |env| {
                let class = env.find_class(name)?;
                for field in jvmti.class_fields(class).ok()? {
                    let is_static = jvmti.field_modifiers(class, field).ok()? & STATIC != 0;
                    let there = env.frame(4, |env| offsets.of(env, class, field, is_static))?;
                    if is_static {
                        statics.push(read_static(field) == Some(there));
                    } else {
                        instances.push(read_instance(field) == Some(there));
                    }
                }
                Some(())
            });
            if same.is_none() {
                return Self::default();
            }
        }
        let all = |same: Vec<bool>| !same.is_empty() && same.into_iter().all(|same| same);
        Self { instances: all(instances), statics: all(statics) }
    }

    /// Whether all ids can be read.
    pub fn are_known(self) -> bool {
        self.instances && self.statics
    }

    /// The offset of an instance field in its object.
    pub fn instance_offset(self, field: FieldId) -> Option<i32> {
        if self.instances { read_instance(field) } else { None }
    }

    /// The offset of a static field in its class's mirror. `field` is the id of a static field.
    pub fn static_offset(self, field: FieldId) -> Option<i32> {
        if self.statics { read_static(field) } else { None }
    }
}

fn read_instance(field: FieldId) -> Option<i32> {
    let id = field.0 as usize;
    let offset = (id >> SHIFT) & if id & CHECKED != 0 { CHECKED_MASK } else { usize::MAX };
    i32::try_from(offset).ok().filter(|_| id & INSTANCE != 0)
}

fn read_static(field: FieldId) -> Option<i32> {
    let id: *const StaticId = field.0.cast_const().cast();
    if !id.is_aligned() || id.is_null() {
        return None;
    }
    // SAFETY: what the VM gives out for a static field, and is no instance field's id by its flags, points to such a
    // record, which lives as long as the class.
    Some(unsafe { (*id).offset })
}

/// The methods of `Unsafe` that return offsets.
struct Offsets<'a> {
    the_unsafe: Object<'a>,
    instance: Method,
    of_static: Method,
}

impl<'a> Offsets<'a> {
    fn find(env: Env<'a>) -> Option<Self> {
        type Names = (&'static CStr, &'static CStr, &'static CStr, &'static CStr);
        const MODERN: Names =
            (c"jdk/internal/misc/Unsafe", c"Ljdk/internal/misc/Unsafe;", c"objectFieldOffset0", c"staticFieldOffset0");
        const JDK_8: Names = (c"sun/misc/Unsafe", c"Lsun/misc/Unsafe;", c"objectFieldOffset", c"staticFieldOffset");
        let (class, (_, descriptor, instance, of_static)) = match env.find_class(MODERN.0) {
            Some(class) => (class, MODERN),
            None => (env.find_class(JDK_8.0)?, JDK_8),
        };
        let the_unsafe = env.get_static_object(class, env.static_field(class, c"theUnsafe", descriptor)?)?;
        let method = |name| env.method(class, name, c"(Ljava/lang/reflect/Field;)J");
        Some(Self { the_unsafe, instance: method(instance)?, of_static: method(of_static)? })
    }

    fn of(&self, env: Env, class: Object, field: FieldId, is_static: bool) -> Option<i32> {
        let reflected = env.reflected_field(class, field, is_static)?;
        let function = if is_static { self.of_static } else { self.instance };
        let offset = env.call_long(self.the_unsafe, function, &[jvalue { l: reflected.raw() }])?;
        i32::try_from(offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_instance_fields_hold_the_offset() {
        let read = |id: usize| read_instance(FieldId(id as _));
        assert_eq!(read(40 << 2 | INSTANCE), Some(40));
        assert_eq!(read(0x1234 << 9 | 40 << 2 | INSTANCE | CHECKED), Some(40));
        assert_eq!(read(40 << 2), None);
    }

    #[test]
    fn ids_of_static_fields_point_to_it() {
        let record = StaticId { holder: std::ptr::null(), next: std::ptr::null(), offset: 112 };
        assert_eq!(read_static(FieldId((&raw const record).cast_mut().cast())), Some(112));
        assert_eq!(read_static(FieldId(std::ptr::null_mut())), None);
        assert_eq!(read_static(FieldId(5 as _)), None);
    }

    #[test]
    fn what_was_not_proved_is_not_read() {
        let field = FieldId((40 << 2 | INSTANCE) as _);
        assert_eq!(FieldIds::default().instance_offset(field), None);
        assert_eq!(FieldIds { instances: true, statics: false }.instance_offset(field), Some(40));
    }
}
