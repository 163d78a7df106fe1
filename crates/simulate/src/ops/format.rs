//! Layout of the operations file. All numbers are little-endian.

use std::io;

/// First bytes of the file; the line end reveals transfers that convert line ends.
pub const MAGIC: [u8; 8] = *b"ETOPS\0\r\n";
/// Version of the format.
pub const VERSION: u32 = 1;
/// Detects a file of the other byte order.
const BYTE_ORDER: u32 = 0x0102_0304;
/// Size of the header in bytes.
pub const HEAD: usize = 64;
/// Maximum handle; handles begin at 1. The four upper bits of a word are the kind of the operation.
pub const MOST_HANDLES: u32 = (1 << 28) - 1;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// An object is created with null slots. `initial`: it existed when tracing began.
    Birth { handle: u32, class: u32, size: u64, slots: u32, site: u32, initial: bool },
    /// A reference is stored into a slot of an object; target 0 is null.
    Update { origin: u32, slot: u32, target: u32 },
    /// A reference is stored into a static field; target 0 is null.
    UpdateStatic { field: u32, target: u32 },
    /// The object becomes unreachable. Its handle may be reused.
    Death { handle: u32 },
    /// The object is used: as the receiver of a method call, or according to a witness.
    Touch { handle: u32 },
    /// The following operations are by this thread, an index into the thread table.
    Thread { thread: u32 },
    /// The clock of the trace reaches this tick.
    Tick { tick: u64 },
}

/// Values of the upper four bits of an operation's first word.
pub(super) mod kind {
    pub const BIRTH: u32 = 1;
    pub const BIRTH_WIDE: u32 = 2;
    pub const UPDATE: u32 = 3;
    pub const UPDATE_STATIC: u32 = 4;
    pub const DEATH: u32 = 5;
    pub const TOUCH: u32 = 6;
    pub const THREAD: u32 = 7;
    pub const TICK: u32 = 8;
}

/// Number of words by kind; 0 for an invalid kind.
pub(super) const WORDS: [usize; 16] = [0, 4, 6, 3, 2, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0];
/// Maximum number of words of an operation.
pub(super) const MOST_WORDS: usize = 6;

/// Bit of the class word: the object existed when tracing began.
pub(super) const INITIAL: u32 = 1 << 31;

/// The first word of an operation.
pub(super) fn first(kind: u32, low: u32) -> u32 {
    kind << 28 | low
}

/// The header of a complete file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub ops_bytes: u64,
    pub tables_bytes: u64,
    pub ops_hash: u64,
    pub tables_hash: u64,
}

/// Why a header is invalid.
#[derive(Debug)]
pub(super) enum HeadError {
    NotOps,
    Version(u32),
    ByteOrder,
    Damaged,
}

impl Head {
    pub fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
        for (at, number) in [self.ops_bytes, self.tables_bytes, self.ops_hash, self.tables_hash].into_iter().enumerate()
        {
            bytes[16 + 8 * at..24 + 8 * at].copy_from_slice(&number.to_le_bytes());
        }
        let hash = xxhash_rust::xxh3::xxh3_64(&bytes[..HEAD - 8]);
        bytes[HEAD - 8..].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; HEAD]) -> Result<Self, HeadError> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let number = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[..8] != MAGIC {
            return Err(HeadError::NotOps);
        }
        if word(12) == BYTE_ORDER.swap_bytes() {
            return Err(HeadError::ByteOrder);
        }
        if word(8) != VERSION {
            return Err(HeadError::Version(word(8)));
        }
        if number(HEAD - 8) != xxhash_rust::xxh3::xxh3_64(&bytes[..HEAD - 8]) || word(12) != BYTE_ORDER {
            return Err(HeadError::Damaged);
        }
        Ok(Self { ops_bytes: number(16), tables_bytes: number(24), ops_hash: number(32), tables_hash: number(40) })
    }
}

/// The error for a truncated file.
pub(super) fn ends() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
