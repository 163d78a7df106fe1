//! Commands in a form that users can paste into a shell.

use std::fmt::Write;

use crate::escape::is_special;

/// Quotes an argument for a POSIX shell. Characters that a terminal or the shell would act upon are written as visible
/// escapes: a line break in a name would run the command before the user has read it.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.contains(is_special) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for character in text.chars() {
        match character {
            '\\' | '\'' => quoted.extend(['\\', character]),
            special if is_special(special) => {
                for byte in special.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(quoted, "\\x{byte:02x}");
                }
            }
            character => quoted.push(character),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_in_signs() {
        assert_eq!(quoted("plain-1.jar"), "plain-1.jar");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("a\nrm -rf ~\n"), r"$'a\x0arm -rf ~\x0a'");
        assert_eq!(quoted("\u{202e}it's\\"), r"$'\xe2\x80\xaeit\'s\\'");
    }
}
