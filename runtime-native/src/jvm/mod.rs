//! The JVM's interfaces as far as the runtime uses them.
//!
//! JVMTI by a table of our own over `jni-sys`: forty functions are used, the function table has not moved since
//! JVMTI 1.0, and so nothing stands between a callback and the JVM.

pub mod env;
pub mod field_ids;
mod handles;
pub mod hotspot;
pub mod jvmti;
pub mod memory;

use std::ffi::CStr;

use et_names::mutf8;

/// The JVM's strings: modified UTF-8 (NUL in two bytes, supplementary characters as surrogates of three bytes
/// each).
pub fn from_modified_utf8(text: &CStr) -> String {
    mutf8::decode(text.to_bytes())
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

    /// A `jboolean` is a byte, which native code may set to anything; a `bool` is 0 or 1, or all bets are off.
    #[test]
    fn nothing_that_c_calls_takes_a_bool() {
        let sources = [
            include_str!("../agent.rs"),
            include_str!("../jni_table.rs"),
            include_str!("../natives.rs"),
            include_str!("../dynamic/define_class.rs"),
            include_str!("../dynamic/natives.rs"),
            include_str!("jvmti.rs"),
        ];
        let mut functions = 0;
        for source in sources {
            for function in source.split("extern \"system\" fn").skip(1) {
                let (mut depth, mut arguments) = (0, function);
                if let Some(end) = function.find(|c| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    c == ')' && depth == 0
                }) {
                    arguments = &function[..end];
                }
                assert!(!arguments.contains("bool"), "{arguments}");
                functions += 1;
            }
            let made = source.split("\nmakers! {").nth(1).and_then(|makers| makers.split("\n}").next());
            assert!(!made.is_some_and(|made| made.contains("bool")), "{made:?}");
        }
        assert!(functions > 30, "{functions}");
    }
}
