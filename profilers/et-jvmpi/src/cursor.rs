//! A cursor over the records of a trace, for replays with several inputs.

use std::sync::Arc;
use std::vec::IntoIter;

use et_format::event::Ticket;
use et_reader::record::{Alloc, Record};
use et_reader::records::Records;
use et_reader::source::{Deaths, Ending, Reading, Source, SourceError};

/// A record with its position.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub record: Record,
    pub tick: u64,
    pub ticket: Option<Ticket>,
}

/// A cursor over the records, which contain no deaths.
#[derive(Debug)]
pub struct Cursor {
    records: Records,
    batch: IntoIter<Step>,
    next: Option<Step>,
}

impl Cursor {
    /// Starts before the first record.
    pub fn new(source: &Arc<Source>) -> Result<Self, SourceError> {
        let records = source.records(Reading { deaths: Deaths::None, ..Reading::default() });
        let mut cursor = Self { records, batch: Vec::new().into_iter(), next: None };
        cursor.advance()?;
        Ok(cursor)
    }

    fn advance(&mut self) -> Result<(), SourceError> {
        self.next = loop {
            if let Some(step) = self.batch.next() {
                break Some(step);
            }
            let Some(batch) = self.records.next().transpose()? else { break None };
            let step = |(record, at): (&Record, et_reader::batch::At<'_>)| Step {
                record: *record,
                tick: at.tick.0,
                ticket: at.place.ticket(),
            };
            self.batch = batch.records().map(step).collect::<Vec<_>>().into_iter();
        };
        Ok(())
    }

    /// The next record.
    pub fn peek(&self) -> Option<&Step> {
        self.next.as_ref()
    }

    /// The next record, if it is wanted; it was taken then.
    pub fn next_if(&mut self, is_wanted: impl FnOnce(&Step) -> bool) -> Result<Option<Step>, SourceError> {
        let Some(step) = self.next.filter(is_wanted) else { return Ok(None) };
        self.advance()?;
        Ok(Some(step))
    }

    /// The next record, if it is a birth.
    pub fn birth(&self) -> Option<&Alloc> {
        match &self.next.as_ref()?.record {
            Record::Alloc(alloc) => Some(alloc),
            _ => None,
        }
    }

    /// Results at the end of the trace.
    pub fn finish(self) -> Result<Ending, SourceError> {
        self.records.into_ending()
    }
}
