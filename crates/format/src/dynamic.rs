//! What a trace says about classes created at run time, apart from their names tables.

use et_names::ClassId;
use serde::{Deserialize, Serialize};

use super::FormatError;
use super::fields::Fields;
use crate::event::ObjectHash;

/// Outcomes for the classes defined while tracing was on. Every class in `seen` is also counted in exactly one of the
/// outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicCounts {
    /// Class files that Java code, JNI or an agent tried to define.
    pub seen: u64,
    /// Of these, class files that were to replace that of a loaded class (`Instrumentation.redefineClasses`, hot swap).
    pub redefined: u64,
    /// Classes that got hooks.
    pub rewritten: u64,
    /// Classes that had been instrumented before the run.
    pub already_instrumented: u64,
    /// Classes excluded by `dynamicExclude`.
    pub excluded: u64,
    /// Class files that could not be parsed.
    pub malformed: u64,
    /// Classes that the VM rejected with hooks and that were then defined without them.
    pub refused: u64,
    /// Classes that the rewriter failed on, or for which no ids were left.
    pub failed: u64,
    /// Total time spent on all of them, in nanoseconds.
    pub nanos: u64,
}

/// A class created at run time, recorded once it is defined: says which mirror belongs to which class of a names table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicClass {
    pub mirror: ObjectHash,
    pub class: ClassId,
}

impl DynamicClass {
    /// Length of a record in bytes.
    pub const BYTES: usize = 8;

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.mirror.0.to_le_bytes());
        out.extend_from_slice(&self.class.0.to_le_bytes());
    }

    /// Decodes a `DynamicClasses` block.
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
