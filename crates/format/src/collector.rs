//! What the collector said of objects (`deaths=gc`).

use super::FormatError;
use super::fields::{Fields, put_len, put_u32, put_u64};
use crate::event::{ObjectHash, Ticket};

/// What became of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The collector freed them.
    Freed,
    /// It still held them after a full collection at the end.
    Held,
}

/// Objects of which the collector says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// What.
    pub fate: Fate,
    /// Of how many objects one was asked about: those whose id is a multiple of it.
    pub share: u32,
    /// Start of the latest collection that can have found it out. What was freed was unreachable by then.
    pub by: Ticket,
    /// Which objects, in no order.
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

    /// All records of a `Collector` block.
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
