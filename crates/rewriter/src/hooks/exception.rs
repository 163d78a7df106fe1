//! Exceptions thrown and caught.
//!
//! ```text
//! athrow          ->  dup  <id> thrown(Object,I)  athrow
//! handler: astore ->  handler: dup  <id> handled(Object,I)  astore
//! ```
//!
//! If normal control flow can reach the handler too (some compilers share its code), the hook is out of line: the
//! exception table leads to `dup <id> handled goto handler`.
//!
//! If the handler covers itself, the hook is behind the covered part:
//!
//! ```text
//! handler: astore e  aload lock  monitorexit  ->  … monitorexit  aload e  <id> handled(Object,I)
//! ```
//!
//! `javac` generates such handlers for `synchronized` and `finally`. A hook in the covered part would loop for ever if
//! the stack is full: its `StackOverflowError` would lead to the same hook again. It must not go to another handler
//! either while the monitor is held.

use std::collections::BTreeMap;

use super::{Emitter, Hook};
use crate::code::opcode::{self, *};
use crate::code::{CodeAttribute, CodeEditor, ExceptionEntry, Instruction};

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

/// Handlers of a method by pc, with whether normal control flow can reach them as well.
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

/// At the start of a handler, the instruction with this index.
pub(crate) fn handle(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    code: &CodeAttribute<'_>,
    index: usize,
    method: u32,
    is_shared: bool,
) {
    let instruction = &code.instructions[index];
    if is_shared {
        emit.start().op(DUP).int(method).call(Hook::Handled);
        editor.before_handler(instruction.pc, emit.bytes(), 2);
    } else if let Some((exception, last)) = own_handler(code, index) {
        emit.start().local(ALOAD, exception).int(method).call(Hook::Handled);
        editor.behind_own_handler(instruction.pc, last, emit.bytes(), 2);
    } else {
        emit.start().op(DUP).int(method).call(Hook::Handled);
        editor.before(instruction, emit.bytes(), 2);
    }
}

/// For a handler that covers itself, returns the local variable with the exception and the last instruction of the
/// covered part. `None` if it does not cover itself, or has not the form that compilers generate.
fn own_handler<'c, 'a>(code: &'c CodeAttribute<'a>, index: usize) -> Option<(u16, &'c Instruction<'a>)> {
    let handler = &code.instructions[index];
    let is_own = |entry: &&ExceptionEntry| {
        u32::from(entry.handler) == handler.pc && (entry.start.into()..entry.end.into()).contains(&handler.pc)
    };
    let end = code.exceptions.iter().filter(is_own).map(|entry| u32::from(entry.end)).max()?;
    if !matches!(handler.opcode, ASTORE | ASTORE_0..=ASTORE_3) {
        return None;
    }
    let part = code.instructions[index..].iter().take_while(|instruction| instruction.pc < end);
    let is_plain =
        |instruction: &Instruction<'_>| matches!(instruction.opcode, NOP | ALOAD | ALOAD_0..=ALOAD_3 | MONITOREXIT);
    let goes_on = (end as usize) < code.code.len() && part.clone().skip(1).all(is_plain);
    part.last().filter(|_| goes_on).and_then(|last| Some((handler.local()?, last)))
}
