//! Annotations (JVMS §4.7.16).

use super::{Attribute, ConstantPool, Malformed, Reader};

/// Type descriptors of a method's annotations, from `RuntimeVisibleAnnotations`. Empty if the attribute cannot be
/// parsed: the JVM does not check its content, and some compilers have written malformed ones.
pub(crate) fn annotation_types<'a>(attribute: &Attribute<'_>, pool: &ConstantPool<'a>) -> Vec<&'a [u8]> {
    let mut reader = attribute.reader();
    let mut read = || {
        let mut types = Vec::new();
        for _ in 0..reader.u16()? {
            types.push(pool.utf8(skip_annotation(&mut reader)?)?);
        }
        Ok::<_, Malformed>(types)
    };
    read().unwrap_or_default()
}

/// Skips an annotation and returns the constant pool index of its type.
pub(crate) fn skip_annotation(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    let kind = reader.u16()?;
    for _ in 0..reader.u16()? {
        reader.u16()?;
        skip_element_value(reader, 0)?;
    }
    Ok(kind)
}

fn skip_element_value(reader: &mut Reader<'_>, depth: u32) -> Result<(), Malformed> {
    let at = reader.offset();
    if depth > 100 {
        return Err(Malformed::at(at, "annotation values nest too deep"));
    }
    match reader.u8()? {
        b'e' => {
            reader.take(4)?;
        }
        b'@' => {
            reader.u16()?;
            for _ in 0..reader.u16()? {
                reader.u16()?;
                skip_element_value(reader, depth + 1)?;
            }
        }
        b'[' => {
            for _ in 0..reader.u16()? {
                skip_element_value(reader, depth + 1)?;
            }
        }
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
            reader.u16()?;
        }
        tag => return Err(Malformed::at(at, format!("annotation value tag {tag:#x} is unknown"))),
    }
    Ok(())
}
