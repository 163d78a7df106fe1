//! The call stack as a number that plain bytecode keeps in a field of the thread, without events
//! (after Bond and McKinley, "Probabilistic Calling Context", OOPSLA 2007; `docs/inside/stacks.md`).
//!
//! ```text
//! on entry:          currentThread()  dup  astore t  getfield etContext  dup2  lstore c  ldc K  lmul  ldc M  ladd  lstore u
//!                    in what the VM calls, behind lstore c:  HeapProxy.calledByVm(J)
//! before a call:     aload t  <value>  putfield etContext         unless the thread has the value of that line already
//! before a return:   aload t  lload c  putfield etContext
//! behind an array allocation:  <value>  allocatedArray(Object,I,J), allocatedMulti(Object,I,J)
//!
//! <value>, the stack at a site:             lload u  <index>  ladd        without <index> ladd if it is 0
//! before the constructor call of a `new`:   <index>  lload u  ladd
//! before a call of super(…) or this(…):     lload u  <-index>  lsub
//! <index>:                                  lconst_0, lconst_1, or an int and i2l
//! ```
//!
//! K is the same everywhere, M a constant of the method, which the id of its first site gives, and the index is that of the call or
//! allocation among the sites of the method. K is odd, so that the value of the caller can be computed from that of a call. Without a
//! call the method keeps only `u`.
//!
//! A `new` has no hook of its own: `Object.<init>` has the value of the call of `super(…)` by which it was reached, and the walk of that stack
//! goes down through the constructors to the `new`. For this the three forms of a value tell [what is called](Called); the site of
//! the object is the one before that of its constructor call. The site is left in the thread, as without stacks (`site(J)`), by methods that tell
//! of their entry, since readers need it for objects whose constructors never come to `Object.<init>`; and before further constructor calls of the
//! same `new`, whose sites cannot all be next to its own.
//!
//! Nothing is done where an exception leaves a method: the next return of a method with hooks restores the value of its caller, and behind a call that
//! may have caught an exception without that, the next call stores its own value (`keeps_value`). Returns restore what was there before also for the sake of
//! callers without hooks, which store nothing.

use super::{Emitter, Hook};
use crate::classfile::{ClassFile, MemberRef, PoolBuilder};
use crate::code::opcode::*;
use crate::code::{CodeEditor, EditError, Frame, Instruction, StackMap, VerificationType};

const THREAD: &str = "java/lang/Thread";
/// The field of `java.lang.Thread`.
pub const FIELD: &str = "etContext";

/// What the value of the caller is multiplied with: 2^64 divided by the golden ratio, odd.
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The constant of a method, given the id of its first site. Different methods have different ones.
pub fn constant_of(first_site: u32) -> u64 {
    // The finalizer of SplitMix64, of which each step can be undone.
    let mut mixed = u64::from(first_site);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The id of the first site of the method with this constant; `None` if it is no constant of a method.
pub fn first_site_of(constant: u64) -> Option<u32> {
    let unshift = |value: u64, by: u32| {
        let mut found = value;
        for _ in 0..64 / by {
            found = value ^ (found >> by);
        }
        found
    };
    let mut mixed = unshift(constant, 31);
    mixed = unshift(mixed.wrapping_mul(inverse(0x94d0_49bb_1331_11eb)), 27);
    mixed = unshift(mixed.wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9)), 30);
    u32::try_from(mixed).ok().filter(|site| constant_of(*site) == constant)
}

/// What undoes a multiplication with an odd number (Newton's method: each step doubles the bits that are right).
pub const fn inverse(odd: u64) -> u64 {
    let mut found = odd;
    let mut round = 0;
    while round < 6 {
        found = found.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(found)));
        round += 1;
    }
    found
}

/// What is called at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// The constructor of an object that the method has made with `new`. The site before this one is that of the object.
    ConstructorOfNew,
    /// Another constructor, for the object that the method itself constructs.
    Super,
    /// Anything else, the hooks of array allocations included.
    Other,
}

/// The local variables of a method that keeps track of its stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracked {
    /// The thread, and the value that it had; `None` if the method does not change it.
    caller: Option<(u16, u16)>,
    /// The value of the method, to which indexes of sites are added.
    own: u16,
    first_site: u32,
    /// Whether the VM may have called the method by itself, where its caller stored no value.
    by_vm: bool,
}

impl Tracked {
    /// Takes the local variables, before any others of the editor.
    pub(crate) fn new(editor: &mut CodeEditor<'_, '_>, first_site: u32, has_calls: bool, by_vm: bool) -> Self {
        // What is called by the VM changes the value of the thread, which has to be restored.
        let changes = has_calls || by_vm;
        let first = editor.reserve_locals(if changes { 5 } else { 2 });
        let (caller, own) = match changes {
            true => (Some((first, first.saturating_add(1))), first.saturating_add(3)),
            false => (None, first),
        };
        Self { caller, own, first_site, by_vm }
    }

    /// On entry, before the other hooks there.
    pub(crate) fn entry(&self, editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>) {
        emit.start().method(INVOKESTATIC, THREAD, "currentThread", "()Ljava/lang/Thread;");
        if let Some((thread, _)) = self.caller {
            emit.op(DUP).local(ASTORE, thread);
        }
        emit.field(GETFIELD, THREAD, FIELD, "J");
        if let Some((_, caller)) = self.caller {
            emit.op(DUP2).local(LSTORE, caller);
        }
        if self.by_vm {
            emit.call(Hook::CalledByVm);
        }
        emit.long(MULTIPLIER).op(LMUL).long(constant_of(self.first_site)).op(LADD).local(LSTORE, self.own);
        editor.at_entry(emit.bytes(), 4);
    }

    /// Pushes the value of a site.
    fn value<'e, 'p>(&self, emit: &'e mut Emitter<'p>, site: u32, called: Called) -> &'e mut Emitter<'p> {
        let index = site - self.first_site;
        match called {
            // The shorter, the more is inlined.
            Called::Other if index == 0 => emit.local(LLOAD, self.own),
            Called::Other => push(emit.local(LLOAD, self.own), index).op(LADD),
            Called::ConstructorOfNew => push(emit, index).local(LLOAD, self.own).op(LADD),
            Called::Super => push(emit.local(LLOAD, self.own), index.wrapping_neg()).op(LSUB),
        }
    }

    /// Before a call, which has this site.
    pub(crate) fn call(
        &self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        instruction: &Instruction<'_>,
        site: u32,
        called: Called,
    ) {
        let Some((thread, _)) = self.caller else { return };
        emit.start().local(ALOAD, thread);
        self.value(emit, site, called).field(PUTFIELD, THREAD, FIELD, "J");
        editor.before(instruction, emit.bytes(), 5);
    }

    /// Before a return.
    pub(crate) fn restore(
        &self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        instruction: &Instruction<'_>,
    ) {
        let Some((thread, caller)) = self.caller else { return };
        emit.start().local(ALOAD, thread).local(LLOAD, caller).field(PUTFIELD, THREAD, FIELD, "J");
        editor.before(instruction, emit.bytes(), 3);
    }

    /// Leaves the number of the stack in the thread, before the `invokespecial <init>` of a `new`.
    pub(crate) fn object(
        &self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        instruction: &Instruction<'_>,
        site: u32,
    ) {
        self.value(emit.start(), site, Called::Other).call(Hook::SiteOfStack);
        editor.before(instruction, emit.bytes(), 4);
    }

    /// Around an array allocation.
    pub(crate) fn array(
        &self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        instruction: &Instruction<'_>,
        site: u32,
    ) {
        if instruction.opcode == MULTIANEWARRAY {
            emit.start().op(DUP).int(instruction.bytes[3].into());
            self.value(emit, site, Called::Other).call(Hook::AllocatedMultiOfStack);
        } else {
            editor.before(instruction, emit.start().op(DUP).bytes(), 1);
            emit.start().op(DUP_X1).op(SWAP);
            self.value(emit, site, Called::Other).call(Hook::AllocatedArrayOfStack);
        }
        editor.behind(instruction, emit.bytes(), 6);
    }

    /// Adds the variables to all frames.
    pub(crate) fn add_to(&self, frames: &mut StackMap, pool: &mut PoolBuilder) -> Result<(), EditError> {
        /// Maximum number of types inserted to fill gaps up to high-numbered variables.
        const MOST_FILLED: usize = 1 << 22;
        let thread = match self.caller {
            Some((at, _)) => Some((at, VerificationType::Object(pool.class(THREAD.as_bytes())?))),
            None => None,
        };
        let first = usize::from(thread.map_or(self.own, |(at, _)| at));
        let mut filled = 0;
        for Frame { locals, .. } in &mut frames.frames {
            let slots: usize = locals.iter().map(|kind| kind.slots()).sum();
            let gap = first.saturating_sub(slots);
            filled += gap;
            if filled > MOST_FILLED {
                return Err(EditError::TooManySlots);
            }
            locals.extend(std::iter::repeat_n(VerificationType::Top, gap));
            if let Some((_, thread)) = thread {
                locals.extend([thread, VerificationType::Long]);
            }
            locals.push(VerificationType::Long);
        }
        Ok(())
    }
}

/// Pushes an index, or what is to be subtracted in place of one, as a long.
fn push<'e, 'p>(emit: &'e mut Emitter<'p>, number: u32) -> &'e mut Emitter<'p> {
    match number {
        0 => emit.op(LCONST_0),
        1 => emit.op(LCONST_1),
        _ => emit.int(number).op(I2L),
    }
}

/// What the frames of a method that keeps track of its stack can be told from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedCode {
    /// The id of the method's first site.
    pub first_site: u32,
    /// The instructions that call, the hooks' own calls included, in order.
    pub calls: Vec<TrackedCall>,
}

/// An instruction at which a frame may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedCall {
    /// Offset in the code.
    pub pc: u32,
    /// The index of its site.
    pub index: u32,
    pub called: Called,
}

impl TrackedCode {
    /// Reads the code of a method; `None` if it does not keep track of its stack. `constant` returns the number in the constant pool.
    pub fn read(code: &[u8], constant: impl Fn(u16) -> Option<i64>) -> Option<Self> {
        /// By then the hook on entry is over, whatever other hooks there are.
        const ENTRY: u32 = 64;
        let (mut first_site, mut own, mut calls) = (None, None, Vec::new());
        let mut last: [Option<Instruction<'_>>; 4] = [None; 4];
        // The index of the call whose value was stored last, and what it calls.
        let mut stored = None;
        for instruction in crate::code::Instructions::new(code) {
            let instruction = instruction.ok()?;
            if own.is_none() {
                // ldc2_w M, ladd, lstore u
                if let ([_, _, Some(loads), Some(adds)], Some(local)) = (last, lstore(&instruction))
                    && (loads.opcode, adds.opcode) == (LDC2_W, LADD)
                {
                    own = Some(local);
                    first_site = constant(loads.pool_index()).and_then(|constant| first_site_of(constant as u64));
                }
                if instruction.pc > ENTRY || own.is_some() && first_site.is_none() {
                    return None;
                }
            }
            let value = own.and_then(|own| value_of(&last, own, &constant));
            match (instruction.opcode, value) {
                (PUTFIELD, Some(value)) => stored = Some(value),
                (INVOKESTATIC, Some((index, called))) => calls.push(TrackedCall { pc: instruction.pc, index, called }),
                (INVOKEVIRTUAL..=INVOKEDYNAMIC, _) => {
                    if let Some((index, called)) = &mut stored {
                        calls.push(TrackedCall { pc: instruction.pc, index: *index, called: *called });
                        // What comes next are the hooks behind the call.
                        *called = Called::Other;
                    }
                }
                _ => {}
            }
            last.rotate_left(1);
            last[3] = Some(instruction);
        }
        Some(Self { first_site: first_site?, calls })
    }

    /// The call at which a frame is that is at this offset; `None` if it is at none: the VM called something there.
    pub fn call_at(&self, pc: u32) -> Option<TrackedCall> {
        let at = self.calls.binary_search_by_key(&pc, |call| call.pc).ok()?;
        Some(self.calls[at])
    }
}

/// The index of the site whose value was just pushed, and what is called with it, by the last instructions: see the top of the module.
fn value_of(
    last: &[Option<Instruction<'_>>; 4],
    own: u16,
    constant: impl Fn(u16) -> Option<i64>,
) -> Option<(u32, Called)> {
    let loads = |at: usize| last[at].is_some_and(|instruction| lload(&instruction) == Some(own));
    // The number that was pushed by that instruction or by it and the one before, and where these begin.
    let pushed_at = |at: usize| {
        let instruction = last[at]?;
        match instruction.opcode {
            LCONST_0 | LCONST_1 => Some((i64::from(instruction.opcode - LCONST_0), at)),
            I2L => Some((pushed(&last[at.checked_sub(1)?]?, &constant)?, at - 1)),
            _ => None,
        }
    };
    let before = |at: usize| at.checked_sub(1).is_some_and(loads);
    if loads(3) {
        return Some((0, Called::Other));
    }
    let (number, called) = match last[3]?.opcode {
        LADD if loads(2) => (pushed_at(1)?.0, Called::ConstructorOfNew),
        LADD => pushed_at(2).filter(|(_, at)| before(*at)).map(|(number, _)| (number, Called::Other))?,
        LSUB => pushed_at(2).filter(|(_, at)| before(*at)).map(|(number, _)| (-number, Called::Super))?,
        _ => return None,
    };
    Some((u32::try_from(number).ok()?, called))
}

fn lstore(instruction: &Instruction<'_>) -> Option<u16> {
    matches!(instruction.opcode, LSTORE | LSTORE_0..=LSTORE_3).then(|| instruction.local()).flatten()
}

fn lload(instruction: &Instruction<'_>) -> Option<u16> {
    matches!(instruction.opcode, LLOAD | LLOAD_0..=LLOAD_3).then(|| instruction.local()).flatten()
}

/// The number that an instruction pushes.
fn pushed(instruction: &Instruction<'_>, constant: impl Fn(u16) -> Option<i64>) -> Option<i64> {
    match (instruction.opcode, instruction.bytes) {
        (number @ ICONST_M1..=ICONST_5, _) => Some(i64::from(number) - i64::from(ICONST_0)),
        (BIPUSH, [_, byte]) => Some((*byte as i8).into()),
        (SIPUSH, [_, high, low]) => Some(i16::from_be_bytes([*high, *low]).into()),
        (LDC | LDC_W, _) => constant(instruction.pool_index()),
        _ => None,
    }
}

/// Whether the VM calls such methods by itself, in the middle of a method that calls nothing there: to initialise a class, to load one, to
/// link method handles. Programs call the others, too.
pub(crate) fn may_be_called_by_vm(class: &str, name: &[u8], descriptor: &[u8], is_static: bool) -> bool {
    const LINKERS: [&[u8]; 5] =
        [b"linkCallSite", b"linkMethod", b"linkDynamicConstant", b"linkMethodHandleConstant", b"findMethodHandleType"];
    name == b"<clinit>"
        || !is_static && name == b"loadClass" && descriptor == b"(Ljava/lang/String;)Ljava/lang/Class;"
        || class == "java/lang/invoke/MethodHandleNatives" && LINKERS.contains(&name)
}

/// Whether the thread has the same value behind a call in a class as before, so that the next call on the line needs no store: methods with hooks restore it
/// when they return. Others may catch what one with hooks has thrown, and then leave the value of its last call: native methods, as far as the class declares
/// them itself, the forms of method handles, and the classes below. Constructors are excluded because their stores tell walks where the `new` is.
pub(crate) fn keeps_value(caller: &ClassFile<'_>, called: &MemberRef<'_>) -> bool {
    !caller.declares_native(called) && restores_value(called.class, called.name)
}

fn restores_value(class: &[u8], name: &[u8]) -> bool {
    const HANDLES: [&[u8]; 2] = [b"java/lang/invoke/MethodHandle", b"java/lang/invoke/VarHandle"];
    // An `invokedynamic` names no class.
    let has_forms = class.is_empty() || HANDLES.contains(&class);
    let has_no_hooks = class != b"java/lang/Object" && BEFORE_THREADS.iter().any(|early| early.as_bytes() == class);
    !has_forms && !has_no_hooks && name != b"<init>"
}

/// Classes whose methods run before the VM has a thread object to keep the value in: `currentThread()` is null there.
const BEFORE_THREADS: [&str; 12] = [
    "java/lang/Class",
    "java/lang/Object",
    "java/lang/ThreadGroup",
    "java/lang/StringCoding",
    "java/lang/StringUTF16",
    "java/lang/String$CaseInsensitiveComparator",
    "java/lang/Runtime",
    "java/lang/Runtime$Version",
    "java/io/ObjectStreamField",
    "jdk/internal/misc/VM",
    "jdk/internal/misc/Unsafe",
    "sun/misc/Unsafe",
];

/// Methods that have no hooks for stacks, since they run before there is a thread object.
pub(crate) fn runs_before_threads(class: &str, name: &[u8]) -> bool {
    const INITIALIZERS: [&str; 4] =
        ["java/lang/String", "java/lang/System", "java/lang/Thread", "java/lang/Thread$Constants"];
    BEFORE_THREADS.contains(&class)
        || class == "java/lang/System" && (name.ends_with(b"SecurityManager") || name == b"registerNatives")
        || (name == b"<clinit>" || name == b"runtimeSetup") && INITIALIZERS.contains(&class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classfile::{ConstantPool, Reader};

    #[test]
    fn code_tells_what_is_called_at_which_site() {
        // A pool without constants.
        let pool = ConstantPool::read(&mut Reader::new(&[0, 1])).unwrap();
        let mut pool = PoolBuilder::new(&pool);
        let tracked = Tracked { caller: Some((1, 2)), own: 300, first_site: 1000, by_vm: false };
        for index in [0, 1, 2, 5, 6, 127, 128, 129, 32_767, 32_768, 32_769, 70_000] {
            for called in [Called::Other, Called::ConstructorOfNew, Called::Super] {
                let mut emit = Emitter::new(&mut pool);
                let mut code = vec![LCONST_0];
                let value = tracked.value(emit.start(), 1000 + index, called).bytes().to_vec();
                code.extend(&value);
                let last: Vec<_> = crate::code::Instructions::new(&code).map(|it| Some(it.unwrap())).collect();
                let last: Vec<_> = std::iter::repeat_n(None, 4).chain(last).collect();
                let large = |_| Some(if called == Called::Super { -i64::from(index) } else { index.into() });
                let found = value_of(last[last.len() - 4..].try_into().unwrap(), 300, large);
                assert_eq!(found, Some((index, called)), "{value:?}");
            }
        }
    }

    #[test]
    fn what_may_have_no_hooks_keeps_no_value() {
        for (class, name) in [
            ("", "makeConcatWithConstants"),
            ("java/lang/invoke/MethodHandle", "invokeExact"),
            ("java/lang/Class", "getEnumConstants"),
            ("java/lang/StringBuilder", "<init>"),
        ] {
            assert!(!restores_value(class.as_bytes(), name.as_bytes()), "{class}.{name}");
        }
        for class in ["java/lang/Object", "java/lang/StringBuilder", "com/acme/Shop"] {
            assert!(restores_value(class.as_bytes(), b"toString"), "{class}");
        }
    }

    #[test]
    fn a_constant_tells_the_first_site() {
        for site in [1, 2, 77, 1 << 22, (1 << 30) - 1] {
            assert_eq!(first_site_of(constant_of(site)), Some(site));
        }
        assert_eq!(first_site_of(MULTIPLIER), None);
        assert_eq!(MULTIPLIER.wrapping_mul(inverse(MULTIPLIER)), 1);
    }
}
