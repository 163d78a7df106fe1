//! Object ids, which are identity hashes and must be unique.

mod claims;
mod generator;
mod space;
mod tags;

use std::env;

pub use generator::{draws_to_skip, is_full_period};
pub use space::{Block, Holder, IdSpace};
pub use tags::Tags;

/// For tests: the number of ids in a lap.
const LAP_VARIABLE: &str = "ET_TEST_ID_LAP";

/// How objects get their ids, the best way first. Chosen once, by trying ([`Scheme::choose`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Hooks write our ids into the mark words of new objects; for others the VM draws from the same sequence.
    #[default]
    MarkWord,
    /// The VM draws all ids from a sequence without repetition: `-XX:hashCode=0`.
    Drawn,
    /// The VM draws at random and hashes repeat, so objects are tagged instead.
    Tags,
}

impl Scheme {
    /// The first scheme that works, starting with the wanted one. `unique` says that the VM's hashes do not repeat;
    /// `write` tries to write mark words.
    pub fn choose(wanted: Self, unique: bool, write: impl FnOnce() -> bool) -> Self {
        match wanted {
            Self::MarkWord if unique && write() => Self::MarkWord,
            Self::MarkWord | Self::Drawn if unique => Self::Drawn,
            _ => Self::Tags,
        }
    }

    /// Name in the trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::MarkWord => "mark word",
            Self::Drawn => "hashCode=0",
            Self::Tags => "tags",
        }
    }
}

/// The ids that the runtime gives out. `drawn` is the last hash that the VM drew.
pub fn space(drawn: u32) -> IdSpace {
    let lap = env::var(LAP_VARIABLE).ok().and_then(|lap| lap.parse().ok());
    IdSpace::new(drawn, lap)
}

thread_local! {
    /// Its address identifies the thread as long as it lives.
    static HERE: u8 = const { 0 };
}

/// The current thread as the holder of a block of ids.
pub fn holder() -> Holder {
    HERE.with(|here| Holder::Thread(std::ptr::from_ref(here) as usize))
}

/// The current thread ends, and returns its unused ids.
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
        // Hashes that the VM draws for locked objects could be equal to our ids.
        assert_eq!(choose(Scheme::MarkWord, false, true), Scheme::Tags);
    }
}
