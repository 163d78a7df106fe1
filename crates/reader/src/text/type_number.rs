//! Numbers of types, for dialects without descriptors.

use et_names::ID_LIMIT;

use crate::trace::Trace;
use crate::types::TypeId;

/// The id of a type's class, or a number of its own if the class is in no names table (as for arrays).
pub(crate) fn type_number(trace: &Trace, ty: TypeId) -> u64 {
    match trace.names.classes_of(ty).first() {
        Some(&class) => trace.names.class(class).2.0.into(),
        None => u64::from(ID_LIMIT) + u64::from(ty.0),
    }
}
