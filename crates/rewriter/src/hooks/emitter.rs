//! Emits the short instruction sequences that hooks consist of.

use crate::classfile::{PoolBuilder, PoolFull};
use crate::code::opcode::*;
use crate::hooks::{HEAP_PROXY, HEAP_PROXY_CALLS};

macro_rules! hooks {
    ($($(#[$doc:meta])* $variant:ident $class:ident $name:literal $descriptor:literal)*) => {
        /// A method of `HeapProxy` or `HeapProxyCalls` (`docs/inside/events.md`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Hook { $($(#[$doc])* $variant),* }

        /// Class, name and descriptor of the method of each [`Hook`], in their order.
        pub const HOOKS: &[(&str, &str, &str)] = &[$(($class, $name, $descriptor)),*];
    };
}

hooks! {
    /// Entry of a static method or of a simple constructor.
    Entry HEAP_PROXY "entry" "(I)V"
    /// Entry of an instance method.
    EntryOf HEAP_PROXY "entry" "(Ljava/lang/Object;I)V"
    /// Entry of a complex constructor.
    EntryInit HEAP_PROXY "entryInit" "(I)I"
    /// A complex constructor calls `super(…)`.
    SuperCall HEAP_PROXY "superCall" "(II)V"
    /// Normal exit.
    Exit HEAP_PROXY "exit" "(I)V"
    /// Entry and exit of a static leaf method.
    Leaf HEAP_PROXY "leaf" "(I)V"
    /// Entry and exit of an instance leaf method.
    LeafOf HEAP_PROXY "leaf" "(Ljava/lang/Object;I)V"
    /// Exit by exception.
    ExitThrow HEAP_PROXY "exitThrow" "(Ljava/lang/Object;I)V"
    /// Exit of a constructor by exception, after `super(…)`.
    ExitThrowOf HEAP_PROXY "exitThrow" "(Ljava/lang/Object;Ljava/lang/Object;I)V"
    /// Before `athrow`.
    Thrown HEAP_PROXY "thrown" "(Ljava/lang/Object;I)V"
    /// At the start of an exception handler.
    Handled HEAP_PROXY "handled" "(Ljava/lang/Object;I)V"
    /// Before the constructor call of a `new`.
    Site HEAP_PROXY "site" "(I)V"
    /// The same, with the value of the stack.
    SiteOfStack HEAP_PROXY "site" "(J)V"
    /// On entry of a method that the VM may have called: takes the value of the caller's stack, and returns it as it is then.
    CalledByVm HEAP_PROXY "calledByVm" "(J)J"
    /// Takes the pending site from the thread.
    TakeSite HEAP_PROXY "takeSite" "()I"
    /// At the start of `Object.<init>`.
    Allocated HEAP_PROXY "allocated" "(Ljava/lang/Object;)V"
    /// After `newarray` or `anewarray`.
    AllocatedArray HEAP_PROXY "allocatedArray" "(Ljava/lang/Object;II)V"
    /// The same, with the value of the stack.
    AllocatedArrayOfStack HEAP_PROXY "allocatedArray" "(Ljava/lang/Object;IJ)V"
    /// Replaces `newarray boolean`.
    NewBooleans HEAP_PROXY "newBooleans" "(I)[Z"
    /// Replaces `newarray char`.
    NewChars HEAP_PROXY "newChars" "(I)[C"
    /// Replaces `newarray float`.
    NewFloats HEAP_PROXY "newFloats" "(I)[F"
    /// Replaces `newarray double`.
    NewDoubles HEAP_PROXY "newDoubles" "(I)[D"
    /// Replaces `newarray byte`.
    NewBytes HEAP_PROXY "newBytes" "(I)[B"
    /// Replaces `newarray short`.
    NewShorts HEAP_PROXY "newShorts" "(I)[S"
    /// Replaces `newarray int`.
    NewInts HEAP_PROXY "newInts" "(I)[I"
    /// Replaces `newarray long`.
    NewLongs HEAP_PROXY "newLongs" "(I)[J"
    /// After `multianewarray`.
    AllocatedMulti HEAP_PROXY "allocatedMulti" "(Ljava/lang/Object;II)V"
    /// The same, with the value of the stack.
    AllocatedMultiOfStack HEAP_PROXY "allocatedMulti" "(Ljava/lang/Object;IJ)V"
    /// Before `putfield`.
    PutField HEAP_PROXY "putField" "(Ljava/lang/Object;Ljava/lang/Object;I)V"
    /// Before or after `putstatic`.
    PutStatic HEAP_PROXY "putStatic" "(Ljava/lang/Object;I)V"
    /// After `aastore`.
    PutElement HEAP_PROXY "putElement" "(Ljava/lang/Object;ILjava/lang/Object;)V"
    /// Replaces `aastore`.
    StoreElement HEAP_PROXY "storeElement" "([Ljava/lang/Object;ILjava/lang/Object;)V"
    /// Witness: an object is used.
    Used HEAP_PROXY "used" "(Ljava/lang/Object;)V"
    /// Before a continuation is entered.
    EnterContinuation HEAP_PROXY "enterContinuation" "(Ljava/lang/Object;)V"
    /// After a continuation was left.
    LeaveContinuation HEAP_PROXY "leaveContinuation" "(Ljava/lang/Object;)V"
    /// Adjusts the requested size of a thread's stack.
    StackSize HEAP_PROXY "stackSize" "(J)J"
    /// An object that the VM may have created.
    Made HEAP_PROXY_CALLS "made" "(Ljava/lang/Object;)V"
    /// A string constant.
    Constant HEAP_PROXY_CALLS "constant" "(Ljava/lang/Object;)V"
    /// An object that the VM has created.
    MadeFresh HEAP_PROXY_CALLS "madeFresh" "(Ljava/lang/Object;)V"
    /// An object whose fields native code has set.
    Refreshed HEAP_PROXY_CALLS "refreshed" "(Ljava/lang/Object;)V"
    /// References that the collector has cleared.
    Cleared HEAP_PROXY_CALLS "cleared" "(Ljava/lang/Object;)V"
    /// A reference that is about to be cleared.
    Clearing HEAP_PROXY_CALLS "clearing" "(Ljava/lang/Object;)V"
    /// A call site and its new target.
    Linking HEAP_PROXY_CALLS "linking" "(Ljava/lang/Object;Ljava/lang/Object;)V"
}

/// Collects the bytes of one snippet at a time. If the constant pool is full, it goes on with wrong bytes and
/// [`Emitter::finish`] returns an error: the class is then not instrumented.
#[derive(Debug)]
pub struct Emitter<'p> {
    pool: &'p mut PoolBuilder,
    methods: [u16; HOOKS.len()],
    code: Vec<u8>,
    is_full: bool,
}

impl<'p> Emitter<'p> {
    /// Creates an emitter that adds constants to `pool`.
    pub fn new(pool: &'p mut PoolBuilder) -> Self {
        Self { pool, methods: [0; HOOKS.len()], code: Vec::with_capacity(64), is_full: false }
    }

    /// The constant pool, for other constants.
    pub fn pool(&mut self) -> &mut PoolBuilder {
        self.pool
    }

    /// Fails if the constant pool was full at some point.
    pub fn finish(&self) -> Result<(), PoolFull> {
        if self.is_full { Err(PoolFull) } else { Ok(()) }
    }

    /// Starts a new snippet.
    pub fn start(&mut self) -> &mut Self {
        self.code.clear();
        self
    }

    /// Bytes of the current snippet.
    pub fn bytes(&self) -> &[u8] {
        &self.code
    }

    /// Emits a one-byte instruction.
    pub fn op(&mut self, opcode: u8) -> &mut Self {
        self.code.push(opcode);
        self
    }

    /// Emits an instruction with an existing constant pool index.
    pub fn op_index(&mut self, opcode: u8, index: u16) -> &mut Self {
        self.code.push(opcode);
        self.code.extend_from_slice(&index.to_be_bytes());
        self
    }

    fn constant(&mut self, index: Result<u16, PoolFull>) -> u16 {
        index.unwrap_or_else(|PoolFull| {
            self.is_full = true;
            0
        })
    }

    /// Emits the shortest instruction that pushes an int.
    pub fn int(&mut self, value: u32) -> &mut Self {
        let value = value as i32;
        match (i8::try_from(value), i16::try_from(value)) {
            _ if (0..=5).contains(&value) => self.code.push(ICONST_0 + value as u8),
            (Ok(byte), _) => self.code.extend_from_slice(&[BIPUSH, byte as u8]),
            (_, Ok(short)) => {
                self.code.push(SIPUSH);
                self.code.extend_from_slice(&short.to_be_bytes());
            }
            _ => {
                let index = self.pool.integer(value);
                let index = self.constant(index);
                match u8::try_from(index) {
                    Ok(short) => self.code.extend_from_slice(&[LDC, short]),
                    Err(_) => {
                        self.op_index(LDC_W, index);
                    }
                }
            }
        }
        self
    }

    /// Emits a load or store of a local variable: `opcode` is the general form (`ALOAD`, `ISTORE`, …).
    pub fn local(&mut self, opcode: u8, index: u16) -> &mut Self {
        match u8::try_from(index) {
            Ok(index @ 0..=3) => {
                // The short forms are in the order of the general forms, four for each type.
                let short =
                    if opcode >= ISTORE { ISTORE_0 + (opcode - ISTORE) * 4 } else { ILOAD_0 + (opcode - ILOAD) * 4 };
                self.code.push(short + index);
            }
            Ok(index) => self.code.extend_from_slice(&[opcode, index]),
            Err(_) => {
                self.code.push(WIDE);
                self.op_index(opcode, index);
            }
        }
        self
    }

    /// Emits an instruction with a field operand.
    pub fn field(&mut self, opcode: u8, class: &str, name: &str, descriptor: &str) -> &mut Self {
        let index = self.pool.field_ref(class, name, descriptor);
        let index = self.constant(index);
        self.op_index(opcode, index)
    }

    /// Emits an instruction that pushes a long constant.
    pub fn long(&mut self, value: u64) -> &mut Self {
        let index = self.pool.long(value as i64);
        let index = self.constant(index);
        self.op_index(LDC2_W, index)
    }

    /// Emits an instruction with a method operand.
    pub fn method(&mut self, opcode: u8, class: &str, name: &str, descriptor: &str) -> &mut Self {
        let index = self.pool.method_ref(class, name, descriptor);
        let index = self.constant(index);
        self.op_index(opcode, index)
    }

    /// Emits an `invokestatic` of a hook.
    pub fn call(&mut self, hook: Hook) -> &mut Self {
        let at = hook as usize;
        if self.methods[at] == 0 {
            let (class, name, descriptor) = HOOKS[at];
            let index = self.pool.method_ref(class, name, descriptor);
            self.methods[at] = self.constant(index);
        }
        self.op_index(INVOKESTATIC, self.methods[at])
    }

    /// Emits an `invokestatic` of the method of `class` that replaces another one. If `receiver` is not empty, it is
    /// the type of an additional first argument.
    pub fn stand_in(&mut self, class: &str, name: &[u8], receiver: &[u8], descriptor: &[u8]) -> &mut Self {
        let (name, receiver) = (String::from_utf8_lossy(name), String::from_utf8_lossy(receiver));
        let descriptor = String::from_utf8_lossy(descriptor);
        let index = if receiver.is_empty() {
            self.pool.method_ref(class, &name, &descriptor)
        } else {
            let arguments = descriptor.strip_prefix('(').unwrap_or(&descriptor);
            self.pool.method_ref(class, &name, &format!("(L{receiver};{arguments}"))
        };
        let index = self.constant(index);
        self.op_index(INVOKESTATIC, index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A Java source with hooks, named as readers of a failed test find it.
    #[derive(Clone, Copy)]
    struct Source {
        class: &'static str,
        path: &'static str,
        text: &'static str,
    }

    macro_rules! source {
        ($class:ident $path:literal) => {
            Source { class: $class, path: $path, text: include_str!(concat!("../../../../", $path)) }
        };
    }

    const PROXY: Source = source!(HEAP_PROXY "runtime-java/src/common/java/lang/HeapProxy.java");
    /// In runs with a JVMPI agent, this class replaces the first one; the others are the same.
    const JVMPI_PROXY: Source = source!(HEAP_PROXY "runtime-java/src/jvmpi/java/lang/HeapProxy.java");
    const CALLS: Source = source!(HEAP_PROXY_CALLS "runtime-java/src/common/java/lang/HeapProxyCalls.java");

    fn descriptor(java: &str) -> String {
        match java.strip_suffix("[]") {
            Some(element) => format!("[{}", descriptor(element)),
            None => match java {
                "void" => "V".to_owned(),
                "boolean" => "Z".to_owned(),
                "char" => "C".to_owned(),
                "float" => "F".to_owned(),
                "double" => "D".to_owned(),
                "byte" => "B".to_owned(),
                "short" => "S".to_owned(),
                "int" => "I".to_owned(),
                "long" => "J".to_owned(),
                class => format!("Ljava/lang/{class};"),
            },
        }
    }

    /// Name and descriptor of each public static method.
    fn methods(source: &'static str) -> HashSet<(&'static str, String)> {
        let method = |line: &'static str| {
            let (returns, rest) = line.strip_prefix("    public static ")?.split_once(' ')?;
            let (name, rest) = rest.split_once('(')?;
            let (parameters, _) = rest.split_once(')')?;
            let types = parameters.split(", ").filter_map(|parameter| parameter.rsplit_once(' '));
            let types: String = types.map(|(java, _)| descriptor(java.trim_start_matches("final "))).collect();
            Some((name, format!("({types}){}", descriptor(returns))))
        };
        source.lines().filter_map(method).collect()
    }

    /// A hook without its method fails at run time, with a `NoSuchMethodError`.
    #[test]
    fn every_hook_is_a_method_of_both_heap_proxies() {
        let mut missing = Vec::new();
        for source in [PROXY, JVMPI_PROXY, CALLS] {
            let there = methods(source.text);
            for (_, name, descriptor) in HOOKS.iter().filter(|(class, ..)| *class == source.class) {
                if !there.contains(&(*name, (*descriptor).to_owned())) {
                    missing.push(format!("{}: no public static {name}{descriptor}", source.path));
                }
            }
        }
        assert!(missing.is_empty(), "hooks without a method:\n{}", missing.join("\n"));
    }
}
