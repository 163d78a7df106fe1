//! Updates of reference slots.
//!
//! ```text
//! putfield                        ->  dup2  <ref> putField(Object,Object,I)  putfield
//! putstatic (of its own class)    ->  dup  <ref> putStatic(Object,I)  putstatic
//! putstatic (of another class)    ->  dup  putstatic  <ref> putStatic(Object,I)
//! aastore                         ->  astore t  dup2  aload t  aastore  aload t  putElement(Object,I,Object)
//! aastore (of a huge method)      ->  storeElement(Object[],I,Object)
//! ```
//!
//! A store that throws must not be reported. `putField` checks for a null receiver itself; `aastore` can fail in three
//! ways, so its hook is behind it, which is sound because `aastore` never synchronizes. A `putstatic` of another class
//! may first run that class's initializer, whose own stores must come first.
//!
//! The table initializers of some resource bundles consist of thousands of `aastore`s and would exceed 65535 bytes. In
//! these the hook itself stores the element, which takes two extra bytes instead of ten. It also reports the string
//! that it stores, so the `ldc` before it needs no hook.

use super::{Emitter, Hook};
use crate::classfile::{ConstantPool, Malformed};
use crate::code::opcode::*;
use crate::code::{CodeEditor, Instruction};

/// Constant pool index of the field if the instruction stores a reference to one.
pub(crate) fn field_ref_of(instruction: &Instruction<'_>, pool: &ConstantPool<'_>) -> Result<Option<u16>, Malformed> {
    if !matches!(instruction.opcode, PUTFIELD | PUTSTATIC) {
        return Ok(None);
    }
    let index = instruction.pool_index();
    let descriptor = pool.member_ref(index)?.descriptor;
    Ok(matches!(descriptor.first(), Some(b'L' | b'[')).then_some(index))
}

/// Before a `putfield` to an initialized object.
pub(crate) fn put_field(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    field_ref: u32,
) {
    emit.start().op(DUP2).int(field_ref).call(Hook::PutField);
    editor.before(instruction, emit.bytes(), 3);
}

/// Before or behind a `putstatic`.
pub(crate) fn put_static(
    editor: &mut CodeEditor<'_, '_>,
    emit: &mut Emitter<'_>,
    instruction: &Instruction<'_>,
    field_ref: u32,
    is_own_field: bool,
) {
    if is_own_field {
        emit.start().op(DUP).int(field_ref).call(Hook::PutStatic);
        editor.before(instruction, emit.bytes(), 2);
    } else {
        editor.before(instruction, emit.start().op(DUP).bytes(), 1);
        emit.start().int(field_ref).call(Hook::PutStatic);
        editor.behind(instruction, emit.bytes(), 1);
    }
}

/// Around an `aastore`.
pub(crate) fn put_element(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, instruction: &Instruction<'_>) {
    let value = editor.scratch_local();
    emit.start().local(ASTORE, value).op(DUP2).local(ALOAD, value);
    editor.before(instruction, emit.bytes(), 2);
    emit.start().local(ALOAD, value).call(Hook::PutElement);
    editor.behind(instruction, emit.bytes(), 1);
}

/// Replaces an `aastore`.
pub(crate) fn store_element(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, instruction: &Instruction<'_>) {
    editor.replace(instruction, emit.start().call(Hook::StoreElement).bytes());
}
