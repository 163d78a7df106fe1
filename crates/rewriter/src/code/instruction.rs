//! Instructions, decoded in place.

use super::opcode::{self, *};
use crate::classfile::Malformed;

/// One instruction of a method's code.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    /// Offset in the code.
    pub pc: u32,
    /// The opcode; for a `wide` form, the opcode after the `wide`.
    pub opcode: u8,
    /// Whether it has a `wide` prefix.
    pub wide: bool,
    pub bytes: &'a [u8],
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl<'a> Instruction<'a> {
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Offset of the next instruction.
    pub fn next_pc(&self) -> u32 {
        self.pc + self.bytes.len() as u32
    }

    /// Constant pool index operand of an instruction that has one.
    pub fn pool_index(&self) -> u16 {
        if self.opcode == LDC { self.bytes[1].into() } else { self.u16_at(1) }
    }

    /// Index of the local variable of a load, store, `iinc` or `ret` in any of its forms.
    pub fn local(&self) -> Option<u16> {
        Some(match self.opcode {
            ILOAD..=ALOAD | ISTORE..=ASTORE | IINC | RET => {
                if self.wide {
                    self.u16_at(2)
                } else {
                    self.bytes[1].into()
                }
            }
            ILOAD_0..=ALOAD_3 => u16::from((self.opcode - ILOAD_0) % 4),
            ISTORE_0..=ASTORE_3 => u16::from((self.opcode - ISTORE_0) % 4),
            _ => return None,
        })
    }

    /// Target of a branch; `None` for switches and all other instructions. May be outside the code.
    pub fn branch_target(&self) -> Option<i64> {
        let offset = match self.opcode {
            GOTO_W | JSR_W => i32_at(self.bytes, 1),
            GOTO | JSR => (self.u16_at(1) as i16).into(),
            op if opcode::is_conditional(op) => (self.u16_at(1) as i16).into(),
            _ => return None,
        };
        Some(i64::from(self.pc) + i64::from(offset))
    }

    /// Number of padding bytes in a switch at this pc.
    fn padding(&self) -> usize {
        switch_padding(self.pc)
    }

    /// Offsets in `bytes` of a switch's 32-bit jump offsets, the default first.
    pub fn switch_offsets(&self) -> impl Iterator<Item = usize> + use<> {
        let start = 1 + self.padding();
        let (first, step, count) = match self.opcode {
            TABLESWITCH => (start + 12, 4, (self.bytes.len() - start - 12) / 4),
            LOOKUPSWITCH => (start + 12, 8, (self.bytes.len() - start - 8) / 8),
            _ => (start, 4, 0),
        };
        let default = matches!(self.opcode, TABLESWITCH | LOOKUPSWITCH).then_some(start);
        default.into_iter().chain((0..count).map(move |index| first + index * step))
    }

    /// The bytes of a switch after its padding.
    pub fn switch_body(&self) -> &'a [u8] {
        &self.bytes[1 + self.padding()..]
    }

    /// Targets of a branch or switch. May be outside the code.
    pub fn targets(&self) -> impl Iterator<Item = i64> + use<'a> {
        let (pc, bytes) = (i64::from(self.pc), self.bytes);
        let switch = self.switch_offsets().map(move |at| pc + i64::from(i32_at(bytes, at)));
        self.branch_target().into_iter().chain(switch)
    }
}

/// Number of bytes between the opcode of a switch at `pc` and its aligned operands.
pub fn switch_padding(pc: u32) -> usize {
    3 - (pc as usize & 3)
}

/// Iterator over the instructions of a code array.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    code: &'a [u8],
    pc: usize,
}

impl<'a> Instructions<'a> {
    /// Starts at the first instruction.
    pub fn new(code: &'a [u8]) -> Self {
        Self { code, pc: 0 }
    }

    fn read(&self) -> Result<Instruction<'a>, &'static str> {
        let rest = &self.code[self.pc..];
        let mut opcode = rest[0];
        let mut wide = false;
        let length = match opcode::fixed_length(opcode).ok_or("no such opcode")? {
            0 if opcode == WIDE => {
                wide = true;
                opcode = *rest.get(1).ok_or("the code ends inside an instruction")?;
                match opcode {
                    ILOAD..=ALOAD | ISTORE..=ASTORE | RET => 4,
                    IINC => 6,
                    _ => return Err("wide before an instruction that has no wide form"),
                }
            }
            0 => {
                let start = 1 + switch_padding(self.pc as u32);
                let head = if opcode == TABLESWITCH { 12 } else { 8 };
                if rest.len() < start + head {
                    return Err("the code ends inside a switch");
                }
                let count = if opcode == TABLESWITCH {
                    let (low, high) = (i32_at(rest, start + 4), i32_at(rest, start + 8));
                    if low > high {
                        return Err("tableswitch with low > high");
                    }
                    (i64::from(high) - i64::from(low) + 1) * 4 + 12
                } else {
                    let pairs = i32_at(rest, start + 4);
                    if pairs < 0 {
                        return Err("lookupswitch with a negative number of pairs");
                    }
                    i64::from(pairs) * 8 + 8
                };
                start + count as usize
            }
            length => length,
        };
        let bytes = rest.get(..length).ok_or("the code ends inside an instruction")?;
        Ok(Instruction { pc: self.pc as u32, opcode, wide, bytes })
    }
}

impl<'a> Iterator for Instructions<'a> {
    /// The offset in an error is relative to the code; the caller adds the offset of the code.
    type Item = Result<Instruction<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pc >= self.code.len() {
            return None;
        }
        match self.read() {
            Ok(instruction) => {
                self.pc += instruction.bytes.len();
                Some(Ok(instruction))
            }
            Err(what) => {
                let at = self.pc;
                self.pc = self.code.len();
                Some(Err(Malformed::at(at, what)))
            }
        }
    }
}
