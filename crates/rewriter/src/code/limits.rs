//! Detects errors for which the JVM rejects a method but which hooks would hide, since they enlarge the stack and the
//! local variables and move offsets outside the code inside. Such a method is not edited.
//! JVMS §4.7.3, §4.7.12 to §4.7.14, and HotSpot's interpretation of them.

use super::opcode::*;
use super::{CodeAttribute, Instruction, StackMap, VerificationType, parameter_slots, return_descriptor};
use crate::classfile::{Attribute, ConstantPool, Malformed};

/// Checks a method's limits and tables. `receiver`: whether it has one; `frames`: the frames by which it is verified.
pub fn check(
    code: &CodeAttribute<'_>,
    pool: &ConstantPool<'_>,
    major: u16,
    receiver: bool,
    descriptor: &[u8],
    frames: Option<&StackMap>,
) -> Result<(), Malformed> {
    locals(code, usize::from(receiver) + parameter_slots(descriptor))?;
    for attribute in &code.attributes {
        match attribute.name {
            b"LineNumberTable" => lines(code, attribute)?,
            b"LocalVariableTable" => variables(code, pool, attribute)?,
            // In older versions the JVM ignores the attribute.
            b"LocalVariableTypeTable" if major >= 49 => variables(code, pool, attribute)?,
            _ => {}
        }
    }
    let walk = Walk { code, pool };
    match frames {
        Some(map) => walk.by_frames(map),
        None => walk.by_control(),
    }
}

fn locals(code: &CodeAttribute<'_>, arguments: usize) -> Result<(), Malformed> {
    let max = usize::from(code.max_locals);
    if arguments > max {
        return Err(Malformed::at(code.offset, format!("{arguments} slots of arguments, max_locals is {max}")));
    }
    for instruction in &code.instructions {
        let Some(local) = instruction.local() else { continue };
        let is_wide = matches!(
            instruction.opcode,
            LLOAD | DLOAD | LSTORE | DSTORE | LLOAD_0..=LLOAD_3 | DLOAD_0..=DLOAD_3 | LSTORE_0..=LSTORE_3
                | DSTORE_0..=DSTORE_3
        );
        let end = usize::from(local) + if is_wide { 2 } else { 1 };
        if end > max {
            let at = code.offset + instruction.pc as usize;
            return Err(Malformed::at(at, format!("local variable {}, max_locals is {max}", end - 1)));
        }
    }
    Ok(())
}

/// Rows of a table: a count, then rows of `N` 16-bit columns.
fn rows<const N: usize>(attribute: &Attribute<'_>) -> Result<impl Iterator<Item = (usize, [u16; N])>, Malformed> {
    let info = attribute.info;
    let count = info.get(..2).map(|count| usize::from(u16::from_be_bytes([count[0], count[1]])));
    if count.is_none_or(|count| info.len() != 2 + count * N * 2) {
        let name = String::from_utf8_lossy(attribute.name);
        return Err(Malformed::at(attribute.offset, format!("{name} has not the length that its rows need")));
    }
    let rows = info[2..].chunks_exact(N * 2).enumerate();
    Ok(rows.map(|(index, row)| {
        let columns = std::array::from_fn(|column| u16::from_be_bytes([row[column * 2], row[column * 2 + 1]]));
        (attribute.offset + 2 + index * N * 2, columns)
    }))
}

fn lines(code: &CodeAttribute<'_>, attribute: &Attribute<'_>) -> Result<(), Malformed> {
    for (at, [start, _]) in rows::<2>(attribute)? {
        if usize::from(start) >= code.code.len() {
            return Err(Malformed::at(at, format!("a line starts at {start}, past the end of the code")));
        }
    }
    Ok(())
}

fn variables(code: &CodeAttribute<'_>, pool: &ConstantPool<'_>, attribute: &Attribute<'_>) -> Result<(), Malformed> {
    for (at, [start, length, _, kind, index]) in rows::<5>(attribute)? {
        let end = usize::from(start) + usize::from(length);
        if usize::from(start) >= code.code.len() || end > code.code.len() {
            return Err(Malformed::at(at, format!("a local variable lives from {start} to {end}, outside the code")));
        }
        let slots = match pool.utf8(kind) {
            Ok(b"J" | b"D") => 2,
            _ => 1,
        };
        if usize::from(index) + slots > code.max_locals.into() {
            let max = code.max_locals;
            return Err(Malformed::at(at, format!("a table names local variable {index}, max_locals is {max}")));
        }
    }
    Ok(())
}

/// Computes the maximum stack depth.
struct Walk<'w, 'a> {
    code: &'w CodeAttribute<'a>,
    pool: &'w ConstantPool<'a>,
}

/// Maximum nesting of handlers that cover other handlers; beyond it, all remaining handlers are taken to be reachable.
const MOST_ROUNDS: usize = 64;

impl Walk<'_, '_> {
    fn at(&self, pc: u32, depth: i32) -> Result<(), Malformed> {
        if depth > i32::from(self.code.max_stack) {
            let (at, max) = (self.code.offset + pc as usize, self.code.max_stack);
            return Err(Malformed::at(at, format!("the stack is {depth} deep, max_stack is {max}")));
        }
        Ok(())
    }

    /// Single pass: at every join a frame gives the depth.
    fn by_frames(self, map: &StackMap) -> Result<(), Malformed> {
        let mut frames = map.frames.iter().peekable();
        let mut depth = Some(0);
        for instruction in &self.code.instructions {
            if let Some(frame) = frames.next_if(|frame| frame.pc == instruction.pc) {
                let slots = frame.stack.iter().map(|kind| VerificationType::slots(*kind) as i32).sum();
                self.at(instruction.pc, slots)?;
                depth = Some(slots);
            }
            let Some(before) = depth else { continue };
            let after = before + self.change(instruction)?;
            self.at(instruction.pc, after)?;
            depth = (!ends_block(instruction.opcode)).then_some(after);
        }
        Ok(())
    }

    /// Follows all paths; the first path to reach a pc determines its depth. If another path arrives with another
    /// depth, the JVM rejects the method with or without hooks.
    fn by_control(self) -> Result<(), Malformed> {
        let code = self.code;
        let mut depths: Vec<Option<i32>> = vec![None; code.code.len()];
        let mut work = vec![(0, 0)];
        let index_of = |pc: u32| code.instructions.binary_search_by_key(&pc, |instruction| instruction.pc);
        for round in 0.. {
            while let Some((pc, depth)) = work.pop() {
                let (Ok(mut index), mut depth) = (index_of(pc), depth) else { continue };
                while let Some(instruction) = code.instructions.get(index) {
                    let known = &mut depths[instruction.pc as usize];
                    if known.is_some() {
                        break;
                    }
                    *known = Some(depth);
                    self.at(instruction.pc, depth)?;
                    let after = depth + self.change(instruction)?;
                    self.at(instruction.pc, after)?;
                    work.extend(instruction.targets().filter_map(|target| Some((u32::try_from(target).ok()?, after))));
                    if ends_block(instruction.opcode) {
                        break;
                    }
                    // A subroutine pops its return address.
                    let is_call = matches!(instruction.opcode, JSR | JSR_W);
                    depth = if is_call { after - 1 } else { after };
                    index += 1;
                }
            }
            // A handler is reachable from every instruction that it covers.
            let mut before = vec![0];
            before.extend(depths.iter().scan(0, |sum, depth| {
                *sum += usize::from(depth.is_some());
                Some(*sum)
            }));
            let covers =
                |start: u16, end: u16| round >= MOST_ROUNDS || before[usize::from(start)] < before[usize::from(end)];
            let reached = code.exceptions.iter().filter(|entry| depths[usize::from(entry.handler)].is_none());
            work.extend(
                reached.filter(|entry| covers(entry.start, entry.end)).map(|entry| (u32::from(entry.handler), 1)),
            );
            if work.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Change of the stack depth by an instruction, in slots.
    fn change(&self, instruction: &Instruction<'_>) -> Result<i32, Malformed> {
        let slots = |descriptor: &[u8]| match descriptor.first() {
            Some(b'V') | None => 0,
            Some(b'J' | b'D') => 2,
            Some(_) => 1,
        };
        Ok(match instruction.opcode {
            op @ (GETSTATIC..=INVOKEDYNAMIC) => {
                let at = self.code.offset + instruction.pc as usize;
                let member = self.pool.member_ref(instruction.pool_index()).map_err(|error| error.or_at(at))?;
                match op {
                    GETSTATIC => slots(member.descriptor),
                    PUTSTATIC => -slots(member.descriptor),
                    GETFIELD => slots(member.descriptor) - 1,
                    PUTFIELD => -slots(member.descriptor) - 1,
                    _ => {
                        let receiver = i32::from(!matches!(op, INVOKESTATIC | INVOKEDYNAMIC));
                        slots(return_descriptor(member.descriptor))
                            - parameter_slots(member.descriptor) as i32
                            - receiver
                    }
                }
            }
            MULTIANEWARRAY => 1 - i32::from(instruction.bytes[3]),
            op => fixed_change(op),
        })
    }
}

/// Change of the stack depth by an instruction that does not depend on its operands, in slots (JVMS §6.5).
fn fixed_change(opcode: u8) -> i32 {
    match opcode {
        NOP
        | LALOAD
        | DALOAD
        | SWAP
        | INEG..=DNEG
        | IINC
        | I2F
        | L2D
        | F2I
        | D2L
        | I2B..=I2S
        | GOTO
        | GOTO_W
        | RET
        | RETURN
        | NEWARRAY..=ARRAYLENGTH
        | CHECKCAST
        | INSTANCEOF => 0,
        ACONST_NULL..=ICONST_5
        | FCONST_0..=FCONST_2
        | BIPUSH..=LDC_W
        | ILOAD
        | FLOAD
        | ALOAD
        | ILOAD_0..=ILOAD_3
        | FLOAD_0..=FLOAD_3
        | ALOAD_0..=ALOAD_3
        | DUP..=DUP_X2
        | I2L
        | I2D
        | F2L
        | F2D
        | JSR
        | JSR_W
        | NEW => 1,
        LCONST_0
        | LCONST_1
        | DCONST_0
        | DCONST_1
        | LDC2_W
        | LLOAD
        | DLOAD
        | LLOAD_0..=LLOAD_3
        | DLOAD_0..=DLOAD_3
        | DUP2..=DUP2_X2 => 2,
        IALOAD
        | FALOAD
        | AALOAD..=SALOAD
        | ISTORE
        | FSTORE
        | ASTORE
        | ISTORE_0..=ISTORE_3
        | FSTORE_0..=FSTORE_3
        | ASTORE_0..=ASTORE_3
        | POP
        | ISHL..=LUSHR
        | L2I
        | L2F
        | D2I
        | D2F
        | FCMPL
        | FCMPG
        | IFEQ..=IFLE
        | TABLESWITCH
        | LOOKUPSWITCH
        | IRETURN
        | FRETURN
        | ARETURN
        | ATHROW
        | MONITORENTER
        | MONITOREXIT
        | IFNULL
        | IFNONNULL => -1,
        LSTORE
        | DSTORE
        | LSTORE_0..=LSTORE_3
        | DSTORE_0..=DSTORE_3
        | POP2
        | IF_ICMPEQ..=IF_ACMPNE
        | LRETURN
        | DRETURN => -2,
        IADD..=DREM => {
            if (opcode - IADD).is_multiple_of(2) {
                -1
            } else {
                -2
            }
        }
        IAND..=LXOR => {
            if (opcode - IAND).is_multiple_of(2) {
                -1
            } else {
                -2
            }
        }
        IASTORE | FASTORE | AASTORE..=SASTORE | LCMP | DCMPL | DCMPG => -3,
        LASTORE | DASTORE => -4,
        // Other opcodes are rejected when the code is parsed.
        _ => 0,
    }
}
