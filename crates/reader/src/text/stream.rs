//! Copies a text from a pipe and checks it on the way: input that is not a text, or a line without an end, must not
//! fill the disk.

use std::io::{self, BufReader, Read, Write};

use super::error::{ParseError, TOO_LONG};
use super::line;
use super::lines::{Found, read_line};
use super::number::Radix;

/// Number of bytes whose lines are parsed as records; of later lines only the beginning is checked. All lines are
/// parsed again once their dialect is known.
const CLOSELY: usize = 1 << 20;

/// Copies line after line up to the end or to the first invalid one.
pub(super) fn copy(stream: impl Read, mut out: impl Write) -> io::Result<Result<(), ParseError>> {
    let mut input = BufReader::with_capacity(1 << 16, stream);
    let (mut buffer, mut copied) = (Vec::new(), 0);
    for number in 1.. {
        let found = read_line(&mut input, &mut buffer)?;
        let wrong = match found {
            Found::End => break,
            Found::TooLong => Err(TOO_LONG),
            Found::Line => check(buffer.trim_ascii(), copied < CLOSELY),
        };
        if let Err(what) = wrong {
            return Ok(Err(ParseError::at(number, what, buffer.trim_ascii())));
        }
        out.write_all(&buffer)?;
        copied = copied.saturating_add(buffer.len());
    }
    Ok(Ok(()))
}

fn check(line: &[u8], closely: bool) -> Result<(), &'static str> {
    match line.first() {
        None | Some(b'#') => Ok(()),
        Some(b'A'..=b'Z') if !closely => Ok(()),
        // Decimal numbers are valid hexadecimal numbers as well.
        _ => {
            let line = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
            line::parse(line, Radix::Hexadecimal).map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_copied_and_what_is_none_is_not() {
        let text = b"# Elephant Tracks, dialect et\n\nN 1 10 LA; 0 0 1\n";
        let mut out = Vec::new();
        copy(&text[..], &mut out).unwrap().unwrap();
        assert_eq!(out, text);
        let wrong = |stream: &mut dyn Read| {
            let mut out = Vec::new();
            let error = copy(stream, &mut out).unwrap().unwrap_err().to_string();
            (error, out)
        };
        let (error, out) = wrong(&mut text.chain(io::repeat(b'y')));
        assert!(error.starts_with("line 4: the line is too long: \"yyy"), "{error}");
        assert_eq!(out, text);
        let many = "N 1 10 LA; 0 0 1\n".repeat(CLOSELY / 10);
        let (error, _) = wrong(&mut many.as_bytes().chain(&b"y\n"[..]));
        assert!(error.contains("not a record: \"y\""), "{error}");
    }
}
