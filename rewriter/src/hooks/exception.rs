//! Throw and handle.
//!
//! ```text
//! athrow          ->  dup  <id> thrown(Object,I)  athrow
//! handler: astore ->  handler: dup  <id> handled(Object,I)  astore
//! ```
//!
//! A handler that ordinary control can reach too (some compilers share its code) gets the hook out of line:
//! the exception table leads to `dup <id> handled goto handler`.

use std::collections::BTreeMap;

use super::{Emitter, Hook};
use crate::code::opcode::{self, *};
use crate::code::{CodeAttribute, CodeEditor, Instruction};

/// Before `athrow`.
pub(crate) fn throw(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    method: u32,
) {
    emit.start().op(DUP).int(method).call(Hook::Thrown);
    editor.before(instruction, emit.bytes(), 2);
}

/// The handlers of a method by pc: whether ordinary control can reach them.
pub(crate) fn handlers(code: &CodeAttribute<'_>) -> BTreeMap<u32, bool> {
    let mut handlers: BTreeMap<u32, bool> =
        code.exceptions.iter().map(|entry| (u32::from(entry.handler), false)).collect();
    if handlers.is_empty() {
        return handlers;
    }
    let mut falls_through = true;
    for instruction in &code.instructions {
        if let (true, Some(shared)) = (falls_through, handlers.get_mut(&instruction.pc)) {
            *shared = true;
        }
        falls_through = !opcode::ends_block(instruction.opcode);
        for target in instruction.targets() {
            if let Some(shared) = handlers.get_mut(&(target as u32)) {
                *shared = true;
            }
        }
    }
    handlers
}

/// At a handler.
pub(crate) fn handle(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    method: u32,
    is_shared: bool,
) {
    emit.start().op(DUP).int(method).call(Hook::Handled);
    if is_shared {
        editor.before_handler(instruction.pc, emit.bytes(), 2);
    } else {
        editor.before(instruction, emit.bytes(), 2);
    }
}
