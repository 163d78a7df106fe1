//! Rayon pools with as many threads as can be started.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Runs work whose parallel iterators use several threads.
#[derive(Debug)]
pub struct Pool(Option<ThreadPool>);

impl Pool {
    /// Creates a pool with this number of threads, or one per processor; with fewer if the system refuses more.
    pub fn new(wanted: Option<usize>) -> Self {
        let wanted = wanted.filter(|&wanted| wanted > 0);
        let wanted = wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        Self(fewer(wanted, |count| ThreadPoolBuilder::new().num_threads(count).build().ok()))
    }

    /// The shared pool of this process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Pool> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(None))
    }

    /// Runs the work in the pool, or on this thread if the pool has no threads.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => {
                // Makes this thread a pool of its own, permanently, since rayon cannot undo it. It may already be one.
                if let Ok(pool) = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
                    std::mem::forget(pool);
                }
                work()
            }
        }
    }
}

/// Tries `wanted`, then half of it, and so on, until `make` succeeds.
fn fewer<T>(wanted: usize, mut make: impl FnMut(usize) -> Option<T>) -> Option<T> {
    let mut count = wanted;
    while count > 0 {
        if let Some(made) = make(count) {
            return Some(made);
        }
        count /= 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    fn squares(pool: &Pool) -> u64 {
        pool.run(|| (1..=100_u64).into_par_iter().map(|n| n * n).sum())
    }

    #[test]
    fn there_are_as_many_as_can_be_started() {
        let with_limit = |limit| fewer(13, |count| (count <= limit).then_some(count));
        assert_eq!([20, 13, 12, 5, 1, 0].map(with_limit), [Some(13), Some(13), Some(6), Some(3), Some(1), None]);
        let pool = Pool::new(Some(3));
        assert_eq!((squares(&pool), pool.run(rayon::current_num_threads)), (338_350, 3));
    }

    #[test]
    fn without_any_this_thread_does_the_work_again_and_again() {
        let nobody = Pool(None);
        // On separate threads, since each becomes a pool permanently.
        for _ in 0..2 {
            std::thread::spawn(|| {
                let nobody = Pool(None);
                assert_eq!([squares(&nobody), squares(&nobody)], [338_350; 2]);
                // Inside such work, and inside an existing pool.
                assert_eq!(nobody.run(|| squares(&Pool(None))), 338_350);
            })
            .join()
            .unwrap();
        }
        assert_eq!(Pool::new(Some(2)).run(|| squares(&nobody)), 338_350);
    }
}
