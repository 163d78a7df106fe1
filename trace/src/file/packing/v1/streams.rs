//! What is kept of a block, in four streams.

use super::super::streams::split;
use super::super::unpack::UnpackError;

/// Codes up to this one are runs of events whose digits are all zero: 0 is one event, 63 is 64.
pub const LONGEST_RUN: u8 = 64;
/// The code before a code that is not in the dictionary.
pub const ESCAPE: u8 = u8::MAX;
/// Codes that a byte can stand for.
#[cfg(test)]
pub const DICTIONARY: usize = (ESCAPE - LONGEST_RUN) as usize;

/// The streams.
#[derive(Clone, Copy)]
pub struct Streams<'a> {
    /// u16 each: the digits of events, in the order of their bytes from [`LONGEST_RUN`] on.
    pub dictionary: &'a [u8],
    /// A byte for an event or a run of them.
    pub codes: &'a [u8],
    /// u32 each: control words that nothing foretold.
    pub controls: &'a [u8],
    /// u32 each: other such words.
    pub values: &'a [u8],
}

impl<'a> Streams<'a> {
    #[cfg(test)]
    /// Behind each other, with their lengths before them.
    pub fn write(&self, out: &mut Vec<u8>) {
        let streams = [self.dictionary, self.codes, self.controls, self.values];
        streams.iter().for_each(|stream| out.extend_from_slice(&(stream.len() as u32).to_le_bytes()));
        streams.iter().for_each(|stream| out.extend_from_slice(stream));
    }

    /// As they were written.
    pub fn read(packed: &'a [u8]) -> Result<Self, UnpackError> {
        let [dictionary, codes, controls, values] = split(packed)?;
        Ok(Self { dictionary, codes, controls, values })
    }
}
