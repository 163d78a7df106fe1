//! Constructors: before `super(…)`, `this` cannot be passed to a hook.
//!
//! ```text
//! simple:   <id> entry(I)
//! complex:  <id> entryInit(I)  istore s
//!           …
//!           iload s  <id> superCall(II)  invokespecial super.<init>
//! any, before super(…):  dup  <id> exitThrow(Object,I)  athrow           frame: [uninitializedThis]
//! any, after it:         dup  aload_0  <id> exitThrow(Object,Object,I)  athrow
//! putfield f of this before super(…): behind the super call  aload_0  dup  getfield f  <ref> putField(…)
//! ```
//!
//! A constructor is *simple* if nothing observable can happen on the thread between its entry and its `super(…)`; see
//! `docs/inside/events.md`. The site of a complex one's `new` is kept in a local variable while its arguments allocate.

use super::{Emitter, Hook, field_ref_of};
use crate::classfile::{Constant, ConstantPool, Malformed};
use crate::code::opcode::*;
use crate::code::{CodeAttribute, CodeEditor, EditError, Flow, Frame, StackMap, Value, VerificationType};

/// What data-flow analysis reveals about a constructor.
#[derive(Debug, Default)]
pub struct Constructor {
    /// Whether other code can run before `super(…)`.
    pub is_complex: bool,
    /// Indexes of the instructions that call `super(…)` or `this(…)`.
    pub super_calls: Vec<usize>,
    /// Ranges of pcs at which `this` is not initialized yet, excluding the super calls.
    pub before_super: Vec<(u32, u32)>,
    /// Ranges of pcs at which `this` is initialized.
    pub after_super: Vec<(u32, u32)>,
    /// Whether local 0 is the uninitialized `this` throughout `before_super`.
    pub early_this_in_place: bool,
    /// Whether local 0 is `this` throughout `after_super`.
    pub this_in_place: bool,
    /// Fields of reference type stored to in `this` before `super(…)`, as constant pool indexes.
    pub early_fields: Vec<u16>,
    /// Pcs of those stores.
    pub early_stores: Vec<u32>,
}

impl Constructor {
    /// Derives the properties from the data-flow analysis.
    pub fn new(code: &CodeAttribute<'_>, flow: &Flow<'_, '_>, pool: &ConstantPool<'_>) -> Result<Self, Malformed> {
        let mut found = Self { early_this_in_place: true, this_in_place: true, ..Self::default() };
        let mut failure = None;
        flow.visit(|index, state| {
            let instruction = &code.instructions[index];
            let Some(state) = state else { return };
            let range = (instruction.pc, instruction.next_pc());
            if !state.before_super {
                found.this_in_place &= state.locals.first() == Some(&Value::This);
                extend(&mut found.after_super, range);
                return;
            }
            found.early_this_in_place &= state.locals.first() == Some(&Value::UninitializedThis);
            let result = (|| {
                if instruction.opcode == INVOKESPECIAL {
                    let member = pool.member_ref(instruction.pool_index())?;
                    let depth = crate::code::parameter_slots(member.descriptor);
                    if member.name == b"<init>" && state.from_top(depth) == Value::UninitializedThis {
                        found.super_calls.push(index);
                        return Ok(());
                    }
                }
                extend(&mut found.before_super, range);
                if let (PUTFIELD, Some(field), Value::UninitializedThis) =
                    (instruction.opcode, field_ref_of(instruction, pool)?, state.from_top(1))
                {
                    found.early_stores.push(instruction.pc);
                    if !found.early_fields.contains(&field) {
                        found.early_fields.push(field);
                    }
                }
                found.is_complex |= match instruction.opcode {
                    GETSTATIC
                    | PUTSTATIC
                    | INVOKEVIRTUAL..=ANEWARRAY
                    | ATHROW
                    | CHECKCAST
                    | INSTANCEOF
                    | MULTIANEWARRAY => true,
                    LDC | LDC_W | LDC2_W => !matches!(
                        pool.loadable(instruction.pool_index())?,
                        Constant::Integer(_)
                            | Constant::Float(_)
                            | Constant::Long(_)
                            | Constant::Double(_)
                            | Constant::String(_)
                    ),
                    _ => false,
                };
                Ok(())
            })();
            if let Err(error) = result {
                failure.get_or_insert(error);
            }
        })?;
        failure.map_or(Ok(found), Err)
    }

    /// On entry; `keeps_site`, for complex constructors only, saves the pending site.
    pub(crate) fn entry(
        &self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        method: u32,
        events: bool,
        keeps_site: bool,
    ) {
        if !keeps_site {
            if events {
                emit.start().int(method).call(Hook::Entry);
                editor.at_entry(emit.bytes(), 1);
            }
            return;
        }
        let saved = editor.saved_local();
        if events {
            emit.start().int(method).call(Hook::EntryInit);
        } else {
            emit.start().call(Hook::TakeSite);
        }
        emit.local(ISTORE, saved);
        editor.at_entry(emit.bytes(), 1);
    }

    /// Before and behind the calls of `super(…)`; `field_ref` returns the ids of fields whose updates are reported, or
    /// `None` if updates are not.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn super_calls(
        &self,
        code: &CodeAttribute<'_>,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        method: u32,
        events: bool,
        keeps_site: bool,
        field_ref: impl Fn(u16) -> Option<u32>,
    ) {
        for &index in &self.super_calls {
            let call = &code.instructions[index];
            if keeps_site {
                let saved = editor.saved_local();
                emit.start().local(ILOAD, saved);
                if events {
                    emit.int(method).call(Hook::SuperCall);
                } else {
                    emit.call(Hook::Site);
                }
                editor.before(call, emit.bytes(), 2);
            }
            if self.early_this_in_place {
                for &field in &self.early_fields {
                    if let Some(id) = field_ref(field) {
                        emit.start().local(ALOAD, 0).op(DUP).op_index(GETFIELD, field).int(id).call(Hook::PutField);
                        editor.behind(call, emit.bytes(), 3);
                    }
                }
            }
        }
    }

    /// Adds the local variable with the saved site to the frames before `super(…)`.
    pub(crate) fn add_saved_local(&self, frames: &mut StackMap, saved: u16) -> Result<(), EditError> {
        /// Maximum number of types inserted to fill the gap up to a high-numbered variable.
        const MOST_FILLED: usize = 1 << 22;
        let mut filled = 0;
        for Frame { locals, .. } in &mut frames.frames {
            if !locals.contains(&VerificationType::UninitializedThis) {
                continue;
            }
            let slots: usize = locals.iter().map(|kind| kind.slots()).sum();
            let gap = usize::from(saved).saturating_sub(slots);
            filled += gap;
            if filled > MOST_FILLED {
                return Err(EditError::TooManySlots);
            }
            locals.extend(std::iter::repeat_n(VerificationType::Top, gap));
            locals.push(VerificationType::Integer);
        }
        Ok(())
    }
}

/// Appends a range to an ordered list, merging adjacent ones.
fn extend(ranges: &mut Vec<(u32, u32)>, (start, end): (u32, u32)) {
    match ranges.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ => ranges.push((start, end)),
    }
}
