//! `RuntimeVisibleTypeAnnotations` of code (JVMS §4.7.20): its offsets move with the code.

use crate::classfile::{Attribute, Malformed, Reader, skip_annotation};

/// Returns the attribute's content with mapped offsets: `target` maps the start and end of ranges, `instruction` the
/// positions of instructions.
pub fn relocate(
    attribute: &Attribute<'_>,
    target: impl Fn(u16) -> u16,
    instruction: impl Fn(u16) -> u16,
) -> Result<Vec<u8>, Malformed> {
    let mut out = attribute.info.to_vec();
    let mut reader = attribute.reader();
    let place = |reader: &Reader<'_>| reader.offset() - attribute.offset;
    for _ in 0..reader.u16()? {
        let at = reader.offset();
        match reader.u8()? {
            0x40 | 0x41 => {
                for _ in 0..reader.u16()? {
                    let row = place(&reader);
                    let (start, length) = (reader.u16()?, reader.u16()?);
                    reader.u16()?;
                    let (first, end) = (target(start), target(start.saturating_add(length)));
                    out[row..row + 2].copy_from_slice(&first.to_be_bytes());
                    out[row + 2..row + 4].copy_from_slice(&end.saturating_sub(first).to_be_bytes());
                }
            }
            0x42 => {
                reader.u16()?;
            }
            tag @ 0x43..=0x4B => {
                let row = place(&reader);
                let pc = reader.u16()?;
                out[row..row + 2].copy_from_slice(&instruction(pc).to_be_bytes());
                if tag >= 0x47 {
                    reader.u8()?;
                }
            }
            tag => return Err(Malformed::at(at, format!("type annotation target {tag:#x} does not belong in code"))),
        }
        let path_length = usize::from(reader.u8()?);
        reader.take(path_length * 2)?;
        skip_annotation(&mut reader)?;
    }
    Ok(out)
}
