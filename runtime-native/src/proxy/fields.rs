//! Static fields of the Java half that the agent sets.

use et_format::ArrayLayout;
use et_jvm::env::{Env, Object, StaticField};

use super::Mirrors;
use super::lookup::{Class, ProxyError};
use crate::buffers::Index;
use crate::classes::slots::HiddenStores;

/// Declares static fields of a class, all of which are looked up before any is set.
macro_rules! static_fields {
    ($(#[$about:meta])* $fields:ident { $($field:ident: $java:literal $descriptor:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $fields {
            $(pub $field: StaticField,)*
        }

        impl $fields {
            /// Looks all fields up.
            pub fn find(class: Class<'_>) -> Result<Self, ProxyError> {
                Ok(Self { $($field: class.static_field($java, $descriptor)?,)* })
            }
        }
    };
}

static_fields! {
    /// Fields of `HeapProxy`, documented there.
    Fields {
        on: c"on" c"Z",
        counting: c"counting" c"Z",
        slice: c"slice" c"J",
        index_offset: c"indexOffset" c"J",
        index_shift: c"indexShift" c"I",
        class_word_offset: c"classWordOffset" c"J",
        class_word_shift: c"classWordShift" c"I",
        alignment: c"alignment" c"I",
        tagged: c"tagged" c"Z",
        counter: c"counter" c"J",
        chunk_room: c"chunkRoom" c"J",
        nowhere: c"nowhere" c"J",
        known: c"known" c"J",
        classes: c"classes" c"J",
        layouts: c"layouts" c"J",
        stacks: c"stacks" c"J",
        hidden: c"hidden" c"J",
        unhashed: c"unhashed" c"J",
        hash_shift: c"hashShift" c"I",
        hash_mask: c"hashMask" c"I",
        klass_offset: c"klassOffset" c"J",
        layout_offset: c"layoutOffset" c"J",
        element_base: c"elementBase" c"J",
        element_shift: c"elementShift" c"I",
        referent_offset: c"referentOffset" c"J",
        discovered_offset: c"discoveredOffset" c"J",
        target_offset: c"targetOffset" c"J",
        asked: c"asked" c"I",
        overflows: c"overflows" c"I",
    }
}

static_fields! {
    /// Fields of `HeapProxyMirrors`.
    MirrorFields {
        lock_offset: c"lockOffset" c"J",
        count_offset: c"countOffset" c"J",
        statics_offset: c"staticsOffset" c"J",
    }
}

/// Settings that hooks need before they are switched on.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Address of the ticket counter.
    pub counter: usize,
    /// Usable bytes of a chunk.
    pub chunk_room: usize,
    /// Address of the memory for events of threads without a chunk.
    pub nowhere: usize,
    /// Address of the table of known ids.
    pub known: usize,
    /// Address of the table of classes.
    pub classes: usize,
    /// Address of the table of layouts.
    pub layouts: usize,
    /// Address and size of the table of stacks.
    pub stacks: u64,
    /// The collector is asked about one object in this many; 0 for none.
    pub asked: u32,
    /// Address of the number of the slice of counts; 0 without counts.
    pub slice: usize,
    /// Where the index of counts is, behind the room for events, and how many slots it has.
    pub index: Index,
    /// Where the header of an object tells its class.
    pub class_word: ClassWord,
    /// Alignment of objects in bytes.
    pub alignment: u32,
}

/// The four bytes in the header of an object that tell objects of different classes apart (oop.hpp, markWord.hpp): the reference to the class,
/// compressed or the lower half, or with compact headers the upper bits of the mark word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassWord {
    /// Of the eight bytes that have them.
    pub offset: usize,
    /// How far these are shifted.
    pub shift: u32,
}

impl ClassWord {
    /// With compact headers the elements of an array of bytes follow the mark word and the length: twelve bytes.
    pub fn of(arrays: &ArrayLayout) -> Self {
        match arrays.base_offset.get("B") {
            Some(12) => Self { offset: 0, shift: 42 },
            _ => Self { offset: 8, shift: 0 },
        }
    }
}

impl Fields {
    /// Sets what hooks need before they are switched on.
    pub fn set(&self, env: Env, class: Object, settings: Settings) {
        let addresses = [
            (self.counter, settings.counter),
            (self.chunk_room, settings.chunk_room),
            (self.nowhere, settings.nowhere),
            (self.known, settings.known),
            (self.classes, settings.classes),
            (self.layouts, settings.layouts),
            (self.stacks, settings.stacks as usize),
            (self.slice, settings.slice),
            (self.index_offset, settings.index.offset),
            (self.class_word_offset, settings.class_word.offset),
        ];
        for (field, value) in addresses {
            env.set_static_long(class, field, value as i64);
        }
        env.set_static_int(class, self.asked, settings.asked as i32);
        env.set_static_int(class, self.index_shift, settings.index.shift() as i32);
        env.set_static_int(class, self.class_word_shift, settings.class_word.shift as i32);
        env.set_static_int(class, self.alignment, settings.alignment as i32);
    }

    /// Sets the offsets of array elements and of fields that the VM itself stores into; 0 if unknown.
    pub fn set_places(&self, env: Env, class: Object, arrays: &ArrayLayout, stores: HiddenStores) {
        if let (Some(&base), Some(scale)) = (arrays.base_offset.get("L"), arrays.index_scale.get("L")) {
            env.set_static_long(class, self.element_base, base.into());
            env.set_static_int(class, self.element_shift, scale.trailing_zeros() as i32);
        }
        let offsets = [
            (self.referent_offset, stores.referent),
            (self.discovered_offset, stores.discovered),
            (self.target_offset, stores.target),
        ];
        for (field, offset) in offsets {
            env.set_static_long(class, field, offset.unwrap_or(0).into());
        }
    }
}

impl MirrorFields {
    /// Sets the offsets in mirrors of what the VM creates for classes; 0 if unknown.
    pub fn set(&self, env: Env, class: Object, mirrors: Mirrors) {
        let (count, first) = mirrors.statics.map_or((0, 0), |statics| (statics.count, statics.first));
        let offsets =
            [(self.lock_offset, mirrors.lock.unwrap_or(0)), (self.count_offset, count), (self.statics_offset, first)];
        for (field, offset) in offsets {
            env.set_static_long(class, field, offset);
        }
    }
}
