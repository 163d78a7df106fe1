//! Patterns of names.

/// Whether a text is that of a pattern, in which `*` is any text.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("shop.Order", "shop.Order", true),
            ("shop.Order", "shop.Order[]", false),
            ("shop.*", "shop.Order", true),
            ("*Order", "shop.Order", true),
            ("*.Or*r", "shop.Order", true),
            ("shop*Order*", "shop.Order", true),
            ("shop.Or*Order", "shop.Order", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*a", "a", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
