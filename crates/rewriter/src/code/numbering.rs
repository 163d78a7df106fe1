//! Value numbering: which references in local variables and on the operand stack are surely the same object.
//!
//! Numbers hold along straight lines of code. Where paths meet every reference gets a number of its own.

use super::Instruction;
use super::flow::{Flow, State, Value};
use super::opcode::*;
use crate::classfile::{Constant, ConstantPool, Malformed};

/// Follows the instructions of a method in order, with a number for each reference.
#[derive(Debug)]
pub struct Numbering<'f, 'c, 'a> {
    flow: &'f Flow<'c, 'a>,
    pool: &'c ConstantPool<'a>,
    /// Local 0 is `this` from start to end.
    keeps_this: bool,
    state: Option<State>,
    next: u32,
}

/// The number of null and of constants, which live as long as their class.
pub const CONSTANT: u32 = 0;

impl<'f, 'c, 'a> Numbering<'f, 'c, 'a> {
    /// Before the first instruction. With `keeps_this` local 0 holds [`Value::This`] throughout; in constructors the flow knows.
    pub fn new(flow: &'f Flow<'c, 'a>, pool: &'c ConstantPool<'a>, keeps_this: bool) -> Self {
        Self { flow, pool, keeps_this, state: None, next: CONSTANT + 1 }
    }

    /// The state before an instruction, from that of the flow, and whether paths may meet there.
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

    /// Goes on behind an instruction. Returns the number of the reference that it has made: its result, or the object that it
    /// has initialised.
    pub fn behind(&mut self, instruction: &Instruction<'_>) -> Result<Option<u32>, Malformed> {
        // Behind a `jsr` the flow knows better.
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
        // What was there has a number: whatever has none is new, and all of it is one object.
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
