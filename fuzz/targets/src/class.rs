//! The class readers of the rewriter and of the checker: arbitrary bytes are parsed, or rejected with an offset that is
//! in range.

use et_rewriter::classfile::{Attribute, ClassFile, Malformed, PoolBuilder};
use et_rewriter::code::opcode::{LOOKUPSWITCH, TABLESWITCH};
use et_rewriter::code::{CodeAttribute, CodeEditor, Instructions, StackMap, VerificationType};

use crate::{Plain, Random, Target};

pub const TARGET: Target = Target {
    name: "class",
    inputs: "class",
    longest: 16384,
    compares: true,
    memory_ratio: 1 << 10,
    run,
    mutate: Some(mutate),
    mend: None,
};

fn run(data: &[u8]) {
    let _ = et_instrument::verify::class::check(data);
    match ClassFile::read(data) {
        Ok(class) => {
            for method in &class.methods {
                if let Some(attribute) = method.attribute("Code") {
                    let _ = code(&class, method.is_static(), method.name, method.descriptor, attribute, data);
                }
            }
        }
        Err(error) => check(&error, data),
    }
}

fn check(error: &Malformed, data: &[u8]) {
    assert!(error.offset <= data.len() || error.offset == usize::MAX, "{error}");
}

/// Reads a method as the rewriter does, and writes it back with nothing changed.
fn code(
    class: &ClassFile<'_>,
    is_static: bool,
    name: &[u8],
    descriptor: &[u8],
    attribute: &Attribute<'_>,
    data: &[u8],
) -> Result<(), Malformed> {
    let code = CodeAttribute::read(attribute, &class.pool).inspect_err(|error| check(error, data))?;
    let receiver = (!is_static).then_some(match name {
        b"<init>" => VerificationType::UninitializedThis,
        _ => VerificationType::Object(class.this_class),
    });
    let table = code.attribute("StackMapTable").filter(|_| class.major >= 50);
    let initial = StackMap::initial_locals(receiver, descriptor, |_| Ok::<_, Malformed>(0))?;
    let frames = table.map(|table| StackMap::read(table, initial, &code)).transpose();
    let frames = frames.inspect_err(|error| check(error, data))?;
    let mut pool = PoolBuilder::new(&class.pool);
    let Ok(written) = CodeEditor::new(&code).finish(frames, &mut pool) else { return Ok(()) };
    let again = Attribute { info: &written, ..*attribute };
    let again = CodeAttribute::read(&again, &class.pool).unwrap_or_else(|error| panic!("what was written: {error}"));
    assert_eq!(again.code.len(), code.code.len());
    for (old, new) in code.instructions.iter().zip(&again.instructions) {
        // The padding of a switch need not be zeros, but we write zeros.
        let padding = if matches!(old.opcode, TABLESWITCH | LOOKUPSWITCH) { 4 } else { 0 };
        assert!(old.pc == new.pc && old.bytes[padding..] == new.bytes[padding..], "an edit of nothing: {old:?}");
    }
    Ok(())
}

/// Changes the code of one method of a valid class, or an index of the constant pool to another in use.
pub(crate) fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let class = ClassFile::read(data).ok()?;
    let methods: Vec<_> = class.methods.iter().filter_map(|method| method.attribute("Code")).collect();
    let attribute = *random.pick(&methods)?;
    // In the file: max_stack and max_locals (2 bytes each), code_length (4), code.
    let start = attribute.info.as_ptr() as usize - data.as_ptr() as usize;
    let length = u32::from_be_bytes(attribute.info.get(4..8)?.try_into().ok()?) as usize;
    let code = start + 8..start + 8 + length;
    data.get(code.clone())?;
    let pool_size = usize::from(u16::from_be_bytes([data[8], data[9]]));
    let mut out = data.to_vec();
    match random.below(6) {
        // Any change of the code, its tables, or both, with the lengths made right.
        0 => {
            let mut part = data[code.clone()].to_vec();
            plain(&mut part);
            return splice(data, start, code, &part);
        }
        1 => {
            let mut part = attribute.info.to_vec();
            let size = part.len();
            plain(&mut part);
            part.resize(size, 0);
            out[start..start + size].copy_from_slice(&part);
        }
        // Another opcode at the start of an instruction.
        2 => {
            let starts = starts(&data[code.clone()]);
            let at = code.start + random.pick(&starts)?;
            out[at] = random.below(202) as u8;
        }
        // An operand of two bytes: a pool index, a branch.
        3 => {
            let starts = starts(&data[code.clone()]);
            let at = code.start + random.pick(&starts)?;
            if at + 3 <= code.end {
                let value = if random.one_in(2) { random.below(pool_size) } else { random.below(64) };
                let value = if random.one_in(4) { (value as u16).wrapping_neg() } else { value as u16 };
                out[at + 1..at + 3].copy_from_slice(&value.to_be_bytes());
            }
        }
        // A run of instructions once more, or away.
        4 => {
            let starts = starts(&data[code.clone()]);
            let (one, other) = (*random.pick(&starts)?, *random.pick(&starts)?);
            let (from, to) = (code.start + one.min(other), code.start + one.max(other));
            let mut part = data[code.start..to].to_vec();
            if random.one_in(2) {
                part.extend_from_slice(&data[from..to]);
            } else {
                part.truncate(from - code.start);
            }
            part.extend_from_slice(&data[to..code.end]);
            return splice(data, start, code, &part);
        }
        // Changes the class file version.
        _ => out[7] = random.within(45..70) as u8,
    }
    Some(out)
}

/// Replaces the code at `code` in the `Code` attribute whose content starts at `info`.
fn splice(data: &[u8], info: usize, code: std::ops::Range<usize>, part: &[u8]) -> Option<Vec<u8>> {
    if part.is_empty() || part.len() > 65_535 {
        return None;
    }
    let old = u32::from_be_bytes(data.get(info - 4..info)?.try_into().ok()?);
    let length = old.wrapping_add(part.len() as u32).wrapping_sub(code.len() as u32);
    let mut out = Vec::with_capacity(data.len() + part.len());
    out.extend_from_slice(&data[..info - 4]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&data[info..info + 4]);
    out.extend_from_slice(&(part.len() as u32).to_be_bytes());
    out.extend_from_slice(part);
    out.extend_from_slice(&data[code.end..]);
    Some(out)
}

/// Offsets of the instructions, as far as they can be determined.
fn starts(code: &[u8]) -> Vec<usize> {
    let instructions = Instructions::new(code);
    let found = instructions.map_while(Result::ok).filter(|found| !matches!(found.opcode, TABLESWITCH | LOOKUPSWITCH));
    found.map(|found| found.pc as usize).collect()
}
