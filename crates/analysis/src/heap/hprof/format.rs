//! The binary format HPROF 1.0.2, as the heap dumper of HotSpot writes it (`heapDumper.cpp` describes it): big-endian, ids of 8 bytes.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

/// Size of an id in bytes.
pub const ID: usize = 8;

const UTF8: u8 = 0x01;
const LOAD_CLASS: u8 = 0x02;
const FRAME: u8 = 0x04;
const TRACE: u8 = 0x05;
const HEAP_SUMMARY: u8 = 0x07;
const HEAP_DUMP_SEGMENT: u8 = 0x1c;
const HEAP_DUMP_END: u8 = 0x2c;

/// The line of a frame is not known.
const UNKNOWN_LINE: u32 = u32::MAX;

/// Types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Basic {
    Object = 2,
    Boolean = 4,
    Char = 5,
    Float = 6,
    Double = 7,
    Byte = 8,
    Short = 9,
    Int = 10,
    Long = 11,
}

impl Basic {
    /// Of a value with that JVM descriptor.
    pub fn of(descriptor: &str) -> Self {
        match descriptor {
            "Z" => Self::Boolean,
            "C" => Self::Char,
            "F" => Self::Float,
            "D" => Self::Double,
            "B" => Self::Byte,
            "S" => Self::Short,
            "I" => Self::Int,
            "J" => Self::Long,
            _ => Self::Object,
        }
    }

    /// Bytes that a value takes in the file.
    pub fn bytes(self) -> usize {
        match self {
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Object | Self::Double | Self::Long => 8,
        }
    }
}

/// Writes the parts of the file before and around the heap dump.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    strings: FxHashMap<String, u64>,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    pub fn new(mut out: W, unix_millis: u64) -> io::Result<Self> {
        out.write_all(b"JAVA PROFILE 1.0.2\0")?;
        out.write_all(&(ID as u32).to_be_bytes())?;
        out.write_all(&unix_millis.to_be_bytes())?;
        Ok(Self { out, strings: FxHashMap::default() })
    }

    fn head(&mut self, tag: u8, length: u32) -> io::Result<()> {
        self.out.write_all(&[tag])?;
        // Microseconds since the time of the header.
        self.out.write_all(&0u32.to_be_bytes())?;
        self.out.write_all(&length.to_be_bytes())
    }

    /// The id of a string, which is written if it is new.
    pub fn string(&mut self, text: &str) -> io::Result<u64> {
        if let Some(&id) = self.strings.get(text) {
            return Ok(id);
        }
        let id = self.strings.len() as u64 + 1;
        self.strings.insert(text.to_owned(), id);
        self.head(UTF8, (ID + text.len()) as u32)?;
        self.out.write_all(&id.to_be_bytes())?;
        self.out.write_all(text.as_bytes())?;
        Ok(id)
    }

    /// A class; `name` is internal, of an array its descriptor.
    pub fn load_class(&mut self, serial: u32, class: u64, name: &str) -> io::Result<()> {
        let name = self.string(name)?;
        self.head(LOAD_CLASS, (2 * ID + 8) as u32)?;
        self.out.write_all(&serial.to_be_bytes())?;
        self.out.write_all(&class.to_be_bytes())?;
        self.out.write_all(&NO_TRACE.to_be_bytes())?;
        self.out.write_all(&name.to_be_bytes())
    }

    /// Writes a frame with an unknown line.
    pub fn frame(&mut self, id: u64, (name, descriptor, source): (&str, &str, &str), class: u32) -> io::Result<()> {
        let texts = [self.string(name)?, self.string(descriptor)?, self.string(source)?];
        self.head(FRAME, (4 * ID + 8) as u32)?;
        self.out.write_all(&id.to_be_bytes())?;
        for text in texts {
            self.out.write_all(&text.to_be_bytes())?;
        }
        self.out.write_all(&class.to_be_bytes())?;
        self.out.write_all(&UNKNOWN_LINE.to_be_bytes())
    }

    /// The stack of a thread, innermost first.
    pub fn trace(&mut self, serial: u32, thread: u32, frames: &[u64]) -> io::Result<()> {
        self.head(TRACE, (12 + ID * frames.len()) as u32)?;
        for number in [serial, thread, frames.len() as u32] {
            self.out.write_all(&number.to_be_bytes())?;
        }
        frames.iter().try_for_each(|frame| self.out.write_all(&frame.to_be_bytes()))
    }

    /// Writes the summary: number and bytes of live objects, and bytes allocated so far.
    pub fn summary(&mut self, live: (u64, u64), allocated_bytes: u64) -> io::Result<()> {
        self.head(HEAP_SUMMARY, 24)?;
        let (bytes, objects) = live;
        for number in [bytes, objects] {
            self.out.write_all(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes())?;
        }
        self.out.write_all(&allocated_bytes.to_be_bytes())?;
        // How many objects that were is not counted.
        self.out.write_all(&objects.to_be_bytes())
    }

    /// A part of the heap dump of that length, which the caller writes.
    pub fn segment(&mut self, length: u32) -> io::Result<&mut W> {
        self.head(HEAP_DUMP_SEGMENT, length)?;
        Ok(&mut self.out)
    }

    /// Where what belongs to the last part is written.
    pub fn body(&mut self) -> &mut W {
        &mut self.out
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.head(HEAP_DUMP_END, 0)?;
        self.out.flush()
    }
}

/// The trace without frames: where an object was allocated.
pub const NO_TRACE: u32 = 1;

/// What holds an object from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcRoot {
    Unknown,
    JniGlobal,
    /// A local of the thread with this serial number.
    JniLocal(u32),
    /// Thread, and place on its stack, 0 the innermost.
    Frame(u32, u32),
    StickyClass,
    /// Thread, and the serial number of its trace.
    Thread(u32, u32),
}

impl GcRoot {
    /// Appends it to a part of the heap dump.
    pub fn write(self, out: &mut Vec<u8>, object: u64) {
        let mut put = |tag: u8, numbers: &[u32]| {
            out.push(tag);
            out.extend(object.to_be_bytes());
            if self == Self::JniGlobal {
                // The handle itself: any id will do.
                out.extend(object.to_be_bytes());
            }
            numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
        };
        match self {
            Self::Unknown => put(0xff, &[]),
            Self::JniGlobal => put(0x01, &[]),
            Self::JniLocal(thread) => put(0x02, &[thread, u32::MAX]),
            Self::Frame(thread, depth) => put(0x03, &[thread, depth]),
            Self::StickyClass => put(0x05, &[]),
            Self::Thread(thread, trace) => put(0x08, &[thread, trace]),
        }
    }
}

/// A field with its value: 0 if unknown.
#[derive(Clone, Copy, Debug)]
pub struct StaticField {
    pub name: u64,
    pub basic: Basic,
    pub value: u64,
}

/// A class in the heap dump.
#[derive(Debug)]
pub struct ClassDump<'a> {
    pub id: u64,
    pub super_id: u64,
    pub loader: u64,
    pub instance_size: u32,
    pub statics: &'a [StaticField],
    /// Name and type of each field that it declares.
    pub fields: &'a [(u64, Basic)],
}

impl ClassDump<'_> {
    /// Appends it to a part of the heap dump.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(0x20);
        out.extend(self.id.to_be_bytes());
        out.extend(NO_TRACE.to_be_bytes());
        // The signers, the protection domain, and two that are reserved.
        for id in [self.super_id, self.loader, 0, 0, 0, 0] {
            out.extend(id.to_be_bytes());
        }
        out.extend(self.instance_size.to_be_bytes());
        // An empty constant pool.
        out.extend(0u16.to_be_bytes());
        let count = |all: usize| u16::try_from(all).unwrap_or(u16::MAX);
        out.extend(count(self.statics.len()).to_be_bytes());
        for field in &self.statics[..count(self.statics.len()).into()] {
            out.extend(field.name.to_be_bytes());
            out.push(field.basic as u8);
            out.extend(&field.value.to_be_bytes()[ID - field.basic.bytes()..]);
        }
        out.extend(count(self.fields.len()).to_be_bytes());
        for (name, basic) in &self.fields[..count(self.fields.len()).into()] {
            out.extend(name.to_be_bytes());
            out.push(*basic as u8);
        }
    }
}

/// Bytes of an object besides its fields or elements.
pub const INSTANCE_HEAD: u64 = 1 + 2 * ID as u64 + 8;
/// As above, of an array of references.
pub const OBJECTS_HEAD: u64 = 1 + 2 * ID as u64 + 8;
/// As above, of an array of numbers.
pub const NUMBERS_HEAD: u64 = 1 + ID as u64 + 9;

/// The head of an object; its fields follow, those of its class first, then those of its superclass.
pub fn instance(out: &mut impl Write, id: u64, class: u64, length: u32) -> io::Result<()> {
    out.write_all(&[0x21])?;
    out.write_all(&id.to_be_bytes())?;
    out.write_all(&NO_TRACE.to_be_bytes())?;
    out.write_all(&class.to_be_bytes())?;
    out.write_all(&length.to_be_bytes())
}

/// The head of an array of references, which follow.
pub fn objects(out: &mut impl Write, id: u64, class: u64, length: u32) -> io::Result<()> {
    out.write_all(&[0x22])?;
    out.write_all(&id.to_be_bytes())?;
    out.write_all(&NO_TRACE.to_be_bytes())?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(&class.to_be_bytes())
}

/// The head of an array of numbers, which follow.
pub fn numbers(out: &mut impl Write, id: u64, basic: Basic, length: u32) -> io::Result<()> {
    out.write_all(&[0x23])?;
    out.write_all(&id.to_be_bytes())?;
    out.write_all(&NO_TRACE.to_be_bytes())?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(&[basic as u8])
}

/// Writes zero bytes.
pub fn zeros(out: &mut impl Write, mut count: u64) -> io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while count > 0 {
        let part = count.min(ZEROS.len() as u64);
        out.write_all(&ZEROS[..part as usize])?;
        count -= part;
    }
    Ok(())
}
