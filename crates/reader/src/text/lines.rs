//! Reading of lines of limited length: a file without line breaks must not fill the memory.

use std::io::{self, BufRead, Read};

/// Maximum length in bytes; longer than any line that the tools write: a class with 65,535 interfaces, three names of
/// 65,535 characters that are all escaped.
pub(super) const MAX_LINE: usize = 4 << 20;

/// Result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A line, including its line break if it has one.
    Line,
    /// There is no line break in the first [`MAX_LINE`] bytes, which are in the buffer.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads the next line into `buffer`.
pub(super) fn read_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Found> {
    buffer.clear();
    let read = input.take(MAX_LINE as u64 + 1).read_until(b'\n', buffer)?;
    Ok(match read {
        0 => Found::End,
        _ if read > MAX_LINE => Found::TooLong,
        _ => Found::Line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_end_is_cut_short() {
        let mut buffer = Vec::new();
        let text = b"one\n\ntwo";
        let mut input = &text[..];
        let mut next = |buffer: &mut Vec<u8>| read_line(&mut input, buffer).unwrap();
        for expected in ["one\n", "\n", "two"] {
            assert_eq!((next(&mut buffer), buffer.as_slice()), (Found::Line, expected.as_bytes()));
        }
        assert_eq!(next(&mut buffer), Found::End);
        let mut endless = io::BufReader::new(io::repeat(b'#'));
        assert_eq!(read_line(&mut endless, &mut buffer).unwrap(), Found::TooLong);
        assert_eq!(buffer.len(), MAX_LINE + 1);
    }
}
