//! Zip archives, which stay byte for byte the same where nothing is changed.
//!
//! Has its own reader and writer, because a faithful copy needs features that general libraries lack: two entries with
//! the same name, bytes before the first entry (launch scripts, the header of a jmod), original extra fields and
//! attributes. Uses flate2 for compression. The format is defined by PKWARE's APPNOTE.TXT, to which the section numbers
//! below refer.

mod align;
mod read;
mod write;

pub use read::{Archive, Entry};
pub use write::{Packed, Writer};

use thiserror::Error;

/// Compression method of uncompressed entries.
pub const STORED: u16 = 0;
/// The one compression method that Java reads.
pub const DEFLATED: u16 = 8;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const END64_LOCATOR: u32 = 0x0706_4b50;
/// Extra field that holds what does not fit 32 bits (4.5.3).
const ZIP64_EXTRA: u16 = 1;
/// General purpose flag, bit 0.
const FLAG_ENCRYPTED: u16 = 1;
/// General purpose bit 3: sizes follow the data.
const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// Why an archive or entry could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ZipError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// There is no end of central directory record.
    #[error("not a jar, or cut off: it has no zip end record; give a jar, a .class file or a folder")]
    NoEnd,
    /// The central directory does not hold together.
    #[error("damaged jar: {0}; build or download it again")]
    Directory(&'static str),
    /// One entry does not hold together.
    #[error("damaged jar: {name}: {what}; build or download it again")]
    Entry {
        /// Name of the entry.
        name: String,
        what: &'static str,
    },
    /// An entry we cannot decompress.
    #[error("{0}")]
    Unreadable(&'static str),
    /// A method other than stored and deflated.
    #[error("compressed by method {0}, which neither Java nor this tool reads")]
    Method(u16),
}
