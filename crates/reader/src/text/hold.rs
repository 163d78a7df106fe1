//! What holds objects although no record says so, as comments, which other readers ignore.
//!
//! | line | meaning |
//! |---|---|
//! | `# with holders` | at the beginning: the text has such lines |
//! | `# ref ORIGIN FIELD TARGET` | target of the slot when tracing began; origin 0: a static field |
//! | `# held OBJECT THREAD` | the VM held the object until now, for that thread |
//! | `# held OBJECT` | the VM holds the object to the end of the trace |

use super::number::Radix;
use crate::record::ThreadId;
use crate::told::Hold;

/// A parsed line, in which the meaning of `FIELD` depends on the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    Initial { origin: u64, field: u32, target: u64 },
    Until { object: u64, thread: ThreadId },
    ToTheEnd { object: u64 },
}

/// Parses a comment, given without its `#`; `None` if it is an ordinary comment.
pub(super) fn parse(comment: &str, radix: Radix) -> Option<Words> {
    let mut words = comment.split_ascii_whitespace();
    let name = words.next().filter(|name| matches!(*name, "ref" | "held"))?;
    let radix = if radix == Radix::Hexadecimal { 16 } else { 10 };
    let numbers: Vec<u64> = words.map(|word| u64::from_str_radix(word, radix)).collect::<Result<_, _>>().ok()?;
    let small = |number: u64| u32::try_from(number).ok();
    Some(match (name, numbers.as_slice()) {
        ("ref", &[origin, field, target]) => Words::Initial { origin, field: small(field)?, target },
        ("held", &[object, thread]) => Words::Until { object, thread: ThreadId(small(thread)?) },
        ("held", &[object]) => Words::ToTheEnd { object },
        _ => return None,
    })
}

/// Appends a line; `push` writes a number with a space before it.
pub(crate) fn push_line(out: &mut Vec<u8>, hold: &Hold, push: impl Fn(&mut Vec<u8>, u64)) {
    let (name, numbers): (&[u8], &[u64]) = match *hold {
        Hold::Initial { origin, slot, target } => (b"# ref", &[origin.0, slot.number().into(), target.0]),
        Hold::Until { object, thread } => (b"# held", &[object.0, thread.0.into()]),
        Hold::ToTheEnd { object } => (b"# held", &[object.0]),
    };
    out.extend_from_slice(name);
    numbers.iter().for_each(|&number| push(out, number));
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ObjectId, Slot};

    #[test]
    fn lines_are_read_as_they_are_written() {
        let (object, thread) = (ObjectId(0x1f), ThreadId(10));
        let slot = Slot::Element(0x20);
        let cases = [
            (Hold::Initial { origin: object, slot, target: object }, "# ref 31 32 31\n"),
            (Hold::Until { object, thread }, "# held 31 10\n"),
            (Hold::ToTheEnd { object }, "# held 31\n"),
        ];
        for (hold, expected) in cases {
            let mut out = Vec::new();
            push_line(&mut out, &hold, |out, number| out.extend(format!(" {number}").bytes()));
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text, expected);
            assert!(parse(text[1..].trim(), Radix::Decimal).is_some());
        }
        let wide = Words::Initial { origin: 0, field: 0x20, target: 0x1f };
        assert_eq!(parse("ref 0 20 1f", Radix::Hexadecimal), Some(wide));
        for other in ["ref", "reference 1 2 3", "held", "held x", "held 1 2 3", "ref 1 100000000 2", "# ref 1 2 3"] {
            assert_eq!(parse(other, Radix::Hexadecimal), None, "{other}");
        }
    }
}
