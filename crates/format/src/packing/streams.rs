//! What is kept of a block, in four streams.

use crate::fields::put_len;
use thiserror::Error;

/// Why packed events cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnpackError {
    /// Streams are longer than the block, or end too early.
    #[error("packed events end too early")]
    CutOff,
    /// A code that stands for nothing.
    #[error("packed events have code {0}, which stands for nothing")]
    Code(u8),
    /// No event starts so.
    #[error("packed events have {0:#010x}, which no event starts with")]
    Event(u32),
    /// Events do not end where the block does.
    #[error("packed events do not end where their block ends")]
    Length,
}

/// Codes up to this one are runs of events whose digits are all zero: 0 is one event, 63 is 64.
pub const LONGEST_RUN: u8 = 64;

const HEADER: usize = 16;

/// The streams.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    /// A byte for an event or a run of them: from [`LONGEST_RUN`] on, the event's first digits.
    pub codes: &'a [u8],
    /// A byte for each extended event: its further digits.
    pub further: &'a [u8],
    /// u32 each: control words that nothing predicted.
    pub controls: &'a [u8],
    /// u32 each: other such words.
    pub values: &'a [u8],
}

impl<'a> Streams<'a> {
    /// Behind each other, with their lengths before them.
    pub fn write(&self, out: &mut Vec<u8>) {
        let streams = [self.codes, self.further, self.controls, self.values];
        streams.iter().for_each(|stream| put_len(out, stream.len()));
        streams.iter().for_each(|stream| out.extend_from_slice(stream));
    }

    /// As they were written.
    pub fn read(packed: &'a [u8]) -> Result<Self, UnpackError> {
        let [codes, further, controls, values] = split(packed)?;
        Ok(Self { codes, further, controls, values })
    }
}

/// Four streams with their lengths before them.
pub fn split(packed: &[u8]) -> Result<[&[u8]; 4], UnpackError> {
    let (header, mut rest) = packed.split_at_checked(HEADER).ok_or(UnpackError::CutOff)?;
    let mut streams = [&[][..]; 4];
    for (stream, len) in streams.iter_mut().zip(header.as_chunks::<4>().0) {
        (*stream, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(UnpackError::CutOff)?;
    }
    Ok(streams)
}
