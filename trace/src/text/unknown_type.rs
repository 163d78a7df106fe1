//! Types of which a text tells only the number.

use crate::types::class_name;

/// The descriptor of a type of which only the number is known.
pub(super) fn unknown_type(number: u64, is_array: bool) -> String {
    format!("{}Lclass{number};", if is_array { "[" } else { "" })
}

/// The number of such a type.
pub(crate) fn number_of_unknown(descriptor: &str) -> Option<u64> {
    class_name(descriptor.strip_prefix('[').unwrap_or(descriptor))?.strip_prefix("class")?.parse().ok()
}
