//! Big-endian numbers with bounds.

/// The bytes of a class file, or of a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(super) fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(self.range(at, 2)?.try_into().ok()?))
    }

    pub(super) fn i16(self, at: usize) -> Option<i16> {
        self.u16(at).map(u16::cast_signed)
    }

    pub(super) fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.range(at, 4)?.try_into().ok()?))
    }

    pub(super) fn i32(self, at: usize) -> Option<i32> {
        self.u32(at).map(u32::cast_signed)
    }

    pub(super) fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_be_bytes(self.range(at, 8)?.try_into().ok()?))
    }

    pub(super) fn range(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(at..at.checked_add(length)?)
    }
}

/// Reads front to back; `None` at the end.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: Bytes<'a>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: Bytes(bytes), at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.0.len()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        let value = self.bytes.u8(self.at)?;
        self.at += 1;
        Some(value)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let value = self.bytes.u16(self.at)?;
        self.at += 2;
        Some(value)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let value = self.bytes.u32(self.at)?;
        self.at += 4;
        Some(value)
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.range(self.at, length)?;
        self.at += length;
        Some(taken)
    }
}
