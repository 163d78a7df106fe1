//! Calls of methods that create or change objects without bytecode of their own.
//!
//! ```text
//! ldc "text"                              ->  ldc "text"  dup  constant(Object)
//! invokevirtual [X.clone()                ->  invokevirtual [X.clone()  dup  madeFresh(Object)
//! invokespecial X.clone()                 ->  invokespecial X.clone()  dup  made(Object)
//! invoke… native of the JDK returning an object  ->  invoke…  dup  made(Object)
//! invokestatic System.arraycopy           ->  invokestatic HeapProxyCalls.arraycopy
//! invokevirtual Unsafe.putReference       ->  invokestatic HeapProxyUnsafe.putReference
//! invokevirtual Reference.clear0()        ->  dup  clearing(Object)  invokevirtual Reference.clear0()
//! invokestatic ClassLoader.defineClass1    ->  invokestatic HeapProxyClasses.defineClass1
//! invokestatic MethodHandleNatives.init   ->  dup2  invokestatic MethodHandleNatives.init  pop  refreshed(Object)
//! ```
//!
//! The hooks are at the calls and not in the methods, because the JIT compilers have intrinsics for most of these
//! methods. A stand-in calls the method that it replaces, so the intrinsic stays in use; caller-sensitive methods are
//! never replaced.
//!
//! Native methods of `java.base` that define classes have stand-ins that first have the class rewritten. All classes
//! that Java code defines pass through them: `ClassLoader.defineClass`, hidden classes, lambdas, proxies.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use rustc_hash::FxHasher;

use super::{Emitter, HEAP_PROXY_CALLS, Hook};
use crate::classfile::{ClassFile, MemberRef};
use crate::code::opcode::*;
use crate::code::{CodeEditor, Instruction, parameter_slots};

const UNSAFE: &str = "java/lang/HeapProxyUnsafe";
const CLASSES: &str = "java/lang/HeapProxyClasses";
const ANONYMOUS: &str = "java/lang/HeapProxyAnonymous";

/// What is inserted at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallHook {
    /// The call is replaced by one of the method of the same name in that class, which takes the receiver as its first
    /// argument.
    StandIn(&'static str),
    /// The returned object may be new.
    Made,
    /// The returned object is new.
    MadeFresh,
    /// [`Made`](Self::Made) or [`MadeFresh`](Self::MadeFresh), depending on the kind of call.
    Cloned,
    /// Fields of the returned object have been set by the method.
    Refreshed,
    /// Fields of the first of two arguments, or of the only one, have been set by the method.
    RefreshedArgument,
    /// The hook is called with the returned value.
    Behind(Hook),
    /// The hook is called first, with the one or two arguments.
    Before(Hook),
}

/// The events that a hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Allocations,
    Updates,
    Either,
    /// No event: the stand-in instruments classes created at run time.
    Classes,
}

impl CallHook {
    fn serves(self, name: &str) -> For {
        match self {
            Self::StandIn(CLASSES | ANONYMOUS) => For::Classes,
            Self::StandIn(_) if name.starts_with("allocate") => For::Allocations,
            Self::StandIn(_) | Self::Behind(_) | Self::Before(_) => For::Updates,
            Self::Made | Self::MadeFresh | Self::Cloned | Self::Refreshed | Self::RefreshedArgument => For::Either,
        }
    }
}

/// Methods of one class whose calls are hooked.
struct Owner {
    class: &'static str,
    of: Release,
    /// Method name, start of the descriptor (empty: any), hook.
    calls: &'static [(&'static str, &'static str, CallHook)],
}

/// The JDK releases in which a class has these methods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Release {
    All,
    /// JDK 8 only: from JDK 9 on, `sun.misc.Unsafe` is a wrapper around a class that is in the table.
    Eight,
}

use CallHook::{Before, Behind, Made, MadeFresh, Refreshed, RefreshedArgument, StandIn};

/// The table of hooked calls. Natives that their own class calls need not be listed ([`Calls::new`]).
const OWNERS: &[Owner] = &[
    Owner {
        class: "java/lang/System",
        of: Release::All,
        calls: &[("arraycopy", "(Ljava/lang/Object;ILjava/lang/Object;II)V", StandIn(HEAP_PROXY_CALLS))],
    },
    Owner { class: "java/lang/String", of: Release::All, calls: &[("intern", "()Ljava/lang/String;", Made)] },
    Owner {
        class: "java/lang/reflect/Array",
        of: Release::All,
        calls: &[
            ("get", "(Ljava/lang/Object;I)Ljava/lang/Object;", Made),
            ("set", "(Ljava/lang/Object;ILjava/lang/Object;)V", StandIn(HEAP_PROXY_CALLS)),
            ("newArray", "", MadeFresh),
            ("multiNewArray", "", MadeFresh),
        ],
    },
    Owner {
        class: "java/lang/Throwable",
        of: Release::All,
        calls: &[("fillInStackTrace", "(I)", Refreshed), ("fillInStackTrace0", "(", Refreshed)],
    },
    // Its `of` methods have the VM fill in elements that they have created.
    Owner { class: "java/lang/StackTraceElement", of: Release::All, calls: &[("of", "", Refreshed)] },
    Owner {
        class: "java/lang/ref/Reference",
        of: Release::All,
        calls: &[
            ("getAndClearReferencePendingList", "", Behind(Hook::Cleared)),
            ("clear0", "()", Before(Hook::Clearing)),
        ],
    },
    Owner {
        class: "java/lang/ref/PhantomReference",
        of: Release::All,
        calls: &[("clear0", "()", Before(Hook::Clearing))],
    },
    Owner {
        class: "java/lang/invoke/MethodHandleNatives",
        of: Release::All,
        calls: &[
            ("init", "(Ljava/lang/invoke/MemberName;Ljava/lang/Object;)V", RefreshedArgument),
            ("expand", "(Ljava/lang/invoke/MemberName;)V", RefreshedArgument),
            ("resolve", "", Refreshed),
            ("getMemberVMInfo", "", Made),
            ("setCallSiteTargetNormal", "", Before(Hook::Linking)),
            ("setCallSiteTargetVolatile", "", Before(Hook::Linking)),
        ],
    },
    // Natives of these classes that other classes of java.base call.
    Owner {
        class: "java/lang/Class",
        of: Release::All,
        calls: &[
            ("getConstantPool", "", Made),
            ("getRawAnnotations", "", Made),
            ("getRawTypeAnnotations", "", Made),
            ("getSigners", "", Made),
        ],
    },
    Owner {
        class: "java/security/AccessController",
        of: Release::All,
        calls: &[("getInheritedAccessControlContext", "", Made)],
    },
    Owner { class: "jdk/internal/misc/VM", of: Release::All, calls: &[("getRuntimeArguments", "", Made)] },
    Owner {
        class: "java/lang/ClassLoader",
        of: Release::All,
        // In JDK 8 the loader is the receiver and not the first argument.
        calls: &[
            ("defineClass0", "(Ljava/lang/ClassLoader;Ljava/lang/Class;", StandIn(CLASSES)),
            ("defineClass1", "(Ljava/lang/ClassLoader;", StandIn(CLASSES)),
            ("defineClass2", "(Ljava/lang/ClassLoader;", StandIn(CLASSES)),
        ],
    },
    Owner {
        class: "jdk/internal/misc/Unsafe",
        of: Release::All,
        calls: &[
            ("defineClass0", "(Ljava/lang/String;[BII", StandIn(CLASSES)),
            // JDK 9 to 16. Not the native method that it calls, which is private.
            ("defineAnonymousClass", "(Ljava/lang/Class;[B[Ljava/lang/Object;)", StandIn(ANONYMOUS)),
            ("allocateInstance", "", StandIn(UNSAFE)),
            ("allocateUninitializedArray", "", StandIn(UNSAFE)),
            ("putReference", "", StandIn(UNSAFE)),
            ("putReferenceVolatile", "", StandIn(UNSAFE)),
            ("putReferenceOpaque", "", StandIn(UNSAFE)),
            ("putReferenceRelease", "", StandIn(UNSAFE)),
            ("compareAndSetReference", "", StandIn(UNSAFE)),
            ("weakCompareAndSetReference", "", StandIn(UNSAFE)),
            ("weakCompareAndSetReferencePlain", "", StandIn(UNSAFE)),
            ("weakCompareAndSetReferenceAcquire", "", StandIn(UNSAFE)),
            ("weakCompareAndSetReferenceRelease", "", StandIn(UNSAFE)),
            ("compareAndExchangeReference", "", StandIn(UNSAFE)),
            ("compareAndExchangeReferenceAcquire", "", StandIn(UNSAFE)),
            ("compareAndExchangeReferenceRelease", "", StandIn(UNSAFE)),
            ("getAndSetReference", "", StandIn(UNSAFE)),
            ("getAndSetReferenceAcquire", "", StandIn(UNSAFE)),
            ("getAndSetReferenceRelease", "", StandIn(UNSAFE)),
            ("putObject", "", StandIn(UNSAFE)),
            ("putObjectVolatile", "", StandIn(UNSAFE)),
            ("putObjectOpaque", "", StandIn(UNSAFE)),
            ("putObjectRelease", "", StandIn(UNSAFE)),
            ("compareAndSetObject", "", StandIn(UNSAFE)),
            ("weakCompareAndSetObject", "", StandIn(UNSAFE)),
            ("weakCompareAndSetObjectPlain", "", StandIn(UNSAFE)),
            ("weakCompareAndSetObjectAcquire", "", StandIn(UNSAFE)),
            ("weakCompareAndSetObjectRelease", "", StandIn(UNSAFE)),
            ("compareAndExchangeObject", "", StandIn(UNSAFE)),
            ("compareAndExchangeObjectAcquire", "", StandIn(UNSAFE)),
            ("compareAndExchangeObjectRelease", "", StandIn(UNSAFE)),
            ("getAndSetObject", "", StandIn(UNSAFE)),
            ("getAndSetObjectAcquire", "", StandIn(UNSAFE)),
            ("getAndSetObjectRelease", "", StandIn(UNSAFE)),
        ],
    },
    Owner {
        class: "sun/misc/Unsafe",
        of: Release::Eight,
        calls: &[
            ("allocateInstance", "", StandIn(UNSAFE)),
            ("putObject", "(Ljava/lang/Object;J", StandIn(UNSAFE)),
            ("putObjectVolatile", "", StandIn(UNSAFE)),
            ("putOrderedObject", "", StandIn(UNSAFE)),
            ("compareAndSwapObject", "", StandIn(UNSAFE)),
            ("getAndSetObject", "", StandIn(UNSAFE)),
        ],
    },
];

/// Natives whose results are never new, or are reported elsewhere: reading a field creates nothing.
const NOTHING_NEW: [&[u8]; 5] =
    [b"currentThread", b"currentCarrierThread", b"scopedValueCache", b"extentLocalCache", b"getClass"];

/// Class file version of JDK 8: up to this one, classes belong to JDK 8 or earlier.
const JAVA_8: u16 = 52;

/// The hooked calls of a class, by constant pool index.
#[derive(Debug, Default)]
pub struct Calls {
    by_index: HashMap<u16, CallHook, BuildHasherDefault<FxHasher>>,
}

impl Calls {
    /// Searches the methods that a class refers to. In a JDK class (`jdk`), its own natives that return objects are
    /// hooked too.
    pub fn new(class: &ClassFile<'_>, jdk: bool, allocations: bool, updates: bool) -> Self {
        let mut calls = Self::default();
        // Its methods call each other down to natives: a hook at each level would report a change several times.
        let is_unsafe = matches!(class.name, b"jdk/internal/misc/Unsafe" | b"sun/misc/Unsafe") && !wraps_unsafe(class);
        for (index, member) in class.pool.method_refs() {
            let Some((hook, serves)) = listed(class, jdk, &member).or_else(|| {
                let makes = jdk && !is_unsafe && class.declares_native(&member) && may_make(&member);
                makes.then_some((CallHook::Made, For::Either))
            }) else {
                continue;
            };
            let wanted = match serves {
                For::Classes => jdk,
                _ if is_unsafe => false,
                For::Allocations => allocations,
                For::Updates => updates,
                For::Either => allocations || updates,
            };
            if wanted {
                calls.by_index.insert(index, hook);
            }
        }
        calls
    }

    /// Returns the hook for this instruction.
    pub(crate) fn at(&self, instruction: &Instruction<'_>) -> Option<CallHook> {
        if self.by_index.is_empty() || !matches!(instruction.opcode, INVOKEVIRTUAL..=INVOKEINTERFACE) {
            return None;
        }
        self.by_index.get(&instruction.pool_index()).copied()
    }
}

/// Whether the class is the `sun.misc.Unsafe` of JDK 9 or later, an ordinary class that calls the internal one.
fn wraps_unsafe(class: &ClassFile<'_>) -> bool {
    class.name == b"sun/misc/Unsafe" && class.major > JAVA_8
}

fn listed(class: &ClassFile<'_>, jdk: bool, member: &MemberRef<'_>) -> Option<(CallHook, For)> {
    if member.name == b"clone" && member.descriptor == b"()Ljava/lang/Object;" {
        return Some((CallHook::Cloned, For::Either));
    }
    let owner = OWNERS.iter().find(|owner| owner.class.as_bytes() == member.class)?;
    if owner.of == Release::Eight && !(jdk && class.major <= JAVA_8) {
        return None;
    }
    owner
        .calls
        .iter()
        .find(|(name, start, _)| name.as_bytes() == member.name && member.descriptor.starts_with(start.as_bytes()))
        .map(|&(name, _, hook)| (hook, hook.serves(name)))
}

/// Whether a native method may return a new object. Class mirrors are excluded, as they have records of their own.
fn may_make(native: &MemberRef<'_>) -> bool {
    let returned = native.descriptor.iter().position(|&byte| byte == b')').map(|end| &native.descriptor[end + 1..]);
    let is_object =
        returned.is_some_and(|kind| matches!(kind.first(), Some(b'L' | b'[')) && kind != b"Ljava/lang/Class;");
    is_object && !NOTHING_NEW.contains(&native.name)
}

/// Behind an `ldc` of a string.
pub(crate) fn constant(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, instruction: &Instruction<'_>) {
    editor.behind(instruction, emit.start().op(DUP).call(Hook::Constant).bytes(), 1);
}

/// At a hooked call. Returns false if this kind of call needs no hook.
pub(crate) fn call(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    member: &MemberRef<'_>,
    hook: CallHook,
) -> bool {
    let mut behind = |hook| editor.behind(instruction, emit.start().op(DUP).call(hook).bytes(), 1);
    match hook {
        CallHook::Made => behind(Hook::Made),
        CallHook::MadeFresh => behind(Hook::MadeFresh),
        CallHook::Refreshed => behind(Hook::Refreshed),
        CallHook::Behind(hook) => behind(hook),
        CallHook::Cloned => match (instruction.opcode, member.class) {
            (_, [b'[', ..]) | (INVOKESPECIAL, b"java/lang/Object") => behind(Hook::MadeFresh),
            // A superclass's clone may return anything; old compilers clone arrays as objects.
            (INVOKESPECIAL, _) | (_, b"java/lang/Object") => behind(Hook::Made),
            // The called method has hooks of its own.
            _ => return false,
        },
        CallHook::StandIn(class) => {
            let receiver = if instruction.opcode == INVOKESTATIC { &[][..] } else { member.class };
            emit.start().stand_in(class, member.name, receiver, member.descriptor);
            editor.replace(instruction, emit.bytes());
        }
        CallHook::Before(hook) => {
            let slots = usize::from(instruction.opcode != INVOKESTATIC) + parameter_slots(member.descriptor);
            let dup = if slots == 1 { DUP } else { DUP2 };
            editor.before(instruction, emit.start().op(dup).call(hook).bytes(), slots as u16);
        }
        CallHook::RefreshedArgument => {
            let slots = parameter_slots(member.descriptor);
            editor.before(instruction, emit.start().op(if slots == 1 { DUP } else { DUP2 }).bytes(), slots as u16);
            emit.start();
            if slots > 1 {
                emit.op(POP);
            }
            editor.behind(instruction, emit.call(Hook::Refreshed).bytes(), slots as u16);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_before_calls_take_one_or_two_slots() {
        for owner in OWNERS {
            for (name, descriptor, hook) in owner.calls {
                assert!(!matches!(hook, RefreshedArgument) || descriptor.ends_with(")V"), "{name}");
            }
        }
    }

    #[test]
    fn each_call_is_listed_once() {
        let mut names: Vec<_> =
            OWNERS.iter().flat_map(|owner| owner.calls.iter().map(|call| (owner.class, call.0, call.1))).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
