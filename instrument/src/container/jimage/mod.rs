//! `lib/modules`, the image from which JDK 9 and later start. Reader and writer for version 1.0 (JDK 9 to 25).
//!
//! Layout, in the byte order of the machine that created it: header of seven words, redirect table, offsets table,
//! locations, strings, content. The slot of a name is found by a perfect hash ([`hash`]); the offset in the slot refers
//! to the location, a list of attributes; the attributes give the parts of the name (as offsets into the strings) and
//! the offset of the content. In addition to resources (`/java.base/java/lang/Object.class`), there are two trees:
//! `/modules/…` folders, whose content lists the locations of their children, and `/packages/…`, whose content lists
//! modules by string offset. For the reading side see `src/java.base/share/native/libjimage` of OpenJDK.

mod compressed;
mod hash;
mod read;
mod words;
mod write;

pub use read::{Image, Location, Resource};
pub use write::ImageWriter;

use thiserror::Error;

/// Magic number.
const MAGIC: u32 = 0xcafe_dada;
/// Major version in the high half, minor version in the low half.
const VERSION: u32 = 1 << 16;
const HEADER: usize = 28;

/// Why an image could not be read or written.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ImageError {
    /// The magic number is wrong.
    #[error("not a JDK image (lib/modules): it does not start with CAFEDADA")]
    Magic,
    /// The version is not supported.
    #[error("JDK image of format version {0}.{1}; this tool reads 1.0 (JDK 9 to 25)")]
    Version(u16, u16),
    /// Something points outside, or ends early.
    #[error("damaged JDK image: {0}")]
    Damaged(&'static str),
    /// The file is truncated.
    #[error("damaged JDK image: it is cut off: its index needs {needed} bytes, {found} are there")]
    CutOff {
        /// Where the last resource ends.
        needed: u64,
        /// Size of the file in bytes.
        found: u64,
    },
    /// The content of a resource cannot be read.
    #[error("damaged JDK image: {name}: {what}")]
    Resource {
        /// Name of the resource.
        name: String,
        what: &'static str,
    },
    /// A compression plug-in that jlink may have used.
    #[error("{name} is compressed with {plugin:?}, which this tool does not read: make the image without compression")]
    Compression {
        /// Name of the resource.
        name: String,
        /// Name of the decompressor.
        plugin: String,
    },
    /// A new resource has no place in the tree.
    #[error("the JDK image has no folder /modules/{0}")]
    NoFolder(String),
}
