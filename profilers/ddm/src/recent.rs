//! Recent allocations (`REAL`): a header with the sizes of its parts, the allocations with their stacks, and tables of names.

use std::collections::HashMap;

use crate::stack::Frame;
use crate::wire::{Malformed, Reader, Writer};

const WHAT: &str = "a REAL chunk";
const HEADER: u8 = 15;
const ENTRY: u8 = 9;
const FRAME: u8 = 8;
/// Indices, lines and counts have two bytes.
const MOST: usize = u16::MAX as usize;

/// A recent allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// Size in bytes.
    pub size: u32,
    /// The thread, by the VM's number.
    pub thread: u16,
    /// The class as a descriptor: `Ljava/lang/String;`, `[I`.
    pub class: String,
    /// Where it was made, innermost first; at most 255 frames. Classes are descriptors here as well.
    pub frames: Vec<Frame>,
}

/// The latest allocation first.
pub(crate) fn read(data: &[u8]) -> Result<Vec<Recent>, Malformed> {
    let mut reader = Reader::new(WHAT, data);
    let (header, entry, frame) = (reader.u1()?, reader.u1()?, reader.u1()?);
    if header < HEADER || entry < ENTRY || frame < FRAME {
        return reader.wrong(header.min(entry).min(frame));
    }
    let entries = reader.u2()?;
    let tables = reader.u4()?;
    let counts = [reader.u2()?, reader.u2()?, reader.u2()?];
    reader.take(usize::from(header - HEADER))?;
    let entries = reader.fits(u64::from(entries), usize::from(entry))?;
    let names = match data.get(tables as usize..) {
        Some(names) => names,
        None => return reader.wrong(tables),
    };
    let mut names = Reader::new(WHAT, names);
    let mut table = |count: u16| -> Result<Vec<String>, Malformed> {
        let count = names.fits(u64::from(count), 4)?;
        (0..count).map(|_| names.text()).collect()
    };
    let (classes, methods, files) = (table(counts[0])?, table(counts[1])?, table(counts[2])?);
    let mut allocations = Vec::with_capacity(entries);
    // A name of many frames is copied many times: that is what the sum of them may come to.
    let mut room = 16 * data.len() + 4096;
    for _ in 0..entries {
        let (size, thread, class, depth) = (reader.u4()?, reader.u2()?, reader.u2()?, reader.u1()?);
        reader.take(usize::from(entry - ENTRY))?;
        reader.fits(u64::from(depth), usize::from(frame))?;
        let mut allocation = Recent { size, thread, class: name(&classes, class, &mut room)?, frames: Vec::new() };
        for _ in 0..depth {
            let (class, method, file, line) = (reader.u2()?, reader.u2()?, reader.u2()?, reader.u2()?);
            reader.take(usize::from(frame - FRAME))?;
            allocation.frames.push(Frame {
                class: name(&classes, class, &mut room)?,
                method: name(&methods, method, &mut room)?,
                file: Some(name(&files, file, &mut room)?).filter(|file| !file.is_empty()),
                line: i32::from(line.cast_signed()),
            });
        }
        allocations.push(allocation);
    }
    Ok(allocations)
}

fn name(names: &[String], index: u16, room: &mut usize) -> Result<String, Malformed> {
    let name = names.get(usize::from(index)).ok_or(Malformed::Value { what: WHAT, value: index.into() })?;
    *room =
        room.checked_sub(name.len()).ok_or(Malformed::TooLong { what: WHAT, length: name.len() as u64, limit: 0 })?;
    Ok(name.clone())
}

#[derive(Default)]
struct Names<'a> {
    indices: HashMap<&'a str, u16>,
    in_order: Vec<&'a str>,
}

impl<'a> Names<'a> {
    /// If the table is full, its last entry stands for all further names.
    fn index(&mut self, name: &'a str) -> u16 {
        if let Some(&index) = self.indices.get(name) {
            return index;
        }
        let index = self.in_order.len().min(MOST - 1) as u16;
        if self.in_order.len() < MOST {
            self.in_order.push(name);
            self.indices.insert(name, index);
        }
        index
    }
}

/// At most 65,535 of them are written.
pub(crate) fn write(allocations: &[Recent]) -> Vec<u8> {
    let allocations = &allocations[..allocations.len().min(MOST)];
    let (mut classes, mut methods, mut files) = (Names::default(), Names::default(), Names::default());
    let mut body = Writer::default();
    for allocation in allocations {
        let frames = &allocation.frames[..allocation.frames.len().min(255)];
        body.u4(allocation.size).u2(allocation.thread).u2(classes.index(&allocation.class)).u1(frames.len() as u8);
        for frame in frames {
            let file = frame.file.as_deref().unwrap_or_default();
            let line = frame.line.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16;
            body.u2(classes.index(&frame.class)).u2(methods.index(&frame.method)).u2(files.index(file));
            body.u2(line.cast_unsigned());
        }
    }
    let body = body.finish();
    let mut out = Writer::default();
    out.u1(HEADER).u1(ENTRY).u1(FRAME).u2(allocations.len() as u16);
    out.u4(u32::try_from(usize::from(HEADER) + body.len()).unwrap_or(u32::MAX));
    for names in [&classes, &methods, &files] {
        out.u2(names.in_order.len() as u16);
    }
    out.bytes(&body);
    for names in [classes, methods, files] {
        names.in_order.iter().for_each(|name| _ = out.text(name));
    }
    out.finish()
}
