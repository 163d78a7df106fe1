//! A text as the source of a trace.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use et_names::{EventSet, FieldId};
use rustc_hash::FxHashMap;
use thiserror::Error;

use super::clearings::Clearings;
use super::error::ParseError;
use super::line::{self, TypeWord};
use super::names_reader::TextNames;
use super::number::Radix;
use super::reader::{Line, TextForm, TextReader};
use super::referent;
use super::starts::{EVENTS, NO_EVENTS, WITH_HOLDERS};
use super::stream;
use crate::batch::Filler;
use crate::file::Bytes;
use crate::lifetimes::{LifetimesError, Recorder, Special, WeakFields};
use crate::reading::{Deaths, Ending, Reading, deaths_of_heap, deaths_unknown, play};
use crate::record::{AllocKind, ObjectId, Record, Slot, ThreadId};
use crate::resolve::CutOffThread;
use crate::told::{Hold, Told};
use crate::types::Types;
use crate::watch::{Watched, Watcher};

/// Why a text cannot be read.
#[derive(Debug, Error)]
pub enum TextInputError {
    #[error("{path}: {source}", path = path.display())]
    Text { path: PathBuf, source: ParseError },
    #[error("cannot read {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: line {line} is not a line of a names file (et-trace text --names writes them)", path = path.display())]
    Names { path: PathBuf, line: u64 },
    #[error(transparent)]
    Lifetimes(#[from] LifetimesError),
}

/// An open text.
#[derive(Debug)]
pub struct TextTrace {
    path: PathBuf,
    bytes: Bytes,
    form: TextForm,
    has_deaths: bool,
    events: EventSet,
    tells_holders: bool,
    names: Option<Arc<TextNames>>,
    /// `Reference.referent`, if the text reveals which field it is. Searched for on first use.
    referent: OnceLock<Option<FieldId>>,
    warnings: Vec<String>,
    watcher: Watcher,
}

impl TextTrace {
    /// Opens a file, and the names file if given.
    pub fn open(path: &Path, names: Option<&Path>) -> Result<Self, TextInputError> {
        let fail = |source| TextInputError::Io { path: path.to_owned(), source };
        let bytes = Bytes::of_file(&File::open(path).map_err(fail)?).map_err(fail)?;
        Self::new(path, bytes, names)
    }

    /// Copies a stream to a temporary file and opens it. `name` is used in messages.
    pub fn from_stream(name: &Path, stream: impl Read, names: Option<&Path>) -> Result<Self, TextInputError> {
        let bytes = Bytes::of_stream(|out| stream::copy(stream, out));
        let bytes = bytes.map_err(|source| TextInputError::Io { path: name.to_owned(), source })?;
        let bytes = bytes.map_err(|source| TextInputError::Text { path: name.to_owned(), source })?;
        Self::new(name, bytes, names)
    }

    /// Opens a text in memory.
    pub fn from_text(text: &(impl AsRef<[u8]> + ?Sized), names: Option<TextNames>) -> Self {
        let mut trace = Self::of_bytes(Path::new("memory"), Bytes::Owned(text.as_ref().to_vec()));
        trace.names = names.map(Arc::new);
        trace
    }

    fn new(path: &Path, bytes: Bytes, names: Option<&Path>) -> Result<Self, TextInputError> {
        let mut trace = Self::of_bytes(path, bytes);
        trace.first_record()?;
        if let Some(names) = names {
            let fail = |source| TextInputError::Io { path: names.to_owned(), source };
            let file = BufReader::with_capacity(1 << 18, File::open(names).map_err(fail)?);
            let read = TextNames::read(file).map_err(fail)?;
            trace.names = Some(Arc::new(read.map_err(|line| TextInputError::Names { path: names.to_owned(), line })?));
        }
        Ok(trace)
    }

    /// Reads up to the first record, so that anything that is not a trace is detected at once.
    fn first_record(&self) -> Result<(), TextInputError> {
        let (mut reader, mut types) = (self.lines(true), Types::default());
        while let Some(Line::Comment(_) | Line::Hold(_)) =
            reader.next_line(&mut types).map_err(|error| self.error(error))?
        {}
        Ok(())
    }

    fn of_bytes(path: &Path, bytes: Bytes) -> Self {
        let sample = Sample::of(&bytes);
        let form = TextForm { radix: sample.radix(), is_replayer: sample.is_replayer(), split_repeated: true };
        let has_deaths = sample.says_deaths.unwrap_or_else(|| has_deaths(&bytes));
        let mut warnings = sample.warnings(form.radix);
        if (sample.says_et || sample.says_replayer) && !is_whole(&bytes) {
            warnings.push("the text does not end with \"# lost\": it is cut off".into());
        }
        let events = sample.events.unwrap_or(EventSet::ALL);
        let tells_holders = sample.tells_holders;
        Self {
            path: path.to_owned(),
            bytes,
            form,
            has_deaths,
            events,
            tells_holders,
            names: None,
            referent: OnceLock::new(),
            warnings,
            watcher: Watcher::default(),
        }
    }

    /// Sets the watcher that is informed about the progress of reading.
    pub fn watch(&mut self, watcher: &Watcher) {
        self.watcher = watcher.clone();
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn names(&self) -> Option<&TextNames> {
        self.names.as_deref()
    }

    /// Reads it line by line. With `as_it_is`, an id that is allocated again is not renamed.
    pub fn lines(&self, as_it_is: bool) -> TextReader<Watched<'_>> {
        let form = TextForm { split_repeated: !as_it_is, ..self.form };
        TextReader::new(Watched::new(&self.bytes, &self.watcher), form, self.names.clone())
    }

    /// Dialect and radix.
    pub fn form(&self) -> TextForm {
        self.form
    }

    /// Whether it has `D` records.
    pub fn has_deaths(&self) -> bool {
        self.has_deaths
    }

    /// The events that the classes of the run had hooks for: all, unless the text says otherwise.
    pub fn events(&self) -> EventSet {
        self.events
    }

    /// Whether it says what holds objects although no record does.
    pub fn tells_holders(&self) -> bool {
        self.tells_holders
    }

    /// Which slots do not keep their target alive, as far as its names file or the text itself shows it.
    pub(crate) fn weak_fields(&self) -> WeakFields {
        const FINAL_REFERENCE: &str = "java/lang/ref/FinalReference";
        let names = self.names.as_deref();
        let named = names.and_then(TextNames::referent).map(|field| FieldId(field as u32));
        // The only subclass in the JDK.
        let mut family = vec![FINAL_REFERENCE.to_owned(), "java/lang/ref/Finalizer".to_owned()];
        family.extend(names.into_iter().flat_map(|names| names.family(FINAL_REFERENCE)).map(str::to_owned));
        WeakFields {
            referent: named.or_else(|| *self.referent.get_or_init(|| self.find_referent())),
            final_references: family.into_iter().map(|class| format!("L{class};")).collect(),
        }
    }

    /// Needs descriptors, which a text in dialect replayer does not have.
    fn find_referent(&self) -> Option<FieldId> {
        if self.form.is_replayer { None } else { referent::find(&self.bytes, self.form.radix) }
    }

    /// Types and fields with a special meaning for deaths.
    fn special(&self, types: &mut Types) -> Special {
        let weak = self.weak_fields();
        Special {
            class: Some(types.intern_class("java/lang/Class")),
            string: (!self.tells_holders).then(|| types.intern_class("java/lang/String")),
            referent: weak.referent,
            final_references: weak.final_references.iter().map(|descriptor| types.intern(descriptor)).collect(),
        }
    }

    /// Warnings from opening the text.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Adds the path of the text to an error.
    pub fn error(&self, source: ParseError) -> TextInputError {
        TextInputError::Text { path: self.path.clone(), source }
    }

    /// Fills batches with everything that is requested.
    pub(crate) fn fill(&self, reading: Reading, mut filler: Filler) -> Result<Ending, TextInputError> {
        let unknown = deaths_unknown(self.events).filter(|_| reading.deaths == Deaths::Trace && !self.has_deaths);
        if reading.deaths == Deaths::Trace && !self.has_deaths && unknown.is_none() {
            return self.with_deaths(reading, filler);
        }
        if self.has_deaths {
            return self.with_its_deaths(reading, filler);
        }
        let mut types = Types::default();
        let mut ending = self.each(&mut types, |told, types| match told {
            Told::Hold(_) if !reading.holders => ControlFlow::Continue(()),
            _ => {
                filler.knows(types);
                filler.push(*told)
            }
        })?;
        ending.outcome.totals = filler.finish();
        ending.text_types = types;
        ending.warnings.extend(unknown);
        Ok(ending)
    }

    /// Passes on the deaths that the text has, with the clearings of weak references before them; or neither.
    fn with_its_deaths(&self, reading: Reading, mut filler: Filler) -> Result<Ending, TextInputError> {
        let mut types = Types::default();
        let special = self.special(&mut types);
        let mut clearings = Clearings::new(&special);
        let mut uncleared = Uncleared { referent: special.referent, referents: FxHashMap::default() };
        let mut push = |filler: &mut Filler, record: Record, is_clearing| match (reading.deaths, is_clearing) {
            (Deaths::Trace, true) => filler.push_found(record),
            (Deaths::Trace, false) => filler.push(Told::Record(record)),
            (Deaths::None, _) => uncleared
                .record(record, is_clearing)
                .map_or(ControlFlow::Continue(()), |record| filler.push(Told::Record(record))),
        };
        let mut ending = self.each(&mut types, |told, types| {
            filler.knows(types);
            match told {
                Told::Record(record) => {
                    clearings.record(record, |record, is_clearing| push(&mut filler, record, is_clearing))
                }
                Told::Hold(_) => {
                    clearings.settle(|record, is_clearing| push(&mut filler, record, is_clearing))?;
                    if reading.holders { filler.push(*told) } else { ControlFlow::Continue(()) }
                }
            }
        })?;
        if !ending.outcome.stopped {
            // A consumer that breaks now has received everything it wanted.
            _ = clearings.settle(|record, is_clearing| push(&mut filler, record, is_clearing));
        }
        if reading.deaths == Deaths::Trace {
            ending.warnings.extend(deaths_of_heap(self.events));
        }
        ending.outcome.totals = filler.finish();
        ending.text_types = types;
        Ok(ending)
    }

    fn with_deaths(&self, reading: Reading, mut filler: Filler) -> Result<Ending, TextInputError> {
        let mut types = Types::default();
        let special = self.special(&mut types);
        let tells_referent = special.referent.is_some();
        let mut recorder = Recorder::new(special, reading.limits);
        let (mut initial, mut to_the_end) = (0u64, Vec::new());
        recorder.watch(&self.watcher);
        let mut ending = self.each(&mut types, |told, _| {
            if let Told::Record(Record::Alloc(alloc)) = told
                && alloc.kind == AllocKind::Initial
                && !self.tells_holders
            {
                // The text does not say what held it.
                initial += 1;
                recorder.held_to_the_end(alloc.object);
            }
            if reading.holders
                && let Told::Hold(hold @ Hold::ToTheEnd { .. }) = told
            {
                to_the_end.push((recorder.steps(), *hold));
            }
            if filler.is_wanted() && recorder.told(told) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !filler.is_wanted() {
            return Ok(ending);
        }
        let recording = recorder.finish()?;
        filler.knows(&types);
        let (cost, stopped) = play(&recording, &to_the_end, |_| {}, (&mut filler, reading.holders))?;
        ending.cost = Some(cost);
        ending.warnings.extend(deaths_of_heap(self.events));
        ending.outcome.stopped = stopped;
        ending.outcome.totals = filler.finish();
        ending.text_types = types;
        if initial > 0 {
            ending.warnings.push(format!(
                "the text has no deaths and does not say what its {initial} I objects held: they are kept to the end, and what only they held may die too early"
            ));
        }
        if !tells_referent {
            ending.warnings.push(
                "the text has no deaths and no names file identifies Reference.referent: weak references keep their targets alive"
                    .to_owned(),
            );
        }
        Ok(ending)
    }

    /// Reads records as they are, and what comments say about holders.
    fn each(
        &self,
        types: &mut Types,
        mut visit: impl FnMut(&Told, &Types) -> ControlFlow<()>,
    ) -> Result<Ending, TextInputError> {
        let mut ending = Ending { warnings: self.warnings.clone(), ..Ending::default() };
        let mut depths: FxHashMap<ThreadId, usize> = FxHashMap::default();
        let mut reader = self.lines(false);
        let (mut room, mut comments_left_out) = (COMMENTS, 0u64);
        while let Some(line) = reader.next_line(types).map_err(|error| self.error(error))? {
            let record = match line {
                Line::Record(record) => record,
                Line::Hold(hold) => {
                    // The visitor does not break here.
                    let _ = visit(&Told::Hold(hold), types);
                    continue;
                }
                Line::Comment(text) => {
                    if let Some(lost) = text.strip_prefix("lost ").and_then(|lost| lost.parse().ok()) {
                        ending.outcome.lost.events = lost;
                    } else if !is_counted_again(&text) {
                        match room.checked_sub(text.len() + COMMENT_COST) {
                            Some(left) => {
                                room = left;
                                ending.text_comments.push(text);
                            }
                            None => comments_left_out += 1,
                        }
                    }
                    continue;
                }
            };
            match record {
                Record::Entry { thread, .. } => *depths.entry(thread).or_default() += 1,
                Record::Exit { thread, .. } | Record::ExitThrow { thread, .. } => {
                    let depth = depths.entry(thread).or_default();
                    *depth = depth.saturating_sub(1);
                }
                Record::Alloc(_)
                | Record::Update { .. }
                | Record::Throw { .. }
                | Record::Handle { .. }
                | Record::Death { .. }
                | Record::Use { .. } => {}
            }
            if visit(&Told::Record(record), types).is_break() {
                ending.outcome.stopped = true;
                break;
            }
        }
        let mut cut_off: Vec<_> = depths
            .into_iter()
            .filter(|&(_, frames)| frames > 0)
            .map(|(thread, frames)| CutOffThread { thread, frames })
            .collect();
        cut_off.sort_by_key(|stack| stack.thread);
        ending.outcome.cut_off = cut_off;
        ending.warnings.extend(reader.quirks().warnings());
        if comments_left_out > 0 {
            let kept = COMMENTS >> 20;
            ending.warnings.push(format!(
                "{comments_left_out} comments are left out: those that are not part of the format are kept up to {kept} MiB"
            ));
        }
        Ok(ending)
    }
}

/// Reads a text with deaths without them: references that were cleared because of a death are not cleared.
struct Uncleared {
    referent: Option<FieldId>,
    /// Referents of the references that the text clears.
    referents: FxHashMap<ObjectId, ObjectId>,
}

impl Uncleared {
    /// The record as it is without deaths; `None` if there is none.
    fn record(&mut self, record: Record, is_clearing: bool) -> Option<Record> {
        match record {
            Record::Death { object, .. } => {
                if !self.referents.is_empty() {
                    self.referents.remove(&object);
                }
                None
            }
            Record::Update { old, origin, .. } if is_clearing => {
                self.referents.insert(origin, old);
                None
            }
            // Now it is the collector that clears it.
            Record::Update { old: ObjectId::NULL, origin, target, slot, thread }
                if !self.referents.is_empty() && self.referent.map(Slot::Field) == Some(slot) =>
            {
                let old = self.referents.remove(&origin).unwrap_or_default();
                Some(Record::Update { old, origin, target, slot, thread })
            }
            _ => Some(record),
        }
    }
}

/// Maximum number of bytes of comments that are kept for the end. They come from other tools, or are about something
/// unusual in the run, so there are few.
const COMMENTS: usize = 4 << 20;
/// Memory in bytes that a comment takes in addition to its text.
const COMMENT_COST: usize = 64;

/// Whether a comment is written anew when the records are written again.
fn is_counted_again(comment: &str) -> bool {
    ["total ", "cut off thread ", "Elephant Tracks, dialect ", "deaths ", EVENTS, WITH_HOLDERS]
        .iter()
        .any(|start| comment.starts_with(start))
}

/// Whether the last line of a text written by this tool is present.
fn is_whole(bytes: &[u8]) -> bool {
    let last = bytes.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    last.is_some_and(|line| line.starts_with(b"# lost "))
}

/// Whether there is a `D` line.
fn has_deaths(bytes: &[u8]) -> bool {
    bytes.starts_with(b"D ") || bytes.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"D "))
}

/// The beginning of a text, to determine its dialect and radix.
#[derive(Debug, Default)]
struct Sample {
    says_et: bool,
    says_replayer: bool,
    says_deaths: Option<bool>,
    events: Option<EventSet>,
    tells_holders: bool,
    lines: u64,
    et: u64,
    replayer: u64,
    with_hexadecimal_digits: u64,
}

impl Sample {
    const BYTES: usize = 1 << 20;

    fn of(bytes: &[u8]) -> Self {
        let mut sample = Self::default();
        for line in (&bytes[..bytes.len().min(Self::BYTES)]).lines().map_while(Result::ok) {
            sample.line(line.trim());
        }
        sample
    }

    fn line(&mut self, text: &str) {
        match text.strip_prefix('#').map(str::trim) {
            Some("Elephant Tracks, dialect et") => self.says_et = true,
            Some("Elephant Tracks, dialect replayer") => self.says_replayer = true,
            Some("deaths trace") => self.says_deaths = Some(true),
            Some("deaths none") => self.says_deaths = Some(false),
            Some(WITH_HOLDERS) => self.tells_holders = true,
            Some(comment) => {
                let events = comment.strip_prefix(EVENTS).and_then(|events| match events {
                    NO_EVENTS => Some(EventSet::from_bits(0)),
                    events => events.parse().ok(),
                });
                self.events = self.events.or(events);
            }
            None => {
                let Ok(line) = line::parse(text, Radix::Hexadecimal) else { return };
                self.lines += 1;
                let is_digit = |byte: u8| matches!(byte, b'a'..=b'f' | b'A'..=b'F');
                let numbers = text.split_ascii_whitespace().skip(1);
                let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
                let has_digits = numbers.filter(is_number).any(|word| word.bytes().any(is_digit));
                self.with_hexadecimal_digits += u64::from(has_digits);
                match line {
                    line::RawLine::Alloc { ty: TypeWord::Descriptor(_), .. }
                    | line::RawLine::Update { old: Some(_), .. }
                    | line::RawLine::Exit { receiver: Some(_), .. } => self.et += 1,
                    line::RawLine::Alloc { ty: TypeWord::Number(_), .. }
                    | line::RawLine::Update { old: None, .. }
                    | line::RawLine::Exit { receiver: None, .. } => self.replayer += 1,
                    _ => {}
                }
            }
        }
    }

    fn is_replayer(&self) -> bool {
        self.says_replayer || !self.says_et && self.replayer > self.et
    }

    fn radix(&self) -> Radix {
        /// Of this many lines at least one would have a hexadecimal digit from a to f.
        const ENOUGH: u64 = 200;
        if self.says_et || self.with_hexadecimal_digits > 0 {
            Radix::Hexadecimal
        } else if self.is_replayer() || self.lines >= ENOUGH {
            Radix::Decimal
        } else {
            Radix::Hexadecimal
        }
    }

    fn warnings(&self, radix: Radix) -> Vec<String> {
        let odd = match (self.is_replayer(), radix) {
            (false, Radix::Decimal) => "records of dialect et with decimal numbers",
            (true, Radix::Hexadecimal) => "records of dialect replayer with hexadecimal numbers",
            _ => return Vec::new(),
        };
        vec![format!("{odd}: read as such")]
    }
}
