//! Virtual threads: switches of the stack that a carrier thread's events belong to.
//!
//! ```text
//! jdk.internal.vm.Continuation.run():
//!   invokestatic enterSpecial     ->  aload_0 enterContinuation(Object)  invokestatic enterSpecial
//!                                     aload_0 getfield parent leaveContinuation(Object)
//! ```
//!
//! `enterSpecial` starts or resumes the continuation's frames and returns when they yield or end, so all events between
//! the two hooks belong to the continuation. Afterwards, events belong to the enclosing continuation, or (null) to the
//! carrier itself.

use super::{Emitter, Hook};
use crate::classfile::{ConstantPool, Malformed};
use crate::code::opcode::*;
use crate::code::{CodeEditor, Instruction};

/// The class whose `run` switches stacks.
pub(crate) const CONTINUATION: &str = "jdk/internal/vm/Continuation";

/// Around the call of `enterSpecial`; the receiver of the calling method must be the continuation.
pub(crate) fn switch_stack(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    pool: &ConstantPool<'_>,
) -> Result<(), Malformed> {
    if instruction.opcode != INVOKESTATIC || pool.member_ref(instruction.pool_index())?.name != b"enterSpecial" {
        return Ok(());
    }
    emit.start().local(ALOAD, 0).call(Hook::EnterContinuation);
    editor.before(instruction, emit.bytes(), 1);
    emit.start().local(ALOAD, 0).field(GETFIELD, CONTINUATION, "parent", "Ljdk/internal/vm/Continuation;");
    emit.call(Hook::LeaveContinuation);
    editor.behind(instruction, emit.bytes(), 1);
    Ok(())
}
