//! Leaf methods: entry and exit in one event.
//!
//! ```text
//! int size() { return size; }          ->  aload_0  getfield size  aload_0  <id> leaf(Object,I)  ireturn
//! void next() { position++; }          ->  … iadd  aload_0  <id> leaf(Object,I)  putfield position  return
//! static int twice(int n)              ->  <id> leaf(I)  iload_0 …
//! ```
//!
//! A *leaf* does nothing between its entry and its exit that has a record, or that could have one elsewhere first: it calls
//! nothing, makes nothing, stores no references, initialises and loads no class, catches nothing, waits for no monitor, and
//! cannot fail. So both events say the same, as long as the one hook comes where both could be: behind all that the method reads
//! of other threads, since what led to that comes first in the trace, and before all that it writes for them. Loops are left
//! out: the entry of a method that waits for another thread comes when it is entered.

use super::{Emitter, Hook, field_ref_of, method};
use crate::classfile::{ClassFile, Constant, Malformed, Member, access};
use crate::code::opcode::{self, *};
use crate::code::{CodeAttribute, CodeEditor, Flow, Instruction, StackMap, Value};

/// Where the hook of a leaf goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// It reads nothing: the hook comes first.
    Entry,
    /// It writes nothing: the hook comes before each return.
    Returns,
    /// It reads, then it writes: before the instruction with this index.
    Before(usize),
}

impl Leaf {
    /// Where the hook goes if the method is a leaf.
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

    /// The hook on entry, if it goes there.
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

    /// The hook before an instruction, if it goes there.
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

/// Whether the instruction names a static field that the class itself declares. Its methods run only once it is initialised, or
/// while it is, by their thread; other fields may have an initialiser run first.
fn is_own_static(instruction: &Instruction<'_>, class: &ClassFile<'_>) -> Result<bool, Malformed> {
    let field = class.pool.member_ref(instruction.pool_index())?;
    let is_declared = || {
        class.fields.iter().any(|own| own.name == field.name && own.descriptor == field.descriptor && own.is_static())
    };
    Ok(class.access & access::INTERFACE == 0 && field.class == class.name && is_declared())
}

/// Whether all fields that are read and written are those of `this`, which is not null. As with
/// [`can_throw`](super::can_throw), fields that are not there are left out of account.
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
