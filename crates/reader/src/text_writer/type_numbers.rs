//! Numbers of types, for dialects without descriptors.

use et_names::ID_LIMIT;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::source::Source;
use crate::text::type_number;
use crate::text::unknown_type::number_of_unknown;
use crate::types::{TypeId, Types};

/// Assigns numbers to types.
#[derive(Debug)]
pub(super) struct TypeNumbers<'a> {
    source: &'a Source,
    known: FxHashMap<TypeId, u64>,
    /// Numbers that are not in the names file.
    made_up: FxHashSet<u64>,
    /// The next number to try; all lower ones are taken.
    next: u64,
}

impl<'a> TypeNumbers<'a> {
    pub fn of(source: &'a Source) -> Self {
        Self { source, known: FxHashMap::default(), made_up: FxHashSet::default(), next: ID_LIMIT.into() }
    }

    /// The number of the type's class in the names file, or a new number.
    pub fn number(&mut self, ty: TypeId, types: &Types) -> u64 {
        if let Some(&number) = self.known.get(&ty) {
            return number;
        }
        let number = match self.source {
            Source::Trace(trace) => type_number(trace, ty),
            Source::Text(text) => {
                let descriptor = types.descriptor(ty);
                let names = text.names();
                let unknown = || number_of_unknown(descriptor).filter(|number| !self.made_up.contains(number));
                let known = names.and_then(|names| names.type_number(descriptor)).or_else(unknown);
                known.unwrap_or_else(|| self.make_up(ty, |number| names.is_some_and(|names| names.has_class(number))))
            }
        };
        self.known.insert(ty, number);
        number
    }

    /// A number that no other type has. The names file of a trace has such numbers as well, for example for arrays of
    /// the program's classes.
    fn make_up(&mut self, ty: TypeId, is_named: impl Fn(u64) -> bool) -> u64 {
        let mut number = u64::from(ID_LIMIT) + u64::from(ty.0);
        while is_named(number) || self.made_up.contains(&number) {
            number = self.next;
            self.next += 1;
        }
        self.made_up.insert(number);
        number
    }
}
