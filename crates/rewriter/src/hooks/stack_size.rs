//! The stack size that a program requests for a new thread.
//!
//! ```text
//! putfield stackSize  ->  stackSize(J)J  putfield stackSize
//! ```
//!
//! The VM reads the field when it starts the thread. Hooks enlarge the frames of compiled methods, so a stack of the
//! same size holds fewer of them.

use super::{Emitter, Hook};
use crate::classfile::{ConstantPool, Malformed};
use crate::code::opcode::PUTFIELD;
use crate::code::{CodeEditor, Instruction};

/// The classes with the field: the second one from JDK 19 on.
const OWNERS: [&str; 2] = ["java/lang/Thread", "java/lang/Thread$FieldHolder"];

/// Whether a class of a JDK declares the field.
pub(crate) fn has_stack_size(class: &str) -> bool {
    OWNERS.contains(&class)
}

/// Before a store to the field in the class that declares it.
pub(crate) fn stack_size(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    pool: &ConstantPool<'_>,
) -> Result<(), Malformed> {
    if instruction.opcode == PUTFIELD && pool.member_ref(instruction.pool_index())?.name == b"stackSize" {
        emit.start().call(Hook::StackSize);
        editor.before(instruction, emit.bytes(), 0);
    }
    Ok(())
}
