//! Counters of collector threads. Each thread has its own: a shared counter would cost more than the work it counts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use et_simulate::ops::Amount;

#[derive(Debug, Default)]
struct Counters {
    scanned_objects: AtomicU64,
    scanned_bytes: AtomicU64,
    copied_objects: AtomicU64,
    copied_bytes: AtomicU64,
}

static ALL: Mutex<Vec<&'static Counters>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: &'static Counters = {
        let mine: &'static Counters = Box::leak(Box::default());
        ALL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(mine);
        mine
    };
}

/// Not an atomic add: only this thread writes the counter.
#[inline]
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Relaxed) + number, Relaxed);
}

#[inline]
pub fn scanned(bytes: usize) {
    MINE.with(|mine| {
        add(&mine.scanned_objects, 1);
        add(&mine.scanned_bytes, bytes as u64);
    });
}

#[inline]
pub fn copied(bytes: usize) {
    MINE.with(|mine| {
        add(&mine.copied_objects, 1);
        add(&mine.copied_bytes, bytes as u64);
    });
}

/// Objects scanned and copied by all threads since the start.
pub fn totals() -> [Amount; 2] {
    let mut sums = [Amount::default(); 2];
    for one in ALL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
        let [scanned, copied] = &mut sums;
        scanned.objects += one.scanned_objects.load(Relaxed);
        scanned.bytes += one.scanned_bytes.load(Relaxed);
        copied.objects += one.copied_objects.load(Relaxed);
        copied.bytes += one.copied_bytes.load(Relaxed);
    }
    sums
}
