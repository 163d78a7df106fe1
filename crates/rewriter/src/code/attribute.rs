//! The `Code` attribute (JVMS §4.7.3).

use super::opcode::{JSR, JSR_W};
use super::{Instruction, Instructions};
use crate::classfile::{Attribute, ConstantPool, Malformed};

/// An entry of the exception table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionEntry {
    pub start: u16,
    /// End of the range (exclusive); may equal the code's length.
    pub end: u16,
    pub handler: u16,
    /// Constant pool index of the class that the handler catches; 0 for any.
    pub catch_type: u16,
}

/// A method's code, with decoded instructions and validated offsets.
#[derive(Clone, Debug)]
pub struct CodeAttribute<'a> {
    pub max_stack: u16,
    pub max_locals: u16,
    pub code: &'a [u8],
    pub instructions: Vec<Instruction<'a>>,
    pub exceptions: Vec<ExceptionEntry>,
    pub attributes: Vec<Attribute<'a>>,
    /// Offset of the code array in the class file.
    pub offset: usize,
}

impl<'a> CodeAttribute<'a> {
    /// For each pc, and the end of the code, whether control may come there from elsewhere than the instruction before.
    pub fn joins(&self) -> Vec<bool> {
        let mut joins = vec![false; self.code.len() + 1];
        for instruction in &self.instructions {
            instruction.targets().for_each(|target| joins[target as usize] = true);
            if matches!(instruction.opcode, JSR | JSR_W) {
                joins[instruction.next_pc() as usize] = true;
            }
        }
        self.exceptions.iter().for_each(|entry| joins[usize::from(entry.handler)] = true);
        joins
    }

    /// Parses the attribute. Fails unless every branch target and every offset in the exception table is the start of
    /// an instruction.
    pub fn read(attribute: &Attribute<'a>, pool: &ConstantPool<'a>) -> Result<Self, Malformed> {
        let mut reader = attribute.reader();
        let max_stack = reader.u16()?;
        let max_locals = reader.u16()?;
        let length_at = reader.offset();
        let length = reader.u32()? as usize;
        if length == 0 || length > 65535 {
            return Err(Malformed::at(length_at, format!("code of {length} bytes: 1 to 65535 are allowed")));
        }
        let offset = reader.offset();
        let code = reader.take(length)?;
        let mut instructions = Vec::with_capacity(length / 2);
        for instruction in Instructions::new(code) {
            instructions.push(instruction.map_err(|error| Malformed::at(offset + error.offset, error.what))?);
        }
        let starts = Boundaries::new(&instructions, length);
        for instruction in &instructions {
            if let Some(target) = instruction.targets().find(|&target| !starts.is_start(target)) {
                return Err(Malformed::at(
                    offset + instruction.pc as usize,
                    format!("a branch goes to {target}, where no instruction begins"),
                ));
            }
        }
        let mut exceptions = Vec::new();
        for _ in 0..reader.u16()? {
            let at = reader.offset();
            let entry = ExceptionEntry {
                start: reader.u16()?,
                end: reader.u16()?,
                handler: reader.u16()?,
                catch_type: reader.u16()?,
            };
            let end_is_right = usize::from(entry.end) == length || starts.is_start(entry.end.into());
            if !starts.is_start(entry.start.into()) || !end_is_right || !starts.is_start(entry.handler.into()) {
                return Err(Malformed::at(at, "an exception table entry points between instructions"));
            }
            if entry.start >= entry.end {
                return Err(Malformed::at(at, "an exception table entry covers nothing"));
            }
            exceptions.push(entry);
        }
        let attributes = Attribute::list(&mut reader, pool)?;
        if !reader.at_end() {
            return Err(Malformed::at(reader.offset(), "bytes after the end of the Code attribute"));
        }
        Ok(Self { max_stack, max_locals, code, instructions, exceptions, attributes, offset })
    }

    /// Returns the first attribute of the code with this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes())
    }
}

struct Boundaries(Vec<u64>);

impl Boundaries {
    fn new(instructions: &[Instruction<'_>], length: usize) -> Self {
        let mut bits = vec![0; length / 64 + 1];
        for instruction in instructions {
            bits[instruction.pc as usize / 64] |= 1 << (instruction.pc % 64);
        }
        Self(bits)
    }

    fn is_start(&self, pc: i64) -> bool {
        usize::try_from(pc / 64)
            .ok()
            .filter(|_| pc >= 0)
            .and_then(|word| self.0.get(word))
            .is_some_and(|bits| bits >> (pc % 64) & 1 == 1)
    }
}

/// Source lines by code offset (JVMS §4.7.12), sorted.
#[derive(Clone, Debug, Default)]
pub struct LineTable(Vec<(u16, u16)>);

impl LineTable {
    /// Collects all `LineNumberTable` attributes of a method; a malformed one is ignored.
    pub fn of(code_attributes: &[Attribute<'_>]) -> Self {
        let mut lines = Vec::new();
        for attribute in code_attributes.iter().filter(|attribute| attribute.name == b"LineNumberTable") {
            let rows = attribute.info.get(2..).unwrap_or_default();
            lines.extend(
                rows.chunks_exact(4)
                    .map(|row| (u16::from_be_bytes([row[0], row[1]]), u16::from_be_bytes([row[2], row[3]]))),
            );
        }
        lines.sort_by_key(|&(pc, _)| pc);
        Self(lines)
    }

    /// Source line of the instruction at `pc`; 0 if unknown.
    pub fn line(&self, pc: u32) -> u32 {
        let after = self.0.partition_point(|&(start, _)| u32::from(start) <= pc);
        after.checked_sub(1).map_or(0, |at| self.0[at].1.into())
    }
}
