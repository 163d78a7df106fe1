//! What the runtime says to the user: one line at a time on standard error, never more.

use std::fmt::Display;
use std::io::{self, Write};

use et_names::escape::OneLine;

/// Writes one line, in one piece; names in it do no harm to a terminal. A closed standard error is no reason to disturb the program.
pub fn say(line: impl Display) {
    say_to(&mut io::stderr(), &line);
}

/// In one piece: other processes may write to the same place, and their lines must not end up in the midst of ours.
fn say_to(out: &mut impl Write, line: &impl Display) {
    let _ = out.write_all(format!("elephant-tracks: {}\n", OneLine(line)).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what was written, by calls of `write`.
    #[derive(Default)]
    struct Pieces(Vec<Vec<u8>>);

    impl Write for Pieces {
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
        say_to(&mut pieces, &format_args!("{} of {}: {}", 1, 2, "why"));
        assert_eq!(pieces.0, [b"elephant-tracks: 1 of 2: why\n".to_vec()]);
    }
}
