//! Values of fields and elements, as JNI reads them and dumps write them: big-endian, but ids as the processor has them.
#![allow(unsafe_code, reason = "functions of JNI that are asked for nowhere else")]

use std::sync::Arc;

use et_jvm::env::{Env, Object, original_functions};
use jni_sys::{JNIEnv, jobject};

use crate::abi::{ObjectId, kind, record};
use crate::classes::{Class, Field, Shape};
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

/// Writes records of the dump out of what JNI says.
pub struct Writer<'a, 'env> {
    pub host: &'a Host,
    pub env: Env<'env>,
    /// The id under which a record names an object; 0 if it must not.
    pub name: &'a mut dyn FnMut(ObjectId) -> ObjectId,
    pub out: &'a mut Bytes,
}

impl Writer<'_, '_> {
    /// The value of a field: of a class if it is static, else of an object.
    fn field(&mut self, from: Object, field: &Field) {
        macro_rules! primitive {
            ($type:ty, $of_static:ident, $of_instance:ident) => {{
                let value = if field.is_static {
                    get!(self.env, $of_static, $type, from, field.id.0)
                } else {
                    get!(self.env, $of_instance, $type, from, field.id.0)
                };
                self.out.0.extend(value.to_be_bytes());
            }};
        }
        match field.letter() {
            b'Z' => primitive!(u8, GetStaticBooleanField, GetBooleanField),
            b'B' => primitive!(i8, GetStaticByteField, GetByteField),
            b'C' => primitive!(u16, GetStaticCharField, GetCharField),
            b'S' => primitive!(i16, GetStaticShortField, GetShortField),
            b'I' => primitive!(i32, GetStaticIntField, GetIntField),
            b'F' => primitive!(f32, GetStaticFloatField, GetFloatField),
            b'J' => primitive!(i64, GetStaticLongField, GetLongField),
            b'D' => primitive!(f64, GetStaticDoubleField, GetDoubleField),
            _ => {
                let value = if field.is_static {
                    get!(self.env, GetStaticObjectField, jobject, from, field.id.0)
                } else {
                    get!(self.env, GetObjectField, jobject, from, field.id.0)
                };
                // SAFETY: a local reference made for this thread.
                self.reference(unsafe { Object::new(value) });
            }
        }
    }

    /// The id of an object; deletes the reference.
    fn reference(&mut self, object: Option<Object>) {
        let id = object.map_or(0, |object| {
            let id = ids::of(self.host, self.env, object);
            self.env.delete_local(object);
            (self.name)(id)
        });
        self.out.pointer(id);
    }

    /// The record of a class.
    pub fn class(&mut self, mirror: Object, class: &Class, size: u32, primitives: bool) {
        self.out.byte(record::CLASS_DUMP);
        self.out.pointer(class.id);
        self.out.pointer(class.super_class);
        self.reference(self.host.jvmti.class_loader(self.env, mirror).ok().flatten());
        // Signers, protection domain, and two that are reserved.
        for _ in 0..4 {
            self.out.pointer(0);
        }
        self.out.u4(size);
        for interface in &class.interfaces {
            self.out.pointer(*interface);
        }
        self.out.u2(0);
        for field in class.fields.iter().filter(|field| field.is_static) {
            if primitives || is_reference(field.letter()) {
                self.field(mirror, field);
            }
        }
    }

    /// The record of an object that is not a class. `chain` has its class first, then the superclasses.
    pub fn object(&mut self, object: Object, id: ObjectId, chain: &[Arc<Class>]) {
        let Some(class) = chain.first() else { return };
        match class.shape {
            Shape::Instance => {
                self.out.byte(record::INSTANCE_DUMP);
                self.out.pointer(id);
                self.out.pointer(class.id);
                let length = self.out.0.len();
                self.out.u4(0);
                for field in chain.iter().flat_map(|class| &class.fields).filter(|field| !field.is_static) {
                    self.field(object, field);
                }
                let bytes = (self.out.0.len() - length - size_of::<u32>()) as u32;
                self.out.0[length..length + size_of::<u32>()].copy_from_slice(&bytes.to_be_bytes());
            }
            Shape::Objects(element) => {
                let length = self.env.array_length(object);
                self.out.byte(record::OBJ_ARRAY_DUMP);
                self.out.pointer(id);
                self.out.u4(length as u32);
                self.out.pointer(element);
                for index in 0..length {
                    self.reference(self.env.array_element(object, index));
                }
            }
            Shape::Primitives(letter) => {
                let length = self.env.array_length(object);
                self.out.byte(record::PRIM_ARRAY_DUMP);
                self.out.pointer(id);
                self.out.u4(length as u32);
                self.out.byte(kind::of_primitive(letter).unwrap_or(0) as u8);
                self.out.0.extend(elements(self.env, object, length.max(0) as usize, letter));
            }
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
