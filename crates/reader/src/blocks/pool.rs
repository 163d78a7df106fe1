//! Threads that do jobs of a reading: the most urgent kind first, each kind in order. The thread that waits for a result
//! does jobs as well.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;

// Those of loom try all orders of threads (`cargo xtask loom`).
#[cfg(all(test, loom))]
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// How urgent a job is: what is needed sooner comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    Settle,
    Walk,
    Scan,
}

const URGENCIES: usize = 3;

type Job<'env, H> = Box<dyn FnOnce(&mut H) + Send + 'env>;

struct State<'env, H> {
    jobs: [VecDeque<Job<'env, H>>; URGENCIES],
    /// Number of threads that wait for a change.
    waiting: usize,
    is_closed: bool,
    panic: Option<Box<dyn Any + Send>>,
}

/// The jobs. `H` is what a thread needs for its jobs.
pub struct Pool<'env, H> {
    state: Mutex<State<'env, H>>,
    changed: Condvar,
}

impl<H> std::fmt::Debug for Pool<'_, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

/// The result of a job, once it is there.
#[derive(Debug)]
pub struct Promise<T>(Arc<Mutex<Option<T>>>);

impl<H> Default for Pool<'_, H> {
    fn default() -> Self {
        let jobs = [const { VecDeque::new() }; URGENCIES];
        let state = State { jobs, waiting: 0, is_closed: false, panic: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'env, H> Pool<'env, H> {
    /// Adds a job.
    pub fn add<T: Send + 'env>(&self, urgency: Urgency, job: impl FnOnce(&mut H) -> T + Send + 'env) -> Promise<T> {
        let result = Arc::new(Mutex::new(None));
        let promise = Promise(Arc::clone(&result));
        let job = Box::new(move |hands: &mut H| {
            let done = job(hands);
            *lock(&result) = Some(done);
        });
        let mut state = lock(&self.state);
        state.jobs[urgency as usize].push_back(job);
        self.notify(state);
        promise
    }

    /// Tells those that wait of a change. Without this look at their number, it would be a system call even if there are none.
    fn notify(&self, state: MutexGuard<'_, State<'env, H>>) {
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    /// Waits for a change.
    fn pause<'s>(&'s self, mut state: MutexGuard<'s, State<'env, H>>) -> MutexGuard<'s, State<'env, H>> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    fn next(state: &mut State<'env, H>) -> Option<Job<'env, H>> {
        state.jobs.iter_mut().find_map(VecDeque::pop_front)
    }

    fn do_job(&self, job: Job<'env, H>, hands: &mut H) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(hands))) {
            lock(&self.state).panic = Some(panic);
        }
        // A thread that has just found no result holds the lock until it waits. Without the lock it could miss this notice.
        self.notify(lock(&self.state));
    }

    /// The body of a thread: does jobs until [`close`](Self::close).
    pub fn work(&self, hands: &mut H) {
        loop {
            let mut state = lock(&self.state);
            let job = loop {
                if state.is_closed {
                    return;
                }
                match Self::next(&mut state) {
                    Some(job) => break job,
                    None => state = self.pause(state),
                }
            };
            drop(state);
            self.do_job(job, hands);
        }
    }

    /// Waits for a result.
    pub fn wait<T>(&self, promise: &Promise<T>, hands: &mut H) -> T {
        loop {
            let mut state = lock(&self.state);
            let job = loop {
                if let Some(panic) = state.panic.take() {
                    drop(state);
                    resume_unwind(panic);
                }
                if let Some(done) = lock(&promise.0).take() {
                    return done;
                }
                match Self::next(&mut state) {
                    Some(job) => break job,
                    None => state = self.pause(state),
                }
            };
            drop(state);
            self.do_job(job, hands);
        }
    }

    /// Dismisses the threads. Jobs that were not begun are dropped.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.jobs.iter_mut().for_each(VecDeque::clear);
        self.notify(state);
    }
}

/// Dismisses the threads of a pool.
pub struct Closing<'p, 'env, H>(pub &'p Pool<'env, H>);

impl<H> Drop for Closing<'_, '_, H> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Promise<T> {
    /// Whether the result is there.
    pub fn is_kept(&self) -> bool {
        lock(&self.0).is_some()
    }
}

/// The pool in all orders of its threads, with up to three preemptions.
#[cfg(all(test, loom))]
mod loom_models {
    use loom::thread;

    use super::*;

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn worker(pool: &Arc<Pool<'static, u32>>) -> thread::JoinHandle<u32> {
        let pool = Arc::clone(pool);
        thread::spawn(move || {
            let mut done = 0;
            pool.work(&mut done);
            done
        })
    }

    fn counted(pool: &Pool<'static, u32>, urgency: Urgency, result: u32) -> Promise<u32> {
        pool.add(urgency, move |done| {
            *done += 1;
            result
        })
    }

    /// Who waits gets each result, whoever works it out, and each job is done once.
    #[test]
    fn loom_no_result_is_missed() {
        check(|| {
            let pool = Arc::new(Pool::default());
            let worker = worker(&pool);
            let promises = [counted(&pool, Urgency::Scan, 1), counted(&pool, Urgency::Settle, 2)];
            let mut here = 0;
            assert_eq!(promises.map(|promise| pool.wait(&promise, &mut here)), [1, 2]);
            pool.close();
            assert_eq!(worker.join().unwrap() + here, 2);
        });
    }

    /// Two threads work while a third waits for what the first of them may have begun.
    #[test]
    fn loom_two_work_and_one_waits() {
        check(|| {
            let pool = Arc::new(Pool::default());
            let workers = [worker(&pool), worker(&pool)];
            let promise = counted(&pool, Urgency::Walk, 1);
            let mut here = 0;
            assert_eq!(pool.wait(&promise, &mut here), 1);
            pool.close();
            assert_eq!(workers.map(|worker| worker.join().unwrap()).iter().sum::<u32>() + here, 1);
        });
    }

    /// A job is done, or dropped without having begun; no thread stays behind.
    #[test]
    fn loom_closing_ends_the_threads() {
        check(|| {
            let (pool, held) = (Arc::new(Pool::default()), Arc::new(()));
            let worker = worker(&pool);
            let by_job = Arc::clone(&held);
            let promise: Promise<()> = pool.add(Urgency::Walk, move |done| {
                *done += 1;
                drop(by_job);
            });
            pool.close();
            let done = worker.join().unwrap();
            assert_eq!(promise.is_kept(), done == 1);
            assert_eq!(Arc::strong_count(&held), 1);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn results_are_those_of_their_jobs() {
        let pool = Pool::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| pool.work(&mut 0));
            }
            let promises: Vec<_> = (0..1000u64)
                .map(|number| {
                    let urgency = [Urgency::Settle, Urgency::Walk, Urgency::Scan][number as usize % 3];
                    pool.add(urgency, move |done| {
                        *done += 1;
                        number * 2
                    })
                })
                .collect();
            let mut here = 0;
            for (number, promise) in (0..).zip(&promises) {
                assert_eq!(pool.wait(promise, &mut here), number * 2);
            }
            pool.close();
        });
    }

    /// Each job ends about when the other thread begins to wait for it.
    #[test]
    fn no_result_is_missed() {
        let pool = Pool::<()>::default();
        std::thread::scope(|scope| {
            scope.spawn(|| pool.work(&mut ()));
            for round in 0..50_000u32 {
                let has_begun = Arc::new(AtomicBool::new(false));
                let begins = Arc::clone(&has_begun);
                let promise = pool.add(Urgency::Walk, move |()| {
                    begins.store(true, Ordering::Release);
                    (0..round % 200).for_each(|_| std::hint::spin_loop());
                    round
                });
                while !has_begun.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                assert_eq!(pool.wait(&promise, &mut ()), round);
            }
            pool.close();
        });
    }

    #[test]
    fn a_panic_reaches_who_waits() {
        let pool = Pool::<()>::default();
        let promise: Promise<()> = pool.add(Urgency::Walk, |()| panic!("as planned"));
        let waited = catch_unwind(AssertUnwindSafe(|| pool.wait(&promise, &mut ())));
        assert_eq!(waited.unwrap_err().downcast_ref::<&str>(), Some(&"as planned"));
    }
}
