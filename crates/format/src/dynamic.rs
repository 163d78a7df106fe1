//! What a trace says of classes made at run time, beside their names tables.

use et_names::ClassId;
use serde::{Deserialize, Serialize};

use super::FormatError;
use super::fields::Fields;
use crate::event::ObjectHash;

/// What became of the classes that were defined while tracing was on. Each seen class counts in one of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicCounts {
    /// Class files that Java code, JNI or an agent wanted to define.
    pub seen: u64,
    /// Of these, were to replace the class file of a class that was there (`Instrumentation.redefineClasses`, hot swap).
    pub redefined: u64,
    /// Got hooks.
    pub rewritten: u64,
    /// Were rewritten before the run.
    pub already_instrumented: u64,
    /// Left out by `dynamicExclude`.
    pub excluded: u64,
    /// Are no class files that could be read.
    pub malformed: u64,
    /// The VM refused them with hooks; they were defined without.
    pub refused: u64,
    /// The rewriter failed, or had no ids left.
    pub failed: u64,
    /// Time spent on all of them.
    pub nanos: u64,
}

/// A class made at run time, once it is defined: which mirror belongs to which class of a names table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DynamicClass {
    pub mirror: ObjectHash,
    pub class: ClassId,
}

impl DynamicClass {
    /// Bytes of a record.
    pub const BYTES: usize = 8;

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.mirror.0.to_le_bytes());
        out.extend_from_slice(&self.class.0.to_le_bytes());
    }

    /// Reads a `DynamicClasses` block.
    pub fn decode_block(raw: &[u8]) -> Result<Vec<Self>, FormatError> {
        let mut fields = Fields::new(raw);
        let mut records = Vec::with_capacity(raw.len() / Self::BYTES);
        while !fields.done() {
            records.push(Self { mirror: fields.object()?, class: ClassId(fields.u32()?) });
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_come_back(records in prop::collection::vec((0..1u32 << 31, any::<u32>()), 0..20)) {
            let records: Vec<_> = records
                .into_iter()
                .map(|(mirror, class)| DynamicClass { mirror: ObjectHash(mirror), class: ClassId(class) })
                .collect();
            let mut raw = Vec::new();
            records.iter().for_each(|record| record.encode(&mut raw));
            prop_assert_eq!(DynamicClass::decode_block(&raw).unwrap(), records);
            raw.push(0);
            prop_assert!(DynamicClass::decode_block(&raw).is_err());
        }
    }
}
