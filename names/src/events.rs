//! Kinds of events: those that classes have hooks for.

/// Which events are hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet(u8);

impl EventSet {
    /// Objects and arrays come to be, with their sites.
    pub const ALLOC: EventSet = EventSet(1);
    /// Reference slots change.
    pub const UPDATE: EventSet = EventSet(2);
    /// Methods are entered and left.
    pub const METHOD: EventSet = EventSet(4);
    /// Exceptions are thrown and caught.
    pub const EXCEPTION: EventSet = EventSet(8);
    /// All of them.
    pub const ALL: EventSet = EventSet(15);

    /// Whether all events of `other` are in this set.
    pub fn has(self, other: EventSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as bits, for class attributes, names tables and hashes.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The set that [`bits`](Self::bits) made these of.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The events that are in both sets.
    pub fn and(self, other: EventSet) -> Self {
        Self(self.0 & other.0)
    }

    /// The events of both sets.
    pub fn or(self, other: EventSet) -> Self {
        Self(self.0 | other.0)
    }

    /// The events that are not in this set.
    pub fn missing(self) -> Self {
        Self(Self::ALL.0 & !self.0)
    }

    /// Their names, as the option `--events` takes them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(_, set)| self.has(*set)).map(|(name, _)| *name)
    }
}

const NAMES: [(&str, EventSet); 4] = [
    ("alloc", EventSet::ALLOC),
    ("update", EventSet::UPDATE),
    ("method", EventSet::METHOD),
    ("exception", EventSet::EXCEPTION),
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
                None => return Err(format!("unknown event {word:?}: use alloc, update, method, exception or all")),
            };
        }
        Ok(Self(set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        for text in ["alloc", "alloc,update", "method,exception", "alloc,update,method,exception"] {
            assert_eq!(text.parse::<EventSet>().unwrap().to_string(), text);
        }
        assert_eq!("all".parse(), Ok(EventSet::ALL));
        assert_eq!("alloc, update".parse::<EventSet>().unwrap().missing().to_string(), "method,exception");
        assert!("bogus".parse::<EventSet>().unwrap_err().contains("bogus"));
    }
}
