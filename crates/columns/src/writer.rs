//! Writes a table to one file.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use et_system::threads::{NoThread, spawn};

use crate::encode::{Encoder, Written};
use crate::row::{Rows, Values};

/// Rows per row group. Readers skip groups by their statistics, and distribute groups over threads.
pub const GROUP: usize = 1 << 17;

/// Writes a table row by row; a separate thread encodes the row groups.
#[derive(Debug)]
pub struct TableWriter<R: Rows> {
    rows: R,
    /// `None` if the thread could not be started or has failed.
    groups: Option<SyncSender<Vec<Values>>>,
    thread: Result<JoinHandle<io::Result<Written>>, NoThread>,
}

impl<R: Rows> TableWriter<R> {
    /// Begins a table in an empty file.
    pub fn new(file: File) -> Self {
        // A small queue bounds memory: the caller blocks while the thread is behind.
        let (groups, receiver) = sync_channel::<Vec<Values>>(1);
        let thread = spawn(move || {
            let encoder = Encoder::new(R::TABLE)?;
            let mut writer = encoder.begin(file)?;
            for values in &receiver {
                writer.append(encoder.encode(&values)?)?;
            }
            writer.finish()
        });
        Self { rows: R::default(), groups: thread.is_ok().then_some(groups), thread }
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, row: R::Row) {
        self.rows.push(row);
        if self.rows.len() >= GROUP {
            self.hand_over();
        }
    }

    /// Ends the row group: the next row is in another one.
    pub fn end_group(&mut self) {
        if !self.rows.is_empty() {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let values = std::mem::take(&mut self.rows).values();
        self.groups.take_if(|groups| groups.send(values).is_err());
    }

    /// Whether rows are discarded because a write failed or the thread could not be started. [`finish`](Self::finish)
    /// returns the error.
    pub fn has_failed(&self) -> bool {
        self.groups.is_none()
    }

    /// Writes the remaining rows and completes the file.
    ///
    /// # Errors
    ///
    /// A write failed, or the thread could not be started.
    pub fn finish(mut self) -> io::Result<Written> {
        self.end_group();
        drop(self.groups);
        match self.thread?.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, TableReader};

    crate::table! {
        /// Things.
        "things", "as they come", None, {
            /// A number.
            number: i64 as Delta,
            /// Perhaps one.
            maybe: Option<i64> as Plain,
            /// A word of few.
            kind: crate::Word as Dictionary,
            /// Yes or no.
            flag: bool as Dictionary,
            /// Perhaps yes.
            whether: Option<bool> as Dictionary,
            /// Perhaps a text.
            word: Option<String> as Dictionary,
        }
    }

    fn rows(at: i64) -> [Row; 3] {
        let row = |number, maybe, kind, flag, whether, word: Option<&str>| Row {
            number,
            maybe,
            kind: crate::Word(kind),
            flag,
            whether,
            word: word.map(str::to_owned),
        };
        [
            row(at, None, "A", true, None, Some("ü")),
            row(i64::MAX, Some(at), "N", false, Some(true), None),
            row(-1, None, "A", true, Some(false), None),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let file = tempfile::tempfile().unwrap();
        let mut writer = TableWriter::<Rows>::new(file.try_clone().unwrap());
        rows(7).into_iter().for_each(|row| writer.push(row));
        writer.end_group();
        writer.end_group();
        rows(8).into_iter().for_each(|row| writer.push(row));
        assert!(!writer.has_failed());
        let written = writer.finish().unwrap();
        assert_eq!(written.bytes, file.metadata().unwrap().len());
        let reader = TableReader::open(file).unwrap();
        assert_eq!((reader.name(), reader.groups(), reader.rows()), ("things", 2, 6));
        assert_eq!(reader.numbers(1, "number").unwrap(), [Some(8), Some(i64::MAX), Some(-1)]);
        assert_eq!(reader.numbers(0, "maybe").unwrap(), [None, Some(7), None]);
        assert_eq!(reader.texts(0, "kind").unwrap()[1].as_deref(), Some("N"));
        assert_eq!(reader.texts(0, "word").unwrap(), [Some("ü".to_owned()), None, None]);
        assert_eq!(reader.flags(0, "flag").unwrap(), [Some(true), Some(false), Some(true)]);
        assert_eq!(reader.flags(0, "whether").unwrap(), [None, Some(true), Some(false)]);
        assert!(reader.numbers(0, "nothing").is_err());
        let bounds = |group, column| reader.bounds(group, column).unwrap();
        assert_eq!(bounds(1, "number"), Bounds { range: Some((-1, i64::MAX)), has_nulls: false });
        assert_eq!(bounds(1, "maybe"), Bounds { range: Some((8, 8)), has_nulls: true });
        assert!(reader.bounds(0, "word").is_err() && reader.bounds(0, "nothing").is_err());
    }

    /// Few texts are in a dictionary, many large ones partly outside of it.
    #[test]
    fn words_are_texts() {
        let few = |at: usize| (!at.is_multiple_of(3)).then(|| format!("word {}", at % 7));
        let many = |at: usize| (!at.is_multiple_of(5)).then(|| format!("{at} {}", "x".repeat(100)));
        for text in [&few as &dyn Fn(usize) -> Option<String>, &many, &|_| None] {
            let file = tempfile::tempfile().unwrap();
            let mut writer = TableWriter::<Rows>::new(file.try_clone().unwrap());
            for at in 0..30_000 {
                let [row, ..] = rows(1);
                writer.push(Row { word: text(at), ..row });
            }
            writer.finish().unwrap();
            let reader = TableReader::open(file).unwrap();
            let texts = reader.texts(0, "word").unwrap();
            assert!(texts.iter().enumerate().all(|(at, read)| *read == text(at)));
            let lengths = reader.words_as(0, "word", |text| Ok(text.len())).unwrap();
            assert!(lengths.iter().zip(&texts).all(|(length, text)| *length == text.as_ref().map(String::len)));
            let refused = reader.words_as(0, "word", |_| Err::<(), _>(std::io::ErrorKind::InvalidData.into()));
            assert_eq!(refused.is_err(), text(1).is_some());
            assert_eq!(reader.words_as(0, "kind", |kind| Ok(kind[0])).unwrap(), vec![Some(b'A'); 30_000]);
        }
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let file = tempfile::tempfile().unwrap();
        TableWriter::<Rows>::new(file.try_clone().unwrap()).finish().unwrap();
        let reader = TableReader::open(file).unwrap();
        assert_eq!((reader.name(), reader.groups(), reader.rows()), ("things", 0, 0));
    }
}
