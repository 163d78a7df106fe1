//! Method entry and exit.
//!
//! ```text
//! static T f(…)                    T g(…)
//!   <id> entry(I)                    aload_0  <id> entry(Object,I)
//!   …                                …
//!   <id> exit(I)                     <id> exit(I)
//!   xreturn                          xreturn
//! any: dup  <id> exitThrow(Object,I)  athrow         covers all of the original code
//! ```
//!
//! The handler is the last in the table, so the method's own handlers have priority. It starts after the entry hook: a
//! stack overflow in the hook leaves neither an M nor an X record.

use super::{Emitter, Hook};
use crate::code::opcode::*;
use crate::code::{CodeAttribute, CodeEditor, HandlerFrame, Instruction};

/// On entry of a method other than a constructor.
pub(crate) fn entry(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, method: u32, has_receiver: bool) {
    if has_receiver {
        emit.start().local(ALOAD, 0).int(method).call(Hook::EntryOf);
    } else {
        emit.start().int(method).call(Hook::Entry);
    }
    editor.at_entry(emit.bytes(), 2);
}

/// Before a return.
pub(crate) fn exit(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    method: u32,
) {
    emit.start().int(method).call(Hook::Exit);
    editor.before(instruction, emit.bytes(), 1);
}

/// Appends the catch-all handler for `ranges`. With `has_this`, local 0 in its frame is the initialized receiver.
pub(crate) fn exceptional_exit(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    method: u32,
    ranges: Vec<(u32, u32)>,
    locals: HandlerFrame,
    has_this: bool,
) {
    emit.start().op(DUP);
    if has_this {
        emit.local(ALOAD, 0).int(method).call(Hook::ExitThrowOf);
    } else {
        emit.int(method).call(Hook::ExitThrow);
    }
    emit.op(ATHROW);
    editor.catch_all(ranges, locals, emit.bytes(), 3);
}

/// Whether the code in `ranges` can throw. Most getters cannot, and need no handler.
///
/// Ignores stack overflow in hooks, asynchronous exceptions, and linkage errors of the class's own fields. In these
/// cases the reader notices at the next event further down the stack that the frame is gone.
pub(crate) fn can_throw(code: &CodeAttribute<'_>, ranges: &[(u32, u32)], has_receiver: bool) -> bool {
    ranges.iter().any(|&(start, end)| {
        let first = code.instructions.partition_point(|instruction| instruction.pc < start);
        let mut before = NOP;
        code.instructions[first..].iter().take_while(|instruction| instruction.pc < end).any(|instruction| {
            let own_field = has_receiver && instruction.opcode == GETFIELD && before == ALOAD_0;
            before = instruction.opcode;
            !own_field && instruction_can_throw(instruction.opcode)
        })
    })
}

pub(super) fn instruction_can_throw(opcode: u8) -> bool {
    !matches!(
        opcode,
        NOP..=SIPUSH | LDC2_W | ILOAD..=ALOAD_3 | ISTORE..=ASTORE_3 | POP..=LMUL | FMUL | DMUL | FDIV | DDIV | FREM | DREM
            | INEG..=RET | TABLESWITCH..=RETURN | IFNULL..=JSR_W
    )
}
