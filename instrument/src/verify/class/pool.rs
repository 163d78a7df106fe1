//! The constant pool (JVMS §4.4).

use super::bytes::{Bytes, Cursor};
use super::{Sink, descriptor};

pub(super) const UTF8: u8 = 1;
pub(super) const INTEGER: u8 = 3;
pub(super) const FLOAT: u8 = 4;
pub(super) const LONG: u8 = 5;
pub(super) const DOUBLE: u8 = 6;
pub(super) const CLASS: u8 = 7;
pub(super) const STRING: u8 = 8;
pub(super) const FIELD: u8 = 9;
pub(super) const METHOD: u8 = 10;
pub(super) const INTERFACE_METHOD: u8 = 11;
pub(super) const NAME_AND_TYPE: u8 = 12;
pub(super) const METHOD_HANDLE: u8 = 15;
pub(super) const METHOD_TYPE: u8 = 16;
pub(super) const DYNAMIC: u8 = 17;
pub(super) const INVOKE_DYNAMIC: u8 = 18;
pub(super) const MODULE: u8 = 19;
pub(super) const PACKAGE: u8 = 20;

/// A set of tags as a bit mask.
pub(super) const fn set(tags: &[u8]) -> u32 {
    let (mut bits, mut index) = (0, 0);
    while index < tags.len() {
        bits |= 1 << tags[index];
        index += 1;
    }
    bits
}

/// A reference to a field or method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference<'a> {
    pub class: &'a [u8],
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
}

/// The constants with their positions.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    bytes: Bytes<'a>,
    /// Tag (0: there is no constant with this index), and offset of the content after it.
    slots: Vec<(u8, u32)>,
}

impl<'a> Pool<'a> {
    /// Reads a pool from its count on. Returns it and where it ends.
    pub(super) fn read(bytes: &'a [u8], at: usize) -> Result<(Self, usize), String> {
        let cut = || "the constant pool is cut off".to_owned();
        let mut cursor = Cursor::new(bytes);
        cursor.take(at).ok_or_else(cut)?;
        let count = usize::from(cursor.u16().ok_or_else(cut)?);
        let mut slots = Vec::with_capacity(count);
        slots.push((0, 0));
        while slots.len() < count {
            let tag = cursor.u8().ok_or_else(cut)?;
            slots.push((tag, cursor.at() as u32));
            let length = match tag {
                UTF8 => cursor.u16().ok_or_else(cut)?.into(),
                CLASS | STRING | METHOD_TYPE | MODULE | PACKAGE => 2,
                METHOD_HANDLE => 3,
                INTEGER | FLOAT | FIELD | METHOD | INTERFACE_METHOD | NAME_AND_TYPE | DYNAMIC | INVOKE_DYNAMIC => 4,
                LONG | DOUBLE => 8,
                other => return Err(format!("constant {} has the unknown tag {other}", slots.len() - 1)),
            };
            cursor.take(length).ok_or_else(cut)?;
            if matches!(tag, LONG | DOUBLE) {
                slots.push((0, 0));
            }
        }
        if slots.len() > count.max(1) {
            return Err("the last constant needs two indexes, but only one is left".into());
        }
        Ok((Self { bytes: Bytes(bytes), slots }, cursor.at()))
    }

    /// Tag of a constant; 0 if there is none.
    pub(super) fn tag(&self, index: u16) -> u8 {
        self.slots.get(usize::from(index)).map_or(0, |slot| slot.0)
    }

    /// Whether the constant's tag is in a [`set`].
    pub(super) fn is(&self, index: u16, tags: u32) -> bool {
        tags & 1 << self.tag(index) != 0 && self.tag(index) != 0
    }

    fn at(&self, index: u16, tag: u8) -> Option<usize> {
        match self.slots.get(usize::from(index)) {
            Some(slot) if slot.0 == tag => Some(slot.1 as usize),
            _ => None,
        }
    }

    pub(super) fn utf8(&self, index: u16) -> Option<&'a [u8]> {
        let at = self.at(index, UTF8)?;
        self.bytes.range(at + 2, self.bytes.u16(at)?.into())
    }

    pub(super) fn class(&self, index: u16) -> Option<&'a [u8]> {
        self.utf8(self.bytes.u16(self.at(index, CLASS)?)?)
    }

    pub(super) fn integer(&self, index: u16) -> Option<i32> {
        self.bytes.i32(self.at(index, INTEGER)?)
    }

    fn name_and_type(&self, index: u16) -> Option<(&'a [u8], &'a [u8])> {
        let at = self.at(index, NAME_AND_TYPE)?;
        Some((self.utf8(self.bytes.u16(at)?)?, self.utf8(self.bytes.u16(at + 2)?)?))
    }

    /// A field or method reference.
    pub(super) fn reference(&self, index: u16) -> Option<Reference<'a>> {
        let tag = self.tag(index);
        if !matches!(tag, FIELD | METHOD | INTERFACE_METHOD) {
            return None;
        }
        let at = self.at(index, tag)?;
        let (name, descriptor) = self.name_and_type(self.bytes.u16(at + 2)?)?;
        Some(Reference { class: self.class(self.bytes.u16(at)?)?, name, descriptor })
    }

    /// The descriptor of a dynamic constant or call site.
    pub(super) fn dynamic(&self, index: u16, tag: u8) -> Option<&'a [u8]> {
        Some(self.name_and_type(self.bytes.u16(self.at(index, tag)? + 2)?)?.1)
    }

    /// Checks what constants refer to. `bootstraps`: how many bootstrap methods there are.
    pub(super) fn check(&self, bootstraps: usize, sink: &mut Sink) {
        for index in 1..self.slots.len() as u16 {
            if let Err(what) = self.constant(index, bootstraps) {
                sink.add(format!("constant {index} {what}"));
            }
        }
    }

    fn constant(&self, index: u16, bootstraps: usize) -> Result<(), &'static str> {
        let (tag, at) = self.slots[usize::from(index)];
        let at = at as usize;
        // Reading has made sure that the bytes are there.
        let u16 = |offset| self.bytes.u16(at + offset).unwrap_or(0);
        let want = |offset, tag, what| if self.tag(u16(offset)) == tag { Ok(()) } else { Err(what) };
        match tag {
            UTF8 => match self.utf8(index) {
                // §4.4.7
                Some(text) if text.iter().all(|byte| !matches!(byte, 0 | 0xf0..)) => Ok(()),
                _ => Err("is not modified UTF-8"),
            },
            CLASS | STRING | MODULE | PACKAGE => want(0, UTF8, "refers to no string"),
            METHOD_TYPE => {
                want(0, UTF8, "refers to no string")?;
                self.utf8(u16(0)).and_then(descriptor::method).map(drop).ok_or("is not a method descriptor")
            }
            NAME_AND_TYPE => {
                want(0, UTF8, "has no name")?;
                want(2, UTF8, "has no descriptor")
            }
            FIELD | METHOD | INTERFACE_METHOD => {
                want(0, CLASS, "refers to no class")?;
                want(2, NAME_AND_TYPE, "refers to no name and type")?;
                let (_, descriptor) = self.name_and_type(u16(2)).ok_or("refers to no name and type")?;
                let fits = if tag == FIELD {
                    descriptor::field(descriptor).is_some()
                } else {
                    descriptor::method(descriptor).is_some()
                };
                if fits { Ok(()) } else { Err("has a descriptor of the wrong kind") }
            }
            METHOD_HANDLE => {
                let kind = self.bytes.u8(at).unwrap_or(0);
                let wanted = match kind {
                    1..=4 => set(&[FIELD]),
                    5 | 8 => set(&[METHOD]),
                    6 | 7 => set(&[METHOD, INTERFACE_METHOD]),
                    9 => set(&[INTERFACE_METHOD]),
                    _ => return Err("is a method handle of an unknown kind"),
                };
                if self.is(u16(1), wanted) { Ok(()) } else { Err("is a handle to a constant of the wrong kind") }
            }
            DYNAMIC | INVOKE_DYNAMIC => {
                want(2, NAME_AND_TYPE, "refers to no name and type")?;
                if usize::from(u16(0)) >= bootstraps {
                    return Err("refers to a bootstrap method that does not exist");
                }
                let (_, descriptor) = self.name_and_type(u16(2)).ok_or("refers to no name and type")?;
                let fits = if tag == DYNAMIC {
                    descriptor::field(descriptor).is_some()
                } else {
                    descriptor::method(descriptor).is_some()
                };
                if fits { Ok(()) } else { Err("has a descriptor of the wrong kind") }
            }
            _ => Ok(()),
        }
    }
}
