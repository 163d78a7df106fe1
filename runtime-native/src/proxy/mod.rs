//! `java.lang.HeapProxy` from the point of view of native code.

mod fields;
pub mod layout;
mod lookup;
pub mod mirrors;
pub mod reflection;

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
use fields::{Fields, MirrorFields};
use lookup::Class;

pub use fields::{ClassWord, Settings};
pub use lookup::{Member, ProxyError};

/// The bits of an identity hash.
const HASH: i32 = 0x7fff_ffff;

/// Bits of a mark word that show whether and how the object is locked.
const UNLOCKED_BITS: u64 = 7;
/// Bit that shows that the original mark word is in a monitor.
const MONITOR_BIT: u64 = 2;

/// Whether hooks are on, for replaced JNI functions, which have no state of their own.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether classes created at run time are rewritten, for the same functions.
static DEFINITIONS: AtomicBool = AtomicBool::new(false);

/// Whether hooks count allocations in place of writing events.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// From now on hooks that are switched on count allocations in place of writing events.
pub fn count() {
    COUNTS.store(true, Ordering::Release);
}

/// The events for which the JDK's classes have hooks, from a constant that the rewriter has put into Thread.
pub fn jdk_events(env: Env) -> Option<EventSet> {
    let thread = env.find_class(c"java/lang/Thread")?;
    let events = env.get_static_int(thread, env.static_field(thread, c"etEvents", c"I")?);
    Some(EventSet::from_bits(events as u8))
}

/// Whether hooks are on.
pub fn is_on() -> bool {
    ON.load(Ordering::Acquire)
}

/// Whether classes created at run time are rewritten.
pub fn rewrites_definitions() -> bool {
    DEFINITIONS.load(Ordering::Acquire)
}

/// Offsets in class mirrors of what the VM creates for a class, as far as known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mirrors {
    /// The lock under which the class is initialized, in releases that have one there.
    pub lock: Option<i64>,
    /// The static fields of reference types.
    pub statics: Option<Statics>,
}

/// Static fields of reference types are consecutive, after the fields of `java.lang.Class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statics {
    /// Offset of the number of static reference fields.
    pub count: i64,
    /// Offset of the first one.
    pub first: i64,
}

/// The Java half: its classes, and the members used by this library.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    class: Global,
    fields: Fields,
    probes: Probes,
    thread: ThreadFields,
    hooks: Hooks,
    mirrors: MirrorMembers,
    layout_helper: StaticMethod,
    klass: StaticMethod,
    peek_hash: StaticMethod,
    skip_hashes: StaticMethod,
    /// `HeapProxyPlatform.word`.
    word: (Global, StaticMethod),
    /// `HeapProxyPlatform.intAt`.
    int_at: (Global, StaticMethod),
    /// `HeapProxyRelease.reference`.
    reference: (Global, StaticMethod),
    /// HeapProxyClasses; `None` on JDK 8, which has no such class.
    definitions: Option<Definitions>,
    jdk_events: EventSet,
}

/// Fields that the rewriter adds to `Thread`.
#[derive(Clone, Copy, Debug)]
struct ThreadFields {
    position: Field,
    end: Field,
    ids: Field,
    stack: [Field; 2],
}

/// The hooks that native code calls.
#[derive(Clone, Copy, Debug)]
struct Hooks {
    /// `HeapProxyCalls.madeFresh`.
    made: (Global, StaticMethod),
    put_field: StaticMethod,
    put_static: StaticMethod,
    put_element: StaticMethod,
}

/// Methods of HeapProxy called once, at the start.
#[derive(Clone, Copy, Debug)]
struct Probes {
    link: StaticMethod,
    hash_shift: StaticMethod,
    lock: StaticMethod,
    writing: StaticMethod,
}

/// `HeapProxyMirrors`.
#[derive(Clone, Copy, Debug)]
struct MirrorMembers {
    class: Global,
    fields: MirrorFields,
    announce: StaticMethod,
    announce_all: StaticMethod,
}

/// `HeapProxyClasses`, whose methods replace those that define classes.
#[derive(Clone, Copy, Debug)]
struct Definitions {
    class: Global,
    on: StaticField,
    link: StaticMethod,
}

impl ThreadFields {
    /// All fields are needed: HeapProxy with an unmodified Thread would fail at its first event.
    fn find(thread: Class<'_>) -> Result<Self, ProxyError> {
        let field = |name| thread.field(name, c"J");
        thread.field(c"etTicket", c"J")?;
        thread.field(c"etSite", c"I")?;
        Ok(Self {
            position: field(c"etPos")?,
            end: field(c"etEnd")?,
            ids: field(c"etIds")?,
            stack: [field(c"etStackLow")?, field(c"etStackHigh")?],
        })
    }
}

impl Hooks {
    fn find(env: Env, proxy: Class<'_>) -> Result<Self, ProxyError> {
        let calls = Class::find(env, c"java/lang/HeapProxyCalls")?;
        Ok(Self {
            made: (calls.global()?, calls.static_method(c"madeFresh", c"(Ljava/lang/Object;)V")?),
            put_field: proxy.static_method(c"putField", c"(Ljava/lang/Object;Ljava/lang/Object;I)V")?,
            put_static: proxy.static_method(c"putStatic", c"(Ljava/lang/Object;I)V")?,
            put_element: proxy.static_method(c"putElement", c"(Ljava/lang/Object;ILjava/lang/Object;)V")?,
        })
    }
}

impl Probes {
    fn find(proxy: Class<'_>) -> Result<Self, ProxyError> {
        Ok(Self {
            link: proxy.static_method(c"link", c"()I")?,
            hash_shift: proxy.static_method(c"probeHashShift", c"()I")?,
            lock: proxy.static_method(c"probeLock", c"(JJ)I")?,
            writing: proxy.static_method(c"probeWriting", c"(Ljava/lang/Object;)I")?,
        })
    }
}

impl MirrorMembers {
    fn find(env: Env) -> Result<Self, ProxyError> {
        let class = Class::find(env, c"java/lang/HeapProxyMirrors")?;
        Ok(Self {
            class: class.global()?,
            fields: MirrorFields::find(class)?,
            announce: class.static_method(c"announce", c"(Ljava/lang/Class;)V")?,
            announce_all: class.static_method(c"announceAll", c"([Ljava/lang/Object;)V")?,
        })
    }
}

impl Definitions {
    fn find(env: Env) -> Result<Self, ProxyError> {
        let class = Class::find(env, c"java/lang/HeapProxyClasses")?;
        Ok(Self {
            class: class.global()?,
            on: class.static_field(c"on", c"Z")?,
            link: class.static_method(c"link", c"()V")?,
        })
    }
}

/// Where the hash of a locked object is, unless the object has an inflated monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// In the mark word, as in unlocked objects (lightweight locking, the default from JDK 23 on).
    InPlace,
    /// In the lock record on the stack of the owning thread; the mark word is its address.
    OnStack,
    /// Unknown: hooks ask the VM.
    Unknown,
}

impl Locks {
    /// Name in the trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::InPlace => "mark word",
            Self::OnStack => "stack",
            Self::Unknown => "VM",
        }
    }
}

impl Proxy {
    /// Looks up all members used by this library. Until this has succeeded, the Java half must not be used.
    pub fn find(env: Env) -> Result<Self, ProxyError> {
        let is_plain = |error| match error {
            ProxyError::Missing(_) => ProxyError::NotInstrumented,
            other => other,
        };
        let class = Class::find(env, c"java/lang/HeapProxy").map_err(is_plain)?;
        let thread = Class::find(env, c"java/lang/Thread")?;
        thread.field(c"etPos", c"J").map_err(is_plain)?;
        let platform = Class::find(env, c"java/lang/HeapProxyPlatform")?;
        let release = Class::find(env, c"java/lang/HeapProxyRelease")?;
        // Not called from here, but hooks are compiled into it (`compiled`).
        Class::find(env, c"java/lang/HeapProxyUnsafe")?;
        let at = c"(Ljava/lang/Object;J)Ljava/lang/Object;";
        let is_jdk_8 = bind_unsafe(env, platform).is_some();
        Ok(Self {
            class: class.global()?,
            fields: Fields::find(class)?,
            probes: Probes::find(class)?,
            thread: ThreadFields::find(thread)?,
            hooks: Hooks::find(env, class)?,
            mirrors: MirrorMembers::find(env)?,
            layout_helper: class.static_method(c"layoutHelper", c"(Ljava/lang/Class;)I")?,
            klass: class.static_method(c"klass", c"(Ljava/lang/Class;)J")?,
            peek_hash: class.static_method(c"peekHash", c"(Ljava/lang/Object;)I")?,
            skip_hashes: class.static_method(c"skipHashes", c"(I)V")?,
            word: (platform.global()?, platform.static_method(c"word", c"(Ljava/lang/Object;J)J")?),
            int_at: (platform.global()?, platform.static_method(c"intAt", c"(Ljava/lang/Object;J)I")?),
            reference: (release.global()?, release.static_method(c"reference", at)?),
            definitions: if is_jdk_8 { None } else { Some(Definitions::find(env)?) },
            jdk_events: EventSet::from_bits(
                env.get_static_int(thread.object, thread.static_field(c"etEvents", c"I")?) as u8
            ),
        })
    }

    /// The class itself.
    pub fn class(&self) -> Object<'_> {
        self.class.get()
    }

    /// The events for which the JDK's classes have hooks.
    pub fn jdk_events(&self) -> EventSet {
        self.jdk_events
    }

    /// Makes the VM bind the natives of HeapProxy and HeapProxyClasses to this library. This runs Java code, so the
    /// hooks must be off.
    pub fn link(&self, env: Env) -> Result<(), ProxyError> {
        if env.call_static_int(self.class(), self.probes.link, &[]) != 1 {
            return Err(ProxyError::Natives);
        }
        if let Some(definitions) = &self.definitions {
            env.call_static_void(definitions.class.get(), definitions.link, &[]);
        }
        Ok(())
    }

    /// Whether the JDK can rewrite classes created at run time.
    pub fn can_rewrite(&self) -> bool {
        self.definitions.is_some()
    }

    /// Determines how far the hash is shifted in mark words, and sets it for hooks; `None` if that fails.
    pub fn probe_hash_shift(&self, env: Env) -> Option<i32> {
        let shift = env.call_static_int(self.class(), self.probes.hash_shift, &[]);
        // A failed call returns 0, which is not a valid shift.
        let found = (shift > 0).then_some(shift);
        self.set_long(env, self.fields.hidden, UNLOCKED_BITS);
        self.set_int(env, self.fields.hash_shift, found.unwrap_or(0));
        self.set_int(env, self.fields.hash_mask, if found.is_some() { HASH } else { 0 });
        found
    }

    /// Determines where the hash of a locked object is, and makes hooks read it there. If they cannot, they ask the
    /// VM.
    pub fn probe_locks(&self, env: Env) -> Locks {
        let Some(stack) = stack::bounds() else { return Locks::Unknown };
        let arguments = [jvalue { j: stack.start as i64 }, jvalue { j: stack.end as i64 }];
        match env.call_static_int(self.class(), self.probes.lock, &arguments) {
            1 => {
                self.set_long(env, self.fields.hidden, MONITOR_BIT);
                Locks::InPlace
            }
            2 => Locks::OnStack,
            _ => Locks::Unknown,
        }
    }

    /// Tells hooks the stack bounds of the current thread, whose object is `thread`: a lock record there is its own.
    pub fn set_stack(&self, env: Env, thread: Object, stack: Range<usize>) {
        for (field, address) in self.thread.stack.into_iter().zip([stack.start, stack.end]) {
            env.set_long(thread, field, address as i64);
        }
    }

    /// Makes hooks write ids into mark words from now on, provided that the VM accepts them as hashes before an object
    /// is locked, while it is, and afterwards. False if it does not.
    pub fn write_ids(&self, env: Env, hotspot: &HotSpot, shift: i32) -> bool {
        // The low bits are 001 in a word that holds a hash rather than the address of a lock.
        self.set_long(env, self.fields.unhashed, (HASH as u64) << shift | 7);
        let works = env.frame(4, |env| self.try_writing(env, hotspot)).unwrap_or(false);
        if !works {
            self.set_long(env, self.fields.unhashed, 0);
        }
        works
    }

    /// Makes hooks ask native code for every id.
    pub fn use_tags(&self, env: Env) {
        self.set_int(env, self.fields.hash_mask, 0);
        env.set_static_boolean(self.class(), self.fields.tagged, true);
    }

    fn try_writing(&self, env: Env, hotspot: &HotSpot) -> Option<bool> {
        let object = env.new_byte_array(0)?;
        let id = env.call_static_int(self.class(), self.probes.writing, &[jvalue { l: object.raw() }]) as u32;
        let is_hash = || hotspot.identity_hash(env, object) == id;
        let free = id != 0 && is_hash();
        // A lock taken through JNI is always inflated: the mark word moves to the monitor.
        let locked = env.locked(object, is_hash)?;
        Some(free && locked && is_hash() && self.peek_hash(env, object) == id)
    }

    fn set_int(&self, env: Env, field: StaticField, value: i32) {
        env.set_static_int(self.class(), field, value);
    }

    fn set_long(&self, env: Env, field: StaticField, value: u64) {
        env.set_static_long(self.class(), field, value as i64);
    }

    /// Tells HeapProxy where instance sizes are.
    pub fn set_layout(&self, env: Env, layout: Layout) {
        self.set_long(env, self.fields.klass_offset, layout.klass_offset);
        self.set_long(env, self.fields.layout_offset, layout.layout_helper_offset);
    }

    /// Sets everything that hooks need before they are switched on.
    pub fn set(&self, env: Env, settings: Settings) {
        self.fields.set(env, self.class(), settings);
    }

    /// Tells HeapProxy the offsets of array elements and of fields that the VM itself stores into.
    pub fn set_places(&self, env: Env, arrays: &ArrayLayout, stores: HiddenStores) {
        self.fields.set_places(env, self.class(), arrays, stores);
    }

    /// Number of events that were not written because the thread's stack was full.
    pub fn overflows(&self, env: Env) -> u32 {
        env.get_static_int(self.class(), self.fields.overflows) as u32
    }

    /// Tells HeapProxy where the table of stacks is now, and how large.
    pub fn set_stacks(&self, env: Env, table: u64) {
        self.set_long(env, self.fields.stacks, table);
    }

    /// Switches the hooks on, to write events or to count, or off.
    pub fn switch(&self, env: Env, on: bool) {
        let field = if COUNTS.load(Ordering::Acquire) { self.fields.counting } else { self.fields.on };
        env.set_static_boolean(self.class(), field, on);
        ON.store(on, Ordering::Release);
        if !on {
            self.switch_rewriting(env, false);
        }
    }

    /// Switches the rewriting of classes created at run time on or off. It may be on before the hooks are.
    pub fn switch_rewriting(&self, env: Env, on: bool) {
        if let Some(definitions) = &self.definitions {
            env.set_static_boolean(definitions.class.get(), definitions.on, on);
        }
        DEFINITIONS.store(on, Ordering::Release);
    }

    /// Hook: native code has created an object, which no other thread has seen yet.
    pub fn made(&self, env: Env, object: Object) {
        let (calls, made) = &self.hooks.made;
        env.call_static_void(calls.get(), *made, &[jvalue { l: object.raw() }]);
    }

    /// Hook: native code is about to set an instance field.
    pub fn put_field(&self, env: Env, origin: Object, value: Option<Object>, field: u32) {
        let arguments = [jvalue { l: origin.raw() }, reference(value), jvalue { i: field as i32 }];
        env.call_static_void(self.class(), self.hooks.put_field, &arguments);
    }

    /// Hook: native code is about to set a static field.
    pub fn put_static(&self, env: Env, value: Option<Object>, field: u32) {
        env.call_static_void(self.class(), self.hooks.put_static, &[reference(value), jvalue { i: field as i32 }]);
    }

    /// Hook: native code has set an element of an array.
    pub fn put_element(&self, env: Env, array: Object, index: i32, value: Option<Object>) {
        let arguments = [jvalue { l: array.raw() }, jvalue { i: index }, reference(value)];
        env.call_static_void(self.class(), self.hooks.put_element, &arguments);
    }

    /// The size of instances in bytes; `None` for classes without instances, or if unknown.
    pub fn instance_size(&self, env: Env, class: Object) -> Option<u32> {
        let helper = env.call_static_int(self.class(), self.layout_helper, &[jvalue { l: class.raw() }]);
        // The low bits are a flag: sizes are multiples of 8.
        if helper > 0 { Some(helper as u32 & !7) } else { None }
    }

    /// The address of HotSpot's `Klass` of a class; 0 for primitive types.
    pub fn klass(&self, env: Env, class: Object) -> u64 {
        env.call_static_long(self.class(), self.klass, &[jvalue { l: class.raw() }]) as u64
    }

    /// Eight bytes of an object. `offset` must be a multiple of eight, inside the object.
    pub fn word(&self, env: Env, object: Object, offset: i64) -> u64 {
        let (platform, word) = &self.word;
        env.call_static_long(platform.get(), *word, &[jvalue { l: object.raw() }, jvalue { j: offset }]) as u64
    }

    /// Four bytes of an object.
    pub fn int_at(&self, env: Env, object: Object, offset: i64) -> i32 {
        let (platform, int_at) = &self.int_at;
        env.call_static_int(platform.get(), *int_at, &[jvalue { l: object.raw() }, jvalue { j: offset }])
    }

    /// Tells HeapProxy where mirrors hold what the VM creates for classes.
    pub fn set_mirrors(&self, env: Env, mirrors: Mirrors) {
        self.mirrors.fields.set(env, self.mirrors.class.get(), mirrors);
    }

    /// Records what the VM has put into the mirror of a class that is not initialized.
    pub fn announce_mirror(&self, env: Env, class: Object) {
        env.call_static_void(self.mirrors.class.get(), self.mirrors.announce, &[jvalue { l: class.raw() }]);
    }

    /// Records the resolved references of a class's constant pool.
    pub fn announce_references(&self, env: Env, references: Object) {
        env.call_static_void(self.mirrors.class.get(), self.mirrors.announce_all, &[jvalue { l: references.raw() }]);
    }

    /// The target of the reference at this offset of an object.
    pub fn reference<'a>(&self, env: Env<'a>, object: Object, offset: i64) -> Option<Object<'a>> {
        let (release, reference) = &self.reference;
        env.call_static_object(release.get(), *reference, &[jvalue { l: object.raw() }, jvalue { j: offset }])
    }

    /// The identity hash of an object, 0 if it has none.
    pub fn peek_hash(&self, env: Env, object: Object) -> u32 {
        env.call_static_int(self.class(), self.peek_hash, &[jvalue { l: object.raw() }]) as u32
    }

    /// Makes the VM draw that many hashes.
    pub fn skip_hashes(&self, env: Env, count: i32) {
        env.call_static_void(self.class(), self.skip_hashes, &[jvalue { i: count }]);
    }

    /// Takes the unused ids from a thread.
    pub fn take_ids(&self, env: Env, thread: Object) -> Block {
        let ids = env.get_long(thread, self.thread.ids);
        env.set_long(thread, self.thread.ids, 0);
        Block::from_bits(ids)
    }

    /// Takes the chunk from a thread. Returns the address of its next event; 0 if the thread has no chunk.
    pub fn take_position(&self, env: Env, thread: Object) -> usize {
        // Without an end address there is no chunk, and the position is in memory that is never read.
        let has_buffer = env.get_long(thread, self.thread.end) != 0;
        let position = if has_buffer { env.get_long(thread, self.thread.position) } else { 0 };
        env.set_long(thread, self.thread.position, 0);
        env.set_long(thread, self.thread.end, 0);
        position as usize
    }
}

/// For JDK 8, where HeapProxy cannot obtain its Unsafe by itself. `None` on later releases, where it can.
fn bind_unsafe(env: Env, platform: Class<'_>) -> Option<()> {
    let field = env.static_field(platform.object, c"unsafe", c"Lsun/misc/Unsafe;")?;
    let class = env.find_class(c"sun/misc/Unsafe")?;
    let value = env.get_static_object(class, env.static_field(class, c"theUnsafe", c"Lsun/misc/Unsafe;")?)?;
    env.set_static_object(platform.object, field, value);
    Some(())
}

fn reference(object: Option<Object>) -> jvalue {
    jvalue { l: object.map_or(std::ptr::null_mut(), |object| object.raw()) }
}
