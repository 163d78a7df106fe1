//! Locks that go on working after a panic.
//!
//! No panic of an agent reaches the VM: it is caught where C called the agent ([`crate::listener`]), and the program runs on. A thread that
//! panicked while it held a lock must not make every later callback panic as well, so a poisoned lock is taken as it is.

use std::sync::{
    LockResult, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::thread;
use std::time::{Duration, Instant};

/// Locks a mutex, poisoned or not.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Locks a mutex that is held while the VM is called, poisoned or not: whoever holds it may have been suspended, so nobody waits longer than that.
pub fn in_time<T: ?Sized>(mutex: &Mutex<T>, patience: Duration) -> Option<MutexGuard<'_, T>> {
    /// Attempts before it sleeps between them: most locks are held for a moment only.
    const QUICK: u32 = 100;
    let start = Instant::now();
    let mut attempts = 0;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if start.elapsed() > patience => return None,
            Err(TryLockError::WouldBlock) if attempts < QUICK => {
                attempts += 1;
                thread::yield_now();
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// The value of a cell, which is made if there is none; `None` if it cannot be made now. Unlike in [`OnceLock::get_or_init`], nobody waits for a thread
/// that makes it by calls of the VM, and may be suspended meanwhile: each makes one, and all but the first to be done are discarded.
pub fn made_once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Option<T>, discard: impl FnOnce(T)) -> Option<&T> {
    if cell.get().is_none()
        && let Err(another) = cell.set(make()?)
    {
        discard(another);
    }
    cell.get()
}

/// Locks for reading, poisoned or not.
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    unpoisoned(lock.read())
}

/// Locks for writing, poisoned or not.
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    unpoisoned(lock.write())
}

/// The guard of a lock, or what a wait on a condition variable returned, poisoned or not.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_lock_that_is_never_released_is_waited_for_in_vain_but_not_forever() {
        let mutex = Mutex::new(1);
        let held = lock(&mutex);
        assert!(thread::scope(|scope| scope
            .spawn(|| in_time(&mutex, Duration::from_millis(5)).is_none())
            .join()
            .unwrap()));
        drop(held);
        assert_eq!(in_time(&mutex, Duration::ZERO).as_deref(), Some(&1));
    }

    #[test]
    fn what_another_has_made_meanwhile_stays() {
        let (cell, mut discarded) = (OnceLock::new(), 0);
        assert_eq!(made_once(&cell, || None, |_| ()), None);
        let make = || {
            cell.set(1).unwrap();
            Some(2)
        };
        assert_eq!((made_once(&cell, make, |value| discarded = value), discarded), (Some(&1), 2));
        assert_eq!(made_once(&cell, || panic!("there is one"), |_| ()), Some(&1));
    }

    #[test]
    fn a_panic_does_not_keep_others_out() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(1));
        let panics = catch_unwind(AssertUnwindSafe(|| {
            let (_mutex, _shared) = (lock(&mutex), write(&shared));
            std::panic::resume_unwind(Box::new("a bug"));
        }));
        assert!(panics.is_err() && mutex.is_poisoned() && shared.is_poisoned());
        *lock(&mutex) += 1;
        *write(&shared) += 1;
        assert_eq!((*lock(&mutex), *read(&shared)), (2, 2));
    }
}
