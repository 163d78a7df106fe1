//! Where records stand between threads and in time.

use et_format::Wall;
use et_format::event::Ticket;

/// Where things stand between threads and in time. Plain numbers, because it is compared for each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    ticket: u64,
    begin: u64,
    end: u64,
}

/// Stands for no ticket: no trace has so many.
const NO_TICKET: u64 = u64::MAX - 1;

impl Default for Place {
    fn default() -> Self {
        Self { ticket: NO_TICKET, begin: 0, end: 0 }
    }
}

impl Place {
    /// Words that say it all.
    pub(crate) const WORDS: usize = 3;

    /// With a ticket, and the time if the trace says.
    #[inline]
    pub fn new(ticket: Ticket, wall: Option<Wall>) -> Self {
        let begin = wall.map_or(0, |wall| wall.begin.0);
        let end = wall.and_then(|wall| wall.end).map_or(0, |end| end.0);
        Self { ticket: ticket.0, begin, end }
    }

    /// The place in the order between threads.
    pub fn ticket(&self) -> Option<Ticket> {
        (self.ticket != NO_TICKET).then_some(Ticket(self.ticket))
    }

    /// When the events were made that it is among.
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
