//! An option of MMTk.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An option that is passed to MMTk unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MmtkOption {
    /// Name in MMTk.
    pub name: String,
    /// Value in MMTk's syntax.
    pub value: String,
}

/// Valid values of an option.
enum Values {
    Flag,
    Number(RangeInclusive<u32>),
}

/// Options of MMTk 0.33 that change how a collector works and keep the replay valid. The others have an option of our
/// own, are for debugging MMTk itself, or have no effect.
const KNOWN: [(&str, Values); 7] = [
    ("concurrent_immix_disable_concurrent_marking", Values::Flag),
    ("concurrent_threads", Values::Number(1..=255)),
    ("full_heap_system_gc", Values::Flag),
    ("immix_always_defrag", Values::Flag),
    ("immix_defrag_every_block", Values::Flag),
    ("immix_defrag_headroom_percent", Values::Number(0..=50)),
    ("transparent_hugepages", Values::Flag),
];
/// Options of MMTk that an option of our own sets.
const OURS: [(&str, &str); 5] = [
    ("plan", "--plan"),
    ("gc_trigger", "--heap"),
    ("threads", "--gc-threads"),
    ("nursery", "--nursery"),
    ("stress_factor", "--stress"),
];

impl FromStr for MmtkOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => (name, value),
            _ => return Err("expected NAME=VALUE, as in immix_defrag_headroom_percent=10".to_owned()),
        };
        if let Some((_, ours)) = OURS.iter().find(|(theirs, _)| *theirs == name) {
            return Err(format!("{name} is set by {ours}"));
        }
        let Some((_, values)) = KNOWN.iter().find(|(known, _)| *known == name) else {
            return Err(format!("there are {}", KNOWN.map(|(known, _)| known).join(", ")));
        };
        match values {
            Values::Flag if !matches!(value, "true" | "false") => Err(format!("{name} must be true or false")),
            Values::Number(range) if !value.parse().is_ok_and(|number: u32| range.contains(&number)) => {
                Err(format!("{name} must be a number from {} to {}", range.start(), range.end()))
            }
            _ => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
        }
    }
}

impl TryFrom<String> for MmtkOption {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<MmtkOption> for String {
    fn from(option: MmtkOption) -> Self {
        option.to_string()
    }
}

impl fmt::Display for MmtkOption {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_that_leave_the_replay_what_it_is() {
        let read = |text: &str| text.parse::<MmtkOption>().map(|option| option.to_string());
        for right in ["immix_always_defrag=true", "immix_defrag_headroom_percent=50", "concurrent_threads=1"] {
            assert_eq!(read(right).as_deref(), Ok(right));
        }
        for (wrong, why) in [
            ("", "NAME=VALUE"),
            ("threads", "NAME=VALUE"),
            ("=1", "NAME=VALUE"),
            ("immix_always_defrag=", "true or false"),
            ("immix_always_defrag=1", "true or false"),
            ("immix_defrag_headroom_percent=51", "from 0 to 50"),
            ("concurrent_threads=0", "from 1 to 255"),
            ("plan=Immix", "--plan"),
            ("nursery=Fixed:65536", "--nursery"),
            ("no_finalizer=false", "there are concurrent_immix"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
