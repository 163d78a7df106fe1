//! Looks up the members of the Java half that this library uses. All are looked up before tracing begins: if one were
//! missing, hooks would read a field that was never set, or fail at their first event.

use std::ffi::CStr;
use std::fmt::{self, Display, Formatter};

use et_jvm::env::{Env, Field, Global, Object, StaticField, StaticMethod};
use thiserror::Error;

/// Why the hooks cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProxyError {
    /// There is no HeapProxy, or `Thread` lacks its fields.
    #[error("this JDK is not instrumented")]
    NotInstrumented,
    /// The Java half is from another version.
    #[error("{0} is missing")]
    Missing(Member),
    /// The native methods of HeapProxy do not match this library.
    #[error("a native method of java.lang.HeapProxy is missing in libet_runtime.so")]
    Natives,
    /// The VM has no memory for a reference.
    #[error("no memory for references to classes")]
    NoMemory,
}

/// A class of the Java half, or a member of one.
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    class: &'static CStr,
    /// Name and descriptor of a field or method; `None` for the class itself.
    member: Option<(&'static CStr, &'static CStr)>,
}

impl Display for Member {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let class = self.class.to_string_lossy().replace('/', ".");
        match self.member.map(|(name, descriptor)| (name.to_string_lossy(), descriptor.to_string_lossy())) {
            None => write!(f, "class {class}"),
            Some((name, descriptor)) if descriptor.starts_with('(') => write!(f, "method {class}.{name}{descriptor}"),
            Some((name, descriptor)) => write!(f, "field {class}.{name} of type {descriptor}"),
        }
    }
}

/// A class of the Java half.
#[derive(Clone, Copy)]
pub struct Class<'a> {
    env: Env<'a>,
    name: &'static CStr,
    /// The class itself.
    pub object: Object<'a>,
}

impl<'a> Class<'a> {
    /// The class with this name (JVMS §4.2.1).
    pub fn find(env: Env<'a>, name: &'static CStr) -> Result<Self, ProxyError> {
        let object = env.find_class(name).ok_or(ProxyError::Missing(Member { class: name, member: None }))?;
        Ok(Self { env, name, object })
    }

    /// A reference that outlives the callback.
    pub fn global(self) -> Result<Global, ProxyError> {
        self.env.global(self.object).ok_or(ProxyError::NoMemory)
    }

    /// An instance field.
    pub fn field(self, name: &'static CStr, descriptor: &'static CStr) -> Result<Field, ProxyError> {
        self.env.field(self.object, name, descriptor).ok_or_else(|| self.missing(name, descriptor))
    }

    /// A static field.
    pub fn static_field(self, name: &'static CStr, descriptor: &'static CStr) -> Result<StaticField, ProxyError> {
        self.env.static_field(self.object, name, descriptor).ok_or_else(|| self.missing(name, descriptor))
    }

    /// A static method.
    pub fn static_method(self, name: &'static CStr, descriptor: &'static CStr) -> Result<StaticMethod, ProxyError> {
        self.env.static_method(self.object, name, descriptor).ok_or_else(|| self.missing(name, descriptor))
    }

    fn missing(self, name: &'static CStr, descriptor: &'static CStr) -> ProxyError {
        ProxyError::Missing(Member { class: self.name, member: Some((name, descriptor)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_as_in_java() {
        let missing = |member| ProxyError::Missing(Member { class: c"java/lang/HeapProxy", member }).to_string();
        assert_eq!(missing(None), "class java.lang.HeapProxy is missing");
        assert_eq!(missing(Some((c"on", c"Z"))), "field java.lang.HeapProxy.on of type Z is missing");
        assert_eq!(missing(Some((c"link", c"()I"))), "method java.lang.HeapProxy.link()I is missing");
    }
}
