//! The `StackMapTable` attribute (JVMS §4.7.4), with all frames expanded to full frames.

use super::CodeAttribute;
use super::descriptor::parameters;
use crate::classfile::{Attribute, Malformed, Reader};

/// A verification type (JVMS §4.10.1.2). `long` and `double` are a single entry, as in the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationType {
    Top,
    Integer,
    Float,
    Long,
    Double,
    Null,
    UninitializedThis,
    /// An object type; constant pool index of its class.
    Object(u16),
    /// An uninitialized object; offset of its `new`.
    Uninitialized(u16),
}

use VerificationType::*;

impl VerificationType {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let at = reader.offset();
        Ok(match reader.u8()? {
            0 => Top,
            1 => Integer,
            2 => Float,
            3 => Double,
            4 => Long,
            5 => Null,
            6 => UninitializedThis,
            7 => Object(reader.u16()?),
            8 => Uninitialized(reader.u16()?),
            tag => return Err(Malformed::at(at, format!("verification type {tag} is unknown"))),
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        let (tag, operand) = match self {
            Top => (0, None),
            Integer => (1, None),
            Float => (2, None),
            Double => (3, None),
            Long => (4, None),
            Null => (5, None),
            UninitializedThis => (6, None),
            Object(index) => (7, Some(index)),
            Uninitialized(pc) => (8, Some(pc)),
        };
        out.push(tag);
        if let Some(operand) = operand {
            out.extend_from_slice(&operand.to_be_bytes());
        }
    }

    /// Number of local variables that the type takes.
    pub fn slots(self) -> usize {
        if matches!(self, Long | Double) { 2 } else { 1 }
    }
}

/// A full frame: the types of local variables and operand stack at `pc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub pc: u32,
    pub locals: Vec<VerificationType>,
    pub stack: Vec<VerificationType>,
}

/// Maximum number of types in a method's expanded frames, which take 64 MB: far above the largest known method.
const MOST_TYPES: usize = 1 << 24;

/// All frames of a method in order of pc, including the implicit first one.
#[derive(Clone, Debug)]
pub struct StackMap {
    /// Locals on entry (JVMS §4.10.1.6), to which the first explicit frame is relative.
    pub initial_locals: Vec<VerificationType>,
    pub frames: Vec<Frame>,
}

impl StackMap {
    /// Computes the locals on entry of a method.
    ///
    /// `object` returns the constant pool index for a parameter's reference type (a class name in internal form or an
    /// array descriptor). It may return 0 if frames are only moved: the types on entry then only stand for "unchanged",
    /// and no frame that spells them out is written.
    pub fn initial_locals<E>(
        receiver: Option<VerificationType>,
        descriptor: &[u8],
        mut object: impl FnMut(&[u8]) -> Result<u16, E>,
    ) -> Result<Vec<VerificationType>, E> {
        let mut locals: Vec<_> = receiver.into_iter().collect();
        for parameter in parameters(descriptor) {
            locals.push(match parameter[0] {
                b'J' => Long,
                b'D' => Double,
                b'F' => Float,
                b'[' => Object(object(parameter)?),
                b'L' => Object(object(&parameter[1..parameter.len() - 1])?),
                _ => Integer,
            });
        }
        Ok(locals)
    }

    /// Parses the attribute of a method.
    pub fn read(
        attribute: &Attribute<'_>,
        initial_locals: Vec<VerificationType>,
        code: &CodeAttribute<'_>,
    ) -> Result<Self, Malformed> {
        let mut reader = attribute.reader();
        let count = reader.u16()?;
        let mut frames: Vec<Frame> = Vec::with_capacity(count.into());
        let mut locals = initial_locals.clone();
        let mut next_pc = 0u32;
        let mut instructions = code.instructions.iter();
        let mut types = 0;
        for _ in 0..count {
            let at = reader.offset();
            let tag = reader.u8()?;
            let mut stack = Vec::new();
            let delta = match tag {
                0..=63 => u16::from(tag),
                64..=127 => {
                    stack.push(VerificationType::read(&mut reader)?);
                    u16::from(tag - 64)
                }
                247 => {
                    let delta = reader.u16()?;
                    stack.push(VerificationType::read(&mut reader)?);
                    delta
                }
                248..=250 => {
                    let delta = reader.u16()?;
                    let kept = locals.len().checked_sub((251 - tag).into());
                    locals.truncate(kept.ok_or_else(|| Malformed::at(at, "a frame chops locals that are not there"))?);
                    delta
                }
                251 => reader.u16()?,
                252..=254 => {
                    let delta = reader.u16()?;
                    for _ in 251..tag {
                        locals.push(VerificationType::read(&mut reader)?);
                    }
                    delta
                }
                255 => {
                    let delta = reader.u16()?;
                    locals.clear();
                    for _ in 0..reader.u16()? {
                        locals.push(VerificationType::read(&mut reader)?);
                    }
                    for _ in 0..reader.u16()? {
                        stack.push(VerificationType::read(&mut reader)?);
                    }
                    delta
                }
                _ => return Err(Malformed::at(at, format!("stack map frame type {tag} is reserved"))),
            };
            let pc = next_pc + u32::from(delta);
            if !instructions.any(|instruction| instruction.pc == pc) {
                return Err(Malformed::at(at, format!("a stack map frame at {pc}, where no instruction begins")));
            }
            if locals.iter().map(|kind| kind.slots()).sum::<usize>() > code.max_locals.into() {
                return Err(Malformed::at(at, "a stack map frame with more local variables than the method has"));
            }
            types += locals.len() + stack.len();
            if types > MOST_TYPES {
                return Err(Malformed::at(at, "the stack map frames are too large"));
            }
            next_pc = pc + 1;
            frames.push(Frame { pc, locals: locals.clone(), stack });
        }
        if !reader.at_end() {
            return Err(Malformed::at(reader.offset(), "bytes after the last stack map frame"));
        }
        Ok(Self { initial_locals, frames })
    }

    /// Returns the frame declared at `pc`.
    pub fn at(&self, pc: u32) -> Option<&Frame> {
        self.frames.binary_search_by_key(&pc, |frame| frame.pc).ok().map(|index| &self.frames[index])
    }

    /// Encodes the attribute's content with the shortest form of each frame.
    pub fn write(&self) -> Vec<u8> {
        let mut out = (self.frames.len() as u16).to_be_bytes().to_vec();
        let mut before = &self.initial_locals;
        let mut next_pc = 0;
        for frame in &self.frames {
            let delta = (frame.pc - next_pc) as u16;
            write_frame(&mut out, delta, before, frame);
            before = &frame.locals;
            next_pc = frame.pc + 1;
        }
        out
    }
}

fn write_frame(out: &mut Vec<u8>, delta: u16, before: &[VerificationType], frame: &Frame) {
    let locals = &frame.locals;
    match frame.stack.as_slice() {
        [] if locals == before => {
            if delta < 64 {
                out.push(delta as u8);
            } else {
                out.push(251);
                out.extend_from_slice(&delta.to_be_bytes());
            }
        }
        [only] if locals == before => {
            if delta < 64 {
                out.push(64 + delta as u8);
            } else {
                out.push(247);
                out.extend_from_slice(&delta.to_be_bytes());
            }
            only.write(out);
        }
        [] if locals.len() < before.len() && before.len() - locals.len() <= 3 && before.starts_with(locals) => {
            out.push(251 - (before.len() - locals.len()) as u8);
            out.extend_from_slice(&delta.to_be_bytes());
        }
        [] if locals.len() > before.len() && locals.len() - before.len() <= 3 && locals.starts_with(before) => {
            out.push(251 + (locals.len() - before.len()) as u8);
            out.extend_from_slice(&delta.to_be_bytes());
            for local in &locals[before.len()..] {
                local.write(out);
            }
        }
        stack => {
            out.push(255);
            out.extend_from_slice(&delta.to_be_bytes());
            for list in [locals.as_slice(), stack] {
                out.extend_from_slice(&(list.len() as u16).to_be_bytes());
                for item in list {
                    item.write(out);
                }
            }
        }
    }
}
