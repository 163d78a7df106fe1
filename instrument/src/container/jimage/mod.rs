//! `lib/modules`, the image that a JDK 9 and later starts from. Reader and writer, version 1.0 (JDK 9 to 25).
//!
//! Layout, in the byte order of the machine that made it: header of seven words, redirect table, offsets table,
//! locations, strings, content. A name's slot is found by a perfect hash ([`hash`]); the slot's offset leads to
//! the location, a list of attributes; the attributes give the pieces of the name (as offsets into the strings)
//! and where the content lies. Beside the resources (`/java.base/java/lang/Object.class`) there are two trees:
//! `/modules/…` folders, whose content lists the locations of their children, and `/packages/…`, whose content
//! lists modules by string offset. See `src/java.base/share/native/libjimage` of OpenJDK for the reading side.

mod compressed;
mod hash;
mod read;
mod words;
mod write;

pub use read::{Image, Location, Resource};
pub use write::ImageWriter;

use thiserror::Error;

/// First word.
const MAGIC: u32 = 0xcafe_dada;
/// Major and minor version.
const VERSION: u32 = 1 << 16;
const HEADER: usize = 28;

/// Why an image could not be read or written.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ImageError {
    /// First word is another.
    #[error("not a JDK image (lib/modules): it does not start with CAFEDADA")]
    Magic,
    /// A format we do not know.
    #[error("JDK image of format version {0}.{1}; this tool reads 1.0 (JDK 9 to 25)")]
    Version(u16, u16),
    /// Something points outside, or ends early.
    #[error("damaged JDK image: {0}")]
    Damaged(&'static str),
    /// The end is missing.
    #[error("damaged JDK image: it is cut off: its index needs {needed} bytes, {found} are there")]
    CutOff {
        /// Where the last resource ends.
        needed: u64,
        /// The file's size.
        found: u64,
    },
    /// A resource whose content cannot be had.
    #[error("damaged JDK image: {name}: {what}")]
    Resource {
        /// The resource.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A compression plug-in that jlink may have used.
    #[error("{name} is compressed with {plugin:?}, which this tool does not read: make the image without compression")]
    Compression {
        /// The resource.
        name: String,
        /// The decompressor's name.
        plugin: String,
    },
    /// A new resource has no place in the tree.
    #[error("the JDK image has no folder /modules/{0}")]
    NoFolder(String),
}
