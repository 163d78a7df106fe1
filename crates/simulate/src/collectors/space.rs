//! A piece of the heap that is filled from its beginning.

use super::Full;

/// Where such a piece is, and how far it is filled.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    begin: u64,
    next: u64,
    end: u64,
}

impl Space {
    /// An empty one.
    pub fn new(begin: u64, bytes: u64) -> Self {
        Self { begin, next: begin, end: begin + bytes }
    }

    /// Room for an object.
    #[inline]
    pub fn take(&mut self, bytes: u64) -> Result<u64, Full> {
        if self.end - self.next < bytes {
            return Err(Full);
        }
        self.next += bytes;
        Ok(self.next - bytes)
    }

    /// It is empty again.
    pub fn clear(&mut self) {
        self.next = self.begin;
    }

    /// Bytes that are not taken.
    pub fn free(&self) -> u64 {
        self.end - self.next
    }

    /// Bytes that are.
    pub fn used(&self) -> u64 {
        self.next - self.begin
    }

    /// All of it.
    pub fn size(&self) -> u64 {
        self.end - self.begin
    }
}
