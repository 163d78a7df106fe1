//! Reads an image.

use std::borrow::Cow;

use super::compressed;
use super::hash::{FIRST_SEED, hash};
use super::words::{Strings, word};
use super::{HEADER, ImageError, MAGIC, VERSION};

/// Attribute kinds of a location.
pub(super) const KINDS: usize = 8;
pub(super) const MODULE: usize = 1;
pub(super) const PARENT: usize = 2;
pub(super) const BASE: usize = 3;
pub(super) const EXTENSION: usize = 4;
pub(super) const OFFSET: usize = 5;
pub(super) const COMPRESSED: usize = 6;
pub(super) const UNCOMPRESSED: usize = 7;

/// Longer than the name of any resource: strings may overlap, so that a small image could claim many long names.
const MAX_NAME: usize = 1 << 12;

/// A location: its attributes by kind, 0 where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location(pub(super) [u64; KINDS]);

/// A resource, or a folder of one of the trees.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Byte of the locations table at which its location starts.
    pub(super) at: u32,
    pub(super) location: Location,
    /// Full name: `/java.base/java/lang/Object.class`.
    pub name: String,
    /// Its module, `modules` and `packages` for the trees.
    pub module: String,
}

impl Resource {
    /// Whether it is a class file in a module.
    pub fn is_class(&self) -> bool {
        self.name.ends_with(".class") && !matches!(self.module.as_str(), "modules" | "packages" | "")
    }

    /// Whether both are the same place in the image.
    pub fn is_same(&self, other: &Resource) -> bool {
        self.at == other.at
    }

    /// The name without its module: `java/lang/Object.class`.
    pub fn path(&self) -> &str {
        self.name.get(self.module.len() + 2..).unwrap_or_default()
    }

    /// Whether it is a folder whose content lists the locations of its children. `/packages/…` lists modules instead.
    pub(super) fn lists_locations(&self) -> bool {
        self.module == "modules" || self.name == "/modules" || self.name == "/packages"
    }
}

/// An image in memory.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub(super) data: &'a [u8],
    pub(super) big_endian: bool,
    pub(super) flags: u32,
    pub(super) resource_count: u32,
    pub(super) table_length: u32,
    pub(super) redirect: &'a [u8],
    pub(super) offsets: &'a [u8],
    pub(super) locations: &'a [u8],
    pub(super) strings: Strings<'a>,
    content: usize,
}

impl<'a> Image<'a> {
    /// Reads the header and finds the tables.
    pub fn read(data: &'a [u8]) -> Result<Self, ImageError> {
        let big_endian = match word(data, 0, false) {
            Some(MAGIC) => false,
            Some(other) if other.swap_bytes() == MAGIC => true,
            _ => return Err(ImageError::Magic),
        };
        let header = |index| word(data, index, big_endian).ok_or(ImageError::Damaged("it is cut off"));
        let version = header(1)?;
        if version != VERSION {
            return Err(ImageError::Version((version >> 16) as u16, version as u16));
        }
        let table_length = header(4)?;
        let mut at = HEADER;
        let mut take = |size: u64| {
            let start = at;
            let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
            let bytes = end.and_then(|end| data.get(start..end)).ok_or(ImageError::Damaged("its index is cut off"))?;
            at += bytes.len();
            Ok(bytes)
        };
        let redirect = take(u64::from(table_length) * 4)?;
        let offsets = take(u64::from(table_length) * 4)?;
        let locations = take(header(5)?.into())?;
        let strings = take(header(6)?.into())?;
        Ok(Self {
            data,
            big_endian,
            flags: header(2)?,
            resource_count: header(3)?,
            table_length,
            redirect,
            offsets,
            locations,
            strings: Strings(strings),
            content: at,
        })
    }

    pub(super) fn word(&self, bytes: &[u8], index: usize) -> Option<u32> {
        word(bytes, index, self.big_endian)
    }

    /// All resources and folders, in the order of the locations table.
    pub fn resources(&self) -> Result<Vec<Resource>, ImageError> {
        let slots = 0..self.table_length as usize;
        let mut at: Vec<u32> = slots.filter_map(|slot| self.word(self.offsets, slot)).collect();
        at.sort_unstable();
        at.dedup();
        at.into_iter().map(|at| self.resource(at)).collect()
    }

    /// Looks a resource up by its full name, as the JVM does.
    pub fn find(&self, name: &str) -> Result<Option<Resource>, ImageError> {
        if self.table_length == 0 {
            return Ok(None);
        }
        let bucket = hash(name.as_bytes(), FIRST_SEED) % self.table_length;
        let redirect = self.word(self.redirect, bucket as usize).unwrap_or(0) as i32;
        let slot = match redirect {
            0 => return Ok(None),
            direct if direct < 0 => (-1 - direct) as u32,
            seed => hash(name.as_bytes(), seed as u32) % self.table_length,
        };
        let at =
            self.word(self.offsets, slot as usize).ok_or(ImageError::Damaged("its hash table points out of bounds"))?;
        let resource = self.resource(at)?;
        Ok((resource.name == name).then_some(resource))
    }

    pub(super) fn resource(&self, at: u32) -> Result<Resource, ImageError> {
        let location = self.location(at)?;
        let [module, parent, base, extension] = [MODULE, PARENT, BASE, EXTENSION].map(|kind| location.0[kind]);
        let module = self.strings.text(module)?;
        let (parent, base, extension) =
            (self.strings.text(parent)?, self.strings.text(base)?, self.strings.text(extension)?);
        if module.len() + parent.len() + base.len() + extension.len() > MAX_NAME {
            return Err(ImageError::Damaged("a name is longer than any file's"));
        }
        let mut name = String::new();
        if !module.is_empty() {
            name.extend(["/", module, "/"]);
        }
        if !parent.is_empty() {
            name.extend([parent, "/"]);
        }
        name.push_str(base);
        if !extension.is_empty() {
            name.extend([".", extension]);
        }
        Ok(Resource { at, location, name, module: module.to_owned() })
    }

    fn location(&self, at: u32) -> Result<Location, ImageError> {
        let damaged = || ImageError::Damaged("a location is cut off");
        let mut location = Location::default();
        let mut at = at as usize;
        loop {
            let tag = *self.locations.get(at).ok_or_else(damaged)?;
            let (kind, length) = (usize::from(tag >> 3), usize::from(tag & 7) + 1);
            if kind == 0 {
                return Ok(location);
            }
            let value = self.locations.get(at + 1..at + 1 + length).ok_or_else(damaged)?;
            let slot = location.0.get_mut(kind).ok_or(ImageError::Damaged("a location has an unknown attribute"))?;
            *slot = value.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
            at += 1 + length;
        }
    }

    /// The content as stored in the image.
    pub(super) fn raw(&self, resource: &Resource) -> Result<&'a [u8], ImageError> {
        let [offset, compressed, uncompressed] =
            [OFFSET, COMPRESSED, UNCOMPRESSED].map(|kind| resource.location.0[kind]);
        let size = if compressed == 0 { uncompressed } else { compressed };
        let start = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(self.content));
        let end = start.and_then(|start| start.checked_add(usize::try_from(size).ok()?));
        match (start, end) {
            (Some(start), Some(end)) => self.data.get(start..end),
            _ => None,
        }
        .ok_or_else(|| ImageError::Resource { name: resource.name.clone(), what: "its content lies outside the file" })
    }

    /// An error if the file ends before the last of its resources does: said once, not for each that is lost.
    pub fn refuse_cut_off(&self, resources: &[Resource]) -> Result<(), ImageError> {
        let end = |resource: &Resource| {
            let [offset, compressed, uncompressed] =
                [OFFSET, COMPRESSED, UNCOMPRESSED].map(|kind| resource.location.0[kind]);
            let size = if compressed == 0 { uncompressed } else { compressed };
            offset.saturating_add(size).saturating_add(self.content as u64)
        };
        let (needed, found) = (resources.iter().map(end).max().unwrap_or(0), self.data.len() as u64);
        if needed > found { Err(ImageError::CutOff { needed, found }) } else { Ok(()) }
    }

    /// Offset of the content, by which its order is preserved.
    pub(super) fn offset(resource: &Resource) -> u64 {
        resource.location.0[OFFSET]
    }

    /// How large the content of a resource says it is.
    pub fn size(&self, resource: &Resource) -> u64 {
        resource.location.0[UNCOMPRESSED]
    }

    /// The content after decompression.
    pub fn content(&self, resource: &Resource) -> Result<Cow<'a, [u8]>, ImageError> {
        let raw = self.raw(resource)?;
        if resource.location.0[COMPRESSED] == 0 {
            return Ok(Cow::Borrowed(raw));
        }
        let content = compressed::decompress(self.strings, self.big_endian, raw, &resource.name)?;
        if content.len() as u64 != resource.location.0[UNCOMPRESSED] {
            let what = "its size differs from the one in its location";
            return Err(ImageError::Resource { name: resource.name.clone(), what });
        }
        Ok(Cow::Owned(content))
    }
}
