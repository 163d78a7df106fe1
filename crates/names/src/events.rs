//! The kinds of events that classes have hooks for.

/// A set of event kinds, including witnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet(u8);

impl EventSet {
    /// Allocations of objects and arrays, with their sites.
    pub const ALLOC: EventSet = EventSet(1);
    /// Changes of reference slots.
    pub const UPDATE: EventSet = EventSet(2);
    /// Method entries and exits.
    pub const METHOD: EventSet = EventSet(4);
    /// Exceptions thrown and caught.
    pub const EXCEPTION: EventSet = EventSet(8);
    /// The stack of each allocation: every call keeps track of where it comes from. Not a kind of record, and not part of `all`.
    pub const STACKS: EventSet = EventSet(64);
    /// All kinds except witnesses, which are added by [`with`](Self::with), and stacks.
    pub const ALL: EventSet = EventSet(15);
    /// Witnesses of references that are used to read a reference from the heap.
    const REFERENCES_READ: EventSet = EventSet(16);
    /// Witnesses of all uses of references.
    const USES: EventSet = EventSet(16 | 32);

    /// Whether the set contains all of `other`.
    pub fn has(self, other: EventSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Encodes the set for class attributes, names tables and hashes.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Decodes what [`bits`](Self::bits) encoded.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & (Self::ALL.0 | Self::USES.0 | Self::STACKS.0))
    }

    /// Returns the set with these witnesses in place of its own.
    pub fn with(self, witness: Witness) -> Self {
        let uses = match witness {
            Witness::None => Self(0),
            Witness::Refs => Self::REFERENCES_READ,
            Witness::All => Self::USES,
        };
        Self(self.0 & (Self::ALL.0 | Self::STACKS.0) | uses.0)
    }

    /// Which witnesses the set contains.
    pub fn witness(self) -> Witness {
        if self.has(Self::USES) {
            Witness::All
        } else if self.has(Self::REFERENCES_READ) {
            Witness::Refs
        } else {
            Witness::None
        }
    }

    /// The intersection of both sets.
    pub fn and(self, other: EventSet) -> Self {
        Self(self.0 & other.0)
    }

    /// The union of both sets.
    pub const fn or(self, other: EventSet) -> Self {
        Self(self.0 | other.0)
    }

    /// The complement of the set.
    pub fn missing(self) -> Self {
        Self(Self::ALL.0 & !self.0)
    }

    /// Names of the kinds, as the option `--events` takes them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(_, set)| self.has(*set)).map(|(name, _)| *name)
    }
}

/// Which uses of objects are recorded by witnesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Witness {
    #[default]
    None,
    /// Only uses that read a reference from a field or an array element.
    Refs,
    All,
}

impl std::str::FromStr for Witness {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "refs" => Ok(Self::Refs),
            "all" => Ok(Self::All),
            other => Err(format!("unknown kind of witness {other:?}: use none, refs or all")),
        }
    }
}

const NAMES: [(&str, EventSet); 5] = [
    ("alloc", EventSet::ALLOC),
    ("update", EventSet::UPDATE),
    ("method", EventSet::METHOD),
    ("exception", EventSet::EXCEPTION),
    ("stacks", EventSet::STACKS),
];

impl std::fmt::Display for EventSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

impl std::str::FromStr for EventSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = 0;
        for word in text.split(',') {
            let word = word.trim();
            set |= match NAMES.iter().find(|(name, _)| *name == word) {
                Some((_, events)) => events.0,
                None if word == "all" => Self::ALL.0,
                None => {
                    return Err(format!(
                        "unknown event {word:?}: use alloc, update, method, exception, stacks or all, or counts alone"
                    ));
                }
            };
        }
        if set & Self::STACKS.0 != 0 && set & Self::ALLOC.0 == 0 {
            return Err("stacks are those of allocations: use alloc,stacks".to_owned());
        }
        Ok(Self(set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        for text in ["alloc", "alloc,stacks", "alloc,update", "method,exception", "alloc,update,method,exception"] {
            assert_eq!(text.parse::<EventSet>().unwrap().to_string(), text);
        }
        assert_eq!("all".parse(), Ok(EventSet::ALL));
        assert_eq!("alloc, update".parse::<EventSet>().unwrap().missing().to_string(), "method,exception");
        for (text, witness) in [("none", Witness::None), ("refs", Witness::Refs), ("all", Witness::All)] {
            assert_eq!(text.parse(), Ok(witness));
            let events = EventSet::METHOD.with(Witness::All).with(witness);
            assert_eq!(EventSet::from_bits(events.bits()), events);
            assert_eq!((events.witness(), events.to_string().as_str()), (witness, "method"));
        }
        assert!("update,stacks".parse::<EventSet>().unwrap_err().contains("alloc,stacks"));
        let all: EventSet = "all,stacks".parse().unwrap();
        assert!(all.has(EventSet::ALL) && all.has(EventSet::STACKS) && !EventSet::ALL.has(EventSet::STACKS));
        assert_eq!(EventSet::from_bits(all.with(Witness::Refs).bits()), all.with(Witness::Refs));
        assert!("bogus".parse::<Witness>().unwrap_err().contains("bogus"));
        assert!("bogus".parse::<EventSet>().unwrap_err().contains("bogus"));
    }
}
