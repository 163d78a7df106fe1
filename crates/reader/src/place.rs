//! Positions of records relative to other threads and in time.

use et_format::Wall;
use et_format::event::Ticket;

/// A position relative to other threads and in time. Consists of plain numbers because places are compared for each
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    ticket: u64,
    begin: u64,
    end: u64,
}

/// Stands for no ticket: traces cannot reach this number.
const NO_TICKET: u64 = u64::MAX - 1;

impl Default for Place {
    fn default() -> Self {
        Self { ticket: NO_TICKET, begin: 0, end: 0 }
    }
}

impl Place {
    /// Length of an encoded place in words.
    pub(crate) const WORDS: usize = 3;

    /// Creates a place from a ticket, and the time if the trace has it.
    #[inline]
    pub fn new(ticket: Ticket, wall: Option<Wall>) -> Self {
        let begin = wall.map_or(0, |wall| wall.begin.0);
        let end = wall.and_then(|wall| wall.end).map_or(0, |end| end.0);
        Self { ticket: ticket.0, begin, end }
    }

    /// The ticket, which determines the order between threads; `None` if unknown.
    pub fn ticket(&self) -> Option<Ticket> {
        (self.ticket != NO_TICKET).then_some(Ticket(self.ticket))
    }

    /// When the chunk of events that contains it was filled; `None` if unknown.
    #[inline]
    pub fn wall(&self) -> Option<Wall> {
        Wall::from_fields(self.begin, self.end)
    }

    pub(crate) fn words(self) -> [u64; Self::WORDS] {
        [self.ticket, self.begin, self.end]
    }

    pub(crate) fn from_words([ticket, begin, end]: [u64; Self::WORDS]) -> Self {
        Self { ticket, begin, end }
    }
}
