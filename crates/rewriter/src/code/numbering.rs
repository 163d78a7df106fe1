//! Value numbering: which references in local variables and on the operand stack are certainly the same object.
//!
//! Numbers are valid within basic blocks. At a join every reference gets a new number.

use super::Instruction;
use super::flow::{Flow, State, Value};
use super::opcode::*;
use crate::classfile::{Constant, ConstantPool, Malformed};

/// Processes the instructions of a method in order and assigns a number to each reference.
#[derive(Debug)]
pub struct Numbering<'f, 'c, 'a> {
    flow: &'f Flow<'c, 'a>,
    pool: &'c ConstantPool<'a>,
    /// Whether local 0 is `this` throughout the method.
    keeps_this: bool,
    state: Option<State>,
    next: u32,
}

/// The number of null and of constants, which live as long as their class.
pub const CONSTANT: u32 = 0;

impl<'f, 'c, 'a> Numbering<'f, 'c, 'a> {
    /// Starts before the first instruction. With `keeps_this`, local 0 is [`Value::This`] throughout; in constructors
    /// the flow tracks it.
    pub fn new(flow: &'f Flow<'c, 'a>, pool: &'c ConstantPool<'a>, keeps_this: bool) -> Self {
        Self { flow, pool, keeps_this, state: None, next: CONSTANT + 1 }
    }

    /// Returns the numbered state before an instruction, given the state of the flow, and whether paths may join there.
    pub fn before(&mut self, instruction: &Instruction<'_>, flow: Option<&State>) -> (Option<&State>, bool) {
        let starts = self.state.is_none() || self.flow.is_join(instruction.pc);
        if starts {
            self.state = flow.cloned();
            if let Some(state) = &mut self.state {
                if let Some(first) =
                    state.locals.first_mut().filter(|first| self.keeps_this && **first == Value::Reference)
                {
                    *first = Value::This;
                }
                for value in state.locals.iter_mut().chain(&mut state.stack) {
                    if *value == Value::Reference {
                        *value = Value::Numbered(self.next);
                        self.next += 1;
                    }
                }
            }
        }
        (self.state.as_ref(), starts)
    }

    /// Advances past an instruction. Returns the number of the reference that it produced: its result, or the object
    /// that it initialized.
    pub fn behind(&mut self, instruction: &Instruction<'_>) -> Result<Option<u32>, Malformed> {
        // After a `jsr` the state of the flow is used.
        if ends_block(instruction.opcode) || matches!(instruction.opcode, JSR | JSR_W) {
            self.state = None;
        }
        let Some(state) = &mut self.state else { return Ok(None) };
        state.step(instruction, self.pool)?;
        let is_constant = match instruction.opcode {
            ACONST_NULL => true,
            LDC | LDC_W => {
                matches!(self.pool.loadable(instruction.pool_index())?, Constant::String(_) | Constant::Class(_))
            }
            _ => false,
        };
        let number = if is_constant { CONSTANT } else { self.next };
        let mut made = None;
        // All existing values have numbers, so values without one are new, and all of these are one object.
        let (locals, top) = match instruction.opcode {
            INVOKESPECIAL => (&mut state.locals[..], 0),
            _ => (&mut [][..], state.stack.len().saturating_sub(1)),
        };
        for value in locals.iter_mut().chain(&mut state.stack[top..]) {
            if *value == Value::Reference {
                *value = Value::Numbered(number);
                made = Some(number);
            }
        }
        self.next += u32::from(made.is_some() && !is_constant);
        Ok(made)
    }
}
