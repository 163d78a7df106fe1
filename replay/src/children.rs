//! Processes that replay for us.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::ops::OpsReader;

/// Runs a child on the operations, as its standard input, to its end. It ends with us, whatever ends us: nobody would read what it has to say.
pub fn output(child: &mut Command, ops: &OpsReader) -> io::Result<Output> {
    let file = ops.file().try_clone()?;
    #[allow(unsafe_code, reason = "what runs between fork and exec must not allocate: a system call does not")]
    // SAFETY: it is one system call.
    unsafe {
        child.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    child.stdin(Stdio::from(file)).output()
}
