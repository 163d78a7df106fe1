//! What the garbage collector reported about objects (`deaths=gc`).

use super::FormatError;
use super::fields::{Fields, put_len, put_u32, put_u64};
use crate::event::{ObjectHash, Ticket};

/// What the collector did with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The collector freed it.
    Freed,
    /// It survived a full collection at the end of the run.
    Held,
}

/// Objects with the same fate, found in one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    pub fate: Fate,
    /// Sampling interval: only objects whose id is a multiple of this were observed.
    pub share: u32,
    /// Ticket at the start of the latest collection that may have found this. Objects that were freed were unreachable
    /// by then.
    pub by: Ticket,
    /// The objects, in no particular order.
    pub objects: Vec<ObjectHash>,
}

impl Collected {
    /// Appends the record to a `Collector` block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.fate {
            Fate::Freed => 1,
            Fate::Held => 2,
        });
        put_u32(out, self.share);
        put_u64(out, self.by.0);
        put_len(out, self.objects.len());
        self.objects.iter().for_each(|object| put_u32(out, object.0));
    }

    /// Decodes all records of a `Collector` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::new();
        while !fields.done() {
            let fate = match fields.u8()? {
                1 => Fate::Freed,
                2 => Fate::Held,
                _ => return fields.fail("what the collector said of objects"),
            };
            let (share, by) = (fields.u32()?, Ticket(fields.u64()?));
            let count = fields.count(4)?;
            let objects = (0..count).map(|_| fields.object()).collect::<Result<_, _>>()?;
            records.push(Self { fate, share, by, objects });
        }
        Ok(records)
    }
}
