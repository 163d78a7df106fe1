//! Places of steps, kept with each piece of the spool.

use crate::place::Place;

/// The places of one piece, encoded as they are added.
#[derive(Debug, Default)]
pub struct PlaceList {
    bytes: Vec<u8>,
    last: Place,
}

/// Length of an entry in words: number of the step, and the place.
const WORDS: usize = 1 + Place::WORDS;

impl PlaceList {
    /// Sets the place of all steps from this one on.
    pub fn at(&mut self, step: u64, place: Place) {
        self.last = place;
        let [ticket, begin, end] = place.words();
        for word in [step, ticket, begin, end] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Returns the places of a piece that ends before the step `next`, with which the next piece begins.
    pub fn take(&mut self, next: u64) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.at(next, self.last);
        }
        bytes
    }
}

/// Decodes what [`PlaceList::take`] returned.
pub fn decode(bytes: &[u8]) -> Vec<(u64, Place)> {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
    let place = |&[step, place @ ..]: &[u64; WORDS]| (step, Place::from_words(place));
    words.as_chunks().0.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::event::Ticket;
    use et_format::{Nanos, Wall};

    #[test]
    fn each_piece_says_where_it_begins() {
        let wall = Wall { begin: Nanos(5), end: None };
        let first = Place::new(Ticket(1), None);
        let second = Place::new(Ticket(u64::MAX), Some(wall));
        let third = Place::default();
        let mut list = PlaceList::default();
        assert_eq!(decode(&list.take(0)), []);
        list.at(0, first);
        list.at(7, second);
        assert_eq!(decode(&list.take(10)), [(0, first), (7, second)]);
        list.at(12, third);
        assert_eq!(decode(&list.take(20)), [(10, second), (12, third)]);
        assert_eq!(decode(&list.take(30)), [(20, third)]);
    }
}
