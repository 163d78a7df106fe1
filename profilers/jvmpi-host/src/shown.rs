//! Dumps that the agent has not returned from. Other threads run on meanwhile, and objects of a dump may die: their
//! deaths are reported after it. On the thread that delivers it, requests to report one of its objects, or to dump one that has a record,
//! are answered from the dump.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::abi::ObjectId;
use crate::classes::Class;

thread_local! {
    /// The dump that is being delivered on this thread.
    static UNDER_WAY: RefCell<Option<Arc<UnderWay>>> = const { RefCell::new(None) };
    /// How many of the dumps that were begun are this thread's.
    static BEGUN: Cell<usize> = const { Cell::new(0) };
}

/// Dumps whose heaps may have been walked and that the agent has not returned from.
static UNDELIVERED: AtomicUsize = AtomicUsize::new(0);

/// What a dump consists of.
#[derive(Debug)]
pub struct UnderWay {
    pub bytes: Vec<u8>,
    /// The classes of its objects, some of which may have been unloaded since.
    pub classes: FxHashMap<ObjectId, Arc<Class>>,
    /// By object id.
    pub objects: FxHashMap<u32, Shown>,
}

/// An object of a dump.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Object id of its class.
    pub class: u32,
    /// In bytes.
    pub size: u32,
    /// Where its record is; empty at level 0.
    pub record: Range<usize>,
}

impl UnderWay {
    /// The object with that id.
    pub fn object(&self, id: ObjectId) -> Option<&Shown> {
        self.objects.get(&u32::try_from(id).ok()?)
    }

    /// Its record.
    pub fn record(&self, id: ObjectId) -> Option<&[u8]> {
        self.bytes.get(self.object(id)?.record.clone()).filter(|record| !record.is_empty())
    }
}

/// A dump from before its walk until the agent has returned from it.
#[derive(Debug)]
pub struct Undelivered(());

impl Undelivered {
    /// To be called before the walk.
    pub fn begin() -> Self {
        UNDELIVERED.fetch_add(1, Ordering::SeqCst);
        BEGUN.set(BEGUN.get() + 1);
        Self(())
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        UNDELIVERED.fetch_sub(1, Ordering::SeqCst);
        BEGUN.set(BEGUN.get() - 1);
    }
}

/// Whether this thread has begun a dump.
pub fn is_begun_here() -> bool {
    BEGUN.get() > 0
}

/// Delivers a dump on this thread.
pub fn during(dump: Arc<UnderWay>, deliver: impl FnOnce()) {
    struct Outer(Option<Arc<UnderWay>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            UNDER_WAY.set(self.0.take());
        }
    }
    let _outer = Outer(UNDER_WAY.replace(Some(dump)));
    deliver();
}

/// The dump that this thread is delivering.
pub fn under_way() -> Option<Arc<UnderWay>> {
    UNDER_WAY.with_borrow(Clone::clone)
}

/// Waits until the agent has returned from all dumps that were begun. Not for ever: the thread that waits may hold the
/// lock that the agent needs for the dump.
pub fn wait_until_delivered(patience: Duration) {
    let start = Instant::now();
    while UNDELIVERED.load(Ordering::SeqCst) > 0 && start.elapsed() < patience {
        thread::sleep(Duration::from_micros(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_wait_for_dumps_but_not_for_ever() {
        const PATIENCE: Duration = Duration::from_millis(30);
        let start = Instant::now();
        let dump = Undelivered::begin();
        wait_until_delivered(PATIENCE);
        assert!(start.elapsed() >= PATIENCE);
        assert!(is_begun_here() && thread::spawn(|| !is_begun_here()).join().unwrap());
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait_until_delivered(Duration::from_secs(3600)));
            drop(dump);
            waits.join().unwrap();
        });
    }

    #[test]
    fn the_thread_of_a_dump_knows_its_objects() {
        let shown = |class, record| Shown { class, size: 16, record };
        let objects = [(7, shown(70, 1..3)), (8, shown(80, 0..0))].into_iter().collect();
        let dump = Arc::new(UnderWay { bytes: vec![1, 2, 3, 4], classes: FxHashMap::default(), objects });
        assert!(under_way().is_none());
        during(dump, || {
            let dump = under_way().unwrap();
            assert_eq!([7, 8, 9].map(|id| dump.object(id).map(|shown| shown.class)), [Some(70), Some(80), None]);
            assert_eq!([7, 8, 9].map(|id| dump.record(id)), [Some(&[2, 3][..]), None, None], "none at level 0");
            assert!(thread::spawn(|| under_way().is_none()).join().unwrap());
        });
        assert!(under_way().is_none());
    }
}
