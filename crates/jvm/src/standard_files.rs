//! Handles processes that were started without standard input, output or error (`java … >&-`).
//!
//! The next file that is opened gets the lowest free number: a trace, a socket, or a pipe to a command would become
//! what the program uses as its standard output, and would receive its output.
#![allow(unsafe_code, reason = "system calls")]

use std::ffi::c_int;

/// Ensures that files opened from now on do not get these numbers. For the program they stay closed: reading and
/// writing fail as before (`EBADF`), and child processes do not inherit what occupies the numbers.
///
/// To be called before an agent opens anything.
pub fn keep_numbers() {
    for number in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        if !is_open(number) {
            // SAFETY: a system call with a string that ends with zero. What is open with O_PATH can be neither read nor written.
            let got = unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
            if got > libc::STDERR_FILENO {
                // Another thread has opened a file with that number in the meantime.
                // SAFETY: our file was opened just now, and its number is not known elsewhere.
                unsafe { libc::close(got) };
            }
        }
    }
}

fn is_open(number: c_int) -> bool {
    // SAFETY: a system call that only looks.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}
