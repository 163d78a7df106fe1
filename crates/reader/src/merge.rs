//! Merges the events of all threads into one stream, ordered by ticket (`docs/inside/events.md`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use et_format::event::Ticket;

/// The items of one thread, in order.
pub trait Source {
    /// State that all sources share while they are read.
    type Shared;
    type Item;
    /// Passes the items up to the next ticket to `take` and returns that ticket; `None` at the end, or if `take`
    /// breaks. Items before the first ticket belong to the one with which the source began.
    fn segment(
        &mut self,
        shared: &mut Self::Shared,
        take: impl FnMut(Self::Item, &mut Self::Shared) -> ControlFlow<()>,
    ) -> Option<Ticket>;
    /// Whether all open sources together hold too much memory.
    fn is_crowded(_shared: &Self::Shared) -> bool {
        false
    }
    /// Reduces the memory that the source holds, which has not been read for some time. Returns false once enough has
    /// been freed.
    fn make_room(&mut self, _shared: &mut Self::Shared) -> bool {
        false
    }
    /// Called when all sources have done so and still hold too much: the limit has to be raised.
    fn lacks_room(_shared: &mut Self::Shared) {}
}

/// Receives the merged stream.
pub trait Sink<S: Source> {
    /// Begins a segment: all items until the next call belong to this source and ticket.
    fn segment(&mut self, source: usize, ticket: Ticket, shared: &mut S::Shared);
    /// Receives an item of the current segment. Breaks to stop.
    fn item(&mut self, source: usize, item: S::Item, shared: &mut S::Shared) -> ControlFlow<()>;
    /// The source has ended.
    fn end(&mut self, _source: usize) {}
}

/// Merges sources into `sink`; `firsts` are their first tickets. Each source is opened when it is first needed and
/// dropped at its end, since there may be very many of which few overlap. The order within a source is preserved
/// whatever its tickets are.
pub fn merge<S: Source>(
    firsts: impl IntoIterator<Item = (usize, Ticket)>,
    mut open: impl FnMut(usize) -> S,
    shared: &mut S::Shared,
    sink: &mut impl Sink<S>,
) {
    let first = |(source, ticket)| Reverse(Turn { ticket, source, place: None });
    let mut turns: BinaryHeap<Reverse<Turn>> = firsts.into_iter().map(first).collect();
    let mut sources = Sources::default();
    while let Some(Reverse(Turn { ticket, source, place })) = turns.pop() {
        let place = place.unwrap_or_else(|| sources.add(open(source)));
        sink.segment(source, ticket, shared);
        let Some(items) = sources.take_turn(place) else { continue };
        match run(items, source, shared, sink, &turns) {
            Next::At(ticket) => turns.push(Reverse(Turn { ticket, source, place: Some(place) })),
            Next::Ended => {
                sources.remove(place);
                sink.end(source);
            }
            Next::Stop => return,
        }
        if S::is_crowded(shared) {
            sources.make_room(shared);
        }
    }
}

/// When a source continues. The first two fields determine the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    ticket: Ticket,
    source: usize,
    /// Index among the open sources; `None` if it has not been opened.
    place: Option<usize>,
}

/// How a source continues.
enum Next {
    At(Ticket),
    Ended,
    /// The sink wants no more.
    Stop,
}

/// Reads a source until another one has an earlier ticket.
fn run<S: Source>(
    items: &mut S,
    source: usize,
    shared: &mut S::Shared,
    sink: &mut impl Sink<S>,
    turns: &BinaryHeap<Reverse<Turn>>,
) -> Next {
    loop {
        let mut flow = ControlFlow::Continue(());
        let next = items.segment(shared, |item, shared| {
            flow = sink.item(source, item, shared);
            flow
        });
        match (flow, next) {
            (ControlFlow::Break(()), _) => return Next::Stop,
            (_, None) => return Next::Ended,
            (_, Some(ticket)) => match turns.peek() {
                Some(Reverse(first)) if (first.ticket, first.source) < (ticket, source) => return Next::At(ticket),
                _ => sink.segment(source, ticket, shared),
            },
        }
    }
}

/// The open sources.
struct Sources<S> {
    /// Each with the number of its last turn.
    all: Vec<Option<(S, u64)>>,
    free: Vec<usize>,
    turn: u64,
}

impl<S> Default for Sources<S> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new(), turn: 0 }
    }
}

impl<S: Source> Sources<S> {
    fn add(&mut self, source: S) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some((source, self.turn));
        place
    }

    fn remove(&mut self, place: usize) {
        self.all[place] = None;
        self.free.push(place);
    }

    /// Marks a turn of the source at this index and returns it.
    fn take_turn(&mut self, place: usize) -> Option<&mut S> {
        self.turn += 1;
        let (source, turn) = self.all[place].as_mut()?;
        *turn = self.turn;
        Some(source)
    }

    /// Has the least recently read sources free memory.
    fn make_room(&mut self, shared: &mut S::Shared) {
        let mut open: Vec<&mut (S, u64)> = self.all.iter_mut().flatten().collect();
        open.sort_unstable_by_key(|(_, turn)| *turn);
        for (source, _) in open {
            if !source.make_room(shared) {
                return;
            }
        }
        S::lacks_room(shared);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use proptest::prelude::*;

    /// What a thread of the test returns next.
    #[derive(Clone)]
    enum Step {
        Ticket(Ticket),
        Item(u32),
    }

    struct List {
        items: std::vec::IntoIter<Step>,
        /// Number of open lists.
        open: Rc<Cell<usize>>,
    }

    impl Drop for List {
        fn drop(&mut self) {
            self.open.set(self.open.get() - 1);
        }
    }

    impl Source for List {
        type Shared = ();
        type Item = u32;
        fn segment(&mut self, (): &mut (), mut take: impl FnMut(u32, &mut ()) -> ControlFlow<()>) -> Option<Ticket> {
            loop {
                match self.items.next()? {
                    Step::Ticket(ticket) => return Some(ticket),
                    Step::Item(item) => take(item, &mut ()).continue_value()?,
                }
            }
        }
    }

    #[derive(Default)]
    struct Collect {
        at: (usize, Ticket),
        items: Vec<(u64, usize, u32)>,
        ended: Vec<usize>,
        open: Rc<Cell<usize>>,
        most_open: usize,
        /// Breaks after this number of items.
        most_items: Option<usize>,
    }

    impl Sink<List> for Collect {
        fn segment(&mut self, source: usize, ticket: Ticket, (): &mut ()) {
            self.at = (source, ticket);
            self.most_open = self.most_open.max(self.open.get());
        }
        fn item(&mut self, source: usize, item: u32, (): &mut ()) -> ControlFlow<()> {
            assert_eq!(source, self.at.0);
            self.items.push((self.at.1.0, source, item));
            if Some(self.items.len()) == self.most_items { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        fn end(&mut self, source: usize) {
            self.ended.push(source);
        }
    }

    /// Merges threads, each given by its first ticket and then items and further tickets.
    fn merged(threads: Vec<(u64, Vec<Step>)>) -> Collect {
        merged_up_to(threads, None)
    }

    fn merged_up_to(mut threads: Vec<(u64, Vec<Step>)>, most_items: Option<usize>) -> Collect {
        let firsts: Vec<_> = threads.iter().map(|&(first, _)| Ticket(first)).enumerate().collect();
        let mut sink = Collect { most_items, ..Collect::default() };
        let open = sink.open.clone();
        let list = |source: usize| {
            open.set(open.get() + 1);
            List { items: std::mem::take(&mut threads[source].1).into_iter(), open: open.clone() }
        };
        merge(firsts, list, &mut (), &mut sink);
        sink
    }

    proptest! {
        /// Tickets are dealt to threads at random; the merge must restore the original order.
        #[test]
        fn the_merge_is_in_ticket_order(deal in prop::collection::vec((0..4usize, 0..4u32), 0..200)) {
            let mut threads: Vec<(u64, Vec<Step>)> = vec![(0, Vec::new()); 4];
            let mut expected = Vec::new();
            for (at, &(thread, count)) in deal.iter().enumerate() {
                let ticket = at as u64 + 1;
                match &mut threads[thread] {
                    (first @ 0, _) => *first = ticket,
                    (_, steps) => steps.push(Step::Ticket(Ticket(ticket))),
                }
                for item in 0..count {
                    threads[thread].1.push(Step::Item(item));
                    expected.push((ticket, thread, item));
                }
            }
            let mut sink = merged(threads);
            prop_assert_eq!(sink.items, expected);
            prop_assert_eq!(sink.open.get(), 0);
            sink.ended.sort_unstable();
            prop_assert_eq!(sink.ended, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn items_without_a_ticket_come_first() {
        let sink = merged(vec![
            (1, vec![Step::Item(1)]),
            (0, vec![Step::Item(2), Step::Item(3), Step::Ticket(Ticket(2)), Step::Item(4)]),
        ]);
        let items: Vec<_> = sink.items.iter().map(|&(_, _, item)| item).collect();
        assert_eq!(items, [2, 3, 1, 4]);
    }

    #[test]
    fn a_consumer_that_breaks_gets_no_more() {
        let thread = || (0, vec![Step::Item(1), Step::Item(2), Step::Ticket(Ticket(5)), Step::Item(3)]);
        for most in 1..=6 {
            assert_eq!(merged_up_to(vec![thread(), thread()], Some(most)).items.len(), most);
        }
    }

    #[test]
    fn a_source_is_open_from_its_first_turn_to_its_last() {
        // Each overlaps only with the one before it.
        let thread = |at: u64| (2 * at + 1, vec![Step::Item(0), Step::Ticket(Ticket(2 * at + 4)), Step::Item(1)]);
        let sink = merged((0..100_000).map(thread).collect());
        assert_eq!((sink.items.len(), sink.ended.len()), (200_000, 100_000));
        assert!(sink.items.is_sorted_by_key(|&(ticket, ..)| ticket));
        assert_eq!(sink.most_open, 2);
    }
}
