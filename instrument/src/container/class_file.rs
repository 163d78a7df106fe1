//! A single class file.

use std::path::Path;

/// JVMS §4.1.
pub const MAGIC: [u8; 4] = [0xca, 0xfe, 0xba, 0xbe];

/// Error message for a file that is not a class file.
pub const NO_CLASS: &str = "byte 0: not a class file: it does not start with CAFEBABE";

/// Whether the bytes start as a class file does.
pub fn is_class(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Whether the name is that of a class file.
pub fn has_class_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("class"))
}
