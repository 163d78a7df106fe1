//! Where an object was allocated: at a site or, if it has none, in which method and how.
//!
//! Sites are instructions that allocate. Clones, concatenated strings, objects created by reflection and the like have
//! no site, but they were created while a method ran, and which one shows how.

use et_names::{MethodId, SiteId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::model::{ContextId, Contexts};
use crate::naming::Naming;
use crate::record::{Alloc, AllocKind};
use crate::types::{TypeId, Types};

/// Where an object was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MadeIn {
    /// At an allocation site.
    Site(SiteId),
    /// In a method, but at no site.
    Method(MethodId, Means),
    /// While no method ran.
    Nowhere(Means),
}

/// How an object without a site was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Means {
    /// By `clone()`.
    Clone,
    /// By string concatenation.
    Concatenation,
    /// By reflection.
    Reflection,
    /// By deserialization.
    Deserialization,
    /// By a method handle.
    MethodHandle,
    /// As a constant of a class.
    Constant,
    /// For the stack trace of an exception.
    StackTrace,
    /// When a class was loaded.
    Loading,
    /// It existed when tracing began.
    Initial,
    /// Unknown: it was first seen later.
    Found,
    /// By the VM, native code, or code without hooks.
    Native,
}

impl Means {
    /// Text to put after a method's name.
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
    /// An allocation at a site, with nothing else known.
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

    /// The site, if it is known.
    pub fn site(self) -> Option<SiteId> {
        match self {
            Self::Site(site) => Some(site),
            Self::Method(..) | Self::Nowhere(_) => None,
        }
    }

    /// Display text: `java.util.HashMap.newNode:1901`; `shop.Page.clone, by clone()`; `(by the VM or native code)`.
    pub fn text(self, naming: Naming<'_>) -> String {
        match self {
            Self::Site(site) => naming.site(site),
            Self::Method(method, means) => format!("{}, {}", naming.method(method), means.text()),
            Self::Nowhere(means) => format!("({})", means.text()),
        }
    }
}

/// What a method creates without sites, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Clone,
    Concatenation,
    Reflection,
    Serialization,
    MethodHandle,
    StackTrace,
    /// Another method of the JDK.
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

/// Computes where objects were allocated. Caches its answers.
#[derive(Debug)]
pub struct Places<'a> {
    naming: Naming<'a>,
    makers: FxHashMap<MethodId, Maker>,
    means: FxHashMap<(ContextId, TypeId, AllocKind), MadeIn>,
}

/// The properties of an object that determine the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Creates an instance for a trace.
    pub fn new(naming: Naming<'a>) -> Self {
        Self { naming, makers: FxHashMap::default(), means: FxHashMap::default() }
    }

    /// For an object allocated in a calling context.
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

    /// For an object allocated on a stack, given innermost method first.
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
                // Attributed to the first caller outside this machinery.
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
            // Other methods of the program only create arrays and strings without sites by calling these.
            (Means::Native, Maker::Other) if made.kind == AllocKind::Vm && descriptor.starts_with('[') => Means::Clone,
            (Means::Native, Maker::Other) if descriptor == "Ljava/lang/String;" => Means::Constant,
            (means, _) => means,
        };
        MadeIn::Method(top, means)
    }
}

/// For objects where the method does not matter.
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
