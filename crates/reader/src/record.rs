//! Records: the content of a trace for readers, in the terms of `docs/semantics.md`.

use std::num::ParseIntError;
use std::str::FromStr;

use et_names::{EventSet, FieldId, MethodId, SiteId};
use serde::{Deserialize, Serialize};

use crate::types::TypeId;

/// An object, with an id that is unique in the entire trace; 0 is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// Maximum plausible size of an object in bytes: four times the largest array of the JVM, 2^31 elements of 8 bytes.
/// Sums of sizes then stay far from overflow.
pub const LARGEST: u64 = 1 << 36;

/// As it is printed: hexadecimal, perhaps after `0x`.
impl FromStr for ObjectId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).map(Self)
    }
}

impl ObjectId {
    /// Null; as an origin or receiver, "static".
    pub const NULL: ObjectId = ObjectId(0);

    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The identity hash of the object; `None` if it was made up.
    #[inline]
    pub fn identity_hash(self) -> Option<u32> {
        (self.0 >> 62 == 0).then_some(self.0 as u32 & 0x7fff_ffff)
    }
}

/// A thread: the runtime's thread index, or from 2^31 on a continuation of a virtual thread. 0 is no thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

/// Value of the logical clock: number of M, E and X records so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

/// How an object was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocKind {
    /// `A`: an array, by bytecode.
    Array,
    /// `I`: it existed when tracing began.
    Initial,
    /// `N`: an object, by `new`.
    New,
    /// `P`: its allocation was not seen; found later.
    Found,
    /// `V`: by the VM or by native code.
    Vm,
}

impl AllocKind {
    pub const ALL: [AllocKind; 5] = [Self::Array, Self::Initial, Self::New, Self::Found, Self::Vm];

    #[inline]
    pub fn record_kind(self) -> RecordKind {
        match self {
            Self::Array => RecordKind::Array,
            Self::Initial => RecordKind::Initial,
            Self::New => RecordKind::New,
            Self::Found => RecordKind::Found,
            Self::Vm => RecordKind::Vm,
        }
    }

    pub fn letter(self) -> char {
        self.record_kind().letter()
    }
}

/// Number of a call stack in the trace's own table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The trace does not tell.
    pub const NONE: Self = Self(0);
}

/// An allocation record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alloc {
    pub kind: AllocKind,
    pub object: ObjectId,
    /// Size in bytes according to the VM; 0 if unknown.
    pub size: u64,
    pub ty: TypeId,
    /// Allocation site; 0 if there is none.
    pub site: SiteId,
    /// Length of an array; 0 for other objects.
    pub length: u32,
    pub thread: ThreadId,
    /// Its call stack, if the trace has stacks of its own.
    pub stack: StackId,
}

/// A slot that holds a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// An instance field or a static field.
    Field(FieldId),
    /// An array element.
    Element(u32),
}

impl Slot {
    /// The number of the slot in a record: the field id, or the index of the element.
    pub fn number(self) -> u32 {
        match self {
            Self::Field(field) => field.0,
            Self::Element(index) => index,
        }
    }
}

/// A step of the program, as readers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// `A I N P V`: an allocation.
    Alloc(Alloc),
    /// `U`: an update of a slot.
    Update { old: ObjectId, origin: ObjectId, target: ObjectId, slot: Slot, thread: ThreadId },
    /// `M`: a method entry.
    Entry { method: MethodId, receiver: ObjectId, thread: ThreadId },
    /// `E`: a normal method exit.
    Exit { method: MethodId, receiver: ObjectId, thread: ThreadId },
    /// `X`: a method exit by an exception.
    ExitThrow { method: MethodId, receiver: ObjectId, exception: ObjectId, thread: ThreadId },
    /// `T`: an exception is thrown.
    Throw { method: MethodId, receiver: ObjectId, exception: ObjectId, thread: ThreadId },
    /// `H`: an exception is caught.
    Handle { method: MethodId, receiver: ObjectId, exception: ObjectId, thread: ThreadId },
    /// `D`: the object is unreachable from now on; the last action that kept it alive was in this thread.
    Death { object: ObjectId, thread: ThreadId },
    /// `R`: a use; a stack of this thread held the object.
    Use { object: ObjectId, thread: ThreadId },
}

/// Defines [`RecordKind`] in the order in which totals are listed: name, letter, and the matching records. A variant of
/// [`Record`] without a row does not compile.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident $letter:literal $records:pat,)*) => {
        /// The kind of a record. Its number is also its code in the spool.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RecordKind { $($(#[doc = $doc])* $name,)* }

        impl RecordKind {
            /// All kinds, indexed by number.
            pub const ALL: [RecordKind; LETTERS.len()] = [$(Self::$name),*];
        }

        /// The letters of all kinds, indexed by number.
        pub const LETTERS: [char; { const NAMES: &[&str] = &[$(stringify!($name)),*]; NAMES.len() }] = [$($letter),*];

        /// The letters as texts.
        const TEXTS: [&str; LETTERS.len()] = [$(concat!($letter)),*];

        impl Record {
            #[inline]
            pub fn kind(&self) -> RecordKind {
                match self {
                    $($records => RecordKind::$name,)*
                }
            }
        }
    };
}

kinds! {
    /// An array was allocated by bytecode.
    Array 'A' Self::Alloc(Alloc { kind: AllocKind::Array, .. }),
    /// The object existed when tracing began.
    Initial 'I' Self::Alloc(Alloc { kind: AllocKind::Initial, .. }),
    /// An object was allocated by `new`.
    New 'N' Self::Alloc(Alloc { kind: AllocKind::New, .. }),
    /// The allocation of the object was not seen; it was found later.
    Found 'P' Self::Alloc(Alloc { kind: AllocKind::Found, .. }),
    /// The object was created by the VM or by native code.
    Vm 'V' Self::Alloc(Alloc { kind: AllocKind::Vm, .. }),
    /// A reference was stored.
    Update 'U' Self::Update { .. },
    /// A method was entered.
    Entry 'M' Self::Entry { .. },
    /// A method returned.
    Exit 'E' Self::Exit { .. },
    /// A method was left by an exception.
    ExitThrow 'X' Self::ExitThrow { .. },
    /// An exception was thrown.
    Throw 'T' Self::Throw { .. },
    /// An exception was caught.
    Handle 'H' Self::Handle { .. },
    /// An object became unreachable.
    Death 'D' Self::Death { .. },
    /// An object was used.
    Use 'R' Self::Use { .. },
}

impl RecordKind {
    #[inline]
    pub fn letter(self) -> char {
        LETTERS[self as usize]
    }

    /// Its letter, as text.
    #[inline]
    pub fn text(self) -> &'static str {
        TEXTS[self as usize]
    }

    /// Whether the logical clock ticks at such a record.
    #[inline]
    pub fn ticks(self) -> bool {
        matches!(self, Self::Entry | Self::Exit | Self::ExitThrow)
    }
}

/// Which records the logical clock counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Method entries and exits: `M`, `E`, `X`.
    #[default]
    Methods,
    /// `T` and `H` as well, as in the first Elephant Tracks.
    MethodsAndExceptions,
    /// Bytes allocated: the clock of traces without calls.
    Bytes,
}

impl Clock {
    /// The clock of a trace of these events if this one is asked for: without calls there is only that of bytes.
    pub fn of(self, events: EventSet) -> Self {
        if events.has(EventSet::METHOD) { self } else { Self::Bytes }
    }
}

impl Record {
    pub fn letter(&self) -> char {
        self.kind().letter()
    }

    /// By how many ticks this record advances the given clock.
    #[inline]
    pub fn ticks(&self, clock: Clock) -> u64 {
        match self {
            Self::Entry { .. } | Self::Exit { .. } | Self::ExitThrow { .. } => u64::from(clock != Clock::Bytes),
            Self::Throw { .. } | Self::Handle { .. } => u64::from(clock == Clock::MethodsAndExceptions),
            Self::Alloc(alloc) if clock == Clock::Bytes && alloc.kind != AllocKind::Initial => alloc.size,
            _ => 0,
        }
    }

    /// The objects that the record names, padded with null: for an update, the old target, the origin and the new
    /// target.
    #[inline]
    pub fn objects(&self) -> [ObjectId; 3] {
        const NULL: ObjectId = ObjectId::NULL;
        match *self {
            Self::Alloc(alloc) => [alloc.object, NULL, NULL],
            Self::Update { old, origin, target, .. } => [old, origin, target],
            Self::Entry { receiver, .. } | Self::Exit { receiver, .. } => [receiver, NULL, NULL],
            Self::ExitThrow { receiver, exception, .. }
            | Self::Throw { receiver, exception, .. }
            | Self::Handle { receiver, exception, .. } => [receiver, exception, NULL],
            Self::Death { object, .. } | Self::Use { object, .. } => [object, NULL, NULL],
        }
    }

    pub fn thread(&self) -> ThreadId {
        match *self {
            Self::Alloc(Alloc { thread, .. })
            | Self::Update { thread, .. }
            | Self::Entry { thread, .. }
            | Self::Exit { thread, .. }
            | Self::ExitThrow { thread, .. }
            | Self::Throw { thread, .. }
            | Self::Handle { thread, .. }
            | Self::Death { thread, .. }
            | Self::Use { thread, .. } => thread,
        }
    }
}

/// Number of records of each kind, in the order of [`LETTERS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals(pub [u64; LETTERS.len()]);

impl Totals {
    #[inline]
    pub fn count(&mut self, record: &Record) {
        self.0[record.kind() as usize] += 1;
    }

    /// Number of records with this letter.
    pub fn of(&self, letter: char) -> u64 {
        LETTERS.iter().position(|&l| l == letter).map_or(0, |index| self.0[index])
    }

    /// Total number of records.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Letters with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (char, u64)> + '_ {
        LETTERS.iter().copied().zip(self.0)
    }
}
