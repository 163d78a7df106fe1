//! The JVM as an agent written in Rust sees it: JNI, JVMTI, and what is known of HotSpot beyond the two. It knows nothing of traces; the
//! runtime uses it, and any other agent can.
//!
//! * [`env`](mod@env): JNI. An [`Env`](env::Env) is the environment of the current thread, an [`Object`](env::Object) a local reference,
//!   which its lifetime keeps inside the callback or [frame](env::Env::frame) that it came from.
//! * [`jvmti`]: functions of JVMTI 1.2, by a table of our own over `jni-sys`: some fifty functions are used, the function table has not
//!   moved since JVMTI 1.0, and so nothing stands between a callback and the VM. What fails is a
//!   [`JvmtiError`](jvmti::JvmtiError) with the function's name and JVMTI's code.
//! * [`listener`]: events. Each environment has a [`Listener`](listener::Listener) of its own.
//! * [`threads`]: threads of the agent's own, and stopping others.
//! * [`hotspot`], [`flags`], [`field_ids`], [`mark_word`], `handles`: what libjvm exports and tells debuggers, and where it keeps things. None of it is
//!   believed before it was compared with what JNI, JVMTI or `Unsafe` say of the same things; each module names its source in
//!   OpenJDK and the releases that it was tried on. What is not found is `None`, and never an error.
//! * [`imports`]: functions in place of those that libjvm calls in other libraries.
//! * [`profiling`]: functions of JVMTI that profilers want: monitors, lines, CPU times, what objects hold.
//! * [`memory`]: reads addresses that may be none. [`references`]: where words lead that may be none.
//! * [`standard_files`]: what an agent does before it opens files.
//! * [`sync`]: locks that go on working after a panic.
//!
//! Sizes and offsets are in bytes.

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
}
