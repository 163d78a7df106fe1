//! Types of which a text tells only the number.

use crate::types::class_name;

/// The descriptor of a type of which only the number is known.
pub(super) fn unknown_type(number: u64, is_array: bool) -> String {
    format!("{}Lclass{number};", if is_array { "[" } else { "" })
}

/// Whether nothing but its number may be known of a type.
pub fn is_unknown_type(descriptor: &str) -> bool {
    number_of_unknown(descriptor).is_some()
}

/// The number of such a type.
pub(crate) fn number_of_unknown(descriptor: &str) -> Option<u64> {
    class_name(descriptor.strip_prefix('[').unwrap_or(descriptor))?.strip_prefix("class")?.parse().ok()
}
