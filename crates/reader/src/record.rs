//! Records: what readers of a trace work with, in the words of Elephant Tracks (`docs/semantics.md`).

use et_names::{FieldId, MethodId, SiteId};

use crate::types::TypeId;

/// An object, unique in the whole trace; 0 is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// Bytes of the largest object that is believed: four times the largest array of the JVM, 2^31 elements of 8 bytes. Sums of sizes stay far from
/// what a number can hold.
pub const LARGEST: u64 = 1 << 36;

impl ObjectId {
    /// Null; as an origin or receiver "static".
    pub const NULL: ObjectId = ObjectId(0);

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// A thread: the runtime's thread index; continuations of virtual threads count from 2^31. 0 is no thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// The logical clock: number of M, E and X records so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

/// How an object came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocKind {
    /// `A`: array by bytecode.
    Array,
    /// `I`: was there when tracing began.
    Initial,
    /// `N`: scalar by `new`.
    New,
    /// `P`: found later, its allocation was missed.
    Found,
    /// `V`: by the VM or native code.
    Vm,
}

impl AllocKind {
    /// All kinds, in order of their letters.
    pub const ALL: [AllocKind; 5] = [Self::Array, Self::Initial, Self::New, Self::Found, Self::Vm];

    /// The kind of its record.
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

    /// The record's letter.
    pub fn letter(self) -> char {
        self.record_kind().letter()
    }
}

/// An allocation record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Alloc {
    pub kind: AllocKind,
    pub object: ObjectId,
    /// Bytes as the VM counts them, 0 if not known.
    pub size: u64,
    pub ty: TypeId,
    /// 0: none.
    pub site: SiteId,
    /// 0 for scalars.
    pub length: u32,
    pub thread: ThreadId,
}

/// A slot that holds a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A field of an object, or a static field.
    Field(FieldId),
    /// An element of an array.
    Element(u32),
}

impl Slot {
    /// The number that stands in a record.
    pub fn number(self) -> u32 {
        match self {
            Self::Field(field) => field.0,
            Self::Element(index) => index,
        }
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Record {
    /// `A I N P V`.
    Alloc(Alloc),
    /// `U`.
    Update { old: ObjectId, origin: ObjectId, target: ObjectId, slot: Slot, thread: ThreadId },
    /// `M`.
    Entry { method: MethodId, receiver: ObjectId, thread: ThreadId },
    /// `E`.
    Exit { method: MethodId, receiver: ObjectId, thread: ThreadId },
    /// `X`.
    ExitThrow { method: MethodId, receiver: ObjectId, exception: ObjectId, thread: ThreadId },
    /// `T`.
    Throw { method: MethodId, receiver: ObjectId, exception: ObjectId, thread: ThreadId },
    /// `H`.
    Handle { method: MethodId, receiver: ObjectId, exception: ObjectId, thread: ThreadId },
    /// `D`: unreachable from here on; the thread's action was the last that kept it.
    Death { object: ObjectId, thread: ThreadId },
    /// `R`: a use; a stack of that thread held the object here.
    Use { object: ObjectId, thread: ThreadId },
}

/// Defines [`RecordKind`], in the order in which totals are listed: name, letter, and the records that are of the kind. A kind of
/// [`Record`] without a row does not compile.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident $letter:literal $records:pat,)*) => {
        /// What a record says; the spool's code of it is its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum RecordKind { $($(#[doc = $doc])* $name,)* }

        impl RecordKind {
            /// All kinds, each at its number.
            pub const ALL: [RecordKind; LETTERS.len()] = [$(Self::$name),*];
        }

        /// The letters of all kinds of records, each at its kind's number.
        pub const LETTERS: [char; { const NAMES: &[&str] = &[$(stringify!($name)),*]; NAMES.len() }] = [$($letter),*];

        /// The letters as texts.
        const TEXTS: [&str; LETTERS.len()] = [$(concat!($letter)),*];

        impl Record {
            /// Its kind.
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
    /// An array was made by bytecode.
    Array 'A' Self::Alloc(Alloc { kind: AllocKind::Array, .. }),
    /// The object was there when tracing began.
    Initial 'I' Self::Alloc(Alloc { kind: AllocKind::Initial, .. }),
    /// A scalar was made by `new`.
    New 'N' Self::Alloc(Alloc { kind: AllocKind::New, .. }),
    /// The object was found later: its allocation was missed.
    Found 'P' Self::Alloc(Alloc { kind: AllocKind::Found, .. }),
    /// The object was made by the VM or native code.
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
    /// Its letter.
    #[inline]
    pub fn letter(self) -> char {
        LETTERS[self as usize]
    }

    /// Its letter, as text.
    #[inline]
    pub fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

/// What the logical clock counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Method entries and exits: `M`, `E`, `X`.
    #[default]
    Methods,
    /// `T` and `H` as well, as the first Elephant Tracks had it.
    MethodsAndExceptions,
}

impl Record {
    /// The record's letter.
    pub fn letter(&self) -> char {
        self.kind().letter()
    }

    /// Whether the logical clock ticks at this record.
    #[inline]
    pub fn ticks(&self) -> bool {
        matches!(self, Self::Entry { .. } | Self::Exit { .. } | Self::ExitThrow { .. })
    }

    /// Whether that clock ticks at this record.
    #[inline]
    pub fn ticks_of(&self, clock: Clock) -> bool {
        self.ticks() || clock == Clock::MethodsAndExceptions && matches!(self, Self::Throw { .. } | Self::Handle { .. })
    }

    /// The objects that the record names, null where it has fewer: of an update the old target, the origin and the new
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

    /// The thread it happened in.
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

/// How many records of each letter, in the order of [`LETTERS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals(pub [u64; LETTERS.len()]);

impl Totals {
    /// Counts one record.
    #[inline]
    pub fn count(&mut self, record: &Record) {
        self.0[record.kind() as usize] += 1;
    }

    /// The number of records with this letter.
    pub fn of(&self, letter: char) -> u64 {
        LETTERS.iter().position(|&l| l == letter).map_or(0, |index| self.0[index])
    }

    /// All records.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Letters with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (char, u64)> + '_ {
        LETTERS.iter().copied().zip(self.0)
    }
}
