//! The JVM's interfaces as far as the runtime uses them.
//!
//! JVMTI by a table of our own over `jni-sys`: forty functions are used, the function table has not moved since
//! JVMTI 1.0, and so nothing stands between a callback and the JVM.

pub mod env;
pub mod field_ids;
mod handles;
pub mod hotspot;
pub mod jvmti;

use std::ffi::CStr;

/// The JVM's strings: modified UTF-8 (NUL in two bytes, supplementary characters as surrogates of three bytes
/// each). What is not proper becomes U+FFFD.
pub fn from_modified_utf8(text: &CStr) -> String {
    let bytes = text.to_bytes();
    if let Ok(plain) = std::str::from_utf8(bytes)
        && !bytes.contains(&0xc0)
    {
        return plain.to_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (unit, used) = match (*first, tail) {
            (a @ 0..=0x7f, _) => (u16::from(a), 1),
            (a @ 0xc0..=0xdf, [b, ..]) => (u16::from(a & 0x1f) << 6 | u16::from(b & 0x3f), 2),
            (a @ 0xe0..=0xef, [b, c, ..]) => {
                (u16::from(a & 0x0f) << 12 | u16::from(b & 0x3f) << 6 | u16::from(c & 0x3f), 3)
            }
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = &rest[used..];
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_utf8_becomes_utf8() {
        assert_eq!(from_modified_utf8(c"Ljava/lang/String;"), "Ljava/lang/String;");
        assert_eq!(from_modified_utf8(c"Lä;"), "Lä;");
        assert_eq!(from_modified_utf8(c"a\xc0\x80b"), "a\0b");
        // U+1D11E as two surrogates.
        assert_eq!(from_modified_utf8(c"\xed\xa0\xb4\xed\xb4\x9e"), "\u{1d11e}");
        assert_eq!(from_modified_utf8(c"\xff"), "\u{fffd}");
    }
}
