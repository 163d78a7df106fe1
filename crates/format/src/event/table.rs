//! Every event, defined once. Kind numbers, lengths, the enum, encoding and decoding, the arbitrary events of tests and
//! fuzzers ([`super::any`]) and the table in `docs/inside/events.md` are all generated from it.

use et_names::{FieldRefId, MethodId, SiteId};

use super::{MAX_ELEMENTS, ObjectHash, Targets, Ticket, extended, word};

/// Marks a kind number that is not in use.
pub(super) const NO_EVENT: u8 = 0;
/// Marks an event whose payload is the number of words after the first three.
pub(super) const AS_PAYLOAD_SAYS: u8 = u8::MAX;

/// The type of value in a word of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A static id from a names table, 30 bits.
    StaticId,
    /// An object's identity hash, 31 bits.
    Object,
    /// A plain number.
    Number,
}

/// A word of an event after the first.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name of the field in [`Event`].
    pub name: &'static str,
    pub content: Content,
    /// Further documentation; may be empty.
    pub note: &'static str,
}

/// A part of the payload: `count` bits, starting at bit `from`.
#[derive(Clone, Copy, Debug)]
pub struct PayloadBits {
    /// Name of the field in [`Event`].
    pub name: &'static str,
    /// Lowest bit of the part.
    pub from: u32,
    /// Width in bits.
    pub count: u32,
    /// Documentation of the part.
    pub note: &'static str,
}

/// Description of an extended event kind, for documentation and tests.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Bits 2 to 7 of the first word.
    pub kind: u32,
    /// Name of the constant in [`kind`] and in `HeapProxyBuffer.java`.
    pub constant: &'static str,
    /// Name of the variant of [`Event`].
    pub name: &'static str,
    /// Documentation of the event.
    pub note: &'static str,
    /// The words after the first.
    pub fields: &'static [Field],
    /// The parts of the payload.
    pub payload: &'static [PayloadBits],
}

/// A type that a word of an event can have.
trait Word {
    const CONTENT: Content;
    fn of(word: u32) -> Self;
    fn word(self) -> u32;
}

macro_rules! words {
    ($($type:ty, $content:ident, $of:expr, $word:expr;)*) => {$(
        impl Word for $type {
            const CONTENT: Content = Content::$content;
            #[inline(always)]
            fn of(word: u32) -> Self {
                $of(word)
            }
            #[inline(always)]
            fn word(self) -> u32 {
                $word(self)
            }
        }
    )*};
}

words! {
    MethodId, StaticId, MethodId, |id: MethodId| id.0;
    SiteId, StaticId, SiteId, |id: SiteId| id.0;
    FieldRefId, StaticId, FieldRefId, |id: FieldRefId| id.0;
    ObjectHash, Object, ObjectHash::of_word, |object: ObjectHash| object.0;
    u32, Number, |word| word, |number| number;
    i32, Number, |word| word as i32, |number| number as u32;
}

/// A type that a part of the payload can have.
trait Payload {
    const BITS: u32;
    fn of(payload: u32) -> Self;
}

impl Payload for bool {
    const BITS: u32 = 1;
    #[inline(always)]
    fn of(payload: u32) -> Self {
        payload & 1 != 0
    }
}

impl Payload for u8 {
    const BITS: u32 = 8;
    #[inline(always)]
    fn of(payload: u32) -> Self {
        payload as u8
    }
}

/// Defines the events. A `regular` event is: kind number, constant, variant, `{ word: type, … }` in the order of the
/// words after the first, `[ part of the payload: type = bit (its lowest), … ]`. Events with an encoding of their own
/// are `by_hand`: [`super::decode`] and [`super::encode`] handle them.
macro_rules! events {
    (
        <$life:lifetime>
        forms { $($(#[doc = $form_doc:literal])* $form:ident $form_fields:tt,)* }
        by_hand { $($(#[doc = $hand_doc:literal])* $hand_kind:literal $hand_constant:ident $hand:ident $hand_fields:tt words: $words:expr, shape: $hand_shape:expr;)* }
        regular { $(
            $(#[doc = $doc:literal])*
            $kind:literal $constant:ident $name:ident
            { $($(#[doc = $field_doc:literal])* $field:ident: $type:ty),* }
            [ $($(#[doc = $part_doc:literal])* $part:ident: $part_type:ty = bit $from:literal),* ]
        )* }
    ) => {
        /// Numbers of the extended kinds (bits 2..8 of the first word).
        pub mod kind {
            $(#[doc = concat!("[`Event::", stringify!($hand), "`](super::Event)")] pub const $hand_constant: u32 = $hand_kind;)*
            $(#[doc = concat!("[`Event::", stringify!($name), "`](super::Event)")] pub const $constant: u32 = $kind;)*
        }

        /// Length in words of each extended kind, including the first word.
        pub(super) const EXTENDED_WORDS: [u8; 64] = {
            let mut words = [NO_EVENT; 64];
            $(
                assert!(words[$hand_kind] == NO_EVENT, concat!("two events have number ", stringify!($hand_kind)));
                words[$hand_kind] = $words;
            )*
            $(
                assert!(words[$kind] == NO_EVENT, concat!("two events have number ", stringify!($kind)));
                words[$kind] = 1 + { const FIELDS: &[&str] = &[$(stringify!($field)),*]; FIELDS.len() as u8 };
            )*
            words
        };

        /// An event. `docs/inside/events.md` documents the fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event<$life> {
            $($(#[doc = $form_doc])* $form $form_fields,)*
            $($(#[doc = $hand_doc])* $hand $hand_fields,)*
            $($(#[doc = $doc])* $name { $($(#[doc = $field_doc])* $field: $type,)* $($(#[doc = $part_doc])* $part: $part_type,)* },)*
        }

        /// Decodes a regular event from its first word and all its bytes; `None` if the kind is not regular.
        #[inline(always)]
        pub(super) fn decode_regular<'a>(first: u32, bytes: &'a [u8]) -> Option<Event<'a>> {
            let payload = first >> 8;
            let mut at = 0;
            let mut next = || {
                at += 1;
                word(bytes, at)
            };
            let _ = (payload, &mut next);
            Some(match (first >> 2) & 63 {
                $($kind => Event::$name {
                    $($field: <$type as Word>::of(next()),)*
                    $($part: <$part_type as Payload>::of(payload >> $from),)*
                },)*
                _ => return None,
            })
        }

        /// Encodes a regular event: its words and how many of them are in use.
        pub(super) fn encode_regular(event: &Event<'_>) -> ([u32; 5], usize) {
            match *event {
                $(Event::$name { $($field,)* $($part,)* } => {
                    let mut words = [extended($kind, 0 $(| u32::from($part) << $from)*), 0, 0, 0, 0];
                    let mut count = 1;
                    $(
                        words[count] = $field.word();
                        count += 1;
                    )*
                    (words, count)
                })*
                // Encoded by `super::encode`.
                $(Event::$form { .. } => ([0; 5], 0),)*
                $(Event::$hand { .. } => ([0; 5], 0),)*
            }
        }

        /// Descriptions of all extended kinds.
        pub const SHAPES: &[Shape] = &[
            $(Shape { kind: $hand_kind, constant: stringify!($hand_constant), name: stringify!($hand), note: concat!($($hand_doc),*), ..$hand_shape },)*
            $(Shape {
                kind: $kind,
                constant: stringify!($constant),
                name: stringify!($name),
                note: concat!($($doc),*),
                fields: &[$(Field { name: stringify!($field), content: <$type as Word>::CONTENT, note: concat!($($field_doc),*) }),*],
                payload: &[$(PayloadBits { name: stringify!($part), from: $from, count: <$part_type as Payload>::BITS, note: concat!($($part_doc),*) }),*],
            },)*
        ];
    };
}

const EMPTY: Shape = Shape { kind: 0, constant: "", name: "", note: "", fields: &[], payload: &[] };

events! {
    <'a>
    forms {
        /// Normal return.
        Exit { method: MethodId },
        /// Entry of a static method or of a simple constructor.
        Entry { method: MethodId },
        /// Entry of an instance method.
        EntryOn { method: MethodId, receiver: ObjectHash },
        /// Entry and normal return of a method that leaves no other event; the receiver of a static one is null.
        Leaf { method: MethodId, receiver: ObjectHash },
    }
    by_hand {
        /// The ticket of the events that follow. Ticket = `high << 24 | low`.
        1 TICKET Ticket (Ticket) words: 2, shape: Shape {
            fields: &[Field { name: "high", content: Content::Number, note: " Ticket, high 32 bits." }],
            payload: &[PayloadBits { name: "low", from: 0, count: 24, note: " Ticket, low 24 bits." }],
            ..EMPTY
        };
        /// Consecutive slots were copied or read back, from index `start` on: a `U` for each that changed.
        15 PUT_ELEMENTS PutElements { start: u32, array: ObjectHash, targets: Targets<'a> } words: AS_PAYLOAD_SAYS, shape: Shape {
            fields: &[
                Field { name: "start", content: Content::Number, note: " Index." },
                Field { name: "array", content: Content::Object, note: "" },
                Field { name: "targets", content: Content::Object, note: " As many words as the payload says." },
            ],
            payload: &[PayloadBits { name: "count", from: 0, count: MAX_ELEMENTS.ilog2() + 1, note: " Number of targets, 1 … 64." }],
            ..EMPTY
        };
    }
    regular {
        /// `Object.<init>` ran on a new object.
        2 NEW New {
            /// 0: none.
            site: SiteId,
            object: ObjectHash,
            class: ObjectHash
        } [
            /// The object had an id before its constructors reached `Object.<init>`, from a `Made` event (`Unsafe.allocateInstance`, JNI `AllocObject`). It gets no second record, but the frames of its constructors get their receiver.
            known: bool = bit 0
        ]

        /// An array was made by bytecode.
        3 NEW_ARRAY NewArray {
            site: SiteId,
            object: ObjectHash,
            length: u32
        } [
            /// 0 for the array that the site names; d > 0 for an inner array of a `multianewarray`, whose type is that of the site with d leading `[` removed.
            depth: u8 = bit 0
        ]

        /// The first time that an object is seen whose allocation no hook saw. May occur more than once per object: readers use the first, and ignore it if they know the object.
        4 FOUND Found {
            object: ObjectHash,
            class: ObjectHash,
            /// -1: no array.
            length: i32
        } []

        /// A store to an instance field.
        5 PUT_FIELD PutField {
            /// Field reference.
            field: FieldRefId,
            origin: ObjectHash,
            /// The new target.
            target: ObjectHash
        } [
            /// The field was read back and may have held that target before; then there is no `U`.
            if_changed: bool = bit 0
        ]

        /// A store to a static field.
        6 PUT_STATIC PutStatic {
            /// Field reference.
            field: FieldRefId,
            /// The new target.
            target: ObjectHash
        } []

        /// A store to an element of an array.
        7 PUT_ELEMENT PutElement {
            index: u32,
            array: ObjectHash,
            /// The new target.
            target: ObjectHash
        } []

        /// `athrow`.
        8 THROW Throw {
            method: MethodId,
            exception: ObjectHash
        } []

        /// An exception handler was entered.
        9 HANDLE Handle {
            method: MethodId,
            exception: ObjectHash
        } []

        /// Exit by exception.
        10 EXIT_THROW ExitThrow {
            method: MethodId,
            exception: ObjectHash,
            /// 0 where not known to the hook.
            receiver: ObjectHash
        } []

        /// Entry of a constructor that runs code before its `super(…)`/`this(…)`.
        11 ENTRY_INIT EntryInit {
            method: MethodId,
            site: SiteId
        } []

        /// That constructor is now about to call `super(…)`/`this(…)`.
        12 SUPER_CALL SuperCall {
            method: MethodId
        } []

        /// From here on the events of this buffer belong to the stack of that continuation (virtual thread); written on JDK 21 and later around `Continuation.enterSpecial`.
        13 SWITCH Switch {
            /// The continuation; 0: the thread itself.
            owner: ObjectHash
        } []

        /// An object created by the VM or by native code, seen when it was created: a `V` record.
        14 MADE Made {
            object: ObjectHash,
            class: ObjectHash,
            /// -1: no array.
            length: i32
        } [
            /// Certainly new (its id was drawn just now, and no other thread has the object), so if the id is known it is being reused; otherwise readers ignore the event if they know the object.
            fresh: bool = bit 0,
            /// A constant of a class, which holds it.
            constant: bool = bit 1
        ]

        /// `Made`, with the stack that called what made it.
        18 MADE_AT MadeAt {
            /// That of a call.
            site: SiteId,
            object: ObjectHash,
            class: ObjectHash,
            /// -1: no array.
            length: i32
        } [
            /// As for `Made`.
            fresh: bool = bit 0
        ]

        /// A witness: the frame used the object. An `R` record.
        16 USED Used {
            object: ObjectHash
        } []

        /// Objects of one class that were allocated on one stack in the time of the block (`counts`). The runtime adds to the numbers as long as the block is in the buffer. The same stack and class may have several, and their order in a block means nothing.
        17 COUNTED Counted {
            /// 0: none. That of a call: native code or the VM made the objects for it.
            site: SiteId,
            class: ObjectHash,
            /// How many they are.
            objects: u32,
            /// Their sizes together, divided by 8.
            units: u32
        } []
    }
}
