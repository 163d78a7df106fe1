//! The four streams that a packed block consists of.

use crate::fields::put_len;
use thiserror::Error;

/// Why packed events could not be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnpackError {
    /// A stream is longer than the block, or ends too early.
    #[error("packed content ends too early")]
    CutOff,
    /// A code without a meaning.
    #[error("packed events have code {0}, which stands for nothing")]
    Code(u8),
    /// A first word that starts no event.
    #[error("packed events have {0:#010x}, which no event starts with")]
    Event(u32),
    /// A value that does not fit its field.
    #[error("packed columns have {0}, which does not fit its field")]
    Value(i64),
    /// The last event does not end at the end of the block.
    #[error("packed content does not end where its block ends")]
    Length,
}

/// Codes below this one are runs of events whose digits are all zero: code 0 is one event, 63 is 64 events.
pub const LONGEST_RUN: u8 = 64;

const HEADER: usize = 16;

#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    /// One byte for each event or run of events; codes from [`LONGEST_RUN`] on contain the first digits of a single
    /// event.
    pub codes: &'a [u8],
    /// One byte for each extended event: its remaining digits.
    pub further: &'a [u8],
    /// Control words that were not predicted, as u32.
    pub controls: &'a [u8],
    /// Other words that were not predicted, as u32.
    pub values: &'a [u8],
}

impl<'a> Streams<'a> {
    /// Appends the streams one after the other, preceded by their lengths.
    pub fn write(&self, out: &mut Vec<u8>) {
        let streams = [self.codes, self.further, self.controls, self.values];
        streams.iter().for_each(|stream| put_len(out, stream.len()));
        streams.iter().for_each(|stream| out.extend_from_slice(stream));
    }

    /// Decodes what [`write`](Self::write) encoded.
    pub fn read(packed: &'a [u8]) -> Result<Self, UnpackError> {
        let [codes, further, controls, values] = split(packed)?;
        Ok(Self { codes, further, controls, values })
    }
}

/// The words of packed events that were not predicted, control words excepted.
pub fn values(packed: &[u8]) -> Result<impl Iterator<Item = u32> + '_, UnpackError> {
    let values = Streams::read(packed)?.values.as_chunks::<4>().0;
    Ok(values.iter().map(|word| u32::from_le_bytes(*word)))
}

/// Splits bytes into four streams, given the lengths before them.
pub fn split(packed: &[u8]) -> Result<[&[u8]; 4], UnpackError> {
    let (header, mut rest) = packed.split_at_checked(HEADER).ok_or(UnpackError::CutOff)?;
    let mut streams = [&[][..]; 4];
    for (stream, len) in streams.iter_mut().zip(header.as_chunks::<4>().0) {
        (*stream, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(UnpackError::CutOff)?;
    }
    Ok(streams)
}
