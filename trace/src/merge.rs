//! One stream out of many: events of different threads are ordered by ticket (`docs/inside/events.md`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::Ticket;

/// What a source gives next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// What follows belongs to this ticket, which is higher than the last.
    Ticket(Ticket),
    /// An item of the current ticket.
    Item(T),
}

/// The items of one thread, in order.
pub trait Source {
    /// What all sources share while they are read.
    type Shared;
    /// What they give.
    type Item;
    /// The next step, `None` at the end.
    fn next(&mut self, shared: &mut Self::Shared) -> Option<Step<Self::Item>>;
}

/// Who gets the merged stream.
pub trait Sink<S: Source> {
    /// A segment begins: all items until the next call are of this source and ticket.
    fn segment(&mut self, source: usize, ticket: Ticket);
    /// An item of the current segment.
    fn item(&mut self, source: usize, item: S::Item, shared: &mut S::Shared);
    /// Whether to stop early.
    fn stopped(&self) -> bool {
        false
    }
}

/// Merges `sources` into `sink`. Within a source the order is kept whatever its tickets are.
pub fn merge<S: Source>(sources: &mut [S], shared: &mut S::Shared, sink: &mut impl Sink<S>) {
    let mut heap = BinaryHeap::new();
    let mut early = Vec::new();
    for (index, source) in sources.iter_mut().enumerate() {
        // A source begins with a ticket; one that does not is older than all tickets.
        match source.next(shared) {
            Some(Step::Ticket(ticket)) => heap.push(Reverse((ticket, index))),
            Some(Step::Item(item)) => early.push((index, item)),
            None => {}
        }
    }
    for (index, item) in early {
        sink.segment(index, Ticket(0));
        sink.item(index, item, shared);
        run(sources, index, shared, sink, &mut heap);
    }
    while let Some(Reverse((ticket, index))) = heap.pop() {
        sink.segment(index, ticket);
        run(sources, index, shared, sink, &mut heap);
        if sink.stopped() {
            return;
        }
    }
}

/// Drains a source for as long as no other has an earlier ticket.
fn run<S: Source>(
    sources: &mut [S],
    index: usize,
    shared: &mut S::Shared,
    sink: &mut impl Sink<S>,
    heap: &mut BinaryHeap<Reverse<(Ticket, usize)>>,
) {
    while !sink.stopped() {
        match sources[index].next(shared) {
            None => return,
            Some(Step::Item(item)) => sink.item(index, item, shared),
            Some(Step::Ticket(ticket)) => match heap.peek() {
                Some(&Reverse(first)) if first < (ticket, index) => {
                    heap.push(Reverse((ticket, index)));
                    return;
                }
                _ => sink.segment(index, ticket),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct List(std::vec::IntoIter<Step<u32>>);

    impl Source for List {
        type Shared = ();
        type Item = u32;
        fn next(&mut self, (): &mut ()) -> Option<Step<u32>> {
            self.0.next()
        }
    }

    #[derive(Default)]
    struct Collect {
        at: (usize, Ticket),
        items: Vec<(u64, usize, u32)>,
    }

    impl Sink<List> for Collect {
        fn segment(&mut self, source: usize, ticket: Ticket) {
            self.at = (source, ticket);
        }
        fn item(&mut self, source: usize, item: u32, (): &mut ()) {
            assert_eq!(source, self.at.0);
            self.items.push((self.at.1.0, source, item));
        }
    }

    proptest! {
        /// Tickets are dealt to threads at random; the merge must restore the order in which they were dealt.
        #[test]
        fn the_merge_is_in_ticket_order(deal in prop::collection::vec((0..4usize, 0..4u32), 0..200)) {
            let mut lists = vec![Vec::new(); 4];
            let mut expected = Vec::new();
            for (at, &(thread, count)) in deal.iter().enumerate() {
                let ticket = at as u64 + 1;
                lists[thread].push(Step::Ticket(Ticket(ticket)));
                for item in 0..count {
                    lists[thread].push(Step::Item(item));
                    expected.push((ticket, thread, item));
                }
            }
            let mut sources: Vec<_> = lists.into_iter().map(|list| List(list.into_iter())).collect();
            let mut sink = Collect::default();
            merge(&mut sources, &mut (), &mut sink);
            prop_assert_eq!(sink.items, expected);
        }
    }

    #[test]
    fn items_without_a_ticket_come_first() {
        let mut sources = vec![
            List(vec![Step::Ticket(Ticket(1)), Step::Item(1)].into_iter()),
            List(vec![Step::Item(2), Step::Item(3), Step::Ticket(Ticket(2)), Step::Item(4)].into_iter()),
        ];
        let mut sink = Collect::default();
        merge(&mut sources, &mut (), &mut sink);
        let items: Vec<_> = sink.items.iter().map(|&(_, _, item)| item).collect();
        assert_eq!(items, [2, 3, 1, 4]);
    }
}
