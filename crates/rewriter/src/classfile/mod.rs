//! The class file (JVMS §4): parsed without copying, and written back byte for byte except for the changes.

mod annotations;
mod attribute;
mod error;
mod pool;
mod reader;

pub(crate) use annotations::{annotation_types, skip_annotation};
pub use attribute::{Attribute, write as write_attribute};
pub use error::Malformed;
pub use et_names::mutf8::decode as to_string;
use et_names::releases;
pub use pool::{Constant, ConstantPool, MemberRef, PoolBuilder, PoolFull};
pub use reader::Reader;
use rustc_hash::FxHashSet;

/// `CAFEBABE`.
pub const MAGIC: u32 = 0xCAFE_BABE;
/// The newest class file version that the rewriter accepts.
pub const NEWEST_MAJOR: u16 = releases::class_file_version(releases::NEWEST_REWRITTEN);
/// The oldest supported class file version: JDK 1.0.2 and 1.1.
pub const OLDEST_MAJOR: u16 = 45;

/// Bits of `access_flags` (JVMS §4.1, §4.5, §4.6).
pub mod access {
    pub const PUBLIC: u16 = 0x0001;
    pub const STATIC: u16 = 0x0008;
    pub const FINAL: u16 = 0x0010;
    pub const TRANSIENT: u16 = 0x0080;
    pub const NATIVE: u16 = 0x0100;
    pub const INTERFACE: u16 = 0x0200;
    pub const SYNTHETIC: u16 = 0x1000;
}

/// A field or method (JVMS §4.5, §4.6).
#[derive(Clone, Debug)]
pub struct Member<'a> {
    pub access: u16,
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    pub attributes: Vec<Attribute<'a>>,
    /// The entire `field_info` or `method_info`.
    pub bytes: &'a [u8],
}

impl<'a> Member<'a> {
    pub fn is_static(&self) -> bool {
        self.access & access::STATIC != 0
    }

    /// Returns the first attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes())
    }
}

/// A class file. Its parts borrow from the bytes that it was parsed from.
#[derive(Clone, Debug)]
pub struct ClassFile<'a> {
    pub minor: u16,
    pub major: u16,
    pub pool: ConstantPool<'a>,
    pub access: u16,
    /// Constant pool index of the class's own `CONSTANT_Class`.
    pub this_class: u16,
    /// Binary name in internal form.
    pub name: &'a [u8],
    /// Superclass in internal form; empty for `java/lang/Object` and module-info.
    pub super_name: &'a [u8],
    pub interfaces: Vec<&'a [u8]>,
    /// The bytes from `access_flags` to the end of `interfaces`.
    pub header_bytes: &'a [u8],
    pub fields: Vec<Member<'a>>,
    pub methods: Vec<Member<'a>>,
    pub attributes: Vec<Attribute<'a>>,
    /// Names and descriptors of the native methods.
    natives: FxHashSet<(&'a [u8], &'a [u8])>,
}

impl<'a> ClassFile<'a> {
    /// Parses a class file. Fails if it is malformed or its version is not supported.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != MAGIC {
            return Err(Malformed::at(0, "not a class file: it does not start with CAFEBABE"));
        }
        let minor = reader.u16()?;
        let major = reader.u16()?;
        // Before 45.3 the fields of a Code attribute were narrower; no JDK since 1.1 writes such classes.
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
                    releases::NEWEST_REWRITTEN
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
        let natives = methods.iter().filter(|method| method.access & access::NATIVE != 0);
        let natives = natives.map(|method| (method.name, method.descriptor)).collect();
        Ok(Self {
            natives,
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

    /// Whether the class declares the method, and it is native.
    pub fn declares_native(&self, method: &MemberRef<'_>) -> bool {
        method.class == self.name && self.natives.contains(&(method.name, method.descriptor))
    }

    /// Returns the first class attribute with this name.
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
