//! Values of fields and elements, as JNI reads them and dumps write them: big-endian, but ids as the processor has them.
#![allow(unsafe_code, reason = "functions of JNI that are asked for nowhere else")]

use et_jvm::env::{Env, FieldId, Object, original_functions};
use jni_sys::{JNIEnv, jobject};

use crate::abi::{ObjectId, kind, record};
use crate::classes::{Class, Shape};
use crate::host::Host;
use crate::ids;
use crate::layout::{bytes_of, is_reference};

/// A growing record.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn u2(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn u4(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn pointer(&mut self, value: usize) {
        self.0.extend(value.to_ne_bytes());
    }
}

/// Turns elements as the processor has them into big-endian ones.
pub fn swap(elements: &mut [u8], letter: u8) {
    for element in elements.chunks_exact_mut(bytes_of(letter)) {
        element.reverse();
    }
}

macro_rules! get {
    ($env:expr, $function:ident, $type:ty, $from:expr, $field:expr) => {{
        type Function = unsafe extern "system" fn(*mut JNIEnv, jobject, jni_sys::jfieldID) -> $type;
        let raw = $env.raw();
        // SAFETY: the current thread's environment, a class or an object, and a field of it; `boolean` is a byte in C.
        unsafe {
            let function: Function = std::mem::transmute(original_functions(raw).$function as *const ());
            function(raw, $from.raw(), $field)
        }
    }};
}

/// The value of a field: of a class if it is static, else of an object.
pub fn field(host: &Host, env: Env, from: Object, id: FieldId, is_static: bool, letter: u8, out: &mut Bytes) {
    macro_rules! primitive {
        ($type:ty, $of_static:ident, $of_instance:ident) => {{
            let value = if is_static {
                get!(env, $of_static, $type, from, id.0)
            } else {
                get!(env, $of_instance, $type, from, id.0)
            };
            out.0.extend(value.to_be_bytes());
        }};
    }
    match letter {
        b'Z' => primitive!(u8, GetStaticBooleanField, GetBooleanField),
        b'B' => primitive!(i8, GetStaticByteField, GetByteField),
        b'C' => primitive!(u16, GetStaticCharField, GetCharField),
        b'S' => primitive!(i16, GetStaticShortField, GetShortField),
        b'I' => primitive!(i32, GetStaticIntField, GetIntField),
        b'F' => primitive!(f32, GetStaticFloatField, GetFloatField),
        b'J' => primitive!(i64, GetStaticLongField, GetLongField),
        b'D' => primitive!(f64, GetStaticDoubleField, GetDoubleField),
        _ => {
            let value = if is_static {
                get!(env, GetStaticObjectField, jobject, from, id.0)
            } else {
                get!(env, GetObjectField, jobject, from, id.0)
            };
            // SAFETY: a local reference made for this thread.
            out.pointer(reference(host, env, unsafe { Object::new(value) }));
        }
    }
}

/// Id of an object; deletes the reference.
pub fn reference(host: &Host, env: Env, object: Option<Object>) -> ObjectId {
    let Some(object) = object else { return 0 };
    let id = ids::of(host, env, object);
    env.delete_local(object);
    id
}

/// The dump record of a class.
pub fn class_record(
    host: &Host,
    env: Env,
    mirror: Object,
    class: &Class,
    size: u32,
    primitives: bool,
    out: &mut Bytes,
) {
    out.byte(record::CLASS_DUMP);
    out.pointer(class.id);
    out.pointer(class.super_class);
    out.pointer(reference(host, env, host.jvmti.class_loader(env, mirror).ok().flatten()));
    // Signers, protection domain, and two that are reserved.
    for _ in 0..4 {
        out.pointer(0);
    }
    out.u4(size);
    for interface in &class.interfaces {
        out.pointer(*interface);
    }
    out.u2(0);
    for one in class.fields.iter().filter(|field| field.is_static) {
        let letter = one.signature.as_bytes().first().copied().unwrap_or(b'L');
        if primitives || is_reference(letter) {
            field(host, env, mirror, one.id, true, letter, out);
        }
    }
}

/// The elements of an array of primitives.
fn elements(env: Env, array: Object, length: usize, letter: u8) -> Vec<u8> {
    type Region = unsafe extern "system" fn(*mut JNIEnv, jobject, i32, i32, *mut u8);
    let raw = env.raw();
    // SAFETY: the current thread's environment.
    let table = unsafe { original_functions(raw) };
    let function = match letter {
        b'Z' => table.GetBooleanArrayRegion as *const (),
        b'B' => table.GetByteArrayRegion as *const (),
        b'C' => table.GetCharArrayRegion as *const (),
        b'S' => table.GetShortArrayRegion as *const (),
        b'I' => table.GetIntArrayRegion as *const (),
        b'F' => table.GetFloatArrayRegion as *const (),
        b'J' => table.GetLongArrayRegion as *const (),
        _ => table.GetDoubleArrayRegion as *const (),
    };
    let mut bytes = vec![0; length * bytes_of(letter)];
    // SAFETY: all these functions have the same signature; the array has this many elements, and there is room for
    // them.
    unsafe {
        let function = std::mem::transmute::<*const (), Region>(function);
        function(raw, array.raw(), 0, length as i32, bytes.as_mut_ptr());
    }
    swap(&mut bytes, letter);
    bytes
}

/// The record of an object that is not a class. `chain` has its class first, then the superclasses.
pub fn object_record(
    host: &Host,
    env: Env,
    object: Object,
    id: ObjectId,
    chain: &[std::sync::Arc<Class>],
    out: &mut Bytes,
) {
    let Some(class) = chain.first() else { return };
    match class.shape {
        Shape::Instance => {
            let mut values = Bytes::default();
            for one in chain.iter().flat_map(|class| &class.fields).filter(|field| !field.is_static) {
                let letter = one.signature.as_bytes().first().copied().unwrap_or(b'L');
                field(host, env, object, one.id, false, letter, &mut values);
            }
            out.byte(record::INSTANCE_DUMP);
            out.pointer(id);
            out.pointer(class.id);
            out.u4(values.0.len() as u32);
            out.0.extend(values.0);
        }
        Shape::Objects(element) => {
            let length = env.array_length(object);
            out.byte(record::OBJ_ARRAY_DUMP);
            out.pointer(id);
            out.u4(length as u32);
            out.pointer(element);
            for index in 0..length {
                out.pointer(reference(host, env, env.array_element(object, index)));
            }
        }
        Shape::Primitives(letter) => {
            let length = env.array_length(object);
            out.byte(record::PRIM_ARRAY_DUMP);
            out.pointer(id);
            out.u4(length as u32);
            out.byte(kind::of_primitive(letter).unwrap_or(0) as u8);
            out.0.extend(elements(env, object, length.max(0) as usize, letter));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_turned() {
        let mut ints = [1, 2, 3, 4, 5, 6, 7, 8];
        swap(&mut ints, b'I');
        assert_eq!(ints, [4, 3, 2, 1, 8, 7, 6, 5]);
        swap(&mut ints, b'B');
        assert_eq!(ints, [4, 3, 2, 1, 8, 7, 6, 5]);
    }
}
