//! Replays with allocators, each in a separate process, so that memory kept by one does not influence another.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use clap::Args;
use serde::de::DeserializeOwned;

use super::CliError;
use crate::children;
use et_simulate::allocate;
use et_simulate::ops::OpsReader;

/// An allocator available in one of our programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linked {
    System,
    Jemalloc,
    Mimalloc,
    Snmalloc,
}

impl Linked {
    const ALL: [Self; 4] = [Self::System, Self::Jemalloc, Self::Mimalloc, Self::Snmalloc];
}

impl fmt::Display for Linked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
            Self::Snmalloc => "snmalloc",
        })
    }
}

impl FromStr for Linked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|allocator| allocator.to_string() == text);
        found.ok_or_else(|| format!("there are {}", Self::ALL.map(|one| one.to_string()).join(", ")))
    }
}

/// The task of a child process: a command that et-replay and et-allocate share, and its arguments.
pub(super) struct Task {
    pub(super) verb: &'static str,
    pub(super) args: Vec<String>,
}

/// The program with the linked allocators.
const PROGRAM: &str = "et-allocate";

/// Replays with a linked allocator.
pub(super) fn linked<T: DeserializeOwned>(ops: &OpsReader, allocator: Linked, task: &Task) -> Result<T, CliError> {
    let name = allocator.to_string();
    let failed = |error: std::io::Error| CliError::Child { allocator: name.clone(), why: error.to_string() };
    let own = std::env::current_exe().map_err(failed)?;
    if allocator == Linked::System {
        return in_child(ops, &name, &mut here(&own, task));
    }
    let program = own.with_file_name(PROGRAM);
    if !program.is_file() {
        let why = format!("no {PROGRAM} beside et-replay: cargo xtask build makes it if there is a C++ compiler");
        return Err(CliError::Child { allocator: name, why });
    }
    in_child(ops, &name, Command::new(program).args([task.verb, "--allocator", &name]).args(&task.args))
}

/// Replays with `malloc` of a preloaded library. Returns also the name of the library.
pub(super) fn preloaded<T: DeserializeOwned>(
    ops: &OpsReader,
    library: &Path,
    task: &Task,
) -> Result<(String, T), CliError> {
    let name = library.file_name().map_or("system".into(), |name| name.to_string_lossy()).into_owned();
    let failed = |why: String| CliError::Child { allocator: name.clone(), why };
    // The dynamic loader searches a name without a directory in the library path, and separates names at spaces and
    // colons.
    let Ok(library) = library.canonicalize() else {
        return Err(failed(format!("there is no library {}", library.display())));
    };
    if library.to_string_lossy().contains([':', ' ']) {
        return Err(failed(format!("{}: LD_PRELOAD does not accept names with spaces or colons", library.display())));
    }
    let own = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let done = in_child(ops, &name, here(&own, task).arg("--malloc-of").arg(&library).env("LD_PRELOAD", &library))?;
    Ok((name, done))
}

/// What a child is told to look for.
#[derive(Debug, Args)]
pub(super) struct HereArgs {
    /// Fail if `malloc` is still that of the C library, although this library was preloaded
    #[arg(long, value_name = "LIBRARY", requires = "here", hide = true)]
    malloc_of: Option<PathBuf>,
}

impl HereArgs {
    /// Checks that the process has the allocator that it was started with.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if let Some(library) = allocate::not_preloaded() {
            return Err(CliError::NotPreloaded { library });
        }
        match &self.malloc_of {
            Some(library) if allocate::is_usual_malloc() => Err(CliError::NoMalloc { library: library.clone() }),
            _ => Ok(()),
        }
    }
}

fn here(own: &Path, task: &Task) -> Command {
    let mut child = Command::new(own);
    child.args([task.verb, "--here", "--json", "/dev/stdin"]).args(&task.args);
    child
}

/// Runs the child and parses its output.
fn in_child<T: DeserializeOwned>(ops: &OpsReader, name: &str, child: &mut Command) -> Result<T, CliError> {
    let failed = |why: String| CliError::Child { allocator: name.to_owned(), why };
    let output = children::output(child, ops).map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().next_back().unwrap_or_default();
        let last = last.trim_start_matches("et-replay: ").trim_start_matches("et-allocate: ").to_owned();
        return Err(failed(if last.is_empty() { output.status.to_string() } else { last }));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}
