//! Data-flow analysis: the contents of local variables and operand stack before each instruction.
//!
//! The rewriter only needs to know which values are uninitialized objects, and from which `new`; it does not
//! distinguish other references. In methods with stack map frames, these give the state at every join (JVMS §4.10.1)
//! and a single pass is enough; older methods need a fixed-point iteration (JVMS §4.10.2.2).

use std::collections::{BTreeMap, BTreeSet};

use super::descriptor::{parameter_slots, parameters, return_descriptor};
use super::opcode::{self, *};
use super::{CodeAttribute, Frame, Instruction, StackMap, VerificationType};
use crate::classfile::{Constant, ConstantPool, Malformed};

/// Abstract value of a local variable or stack slot. `long` and `double` take two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Unknown or unusable.
    Top,
    /// An `int` or `float`.
    Word,
    /// The lower-numbered slot of a `long` or `double`.
    Wide,
    /// The higher-numbered slot of a `long` or `double`.
    WideHigh,
    /// A reference to an initialized object, or null.
    Reference,
    /// The same with a value number: see [`Numbering`](super::Numbering). The flow itself does not produce these.
    Numbered(u32),
    /// `this`: initialized in a constructor, or in another method if the flow was told to track it.
    This,
    /// `this` in a constructor before `super(…)`.
    UninitializedThis,
    /// An object from the `new` at this pc before its constructor has run.
    Uninitialized(u32),
    /// A return address pushed by `jsr`.
    ReturnAddress,
}

/// The abstract state before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Local variables up to the last one in use; higher ones are unusable.
    pub locals: Vec<Value>,
    /// Operand stack, top last.
    pub stack: Vec<Value>,
    /// In a constructor: `super(…)` has not been called yet (flagThisUninit of JVMS §4.10.1.4), wherever `this` is.
    pub before_super: bool,
}

impl State {
    fn on_entry(receiver: Option<Value>, descriptor: &[u8], max_locals: u16) -> Result<Self, &'static str> {
        let before_super = receiver == Some(Value::UninitializedThis);
        let mut state = State { locals: Vec::new(), stack: Vec::new(), before_super };
        state.locals.extend(receiver);
        for parameter in parameters(descriptor) {
            state.stack.clear();
            state.push_descriptor(parameter);
            state.locals.extend_from_slice(&state.stack);
        }
        state.stack.clear();
        if state.locals.len() > max_locals.into() {
            return Err("the arguments do not fit the local variables");
        }
        Ok(state)
    }

    /// Converts a stack map frame.
    fn of_frame(frame: &Frame, this_class: Option<&[u8]>, pool: &ConstantPool<'_>) -> Result<Self, Malformed> {
        let (mut locals, stack) = (slots(&frame.locals), slots(&frame.stack));
        let before_super = locals.contains(&Value::UninitializedThis) || stack.contains(&Value::UninitializedThis);
        if let (Some(this_class), Some(&VerificationType::Object(class))) = (this_class, frame.locals.first())
            && class != 0
            && pool.class_name(class)? == this_class
        {
            locals[0] = Value::This;
        }
        Ok(State { locals, stack, before_super })
    }

    /// The value `depth` slots below the top of the stack (0: the top).
    pub fn from_top(&self, depth: usize) -> Value {
        self.stack.len().checked_sub(depth + 1).map_or(Value::Top, |at| self.stack[at])
    }

    fn pop(&mut self) -> Result<Value, &'static str> {
        self.stack.pop().ok_or("the operand stack is empty")
    }

    fn drop(&mut self, slots: usize) -> Result<(), &'static str> {
        let left = self.stack.len().checked_sub(slots).ok_or("the operand stack has too few values")?;
        self.stack.truncate(left);
        Ok(())
    }

    fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    fn push_wide(&mut self) {
        self.stack.extend([Value::Wide, Value::WideHigh]);
    }

    fn push_descriptor(&mut self, descriptor: &[u8]) {
        match descriptor.first() {
            Some(b'V') | None => {}
            Some(b'J' | b'D') => self.push_wide(),
            Some(b'L' | b'[') => self.push(Value::Reference),
            Some(_) => self.push(Value::Word),
        }
    }

    fn local(&self, index: u16) -> Value {
        self.locals.get(usize::from(index)).copied().unwrap_or(Value::Top)
    }

    fn set_local(&mut self, index: u16, value: Value) {
        let index = usize::from(index);
        if self.locals.len() <= index {
            self.locals.resize(index + 1, Value::Top);
        }
        self.locals[index] = value;
    }

    /// Replaces all copies of a value: `<init>` initializes all of them at once.
    fn replace(&mut self, from: Value, to: Value) {
        for value in self.locals.iter_mut().chain(&mut self.stack) {
            if *value == from {
                *value = to;
            }
        }
    }

    /// Copies the top `count` slots below the next `below` slots (the `dup` family).
    fn duplicate(&mut self, count: usize, below: usize) -> Result<(), &'static str> {
        let at = self.stack.len().checked_sub(count + below).ok_or("the operand stack has too few values")?;
        let copied = self.stack[at + below..].to_vec();
        self.stack.splice(at..at, copied);
        Ok(())
    }

    /// Applies an instruction to the state.
    pub(super) fn step(&mut self, instruction: &Instruction<'_>, pool: &ConstantPool<'_>) -> Result<(), Malformed> {
        self.apply(instruction, pool).map_err(|error| error.or_at(instruction.pc as usize))
    }

    fn apply(&mut self, instruction: &Instruction<'_>, pool: &ConstantPool<'_>) -> Result<(), Malformed> {
        match instruction.opcode {
            LDC | LDC_W | LDC2_W => match pool.loadable(instruction.pool_index())? {
                Constant::Long(_) | Constant::Double(_) => self.push_wide(),
                Constant::Integer(_) | Constant::Float(_) => self.push(Value::Word),
                Constant::Dynamic(descriptor) => self.push_descriptor(descriptor),
                _ => self.push(Value::Reference),
            },
            op @ GETSTATIC..=PUTFIELD => {
                let descriptor = pool.member_ref(instruction.pool_index())?.descriptor;
                let slots = if matches!(descriptor, b"J" | b"D") { 2 } else { 1 };
                match op {
                    GETSTATIC => self.push_descriptor(descriptor),
                    PUTSTATIC => self.drop(slots).map_err(Malformed::somewhere)?,
                    GETFIELD => {
                        self.drop(1).map_err(Malformed::somewhere)?;
                        self.push_descriptor(descriptor);
                    }
                    _ => self.drop(slots + 1).map_err(Malformed::somewhere)?,
                }
            }
            op @ INVOKEVIRTUAL..=INVOKEDYNAMIC => {
                let member = pool.member_ref(instruction.pool_index())?;
                self.drop(parameter_slots(member.descriptor)).map_err(Malformed::somewhere)?;
                if !matches!(op, INVOKESTATIC | INVOKEDYNAMIC) {
                    let receiver = self.pop().map_err(Malformed::somewhere)?;
                    match receiver {
                        Value::UninitializedThis if member.name == b"<init>" => {
                            self.replace(receiver, Value::This);
                            self.before_super = false;
                        }
                        Value::Uninitialized(_) if member.name == b"<init>" => self.replace(receiver, Value::Reference),
                        _ => {}
                    }
                }
                self.push_descriptor(return_descriptor(member.descriptor));
            }
            _ => self.apply_plain(instruction).map_err(Malformed::somewhere)?,
        }
        Ok(())
    }

    /// Applies an instruction that does not use the constant pool.
    fn apply_plain(&mut self, instruction: &Instruction<'_>) -> Result<(), &'static str> {
        use Value::*;
        match instruction.opcode {
            NOP | GOTO | GOTO_W | IINC | RET | RETURN | CHECKCAST => {}
            ACONST_NULL => self.push(Reference),
            ICONST_M1..=ICONST_5 | FCONST_0..=FCONST_2 | BIPUSH | SIPUSH => self.push(Word),
            LCONST_0 | LCONST_1 | DCONST_0 | DCONST_1 => self.push_wide(),
            ILOAD | FLOAD | ILOAD_0..=ILOAD_3 | FLOAD_0..=FLOAD_3 => self.push(Word),
            LLOAD | DLOAD | LLOAD_0..=LLOAD_3 | DLOAD_0..=DLOAD_3 => self.push_wide(),
            ALOAD | ALOAD_0..=ALOAD_3 => {
                let value = self.local(instruction.local().unwrap_or(0));
                self.push(value);
            }
            IALOAD | FALOAD | BALOAD | CALOAD | SALOAD => {
                self.drop(2)?;
                self.push(Word);
            }
            LALOAD | DALOAD => {
                self.drop(2)?;
                self.push_wide();
            }
            AALOAD => {
                self.drop(2)?;
                self.push(Reference);
            }
            ISTORE..=ASTORE | ISTORE_0..=ASTORE_3 => {
                let index = instruction.local().unwrap_or(0);
                let top = self.pop()?;
                if top == WideHigh {
                    self.pop()?;
                    self.set_local(index, Wide);
                    self.set_local(index.saturating_add(1), WideHigh);
                } else {
                    self.set_local(index, top);
                }
                // A store to the second slot of a long or double makes the first unusable.
                if index > 0 && self.local(index - 1) == Wide {
                    self.set_local(index - 1, Top);
                }
            }
            IASTORE | FASTORE | AASTORE | BASTORE | CASTORE | SASTORE => self.drop(3)?,
            LASTORE | DASTORE => self.drop(4)?,
            POP
            | IFEQ..=IFLE
            | IFNULL
            | IFNONNULL
            | TABLESWITCH
            | LOOKUPSWITCH
            | MONITORENTER
            | MONITOREXIT
            | IRETURN
            | FRETURN
            | ARETURN
            | ATHROW => self.drop(1)?,
            POP2 | IF_ICMPEQ..=IF_ACMPNE | LRETURN | DRETURN => self.drop(2)?,
            DUP => self.duplicate(1, 0)?,
            DUP_X1 => self.duplicate(1, 1)?,
            DUP_X2 => self.duplicate(1, 2)?,
            DUP2 => self.duplicate(2, 0)?,
            DUP2_X1 => self.duplicate(2, 1)?,
            DUP2_X2 => self.duplicate(2, 2)?,
            SWAP => {
                let (top, under) = (self.pop()?, self.pop()?);
                self.stack.extend([top, under]);
            }
            IADD | FADD | ISUB | FSUB | IMUL | FMUL | IDIV | FDIV | IREM | FREM | ISHL | ISHR | IUSHR | IAND | IOR
            | IXOR | FCMPL | FCMPG => {
                self.drop(2)?;
                self.push(Word);
            }
            LADD | DADD | LSUB | DSUB | LMUL | DMUL | LDIV | DDIV | LREM | DREM | LAND | LOR | LXOR => self.drop(2)?,
            LSHL | LSHR | LUSHR => self.drop(1)?,
            INEG | FNEG | LNEG | DNEG | I2F | F2I | I2B | I2C | I2S | L2D | D2L => {}
            I2L | I2D | F2L | F2D => {
                self.drop(1)?;
                self.push_wide();
            }
            L2I | L2F | D2I | D2F => {
                self.drop(2)?;
                self.push(Word);
            }
            LCMP | DCMPL | DCMPG => {
                self.drop(4)?;
                self.push(Word);
            }
            JSR | JSR_W => self.push(ReturnAddress),
            NEW => self.push(Uninitialized(instruction.pc)),
            NEWARRAY | ANEWARRAY => {
                self.drop(1)?;
                self.push(Reference);
            }
            ARRAYLENGTH | INSTANCEOF => {
                self.drop(1)?;
                self.push(Word);
            }
            MULTIANEWARRAY => {
                self.drop(instruction.bytes[3].into())?;
                self.push(Reference);
            }
            _ => return Err("no such opcode"),
        }
        Ok(())
    }

    /// Merges another state into this one; returns whether this one changed.
    fn merge(&mut self, other: &State) -> Result<bool, &'static str> {
        if self.stack.len() != other.stack.len() {
            return Err("the operand stack has different depths where two paths meet");
        }
        let mut changed = self.locals.len() > other.locals.len() || (other.before_super && !self.before_super);
        self.before_super |= other.before_super;
        self.locals.truncate(other.locals.len());
        let pairs = self.locals.iter_mut().zip(&other.locals).chain(self.stack.iter_mut().zip(&other.stack));
        for (mine, &theirs) in pairs {
            if *mine != theirs {
                let joined = match (*mine, theirs) {
                    (Value::This | Value::Reference, Value::This | Value::Reference) => Value::Reference,
                    _ => Value::Top,
                };
                changed |= *mine != joined;
                *mine = joined;
            }
        }
        Ok(changed)
    }
}

/// Result of the analysis of one method.
#[derive(Debug)]
pub struct Flow<'c, 'a> {
    code: &'c CodeAttribute<'a>,
    pool: &'c ConstantPool<'a>,
    entry: State,
    joins: Joins<'c>,
}

/// States at the joins.
#[derive(Debug)]
enum Joins<'c> {
    /// As declared by frames. `this_class` is set if `this` is to be tracked.
    Declared { frames: &'c [Frame], this_class: Option<&'c [u8]> },
    /// As computed by the iteration, by pc.
    Found(BTreeMap<u32, State>),
}

/// Maximum work of the iteration in slots copied or compared. Real methods stay far below; only a malicious one exceeds
/// it.
const MOST_WORK: usize = 1 << 26;

impl<'c, 'a> Flow<'c, 'a> {
    /// Runs the analysis. `receiver` is `None` for static methods. `this_class` names the class: with it, local 0 in a
    /// frame is recognized as `this` in a constructor, or in any other method that never stores to local 0. Offsets in
    /// errors are relative to the code.
    pub fn new(
        code: &'c CodeAttribute<'a>,
        pool: &'c ConstantPool<'a>,
        receiver: Option<Value>,
        descriptor: &[u8],
        this_class: &'c [u8],
        frames: Option<&'c StackMap>,
    ) -> Result<Self, Malformed> {
        let entry = State::on_entry(receiver, descriptor, code.max_locals).map_err(|what| Malformed::at(0, what))?;
        let joins = match frames {
            Some(map) => {
                let is_told = matches!(receiver, Some(Value::UninitializedThis | Value::This));
                let this_class = is_told.then_some(this_class);
                Joins::Declared { frames: &map.frames, this_class }
            }
            None => Joins::Found(Iteration::run(code, pool, &entry)?),
        };
        Ok(Self { code, pool, entry, joins })
    }

    /// Whether several paths may join at this pc.
    pub fn is_join(&self, pc: u32) -> bool {
        match &self.joins {
            Joins::Declared { frames, .. } => frames.binary_search_by_key(&pc, |frame| frame.pc).is_ok(),
            Joins::Found(joins) => joins.contains_key(&pc),
        }
    }

    /// Calls `visit` with the index of each instruction and the state before it, in order of pc; the state is `None`
    /// for unreachable code.
    pub fn visit(&self, mut visit: impl FnMut(usize, Option<&State>)) -> Result<(), Malformed> {
        let mut current = Some(self.entry.clone());
        let mut declared = match &self.joins {
            Joins::Declared { frames, .. } => frames.iter(),
            Joins::Found(_) => [].iter(),
        }
        .peekable();
        for (index, instruction) in self.code.instructions.iter().enumerate() {
            match &self.joins {
                Joins::Declared { this_class, .. } => {
                    if let Some(frame) = declared.next_if(|frame| frame.pc == instruction.pc) {
                        let state = State::of_frame(frame, *this_class, self.pool);
                        current = Some(state.map_err(|error| error.or_at(instruction.pc as usize))?);
                    }
                }
                Joins::Found(joins) => {
                    if let Some(state) = joins.get(&instruction.pc) {
                        match &mut current {
                            Some(reused) => reused.clone_from(state),
                            None => current = Some(state.clone()),
                        }
                    }
                }
            }
            visit(index, current.as_ref());
            if let Some(state) = &mut current {
                if opcode::ends_block(instruction.opcode) {
                    current = None;
                } else {
                    state.step(instruction, self.pool)?;
                    // After a `jsr`, the state is the merge of those at its `ret`s and not the one with the return
                    // address.
                    if matches!(instruction.opcode, JSR | JSR_W) {
                        current = None;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Fixed-point iteration over the joins of a method without frames.
struct Iteration<'c, 'a> {
    code: &'c CodeAttribute<'a>,
    joins: BTreeMap<u32, State>,
    /// Pcs whose state has changed since they were last processed.
    todo: BTreeSet<u32>,
    work: usize,
}

impl<'c, 'a> Iteration<'c, 'a> {
    fn run(
        code: &'c CodeAttribute<'a>,
        pool: &ConstantPool<'_>,
        entry: &State,
    ) -> Result<BTreeMap<u32, State>, Malformed> {
        let is_join = code.joins();

        let mut found = Self { code, joins: BTreeMap::new(), todo: BTreeSet::new(), work: 0 };
        found.join(0, entry)?;
        // Return targets of subroutines with the stack depth there, and the stack depths at their `ret`s. Assumes that
        // a subroutine leaves the stack depth unchanged, which distinguishes calls at different depths.
        let mut returns: BTreeMap<u32, usize> = BTreeMap::new();
        let mut ends: BTreeMap<u32, State> = BTreeMap::new();
        while let Some(start) = found.todo.pop_first() {
            let Some(mut state) = found.joins.get(&start).cloned() else { continue };
            let first = code.instructions.partition_point(|instruction| instruction.pc < start);
            for instruction in &code.instructions[first..] {
                if instruction.pc != start && is_join[instruction.pc as usize] {
                    found.join(instruction.pc, &state)?;
                    break;
                }
                found.throw(instruction.pc, &state)?;
                let may_change_locals =
                    matches!(instruction.opcode, ISTORE..=ASTORE | ISTORE_0..=ASTORE_3 | INVOKESPECIAL);
                let depth = state.stack.len();
                state.step(instruction, pool)?;
                if may_change_locals {
                    // The handler may also see the locals as they are after this instruction.
                    found.throw(instruction.next_pc(), &state)?;
                }
                for target in instruction.targets() {
                    found.join(target as u32, &state)?;
                }
                match instruction.opcode {
                    JSR | JSR_W if (instruction.next_pc() as usize) < code.code.len() => {
                        returns.insert(instruction.next_pc(), depth);
                        for end in ends.values().filter(|end| end.stack.len() == depth) {
                            found.join(instruction.next_pc(), end)?;
                        }
                        break;
                    }
                    RET => {
                        for (&pc, _) in returns.iter().filter(|&(_, &depth)| depth == state.stack.len()) {
                            found.join(pc, &state)?;
                        }
                        ends.insert(instruction.pc, state);
                        break;
                    }
                    op if opcode::ends_block(op) || matches!(op, JSR | JSR_W) => break,
                    _ => {}
                }
            }
        }
        Ok(found.joins)
    }

    /// Merges the state that a handler sees into the handlers that cover `pc`.
    fn throw(&mut self, pc: u32, state: &State) -> Result<(), Malformed> {
        self.work += self.code.exceptions.len() / 16;
        for entry in &self.code.exceptions {
            if (entry.start.into()..entry.end.into()).contains(&pc) {
                let thrown = State { stack: vec![Value::Reference], ..state.clone() };
                self.join(entry.handler.into(), &thrown)?;
            }
        }
        Ok(())
    }

    fn join(&mut self, pc: u32, state: &State) -> Result<(), Malformed> {
        use std::collections::btree_map::Entry;
        self.work += 1 + state.locals.len() + state.stack.len();
        if self.work > MOST_WORK {
            return Err(Malformed::at(pc as usize, "the data flow of this method is too tangled to follow"));
        }
        let changed = match self.joins.entry(pc) {
            Entry::Vacant(entry) => {
                entry.insert(state.clone());
                true
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().merge(state).map_err(|what| Malformed::at(pc as usize, what))?
            }
        };
        if changed {
            self.todo.insert(pc);
        }
        Ok(())
    }
}

fn slots(types: &[VerificationType]) -> Vec<Value> {
    let mut values = Vec::with_capacity(types.len() + 2);
    for kind in types {
        let value = match kind {
            VerificationType::Top => Value::Top,
            VerificationType::Integer | VerificationType::Float => Value::Word,
            VerificationType::Long | VerificationType::Double => {
                values.push(Value::Wide);
                Value::WideHigh
            }
            VerificationType::Null | VerificationType::Object(_) => Value::Reference,
            VerificationType::UninitializedThis => Value::UninitializedThis,
            VerificationType::Uninitialized(pc) => Value::Uninitialized((*pc).into()),
        };
        values.push(value);
    }
    values
}
