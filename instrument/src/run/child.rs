//! The program itself: with our standard input and output, all signals its own, and an end that becomes ours.
#![allow(unsafe_code)] // What a child does before it becomes another program; see `end_with_us`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, set_parent_process_death_signal, waitid};

use super::error::RunError;
use crate::interrupt;

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its process id.
    pub process: u32,
    /// Its exit code; 128 and the signal's number if a signal ended it, as shells have it.
    pub code: u8,
}

/// Runs a program and waits for its end.
pub fn run(command: &mut Command) -> Result<Ended, RunError> {
    let path = PathBuf::from(command.get_program());
    let start = |command: &mut Command| {
        refuse_foreign(command)?;
        end_with_us(command);
        command.spawn()
    };
    let mut child = start(command).map_err(|source| RunError::Start { path: path.clone(), source })?;
    let process = child.id();
    let signals = interrupt::hand_on_to(process);
    // Not reaped yet: its process id must not be reused while signals are still forwarded to it.
    if let Some(child) = Pid::from_raw(process.cast_signed()) {
        while waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            .is_err_and(|error| error == rustix::io::Errno::INTR)
        {}
    }
    drop(signals);
    let status = child.wait().map_err(|source| RunError::Start { path, source })?;
    Ok(Ended { process, code: code(status) })
}

/// With something to do before it, a program is started by `execvp`, which hands what the system cannot run to a shell:
/// a program for another machine would end in a shell's complaints.
fn refuse_foreign(command: &Command) -> io::Result<()> {
    let header = |path: &Path| {
        let mut header = Vec::new();
        File::open(path).and_then(|file| file.take(20).read_to_end(&mut header)).map(|_| header)
    };
    let (Ok(ours), Ok(theirs)) = (header(Path::new("/proc/self/exe")), header(command.get_program().as_ref())) else {
        return Ok(());
    };
    if theirs.starts_with(b"#!") {
        return Ok(());
    }
    // Magic, word size and byte order; the machine (elf(5)).
    let same = [0..6, 18..20].into_iter().all(|part| ours.get(part.clone()) == theirs.get(part));
    if same { Ok(()) } else { Err(rustix::io::Errno::NOEXEC.into()) }
}

/// `kill -9` cannot be handed on, so the system does it: it kills the program when the thread that has started it ends.
/// That is the one that waits for the program.
fn end_with_us(command: &mut Command) {
    let us = getpid();
    let before = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have ended in between.
        if getppid() == Some(us) { Ok(()) } else { Err(io::Error::from(rustix::io::Errno::SRCH)) }
    };
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated, no lock is taken.
    unsafe { command.pre_exec(before) };
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
    fn the_end_of_the_program_is_reported() {
        let shell = |script: &str| run(Command::new("sh").args(["-c", script])).unwrap().code;
        assert_eq!(shell("exit 7"), 7);
        assert_eq!(shell("kill -TERM $$"), 128 + 15);
        let error = run(&mut Command::new("/nowhere/java")).unwrap_err();
        assert!(error.to_string().contains("cannot start /nowhere/java"), "{error}");
    }
}
