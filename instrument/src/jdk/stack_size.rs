//! Stack sizes of threads, as set by JVM options.
//!
//! Hooks enlarge the frames of compiled methods, up to five times for small methods compiled by C1: recursion that fits
//! on a stack without hooks might no longer fit. Only the used part of a stack takes memory, so larger stacks only cost
//! address space.
//!
//! For stack sizes that the program requests itself, the hook `stackSize` in `HeapProxy.java` does the same.

/// How many times as large a stack is for the same depth.
pub const FACTOR: u64 = 5;

/// HotSpot takes no more (`globals.hpp`, `ThreadStackSize`).
const MOST: u64 = 1 << 30;

/// The JVM's default (`globals_linux_x86.hpp`, `globals_linux_aarch64.hpp`).
const DEFAULT: u64 = if cfg!(target_arch = "x86_64") { 1 << 20 } else { 2040 << 10 };

const XSS: &str = "-Xss";
const FLAG: &str = "-XX:ThreadStackSize=";

/// A size that an option gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSize {
    /// `-Xss`: of all threads, the main one, which the launcher starts, among them. In bytes.
    OfAll(u64),
    /// `-XX:ThreadStackSize`: of all but the main thread. In bytes.
    OfOthers(u64),
}

impl StackSize {
    /// Parses an option; `None` if it is another one, or invalid, which the JVM will report.
    pub fn of(option: &str) -> Option<Self> {
        if let Some(size) = option.strip_prefix(XSS) {
            return Some(Self::OfAll(number(size)?));
        }
        Some(Self::OfOthers(number(option.strip_prefix(FLAG)?)?.checked_mul(1024)?))
    }

    /// The size that holds as many frames with hooks.
    #[must_use]
    pub fn scaled(self) -> Self {
        let scaled = |bytes: u64| match bytes {
            0 => DEFAULT * FACTOR,
            _ => bytes.saturating_mul(FACTOR).min(MOST).max(bytes),
        };
        match self {
            Self::OfAll(bytes) => Self::OfAll(scaled(bytes)),
            Self::OfOthers(bytes) => Self::OfOthers(scaled(bytes)),
        }
    }

    /// Size in bytes, for whichever threads.
    pub fn bytes(self) -> u64 {
        match self {
            Self::OfAll(bytes) | Self::OfOthers(bytes) => bytes,
        }
    }

    pub fn option(self) -> String {
        match self {
            Self::OfAll(bytes) => format!("{XSS}{}k", bytes.div_ceil(1024)),
            Self::OfOthers(bytes) => format!("{FLAG}{}", bytes.div_ceil(1024)),
        }
    }
}

impl Default for StackSize {
    /// The sizes without any options.
    fn default() -> Self {
        Self::OfAll(DEFAULT)
    }
}

/// An option with a size of stacks, scaled.
pub fn scaled(option: &str) -> Option<String> {
    StackSize::of(option).map(|size| size.scaled().option())
}

/// A number as the JVM reads sizes: `512k`.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_scaled_in_the_options_that_give_them() {
        for (option, expected) in [
            ("-Xss512k", Some("-Xss2560k")),
            ("-Xss1m", Some("-Xss5120k")),
            ("-Xss1048576", Some("-Xss5120k")),
            ("-XX:ThreadStackSize=512", Some("-XX:ThreadStackSize=2560")),
            // No more than the JVM takes, and no less than was given.
            ("-Xss400m", Some("-Xss1048576k")),
            ("-Xss2g", Some("-Xss2097152k")),
            ("-Xss99999999999g", None),
            ("-Xss", None),
            ("-Xssmuch", None),
            ("-XX:ThreadStackSize=", None),
            ("-XX:CompilerThreadStackSize=512", None),
            ("-Xmx1g", None),
        ] {
            assert_eq!(scaled(option).as_deref(), expected, "{option}");
        }
        assert_eq!(scaled("-Xss0"), Some(StackSize::default().scaled().option()));
    }
}
