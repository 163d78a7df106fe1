//! Lines that may differ from one run to the next.

/// Wildcard for any text within a line.
pub const ANYTHING: char = '…';

/// Whether a text is as a pattern has it.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once(ANYTHING) else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(ANYTHING).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, behind)) => text = behind,
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_stand_for_anything_within_a_line() {
        for (pattern, text) in [("a", "a"), ("…", ""), ("a…", "abc"), ("…c", "abc"), ("a…c…e", "abcde"), ("…b…", "b")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a…c", "ab"), ("…b…b", "ab"), ("a…a", "a"), ("", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
