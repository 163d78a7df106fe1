//! Call stacks of allocations (`--events alloc,stacks`): a tree whose nodes are numbered when they are first needed.

use super::FormatError;
use super::fields::{Fields, put_u32, put_u64};

/// The bit of a site in an event that says that the rest is the number of a stack, whose innermost frame has the site.
pub const STACK: u32 = 1 << 31;

/// A node of the tree, or what was counted while it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackRecord {
    /// A stack: that of the caller, and one more frame. Callers come first.
    Frame {
        /// From 1.
        number: u32,
        /// The stack of the caller; 0: there is none.
        caller: u32,
        /// The call, or at the innermost frame the allocation; 0 for the callers of a stack beyond the limit.
        site: u32,
    },
    /// At the end.
    Counts(StackCounts),
}

/// How stacks came to their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounts {
    /// Values of stacks that were seen for the first time.
    pub values: u64,
    /// Those whose stack did not fit what calls had stored, and was recorded as it was found: code without hooks, class loading by the VM.
    pub walked_whole: u64,
    /// Allocations of which only the nearest frames are known, since there were too many stacks.
    pub beyond_limit: u64,
    /// Frames that were looked at.
    pub frames: u64,
}

impl StackRecord {
    /// The first byte of a frame, and its length in bytes with that.
    pub(crate) const FRAME: u8 = 1;
    pub(crate) const FRAME_LEN: usize = 13;

    /// Appends the record to a `Stacks` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Frame { number, caller, site } => {
                out.push(Self::FRAME);
                [number, caller, site].into_iter().for_each(|value| put_u32(out, value));
            }
            Self::Counts(StackCounts { values, walked_whole, beyond_limit, frames }) => {
                out.push(2);
                [values, walked_whole, beyond_limit, frames].into_iter().for_each(|value| put_u64(out, value));
            }
        }
    }

    /// Decodes all records of a `Stacks` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::with_capacity(raw.len() / Self::FRAME_LEN);
        while !fields.done() {
            records.push(match fields.u8()? {
                Self::FRAME => Self::Frame { number: fields.u32()?, caller: fields.u32()?, site: fields.u32()? },
                2 => Self::Counts(StackCounts {
                    values: fields.u64()?,
                    walked_whole: fields.u64()?,
                    beyond_limit: fields.u64()?,
                    frames: fields.u64()?,
                }),
                _ => return fields.fail("tag of a record of stacks"),
            });
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let counts = StackCounts { values: 5, walked_whole: 1, beyond_limit: u64::MAX, frames: 9 };
        let records = [StackRecord::Frame { number: 1, caller: 0, site: 7 }, StackRecord::Counts(counts)];
        let mut raw = Vec::new();
        records.iter().for_each(|record| record.encode(&mut raw));
        assert_eq!(StackRecord::decode_block(&raw).unwrap(), records);
        assert!(StackRecord::decode_block(&raw[..raw.len() - 1]).is_err());
        assert!(StackRecord::decode_block(&[3]).is_err());
    }
}
