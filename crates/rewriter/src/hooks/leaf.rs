//! Leaf methods, whose entry and exit are a single event.
//!
//! ```text
//! int size() { return size; }          ->  aload_0  getfield size  aload_0  <id> leaf(Object,I)  ireturn
//! void next() { position++; }          ->  … iadd  aload_0  <id> leaf(Object,I)  putfield position  return
//! static int twice(int n)              ->  <id> leaf(I)  iload_0 …
//! ```
//!
//! A *leaf* does nothing between entry and exit that has a record or could cause one elsewhere: it calls nothing,
//! allocates nothing, stores no references, initializes and loads no class, catches nothing, blocks on no monitor, and
//! cannot fail. So a single event can stand for both, as long as its hook is in a place where both could be: after
//! everything that the method reads from other threads, so that the events that led to it come first in the trace, and
//! before everything that it writes for them. Loops are excluded: the entry of a method that spins until another thread
//! acts has to be reported when it is entered.

use super::{Emitter, Hook, field_ref_of, method};
use crate::classfile::{ClassFile, Constant, Malformed, Member, access};
use crate::code::opcode::{self, *};
use crate::code::{CodeAttribute, CodeEditor, Flow, Instruction, StackMap, Value};

/// Position of the hook in a leaf method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// The method reads nothing: on entry.
    Entry,
    /// It writes nothing: before each return.
    Returns,
    /// It reads and then writes: before the instruction with this index.
    Before(usize),
}

impl Leaf {
    /// Returns the position of the hook if the method is a leaf.
    pub(crate) fn of(
        class: &ClassFile<'_>,
        member: &Member<'_>,
        code: &CodeAttribute<'_>,
        frames: Option<&StackMap>,
    ) -> Result<Option<Self>, Malformed> {
        if member.name.starts_with(b"<") || !code.exceptions.is_empty() {
            return Ok(None);
        }
        let has_receiver = !member.is_static();
        let (mut last_load, mut first_store, mut first_branch) = (None, None, None);
        let mut uses_fields = false;
        for (index, instruction) in code.instructions.iter().enumerate() {
            let is_harmless = match instruction.opcode {
                GETFIELD | PUTFIELD => {
                    uses_fields = true;
                    has_receiver
                }
                GETSTATIC | PUTSTATIC => is_own_static(instruction, class)?,
                LDC | LDC_W | LDC2_W => matches!(
                    class.pool.loadable(instruction.pool_index())?,
                    Constant::Integer(_) | Constant::Float(_) | Constant::Long(_) | Constant::Double(_)
                ),
                ASTORE | ASTORE_0..=ASTORE_3 => !has_receiver || instruction.local() != Some(0),
                JSR | JSR_W | RET => false,
                other => !method::instruction_can_throw(other),
            };
            let is_loop = instruction.targets().any(|target| target <= i64::from(instruction.pc));
            if !is_harmless || is_loop || field_ref_of(instruction, &class.pool)?.is_some() {
                return Ok(None);
            }
            match instruction.opcode {
                GETFIELD | GETSTATIC => last_load = Some(index),
                PUTFIELD | PUTSTATIC => first_store = first_store.or(Some(index)),
                _ if instruction.targets().next().is_some() => first_branch = first_branch.or(Some(index)),
                _ => {}
            }
        }
        if uses_fields && !all_of_this(class, member, code, frames)? {
            return Ok(None);
        }
        Ok(match (last_load, first_store) {
            (None, _) => Some(Self::Entry),
            (Some(_), None) => Some(Self::Returns),
            (Some(load), Some(store)) => {
                let is_straight = first_branch.is_none_or(|branch| branch > store);
                (load < store && is_straight).then_some(Self::Before(store))
            }
        })
    }

    /// Inserts the hook on entry if that is its position.
    pub(crate) fn enter(
        self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        method: u32,
        on_object: bool,
    ) -> u64 {
        if self != Self::Entry {
            return 0;
        }
        editor.at_entry(call(emit, method, on_object).bytes(), 2);
        1
    }

    /// Inserts the hook before an instruction if that is its position.
    pub(crate) fn before(
        self,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
        (index, instruction): (usize, &Instruction<'_>),
        method: u32,
        on_object: bool,
    ) -> u64 {
        let is_here = match self {
            Self::Entry => false,
            Self::Returns => opcode::is_return(instruction.opcode),
            Self::Before(store) => store == index,
        };
        if is_here {
            editor.before(instruction, call(emit, method, on_object).bytes(), 2);
        }
        is_here.into()
    }
}

fn call<'e, 'p>(emit: &'e mut Emitter<'p>, method: u32, on_object: bool) -> &'e mut Emitter<'p> {
    emit.start();
    if on_object { emit.local(ALOAD, 0).int(method).call(Hook::LeafOf) } else { emit.int(method).call(Hook::Leaf) }
}

/// Whether the instruction accesses a static field that its own class declares. Its methods run only after or, in the
/// same thread, during its initialization; access to other fields may trigger the initialization of a class.
fn is_own_static(instruction: &Instruction<'_>, class: &ClassFile<'_>) -> Result<bool, Malformed> {
    let field = class.pool.member_ref(instruction.pool_index())?;
    let is_declared = || {
        class.fields.iter().any(|own| own.name == field.name && own.descriptor == field.descriptor && own.is_static())
    };
    Ok(class.access & access::INTERFACE == 0 && field.class == class.name && is_declared())
}

/// Whether all accessed fields are fields of `this`, which is not null. Ignores linkage errors of missing fields, as
/// [`can_throw`](super::can_throw) does.
fn all_of_this(
    class: &ClassFile<'_>,
    member: &Member<'_>,
    code: &CodeAttribute<'_>,
    frames: Option<&StackMap>,
) -> Result<bool, Malformed> {
    let flow = Flow::new(code, &class.pool, Some(Value::This), member.descriptor, class.name, frames)?;
    let mut is_so = Ok(true);
    flow.visit(|index, state| {
        let instruction = &code.instructions[index];
        let Some(state) = state else { return };
        let depth = match instruction.opcode {
            GETFIELD => 0,
            PUTFIELD => match class.pool.member_ref(instruction.pool_index()) {
                Ok(field) => {
                    if matches!(field.descriptor, b"J" | b"D") {
                        2
                    } else {
                        1
                    }
                }
                Err(error) => {
                    is_so = Err(error);
                    return;
                }
            },
            _ => return,
        };
        if state.from_top(depth) != Value::This
            && let Ok(is_so) = &mut is_so
        {
            *is_so = false;
        }
    })?;
    is_so
}
