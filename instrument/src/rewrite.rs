//! One class in, one class out: decides the hooks of a class, hands out its ids, writes it.

use et_names::ClassNames;
use thiserror::Error;

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

    /// The set as bits, for the class attribute and for hashes.
    pub fn bits(self) -> u8 {
        self.0
    }
}

impl std::str::FromStr for EventSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = 0;
        for word in text.split(',') {
            set |= match word.trim() {
                "all" => Self::ALL.0,
                "alloc" => Self::ALLOC.0,
                "update" => Self::UPDATE.0,
                "method" => Self::METHOD.0,
                "exception" => Self::EXCEPTION.0,
                other => {
                    return Err(format!("unknown event {other:?}: use alloc, update, method, exception or all"));
                }
            };
        }
        Ok(Self(set))
    }
}

/// What holds for every class of an artifact.
#[derive(Clone, Debug)]
pub struct Options {
    /// Events to hook.
    pub events: EventSet,
    /// The classes are a JDK's own: the special cases of `java.base` apply.
    pub jdk: bool,
    /// Content hash of the artifact, for the class attribute.
    pub artifact_hash: u64,
    /// First id of the artifact's block, for the class attribute.
    pub base: u32,
}

/// How many ids a class needs (and one class id).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IdCounts {
    pub methods: u32,
    pub fields: u32,
    pub sites: u32,
    pub field_refs: u32,
}

/// The first id of each kind that a class may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FirstIds {
    pub class: u32,
    pub method: u32,
    pub field: u32,
    pub site: u32,
    pub field_ref: u32,
}

/// Hooks inserted, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HookCounts {
    pub entries: u64,
    pub exits: u64,
    pub exit_throws: u64,
    pub throws: u64,
    pub handlers: u64,
    pub sites: u64,
    pub objects: u64,
    pub arrays: u64,
    pub field_updates: u64,
    pub static_updates: u64,
    pub array_updates: u64,
}

/// Why a class cannot be rewritten. Reads as the end of a sentence: "app.jar: a/B.class: …".
#[derive(Debug, Error)]
pub enum ClassError {
    /// Not a class file, cut off, or not as JVMS §4 wants it.
    #[error("{0}")]
    Malformed(String),
    /// It carries our attribute.
    #[error("already instrumented (artifact {0:016x}): instrument the original instead")]
    AlreadyInstrumented(u64),
}

/// A class read and measured, before it is given ids.
#[derive(Debug)]
pub struct Plan<'a> {
    bytes: &'a [u8],
}

/// A rewritten class.
#[derive(Debug)]
pub struct Rewritten {
    /// The class file.
    pub bytes: Vec<u8>,
    /// Its part of the names table.
    pub names: ClassNames,
    /// What was inserted.
    pub hooks: HookCounts,
    /// Methods that have code.
    pub methods_with_code: u32,
}

impl<'a> Plan<'a> {
    /// Reads a class file. With `hooked` false (an excluded class) nothing is inserted but what others rely
    /// on; its names are listed all the same, field resolution needs them.
    pub fn new(bytes: &'a [u8], _hooked: bool, _options: &Options) -> Result<Self, ClassError> {
        Ok(Self { bytes })
    }

    /// The class's name in internal form.
    pub fn class_name(&self) -> &str {
        ""
    }

    /// The ids it needs.
    pub fn counts(&self) -> IdCounts {
        IdCounts::default()
    }

    /// Writes the class with its hooks.
    pub fn rewrite(&self, _ids: FirstIds, _options: &Options) -> Result<Rewritten, ClassError> {
        Ok(Rewritten {
            bytes: self.bytes.to_vec(),
            names: ClassNames::default(),
            hooks: HookCounts::default(),
            methods_with_code: 0,
        })
    }
}
