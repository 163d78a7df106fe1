//! Tasks of which each can be done by any thread.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use super::spawn_scoped;

/// Has all cores do the tasks of these numbers, with at most one thread per `share` tasks, and fewer if the system refuses to start more. Each thread works with a `worker` of its own. Returns the results in the order of the tasks, and the workers in any order.
///
/// # Errors
/// A task that fails ends the work: tasks that were not begun are not done.
///
/// # Panics
/// If a task does.
pub fn on_all_cores<W: Send, R: Send, E: Send>(
    tasks: usize,
    share: usize,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) -> Result<R, E> + Sync,
) -> Result<(Vec<R>, Vec<W>), E> {
    let next = AtomicUsize::new(0);
    let some = || {
        let (mut worker, mut results) = (worker(), Vec::new());
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return Ok((results, worker));
            }
            match work(&mut worker, task) {
                Ok(result) => results.push((task, result)),
                Err(error) => {
                    next.store(tasks, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let threads = available_parallelism().map_or(1, NonZeroUsize::get).min(tasks.div_ceil(share.max(1)));
    let done = Mutex::new(Vec::new());
    on_threads(threads, &|| {
        let part = some();
        done.lock().unwrap_or_else(PoisonError::into_inner).push(part);
    });
    let parts = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let parts = parts.into_iter().collect::<Result<Vec<_>, E>>()?;
    let (mut all, mut workers) = (Vec::with_capacity(tasks), Vec::with_capacity(parts.len()));
    for (results, worker) in parts {
        all.extend(results);
        workers.push(worker);
    }
    all.sort_unstable_by_key(|(task, _)| *task);
    Ok((all.into_iter().map(|(_, result)| result).collect(), workers))
}

/// Has this thread and at most `threads - 1` others do the same work, and waits for all. The work is behind a pointer: otherwise
/// the code that starts and joins threads would be compiled again for each kind of work.
fn on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    scope(|scope| {
        let others: Vec<_> = (1..threads).map_while(|_| spawn_scoped(scope, work).ok()).collect();
        work();
        for other in others {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// Does both at once: `here` on this thread, `there` on another one, or after `here` if the system refuses to start one.
///
/// # Panics
/// If one of them does.
pub fn at_once<A, B: Send>(here: impl FnOnce() -> A, there: impl FnOnce() -> B + Send) -> (A, B) {
    let there = Mutex::new(Some(there));
    let begin = || {
        let there = there.lock().unwrap_or_else(PoisonError::into_inner).take();
        there.map(|there| there())
    };
    scope(|scope| {
        let other = spawn_scoped(scope, begin).ok();
        let here = here();
        let there = other.and_then(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        // It is taken once: by the other thread, or here.
        (here, there.or_else(begin).unwrap_or_else(|| unreachable!("neither thread has done it")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done_at_once() {
        let (send, receive) = std::sync::mpsc::channel();
        // Each waits for the other.
        let (back, answer) = std::sync::mpsc::channel();
        let here = || {
            send.send(3).unwrap();
            answer.recv().unwrap()
        };
        let there = move || {
            back.send(4).unwrap();
            receive.recv().unwrap()
        };
        assert_eq!(at_once(here, there), (4, 3));
        let panics = std::panic::catch_unwind(|| at_once(|| 1, || panic!("there")));
        assert!(panics.is_err());
    }

    #[test]
    fn results_are_in_the_order_of_the_tasks() {
        let count = |done: &mut usize, task: usize| {
            *done += 1;
            Ok::<_, ()>(task * task)
        };
        for (tasks, share) in [(0, 1), (1, 0), (1000, 1), (1000, 999), (10, 100)] {
            let (results, workers) = on_all_cores(tasks, share, || 0, count).unwrap();
            assert_eq!(results, (0..tasks).map(|task| task * task).collect::<Vec<_>>());
            assert_eq!(workers.iter().sum::<usize>(), tasks);
            assert!(workers.len() <= tasks.div_ceil(share.max(1)).max(1));
        }
    }

    #[test]
    fn a_task_that_fails_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let fails = |_: &mut (), task: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
            if task == 10 { Err(task) } else { Ok(()) }
        };
        let tasks = 100_000_000;
        assert_eq!(on_all_cores(tasks, tasks / 4, || (), fails).unwrap_err(), 10);
        assert!(begun.load(Ordering::Relaxed) < tasks / 4);
    }
}
