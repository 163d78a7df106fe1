//! An option of MMTk's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One that is handed to MMTk as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MmtkOption {
    /// As MMTk calls it.
    pub name: String,
    /// In MMTk's way of writing.
    pub value: String,
}

/// Those that have an option of our own.
const OURS: [(&str, &str); 4] =
    [("plan", "--plan"), ("gc_trigger", "--heap"), ("threads", "--gc-threads"), ("stress_factor", "--stress")];
/// Those without which a replay would not be what it says: what it lays out and calls for by itself.
const FIXED: [&str; 7] = [
    "ignore_system_gc",
    "no_finalizer",
    "no_reference_types",
    "precise_stress",
    "side_metadata_base_address",
    "vm_space_size",
    "vm_space_start",
];

impl FromStr for MmtkOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => (name, value),
            _ => return Err("an option of MMTk is NAME=VALUE, as in immix_defrag_headroom_percent=10".to_owned()),
        };
        if let Some((_, ours)) = OURS.iter().find(|(theirs, _)| *theirs == name) {
            return Err(format!("{name} is set by {ours}"));
        }
        if FIXED.contains(&name) {
            return Err(format!("{name} cannot be changed: replays depend on it"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
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
    fn options_are_names_and_values_and_none_that_the_replay_sets() {
        let read = |text: &str| text.parse::<MmtkOption>().map(|option| option.to_string());
        for right in ["immix_always_defrag=true", "nursery=Fixed:4194304", "thread_affinity=AllInSet:0=1"] {
            assert_eq!(read(right).as_deref(), Ok(right));
        }
        for (wrong, why) in [
            ("", "NAME=VALUE"),
            ("threads", "NAME=VALUE"),
            ("=1", "NAME=VALUE"),
            ("immix_always_defrag=", "NAME=VALUE"),
            ("plan=Immix", "--plan"),
            ("gc_trigger=Delegated", "--heap"),
            ("no_finalizer=false", "cannot be changed"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
