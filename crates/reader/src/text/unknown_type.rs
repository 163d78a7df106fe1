//! Types of which only the number is known.

use crate::types::class_name;

/// A made-up descriptor for the type.
pub(super) fn unknown_type(number: u64, is_array: bool) -> String {
    format!("{}Lclass{number};", if is_array { "[" } else { "" })
}

/// Whether a descriptor may be such a made-up one.
pub fn is_unknown_type(descriptor: &str) -> bool {
    number_of_unknown(descriptor).is_some()
}

/// The number in such a descriptor.
pub(crate) fn number_of_unknown(descriptor: &str) -> Option<u64> {
    class_name(descriptor.strip_prefix('[').unwrap_or(descriptor))?.strip_prefix("class")?.parse().ok()
}
