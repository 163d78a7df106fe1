//! Elements for events.

use std::time::Duration;

use crate::Element;

/// An object was allocated.
#[derive(Clone, Copy, Debug)]
pub struct ObjectAlloc {
    pub thread: Option<u32>,
    pub at: Duration,
    pub object: u64,
    pub size: Option<u64>,
    pub is_array: bool,
    pub class: u64,
    pub method: Option<u64>,
    pub line: Option<u32>,
}

impl ObjectAlloc {
    pub fn element(&self) -> String {
        Element::new("objAlloc")
            .maybe("threadIdRef", self.thread)
            .time(self.at)
            .number("objId", self.object)
            .maybe("size", self.size)
            .number("isArray", self.is_array)
            .number("classIdRef", self.class)
            .maybe("methodIdRef", self.method)
            .maybe("lineNumber", self.line)
            .end()
    }
}

/// An object was freed.
pub fn object_free(id: u64, at: Duration) -> String {
    Element::new("objFree").number("objIdRef", id).time(at).end()
}

/// A collection has stopped the program.
pub fn gc_start(at: Duration) -> String {
    Element::new("gcStart").time(at).end()
}

/// Heap usage in bytes after a collection.
#[derive(Clone, Copy, Debug)]
pub struct HeapSizes {
    pub used: u64,
    pub committed: u64,
}

/// A collection has ended.
pub fn gc_finish(at: Duration, sizes: Option<HeapSizes>) -> String {
    Element::new("gcFinish")
        .time(at)
        .maybe("usedObjectSpace", sizes.map(|sizes| sizes.used))
        .maybe("totalObjectSpace", sizes.map(|sizes| sizes.committed))
        .end()
}

pub fn thread_end(id: u32, at: Duration) -> String {
    Element::new("threadEnd").number("threadIdRef", id).time(at).end()
}

/// An event in a method.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub thread: Option<u32>,
    pub at: Duration,
    /// Number of entries and exits so far.
    pub ticket: u64,
    pub method: u64,
    /// Of an entry or an exit the receiver, else the exception.
    pub object: Option<u64>,
}

/// `methodEntry`, `methodExit`, `throw` or `catch`.
pub fn call(name: &str, call: &Call) -> String {
    Element::new(name)
        .maybe("threadIdRef", call.thread)
        .time(call.at)
        .number("ticket", call.ticket)
        .number("methodIdRef", call.method)
        .maybe("objIdRef", call.object)
        .end()
}

fn of_monitor(name: &str, thread: u32, at: Duration, object: u64) -> Element {
    Element::new(name).number("threadIdRef", thread).time(at).number("objIdRef", object)
}

/// A thread wants a monitor that another has.
pub fn contended_enter(thread: u32, at: Duration, object: u64, owner: Option<u32>) -> String {
    of_monitor("monContendedEnter", thread, at, object).maybe("threadOwner", owner).end()
}

/// The thread has entered the monitor.
pub fn contended_entered(thread: u32, at: Duration, object: u64) -> String {
    of_monitor("monContendedEntered", thread, at, object).end()
}

/// A thread waits with a timeout in milliseconds; 0: none.
pub fn wait(thread: u32, at: Duration, object: u64, timeout_ms: u64) -> String {
    of_monitor("monWait", thread, at, object).number("timeout", timeout_ms).end()
}

/// A wait has ended after this many milliseconds.
pub fn waited(thread: u32, at: Duration, object: u64, waited_ms: u64) -> String {
    of_monitor("monWaited", thread, at, object).number("timeout", waited_ms).end()
}
