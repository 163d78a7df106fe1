//! URLs in the `Class-Path` of a manifest: et-instrument rewrites the files that they lead to, the runtime looks for
//! their names tables.

use std::path::PathBuf;

/// Converts a relative URL to a path; any other URL becomes a path that does not exist.
pub fn decoded(url: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = url.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    PathBuf::from(text.strip_prefix("file:").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_paths() {
        assert_eq!(decoded("lib/my%20jar.jar"), PathBuf::from("lib/my jar.jar"));
        assert_eq!(decoded("50%.jar"), PathBuf::from("50%.jar"));
        assert_eq!(decoded("file:/opt/a.jar"), PathBuf::from("/opt/a.jar"));
    }
}
