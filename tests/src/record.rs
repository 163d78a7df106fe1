//! The records of `et-trace text`, dialect `et` (`docs/inside/events.md` has what they come from).

use std::collections::HashMap;
use std::io::BufRead;
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};

/// A 64-bit object id; 0 is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// No object, or "static".
    pub const NULL: ObjectId = ObjectId(0);
}

/// Thread id in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u64);

/// A record and the thread it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The last field of each record.
    pub thread: ThreadId,
    /// The kind of the record, with its data.
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `A I N P V`: an allocation.
    Born { kind: char, object: ObjectId, size: u64, descriptor: Rc<str>, site: u64, length: u64 },
    /// `U`: an update.
    Update { old: ObjectId, origin: ObjectId, new: ObjectId, field: u64 },
    /// `M`: a method entry.
    Entry { method: u64, receiver: ObjectId },
    /// `E`: a method exit.
    Exit { method: u64, receiver: ObjectId },
    /// `X T H`: exceptional exit, throw, catch.
    Exception { kind: char, method: u64, receiver: ObjectId, exception: ObjectId },
    /// `D`: a death.
    Death { object: ObjectId },
    /// `R`: a use.
    Use { object: ObjectId },
}

/// A whole trace in memory.
#[derive(Debug, Default)]
pub struct Records {
    /// All records in order.
    pub all: Vec<Record>,
    /// The comment lines, without `#`.
    pub comments: Vec<String>,
    /// Type descriptor of each object.
    pub descriptors: HashMap<ObjectId, Rc<str>>,
}

impl What {
    pub fn letter(&self) -> char {
        match self {
            Self::Born { kind, .. } | Self::Exception { kind, .. } => *kind,
            Self::Update { .. } => 'U',
            Self::Entry { .. } => 'M',
            Self::Exit { .. } => 'E',
            Self::Death { .. } => 'D',
            Self::Use { .. } => 'R',
        }
    }
}

impl Records {
    /// Reads the text output. Objects must be introduced before they are mentioned, and once.
    pub fn read(text: impl BufRead) -> Result<Self> {
        let mut records = Self::default();
        let mut interned: HashMap<String, Rc<str>> = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.context("et-trace text did not print UTF-8")?;
            records.line(&line, &mut interned).with_context(|| format!("text output, line {}: {line:?}", index + 1))?;
        }
        Ok(records)
    }

    fn line(&mut self, line: &str, interned: &mut HashMap<String, Rc<str>>) -> Result<()> {
        if let Some(comment) = line.strip_prefix('#') {
            self.comments.push(comment.trim().to_owned());
            return Ok(());
        }
        let mut words = line.split(' ');
        let Some(letter) = words.next().filter(|word| !word.is_empty()) else { return Ok(()) };
        let kind = letter.chars().next().unwrap_or_default();
        ensure!(letter.len() == 1, "no record letter");
        let mut next = || words.next().context("a field is missing");
        let what = match kind {
            'A' | 'I' | 'N' | 'P' | 'V' => {
                let (object, size, descriptor) = (ObjectId(number(next()?)?), number(next()?)?, next()?);
                let descriptor = interned.entry(descriptor.to_owned()).or_insert_with(|| descriptor.into()).clone();
                ensure!(
                    self.descriptors.insert(object, descriptor.clone()).is_none(),
                    "the object is introduced twice"
                );
                What::Born { kind, object, size, descriptor, site: number(next()?)?, length: number(next()?)? }
            }
            'U' => What::Update {
                old: self.object(next()?)?,
                origin: self.object(next()?)?,
                new: self.object(next()?)?,
                field: number(next()?)?,
            },
            'M' => What::Entry { method: number(next()?)?, receiver: self.object(next()?)? },
            'E' => What::Exit { method: number(next()?)?, receiver: self.object(next()?)? },
            'X' | 'T' | 'H' => What::Exception {
                kind,
                method: number(next()?)?,
                receiver: self.object(next()?)?,
                exception: self.object(next()?)?,
            },
            'D' => What::Death { object: self.object(next()?)? },
            'R' => What::Use { object: self.object(next()?)? },
            _ => bail!("unknown record {kind:?}"),
        };
        let thread = ThreadId(number(next()?)?);
        ensure!(words.next().is_none(), "more fields than the record has");
        self.all.push(Record { thread, what });
        Ok(())
    }

    fn object(&self, word: &str) -> Result<ObjectId> {
        let object = ObjectId(number(word)?);
        ensure!(object == ObjectId::NULL || self.descriptors.contains_key(&object), "object {word} was not introduced");
        Ok(object)
    }
}

fn number(word: &str) -> Result<u64> {
    u64::from_str_radix(word, 16).with_context(|| format!("{word:?} is no hexadecimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_record() {
        let text =
            "# a comment\n\nN a 10 La/B; 5 0 1\nA b 18 [I 6 2 1\nU 0 a b 7 1\nM 3 a 1\nX 3 a b 1\nE 3 0 1\nD a 1\n";
        let records = Records::read(text.as_bytes()).unwrap();
        assert_eq!(records.comments, ["a comment"]);
        assert_eq!(records.all.len(), 7);
        let update = What::Update { old: ObjectId::NULL, origin: ObjectId(10), new: ObjectId(11), field: 7 };
        assert_eq!(records.all[2], Record { thread: ThreadId(1), what: update });
    }

    #[test]
    fn what_a_trace_may_not_hold() {
        for (text, why) in [
            ("U 0 a b 7 1\n", "not introduced"),
            ("N a 10 LA; 5 0 1\nN a 10 LA; 5 0 1\n", "twice"),
            ("M 3 0 1 9\n", "more fields"),
            ("M 3 0\n", "missing"),
            ("Q 3 0\n", "unknown record"),
        ] {
            let error = format!("{:#}", Records::read(text.as_bytes()).unwrap_err());
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
