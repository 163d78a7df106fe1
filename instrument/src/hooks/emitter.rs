//! Writes the few instructions that hooks are made of.

use crate::classfile::{PoolBuilder, PoolFull};
use crate::code::opcode::*;
use crate::hooks::HEAP_PROXY;

macro_rules! hooks {
    ($($(#[$doc:meta])* $variant:ident $name:literal $descriptor:literal)*) => {
        /// A method of `HeapProxy` (`docs/inside/events.md`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Hook { $($(#[$doc])* $variant),* }

        const HOOKS: &[(&str, &str)] = &[$(($name, $descriptor)),*];
    };
}

hooks! {
    /// Entry of a static method or of a simple constructor.
    Entry "entry" "(I)V"
    /// Entry of an instance method.
    EntryOf "entry" "(Ljava/lang/Object;I)V"
    /// Entry of a complex constructor.
    EntryInit "entryInit" "(I)I"
    /// A complex constructor calls `super(…)`.
    SuperCall "superCall" "(II)V"
    /// Normal return.
    Exit "exit" "(I)V"
    /// Exit by exception.
    ExitThrow "exitThrow" "(Ljava/lang/Object;I)V"
    /// Exit of a constructor by exception, after `super(…)`.
    ExitThrowOf "exitThrow" "(Ljava/lang/Object;Ljava/lang/Object;I)V"
    /// `athrow`.
    Thrown "thrown" "(Ljava/lang/Object;I)V"
    /// Start of an exception handler.
    Handled "handled" "(Ljava/lang/Object;I)V"
    /// A `new` is about to be initialised.
    Site "site" "(I)V"
    /// Takes the pending site off the thread.
    TakeSite "takeSite" "()I"
    /// `Object.<init>`.
    Allocated "allocated" "(Ljava/lang/Object;)V"
    /// `newarray`, `anewarray`.
    AllocatedArray "allocatedArray" "(Ljava/lang/Object;II)V"
    /// `multianewarray`.
    AllocatedMulti "allocatedMulti" "(Ljava/lang/Object;II)V"
    /// `putfield`.
    PutField "putField" "(Ljava/lang/Object;Ljava/lang/Object;I)V"
    /// `putstatic`.
    PutStatic "putStatic" "(Ljava/lang/Object;I)V"
    /// `aastore`.
    PutElement "putElement" "(Ljava/lang/Object;ILjava/lang/Object;)V"
    /// In place of an `aastore`.
    StoreElement "storeElement" "([Ljava/lang/Object;ILjava/lang/Object;)V"
    /// A continuation is entered.
    EnterContinuation "enterContinuation" "(Ljava/lang/Object;)V"
    /// A continuation is left.
    LeaveContinuation "leaveContinuation" "(Ljava/lang/Object;)V"
}

/// Collects the bytes of one snippet after another. When the constant pool is full it goes on with wrong
/// bytes and says so in the end ([`Emitter::finish`]): the class is then given up as a whole.
#[derive(Debug)]
pub struct Emitter<'p> {
    pool: &'p mut PoolBuilder,
    methods: [u16; HOOKS.len()],
    code: Vec<u8>,
    is_full: bool,
}

impl<'p> Emitter<'p> {
    /// Constants go to `pool`.
    pub fn new(pool: &'p mut PoolBuilder) -> Self {
        Self { pool, methods: [0; HOOKS.len()], code: Vec::with_capacity(64), is_full: false }
    }

    /// The pool, for other constants.
    pub fn pool(&mut self) -> &mut PoolBuilder {
        self.pool
    }

    /// An error if some constant found no room.
    pub fn finish(&self) -> Result<(), PoolFull> {
        if self.is_full { Err(PoolFull) } else { Ok(()) }
    }

    /// Starts a snippet.
    pub fn start(&mut self) -> &mut Self {
        self.code.clear();
        self
    }

    /// The snippet's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.code
    }

    /// An instruction of one byte.
    pub fn op(&mut self, opcode: u8) -> &mut Self {
        self.code.push(opcode);
        self
    }

    /// An instruction with a constant pool index that the class has already.
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

    /// Pushes an int in the shortest way.
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

    /// A load or store of a local variable: `opcode` is the general form, `ALOAD`, `ISTORE` ….
    pub fn local(&mut self, opcode: u8, index: u16) -> &mut Self {
        match u8::try_from(index) {
            Ok(index @ 0..=3) => {
                // The short forms of each type stand in the order of the general forms, four each.
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

    /// An instruction that names a field.
    pub fn field(&mut self, opcode: u8, class: &str, name: &str, descriptor: &str) -> &mut Self {
        let index = self.pool.field_ref(class, name, descriptor);
        let index = self.constant(index);
        self.op_index(opcode, index)
    }

    /// `invokestatic` of any method of a class.
    pub fn invoke_static(&mut self, class: &str, name: &str, descriptor: &str) -> &mut Self {
        let index = self.pool.method_ref(class, name, descriptor);
        let index = self.constant(index);
        self.op_index(INVOKESTATIC, index)
    }

    /// `invokestatic` of a hook.
    pub fn call(&mut self, hook: Hook) -> &mut Self {
        let at = hook as usize;
        if self.methods[at] == 0 {
            let (name, descriptor) = HOOKS[at];
            let index = self.pool.method_ref(HEAP_PROXY, name, descriptor);
            self.methods[at] = self.constant(index);
        }
        self.op_index(INVOKESTATIC, self.methods[at])
    }
}
