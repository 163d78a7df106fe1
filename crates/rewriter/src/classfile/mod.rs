//! The class file (JVMS §4): read without copying, written back byte for byte but for what was changed.

mod annotations;
mod attribute;
mod error;
mod pool;
mod reader;

pub(crate) use annotations::{annotation_types, skip_annotation};
pub use attribute::{Attribute, write as write_attribute};
pub use error::Malformed;
pub use et_names::mutf8::decode as to_string;
pub use pool::{Constant, ConstantPool, MemberRef, PoolBuilder, PoolFull};
pub use reader::Reader;

/// `CAFEBABE`.
pub const MAGIC: u32 = 0xCAFE_BABE;
/// The newest class file version this rewriter knows: JDK 25 (JVMS table 4.1-A).
pub const NEWEST_MAJOR: u16 = 69;
/// JDK 1.0.2 and 1.1.
pub const OLDEST_MAJOR: u16 = 45;

/// Bits of `access_flags` (JVMS §4.1, §4.5, §4.6).
#[allow(missing_docs)]
pub mod access {
    pub const STATIC: u16 = 0x0008;
    pub const FINAL: u16 = 0x0010;
    pub const TRANSIENT: u16 = 0x0080;
    pub const NATIVE: u16 = 0x0100;
    pub const INTERFACE: u16 = 0x0200;
    pub const SYNTHETIC: u16 = 0x1000;
}

/// A field or method (JVMS §4.5, §4.6).
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Member<'a> {
    pub access: u16,
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    pub attributes: Vec<Attribute<'a>>,
    /// The whole `field_info` or `method_info`.
    pub bytes: &'a [u8],
}

impl<'a> Member<'a> {
    /// ACC_STATIC.
    pub fn is_static(&self) -> bool {
        self.access & access::STATIC != 0
    }

    /// The first attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes())
    }
}

/// A class file, its parts pointing into the bytes it was read from.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct ClassFile<'a> {
    pub minor: u16,
    pub major: u16,
    pub pool: ConstantPool<'a>,
    pub access: u16,
    /// Constant pool index of the class itself.
    pub this_class: u16,
    /// Internal form.
    pub name: &'a [u8],
    /// Internal form; empty for `java/lang/Object` and module-info.
    pub super_name: &'a [u8],
    pub interfaces: Vec<&'a [u8]>,
    /// `access_flags` to the end of `interfaces`, as they stand.
    pub header_bytes: &'a [u8],
    pub fields: Vec<Member<'a>>,
    pub methods: Vec<Member<'a>>,
    pub attributes: Vec<Attribute<'a>>,
}

impl<'a> ClassFile<'a> {
    /// Reads a class file of a version this rewriter knows.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != MAGIC {
            return Err(Malformed::at(0, "not a class file: it does not start with CAFEBABE"));
        }
        let minor = reader.u16()?;
        let major = reader.u16()?;
        // Before 45.3 the numbers of a Code attribute were shorter; no JDK since 1.1 writes such classes.
        if major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < 3) {
            return Err(Malformed::at(
                6,
                format!("class file version {major}.{minor} is older than JDK 1.1's, the oldest this tool knows"),
            ));
        }
        if major > NEWEST_MAJOR {
            return Err(Malformed::at(
                6,
                format!(
                    "class file version {major}.{minor} is newer than {NEWEST_MAJOR} (JDK {}), the newest this tool knows",
                    NEWEST_MAJOR - 44
                ),
            ));
        }
        let pool = ConstantPool::read(&mut reader)?;
        let header_start = reader.offset();
        let access = reader.u16()?;
        let name_at = reader.offset();
        let this_class = reader.u16()?;
        let name = pool.class_name(this_class).map_err(|error| error.or_at(name_at))?;
        let super_name = match reader.u16()? {
            0 => &[][..],
            index => pool.class_name(index).map_err(|error| error.or_at(name_at + 2))?,
        };
        let mut interfaces = Vec::new();
        for _ in 0..reader.u16()? {
            let at = reader.offset();
            interfaces.push(pool.class_name(reader.u16()?).map_err(|error| error.or_at(at))?);
        }
        let header_bytes = &bytes[header_start..reader.offset()];
        let fields = members(&mut reader, &pool)?;
        let methods = members(&mut reader, &pool)?;
        let attributes = Attribute::list(&mut reader, &pool)?;
        if !reader.at_end() {
            return Err(Malformed::at(reader.offset(), "bytes after the end of the class"));
        }
        Ok(Self {
            minor,
            major,
            pool,
            access,
            this_class,
            name,
            super_name,
            interfaces,
            header_bytes,
            fields,
            methods,
            attributes,
        })
    }

    /// The first class attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes())
    }
}

fn members<'a>(reader: &mut Reader<'a>, pool: &ConstantPool<'a>) -> Result<Vec<Member<'a>>, Malformed> {
    let count = reader.u16()?;
    let mut list = Vec::with_capacity(count.into());
    for _ in 0..count {
        let start = reader.offset();
        let access = reader.u16()?;
        let name = pool.utf8(reader.u16()?).map_err(|error| error.or_at(start + 2))?;
        let descriptor = pool.utf8(reader.u16()?).map_err(|error| error.or_at(start + 4))?;
        let attributes = Attribute::list(reader, pool)?;
        list.push(Member { access, name, descriptor, attributes, bytes: reader.since(start) });
    }
    Ok(list)
}
