//! State of the process: the agent's function table, the enabled events, and the state of the replay.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use et_jvmpi_interface::abi::{Details, Interface, event};
pub use et_jvmpi_interface::session::Phase;
use et_jvmpi_interface::session::Session;
use jni_sys::{JNIEnv, jint};

use crate::catalogue::{Catalogue, Class};
use crate::heap::Heap;
use crate::left_out::LeftOut;
use crate::threads::Threads;
use crate::vm;

static HOST: OnceLock<Host> = OnceLock::new();

/// See the module. No lock in here is held while the agent is called.
#[derive(Debug)]
pub struct Host {
    pub session: Session,
    /// How often the agent has said `DisableGC` more than `EnableGC`.
    pub gc_disabled: AtomicI32,
    /// Between `GC_START` and `GC_FINISH`.
    is_collecting: AtomicBool,
    is_at_end: AtomicBool,
    /// Threads that another thread of the agent's holds suspended.
    suspended: AtomicI32,
    resumed: (Mutex<()>, Condvar),
    pub has_collector: bool,
    pub catalogue: Catalogue,
    threads: Mutex<Threads>,
    heap: Mutex<Heap>,
    pub left_out: LeftOut,
}

impl Host {
    /// The state before any event.
    pub fn new(interface: Interface, catalogue: Catalogue, heap: Heap, has_collector: bool) -> Self {
        let session = Session::default();
        session.offer(interface);
        Self {
            session,
            gc_disabled: AtomicI32::new(0),
            is_collecting: AtomicBool::new(false),
            is_at_end: AtomicBool::new(false),
            suspended: AtomicI32::new(0),
            resumed: (Mutex::new(()), Condvar::new()),
            has_collector,
            catalogue,
            threads: Mutex::default(),
            heap: Mutex::new(heap),
            left_out: LeftOut::default(),
        }
    }

    /// Whether `JVM_SHUT_DOWN` is being reported or has been.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end.load(Ordering::Relaxed)
    }

    /// Switches an event, which is one of the interface's.
    pub fn set_enabled(&self, kind: jint, on: bool) {
        if on {
            self.left_out.enabled(kind);
        }
        self.session.set_enabled(kind, on);
    }

    /// Whether an event should be reported now.
    #[inline]
    pub fn wants(&self, kind: jint) -> bool {
        self.session.is_enabled(kind)
    }

    pub fn threads(&self) -> MutexGuard<'_, Threads> {
        lock(&self.threads)
    }

    pub fn heap(&self) -> MutexGuard<'_, Heap> {
        lock(&self.heap)
    }

    /// Reports an event in that thread, if it is enabled.
    pub fn tell(&self, env: *mut JNIEnv, kind: jint, details: Details) {
        if self.wants(kind) {
            self.wait_until_resumed();
            match kind {
                event::GC_START => self.is_collecting.store(true, Ordering::Relaxed),
                event::GC_FINISH => self.is_collecting.store(false, Ordering::Relaxed),
                event::JVM_SHUT_DOWN => self.is_at_end.store(true, Ordering::Relaxed),
                _ => {}
            }
            vm::play(env);
            self.session.notify(env, kind, details);
        }
    }

    /// Reports an event that the agent has requested, from within its request.
    pub fn tell_requested(&self, kind: jint, details: Details) {
        self.session.notify(vm::current(), kind | event::REQUESTED, details);
    }

    /// Reports a class and its object, unless they have been or are not wanted.
    pub fn tell_class(&self, env: *mut JNIEnv, class: &Class) {
        if self.wants(event::CLASS_LOAD) && class.is_first_time() {
            class.with_event(|details| self.tell(env, event::CLASS_LOAD, details));
        }
        self.tell_class_object(env, class);
    }

    /// Reports the object of a class, likewise.
    pub fn tell_class_object(&self, env: *mut JNIEnv, class: &Class) {
        if !self.wants(event::OBJECT_ALLOC) || !class.is_new_object() {
            return;
        }
        let of_classes = self.catalogue.of_classes();
        if let Some(of_classes) = of_classes.as_ref().filter(|of_classes| of_classes.id != class.id) {
            self.tell_class(env, of_classes);
        }
        let obj_alloc = class.object(of_classes.map_or(0, |of_classes| of_classes.id));
        self.tell(env, event::OBJECT_ALLOC, Details { obj_alloc });
    }

    /// Reports the class with this index.
    pub fn tell_class_at(&self, env: *mut JNIEnv, index: u32) {
        if let Some(class) = self.catalogue.get(index) {
            self.tell_class(env, &class);
        }
    }

    /// Another thread of the agent's holds one more thread suspended, or one less.
    pub fn suspended(&self, change: i32) {
        if self.suspended.fetch_add(change, Ordering::AcqRel) + change == 0 {
            drop(lock(&self.resumed.0));
            self.resumed.1.notify_all();
        }
    }

    /// A single thread plays all threads: while any is suspended, it waits. Not during a collection, when the agent
    /// holds its locks.
    #[inline]
    fn wait_until_resumed(&self) {
        if self.suspended.load(Ordering::Acquire) > 0 && !self.is_collecting.load(Ordering::Relaxed) {
            let mut guard = lock(&self.resumed.0);
            while self.suspended.load(Ordering::Acquire) > 0 {
                guard = self.resumed.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The host; `None` until it is set.
pub fn get() -> Option<&'static Host> {
    HOST.get()
}

/// There is one in a process, for the agent has no word for another.
pub fn set(host: Host) -> &'static Host {
    HOST.get_or_init(|| host)
}

/// A lock that a panic does not poison.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
