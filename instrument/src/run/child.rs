//! The program itself: with our standard input and output, all signals its own, and an end that becomes ours.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::error::RunError;
use crate::error::Error;
use crate::interrupt;

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its process id.
    pub process: u32,
    /// Its exit code; 128 and the signal's number if a signal ended it, as shells have it.
    pub code: u8,
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Result<Ended, Error> {
    let path = PathBuf::from(command.get_program());
    let mut child = command.spawn().map_err(|source| RunError::Start { path: path.clone(), source })?;
    let process = child.id();
    let signals = interrupt::hand_on_to(process);
    // Not reaped yet: until signals are no longer handed on, nobody else may get its process id.
    if let Some(child) = Pid::from_raw(process.cast_signed()) {
        while waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            .is_err_and(|error| error == rustix::io::Errno::INTR)
        {}
    }
    drop(signals);
    let status = child.wait().map_err(|source| RunError::Start { path, source })?;
    Ok(Ended { process, code: code(status) })
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(255);
    // The system keeps eight bits of it.
    code as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_program_is_told() {
        let shell = |script: &str| run(Command::new("sh").args(["-c", script])).unwrap().code;
        assert_eq!(shell("exit 7"), 7);
        assert_eq!(shell("kill -TERM $$"), 128 + 15);
        let error = run(&mut Command::new("/nowhere/java")).unwrap_err();
        assert!(error.to_string().contains("cannot start /nowhere/java"), "{error}");
    }
}
