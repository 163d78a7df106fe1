//! The ids of objects, which are their identity hashes and must not repeat.

mod claims;
mod generator;
mod space;
mod tags;

use std::env;

pub use generator::{draws_to_skip, is_full_period};
pub use space::{Block, Holder, IdSpace};
pub use tags::Tags;

/// For tests: the number of ids after which they are used again.
const LAP_VARIABLE: &str = "ET_TEST_ID_LAP";

/// How objects get their ids, the best way first. The choice is made once, by trying ([`Scheme::choose`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Hooks write ids of ours into the mark words of fresh objects; for the others the VM draws from the same sequence.
    #[default]
    MarkWord,
    /// The VM draws all of them, from a sequence that does not repeat: `-XX:hashCode=0`.
    Drawn,
    /// The VM draws at random and hashes repeat: objects are tagged instead.
    Tags,
}

impl Scheme {
    /// The first one that works, from the wanted one on. `unique` says that the VM's hashes do not repeat; `write` has mark words
    /// written, if that works.
    pub fn choose(wanted: Self, unique: bool, write: impl FnOnce() -> bool) -> Self {
        match wanted {
            Self::MarkWord if unique && write() => Self::MarkWord,
            Self::MarkWord | Self::Drawn if unique => Self::Drawn,
            _ => Self::Tags,
        }
    }

    /// Its name in the trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::MarkWord => "mark word",
            Self::Drawn => "hashCode=0",
            Self::Tags => "tags",
        }
    }
}

/// The ids that are the runtime's to give out. `drawn` is the last hash that the VM drew.
pub fn space(drawn: u32) -> IdSpace {
    let lap = env::var(LAP_VARIABLE).ok().and_then(|lap| lap.parse().ok());
    IdSpace::new(drawn, lap)
}

thread_local! {
    /// Its address identifies the thread while it lives.
    static HERE: u8 = const { 0 };
}

/// The current thread, as the owner of a block of ids.
pub fn holder() -> Holder {
    HERE.with(|here| Holder::Thread(std::ptr::from_ref(here) as usize))
}

/// The current thread ends, and returns the ids that it has not used.
pub fn give_back(space: &IdSpace, left: Block) {
    space.give_back(holder(), left);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_way_that_works_is_taken() {
        let choose = |wanted, unique, works| Scheme::choose(wanted, unique, || works);
        assert_eq!(choose(Scheme::default(), true, true), Scheme::MarkWord);
        assert_eq!(choose(Scheme::default(), true, false), Scheme::Drawn);
        assert_eq!(choose(Scheme::Drawn, true, true), Scheme::Drawn);
        assert_eq!(choose(Scheme::Tags, true, true), Scheme::Tags);
        // What the VM draws for locked objects would meet ours.
        assert_eq!(choose(Scheme::MarkWord, false, true), Scheme::Tags);
    }
}
