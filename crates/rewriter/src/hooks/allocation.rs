//! Allocations of objects and arrays.
//!
//! ```text
//! Object.<init>:                      aload_0  allocated(Object)  …
//! invokespecial X.<init>          ->  <site> site(I)  invokespecial X.<init>         (of a `new`, without stacks)
//! newarray                        ->  dup  newarray  dup_x1  swap  <site> allocatedArray(Object,I,I)
//! newarray (of a huge method)     ->  newInts(I)[I, and so on
//! multianewarray                  ->  multianewarray  dup  <dims>  <site> allocatedMulti(Object,I,I)
//! ```
//!
//! The length is taken from the stack, so the hook does not have to query the array.
//!
//! A static table of numbers may consist of thousands of small arrays. If their hooks would make a method larger than
//! 65535 bytes, the hook itself allocates each array of numbers, which takes one extra byte instead of nine. There is
//! no room for a site.

use super::{Emitter, Hook};
use crate::classfile::{ConstantPool, Malformed, MemberRef};
use crate::code::opcode::*;
use crate::code::{CodeEditor, Instruction, Instructions};

/// The type that an allocating instruction creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayAllocation {
    /// JVM descriptor of the created object.
    pub descriptor: Vec<u8>,
    /// Number of dimensions that it allocates; 0 for `new`.
    pub dimensions: u8,
}

impl ArrayAllocation {
    /// Returns what this instruction allocates; `None` if it does not allocate.
    pub fn of(instruction: &Instruction<'_>, pool: &ConstantPool<'_>) -> Result<Option<Self>, Malformed> {
        let class = || pool.class_name(instruction.pool_index());
        Ok(Some(match instruction.opcode {
            NEW => Self { descriptor: [b"L", class()?, b";"].concat(), dimensions: 0 },
            NEWARRAY => {
                let element = match instruction.bytes[1] {
                    4 => b'Z',
                    5 => b'C',
                    6 => b'F',
                    7 => b'D',
                    8 => b'B',
                    9 => b'S',
                    10 => b'I',
                    11 => b'J',
                    code => return Err(Malformed::somewhere(format!("newarray of unknown type {code}"))),
                };
                Self { descriptor: vec![b'[', element], dimensions: 1 }
            }
            ANEWARRAY => {
                let element = class()?;
                let descriptor = if element.first() == Some(&b'[') {
                    [b"[", element].concat()
                } else {
                    [b"[L", element, b";"].concat()
                };
                Self { descriptor, dimensions: 1 }
            }
            MULTIANEWARRAY => Self { descriptor: class()?.to_vec(), dimensions: instruction.bytes[3] },
            _ => return Ok(None),
        }))
    }
}

/// Number of sites in a code array: instructions that allocate, and those that call, if stacks are kept track of.
pub fn count_sites(code: &[u8], with_calls: bool) -> Result<u32, Malformed> {
    let mut count = 0;
    for instruction in Instructions::new(code) {
        let opcode = instruction?.opcode;
        let is_call = with_calls && is_call(opcode);
        count += u32::from(is_call || matches!(opcode, NEW | NEWARRAY | ANEWARRAY | MULTIANEWARRAY));
    }
    Ok(count)
}

/// The method that a call names, as `java/util/Map.get`; of an `invokedynamic` only the name.
pub(crate) fn called(member: &MemberRef<'_>) -> Vec<u8> {
    match member.class {
        b"" => member.name.to_vec(),
        class => [class, b".", member.name].concat(),
    }
}

/// At the start of `Object.<init>`.
pub(crate) fn object_init(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>) {
    emit.start().local(ALOAD, 0).call(Hook::Allocated);
    editor.at_entry(emit.bytes(), 1);
}

/// Before the `invokespecial <init>` of a `new`.
pub(crate) fn site(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, instruction: &Instruction<'_>, site: u32) {
    emit.start().int(site).call(Hook::Site);
    editor.before(instruction, emit.bytes(), 1);
}

/// Around an array allocation.
pub(crate) fn array_allocation(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    site: u32,
) {
    if instruction.opcode == MULTIANEWARRAY {
        emit.start().op(DUP).int(instruction.bytes[3].into()).int(site).call(Hook::AllocatedMulti);
        editor.behind(instruction, emit.bytes(), 3);
    } else {
        editor.before(instruction, emit.start().op(DUP).bytes(), 1);
        emit.start().op(DUP_X1).op(SWAP).int(site).call(Hook::AllocatedArray);
        editor.behind(instruction, emit.bytes(), 3);
    }
}

/// Replaces a `newarray`. Returns false if its array type is invalid.
pub(crate) fn new_numbers(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
) -> bool {
    let hook = match instruction.bytes[1] {
        4 => Hook::NewBooleans,
        5 => Hook::NewChars,
        6 => Hook::NewFloats,
        7 => Hook::NewDoubles,
        8 => Hook::NewBytes,
        9 => Hook::NewShorts,
        10 => Hook::NewInts,
        11 => Hook::NewLongs,
        _ => return false,
    };
    editor.replace(instruction, emit.start().call(hook).bytes());
    true
}
