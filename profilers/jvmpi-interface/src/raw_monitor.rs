//! Raw monitors: re-entrant, for threads that the VM does not know as well, and no `Thread.interrupt` ends a wait.

use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use jni_sys::jint;

use crate::abi::{RawMonitorEvent, event};

/// A raw monitor of JVMPI: reentrant, with wait and notify.
#[derive(Debug)]
pub struct RawMonitor {
    pub name: CString,
    state: Mutex<State>,
    entry: Condvar,
    notified: Condvar,
}

#[derive(Debug, Default)]
struct State {
    owner: u64,
    owner_env: usize,
    count: u32,
    notifications: u64,
    entering: Vec<usize>,
    waiting: Vec<usize>,
}

/// State of a monitor for a dump; threads are `JNIEnv`s, or 0 for a thread that is not attached.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub name: CString,
    pub id: usize,
    pub owner: usize,
    pub count: u32,
    pub entering: Vec<usize>,
    pub waiting: Vec<usize>,
}

/// They live for ever: agents use them after they have destroyed them.
static ALL: RwLock<Vec<&'static RawMonitor>> = RwLock::new(Vec::new());

fn all() -> RwLockReadGuard<'static, Vec<&'static RawMonitor>> {
    ALL.read().unwrap_or_else(PoisonError::into_inner)
}

fn change_all() -> RwLockWriteGuard<'static, Vec<&'static RawMonitor>> {
    ALL.write().unwrap_or_else(PoisonError::into_inner)
}

fn current_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// What the host provides to raw monitors.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// The `JNIEnv` of the current thread; 0 for one that the VM does not know.
    pub current_env: fn() -> usize,
    /// Reports contention on the current thread.
    pub tell: fn(jint, RawMonitorEvent),
}

static AROUND: OnceLock<Around> = OnceLock::new();

/// From now on threads have `JNIEnv`s, and contention is reported. To be called once.
pub fn are_in(around: Around) {
    AROUND.get_or_init(|| around);
}

fn current_env() -> usize {
    AROUND.get().map_or(0, |around| (around.current_env)())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(list: &mut Vec<usize>, env: usize) {
    if let Some(at) = list.iter().position(|there| *there == env) {
        list.swap_remove(at);
    }
}

impl RawMonitor {
    /// Creates a monitor that is never freed.
    pub fn create(name: CString) -> &'static Self {
        let monitor: &'static Self = Box::leak(Box::new(Self {
            name,
            state: Mutex::default(),
            entry: Condvar::new(),
            notified: Condvar::new(),
        }));
        change_all().push(monitor);
        monitor
    }

    /// The one that the agent knows by that address.
    pub fn at(address: *mut c_void) -> Option<&'static Self> {
        all().iter().copied().find(|monitor| std::ptr::eq(std::ptr::from_ref(*monitor).cast(), address))
    }

    /// Removes it from dumps.
    pub fn destroy(&'static self) {
        change_all().retain(|monitor| !std::ptr::eq(*monitor, self));
    }

    /// Enters; waits if another thread is in.
    pub fn enter(&'static self) {
        let (me, env) = (current_thread(), current_env());
        {
            let mut state = lock(&self.state);
            if state.count == 0 || state.owner == me {
                (state.owner, state.owner_env) = (me, env);
                state.count += 1;
                return;
            }
        }
        self.tell(event::RAW_MONITOR_CONTENDED_ENTER);
        let mut state = lock(&self.state);
        state.entering.push(env);
        while state.count > 0 {
            state = self.entry.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        remove(&mut state.entering, env);
        state.owner = me;
        state.owner_env = env;
        state.count = 1;
        drop(state);
        self.tell(event::RAW_MONITOR_CONTENDED_ENTERED);
    }

    /// Leaves. Nothing happens if the thread is not in.
    pub fn exit(&'static self) {
        let mut state = lock(&self.state);
        if state.count == 0 || state.owner != current_thread() {
            return;
        }
        state.count -= 1;
        if state.count > 0 {
            return;
        }
        (state.owner, state.owner_env) = (0, 0);
        let is_wanted = !state.entering.is_empty();
        drop(state);
        self.entry.notify_one();
        if is_wanted {
            self.tell(event::RAW_MONITOR_CONTENDED_EXIT);
        }
    }

    /// Releases the monitor, waits until it is notified or the timeout expires (0: none), and enters it again. Has no
    /// effect if the thread does not own it.
    pub fn wait(&'static self, milliseconds: i64) {
        let (me, env) = (current_thread(), current_env());
        let mut state = lock(&self.state);
        if state.count == 0 || state.owner != me {
            return;
        }
        let end = u64::try_from(milliseconds).ok().filter(|ms| *ms > 0).and_then(|ms| {
            // A later timeout counts as none.
            Instant::now().checked_add(Duration::from_millis(ms.min(1 << 40)))
        });
        let (count, seen) = (state.count, state.notifications);
        (state.count, state.owner, state.owner_env) = (0, 0, 0);
        state.waiting.push(env);
        self.entry.notify_one();
        while state.notifications == seen {
            state = match end {
                None => self.notified.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let now = Instant::now();
                    if now >= end {
                        break;
                    }
                    match self.notified.wait_timeout(state, end - now) {
                        Ok((state, _)) => state,
                        Err(poisoned) => poisoned.into_inner().0,
                    }
                }
            };
        }
        remove(&mut state.waiting, env);
        state.entering.push(env);
        while state.count > 0 {
            state = self.entry.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        remove(&mut state.entering, env);
        (state.count, state.owner, state.owner_env) = (count, me, env);
    }

    /// Ends all waits. Nothing happens if the thread is not in.
    pub fn notify_all(&'static self) {
        let mut state = lock(&self.state);
        if state.count > 0 && state.owner == current_thread() {
            state.notifications += 1;
            self.notified.notify_all();
        }
    }

    /// Reports contention, except for names that start with an underscore.
    fn tell(&'static self, kind: jint) {
        if let Some(around) = AROUND.get().filter(|_| !self.name.as_bytes().starts_with(b"_")) {
            let id = std::ptr::from_ref(self).cast_mut().cast();
            (around.tell)(kind, RawMonitorEvent { name: self.name.as_ptr(), id });
        }
    }
}

/// All existing monitors.
pub fn snapshots() -> Vec<Snapshot> {
    let all = all().clone();
    let snapshot = |monitor: &&'static RawMonitor| {
        let state = lock(&monitor.state);
        Snapshot {
            name: monitor.name.clone(),
            id: std::ptr::from_ref(*monitor) as usize,
            owner: state.owner_env,
            count: state.count,
            entering: state.entering.clone(),
            waiting: state.waiting.clone(),
        }
    };
    all.iter().map(snapshot).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn it_is_entered_again_by_its_owner_only() {
        let monitor = RawMonitor::create(c"_entered".to_owned());
        monitor.enter();
        monitor.enter();
        let other = thread::spawn(move || {
            monitor.exit();
            monitor.enter();
            monitor.exit();
        });
        thread::sleep(Duration::from_millis(30));
        monitor.exit();
        assert!(!other.is_finished(), "it was entered twice");
        monitor.exit();
        other.join().unwrap();
    }

    #[test]
    fn a_wait_ends_with_its_time_and_with_a_notification() {
        let monitor = RawMonitor::create(c"_waited".to_owned());
        monitor.wait(0);
        monitor.enter();
        monitor.enter();
        monitor.wait(10);
        let other = thread::spawn(move || {
            monitor.enter();
            monitor.wait(0);
            monitor.exit();
        });
        while snapshots().iter().any(|other| other.name == monitor.name && other.waiting.is_empty()) {
            monitor.wait(1);
        }
        monitor.notify_all();
        monitor.exit();
        assert!(!other.is_finished(), "still entered once");
        monitor.exit();
        other.join().unwrap();
    }

    #[test]
    fn a_free_monitor_has_no_owner() {
        const ENV: usize = 0x5000;
        are_in(Around { current_env: || ENV, tell: |_, _| {} });
        let monitor = RawMonitor::create(c"_free".to_owned());
        let owner = || snapshots().iter().find(|one| one.name == monitor.name).map(|one| (one.owner, one.count));
        assert_eq!(owner(), Some((0, 0)));
        monitor.enter();
        monitor.enter();
        assert_eq!(owner(), Some((ENV, 2)));
        monitor.exit();
        assert_eq!(owner(), Some((ENV, 1)));
        let waiting = thread::spawn(move || {
            monitor.enter();
            monitor.wait(0);
            monitor.exit();
        });
        monitor.exit();
        let is_waiting = || snapshots().iter().any(|one| one.name == monitor.name && !one.waiting.is_empty());
        while !is_waiting() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(owner(), Some((0, 0)), "whoever waits has left it");
        monitor.enter();
        monitor.notify_all();
        monitor.exit();
        waiting.join().unwrap();
        assert_eq!(owner(), Some((0, 0)));
    }

    #[test]
    fn what_is_no_monitor_is_none() {
        let monitor = RawMonitor::create(c"_found".to_owned());
        let address = std::ptr::from_ref(monitor).cast_mut().cast();
        assert!(RawMonitor::at(address).is_some());
        assert!(RawMonitor::at(std::ptr::dangling_mut()).is_none());
        monitor.destroy();
        assert!(RawMonitor::at(address).is_none());
    }
}
