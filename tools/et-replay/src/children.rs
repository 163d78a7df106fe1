//! Processes that replay for us.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use et_simulate::ops::OpsReader;

/// Runs a child on the operations, as its standard input, to its end. It ends with the thread that calls this, whatever ends us: nobody would read
/// what it has to say.
pub fn output(child: &mut Command, ops: &OpsReader) -> io::Result<Output> {
    let file = ops.file().try_clone()?;
    let us = getpid();
    #[allow(
        unsafe_code,
        reason = "between fork and exec nothing may allocate or wait for a lock: system calls do neither"
    )]
    // SAFETY: there are two system calls, and an error that is a number.
    unsafe {
        child.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // We may have ended before.
            if getppid() == Some(us) { Ok(()) } else { Err(Errno::SRCH.into()) }
        });
    }
    child.stdin(Stdio::from(file)).output()
}
