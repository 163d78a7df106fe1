//! Witnesses: uses of references that keep an object alive though no other record shows it.
//!
//! ```text
//! getfield                    ->  dup  used(Object)  getfield
//! iaload                      ->  dup2  pop  used(Object)  iaload
//! f(object, 1L)  (from a local)   aload l  used(Object)  invokestatic f
//! f(g(), 1L)  (from the stack)    lstore t  dup  used(Object)  lload t  invokestatic f
//! ```
//!
//! `docs/semantics.md`, "Uses", defines the uses, and which of them need no record.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use rustc_hash::FxHasher;

use super::{Emitter, Hook};
use crate::classfile::{ClassFile, Constant, ConstantPool, Malformed, MemberRef};
use crate::code::opcode::*;
use crate::code::{CONSTANT, CodeAttribute, CodeEditor, Flow, Instruction, Numbering, State, Value, parameters};
use crate::rewrite::Witness;

/// A use that needs a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Index of the instruction.
    pub(crate) index: usize,
    /// Kinds of the values above the reference on the stack, the deepest first.
    above: Vec<Kind>,
    /// A local variable that also holds the reference, if there is one.
    local: Option<u16>,
}

/// The kinds of values that have their own load and store instructions, in the order of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Long,
    Float,
    Double,
    Reference,
}

impl Kind {
    fn of(descriptor: &[u8]) -> Self {
        match descriptor.first() {
            Some(b'J') => Self::Long,
            Some(b'F') => Self::Float,
            Some(b'D') => Self::Double,
            Some(b'L' | b'[') => Self::Reference,
            _ => Self::Int,
        }
    }

    fn slots(self) -> u16 {
        if matches!(self, Self::Long | Self::Double) { 2 } else { 1 }
    }
}

/// What the other hooks of a method already report.
#[derive(Clone, Debug)]
pub(crate) struct Told<'p> {
    /// Whether entries and exits are reported, with their receivers.
    pub(crate) methods: bool,
    pub(crate) exceptions: bool,
    pub(crate) arrays: bool,
    pub(crate) fields: bool,
    pub(crate) elements: bool,
    /// Handlers that only exceptions reach, in ascending order.
    pub(crate) handlers: &'p [u32],
}

/// Finds the uses in a method that need a witness.
pub(crate) fn uses<'a>(
    class: &ClassFile<'a>,
    code: &CodeAttribute<'a>,
    flow: &Flow<'_, 'a>,
    is_static: bool,
    witness: Witness,
    told: &Told<'_>,
) -> Result<Vec<Use>, Malformed> {
    let stores_this =
        code.instructions.iter().any(|it| matches!(it.opcode, ASTORE | ASTORE_0..=ASTORE_3) && it.local() == Some(0));
    let keeps_this = told.methods && !is_static && !stores_this;
    let mut numbering = Numbering::new(flow, &class.pool, keeps_this);
    let mut search = Search { class, witness, told, mentioned: HashSet::default(), found: Vec::new() };
    let mut failed = Ok(());
    flow.visit(|index, state| {
        if failed.is_ok() {
            failed = search.step(index, &code.instructions[index], state, &mut numbering);
        }
    })?;
    failed.map(|()| search.found)
}

struct Search<'s, 'p, 'a> {
    class: &'s ClassFile<'a>,
    witness: Witness,
    told: &'s Told<'p>,
    /// Value numbers of the objects mentioned since the last call.
    mentioned: HashSet<u32, BuildHasherDefault<FxHasher>>,
    found: Vec<Use>,
}

impl<'a> Search<'_, '_, 'a> {
    fn pool(&self) -> &ConstantPool<'a> {
        &self.class.pool
    }

    fn step(
        &mut self,
        index: usize,
        instruction: &Instruction<'_>,
        state: Option<&State>,
        numbering: &mut Numbering<'_, '_, 'a>,
    ) -> Result<(), Malformed> {
        let (state, starts) = numbering.before(instruction, state);
        if starts {
            self.mentioned.clear();
        }
        let Some(state) = state else { return Ok(()) };
        if starts && self.told.exceptions && self.told.handlers.binary_search(&instruction.pc).is_ok() {
            self.mention(state.from_top(0));
        }
        self.uses(index, instruction, state)?;
        let initialised = self.stores(instruction, state)?;
        if let Some(number) = numbering.behind(instruction)? {
            self.made(instruction, initialised, number);
        }
        Ok(())
    }

    fn mention(&mut self, value: Value) {
        if let Value::Numbered(number) = value {
            self.mentioned.insert(number);
        }
    }

    /// Handles a use of the reference below `above`.
    fn used(&mut self, index: usize, state: &State, above: &[Kind]) {
        let depth: u16 = above.iter().map(|kind| kind.slots()).sum();
        let value = state.from_top(depth.into());
        let Value::Numbered(number) = value else { return };
        if number == CONSTANT || !self.mentioned.insert(number) {
            return;
        }
        let local = state.locals.iter().position(|&local| local == value).and_then(|at| u16::try_from(at).ok());
        self.found.push(Use { index, above: above.to_vec(), local });
    }

    fn uses(&mut self, index: usize, instruction: &Instruction<'_>, state: &State) -> Result<(), Malformed> {
        let all = self.witness == Witness::All;
        match instruction.opcode {
            GETFIELD => {
                let descriptor = self.pool().member_ref(instruction.pool_index())?.descriptor;
                if all || Kind::of(descriptor) == Kind::Reference {
                    self.used(index, state, &[]);
                }
            }
            AALOAD => self.used(index, state, &[Kind::Int]),
            _ if !all => {}
            IALOAD..=SALOAD => self.used(index, state, &[Kind::Int]),
            PUTFIELD => {
                let kind = Kind::of(self.pool().member_ref(instruction.pool_index())?.descriptor);
                if kind != Kind::Reference || !self.told.fields {
                    self.used(index, state, &[kind]);
                }
            }
            IASTORE | BASTORE | CASTORE | SASTORE => self.used(index, state, &[Kind::Int, Kind::Int]),
            LASTORE => self.used(index, state, &[Kind::Int, Kind::Long]),
            FASTORE => self.used(index, state, &[Kind::Int, Kind::Float]),
            DASTORE => self.used(index, state, &[Kind::Int, Kind::Double]),
            AASTORE if !self.told.elements => self.used(index, state, &[Kind::Int, Kind::Reference]),
            ARRAYLENGTH | MONITORENTER | MONITOREXIT | IFNULL | IFNONNULL | CHECKCAST | INSTANCEOF | ARETURN => {
                self.used(index, state, &[]);
            }
            ATHROW if !self.told.exceptions => self.used(index, state, &[]),
            IF_ACMPEQ | IF_ACMPNE => {
                self.used(index, state, &[Kind::Reference]);
                self.used(index, state, &[]);
            }
            INVOKEVIRTUAL..=INVOKEDYNAMIC => {
                let member = self.pool().member_ref(instruction.pool_index())?;
                let kinds: Vec<Kind> = parameters(member.descriptor).map(Kind::of).collect();
                let has_receiver = matches!(instruction.opcode, INVOKEVIRTUAL | INVOKESPECIAL | INVOKEINTERFACE);
                if has_receiver && self.is_native(&member) {
                    self.used(index, state, &kinds);
                }
                for (at, kind) in kinds.iter().enumerate() {
                    if *kind == Kind::Reference {
                        self.used(index, state, &kinds[at + 1..]);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the call may run a native method, which leaves no record of its receiver.
    fn is_native(&self, member: &MemberRef<'_>) -> bool {
        let of_object = match member.name {
            b"getClass" | b"clone" => member.descriptor.starts_with(b"()L"),
            b"hashCode" => member.descriptor == b"()I",
            b"notify" | b"notifyAll" => member.descriptor == b"()V",
            b"wait" => member.descriptor.ends_with(b")V"),
            _ => false,
        };
        of_object || self.class.declares_native(member)
    }

    /// Handles what the instruction itself reports about its operands. Returns whether it is the constructor call of a
    /// `new`.
    fn stores(&mut self, instruction: &Instruction<'_>, state: &State) -> Result<bool, Malformed> {
        match instruction.opcode {
            // The first access to a class runs its initializer.
            op @ (NEW | GETSTATIC | PUTSTATIC) => {
                let index = instruction.pool_index();
                let class =
                    if op == NEW { self.pool().class_name(index)? } else { self.pool().member_ref(index)?.class };
                if class != self.class.name {
                    self.mentioned.clear();
                }
                if op == PUTSTATIC && self.told.fields {
                    self.mention(state.from_top(0));
                }
            }
            LDC | LDC_W if matches!(self.pool().loadable(instruction.pool_index())?, Constant::Dynamic(_)) => {
                self.mentioned.clear();
            }
            PUTFIELD if self.told.fields => {
                let is_reference =
                    Kind::of(self.pool().member_ref(instruction.pool_index())?.descriptor) == Kind::Reference;
                // A store to `this` before `super(…)` is reported later.
                if is_reference && state.from_top(1) != Value::UninitializedThis {
                    self.mention(state.from_top(0));
                    self.mention(state.from_top(1));
                }
            }
            AASTORE if self.told.elements => {
                self.mention(state.from_top(0));
                self.mention(state.from_top(2));
            }
            op @ INVOKEVIRTUAL..=INVOKEDYNAMIC => {
                self.mentioned.clear();
                if op == INVOKESPECIAL {
                    let member = self.pool().member_ref(instruction.pool_index())?;
                    let slots: u16 = parameters(member.descriptor).map(|it| Kind::of(it).slots()).sum();
                    return Ok(matches!(state.from_top(slots.into()), Value::Uninitialized(_)));
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// Handles what the instruction has just reported: an array, or an object by the exit of its constructor.
    fn made(&mut self, instruction: &Instruction<'_>, initialised: bool, number: u32) {
        let is_told = match instruction.opcode {
            NEWARRAY | ANEWARRAY | MULTIANEWARRAY => self.told.arrays,
            INVOKESPECIAL => initialised && self.told.methods,
            _ => false,
        };
        if is_told {
            self.mentioned.insert(number);
        }
    }
}

/// Before the instruction that uses the object.
pub(crate) fn used(editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>, instruction: &Instruction<'_>, used: &Use) {
    emit.start();
    match (used.above.as_slice(), used.local) {
        ([], _) => {
            editor.before(instruction, emit.op(DUP).call(Hook::Used).bytes(), 1);
        }
        (_, Some(local)) => {
            editor.before(instruction, emit.local(ALOAD, local).call(Hook::Used).bytes(), 1);
        }
        ([above], None) if above.slots() == 1 => {
            editor.before(instruction, emit.op(DUP2).op(POP).call(Hook::Used).bytes(), 2);
        }
        (above, None) => {
            let first = editor.spilled_locals(above.iter().map(|kind| kind.slots()).sum());
            let mut places = Vec::with_capacity(above.len());
            let mut place = first;
            for &kind in above.iter().rev() {
                emit.local(ISTORE + kind as u8, place);
                places.push((kind, place));
                place = place.saturating_add(kind.slots());
            }
            emit.op(DUP).call(Hook::Used);
            for &(kind, place) in places.iter().rev() {
                emit.local(ILOAD + kind as u8, place);
            }
            editor.before(instruction, emit.bytes(), 1);
        }
    }
}
