//! The threads: those of the trace, and the agent's own.

use std::ffi::{CString, c_void};

use et_names::MethodId;
use et_reader::record::{ObjectId, ThreadId};
use jni_sys::{JNIEnv, jint};
use rustc_hash::FxHashMap;

use crate::vm;

/// A thread as the agent sees it.
#[derive(Debug, Default)]
pub struct Thread {
    /// Its `JNIEnv`, which another thread may get once this one has ended.
    env: usize,
    pub name: CString,
    /// Its `java.lang.Thread`; null if that was not made yet, or is not known.
    pub object: ObjectId,
    /// Whether `THREAD_START` was reported.
    pub is_announced: bool,
    /// Another thread of the agent's holds it suspended.
    pub is_suspended: bool,
    /// The agent's thread-local storage.
    pub storage: usize,
    /// The methods that it is in, outermost first.
    pub frames: Vec<MethodId>,
    /// Where it makes an object just now.
    pub site: Option<(MethodId, jint)>,
    /// Entries and exits so far: its clock.
    pub steps: u64,
    /// How many there were when it was suspended last, and whether there had been any since the time before.
    seen: u64,
    pub has_run: bool,
}

impl Thread {
    pub fn env(&self) -> *mut JNIEnv {
        self.env as *mut JNIEnv
    }

    /// It is looked at, or suspended.
    pub fn look(&mut self) {
        self.has_run = self.steps != self.seen;
        self.seen = self.steps;
    }

    pub fn storage(&self) -> *mut c_void {
        self.storage as *mut c_void
    }
}

/// A thread, by its place in [`Threads`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadIndex(usize);

#[derive(Debug, Default)]
pub struct Threads {
    all: Vec<Thread>,
    of_trace: FxHashMap<ThreadId, ThreadIndex>,
    by_env: FxHashMap<usize, ThreadIndex>,
    unused: Vec<ThreadIndex>,
}

impl Threads {
    /// Adds a thread created by the agent.
    pub fn add(&mut self, name: CString) -> ThreadIndex {
        let index = self.unused.pop().unwrap_or_else(|| {
            let index = ThreadIndex(self.all.len());
            let env = vm::new_env() as usize;
            self.all.push(Thread { env, ..Thread::default() });
            self.by_env.insert(env, index);
            index
        });
        let thread = self.at(index);
        *thread = Thread { env: thread.env, is_suspended: thread.is_suspended, name, ..Thread::default() };
        index
    }

    /// That thread of the trace, made with that name if it is new.
    pub fn of(&mut self, thread: ThreadId, name: impl FnOnce() -> CString) -> ThreadIndex {
        if let Some(&known) = self.of_trace.get(&thread) {
            return known;
        }
        let index = self.add(name());
        self.of_trace.insert(thread, index);
        index
    }

    /// That thread of the trace, if it is there.
    pub fn find(&self, thread: ThreadId) -> Option<ThreadIndex> {
        self.of_trace.get(&thread).copied()
    }

    pub fn at(&mut self, index: ThreadIndex) -> &mut Thread {
        &mut self.all[index.0]
    }

    pub fn of_env(&mut self, env: *mut JNIEnv) -> Option<&mut Thread> {
        let index = *self.by_env.get(&(env as usize))?;
        Some(self.at(index))
    }

    /// The thread with that `java.lang.Thread`.
    pub fn of_object(&self, object: ObjectId) -> Option<&Thread> {
        self.all.iter().find(|thread| !object.is_null() && thread.object == object && thread.is_announced)
    }

    /// The first that was announced and has not ended.
    pub fn announced(&self) -> Option<ThreadIndex> {
        self.all.iter().position(|thread| thread.is_announced).map(ThreadIndex)
    }

    /// It has ended: another gets its `JNIEnv`.
    pub fn end(&mut self, index: ThreadIndex) {
        let thread = self.at(index);
        *thread = Thread { env: thread.env, is_suspended: thread.is_suspended, ..Thread::default() };
        self.of_trace.retain(|_, there| *there != index);
        self.unused.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_leaves_its_env_to_the_next() {
        let mut threads = Threads::default();
        let one = threads.of(ThreadId(1), || c"one".to_owned());
        let env = threads.at(one).env();
        threads.at(one).storage = 7;
        threads.at(one).is_announced = true;
        assert_eq!(threads.of(ThreadId(1), || unreachable!()), one);
        assert_eq!(threads.announced(), Some(one));
        threads.end(one);
        assert_eq!((threads.find(ThreadId(1)), threads.announced()), (None, None));
        let two = threads.of(ThreadId(2), || c"two".to_owned());
        assert_eq!((threads.at(two).env(), threads.at(two).storage), (env, 0));
        assert_eq!(threads.of_env(env).unwrap().name.as_c_str(), c"two");
    }

    #[test]
    fn a_thread_has_run_if_it_has_gone_on() {
        let mut thread = Thread { steps: 3, ..Thread::default() };
        thread.look();
        assert!(thread.has_run);
        thread.look();
        assert!(!thread.has_run);
    }
}
