//! `java.lang.HeapProxy` as native code sees it.

pub mod layout;
pub mod mirrors;
pub mod reflection;

use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use et_format::ArrayLayout;
use et_rewriter::rewrite::EventSet;
use jni_sys::jvalue;

use crate::base::stack;
use crate::classes::slots::HiddenStores;
use crate::ids::Block;
use et_jvm::env::{Env, Field, Global, Object, StaticField, StaticMethod};
use et_jvm::hotspot::{HotSpot, Layout};

/// The bits of an identity hash.
const HASH: i32 = 0x7fff_ffff;

/// The bits of a mark word that say whether the object is locked, and in which way.
const UNLOCKED_BITS: u64 = 7;
/// The one of them that says that a monitor has taken the mark word's place.
const MONITOR_BIT: u64 = 2;

/// Whether hooks are on, for functions that native code calls. They have no state of their own to keep it in.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether classes made at run time are rewritten, as above.
static DEFINITIONS: AtomicBool = AtomicBool::new(false);

/// The events that the JDK's classes are hooked for: the rewriter left them in a constant of Thread.
pub fn jdk_events(env: Env) -> Option<EventSet> {
    let thread = env.find_class(c"java/lang/Thread")?;
    let events = env.get_static_int(thread, env.static_field(thread, c"etEvents", c"I")?);
    Some(EventSet::from_bits(events as u8))
}

/// Whether hooks are on.
pub fn is_on() -> bool {
    ON.load(Ordering::Acquire)
}

/// Whether classes made at run time are rewritten.
pub fn rewrites_definitions() -> bool {
    DEFINITIONS.load(Ordering::Acquire)
}

/// Where class mirrors hold what the VM has made for a class, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mirrors {
    /// The lock of the class's initialisation. Not all releases have one there.
    pub lock: Option<i64>,
    /// The static fields of reference types.
    pub statics: Option<Statics>,
}

/// Static fields of reference types stand in a row behind the fields of `java.lang.Class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statics {
    /// Of their number.
    pub count: i64,
    /// Of the first.
    pub first: i64,
}

/// The class, its fields and its methods.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    class: Global,
    on: StaticField,
    position: Field,
    end: Field,
    stack: [Field; 2],
    ids: Field,
    layout_helper: StaticMethod,
    klass: StaticMethod,
    /// `HeapProxyPlatform.word`.
    word: (Global, StaticMethod),
    /// `HeapProxyPlatform.intAt`.
    int_at: (Global, StaticMethod),
    /// `HeapProxyRelease.reference`.
    reference: (Global, StaticMethod),
    /// `HeapProxyMirrors`.
    mirrors: Global,
    announce_mirror: StaticMethod,
    announce_references: StaticMethod,
    peek_hash: StaticMethod,
    skip_hashes: StaticMethod,
    /// `HeapProxyCalls.madeFresh`.
    made: Option<(Global, StaticMethod)>,
    put_field: StaticMethod,
    put_static: StaticMethod,
    put_element: StaticMethod,
    /// Where HeapProxyClasses has its switch, if the JDK has that class.
    rewrites: Option<(Global, StaticField)>,
    jdk_events: EventSet,
}

/// Where the hash of an object is while it is locked, unless a monitor has taken the mark word's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// In the mark word, as always (lightweight locking, the default from JDK 23 on).
    InPlace,
    /// In the lock, on the stack of the thread that has it; the mark word is the lock's address.
    OnStack,
    /// It does not show, and the VM is asked.
    Unknown,
}

impl Locks {
    /// As the trace has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InPlace => "mark word",
            Self::OnStack => "stack",
            Self::Unknown => "VM",
        }
    }
}

/// Values of HeapProxy's static fields.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Address of the ticket counter.
    pub counter: usize,
    /// Bytes of a chunk that may be used.
    pub chunk_room: usize,
    /// Address of memory for events that have no chunk.
    pub nowhere: usize,
    /// Address of the table of known ids.
    pub known: usize,
    /// Address of the table of classes.
    pub classes: usize,
    /// Address of the table of layouts.
    pub layouts: usize,
    /// The collector is asked about one object in so many, 0: about none.
    pub asked: u32,
}

impl Proxy {
    /// None if this JDK is not instrumented.
    pub fn find(env: Env) -> Option<Self> {
        let class = env.find_class(c"java/lang/HeapProxy")?;
        let calls = env.find_class(c"java/lang/HeapProxyCalls");
        let thread = env.find_class(c"java/lang/Thread")?;
        // What the rewriter adds to Thread: a HeapProxy beside a plain Thread would fail at its first event.
        let field = |name: &CStr| env.field(thread, name, c"J");
        let (position, end, ids) = (field(c"etPos")?, field(c"etEnd")?, field(c"etIds")?);
        let stack = [field(c"etStackLow")?, field(c"etStackHigh")?];
        field(c"etTicket")?;
        env.field(thread, c"etSite", c"I")?;
        let platform = env.find_class(c"java/lang/HeapProxyPlatform")?;
        let release = env.find_class(c"java/lang/HeapProxyRelease")?;
        let mirrors = env.find_class(c"java/lang/HeapProxyMirrors")?;
        let at = c"(Ljava/lang/Object;J)Ljava/lang/Object;";
        let proxy = Self {
            class: env.global(class)?,
            on: env.static_field(class, c"on", c"Z")?,
            position,
            end,
            stack,
            ids,
            layout_helper: env.static_method(class, c"layoutHelper", c"(Ljava/lang/Class;)I")?,
            klass: env.static_method(class, c"klass", c"(Ljava/lang/Class;)J")?,
            word: (env.global(platform)?, env.static_method(platform, c"word", c"(Ljava/lang/Object;J)J")?),
            int_at: (env.global(platform)?, env.static_method(platform, c"intAt", c"(Ljava/lang/Object;J)I")?),
            mirrors: env.global(mirrors)?,
            announce_mirror: env.static_method(mirrors, c"announce", c"(Ljava/lang/Class;)V")?,
            announce_references: env.static_method(mirrors, c"announceAll", c"([Ljava/lang/Object;)V")?,
            reference: (env.global(release)?, env.static_method(release, c"reference", at)?),
            peek_hash: env.static_method(class, c"peekHash", c"(Ljava/lang/Object;)I")?,
            skip_hashes: env.static_method(class, c"skipHashes", c"(I)V")?,
            made: calls.and_then(|calls| {
                Some((env.global(calls)?, env.static_method(calls, c"madeFresh", c"(Ljava/lang/Object;)V")?))
            }),
            put_field: env.static_method(class, c"putField", c"(Ljava/lang/Object;Ljava/lang/Object;I)V")?,
            put_static: env.static_method(class, c"putStatic", c"(Ljava/lang/Object;I)V")?,
            put_element: env.static_method(class, c"putElement", c"(Ljava/lang/Object;ILjava/lang/Object;)V")?,
            rewrites: env
                .find_class(c"java/lang/HeapProxyClasses")
                .and_then(|class| Some((env.global(class)?, env.static_field(class, c"on", c"Z")?))),
            jdk_events: jdk_events(env)?,
        };
        proxy.bind_unsafe(env);
        Some(proxy)
    }

    /// The class itself.
    pub fn class(&self) -> Object<'_> {
        self.class.get()
    }

    /// The events that the JDK's classes are hooked for.
    pub fn jdk_events(&self) -> EventSet {
        self.jdk_events
    }

    /// JDK 8: HeapProxy cannot get its Unsafe by itself.
    fn bind_unsafe(&self, env: Env) -> Option<()> {
        let platform = env.find_class(c"java/lang/HeapProxyPlatform")?;
        let field = env.static_field(platform, c"unsafe", c"Lsun/misc/Unsafe;")?;
        let class = env.find_class(c"sun/misc/Unsafe")?;
        let value = env.get_static_object(class, env.static_field(class, c"theUnsafe", c"Lsun/misc/Unsafe;")?)?;
        env.set_static_object(platform, field, value);
        Some(())
    }

    /// Makes the VM find HeapProxy's natives in this library. False if it does not.
    pub fn link(&self, env: Env) -> bool {
        env.static_method(self.class(), c"link", c"()I")
            .is_some_and(|link| env.call_static_int(self.class(), link, &[]) == 1)
    }

    /// Where the mark word holds the hash; none if it does not show.
    pub fn probe_hash_shift(&self, env: Env) -> Option<i32> {
        let probe = env.static_method(self.class(), c"probeHashShift", c"()I")?;
        let shift = env.call_static_int(self.class(), probe, &[]);
        // A failed call returns 0, which is no shift either.
        let found = (shift > 0).then_some(shift);
        self.set_long(env, c"hidden", UNLOCKED_BITS);
        self.set_int(env, c"hashShift", found.unwrap_or(0));
        self.set_int(env, c"hashMask", if found.is_some() { HASH } else { 0 });
        found
    }

    /// Finds out what a lock does to a mark word that holds a hash, and has hooks read that. What they cannot read, they ask the VM for.
    pub fn probe_locks(&self, env: Env) -> Locks {
        let probe = env.static_method(self.class(), c"probeLock", c"(JJ)I");
        let (Some(probe), Some(stack)) = (probe, stack::bounds()) else { return Locks::Unknown };
        let arguments = [jvalue { j: stack.start as i64 }, jvalue { j: stack.end as i64 }];
        match env.call_static_int(self.class(), probe, &arguments) {
            1 => {
                self.set_long(env, c"hidden", MONITOR_BIT);
                Locks::InPlace
            }
            2 => Locks::OnStack,
            _ => Locks::Unknown,
        }
    }

    /// Tells hooks where the stack of the current thread is, which `thread` is the object of: locks there are its own.
    pub fn set_stack(&self, env: Env, thread: Object, stack: Range<usize>) {
        for (field, address) in self.stack.into_iter().zip([stack.start, stack.end]) {
            env.set_long(thread, field, address as i64);
        }
    }

    /// Has hooks write ids of ours into mark words from now on, if the VM takes them for hashes of its own: free, locked, and
    /// free again.
    pub fn write_ids(&self, env: Env, hotspot: &HotSpot, shift: i32) -> bool {
        // The low bits are 001 in a word that holds a hash, and not a lock's address.
        self.set_long(env, c"unhashed", (HASH as u64) << shift | 7);
        let works = env.frame(4, |env| self.try_writing(env, hotspot)).unwrap_or(false);
        if !works {
            self.set_long(env, c"unhashed", 0);
        }
        works
    }

    /// Has hooks ask for every id.
    pub fn use_tags(&self, env: Env) {
        self.set_int(env, c"hashMask", 0);
        if let Some(field) = env.static_field(self.class(), c"tagged", c"Z") {
            env.set_static_boolean(self.class(), field, true);
        }
    }

    fn try_writing(&self, env: Env, hotspot: &HotSpot) -> Option<bool> {
        let probe = env.static_method(self.class(), c"probeWriting", c"(Ljava/lang/Object;)I")?;
        let object = env.new_byte_array(0)?;
        let id = env.call_static_int(self.class(), probe, &[jvalue { l: object.raw() }]) as u32;
        let is_hash = || hotspot.identity_hash(env, object) == id;
        let free = id != 0 && is_hash();
        // A lock of JNI's is always inflated: the mark word moves to the monitor.
        let locked = env.locked(object, is_hash)?;
        Some(free && locked && is_hash() && self.peek_hash(env, object) == id)
    }

    fn set_int(&self, env: Env, name: &CStr, value: i32) {
        if let Some(field) = env.static_field(self.class(), name, c"I") {
            env.set_static_int(self.class(), field, value);
        }
    }

    fn set_long(&self, env: Env, name: &CStr, value: u64) {
        if let Some(field) = env.static_field(self.class(), name, c"J") {
            env.set_static_long(self.class(), field, value as i64);
        }
    }

    /// Where instance sizes are to be read.
    pub fn set_layout(&self, env: Env, layout: Layout) {
        self.set_long(env, c"klassOffset", layout.klass_offset);
        self.set_long(env, c"layoutOffset", layout.layout_helper_offset);
    }

    /// Everything that the hooks need.
    pub fn set(&self, env: Env, settings: Settings) {
        self.set_long(env, c"counter", settings.counter as u64);
        self.set_long(env, c"chunkRoom", settings.chunk_room as u64);
        self.set_long(env, c"nowhere", settings.nowhere as u64);
        self.set_long(env, c"known", settings.known as u64);
        self.set_long(env, c"classes", settings.classes as u64);
        self.set_long(env, c"layouts", settings.layouts as u64);
        self.set_int(env, c"asked", settings.asked as i32);
    }

    /// Where elements and the fields that the VM changes by itself lie; 0 where that is not known.
    pub fn set_places(&self, env: Env, arrays: &ArrayLayout, stores: HiddenStores) {
        if let (Some(&base), Some(scale)) = (arrays.base_offset.get("L"), arrays.index_scale.get("L")) {
            self.set_long(env, c"elementBase", base.into());
            self.set_int(env, c"elementShift", scale.trailing_zeros() as i32);
        }
        let fields = [
            (c"referentOffset", stores.referent),
            (c"discoveredOffset", stores.discovered),
            (c"targetOffset", stores.target),
        ];
        for (name, offset) in fields {
            self.set_long(env, name, offset.unwrap_or(0) as u64);
        }
    }

    /// Hooks that found no room on their thread's stack.
    pub fn overflows(&self, env: Env) -> u32 {
        let field = env.static_field(self.class(), c"overflows", c"I");
        field.map_or(0, |field| env.get_static_int(self.class(), field) as u32)
    }

    /// Switches the hooks.
    pub fn switch(&self, env: Env, on: bool) {
        env.set_static_boolean(self.class(), self.on, on);
        ON.store(on, Ordering::Release);
        if !on {
            self.switch_rewriting(env, false);
        }
    }

    /// Switches the rewriting of classes that are made at run time. It may be on before the hooks are.
    pub fn switch_rewriting(&self, env: Env, on: bool) {
        if let Some((class, field)) = &self.rewrites {
            env.set_static_boolean(class.get(), *field, on);
        }
        DEFINITIONS.store(on, Ordering::Release);
    }

    /// Hook: native code has made an object, which nobody else has seen yet.
    pub fn made(&self, env: Env, object: Object) {
        if let Some((calls, made)) = self.made {
            env.call_static_void(calls.get(), made, &[jvalue { l: object.raw() }]);
        }
    }

    /// Hook: native code is about to set an instance field.
    pub fn put_field(&self, env: Env, origin: Object, value: Option<Object>, field: u32) {
        let arguments = [jvalue { l: origin.raw() }, reference(value), jvalue { i: field as i32 }];
        env.call_static_void(self.class(), self.put_field, &arguments);
    }

    /// Hook: native code is about to set a static field.
    pub fn put_static(&self, env: Env, value: Option<Object>, field: u32) {
        env.call_static_void(self.class(), self.put_static, &[reference(value), jvalue { i: field as i32 }]);
    }

    /// Hook: native code has set an element of an array.
    pub fn put_element(&self, env: Env, array: Object, index: i32, value: Option<Object>) {
        let arguments = [jvalue { l: array.raw() }, jvalue { i: index }, reference(value)];
        env.call_static_void(self.class(), self.put_element, &arguments);
    }

    /// Bytes of an instance; none for classes that have none, or if HotSpot does not tell.
    pub fn instance_size(&self, env: Env, class: Object) -> Option<u32> {
        let helper = env.call_static_int(self.class(), self.layout_helper, &[jvalue { l: class.raw() }]);
        // The low bits are a flag: sizes are multiples of 8.
        if helper > 0 { Some(helper as u32 & !7) } else { None }
    }

    /// Address of what HotSpot keeps of a class; 0 for primitive types, which have nothing.
    pub fn klass(&self, env: Env, class: Object) -> u64 {
        env.call_static_long(self.class(), self.klass, &[jvalue { l: class.raw() }]) as u64
    }

    /// Eight bytes of an object. `offset` is a multiple of eight within it.
    pub fn word(&self, env: Env, object: Object, offset: i64) -> u64 {
        let (platform, word) = &self.word;
        env.call_static_long(platform.get(), *word, &[jvalue { l: object.raw() }, jvalue { j: offset }]) as u64
    }

    /// Four bytes of an object.
    pub fn int_at(&self, env: Env, object: Object, offset: i64) -> i32 {
        let (platform, int_at) = &self.int_at;
        env.call_static_int(platform.get(), *int_at, &[jvalue { l: object.raw() }, jvalue { j: offset }])
    }

    /// Tells HeapProxy where mirrors hold what the VM makes for classes.
    pub fn set_mirrors(&self, env: Env, mirrors: Mirrors) {
        let class = self.mirrors.get();
        let (count, first) = mirrors.statics.map_or((0, 0), |statics| (statics.count, statics.first));
        let places = [(c"lockOffset", mirrors.lock.unwrap_or(0)), (c"countOffset", count), (c"staticsOffset", first)];
        for (name, offset) in places {
            if let Some(field) = env.static_field(class, name, c"J") {
                env.set_static_long(class, field, offset);
            }
        }
    }

    /// Tells of what the VM has put into the mirror of a class that is not initialised.
    pub fn announce_mirror(&self, env: Env, class: Object) {
        env.call_static_void(self.mirrors.get(), self.announce_mirror, &[jvalue { l: class.raw() }]);
    }

    /// Tells of what a class's constant pool holds.
    pub fn announce_references(&self, env: Env, references: Object) {
        env.call_static_void(self.mirrors.get(), self.announce_references, &[jvalue { l: references.raw() }]);
    }

    /// What the reference at that offset of an object refers to.
    pub fn reference<'a>(&self, env: Env<'a>, object: Object, offset: i64) -> Option<Object<'a>> {
        let (release, reference) = &self.reference;
        env.call_static_object(release.get(), *reference, &[jvalue { l: object.raw() }, jvalue { j: offset }])
    }

    /// The hash that an object has, 0 for none.
    pub fn peek_hash(&self, env: Env, object: Object) -> u32 {
        env.call_static_int(self.class(), self.peek_hash, &[jvalue { l: object.raw() }]) as u32
    }

    /// Uses up hashes.
    pub fn skip_hashes(&self, env: Env, count: i32) {
        env.call_static_void(self.class(), self.skip_hashes, &[jvalue { i: count }]);
    }

    /// Takes the ids off the thread that it has not used.
    pub fn take_ids(&self, env: Env, thread: Object) -> Block {
        let ids = env.get_long(thread, self.ids);
        env.set_long(thread, self.ids, 0);
        Block::from_bits(ids)
    }

    /// Takes the thread's buffer off it: where it ends, 0 if it has none.
    pub fn take_position(&self, env: Env, thread: Object) -> usize {
        // Without an end there is no buffer, and the position is where events went that nobody reads.
        let has_buffer = env.get_long(thread, self.end) != 0;
        let position = if has_buffer { env.get_long(thread, self.position) } else { 0 };
        env.set_long(thread, self.position, 0);
        env.set_long(thread, self.end, 0);
        position as usize
    }
}

fn reference(object: Option<Object>) -> jvalue {
    jvalue { l: object.map_or(std::ptr::null_mut(), |object| object.raw()) }
}
