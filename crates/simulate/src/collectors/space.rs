//! A contiguous part of the heap with bump-pointer allocation.

use super::Full;

/// Bounds and fill level of a space.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    begin: u64,
    next: u64,
    end: u64,
}

impl Space {
    /// An empty space.
    pub fn new(begin: u64, bytes: u64) -> Self {
        Self { begin, next: begin, end: begin + bytes }
    }

    /// Allocates that many bytes and returns their address.
    #[inline]
    pub fn take(&mut self, bytes: u64) -> Result<u64, Full> {
        if self.end - self.next < bytes {
            return Err(Full);
        }
        self.next += bytes;
        Ok(self.next - bytes)
    }

    /// Makes the space empty.
    pub fn clear(&mut self) {
        self.next = self.begin;
    }

    /// Free bytes.
    pub fn free(&self) -> u64 {
        self.end - self.next
    }

    /// Used bytes.
    pub fn used(&self) -> u64 {
        self.next - self.begin
    }

    /// Capacity in bytes.
    pub fn size(&self) -> u64 {
        self.end - self.begin
    }
}
