//! Parses a line in either dialect. Each line reveals its dialect: by the number of fields, and by types that are
//! descriptors or numbers.

use std::str::SplitAsciiWhitespace;

use super::number::{Radix, parse_number};
use super::starts::ORACLE;
use crate::record::{AllocKind, LARGEST, ObjectId, ThreadId};

/// A type as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeWord<'a> {
    /// A JVM descriptor.
    Descriptor(&'a str),
    /// Number of a class in the names file.
    Number(u64),
}

/// A parsed line; `None` for fields that the dialect omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawLine<'a> {
    Alloc {
        kind: AllocKind,
        object: ObjectId,
        size: u64,
        ty: TypeWord<'a>,
        site: u32,
        length: Option<u32>,
        thread: ThreadId,
    },
    Update {
        old: Option<ObjectId>,
        origin: ObjectId,
        target: ObjectId,
        field: u32,
        thread: ThreadId,
    },
    Entry {
        method: u32,
        receiver: ObjectId,
        thread: ThreadId,
    },
    Exit {
        method: u32,
        receiver: Option<ObjectId>,
        thread: ThreadId,
    },
    /// `X T H`: exceptions.
    Exception {
        letter: u8,
        method: u32,
        receiver: ObjectId,
        exception: ObjectId,
        thread: ThreadId,
    },
    Death {
        object: ObjectId,
        thread: ThreadId,
        /// Value of the clock, in dialect `replayer`.
        time: Option<u64>,
    },
    /// `R`, or `W` in dialect `replayer`.
    Use {
        object: ObjectId,
        thread: ThreadId,
        is_letter_w: bool,
    },
    /// `C`: a class, which says nothing about objects.
    Class,
}

struct Words<'a> {
    words: SplitAsciiWhitespace<'a>,
    radix: Radix,
}

const IS_ORACLE: &str = "this is dialect oracle, which has too little information to be read: give the trace, or a text of dialect et or replayer";
const TOO_LARGE: &str = "an object is larger than any JVM allocates";
const NO_NUMBER: [&str; 2] = ["a field is not a decimal number", "a field is not a hexadecimal number"];

impl<'a> Words<'a> {
    fn word(&mut self) -> Result<&'a str, &'static str> {
        self.words.next().ok_or("a field is missing")
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let word = self.word()?;
        parse_number(word, self.radix).ok_or(NO_NUMBER[usize::from(self.radix == Radix::Hexadecimal)])
    }

    fn small(&mut self) -> Result<u32, &'static str> {
        self.number().and_then(|number| u32::try_from(number).map_err(|_| "a number is too large"))
    }

    fn size(&mut self) -> Result<u64, &'static str> {
        self.number().and_then(|size| if size <= LARGEST { Ok(size) } else { Err(TOO_LARGE) })
    }

    fn object(&mut self) -> Result<ObjectId, &'static str> {
        self.number().map(ObjectId)
    }

    fn thread(&mut self) -> Result<ThreadId, &'static str> {
        self.small().map(ThreadId)
    }
}

/// Parses a line that is not a comment.
pub fn parse(text: &str, radix: Radix) -> Result<RawLine<'_>, &'static str> {
    let count = text.split_ascii_whitespace().count();
    let mut words = Words { words: text.split_ascii_whitespace(), radix };
    let letter = words.word()?;
    let [letter_byte] = *letter.as_bytes() else {
        return Err(if text.starts_with(ORACLE) { IS_ORACLE } else { "not a record" });
    };
    let fields = count - 1;
    let exactly = |wanted: usize| match fields.cmp(&wanted) {
        std::cmp::Ordering::Less => Err("a field is missing"),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err("more fields than the record has"),
    };
    let line = match letter_byte {
        b'A' | b'I' | b'N' | b'P' | b'V' => {
            if fields != 5 {
                exactly(6)?;
            }
            let kind = AllocKind::ALL.into_iter().find(|kind| kind.letter() == char::from(letter_byte));
            let (object, size, ty) = (words.object()?, words.size()?, words.word()?);
            let ty = match ty.bytes().next() {
                Some(b'0'..=b'9') => TypeWord::Number(parse_number(ty, radix).ok_or("the type is not a number")?),
                _ => TypeWord::Descriptor(ty),
            };
            let site = words.small()?;
            let length = if fields == 6 { Some(words.small()?) } else { None };
            RawLine::Alloc {
                kind: kind.unwrap_or(AllocKind::New),
                object,
                size,
                ty,
                site,
                length,
                thread: words.thread()?,
            }
        }
        b'U' => {
            if fields != 4 {
                exactly(5)?;
            }
            let old = if fields == 5 { Some(words.object()?) } else { None };
            let (origin, target, field) = (words.object()?, words.object()?, words.small()?);
            RawLine::Update { old, origin, target, field, thread: words.thread()? }
        }
        b'M' => {
            exactly(3)?;
            RawLine::Entry { method: words.small()?, receiver: words.object()?, thread: words.thread()? }
        }
        b'E' => {
            if fields != 2 {
                exactly(3)?;
            }
            let method = words.small()?;
            let receiver = if fields == 3 { Some(words.object()?) } else { None };
            RawLine::Exit { method, receiver, thread: words.thread()? }
        }
        b'X' | b'T' | b'H' => {
            exactly(4)?;
            let (method, receiver, exception) = (words.small()?, words.object()?, words.object()?);
            RawLine::Exception { letter: letter_byte, method, receiver, exception, thread: words.thread()? }
        }
        b'D' => {
            if fields != 3 {
                exactly(2)?;
            }
            let (object, thread) = (words.object()?, words.thread()?);
            let time = if fields == 3 { Some(words.number()?) } else { None };
            RawLine::Death { object, thread, time }
        }
        b'R' => {
            exactly(2)?;
            RawLine::Use { object: words.object()?, thread: words.thread()?, is_letter_w: false }
        }
        b'W' => {
            if fields != 2 {
                exactly(3)?;
            }
            let object = words.object()?;
            if fields == 3 {
                words.word()?;
            }
            RawLine::Use { object, thread: words.thread()?, is_letter_w: true }
        }
        b'C' => RawLine::Class,
        _ => return Err("not a record"),
    };
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;
    use crate::testing::any_record;
    use crate::text::et::push_record;
    use crate::types::Types;

    /// A kind that is written but not read would make every text with it unreadable.
    #[test]
    fn every_kind_of_record_that_is_written_is_read() {
        let types = Types::default();
        for kind in RecordKind::ALL {
            let mut numbers = 1..;
            let record = any_record(kind, ThreadId(2), || numbers.next().expect("endless"));
            let mut line = Vec::new();
            push_record(&mut line, &record, &types);
            let read = parse(std::str::from_utf8(&line).unwrap(), Radix::Hexadecimal).unwrap();
            let (letter, objects) = match read {
                RawLine::Alloc { kind, object, .. } => (kind.letter(), vec![object]),
                RawLine::Update { old, origin, target, .. } => ('U', vec![old.unwrap_or_default(), origin, target]),
                RawLine::Entry { receiver, .. } => ('M', vec![receiver]),
                RawLine::Exit { receiver, .. } => ('E', vec![receiver.unwrap_or_default()]),
                RawLine::Exception { letter, receiver, exception, .. } => (letter.into(), vec![receiver, exception]),
                RawLine::Death { object, .. } => ('D', vec![object]),
                RawLine::Use { object, .. } => ('R', vec![object]),
                RawLine::Class => ('C', Vec::new()),
            };
            assert_eq!(letter, kind.letter());
            let named: Vec<ObjectId> = record.objects().into_iter().filter(|object| !object.is_null()).collect();
            assert_eq!(objects, named, "{kind:?}");
        }
    }

    #[test]
    fn both_dialects_and_their_variants() {
        let hex = |text| parse(text, Radix::Hexadecimal).unwrap();
        let decimal = |text| parse(text, Radix::Decimal).unwrap();
        let (object, thread) = (ObjectId(31), ThreadId(2));
        let alloc = |kind, ty, length| RawLine::Alloc { kind, object, size: 16, ty, site: 10, length, thread };
        let string = TypeWord::Descriptor("LA;");
        assert_eq!(hex("N 1f 10 LA; a 0 2"), alloc(AllocKind::New, string, Some(0)));
        assert_eq!(hex("V 1f 10 LA; a 2"), alloc(AllocKind::Vm, string, None));
        assert_eq!(hex("N 0x1f 10 LA; 0xa 2"), alloc(AllocKind::New, string, None));
        assert_eq!(decimal("A 31 16 17 10 3 2"), alloc(AllocKind::Array, TypeWord::Number(17), Some(3)));
        let update = |old| RawLine::Update { old, origin: object, target: ObjectId(5), field: 7, thread };
        assert_eq!(hex("U 0 1f 5 7 2"), update(Some(ObjectId::NULL)));
        assert_eq!(decimal("U 31 5 7 2"), update(None));
        assert_eq!(decimal("E 9 2"), RawLine::Exit { method: 9, receiver: None, thread });
        assert_eq!(hex("E 9 1f 2"), RawLine::Exit { method: 9, receiver: Some(object), thread });
        assert_eq!(hex("D 1f 2"), RawLine::Death { object, thread, time: None });
        assert_eq!(decimal("D 31 2 900"), RawLine::Death { object, thread, time: Some(900) });
        assert_eq!(hex("R 1f 2"), RawLine::Use { object, thread, is_letter_w: false });
        assert_eq!(decimal("W 31 77 2"), RawLine::Use { object, thread, is_letter_w: true });
        assert_eq!(hex("C whatever it says"), RawLine::Class);
    }

    /// The sum of such sizes would overflow.
    #[test]
    fn objects_that_cannot_be_are_no_records() {
        let read = |text| parse(text, Radix::Hexadecimal).map(|_| ());
        assert_eq!(read("A 1f 400000010 [J 0 2 80000000"), Ok(()));
        assert_eq!(read("A 1f 8000001f8000001f 2 0 3 2"), Err(TOO_LARGE));
    }
}
