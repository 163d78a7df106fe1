//! Consistency check of an event stream: no object or arena is used after its end, and addresses are free when they
//! are allocated.

use std::collections::BTreeMap;

use super::{ArenaId, Event};

/// Why an event is inconsistent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Violation {
    #[error("operation {at}: arena {arena} is created a second time")]
    ArenaThere { at: u64, arena: u32 },
    #[error("operation {at}: there is no arena {arena}")]
    NoArena { at: u64, arena: u32 },
    #[error("operation {at}: there is no object {object}")]
    NoObject { at: u64, object: u64 },
    #[error("operation {at}: object {object} is in arena {there}, not in {said}")]
    OtherArena { at: u64, object: u64, there: u32, said: u32 },
    #[error("operation {at}: {object} is allocated where object {there} is")]
    Taken { at: u64, object: u64, there: u64 },
    #[error("operation {at}: an object of zero bytes")]
    Empty { at: u64 },
}

/// Checks a stream of events.
#[derive(Debug, Default)]
pub struct Checker {
    /// Sizes of the objects of each arena, by address.
    arenas: BTreeMap<ArenaId, BTreeMap<u64, u64>>,
    objects: u64,
    bytes: u64,
}

impl Checker {
    /// Checks an event of that operation.
    pub fn push(&mut self, at: u64, event: &Event) -> Result<(), Violation> {
        match *event {
            Event::NewArena { arena, .. } => match self.arenas.insert(arena, BTreeMap::new()) {
                Some(_) => Err(Violation::ArenaThere { at, arena: arena.0 }),
                None => Ok(()),
            },
            Event::DeleteArena { arena } => {
                let Some(inside) = self.arenas.remove(&arena) else {
                    return Err(Violation::NoArena { at, arena: arena.0 });
                };
                self.objects -= inside.len() as u64;
                self.bytes -= inside.values().sum::<u64>();
                Ok(())
            }
            Event::NewObject { arena, object, size, .. } => self.give(at, arena, object, size),
            Event::DeleteObject { arena, object } => self.take(at, arena, object).map(|_| ()),
            Event::MoveObject { arena, object, new_arena, new_object } => {
                let size = self.take(at, arena, object)?;
                self.give(at, new_arena, new_object, size)
            }
        }
    }

    /// Removes an object and returns its size.
    fn take(&mut self, at: u64, arena: ArenaId, object: u64) -> Result<u64, Violation> {
        let found = self.arenas.get_mut(&arena).and_then(|inside| inside.remove(&object));
        let Some(size) = found else {
            let there = self.arenas.iter().find(|(_, inside)| inside.contains_key(&object));
            return Err(match there {
                Some((there, _)) => Violation::OtherArena { at, object, there: there.0, said: arena.0 },
                None => Violation::NoObject { at, object },
            });
        };
        self.objects -= 1;
        self.bytes -= size;
        Ok(size)
    }

    fn give(&mut self, at: u64, arena: ArenaId, object: u64, size: u64) -> Result<(), Violation> {
        if size == 0 {
            return Err(Violation::Empty { at });
        }
        for inside in self.arenas.values() {
            let last = inside.range(..object + size).next_back();
            if let Some((&there, _)) = last.filter(|&(there, size)| there + size > object) {
                return Err(Violation::Taken { at, object, there });
            }
        }
        let Some(inside) = self.arenas.get_mut(&arena) else {
            return Err(Violation::NoArena { at, arena: arena.0 });
        };
        inside.insert(object, size);
        self.objects += 1;
        self.bytes += size;
        Ok(())
    }

    /// Number of objects.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is an object with that id.
    pub fn has(&self, object: u64) -> bool {
        self.arenas.values().any(|inside| inside.contains_key(&object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ArenaId = ArenaId(1);
    const TWO: ArenaId = ArenaId(2);

    fn new(arena: ArenaId, object: u64, size: u64) -> Event {
        Event::NewObject { arena, object, class: 0, size }
    }

    fn moved(arena: ArenaId, object: u64, new_arena: ArenaId, new_object: u64) -> Event {
        Event::MoveObject { arena, object, new_arena, new_object }
    }

    fn check(events: &[Event]) -> Result<(u64, u64), String> {
        let mut checker = Checker::default();
        for (at, event) in (0..).zip(events) {
            checker.push(at, event).map_err(|wrong| wrong.to_string())?;
        }
        Ok((checker.objects(), checker.bytes()))
    }

    #[test]
    fn what_cannot_be_is_found() {
        let start = [
            Event::NewArena { arena: ONE, name: "one" },
            Event::NewArena { arena: TWO, name: "two" },
            new(ONE, 0, 16),
            new(ONE, 16, 24),
            new(TWO, 100, 8),
        ];
        let with = |more: &[Event]| check(&[&start[..], more].concat());
        assert_eq!(with(&[]), Ok((3, 48)));
        assert_eq!(with(&[moved(ONE, 16, ONE, 24)]), Ok((3, 48)), "over where it was itself");
        assert_eq!(with(&[Event::DeleteArena { arena: ONE }]), Ok((1, 8)));
        let remade = [Event::DeleteArena { arena: ONE }, Event::NewArena { arena: ONE, name: "one" }, new(ONE, 8, 8)];
        assert_eq!(with(&remade), Ok((2, 16)));
        for (events, said) in [
            (vec![new(ONE, 8, 8)], "operation 5: 8 is allocated where object 0 is"),
            (vec![new(ONE, 92, 8)], "no violation"),
            (vec![new(ONE, 96, 16)], "operation 5: 96 is allocated where object 100 is"),
            (vec![moved(ONE, 0, ONE, 20)], "operation 5: 20 is allocated where object 16 is"),
            (vec![moved(TWO, 0, ONE, 200)], "operation 5: object 0 is in arena 1, not in 2"),
            (vec![Event::DeleteObject { arena: ONE, object: 8 }], "operation 5: there is no object 8"),
            (
                vec![moved(ONE, 0, TWO, 200), Event::DeleteObject { arena: ONE, object: 0 }],
                "operation 6: there is no object 0",
            ),
            (vec![Event::DeleteArena { arena: ONE }, moved(ONE, 0, TWO, 200)], "operation 6: there is no object 0"),
            (vec![Event::DeleteArena { arena: ONE }, new(ONE, 0, 8)], "operation 6: there is no arena 1"),
            (vec![Event::DeleteArena { arena: ArenaId(3) }], "operation 5: there is no arena 3"),
            (vec![Event::NewArena { arena: ONE, name: "" }], "operation 5: arena 1 is created a second time"),
            (vec![new(ONE, 300, 0)], "operation 5: an object of zero bytes"),
        ] {
            assert_eq!(with(&events).map_or_else(|wrong| wrong, |_| "no violation".to_owned()), said);
        }
    }
}
