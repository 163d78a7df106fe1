//! Reads rows of the table of objects as they are stored.

use std::io;
use std::ops::RangeInclusive;

use et_columns::TableReader;
use et_names::SiteId;
use et_reader::model::ContextId;
use et_reader::population::{Columns, Key, Rows};
use et_reader::record::{AllocKind, ObjectId, RecordKind, ThreadId};
use et_reader::types::TypeId;

use crate::known::{number32, unsigned};

/// The rows of a group as they are stored.
pub(crate) fn stored(table: &TableReader, group: usize, columns: Columns) -> io::Result<Rows> {
    let reader = GroupReader { table, group, columns };
    // All columns are spelled out, so that the compiler asks about a new one.
    Ok(Rows {
        counts: Vec::new(),
        spans: None,
        len: table.rows_of(group),
        number: reader.wanted(Columns::NUMBER, || reader.numbers("number", |number| number))?,
        object: reader.wanted(Columns::OBJECT, || reader.numbers("object", ObjectId))?,
        class: reader.wanted(Columns::CLASS, || reader.numbers32("class", TypeId))?,
        kind: reader.wanted(Columns::KIND, || reader.kinds("kind"))?,
        size: reader.wanted(Columns::SIZE, || reader.numbers("size", |size| size))?,
        length: reader.wanted(Columns::LENGTH, || reader.numbers32("length", |length| length))?,
        site: reader.wanted(Columns::SITE, || reader.numbers32("site", SiteId))?,
        context: reader.wanted(Columns::CONTEXT, || reader.numbers32("context", ContextId))?,
        thread: reader.wanted(Columns::THREAD, || reader.numbers32("thread", ThreadId))?,
        birth_tick: reader.wanted(Columns::BIRTH_TICK, || reader.numbers("birth_tick", |tick| tick))?,
        birth_bytes: reader.wanted(Columns::BIRTH_BYTES, || reader.numbers("birth_bytes", |bytes| bytes))?,
        birth_nanos: reader.wanted(Columns::BIRTH_NANOS, || reader.maybe("birth_nanos"))?,
        last_use_tick: reader.wanted(Columns::LAST_USE_TICK, || reader.numbers("last_use_tick", |tick| tick))?,
        death_tick: reader.wanted(Columns::DEATH_TICK, || reader.maybe("death_tick"))?,
        death_bytes: reader.wanted(Columns::DEATH_BYTES, || reader.maybe("death_bytes"))?,
        death_nanos: reader.wanted(Columns::DEATH_NANOS, || reader.maybe("death_nanos"))?,
        death_thread: reader.wanted(Columns::DEATH_THREAD, || reader.maybe32("death_thread", ThreadId))?,
        death_context: reader.wanted(Columns::DEATH_CONTEXT, || reader.maybe32("death_context", ContextId))?,
        escaped_thread: reader.wanted(Columns::ESCAPED_THREAD, || table.flags(group, "escaped_thread"))?,
        escaped_frame: reader.wanted(Columns::ESCAPED_FRAME, || table.flags(group, "escaped_frame"))?,
        death_record: reader.wanted(Columns::DEATH_RECORD, || reader.maybe("death_record"))?,
        death_kind: reader.wanted(Columns::DEATH_KIND, || reader.record_kinds("death_kind"))?,
        // Of objects whose deaths are known.
        fate: reader.wanted(Columns::FATE, || Ok(vec![None; table.rows_of(group)]))?,
    })
}

/// Reads columns of one group.
pub(crate) struct GroupReader<'a> {
    pub table: &'a TableReader,
    pub group: usize,
    /// Those that are wanted.
    pub columns: Columns,
}

impl GroupReader<'_> {
    /// What `read` returns if the column is wanted, otherwise nothing.
    fn wanted<T>(&self, column: Columns, read: impl FnOnce() -> io::Result<Vec<T>>) -> io::Result<Vec<T>> {
        if self.columns.has(column) { read() } else { Ok(Vec::new()) }
    }

    pub fn numbers<T>(&self, name: &str, of: impl Fn(u64) -> T) -> io::Result<Vec<T>> {
        self.table.numbers_as(self.group, name, |value| unsigned(value).map(&of))
    }

    pub fn numbers32<T>(&self, name: &str, of: impl Fn(u32) -> T) -> io::Result<Vec<T>> {
        self.table.numbers_as(self.group, name, |value| number32(value).map(&of))
    }

    pub fn maybe(&self, name: &str) -> io::Result<Vec<Option<u64>>> {
        self.table.numbers_as(self.group, name, |value| Ok(value.map(i64::cast_unsigned)))
    }

    pub fn maybe32<T>(&self, name: &str, of: impl Fn(u32) -> T) -> io::Result<Vec<Option<T>>> {
        self.table.numbers_as(self.group, name, |value| value.map(|value| number32(Some(value)).map(&of)).transpose())
    }

    fn record_kinds(&self, name: &str) -> io::Result<Vec<Option<RecordKind>>> {
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "a death by no known kind of record");
        self.table.words_as(self.group, name, |text| {
            RecordKind::ALL.into_iter().find(|kind| text == kind.text().as_bytes()).ok_or_else(unknown)
        })
    }

    fn kinds(&self, name: &str) -> io::Result<Vec<AllocKind>> {
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "an object of no known kind");
        let kinds = self.table.words_as(self.group, name, |text| {
            AllocKind::ALL.into_iter().find(|kind| text == kind.record_kind().text().as_bytes()).ok_or_else(unknown)
        })?;
        kinds.into_iter().map(|kind| kind.ok_or_else(unknown)).collect()
    }
}

/// The smallest and the largest value of a column of a group, by its statistics; empty if it has none.
pub fn range(table: &TableReader, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
    let column = match key {
        Key::Number => "number",
        Key::BirthTick => "birth_tick",
        Key::DeathTick => "death_tick",
        Key::DeathRecord => "death_record",
    };
    let (first, last) = table.bounds(group, column)?.range.unwrap_or((1, 0));
    Ok(first.cast_unsigned()..=last.cast_unsigned())
}

/// The smallest range that has both.
pub fn wider(one: RangeInclusive<u64>, other: RangeInclusive<u64>) -> RangeInclusive<u64> {
    if one.is_empty() {
        return other;
    }
    *one.start().min(other.start())..=*one.end().max(other.end())
}
