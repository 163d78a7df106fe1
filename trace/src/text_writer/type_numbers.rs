//! Numbers of types, for dialects that write no descriptors.

use et_names::ID_LIMIT;
use rustc_hash::FxHashMap;

use crate::source::Source;
use crate::text::type_number;
use crate::text::unknown_type::number_of_unknown;
use crate::types::{TypeId, Types};

/// Numbers of types, for dialects that write no descriptors.
#[derive(Debug)]
pub(super) struct TypeNumbers<'a> {
    source: &'a Source,
    known: FxHashMap<TypeId, u64>,
}

impl<'a> TypeNumbers<'a> {
    pub fn of(source: &'a Source) -> Self {
        Self { source, known: FxHashMap::default() }
    }

    /// The number of the type's class in the names file.
    pub fn number(&mut self, ty: TypeId, types: &Types) -> u64 {
        let source = self.source;
        *self.known.entry(ty).or_insert_with(|| match source {
            Source::Trace(trace) => type_number(trace, ty),
            Source::Text(text) => {
                let descriptor = types.descriptor(ty);
                let known = text.names().and_then(|names| names.type_number(descriptor));
                known.or_else(|| number_of_unknown(descriptor)).unwrap_or(u64::from(ID_LIMIT) + u64::from(ty.0))
            }
        })
    }
}
