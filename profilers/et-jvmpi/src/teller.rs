//! Turns records into events, in an order that agents can follow: classes before their members, threads before their
//! actions.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use et_format::event::{ObjectHash, Ticket};
use et_jvmpi_interface::abi::{
    DeleteArena, Details, GcInfo, MethodCall, MethodEntry2, NewArena, ObjAlloc, ObjFree, ObjMove, ThreadStart, event,
};
use et_names::MethodId;
use et_reader::record::{Alloc, AllocKind, ObjectId, Record, ThreadId};
use et_reader::source::Source;
use jni_sys::{JNIEnv, jint};
use rustc_hash::FxHashMap;

use crate::catalogue::{self, Class, method_id};
use crate::heap::Object;
use crate::host::{Host, Phase};
use crate::threads::ThreadIndex;

const NOTHING: Details = Details { nothing: () };

/// Classes that agents must know before all others.
const FIRST: [&str; 4] = ["java/lang/Object", "java/lang/Class", "java/lang/Thread", "java/lang/String"];

/// Continuations of virtual threads count from there.
const FIRST_VIRTUAL: u32 = 1 << 31;

/// Reports the records of a trace.
#[derive(Debug)]
pub struct Teller {
    host: &'static Host,
    source: Arc<Source>,
    /// The class of each method that was met.
    methods: FxHashMap<MethodId, Option<Arc<Class>>>,
    /// The thread of the last action.
    current: ThreadIndex,
    /// When threads end, and how many of them have.
    ends: Vec<(Ticket, ThreadId)>,
    ended: usize,
    /// Threads by the id that their `Thread` object has in events.
    objects_of_threads: FxHashMap<u64, Vec<ThreadId>>,
    /// Whether `JVM_INIT_DONE` was reported.
    has_begun: bool,
}

impl Teller {
    pub fn new(host: &'static Host, source: Arc<Source>) -> Self {
        let (mut ends, mut objects): (Vec<_>, FxHashMap<u64, Vec<ThreadId>>) = Default::default();
        let all = source.trace().map_or(&[][..], |trace| trace.threads.as_slice());
        for thread in all {
            ends.extend(thread.end.map(|end| (end, ThreadId(thread.index))));
            if thread.object.0 != 0 {
                objects.entry(thread.object.0.into()).or_default().push(ThreadId(thread.index));
            }
        }
        ends.sort_unstable();
        let main = all.iter().map(|thread| thread.index).min().unwrap_or(1);
        let mut teller = Self {
            host,
            source,
            methods: FxHashMap::default(),
            current: ThreadIndex::default(),
            ends,
            ended: 0,
            objects_of_threads: objects,
            has_begun: false,
        };
        teller.current = teller.thread(ThreadId(main));
        teller
    }

    /// Reports the first events.
    pub fn begin(&mut self) {
        self.host.session.enter(Phase::Live);
        self.arena(catalogue::ARENA, "classes");
        for class in FIRST.into_iter().filter_map(|name| self.host.catalogue.by_name(name)) {
            self.host.tell_class_at(self.env(), class);
        }
    }

    fn env_of(&self, thread: ThreadIndex) -> *mut JNIEnv {
        self.host.threads().at(thread).env()
    }

    fn env(&self) -> *mut JNIEnv {
        self.env_of(self.current)
    }

    fn thread(&self, thread: ThreadId) -> ThreadIndex {
        self.host.threads().of(thread, || name_of(&self.source, thread))
    }

    /// The thread does something: it is known from here on.
    fn by(&mut self, thread: ThreadId) -> ThreadIndex {
        let index = self.thread(thread);
        self.current = index;
        self.announce(index);
        index
    }

    fn announce(&mut self, index: ThreadIndex) {
        let (env, name, object) = {
            let mut threads = self.host.threads();
            let thread = threads.at(index);
            if std::mem::replace(&mut thread.is_announced, true) {
                return;
            }
            (thread.env(), thread.name.clone(), thread.object)
        };
        if self.host.wants(event::THREAD_START) {
            let thread_id = self.host.heap().id_of(object);
            self.host.tell(env, event::THREAD_START, start_of(&name, thread_id, env));
        }
    }

    /// Reports the threads that existed at the start before the program continues.
    fn begin_program(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let all = self.source.trace().map_or(&[][..], |trace| trace.threads.as_slice());
        let there: Vec<u32> = all.iter().filter(|thread| thread.from_start).map(|thread| thread.index).collect();
        for index in there {
            let thread = self.thread(ThreadId(index));
            self.announce(thread);
        }
        self.announce(self.current);
        self.host.tell(self.env(), event::JVM_INIT_DONE, NOTHING);
    }

    /// Any record but births and deaths.
    pub fn record(&mut self, record: &Record, ticket: Option<Ticket>) {
        self.until(ticket);
        match *record {
            Record::Entry { method, receiver, thread } => self.entered(method, receiver, thread),
            Record::Exit { method, thread, .. } | Record::ExitThrow { method, thread, .. } => self.left(method, thread),
            Record::Alloc(_)
            | Record::Update { .. }
            | Record::Throw { .. }
            | Record::Handle { .. }
            | Record::Death { .. }
            | Record::Use { .. } => {}
        }
    }

    fn class_of(&mut self, method: MethodId) -> Option<Arc<Class>> {
        let host = self.host;
        let known = self.methods.entry(method).or_insert_with(|| host.catalogue.of_method(method)).clone();
        if known.is_none() {
            host.left_out.methods.fetch_add(1, Ordering::Relaxed);
        }
        known
    }

    fn entered(&mut self, method: MethodId, receiver: ObjectId, thread: ThreadId) {
        self.begin_program();
        let Some(class) = self.class_of(method) else { return };
        let thread = self.by(thread);
        let env = {
            let mut threads = self.host.threads();
            let thread = threads.at(thread);
            thread.frames.push(method);
            thread.steps += 1;
            thread.env()
        };
        // Methods on a stack must be known before the agent requests the stack.
        self.host.tell_class(env, &class);
        let method_id = method_id(method);
        self.host.tell(env, event::METHOD_ENTRY, Details { method: MethodCall { method_id } });
        if self.host.wants(event::METHOD_ENTRY2) {
            let obj_id = if receiver.is_null() { 0 } else { self.host.heap().id_of(receiver) };
            self.host.tell(env, event::METHOD_ENTRY2, Details { method_entry2: MethodEntry2 { method_id, obj_id } });
        }
    }

    fn left(&mut self, method: MethodId, thread: ThreadId) {
        if self.class_of(method).is_none() {
            return;
        }
        let index = self.by(thread);
        let env = {
            let mut threads = self.host.threads();
            let thread = threads.at(index);
            if thread.frames.last() != Some(&method) {
                return;
            }
            thread.steps += 1;
            thread.env()
        };
        self.host.tell(env, event::METHOD_EXIT, Details { method: MethodCall { method_id: method_id(method) } });
        let is_empty = {
            let mut threads = self.host.threads();
            let frames = &mut threads.at(index).frames;
            frames.pop();
            frames.is_empty()
        };
        // There is no other sign that a virtual thread has ended, and there may be millions.
        if is_empty && thread.0 >= FIRST_VIRTUAL {
            self.end(index);
        }
    }

    /// An object is born, and has that id.
    pub fn born(&mut self, alloc: &Alloc, id: usize, arena: jint, ticket: Option<Ticket>) {
        self.until(ticket);
        if alloc.kind != AllocKind::Initial {
            self.begin_program();
        }
        let thread = match alloc.thread {
            // No thread, or the VM: reported in the thread of the next action.
            ThreadId(0) => self.someone(),
            thread => {
                let index = self.thread(thread);
                self.current = index;
                index
            }
        };
        let known = self.threads_with(alloc.object);
        let (env, is_own) = {
            let mut threads = self.host.threads();
            for of in &known {
                let index = threads.of(*of, || name_of(&self.source, *of));
                if !threads.at(index).is_announced {
                    threads.at(index).object = alloc.object;
                }
            }
            let thread = threads.at(thread);
            (thread.env(), !thread.is_announced && thread.object == alloc.object)
        };
        // A thread that attaches itself makes its own object before it is one.
        if self.has_begun && !is_own {
            self.announce(thread);
        }
        if let Some(class) = self.mirrored(alloc, ticket) {
            let object = Object { object: alloc.object, ty: alloc.ty, size: alloc.size, arena: catalogue::ARENA };
            self.host.heap().insert(class.id, object);
            // Of classes of arrays agents hear when they ask.
            if class.is_array() {
                self.host.tell_class_object(env, &class);
            } else {
                self.host.tell_class(env, &class);
            }
            return;
        }
        let shape = self.host.catalogue.shape(alloc.ty);
        let mut class_id = 0;
        if let Some(class) = shape.class.and_then(|class| self.host.catalogue.get(class)) {
            self.host.tell_class(env, &class);
            class_id = class.id;
        }
        self.host.heap().insert(id, Object { object: alloc.object, ty: alloc.ty, size: alloc.size, arena });
        if self.host.wants(event::OBJECT_ALLOC) {
            self.host.threads().at(thread).site = self.site(alloc);
            let size = jint::try_from(alloc.size).unwrap_or(jint::MAX);
            let obj_alloc = ObjAlloc { arena_id: arena, class_id, is_array: shape.kind, size, obj_id: id };
            self.host.tell(env, event::OBJECT_ALLOC, Details { obj_alloc });
            self.host.threads().at(thread).site = None;
        }
        if self.has_begun && is_own {
            self.announce(thread);
        }
    }

    /// The class whose object, for the agent, is this mirror.
    fn mirrored(&self, alloc: &Alloc, ticket: Option<Ticket>) -> Option<Arc<Class>> {
        let trace = self.source.trace()?;
        if trace.types.get_class("java/lang/Class") != Some(alloc.ty) {
            return None;
        }
        let hash = ObjectHash(hash_of(alloc.object)?);
        let class = self.host.catalogue.of_mirror(hash, ticket.unwrap_or(Ticket(u64::MAX)))?;
        class.takes_mirror().then_some(class)
    }

    /// The threads whose `java.lang.Thread` an object may be.
    fn threads_with(&self, object: ObjectId) -> Vec<ThreadId> {
        hash_of(object).and_then(|hash| self.objects_of_threads.get(&hash.into())).cloned().unwrap_or_default()
    }

    /// Method and line of an allocation.
    fn site(&self, alloc: &Alloc) -> Option<(MethodId, jint)> {
        let (table, site) = self.source.trace()?.names.site(alloc.site).filter(|_| alloc.site.0 != 0)?;
        let line = jint::try_from(site.line).ok().filter(|line| *line > 0)?;
        Some((table.method_id(site.method), line))
    }

    /// A thread that the agent knows, the current if it can be.
    fn someone(&mut self) -> ThreadIndex {
        let mut threads = self.host.threads();
        if self.has_begun && !threads.at(self.current).is_announced {
            self.current = threads.announced().unwrap_or(self.current);
        }
        self.current
    }

    /// Threads that have ended by then.
    fn until(&mut self, ticket: Option<Ticket>) {
        while let Some(&(end, thread)) = self.ends.get(self.ended)
            && ticket.is_some_and(|ticket| end < ticket)
        {
            self.ended += 1;
            let found = self.host.threads().find(thread);
            if let Some(index) = found {
                self.end(index);
            }
        }
    }

    fn end(&mut self, index: ThreadIndex) {
        let (env, is_announced, frames) = {
            let mut threads = self.host.threads();
            let thread = threads.at(index);
            (thread.env(), thread.is_announced, thread.frames.clone())
        };
        if is_announced {
            for method in frames.into_iter().rev() {
                let method_id = method_id(method);
                self.host.tell(env, event::METHOD_EXIT, Details { method: MethodCall { method_id } });
                self.host.threads().at(index).frames.pop();
            }
            self.host.tell(env, event::THREAD_END, NOTHING);
        }
        self.host.threads().end(index);
    }

    /// Reports the start of a collection during an allocation in that thread. Agents expect the thread even before
    /// `JVM_INIT_DONE`.
    pub fn collection_begins(&mut self, thread: Option<ThreadId>) {
        match thread.filter(|thread| thread.0 != 0) {
            Some(thread) => _ = self.by(thread),
            None => {
                self.current = self.someone();
                self.announce(self.current);
            }
        }
        self.host.tell(self.env(), event::GC_START, NOTHING);
    }

    /// Reports the end of a collection.
    pub fn collection_ends(&mut self, objects: u64, bytes: u64, total: u64) {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let gc_info = GcInfo {
            used_objects: number(objects),
            used_object_space: number(bytes),
            total_object_space: number(total.max(bytes)),
        };
        self.host.tell(self.env(), event::GC_FINISH, Details { gc_info });
    }

    /// Reports a freed object.
    pub fn freed(&mut self, id: usize) {
        let is_known = self.host.heap().remove(id).is_some();
        if is_known {
            self.current = self.someone();
            self.host.tell(self.env(), event::OBJECT_FREE, Details { obj_free: ObjFree { obj_id: id } });
        }
    }

    /// Reports a moved object.
    pub fn moved(&mut self, id: usize, arena: jint, new_id: usize, new_arena: jint) {
        let is_known = self.host.heap().move_to(id, new_id, new_arena);
        if !is_known {
            return;
        }
        let obj_move = ObjMove { arena_id: arena, obj_id: id, new_arena_id: new_arena, new_obj_id: new_id };
        self.host.tell(self.env(), event::OBJECT_MOVE, Details { obj_move });
    }

    /// Reports a new arena.
    pub fn arena(&mut self, arena: jint, name: &str) {
        let name = CString::new(name).unwrap_or_default();
        let new_arena = NewArena { arena_id: arena, arena_name: name.as_ptr() };
        self.host.tell(self.env(), event::ARENA_NEW, Details { new_arena });
    }

    /// An arena goes, with all that is in it.
    pub fn arena_deleted(&mut self, arena: jint) {
        self.host.heap().delete_arena(arena);
        let delete_arena = DeleteArena { arena_id: arena };
        self.host.tell(self.env(), event::ARENA_DELETE, Details { delete_arena });
    }

    /// The program has come to its end.
    pub fn finish(&mut self) {
        self.begin_program();
        self.until(Some(Ticket(u64::MAX)));
        self.current = self.someone();
        self.announce(self.current);
        self.host.tell(self.env(), event::JVM_SHUT_DOWN, NOTHING);
        self.host.session.enter(Phase::Ended);
    }
}

/// The hash that records name an object by. Those that are made up have none.
fn hash_of(object: ObjectId) -> Option<u32> {
    (object.0 < 1 << 62).then_some((object.0 & 0x7fff_ffff) as u32)
}

fn name_of(source: &Source, thread: ThreadId) -> CString {
    let known = source.trace().and_then(|trace| trace.thread_name(thread.0)).unwrap_or_default();
    let name = match known {
        "" if thread.0 >= FIRST_VIRTUAL => format!("virtual thread {}", thread.0 - FIRST_VIRTUAL),
        "" => format!("thread {}", thread.0),
        name => name.replace('\0', ""),
    };
    CString::new(name).unwrap_or_default()
}

/// Data of `THREAD_START`. A trace does not contain thread groups.
pub fn start_of(name: &CString, thread_id: usize, env: *mut JNIEnv) -> Details {
    Details {
        thread_start: ThreadStart {
            thread_name: name.as_ptr(),
            group_name: c"main".as_ptr(),
            parent_name: c"system".as_ptr(),
            thread_id,
            thread_env_id: env,
        },
    }
}
