//! What the whole process knows: the agent's table, what it has enabled, and the state of the replay.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use et_jvmpi_interface::abi::{Details, Event, Interface, event};
use et_names::escape::OneLine;
use jni_sys::{JNIEnv, jint};

use crate::catalogue::{Catalogue, Class};
use crate::heap::Heap;
use crate::left_out::LeftOut;
use crate::threads::Threads;
use crate::vm;

static HOST: OnceLock<Host> = OnceLock::new();

/// How far the replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The agent may say what it wants.
    Loading = 0,
    /// Events are told.
    Live = 1,
    /// `JVM_SHUT_DOWN` was told.
    Ended = 2,
}

/// See the module. No lock in here is held while the agent is called.
#[derive(Debug)]
pub struct Host {
    interface: AtomicPtr<Interface>,
    enabled: AtomicU64,
    phase: AtomicU8,
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
    /// Before anything is told.
    pub fn new(interface: Interface, catalogue: Catalogue, heap: Heap, has_collector: bool) -> Self {
        Self {
            interface: AtomicPtr::new(Box::leak(Box::new(interface))),
            enabled: AtomicU64::new(0),
            phase: AtomicU8::new(Phase::Loading as u8),
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

    pub fn interface(&self) -> *mut Interface {
        self.interface.load(Ordering::Acquire)
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Loading,
            1 => Phase::Live,
            _ => Phase::Ended,
        }
    }

    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// `JVM_SHUT_DOWN` is being told, or was.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end.load(Ordering::Relaxed)
    }

    /// Switches an event, which is one of the interface's.
    pub fn set_enabled(&self, kind: jint, on: bool) {
        if on {
            self.left_out.enabled(kind);
            self.enabled.fetch_or(1 << kind, Ordering::Relaxed);
        } else {
            self.enabled.fetch_and(!(1 << kind), Ordering::Relaxed);
        }
    }

    /// Whether an event is to be told now.
    #[inline]
    pub fn wants(&self, kind: jint) -> bool {
        self.enabled.load(Ordering::Relaxed) & 1 << kind != 0
    }

    pub fn threads(&self) -> MutexGuard<'_, Threads> {
        lock(&self.threads)
    }

    pub fn heap(&self) -> MutexGuard<'_, Heap> {
        lock(&self.heap)
    }

    /// Tells an event of that thread, if it is enabled.
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
            self.send(env, kind, details);
        }
    }

    /// Tells an event that the agent has requested, from inside its request.
    pub fn tell_requested(&self, kind: jint, details: Details) {
        self.send(vm::current(), kind | event::REQUESTED, details);
    }

    #[allow(unsafe_code, reason = "calls the agent")]
    fn send(&self, env: *mut JNIEnv, kind: jint, details: Details) {
        let interface = self.interface();
        // SAFETY: the table lives for ever; the agent puts its function there.
        let Some(notify) = (unsafe { (&raw const (*interface).notify_event).read_volatile() }) else { return };
        let mut event = Event { event_type: kind, env_id: env, u: details };
        // SAFETY: the agent's function, with an event that lives until it returns.
        unsafe { notify(&mut event) };
    }

    /// Tells of a class, unless that was done or nobody wants it.
    pub fn tell_class(&self, env: *mut JNIEnv, class: &Class) {
        if self.wants(event::CLASS_LOAD) && class.is_first_time() {
            class.with_event(|details| self.tell(env, event::CLASS_LOAD, details));
        }
    }

    /// As above, by its index.
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

    /// One thread plays all others: while any is suspended it stands still. Not in a collection, in which the agent has its locks.
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

/// The host, once it is set.
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

/// A line on standard error, in one piece. If nobody reads it there is nobody to tell.
pub fn say(line: fmt::Arguments<'_>) {
    let line = format!("et-jvmpi: {}\n", OneLine(line));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
