//! The JVM for agents written in Rust: JNI, JVMTI, and HotSpot internals. Independent of traces; used by the runtime
//! and usable by any other agent.
//!
//! * [`env`](mod@env): JNI. An [`Env`](env::Env) is the environment of the current thread, an [`Object`](env::Object) a
//!   local reference, whose lifetime confines it to the callback or [frame](env::Env::frame) that it came from.
//! * [`jvmti`]: functions of JVMTI 1.2, with our own function table over `jni-sys`: only some fifty functions are used,
//!   and the table has not changed since JVMTI 1.0, so there is no layer between a callback and the VM. Failures are a
//!   [`JvmtiError`](jvmti::JvmtiError) with the function's name and JVMTI's code.
//! * [`listener`]: events. Each environment has its own [`Listener`](listener::Listener).
//! * [`threads`]: threads of the agent, and suspending others.
//! * [`hotspot`], [`flags`], [`field_ids`], [`mark_word`], `handles`: what libjvm exports and describes for debuggers,
//!   and its data structures. All of it is verified with JNI, JVMTI or `Unsafe` before it is used; each module names
//!   its source in OpenJDK and the releases that it was tested with. What is not found is `None`, never an error.
//! * [`call_trace`]: walks of the current thread's stack by `AsyncGetCallTrace`.
//! * [`imports`]: replacements for functions that libjvm calls in other libraries.
//! * [`profiling`]: JVMTI functions for profilers: monitors, line numbers, CPU times, contents of objects.
//! * [`memory`]: reads from addresses that may be invalid. [`references`]: follows words that may not be references.
//! * [`standard_files`]: to be called before an agent opens files.
//! * [`sync`]: locks that a panic does not poison.
//!
//! Sizes and offsets are in bytes.

pub mod call_trace;
pub mod env;
pub mod field_ids;
pub mod flags;
mod handles;
pub mod hotspot;
pub mod imports;
pub mod jvmti;
pub mod listener;
pub mod mark_word;
pub mod memory;
pub mod profiling;
pub mod references;
pub mod standard_files;
pub mod sync;
pub mod threads;

use std::ffi::CStr;

use et_names::mutf8;

/// Converts the JVM's modified UTF-8 (NUL in two bytes, supplementary characters as two surrogates of three bytes
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
}
