//! Where an object was made: its site or, where none is known, the method that ran, and by what means.
//!
//! Sites are instructions that allocate. Clones, strings put together, objects made by reflection and the like have none, but a method
//! ran, and which one says what made them.

use et_names::{MethodId, SiteId};
use rustc_hash::FxHashMap;

use crate::model::{ContextId, Contexts};
use crate::naming::Naming;
use crate::record::{Alloc, AllocKind};
use crate::types::{TypeId, Types};

/// Where an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MadeIn {
    /// At a site.
    Site(SiteId),
    /// In a method, at no site.
    Method(MethodId, Means),
    /// No method ran.
    Nowhere(Means),
}

/// By what an object was made that has no site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Means {
    /// `clone()`.
    Clone,
    /// String concatenation.
    Concatenation,
    /// Reflection.
    Reflection,
    /// Deserialization.
    Deserialization,
    /// A method handle.
    MethodHandle,
    /// A constant of a class.
    Constant,
    /// The stack trace of an exception.
    StackTrace,
    /// A class that was loaded.
    Loading,
    /// It was there when tracing began.
    Initial,
    /// Its creation was not seen.
    Found,
    /// The VM, native code, or code without hooks.
    Native,
}

impl Means {
    /// As it stands behind a method.
    pub fn text(self) -> &'static str {
        match self {
            Self::Clone => "by clone()",
            Self::Concatenation => "by string concatenation",
            Self::Reflection => "by reflection",
            Self::Deserialization => "by deserialization",
            Self::MethodHandle => "by a method handle",
            Self::Constant => "as a constant",
            Self::StackTrace => "by a stack trace",
            Self::Loading => "by loading a class",
            Self::Initial => "there when tracing began",
            Self::Found => "found later",
            Self::Native => "by the VM or native code",
        }
    }
}

impl MadeIn {
    /// At a site, where nothing else is known.
    pub fn of_site(site: SiteId) -> Self {
        if site.0 == 0 { Self::Nowhere(Means::Native) } else { Self::Site(site) }
    }

    /// The method that ran.
    pub fn method(self, naming: Naming<'_>) -> Option<MethodId> {
        match self {
            Self::Site(site) => naming.method_of_site(site),
            Self::Method(method, _) => Some(method),
            Self::Nowhere(_) => None,
        }
    }

    /// The site, if one is known.
    pub fn site(self) -> Option<SiteId> {
        match self {
            Self::Site(site) => Some(site),
            Self::Method(..) | Self::Nowhere(_) => None,
        }
    }

    /// `java.util.HashMap.newNode:1901`; `shop.Page.clone, by clone()`; `(by the VM or native code)`.
    pub fn text(self, naming: Naming<'_>) -> String {
        match self {
            Self::Site(site) => naming.site(site),
            Self::Method(method, means) => format!("{}, {}", naming.method(method), means.text()),
            Self::Nowhere(means) => format!("({})", means.text()),
        }
    }
}

/// What a method makes without sites, as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Clone,
    Concatenation,
    Reflection,
    Serialization,
    MethodHandle,
    StackTrace,
    /// Another of the JDK's.
    Jdk,
    Other,
}

fn maker(method: &str) -> Maker {
    let (class, name) = method.rsplit_once('.').unwrap_or(("", method));
    match class {
        "java.lang.StringConcatHelper" => Maker::Concatenation,
        "java.lang.Throwable" | "java.lang.StackTraceElement" => Maker::StackTrace,
        _ if class.starts_with("java.io.Object") || class.contains("SerializationConstructorAccessor") => {
            Maker::Serialization
        }
        _ if ["java.lang.reflect.", "jdk.internal.reflect.", "sun.reflect."].iter().any(|of| class.starts_with(of)) => {
            Maker::Reflection
        }
        "java.lang.Class" if name == "newInstance" => Maker::Reflection,
        _ if name == "clone" => Maker::Clone,
        _ if class.starts_with("java.lang.invoke.") => Maker::MethodHandle,
        _ if ["java.", "jdk.", "sun."].iter().any(|of| class.starts_with(of)) => Maker::Jdk,
        _ => Maker::Other,
    }
}

/// Tells where objects were made. The same question is answered once.
#[derive(Debug)]
pub struct Places<'a> {
    naming: Naming<'a>,
    makers: FxHashMap<MethodId, Maker>,
    means: FxHashMap<(ContextId, TypeId, AllocKind), MadeIn>,
}

/// What is asked about.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Made {
    pub kind: AllocKind,
    pub site: SiteId,
    pub ty: TypeId,
}

impl From<&Alloc> for Made {
    fn from(alloc: &Alloc) -> Self {
        Self { kind: alloc.kind, site: alloc.site, ty: alloc.ty }
    }
}

impl<'a> Places<'a> {
    /// Of a trace.
    pub fn new(naming: Naming<'a>) -> Self {
        Self { naming, makers: FxHashMap::default(), means: FxHashMap::default() }
    }

    /// In a calling context.
    #[inline]
    pub fn in_context(&mut self, made: Made, context: ContextId, contexts: &Contexts, types: &Types) -> MadeIn {
        if made.site.0 != 0 {
            return MadeIn::Site(made.site);
        }
        let key = (context, made.ty, made.kind);
        if let Some(&known) = self.means.get(&key) {
            return known;
        }
        let found = self.without_site(made, contexts.methods(context), types.descriptor(made.ty));
        self.means.insert(key, found);
        found
    }

    /// On a stack, the innermost method first.
    pub fn on_stack(&mut self, made: Made, stack: impl Iterator<Item = MethodId>, types: &Types) -> MadeIn {
        match made.site {
            SiteId(0) => self.without_site(made, stack, types.descriptor(made.ty)),
            site => MadeIn::Site(site),
        }
    }

    fn maker(&mut self, method: MethodId) -> Maker {
        let naming = self.naming;
        *self.makers.entry(method).or_insert_with(|| maker(&naming.method(method)))
    }

    fn without_site(&mut self, made: Made, mut stack: impl Iterator<Item = MethodId>, descriptor: &str) -> MadeIn {
        let Some(top) = stack.next() else { return MadeIn::Nowhere(of_class(made.kind, descriptor)) };
        let maker = self.maker(top);
        let means = match (of_class(made.kind, descriptor), maker) {
            (Means::Native, Maker::Concatenation) => Means::Concatenation,
            (Means::Native, Maker::Clone) => Means::Clone,
            (Means::Native, Maker::StackTrace) => Means::StackTrace,
            (Means::Native, Maker::Serialization) => Means::Deserialization,
            (Means::Native, Maker::Reflection | Maker::MethodHandle) => {
                // For whom: the callers up to the first that is not of this machinery.
                let mut means = if maker == Maker::Reflection { Means::Reflection } else { Means::MethodHandle };
                for method in stack {
                    match self.maker(method) {
                        Maker::Serialization => return MadeIn::Method(top, Means::Deserialization),
                        Maker::Reflection => means = Means::Reflection,
                        Maker::MethodHandle => {}
                        _ => break,
                    }
                }
                means
            }
            // Of other methods the program itself calls nothing that makes arrays or strings but these.
            (Means::Native, Maker::Other) if made.kind == AllocKind::Vm && descriptor.starts_with('[') => Means::Clone,
            (Means::Native, Maker::Other) if descriptor == "Ljava/lang/String;" => Means::Constant,
            (means, _) => means,
        };
        MadeIn::Method(top, means)
    }
}

/// What needs no method to be known.
fn of_class(kind: AllocKind, descriptor: &str) -> Means {
    match (kind, descriptor) {
        (AllocKind::Initial, _) => Means::Initial,
        (_, "Ljava/lang/Class;") => Means::Loading,
        (AllocKind::Found, _) => Means::Found,
        _ => Means::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_say_by_what_they_make() {
        for (method, expected) in [
            ("shop.Page.clone", Maker::Clone),
            ("java.util.ArrayList.clone", Maker::Clone),
            ("java.lang.StringConcatHelper.newArray", Maker::Concatenation),
            ("java.lang.reflect.Array.newInstance", Maker::Reflection),
            ("jdk.internal.reflect.NativeConstructorAccessorImpl.newInstance", Maker::Reflection),
            ("jdk.internal.reflect.GeneratedSerializationConstructorAccessor3.newInstance", Maker::Serialization),
            ("java.io.ObjectInputStream.readArray", Maker::Serialization),
            ("java.lang.invoke.DirectMethodHandle.allocateInstance", Maker::MethodHandle),
            ("java.lang.Throwable.fillInStackTrace", Maker::StackTrace),
            ("java.lang.System.initProperties", Maker::Jdk),
            ("javax.swing.Box.add", Maker::Other),
            ("run", Maker::Other),
        ] {
            assert_eq!(maker(method), expected, "{method}");
        }
    }

    #[test]
    fn what_needs_no_method_is_known_without() {
        for (kind, descriptor, expected) in [
            (AllocKind::Initial, "Lshop/Page;", Means::Initial),
            (AllocKind::Vm, "Ljava/lang/Class;", Means::Loading),
            (AllocKind::Found, "[B", Means::Found),
            (AllocKind::Vm, "[B", Means::Native),
        ] {
            assert_eq!(of_class(kind, descriptor), expected);
        }
    }
}
