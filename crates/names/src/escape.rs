//! Names and messages as text (`docs/reading-traces.md`, "Escapes"). A name may contain nearly any character (JVMS
//! §4.2.2): spaces and line breaks, which would change the meaning of a text, control characters for terminals, and
//! characters that change the order in which a line is displayed.
//!
//! | written | means |
//! |---|---|
//! | `\\` | a backslash |
//! | `\uXXXX` | that character; two of them for one beyond U+FFFF, one for half a pair |
//! | `\_` | an empty name |

use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::io;

use crate::mutf8;

/// Whether a character must not appear unescaped in a line: it ends the line, moves the cursor, changes the display
/// order of its neighbours, or is invisible.
pub fn is_special(character: char) -> bool {
    character.is_control()
        || (character.is_whitespace() && character != ' ')
        || mutf8::half_of_pair(character).is_some()
        || matches!(character,
            // Soft hyphen, directional marks, joiners, byte order mark.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Musical format characters, tags.
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Fast path for nearly all names: nothing needs escaping.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'!'..=b'[' | b']'..=b'~'))
}

fn push(out: &mut impl Write, character: char) -> fmt::Result {
    if let Some(unit) = mutf8::half_of_pair(character) {
        return write!(out, "\\u{unit:04x}");
    }
    push_units(out, character)
}

fn push_units(out: &mut impl Write, character: char) -> fmt::Result {
    character.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
}

fn is_low(half: u16) -> bool {
    half >= 0xdc00
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|character| character == '\\' || is_escaped(character)) {
        return text.into();
    }
    each_escaped(text, is_escaped).into()
}

fn each_escaped(text: &str, mut is_escaped: impl FnMut(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut behind_high = false;
    for character in text.chars() {
        let half = mutf8::half_of_pair(character);
        // Writing to a string cannot fail.
        let _ = match character {
            '\\' => out.write_str("\\\\"),
            // After the other half it would be read as one character with it.
            _ if behind_high && half.is_some_and(is_low) => push_units(&mut out, character),
            _ if is_escaped(character) => push(&mut out, character),
            _ => out.write_char(character),
        };
        behind_high = half.is_some_and(|half| !is_low(half));
    }
    out
}

/// Escapes a name for use as one field of a line: the result has no spaces and is not empty.
pub fn word(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return "\\_".into();
    }
    if is_plain(name) { name.into() } else { escaped(name, |character| character == ' ' || is_special(character)) }
}

/// Like [`word`], but always escapes the first character, for places where it would be misread.
pub fn word_of_odd_start(name: &str) -> String {
    if name.is_empty() {
        return word(name).into_owned();
    }
    let mut is_first = true;
    each_escaped(name, |character| std::mem::take(&mut is_first) || character == ' ' || is_special(character))
}

/// Escapes a name or other text within a line; spaces are kept.
pub fn line(text: &str) -> Cow<'_, str> {
    if is_plain(text) { text.into() } else { escaped(text, is_special) }
}

/// Undoes [`word`] and [`line()`]. A backslash that starts no escape sequence stands for itself.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    if text == "\\_" {
        return "".into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let used = match rest.as_bytes().get(1) {
            Some(b'\\') => {
                out.push('\\');
                2
            }
            _ => match unit(rest) {
                Some(high) => {
                    let low = unit(&rest[6..]).filter(|_| (0xd800..0xdc00).contains(&high));
                    let pair = low.and_then(|low| char::decode_utf16([high, low]).next()?.ok());
                    out.push(pair.unwrap_or_else(|| mutf8::of_unit(high)));
                    if pair.is_some() { 12 } else { 6 }
                }
                None => {
                    out.push('\\');
                    1
                }
            },
        };
        rest = &rest[used..];
    }
    out.push_str(rest);
    out.into()
}

/// Decodes the UTF-16 unit of a `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // `from_str_radix` would accept a sign.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Displays a message on one line, safe for terminals: special characters of file names, arguments and names are
/// escaped. Backslashes are not, so this cannot be undone.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Filter { out: f, is_kept: |_| false }, "{}", self.0)
    }
}

/// The same for text of several lines, whose line breaks are kept.
#[derive(Clone, Copy, Debug)]
pub struct Lines<T>(pub T);

impl<T: Display> Display for Lines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Filter { out: f, is_kept: |character| character == '\n' }, "{}", self.0)
    }
}

/// Displays JSON safely for terminals: special characters are written as JSON escapes. They can only be in strings.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Display> Display for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Most readers of JSON reject an unpaired surrogate, so its substitute stays.
        let is_kept = |character| character == '\n' || mutf8::half_of_pair(character).is_some();
        write!(Filter { out: f, is_kept }, "{}", self.0)
    }
}

/// Writes a message as one line with a single `write` call: other processes may write to the same file, and lines must
/// not be mixed. Errors are ignored, as there is nowhere else to report them.
pub fn say(out: &mut impl io::Write, line: impl Display) {
    let _ = out.write_all(format!("{}\n", OneLine(line)).as_bytes());
}

struct Filter<W, K> {
    out: W,
    is_kept: K,
}

impl<W: Write, K: Fn(char) -> bool> Write for Filter<W, K> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        let found = |character: char| is_special(character) && !(self.is_kept)(character);
        while let Some((at, character)) = text.char_indices().find(|&(_, character)| found(character)) {
            self.out.write_str(&text[..at])?;
            push(&mut self.out, character)?;
            text = &text[at + character.len_utf8()..];
        }
        self.out.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Collects the bytes of each call of `write`.
    #[derive(Default)]
    struct Pieces(Vec<Vec<u8>>);

    impl io::Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_written_in_one_piece() {
        let mut pieces = Pieces::default();
        say(&mut pieces, format_args!("tool: {} of {}: {}", 1, 2, "no\nand \u{1b}[2J"));
        assert_eq!(pieces.0, [b"tool: 1 of 2: no\\u000aand \\u001b[2J\n".to_vec()]);
    }

    /// Names made of characters with a special meaning here and of arbitrary ones.
    fn odd_names() -> impl Strategy<Value = String> {
        let special = proptest::sample::select(vec![
            '\\',
            'u',
            'd',
            '8',
            '0',
            '_',
            ' ',
            '\n',
            '\r',
            '\t',
            '\0',
            '\u{1b}',
            '\u{85}',
            '\u{a0}',
            '\u{202e}',
            '\u{2028}',
            '\u{feff}',
            '\u{e0041}',
            '🐘',
            'é',
            '#',
            '[',
            '?',
            '1',
            ';',
            '/',
        ]);
        let half = (0xd800u16..0xe000).prop_map(mutf8::of_unit);
        proptest::collection::vec(prop_oneof![4 => special, 1 => half, 2 => any::<char>()], 0..12)
            .prop_map(|characters| characters.into_iter().collect())
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        for name in ["java/util/HashMap", "<init>", "[Ljava/lang/String;", "Größe", "名前", "access$000", "a-b"] {
            assert_eq!((&*word(name), &*line(name), &*unescape(name)), (name, name, name));
        }
    }

    #[test]
    fn what_means_something_is_escaped() {
        for (name, expected) in [
            ("Kt$adds two numbers$r$1", r"Kt$adds\u0020two\u0020numbers$r$1"),
            ("a\nN 1 2", r"a\u000aN\u00201\u00202"),
            ("\u{1b}[2J", r"\u001b[2J"),
            ("nur\u{202e}cba", r"nur\u202ecba"),
            (r"a\u0020b", r"a\\u0020b"),
            ("\u{e0041}", r"\udb40\udc41"),
            ("", r"\_"),
        ] {
            assert_eq!(word(name), expected);
            assert_eq!(unescape(expected), name);
        }
        assert_eq!(line("two words\r\\"), r"two words\u000d\\");
        assert_eq!((&*word_of_odd_start("1 a"), &*word_of_odd_start("?")), (r"\u0031\u0020a", r"\u003f"));
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        for text in [r"a\b", r"\u12", r"\u+123", r"\uéé", r"\", r"\_x"] {
            assert_eq!(unescape(text), text);
        }
    }

    #[test]
    fn messages_are_safe() {
        let message = format!("{}", OneLine("cannot read a\n\u{1b}[2J\\b\u{9b}: é"));
        assert_eq!(message, r"cannot read a\u000a\u001b[2J\b\u009b: é");
        assert_eq!(Json("{\n\"a\u{9b}\u{10f800}\"").to_string(), "{\n\"a\\u009b\u{10f800}\"");
        assert_eq!(Lines("a\tb\nc\u{202e}").to_string(), "a\\u0009b\nc\\u202e");
    }

    proptest! {
        #[test]
        fn any_name_comes_back(name in odd_names()) {
            let (one, other) = (word(&name), line(&name));
            prop_assert_eq!(&unescape(&one), &name);
            prop_assert!(!one.is_empty() && !one.chars().any(|c| c.is_whitespace() || is_special(c)));
            if !name.is_empty() {
                prop_assert_eq!(&unescape(&other), &name);
                let odd = word_of_odd_start(&name);
                prop_assert_eq!(&unescape(&odd), &name);
            }
            prop_assert!(!other.chars().any(is_special));
        }
    }
}
