//! JNI: the environment of the thread that a callback runs on.
#![allow(unsafe_code, reason = "calls through JNI's function table")]

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use std::sync::OnceLock;

use jni_sys::{
    _jobject, JNI_OK, JNI_VERSION_1_6, JNIEnv, JNINativeInterface__1_6, JavaVM, jfieldID, jint, jmethodID, jobject,
    jvalue,
};

/// An object as JNI hands it out. Good for as long as the callback or frame that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    raw: NonNull<_jobject>,
    life: PhantomData<&'a ()>,
}

impl Object<'_> {
    /// Wraps a reference; `None` for null.
    ///
    /// # Safety
    /// `raw` is null or a JNI reference that is valid for the lifetime chosen by the caller.
    pub unsafe fn new(raw: jobject) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, life: PhantomData })
    }

    /// The raw reference, for calls into the JVM.
    pub fn raw(self) -> jobject {
        self.raw.as_ptr()
    }
}

/// A reference that keeps its object alive and is good on every thread, for as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub struct Global(NonNull<_jobject>);

// SAFETY: JNI: global references may be used on any thread.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

impl Global {
    /// Borrows the reference as an object.
    pub fn get(&self) -> Object<'_> {
        Object { raw: self.0, life: PhantomData }
    }

    /// The reference itself, as a number.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($raw:ty)),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $raw);
        // SAFETY: ids of fields and methods are plain handles of the VM, good on any thread while the class lives.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    )*};
}

ids! {
    /// Id of an instance field.
    Field(jfieldID),
    /// Id of a static field.
    StaticField(jfieldID),
    /// Id of an instance method.
    Method(jmethodID),
    /// Id of a static method.
    StaticMethod(jmethodID),
    /// A field of whatever kind, as JVMTI names it.
    FieldId(jfieldID),
    /// A method of whatever kind, as JVMTI names it.
    MethodId(jmethodID),
}

/// The JNI environment of the current thread.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    raw: NonNull<JNIEnv>,
    life: PhantomData<&'a ()>,
}

/// The VM, from which threads get their environments.
#[derive(Clone, Copy, Debug)]
pub struct Vm(NonNull<JavaVM>);

// SAFETY: the invocation interface may be used on any thread.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

impl Vm {
    /// # Safety
    /// `raw` is the VM that `Agent_OnLoad` was called with.
    pub unsafe fn new(raw: *mut JavaVM) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// The raw pointer, for C functions.
    pub fn raw(self) -> *mut JavaVM {
        self.0.as_ptr()
    }

    /// An interface of the VM by version; null if it has none.
    pub fn interface(self, version: jint) -> *mut c_void {
        let mut found = std::ptr::null_mut();
        // SAFETY: GetEnv of a live VM with a place for its answer.
        let code = unsafe { ((**self.0.as_ptr()).v1_2.GetEnv)(self.0.as_ptr(), &mut found, version) };
        if code == JNI_OK { found } else { std::ptr::null_mut() }
    }

    /// The environment of the current thread, none if the VM does not know the thread.
    pub fn env<'a>(self) -> Option<Env<'a>> {
        // SAFETY: what GetEnv returns for a JNI version is the thread's JNIEnv.
        unsafe { Env::new(self.interface(JNI_VERSION_1_6).cast()) }
    }
}

/// The functions of JNI 1.6, which are all that is used.
pub type JniFunctions = JNINativeInterface__1_6;

/// The function table before our changes.
static ORIGINAL: OnceLock<Original> = OnceLock::new();

struct Original(JniFunctions);

// SAFETY: functions that may be called on every thread, and reserved entries that are never read.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

/// Keeps the table for [`original_functions`]. Only the first time counts.
pub fn remember_original_functions(functions: JniFunctions) {
    let _ = ORIGINAL.set(Original(functions));
}

/// The function table without our changes.
///
/// # Safety
/// `env` is a valid JNI environment.
pub unsafe fn original_functions(env: *mut JNIEnv) -> &'static JniFunctions {
    match ORIGINAL.get() {
        Some(Original(functions)) => functions,
        // SAFETY: the VM's table, which stays where it is.
        None => unsafe { &(**env).v1_6 },
    }
}

macro_rules! jni {
    ($env:expr, $name:ident $(, $argument:expr)*) => {
        // SAFETY: the table is the JVM's, `Env` is only made of the current thread's environment, and objects and
        // ids come from the JVM and are alive (their types say so).
        unsafe { (original_functions($env.raw.as_ptr()).$name)($env.raw.as_ptr() $(, $argument)*) }
    };
}

/// As above, for functions that answer yes or no. `jni-sys` says `bool`, which must be 0 or 1; the answer comes from C, possibly
/// from a function that another agent has put into the table.
macro_rules! jni_flag {
    ($env:expr, $name:ident($($type:ty),*) $(, $argument:expr)*) => {
        // SAFETY: as above; a `jboolean` is a byte in C.
        unsafe {
            let function = std::mem::transmute::<
                unsafe extern "system" fn(*mut JNIEnv $(, $type)*) -> bool,
                unsafe extern "system" fn(*mut JNIEnv $(, $type)*) -> u8,
            >(original_functions($env.raw.as_ptr()).$name);
            function($env.raw.as_ptr() $(, $argument)*) != 0
        }
    };
}

impl<'a> Env<'a> {
    /// # Safety
    /// `raw` is null or the environment of the current thread, and is used only inside the callback that received it.
    pub unsafe fn new(raw: *mut JNIEnv) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, life: PhantomData })
    }

    /// For functions of the VM that take it.
    pub fn raw(self) -> *mut JNIEnv {
        self.raw.as_ptr()
    }

    fn object(self, raw: jobject) -> Option<Object<'a>> {
        // SAFETY: `raw` is a local reference that the JVM has just made for this thread.
        unsafe { Object::new(raw) }
    }

    /// Ensures room for this many local references.
    pub fn ensure_local_capacity(self, capacity: i32) {
        jni!(self, EnsureLocalCapacity, capacity);
    }

    /// Drops a pending exception. True if there was one.
    pub fn clear_exception(self) -> bool {
        let pending = self.has_exception();
        if pending {
            jni!(self, ExceptionClear);
        }
        pending
    }

    /// Whether an exception is pending.
    pub fn has_exception(self) -> bool {
        jni_flag!(self, ExceptionCheck())
    }

    /// Runs `body` without the exception that may be pending, which is thrown again afterwards.
    pub fn without_exception(self, body: impl FnOnce(Env<'_>)) {
        if !self.has_exception() {
            return body(self);
        }
        let exception = jni!(self, ExceptionOccurred);
        jni!(self, ExceptionClear);
        body(self);
        self.clear_exception();
        jni!(self, Throw, exception);
        jni!(self, DeleteLocalRef, exception);
    }

    /// Drops the pending exception if it is such a one. True if it was.
    pub fn drop_exception_if(self, is_it: impl FnOnce(Object<'a>) -> bool) -> bool {
        let Some(exception) = self.object(jni!(self, ExceptionOccurred)) else { return false };
        jni!(self, ExceptionClear);
        let dropped = is_it(exception);
        if !dropped {
            jni!(self, Throw, exception.raw());
        }
        self.delete_local(exception);
        dropped
    }

    fn found<T>(self, raw: *mut T) -> Option<*mut T> {
        if self.clear_exception() || raw.is_null() { None } else { Some(raw) }
    }

    /// Finds a class of the boot loader; `None` if there is none.
    pub fn find_class(self, name: &CStr) -> Option<Object<'a>> {
        self.found(jni!(self, FindClass, name.as_ptr())).and_then(|raw| self.object(raw))
    }

    /// Id of an instance field; `None` if there is no such field.
    pub fn field(self, class: Object, name: &CStr, descriptor: &CStr) -> Option<Field> {
        self.found(jni!(self, GetFieldID, class.raw(), name.as_ptr(), descriptor.as_ptr())).map(Field)
    }

    /// Id of a static field; `None` if there is no such field.
    pub fn static_field(self, class: Object, name: &CStr, descriptor: &CStr) -> Option<StaticField> {
        self.found(jni!(self, GetStaticFieldID, class.raw(), name.as_ptr(), descriptor.as_ptr())).map(StaticField)
    }

    /// Id of an instance method; `None` if there is no such method.
    pub fn method(self, class: Object, name: &CStr, descriptor: &CStr) -> Option<Method> {
        self.found(jni!(self, GetMethodID, class.raw(), name.as_ptr(), descriptor.as_ptr())).map(Method)
    }

    /// Id of a static method; `None` if there is no such method.
    pub fn static_method(self, class: Object, name: &CStr, descriptor: &CStr) -> Option<StaticMethod> {
        self.found(jni!(self, GetStaticMethodID, class.raw(), name.as_ptr(), descriptor.as_ptr())).map(StaticMethod)
    }

    /// The value of a reference field.
    pub fn get_object(self, object: Object, field: Field) -> Option<Object<'a>> {
        self.object(jni!(self, GetObjectField, object.raw(), field.0))
    }

    /// The value of a `long` field.
    pub fn get_long(self, object: Object, field: Field) -> i64 {
        jni!(self, GetLongField, object.raw(), field.0)
    }

    /// Sets an instance field of type `long`.
    pub fn set_long(self, object: Object, field: Field, value: i64) {
        jni!(self, SetLongField, object.raw(), field.0, value);
    }

    /// The value of a static reference field.
    pub fn get_static_object(self, class: Object, field: StaticField) -> Option<Object<'a>> {
        self.object(jni!(self, GetStaticObjectField, class.raw(), field.0))
    }

    /// Sets a static `boolean` field.
    pub fn set_static_boolean(self, class: Object, field: StaticField, value: bool) {
        jni!(self, SetStaticBooleanField, class.raw(), field.0, value);
    }

    /// Sets a static field of type `int`.
    pub fn set_static_int(self, class: Object, field: StaticField, value: i32) {
        jni!(self, SetStaticIntField, class.raw(), field.0, value);
    }

    /// Sets a static field of type `long`.
    pub fn set_static_long(self, class: Object, field: StaticField, value: i64) {
        jni!(self, SetStaticLongField, class.raw(), field.0, value);
    }

    /// Sets a static reference field.
    pub fn set_static_object(self, class: Object, field: StaticField, value: Object) {
        jni!(self, SetStaticObjectField, class.raw(), field.0, value.raw());
    }

    /// Calls a static method that returns an `int`; 0 if it throws.
    pub fn call_static_int(self, class: Object, method: StaticMethod, arguments: &[jvalue]) -> i32 {
        let value = jni!(self, CallStaticIntMethodA, class.raw(), method.0, arguments.as_ptr());
        if self.clear_exception() { 0 } else { value }
    }

    /// Calls a static method that returns a `long`; 0 if it throws.
    pub fn call_static_long(self, class: Object, method: StaticMethod, arguments: &[jvalue]) -> i64 {
        let value = jni!(self, CallStaticLongMethodA, class.raw(), method.0, arguments.as_ptr());
        if self.clear_exception() { 0 } else { value }
    }

    /// Calls a static method that returns nothing.
    pub fn call_static_void(self, class: Object, method: StaticMethod, arguments: &[jvalue]) {
        jni!(self, CallStaticVoidMethodA, class.raw(), method.0, arguments.as_ptr());
        self.clear_exception();
    }

    /// Calls a static method that returns an object; none if it throws.
    pub fn call_static_object(self, class: Object, method: StaticMethod, arguments: &[jvalue]) -> Option<Object<'a>> {
        let raw = jni!(self, CallStaticObjectMethodA, class.raw(), method.0, arguments.as_ptr());
        self.found(raw).and_then(|raw| self.object(raw))
    }

    /// Like [`call_static_object`](Self::call_static_object), but distinguishes null from an exception, which is an
    /// error.
    #[allow(clippy::result_unit_err, reason = "the exception is dropped, and there is no more to say")]
    pub fn try_call_static_object(
        self,
        class: Object,
        method: StaticMethod,
        arguments: &[jvalue],
    ) -> Result<Option<Object<'a>>, ()> {
        let raw = jni!(self, CallStaticObjectMethodA, class.raw(), method.0, arguments.as_ptr());
        if self.clear_exception() { Err(()) } else { Ok(self.object(raw)) }
    }

    /// Calls a method without a result. Fails with the exception's `toString` if that can be determined.
    pub fn try_call_void(self, object: Object, method: Method, arguments: &[jvalue]) -> Result<(), Option<String>> {
        jni!(self, CallVoidMethodA, object.raw(), method.0, arguments.as_ptr());
        let Some(exception) = self.object(jni!(self, ExceptionOccurred)) else { return Ok(()) };
        jni!(self, ExceptionClear);
        let text = || {
            let class = self.class_of(exception)?;
            let method = self.method(class, c"toString", c"()Ljava/lang/String;")?;
            self.text(self.call_object(exception, method, &[])?)
        };
        Err(text())
    }

    /// Calls a method that returns an object; none if it throws.
    pub fn call_object(self, object: Object, method: Method, arguments: &[jvalue]) -> Option<Object<'a>> {
        let raw = jni!(self, CallObjectMethodA, object.raw(), method.0, arguments.as_ptr());
        self.found(raw).and_then(|raw| self.object(raw))
    }

    /// Calls a method that returns an `int`; none if it throws.
    pub fn call_int(self, object: Object, method: Method, arguments: &[jvalue]) -> Option<i32> {
        let value = jni!(self, CallIntMethodA, object.raw(), method.0, arguments.as_ptr());
        if self.clear_exception() { None } else { Some(value) }
    }

    /// Calls a method that returns a `long`; none if it throws.
    pub fn call_long(self, object: Object, method: Method, arguments: &[jvalue]) -> Option<i64> {
        let value = jni!(self, CallLongMethodA, object.raw(), method.0, arguments.as_ptr());
        if self.clear_exception() { None } else { Some(value) }
    }

    /// A field as an object; may load classes.
    pub fn reflected_field(self, class: Object, field: FieldId, is_static: bool) -> Option<Object<'a>> {
        self.found(jni!(self, ToReflectedField, class.raw(), field.0, is_static)).and_then(|raw| self.object(raw))
    }

    /// Makes an object; none if its constructor throws.
    pub fn new_object(self, class: Object, constructor: Method, arguments: &[jvalue]) -> Option<Object<'a>> {
        self.found(jni!(self, NewObjectA, class.raw(), constructor.0, arguments.as_ptr()))
            .and_then(|raw| self.object(raw))
    }

    /// Makes a string of ASCII text.
    pub fn new_string(self, text: &CStr) -> Option<Object<'a>> {
        self.found(jni!(self, NewStringUTF, text.as_ptr())).and_then(|raw| self.object(raw))
    }

    /// Creates a string from any text.
    pub fn new_text(self, text: &str) -> Option<Object<'a>> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let length = i32::try_from(units.len()).ok()?;
        self.found(jni!(self, NewString, units.as_ptr(), length)).and_then(|raw| self.object(raw))
    }

    /// Content of a string in JNI's modified UTF-8.
    pub fn text(self, string: Object) -> Option<String> {
        let (letters, bytes) =
            (jni!(self, GetStringLength, string.raw()), jni!(self, GetStringUTFLength, string.raw()));
        // JNI writes a terminating zero.
        let mut text = vec![0u8; usize::try_from(bytes).ok()? + 1];
        jni!(self, GetStringUTFRegion, string.raw(), 0, letters, text.as_mut_ptr().cast());
        text.pop();
        if self.clear_exception() { None } else { Some(String::from_utf8_lossy(&text).into_owned()) }
    }

    /// Allocates a `byte[]`.
    pub fn new_byte_array(self, length: i32) -> Option<Object<'a>> {
        self.found(jni!(self, NewByteArray, length)).and_then(|raw| self.object(raw))
    }

    /// Allocates an `int[]`.
    pub fn new_int_array(self, length: i32) -> Option<Object<'a>> {
        self.found(jni!(self, NewIntArray, length)).and_then(|raw| self.object(raw))
    }

    /// Allocates an array of objects.
    pub fn new_object_array(self, class: Object, elements: &[Object]) -> Option<Object<'a>> {
        let array = self.found(jni!(self, NewObjectArray, elements.len() as i32, class.raw(), std::ptr::null_mut()))?;
        for (index, element) in elements.iter().enumerate() {
            jni!(self, SetObjectArrayElement, array, index as i32, element.raw());
        }
        self.object(array)
    }

    /// An element of an array of objects; none for null.
    pub fn array_element(self, array: Object, index: i32) -> Option<Object<'a>> {
        self.found(jni!(self, GetObjectArrayElement, array.raw(), index)).and_then(|raw| self.object(raw))
    }

    /// Sets an element of an array of objects to null.
    pub fn clear_array_element(self, array: Object, index: i32) {
        jni!(self, SetObjectArrayElement, array.raw(), index, std::ptr::null_mut());
    }

    pub fn class_of(self, object: Object) -> Option<Object<'a>> {
        self.object(jni!(self, GetObjectClass, object.raw()))
    }

    /// Allocates a `byte[]` with this content.
    pub fn byte_array_of(self, bytes: &[u8]) -> Option<Object<'a>> {
        let length = i32::try_from(bytes.len()).ok()?;
        let array = self.new_byte_array(length)?;
        jni!(self, SetByteArrayRegion, array.raw(), 0, length, bytes.as_ptr().cast());
        Some(array)
    }

    /// Copies a part of a `byte[]`; `None` if it is out of range.
    pub fn bytes_of(self, array: Object, start: i32, length: i32) -> Option<Vec<u8>> {
        let mut bytes = vec![0u8; usize::try_from(length).ok()?];
        jni!(self, GetByteArrayRegion, array.raw(), start, length, bytes.as_mut_ptr().cast());
        if self.clear_exception() { None } else { Some(bytes) }
    }

    /// Copies a part of a direct buffer; `None` for other buffers, or if it is out of range.
    pub fn bytes_of_buffer(self, buffer: Object, start: i32, length: i32) -> Option<Vec<u8>> {
        let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        let address = jni!(self, GetDirectBufferAddress, buffer.raw()).cast::<u8>();
        let capacity = usize::try_from(jni!(self, GetDirectBufferCapacity, buffer.raw())).ok()?;
        if address.is_null() || start.checked_add(length)? > capacity {
            return None;
        }
        let mut bytes = vec![0u8; length];
        // SAFETY: within the buffer, which its reference keeps alive.
        unsafe { std::ptr::copy_nonoverlapping(address.add(start), bytes.as_mut_ptr(), length) };
        Some(bytes)
    }

    pub fn array_length(self, array: Object) -> i32 {
        jni!(self, GetArrayLength, array.raw())
    }

    /// The value of a static `int` field.
    pub fn get_static_int(self, class: Object, field: StaticField) -> i32 {
        jni!(self, GetStaticIntField, class.raw(), field.0)
    }

    /// The superclass; none for `Object`, interfaces and primitive types.
    pub fn superclass(self, class: Object) -> Option<Object<'a>> {
        self.object(jni!(self, GetSuperclass, class.raw()))
    }

    /// Whether the object is of that class or a subclass.
    pub fn is_instance(self, object: Object, class: Object) -> bool {
        jni_flag!(self, IsInstanceOf(jobject, jobject), object.raw(), class.raw())
    }

    /// Whether both are the same object.
    pub fn is_same(self, one: Object, other: Object) -> bool {
        jni_flag!(self, IsSameObject(jobject, jobject), one.raw(), other.raw())
    }

    /// Frees a local reference before its frame ends.
    pub fn delete_local(self, object: Object) {
        jni!(self, DeleteLocalRef, object.raw());
    }

    /// Deletes a reference; neither it nor copies may be used afterwards.
    pub fn delete_global(self, global: Global) {
        jni!(self, DeleteGlobalRef, global.get().raw());
    }

    /// Creates a global reference.
    pub fn global(self, object: Object) -> Option<Global> {
        NonNull::new(jni!(self, NewGlobalRef, object.raw())).map(Global)
    }

    /// Runs `body` with the object's monitor held; none if the VM refuses that.
    pub fn locked<R>(self, object: Object, body: impl FnOnce() -> R) -> Option<R> {
        if jni!(self, MonitorEnter, object.raw()) != JNI_OK {
            self.clear_exception();
            return None;
        }
        let result = body();
        jni!(self, MonitorExit, object.raw());
        Some(result)
    }

    /// Runs `body` in its own frame of local references, which are deleted at its end.
    pub fn frame<R>(self, capacity: i32, body: impl FnOnce(Env<'_>) -> R) -> R {
        struct Pop<'a>(Env<'a>, bool);
        impl Drop for Pop<'_> {
            fn drop(&mut self) {
                if self.1 {
                    jni!(self.0, PopLocalFrame, std::ptr::null_mut());
                }
            }
        }
        let pushed = jni!(self, PushLocalFrame, capacity) == JNI_OK;
        if !pushed {
            self.clear_exception();
        }
        let _pop = Pop(self, pushed);
        body(Env { raw: self.raw, life: PhantomData })
    }
}
