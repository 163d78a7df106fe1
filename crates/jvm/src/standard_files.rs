//! Standard input, output and error of a process that was started without them (`java … >&-`).
//!
//! The next file that is opened gets the lowest free number: a trace, a socket, or the pipe to a command would be what the program takes
//! for its standard output, and what it prints would go there.
#![allow(unsafe_code, reason = "system calls")]

use std::ffi::c_int;

/// Sees to it that nothing which is opened from now on gets their numbers. To the program they stay closed: reading and writing fail as before
/// (`EBADF`), and programs that it starts do not inherit what stands there instead.
///
/// To be called before an agent opens anything.
pub fn keep_numbers() {
    for number in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        if !is_open(number) {
            // SAFETY: a system call with a string that ends with zero. What is open with O_PATH can be neither read nor written.
            let got = unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
            if got > libc::STDERR_FILENO {
                // Another thread has opened something there meanwhile, which is not ours.
                // SAFETY: the file was opened just now, and nobody knows of it.
                unsafe { libc::close(got) };
            }
        }
    }
}

fn is_open(number: c_int) -> bool {
    // SAFETY: a system call that only looks.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}
