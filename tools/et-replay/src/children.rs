//! Child processes that replay.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use et_simulate::ops::OpsReader;

/// Runs a child process with the operations as standard input, and collects its output. The system kills the child
/// when the calling thread ends, even if this process is killed.
pub fn output(child: &mut Command, ops: &OpsReader) -> io::Result<Output> {
    let file = ops.file().try_clone()?;
    let us = getpid();
    #[allow(
        unsafe_code,
        reason = "between fork and exec nothing may allocate or wait for a lock: system calls do neither"
    )]
    // SAFETY: the closure makes two system calls and builds an error from a number; both are async-signal-safe.
    unsafe {
        child.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before the first call.
            if getppid() == Some(us) { Ok(()) } else { Err(Errno::SRCH.into()) }
        });
    }
    child.stdin(Stdio::from(file)).output()
}
