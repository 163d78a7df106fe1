//! Writing an image: the old one with some contents replaced and some resources added, uncompressed.

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::hash;
use super::read::{BASE, COMPRESSED, EXTENSION, KINDS, Location, MODULE, OFFSET, PARENT, UNCOMPRESSED};
use super::{Image, ImageError, MAGIC, Resource, VERSION};

/// Collects changes, then writes.
#[derive(Debug)]
pub struct ImageWriter<'a> {
    image: Image<'a>,
    resources: Vec<Resource>,
    contents: Vec<Option<Cow<'a, [u8]>>>,
    added: Vec<Added>,
    strings: Vec<u8>,
}

#[derive(Debug)]
struct Added {
    name: String,
    location: Location,
    content: Vec<u8>,
    /// Index of the folder in `/modules` that lists it.
    folder: usize,
}

impl<'a> ImageWriter<'a> {
    /// Starts from an image and its [resources](Image::resources).
    pub fn new(image: Image<'a>, resources: Vec<Resource>) -> Self {
        let contents = vec![None; resources.len()];
        Self { image, resources, contents, added: Vec::new(), strings: image.strings.0.to_vec() }
    }

    /// Gives the resource at `index` another content.
    pub fn replace(&mut self, index: usize, content: Vec<u8>) {
        self.contents[index] = Some(Cow::Owned(content));
    }

    /// Adds a class to a package that is there: `java.base`, `java/lang`, `HeapProxy`.
    pub fn add_class(&mut self, module: &str, package: &str, class: &str, content: Vec<u8>) -> Result<(), ImageError> {
        self.add(module, package, class, Some("class"), content)
    }

    /// Adds a resource without an extension to a package that is there.
    pub fn add_file(&mut self, module: &str, package: &str, name: &str, content: Vec<u8>) -> Result<(), ImageError> {
        self.add(module, package, name, None, content)
    }

    fn add(
        &mut self,
        module: &str,
        package: &str,
        base: &str,
        extension: Option<&str>,
        content: Vec<u8>,
    ) -> Result<(), ImageError> {
        let path = format!("{module}/{package}");
        let folder_name = format!("/modules/{path}");
        let folder = self.resources.iter().position(|resource| resource.name == folder_name);
        let Some(folder) = folder else { return Err(ImageError::NoFolder(path)) };
        let mut location = Location::default();
        for (kind, text) in [(MODULE, module), (PARENT, package), (BASE, base)] {
            location.0[kind] = self.intern(text);
        }
        let mut name = format!("/{path}/{base}");
        if let Some(extension) = extension {
            location.0[EXTENSION] = self.intern(extension);
            name = name + "." + extension;
        }
        self.added.push(Added { name, location, content, folder });
        Ok(())
    }

    /// The offset of a string. Strings are only ever appended: `/packages/…` refers to them by offset.
    fn intern(&mut self, text: &str) -> u64 {
        let mut wanted = vec![0];
        wanted.extend_from_slice(text.as_bytes());
        wanted.push(0);
        if let Some(at) = self.strings.windows(wanted.len()).position(|window| window == wanted) {
            return at as u64 + 1;
        }
        let at = self.strings.len() as u64;
        self.strings.extend_from_slice(&wanted[1..]);
        at
    }

    /// Writes the image. Returns the number of bytes.
    pub fn write(mut self, out: &mut impl Write) -> Result<io::Result<u64>, ImageError> {
        self.load()?;
        let places = self.place();
        let (locations, at) = self.encode_locations(&places);
        let (redirect, offsets) = self.index(&at)?;
        self.link(&at)?;
        let count = self.image.resource_count.checked_add(self.added.len() as u32);
        let count = count.ok_or(ImageError::Damaged("its number of resources is impossible"))?;
        let strings = self.strings.len() as u32;
        let header = [MAGIC, VERSION, self.image.flags, count, offsets.len() as u32, locations.len() as u32, strings];
        let mut index = Vec::with_capacity(offsets.len() * 8 + locations.len() + self.strings.len() + 64);
        for word in header.into_iter().chain(redirect).chain(offsets) {
            index.extend_from_slice(&self.bytes(word));
        }
        index.extend_from_slice(&locations);
        index.extend_from_slice(&self.strings);
        Ok(self.emit(out, &index, &places))
    }

    fn emit(&self, out: &mut impl Write, index: &[u8], places: &Places) -> io::Result<u64> {
        out.write_all(index)?;
        for resource in &places.order {
            crate::interrupt::check().map_err(io::Error::other)?;
            if let Some(content) = &self.contents[*resource] {
                out.write_all(content)?;
            }
        }
        for added in &self.added {
            out.write_all(&added.content)?;
        }
        Ok(index.len() as u64 + places.size)
    }

    fn bytes(&self, word: u32) -> [u8; 4] {
        if self.image.big_endian { word.to_be_bytes() } else { word.to_le_bytes() }
    }

    /// All contents that are not replaced. Folders get room for their new children.
    fn load(&mut self) -> Result<(), ImageError> {
        for (resource, content) in self.resources.iter().zip(&mut self.contents) {
            if content.is_none() {
                *content = Some(self.image.content(resource)?);
            }
        }
        for added in &self.added {
            if let Some(content) = &mut self.contents[added.folder] {
                content.to_mut().extend_from_slice(&[0; 4]);
            }
        }
        Ok(())
    }

    fn size(&self, index: usize) -> u64 {
        self.contents[index].as_ref().map_or(0, |content| content.len() as u64)
    }

    /// Contents keep their order; new ones come last.
    fn place(&self) -> Places {
        let mut order: Vec<usize> = (0..self.resources.len()).collect();
        // An empty resource has the same offset as the next one; the index makes the order unique.
        order.sort_by_key(|index| (Image::offset(&self.resources[*index]), *index));
        let mut offsets = vec![0; self.resources.len()];
        let mut size = 0;
        for index in &order {
            offsets[*index] = size;
            size += self.size(*index);
        }
        let added = self.added.iter().map(|added| {
            let at = size;
            size += added.content.len() as u64;
            at
        });
        offsets.extend(added.collect::<Vec<_>>());
        Places { order, offsets, size }
    }

    /// The locations table, and where each location starts in it.
    fn encode_locations(&self, places: &Places) -> (Vec<u8>, Vec<u32>) {
        // Offset 0 stays what it was (an empty location, where there is one).
        let head = self.resources.first().map_or(0, |resource| resource.at as usize);
        let mut out = self.image.locations[..head].to_vec();
        let old = self.resources.iter().enumerate().map(|(index, resource)| (resource.location, self.size(index)));
        let new = self.added.iter().map(|added| (added.location, added.content.len() as u64));
        let mut at = Vec::with_capacity(places.offsets.len());
        for ((mut location, size), offset) in old.chain(new).zip(&places.offsets) {
            location.0[OFFSET] = *offset;
            location.0[COMPRESSED] = 0;
            location.0[UNCOMPRESSED] = size;
            at.push(out.len() as u32);
            encode(&mut out, &location);
        }
        (out, at)
    }

    /// The redirect and offsets tables.
    fn index(&self, at: &[u32]) -> Result<(Vec<u32>, Vec<u32>), ImageError> {
        if self.added.is_empty() {
            let moved: FxHashMap<u32, u32> =
                self.resources.iter().map(|resource| resource.at).zip(at.iter().copied()).collect();
            let words = |bytes: &[u8]| -> Vec<u32> {
                (0..self.image.table_length as usize).filter_map(|index| self.image.word(bytes, index)).collect()
            };
            let offsets = words(self.image.offsets).iter().map(|old| moved.get(old).copied().unwrap_or(0)).collect();
            return Ok((words(self.image.redirect), offsets));
        }
        let old = self.resources.iter().map(|resource| resource.name.as_str());
        let names = old.chain(self.added.iter().map(|added| added.name.as_str()));
        let names: Vec<Vec<u8>> = names.map(|name| name.as_bytes().to_vec()).collect();
        let table = hash::build(&names).ok_or(ImageError::Damaged("a resource is listed twice"))?;
        let redirect = table.redirect.into_iter().map(|word| word as u32).collect();
        Ok((redirect, table.order.into_iter().map(|index| at[index as usize]).collect()))
    }

    /// Makes folders point to where the locations of their children are now.
    fn link(&mut self, at: &[u32]) -> Result<(), ImageError> {
        let moved: FxHashMap<u32, u32> =
            self.resources.iter().map(|resource| resource.at).zip(at.iter().copied()).collect();
        let mut children: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
        for (index, added) in self.added.iter().enumerate() {
            children.entry(added.folder).or_default().push(at[self.resources.len() + index]);
        }
        for (index, resource) in self.resources.iter().enumerate() {
            let Some(content) = &self.contents[index] else { continue };
            if !resource.lists_locations() || content.is_empty() {
                continue;
            }
            if content.len() % 4 != 0 {
                let what = "the content of a folder is not a list";
                return Err(ImageError::Resource { name: resource.name.clone(), what });
            }
            let new = children.get(&index).map_or(&[][..], Vec::as_slice);
            let old = content.len() / 4 - new.len();
            let mut linked = Vec::with_capacity(content.len());
            for child in 0..old {
                let place = self.image.word(content, child).and_then(|old| moved.get(&old));
                let Some(place) = place else {
                    let what = "a folder lists an entry that does not exist";
                    return Err(ImageError::Resource { name: resource.name.clone(), what });
                };
                linked.extend_from_slice(&self.bytes(*place));
            }
            for place in new {
                linked.extend_from_slice(&self.bytes(*place));
            }
            self.contents[index] = Some(Cow::Owned(linked));
        }
        Ok(())
    }
}

struct Places {
    /// Indexes of the resources in the order of their contents.
    order: Vec<usize>,
    /// Content offsets by index; those of added resources come after the others.
    offsets: Vec<u64>,
    /// Total size of the contents in bytes.
    size: u64,
}

/// Attributes in ascending order, each in as few bytes as it needs; absent ones are 0.
fn encode(out: &mut Vec<u8>, location: &Location) {
    for kind in 1..KINDS {
        let value = location.0[kind];
        if value != 0 {
            let length = (8 - value.leading_zeros() as usize / 8).max(1);
            out.push((kind << 3 | (length - 1)) as u8);
            out.extend_from_slice(&value.to_be_bytes()[8 - length..]);
        }
    }
    out.push(0);
}
