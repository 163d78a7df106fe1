//! Zip archives, byte for byte where nothing changes.
//!
//! Our own reader and writer, because a faithful copy needs what general libraries do not give: two entries of one
//! name, bytes before the first entry (launch scripts, the header of a jmod), extra fields and attributes as
//! they were. Compression is flate2's. The format is PKWARE's APPNOTE.TXT; section numbers below are its.

mod align;
mod read;
mod write;

pub use read::{Archive, Entry};
pub use write::{Packed, Writer};

use thiserror::Error;

/// Stored, not compressed.
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
/// General purpose bit 0.
const FLAG_ENCRYPTED: u16 = 1;
/// General purpose bit 3: sizes follow the data.
const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// Why an archive or entry could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ZipError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// No end record.
    #[error("not a jar, or cut off: it has no zip end record; give a jar, a .class file or a folder")]
    NoEnd,
    /// The central directory does not hold together.
    #[error("damaged jar: {0}; build or download it again")]
    Directory(&'static str),
    /// One entry does not hold together.
    #[error("damaged jar: {name}: {what}; build or download it again")]
    Entry {
        /// The entry.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// An entry we cannot decompress.
    #[error("{0}")]
    Unreadable(&'static str),
    /// A method other than stored and deflated.
    #[error("compressed by method {0}, which neither Java nor this tool reads")]
    Method(u16),
}
