//! Reads text in either dialect as records.

use std::io::BufRead;
use std::sync::Arc;

use et_names::escape::unescape;
use et_names::{FieldId, MethodId, SiteId};
use rustc_hash::FxHashMap;

use super::error::{ParseError, TOO_LONG};
use super::hold;
use super::line::{self, TypeWord};
use super::lines::{Found, read_line};
use super::names_reader::TextNames;
use super::number::{Radix, parse_number};
use super::unknown_type::unknown_type;
use crate::model::ObjectSet;
use crate::record::{Alloc, AllocKind, ObjectId, Record, Slot, StackId, ThreadId};
use crate::resolve::Slots;
use crate::told::Hold;
use crate::types::{TypeId, Types};

/// A line with content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Record(Record),
    /// Something that holds an object although no record says so.
    Hold(Hold),
    /// A comment, without its `#`.
    Comment(String),
}

/// How to interpret a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextForm {
    pub radix: Radix,
    /// Dialect `replayer`: updates have no old target, exits no receiver.
    pub is_replayer: bool,
    /// Whether the second allocation of an id is a new object.
    pub split_repeated: bool,
}

impl Default for TextForm {
    fn default() -> Self {
        Self { radix: Radix::Hexadecimal, is_replayer: false, split_repeated: false }
    }
}

macro_rules! quirks {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// Features that the texts of this version do not have.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Quirks {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Quirks {
            /// A warning for each feature that occurred.
            pub fn warnings(&self) -> Vec<String> {
                [$((self.$name, $text),)*].into_iter().filter(|q| q.0 > 0).map(|q| format!("{} {}", q.0, q.1)).collect()
            }
        }
    };
}

quirks! {
    /// `C` lines.
    class_records: "C records were skipped",
    /// Allocations with five fields.
    without_length: "allocation records have no length: 0 is assumed",
    /// Ids that were allocated again.
    repeated_ids: "objects have the id of an earlier one: they were given new ids",
    /// Class numbers that are in no names file.
    unknown_types: "class numbers are missing from the names files: their types are unknown",
    /// Exits of methods that are not on the stack.
    unmatched_exits: "exits name no receiver and their method is not on the stack: 0 is assumed",
    /// Comments that would say what holds objects if the text were in another dialect.
    of_other_dialects: "comments that state holders in another dialect are left out",
}

/// Whether a comment without a meaning in this dialect has one in another: if it were kept, rewriting the records in
/// that dialect would change what the text says.
fn means_something_elsewhere(comment: &str) -> bool {
    let old =
        |comment: &str| comment.strip_prefix("old ").and_then(|old| parse_number(old, Radix::Hexadecimal)).is_some();
    // A number may be out of range in one of them.
    [Radix::Hexadecimal, Radix::Decimal].into_iter().any(|radix| hold::parse(comment, radix).is_some()) || old(comment)
}

/// Reads line by line.
#[derive(Debug)]
pub struct TextReader<R> {
    input: R,
    buffer: Vec<u8>,
    line: u64,
    form: TextForm,
    names: Option<Arc<TextNames>>,
    quirks: Quirks,
    /// The last `# kind`, which applies to the allocations that follow: dialect `replayer` has no letters for it.
    kind: Option<AllocKind>,
    /// The last `# old`, which applies to the next update: a target that no record stored.
    old: Option<ObjectId>,
    allocated: ObjectSet,
    arrays: ObjectSet,
    /// New ids of objects whose ids were allocated again.
    renamed: FxHashMap<ObjectId, ObjectId>,
    types: FxHashMap<(u64, bool), TypeId>,
    /// Targets of slots, for texts without old targets.
    slots: Slots,
    /// Stacks, for texts without receivers of exits.
    stacks: FxHashMap<ThreadId, Vec<(u32, ObjectId)>>,
    /// Value of the clock in the last `D` line.
    time_of_death: Option<u64>,
}

impl<R: BufRead> TextReader<R> {
    pub fn new(input: R, form: TextForm, names: Option<Arc<TextNames>>) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            line: 0,
            form,
            names,
            quirks: Quirks::default(),
            kind: None,
            old: None,
            allocated: ObjectSet::default(),
            arrays: ObjectSet::default(),
            renamed: FxHashMap::default(),
            types: FxHashMap::default(),
            slots: Slots::default(),
            stacks: FxHashMap::default(),
            time_of_death: None,
        }
    }

    /// Value of the clock in the last line, if that is a `D` with a time.
    pub fn time_of_death(&self) -> Option<u64> {
        self.time_of_death
    }

    /// Number of the last line read.
    pub fn line_number(&self) -> u64 {
        self.line
    }

    /// Features found so far that the texts of this version do not have.
    pub fn quirks(&self) -> Quirks {
        self.quirks
    }

    /// Reads the next line that is not empty; adds new types to `types`.
    pub fn next_line(&mut self, types: &mut Types) -> Result<Option<Line>, ParseError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let line = self.read_line(&mut buffer, types);
        self.buffer = buffer;
        line
    }

    fn read_line(&mut self, buffer: &mut Vec<u8>, types: &mut Types) -> Result<Option<Line>, ParseError> {
        loop {
            let found = read_line(&mut self.input, buffer)?;
            if found == Found::End {
                return Ok(None);
            }
            self.line += 1;
            let text = buffer.trim_ascii();
            if found == Found::TooLong {
                return Err(self.error(TOO_LONG, text));
            }
            match text.first() {
                None => {}
                Some(b'#') => {
                    let comment = String::from_utf8_lossy(text[1..].trim_ascii());
                    let comment = unescape(&comment).trim().to_owned();
                    if let Some(letter) = comment.strip_prefix("kind ") {
                        self.kind = AllocKind::ALL.into_iter().find(|k| letter.chars().eq([k.letter()]));
                    } else if let Some(old) =
                        comment.strip_prefix("old ").and_then(|old| parse_number(old, self.form.radix))
                    {
                        self.old = Some(ObjectId(old));
                    } else if let Some(hold) = hold::parse(&comment, self.form.radix) {
                        return Ok(Some(Line::Hold(self.hold(hold))));
                    } else if means_something_elsewhere(&comment) {
                        self.quirks.of_other_dialects += 1;
                    } else {
                        return Ok(Some(Line::Comment(comment)));
                    }
                }
                Some(_) => {
                    self.time_of_death = None;
                    let line = std::str::from_utf8(text).map_err(|_| "not UTF-8");
                    let line = line.and_then(|text| line::parse(text, self.form.radix));
                    let line = line.map_err(|what| self.error(what, text))?;
                    match self.record(line, types) {
                        Some(record) => return Ok(Some(Line::Record(record))),
                        None => self.quirks.class_records += 1,
                    }
                }
            }
        }
    }

    fn error(&self, what: &'static str, text: &[u8]) -> ParseError {
        ParseError::at(self.line, what, text)
    }

    fn now(&self, object: ObjectId) -> ObjectId {
        if self.renamed.is_empty() { object } else { self.renamed.get(&object).copied().unwrap_or(object) }
    }

    fn born(&mut self, object: ObjectId) -> ObjectId {
        if !self.form.split_repeated || self.allocated.insert(object) {
            return object;
        }
        self.quirks.repeated_ids += 1;
        let other = ObjectId(1 << 63 | self.quirks.repeated_ids);
        self.renamed.insert(object, other);
        other
    }

    fn ty(&mut self, word: TypeWord<'_>, is_array: bool, types: &mut Types) -> TypeId {
        let number = match word {
            TypeWord::Descriptor(text) => return types.intern(&unescape(text)),
            TypeWord::Number(number) => number,
        };
        if let Some(&known) = self.types.get(&(number, is_array)) {
            return known;
        }
        let ty = match self.names.as_ref().and_then(|names| names.descriptor(number)) {
            Some(descriptor) => types.intern(&descriptor),
            None => {
                self.quirks.unknown_types += 1;
                types.intern(&unknown_type(number, is_array))
            }
        };
        self.types.insert((number, is_array), ty);
        ty
    }

    fn record(&mut self, line: line::RawLine<'_>, types: &mut Types) -> Option<Record> {
        Some(match line {
            line::RawLine::Alloc { kind, object, size, ty, site, length, thread } => {
                let by_number = matches!(ty, TypeWord::Number(_));
                let ty = self.ty(ty, kind == AllocKind::Array, types);
                let object = self.born(object);
                if types.descriptor(ty).starts_with('[') {
                    self.arrays.insert(object);
                }
                self.quirks.without_length += u64::from(length.is_none());
                let kind = self.kind.filter(|_| by_number).unwrap_or(kind);
                let length = length.unwrap_or(0);
                let stack = StackId::NONE;
                Record::Alloc(Alloc { kind, object, size, ty, site: SiteId(site), length, thread, stack })
            }
            line::RawLine::Update { old, origin, target, field, thread } => {
                let (origin, target) = (self.now(origin), self.now(target));
                let slot = self.slot(origin, field);
                let old = match old {
                    Some(old) => self.now(old),
                    None => {
                        let stored = self.slots.put(origin, slot, target);
                        self.old.take().map_or(stored, |old| self.now(old))
                    }
                };
                Record::Update { old, origin, target, slot, thread }
            }
            line::RawLine::Entry { method, receiver, thread } => {
                let receiver = self.now(receiver);
                if self.form.is_replayer {
                    self.stacks.entry(thread).or_default().push((method, receiver));
                }
                Record::Entry { method: MethodId(method), receiver, thread }
            }
            line::RawLine::Exit { method, receiver, thread } => {
                let entered = self.leave(method, thread);
                let receiver = match (receiver, entered) {
                    (Some(receiver), _) => self.now(receiver),
                    (None, Some(receiver)) => receiver,
                    (None, None) => {
                        self.quirks.unmatched_exits += 1;
                        ObjectId::NULL
                    }
                };
                Record::Exit { method: MethodId(method), receiver, thread }
            }
            line::RawLine::Exception { letter, method, receiver, exception, thread } => {
                let (receiver, exception) = (self.now(receiver), self.now(exception));
                if letter == b'X' {
                    self.leave(method, thread);
                }
                let method = MethodId(method);
                match letter {
                    b'X' => Record::ExitThrow { method, receiver, exception, thread },
                    b'T' => Record::Throw { method, receiver, exception, thread },
                    _ => Record::Handle { method, receiver, exception, thread },
                }
            }
            line::RawLine::Death { object, thread, time } => {
                self.time_of_death = time;
                let object = self.now(object);
                if self.form.is_replayer {
                    self.slots.release(object);
                    self.slots.tidy();
                }
                Record::Death { object, thread }
            }
            line::RawLine::Use { object, thread, .. } => Record::Use { object: self.now(object), thread },
            line::RawLine::Class => return None,
        })
    }

    fn hold(&mut self, hold: hold::Words) -> Hold {
        match hold {
            hold::Words::Initial { origin, field, target } => {
                let (origin, target) = (self.now(ObjectId(origin)), self.now(ObjectId(target)));
                let slot = self.slot(origin, field);
                if self.form.is_replayer {
                    self.slots.put(origin, slot, target);
                }
                Hold::Initial { origin, slot, target }
            }
            hold::Words::Until { object, thread } => Hold::Until { object: self.now(ObjectId(object)), thread },
            hold::Words::ToTheEnd { object } => Hold::ToTheEnd { object: self.now(ObjectId(object)) },
        }
    }

    fn slot(&self, origin: ObjectId, number: u32) -> Slot {
        if self.arrays.contains(origin) { Slot::Element(number) } else { Slot::Field(FieldId(number)) }
    }

    /// The receiver of the frame that ends.
    fn leave(&mut self, method: u32, thread: ThreadId) -> Option<ObjectId> {
        if !self.form.is_replayer {
            return None;
        }
        let frames = self.stacks.get_mut(&thread)?;
        let meant = frames.iter().rposition(|&(entered, _)| entered == method)?;
        let receiver = frames[meant].1;
        frames.truncate(meant);
        Some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::push_record;

    fn read(text: &str, form: TextForm) -> (String, Quirks) {
        let mut types = Types::default();
        let mut reader = TextReader::new(text.as_bytes(), form, None);
        let mut back = String::new();
        while let Some(line) = reader.next_line(&mut types).unwrap() {
            match line {
                Line::Record(record) => {
                    let mut out = Vec::new();
                    push_record(&mut out, &record, &types);
                    back += &format!("{}\n", String::from_utf8(out).unwrap());
                }
                Line::Hold(hold) => back += &format!("{hold:?}\n"),
                Line::Comment(text) => back += &format!("# {text}\n\n"),
            }
        }
        (back, reader.quirks())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = "# lost 0\n\nN 1f 10 La/B; 3 0 1\nA 20 18 [I 0 ff 1\nU 0 1f 20 7 1\nM a 1f 1\nE a 1f 1\nX a 0 20 1\n\
                    T a 0 20 2\nH a 0 20 2\nR 20 1\nD 20 1\n";
        assert_eq!(read(text, TextForm::default()), (text.to_owned(), Quirks::default()));
    }

    #[test]
    fn what_the_replayer_leaves_out_is_filled_in() {
        let text = "N 31 16 7 3 0 1\n# kind V\nN 32 16 7 0 0 1\n# kind -\nU 31 32 9 1\nU 31 0 9 1\nM 10 31 1\nE 10 1\nD 31 1 2\n";
        let form = TextForm { radix: Radix::Decimal, is_replayer: true, split_repeated: false };
        let (back, quirks) = read(text, form);
        let expected = "N 1f 10 Lclass7; 3 0 1\nV 20 10 Lclass7; 0 0 1\nU 0 1f 20 9 1\nU 20 1f 0 9 1\nM a 1f 1\nE a 1f 1\nD 1f 1\n";
        assert_eq!(back, expected);
        assert_eq!(quirks.warnings(), ["1 class numbers are missing from the names files: their types are unknown"]);
    }

    #[test]
    fn ids_that_repeat_are_other_objects() {
        let text = "N 1 10 LA; 0 0 1\nD 1 1\nN 1 10 LB; 0 1\nM a 1 1\nD 1 1\n";
        let (back, quirks) = read(text, TextForm { split_repeated: true, ..TextForm::default() });
        let other = "8000000000000001";
        assert_eq!(back, format!("N 1 10 LA; 0 0 1\nD 1 1\nN {other} 10 LB; 0 0 1\nM a {other} 1\nD {other} 1\n"));
        assert_eq!((quirks.repeated_ids, quirks.without_length), (1, 1));
    }

    #[test]
    fn wrong_lines_are_named() {
        let mut types = Types::default();
        for (text, what) in [
            ("Q 1", "not a record"),
            ("M 1 2", "missing"),
            ("M x 2 1", "hexadecimal"),
            ("M 1 2 1 5", "more fields"),
            ("PK\u{3}\u{4}", "not a record"),
        ] {
            let mut reader = TextReader::new(text.as_bytes(), TextForm::default(), None);
            let error = reader.next_line(&mut types).unwrap_err().to_string();
            assert!(error.starts_with("line 1: ") && error.contains(what), "{error}");
        }
    }
}
