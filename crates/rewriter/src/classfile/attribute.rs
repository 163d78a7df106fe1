//! Attributes (JVMS §4.7) with their content unparsed.

use super::{ConstantPool, Malformed, Reader};

/// An attribute: its name and content.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    pub name_index: u16,
    pub name: &'a [u8],
    /// The content, without the `attribute_info` header.
    pub info: &'a [u8],
    /// Offset of the content in the class file.
    pub offset: usize,
}

impl<'a> Attribute<'a> {
    /// Reads an `attributes_count` and the attributes after it.
    pub fn list(reader: &mut Reader<'a>, pool: &ConstantPool<'a>) -> Result<Vec<Self>, Malformed> {
        let count = reader.u16()?;
        let mut list = Vec::with_capacity(count.into());
        for _ in 0..count {
            let at = reader.offset();
            let name_index = reader.u16()?;
            let name = pool.utf8(name_index).map_err(|error| error.or_at(at))?;
            let length = reader.u32()? as usize;
            let offset = reader.offset();
            list.push(Self { name_index, name, info: reader.take(length)?, offset });
        }
        Ok(list)
    }

    /// Returns a reader of the content.
    pub fn reader(&self) -> Reader<'a> {
        Reader::part(self.info, self.offset)
    }

    /// Appends the attribute unchanged.
    pub fn write(&self, out: &mut Vec<u8>) {
        write(out, self.name_index, self.info);
    }
}

/// Appends an attribute with this content.
pub fn write(out: &mut Vec<u8>, name_index: u16, info: &[u8]) {
    out.extend_from_slice(&name_index.to_be_bytes());
    out.extend_from_slice(&(info.len() as u32).to_be_bytes());
    out.extend_from_slice(info);
}
