//! The constant pool (JVMS §4.4): parsed in place, extended at its end.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use rustc_hash::FxHasher;
use thiserror::Error;

use super::{Malformed, Reader};

const UTF8: u8 = 1;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const LONG: u8 = 5;
const DOUBLE: u8 = 6;
const CLASS: u8 = 7;
const STRING: u8 = 8;
const FIELDREF: u8 = 9;
const METHODREF: u8 = 10;
const INTERFACE_METHODREF: u8 = 11;
const NAME_AND_TYPE: u8 = 12;
const METHOD_HANDLE: u8 = 15;
const METHOD_TYPE: u8 = 16;
const DYNAMIC: u8 = 17;
const INVOKE_DYNAMIC: u8 = 18;
const MODULE: u8 = 19;
const PACKAGE: u8 = 20;

/// A loadable constant (JVMS §4.4, table 4.4-C), as far as `ldc` hooks and the disassembler need it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant<'a> {
    Integer(i32),
    Float(f32),
    Long(i64),
    Double(f64),
    String(&'a [u8]),
    Class(&'a [u8]),
    MethodType(&'a [u8]),
    MethodHandle,
    /// `CONSTANT_Dynamic`, with its descriptor.
    Dynamic(&'a [u8]),
}

/// The field, method or call site that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRef<'a> {
    /// Class in internal form; empty for `invokedynamic`.
    pub class: &'a [u8],
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
}

/// The constant pool of a class file.
#[derive(Clone, Debug)]
pub struct ConstantPool<'a> {
    /// The entries, without `constant_pool_count`.
    bytes: &'a [u8],
    /// Offset of `bytes` in the class file.
    base: usize,
    /// Offset in `bytes` of each entry's tag; [`UNUSABLE`] for index 0 and for the second index of longs and doubles.
    offsets: Vec<u32>,
}

const UNUSABLE: u32 = u32::MAX;

impl<'a> ConstantPool<'a> {
    /// Reads a constant pool, which begins with `constant_pool_count`.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count_at = reader.offset();
        let count = reader.u16()?;
        if count == 0 {
            return Err(Malformed::at(count_at, "constant pool count is 0"));
        }
        let base = reader.offset();
        let mut offsets = Vec::with_capacity(count.into());
        offsets.push(UNUSABLE);
        while offsets.len() < count.into() {
            let at = reader.offset();
            offsets.push((at - base) as u32);
            let length = match reader.u8()? {
                UTF8 => reader.u16()?.into(),
                INTEGER | FLOAT | FIELDREF | METHODREF | INTERFACE_METHODREF | NAME_AND_TYPE | DYNAMIC
                | INVOKE_DYNAMIC => 4,
                CLASS | STRING | METHOD_TYPE | MODULE | PACKAGE => 2,
                METHOD_HANDLE => 3,
                LONG | DOUBLE => {
                    offsets.push(UNUSABLE);
                    8
                }
                tag => return Err(Malformed::at(at, format!("constant pool tag {tag} is unknown"))),
            };
            reader.take(length)?;
        }
        if offsets.len() > count.into() {
            return Err(Malformed::at(reader.offset(), "the constant pool ends inside a long or double"));
        }
        Ok(Self { bytes: reader.since(base), base, offsets })
    }

    /// Offset of the first entry in the class file.
    pub fn offset(&self) -> usize {
        self.base
    }

    fn entry(&self, index: u16) -> Result<(u8, &'a [u8]), Malformed> {
        match self.offsets.get(usize::from(index)) {
            Some(&offset) if offset != UNUSABLE => {
                let entry = &self.bytes[offset as usize..];
                Ok((entry[0], &entry[1..]))
            }
            _ => Err(Malformed::somewhere(format!("there is no constant #{index}"))),
        }
    }

    fn of_tag(&self, index: u16, tag: u8, what: &str) -> Result<&'a [u8], Malformed> {
        match self.entry(index)? {
            (found, content) if found == tag => Ok(content),
            (found, _) => Err(Malformed::somewhere(format!("constant #{index} has tag {found}, {what} is wanted"))),
        }
    }

    /// Returns a `CONSTANT_Utf8` in modified UTF-8. Fails if the index refers to anything else, as all the methods
    /// below do.
    pub fn utf8(&self, index: u16) -> Result<&'a [u8], Malformed> {
        let content = self.of_tag(index, UTF8, "a UTF-8 string")?;
        let length = usize::from(u16_at(content, 0));
        Ok(&content[2..2 + length])
    }

    /// Returns the name in a `CONSTANT_Class`, in internal form or as an array descriptor.
    pub fn class_name(&self, index: u16) -> Result<&'a [u8], Malformed> {
        self.utf8(u16_at(self.of_tag(index, CLASS, "a class")?, 0))
    }

    fn name_and_type(&self, index: u16) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let content = self.of_tag(index, NAME_AND_TYPE, "a name and type")?;
        Ok((self.utf8(u16_at(content, 0))?, self.utf8(u16_at(content, 2))?))
    }

    /// Returns a field, method or interface method reference, or the name and type of an `invokedynamic`.
    pub fn member_ref(&self, index: u16) -> Result<MemberRef<'a>, Malformed> {
        let (tag, content) = self.entry(index)?;
        let class = match tag {
            FIELDREF | METHODREF | INTERFACE_METHODREF => self.class_name(u16_at(content, 0))?,
            INVOKE_DYNAMIC => &[][..],
            _ => {
                return Err(Malformed::somewhere(format!(
                    "constant #{index} has tag {tag}, a field or method reference is wanted"
                )));
            }
        };
        let (name, descriptor) = self.name_and_type(u16_at(content, 2))?;
        Ok(MemberRef { class, name, descriptor })
    }

    /// Methods that the class refers to, with their indexes; malformed references are skipped.
    pub fn method_refs(&self) -> impl Iterator<Item = (u16, MemberRef<'a>)> {
        let tags = self.offsets.iter().map(|&offset| self.bytes.get(offset as usize).copied());
        let methods = tags.enumerate().filter(|(_, tag)| matches!(tag, Some(METHODREF | INTERFACE_METHODREF)));
        // `constant_pool_count` has 16 bits.
        methods.filter_map(|(index, _)| Some((index as u16, self.member_ref(index as u16).ok()?)))
    }

    /// Classes that the class refers to, with their indexes; malformed constants are skipped.
    pub fn classes(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        // `constant_pool_count` has 16 bits.
        (1..self.offsets.len() as u16).filter_map(|index| Some((index, self.class_name(index).ok()?)))
    }

    /// Whether the constant is a `CONSTANT_String`.
    pub fn is_string(&self, index: u16) -> bool {
        matches!(self.entry(index), Ok((STRING, _)))
    }

    /// Returns a constant that `ldc` can load.
    pub fn loadable(&self, index: u16) -> Result<Constant<'a>, Malformed> {
        let (tag, content) = self.entry(index)?;
        Ok(match tag {
            INTEGER => Constant::Integer(u32_at(content, 0) as i32),
            FLOAT => Constant::Float(f32::from_bits(u32_at(content, 0))),
            LONG => Constant::Long(u64_at(content) as i64),
            DOUBLE => Constant::Double(f64::from_bits(u64_at(content))),
            STRING => Constant::String(self.utf8(u16_at(content, 0))?),
            CLASS => Constant::Class(self.utf8(u16_at(content, 0))?),
            METHOD_TYPE => Constant::MethodType(self.utf8(u16_at(content, 0))?),
            METHOD_HANDLE => Constant::MethodHandle,
            DYNAMIC => Constant::Dynamic(self.name_and_type(u16_at(content, 2))?.1),
            _ => return Err(Malformed::somewhere(format!("constant #{index} has tag {tag}, which ldc cannot load"))),
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

fn u64_at(bytes: &[u8]) -> u64 {
    u64::from(u32_at(bytes, 0)) << 32 | u64::from(u32_at(bytes, 4))
}

/// The constant pool is full: it has 65535 entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the constant pool would pass 65535 entries")]
pub struct PoolFull;

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Utf8(Box<[u8]>),
    Integer(i32),
    Long(i64),
    Class(u16),
    NameAndType(u16, u16),
    Member(u8, u16, u16),
}

/// Adds constants after those of a class, so that existing indexes remain valid.
///
/// Does not look for existing constants to reuse: comparing with all of them costs more than the few bytes that it
/// would save.
pub struct PoolBuilder {
    count: u16,
    added: Vec<u8>,
    known: HashMap<Key, u16, BuildHasherDefault<FxHasher>>,
}

impl std::fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolBuilder").field("count", &self.count).finish_non_exhaustive()
    }
}

impl PoolBuilder {
    /// Creates a builder that adds constants after the last entry of `pool`.
    pub fn new(pool: &ConstantPool<'_>) -> Self {
        // `constant_pool_count` has 16 bits.
        Self { count: pool.offsets.len() as u16, added: Vec::new(), known: HashMap::default() }
    }

    fn add(&mut self, key: Key, tag: u8, content: &[&[u8]]) -> Result<u16, PoolFull> {
        if let Some(&index) = self.known.get(&key) {
            return Ok(index);
        }
        let index = self.count;
        // `constant_pool_count` is one more than the last index, which is therefore at most 65534.
        self.count = self.count.checked_add(1).ok_or(PoolFull)?;
        self.added.push(tag);
        for part in content {
            self.added.extend_from_slice(part);
        }
        self.known.insert(key, index);
        Ok(index)
    }

    /// Returns the index of a `CONSTANT_Utf8`, which is added if it is new; `text` must be shorter than 64 KiB.
    pub fn utf8(&mut self, text: &[u8]) -> Result<u16, PoolFull> {
        self.add(Key::Utf8(text.into()), UTF8, &[&(text.len() as u16).to_be_bytes(), text])
    }

    /// Returns the index of a `CONSTANT_Integer`.
    pub fn integer(&mut self, value: i32) -> Result<u16, PoolFull> {
        self.add(Key::Integer(value), INTEGER, &[&value.to_be_bytes()])
    }

    /// Returns the index of a `CONSTANT_Long`.
    pub fn long(&mut self, value: i64) -> Result<u16, PoolFull> {
        let next = self.count.checked_add(2);
        let index = self.add(Key::Long(value), LONG, &[&value.to_be_bytes()])?;
        if index.checked_add(1) == Some(self.count) {
            // It was added, and takes two indexes (JVMS §4.4.5).
            self.count = next.ok_or(PoolFull)?;
        }
        Ok(index)
    }

    /// Returns the index of a `CONSTANT_Class`.
    pub fn class(&mut self, name: &[u8]) -> Result<u16, PoolFull> {
        let name = self.utf8(name)?;
        self.add(Key::Class(name), CLASS, &[&name.to_be_bytes()])
    }

    fn member(&mut self, tag: u8, class: &str, name: &str, descriptor: &str) -> Result<u16, PoolFull> {
        let class = self.class(class.as_bytes())?;
        let (name, descriptor) = (self.utf8(name.as_bytes())?, self.utf8(descriptor.as_bytes())?);
        let signature = self.add(
            Key::NameAndType(name, descriptor),
            NAME_AND_TYPE,
            &[&name.to_be_bytes(), &descriptor.to_be_bytes()],
        )?;
        self.add(Key::Member(tag, class, signature), tag, &[&class.to_be_bytes(), &signature.to_be_bytes()])
    }

    /// Returns the index of a `CONSTANT_Methodref`.
    pub fn method_ref(&mut self, class: &str, name: &str, descriptor: &str) -> Result<u16, PoolFull> {
        self.member(METHODREF, class, name, descriptor)
    }

    /// Returns the index of a `CONSTANT_Fieldref`.
    pub fn field_ref(&mut self, class: &str, name: &str, descriptor: &str) -> Result<u16, PoolFull> {
        self.member(FIELDREF, class, name, descriptor)
    }

    /// Appends the `constant_pool_count` and the entries of the extended pool.
    pub fn write(&self, original: &ConstantPool<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(original.bytes);
        out.extend_from_slice(&self.added);
    }
}
