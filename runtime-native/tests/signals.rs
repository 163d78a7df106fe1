//! Signal handlers apply to the whole process, so these tests have a process of their own.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use et_runtime::base::signals::{guard, memory_was_lost, program_is_to_end, watch_for_ends};

#[test]
fn memory_of_a_file_that_was_cut_short_is_replaced_from_there_on() {
    const PAGE: usize = 1 << 16;
    let file = tempfile::tempfile().unwrap();
    file.set_len(4 * PAGE as u64).unwrap();
    // SAFETY: a new mapping.
    let map = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4 * PAGE, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(map, libc::MAP_FAILED);
    let at = |index: usize| (map as usize + index * PAGE) as *mut u64;
    // SAFETY: inside the mapping, which is guarded before its file is truncated.
    unsafe {
        (0..4).for_each(|index| at(index).write_volatile(7));
        guard(map as usize, 4 * PAGE);
        assert!(!memory_was_lost());
        file.set_len(PAGE as u64).unwrap();
        at(2).write_volatile(8);
        assert!(memory_was_lost());
        assert_eq!([0, 2, 3].map(|index| at(index).read_volatile()), [7, 8, 0]);
        assert_eq!([0, 1].map(|index| at(index).read_volatile()), [7, 0]);
    }
}

#[test]
fn what_asks_for_the_end_is_noticed_and_handed_on() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn earlier(_signal: c_int) {
        SEEN.fetch_add(1, Ordering::SeqCst);
    }
    // SAFETY: the handler only counts; the signals go to this process.
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, earlier as extern "C" fn(c_int) as usize);
        watch_for_ends();
        watch_for_ends();
        libc::raise(libc::SIGHUP);
        assert!(!program_is_to_end(), "what is ignored stays so");
        libc::raise(libc::SIGTERM);
    }
    assert!(program_is_to_end());
    assert_eq!(SEEN.load(Ordering::SeqCst), 1);
}
