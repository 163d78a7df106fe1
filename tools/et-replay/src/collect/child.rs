//! Runs `et-collect`.

use std::path::PathBuf;
use std::process::Command;

use thiserror::Error;

use et_simulate::collectors::NurseryTooLarge;
use et_simulate::mmtk::{CHECK_FAILED, CollectReport, MmtkOption, Plan, TOO_SMALL};
use et_simulate::ops::OpsReader;

use crate::children;

/// Name of the program.
const PROGRAM: &str = "et-collect";
/// Parameters of a replay.
#[derive(Clone, Debug)]
pub struct Request {
    /// The collector.
    pub plan: Plan,
    /// Heap size in bytes.
    pub heap: u64,
    /// Nursery size in bytes, for generational plans.
    pub nursery: Option<u64>,
    /// Number of collector threads.
    pub gc_threads: usize,
    /// Collect each time this many bytes have been allocated.
    pub stress: Option<u64>,
    /// Whether to check the heap after each collection.
    pub check: bool,
    /// Options passed to MMTk.
    pub mmtk: Vec<MmtkOption>,
}

impl Request {
    /// Whether heap and nursery sizes are valid.
    pub fn check(&self) -> Result<(), ChildError> {
        Ok(NurseryTooLarge::check(self.nursery, self.heap)?)
    }
}

/// Why there is no report.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ChildError {
    #[error("no {PROGRAM} in {folder}, the program with the collectors of MMTk: build it with cargo xtask build", folder = folder.display())]
    Missing { folder: PathBuf },
    #[error("{said}")]
    TooSmall { said: String },
    #[error(transparent)]
    Nursery(#[from] NurseryTooLarge),
    #[error("{said}: this is an error in et-replay or MMTk, please report it with the operations file")]
    Lost { said: String },
    #[error("the replay on {plan} failed: {why}", plan = plan.name())]
    Failed { plan: Plan, why: String },
}

/// Path of the program, in the directory of this one.
pub fn find() -> Result<PathBuf, ChildError> {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().map(PathBuf::from).unwrap_or_default();
    let program = folder.join(PROGRAM);
    if program.is_file() { Ok(program) } else { Err(ChildError::Missing { folder }) }
}

/// Replays in a child process, because MMTk's state is global.
pub fn run(ops: &OpsReader, request: &Request) -> Result<CollectReport, ChildError> {
    request.check()?;
    let failed = |why: String| ChildError::Failed { plan: request.plan, why };
    let mut child = Command::new(find()?);
    child.args(["--plan", request.plan.name(), "--heap", &request.heap.to_string()]);
    child.args(["--gc-threads", &request.gc_threads.to_string()]);
    if let Some(nursery) = request.nursery {
        child.args(["--nursery", &nursery.to_string()]);
    }
    if let Some(stress) = request.stress {
        child.args(["--stress", &stress.to_string()]);
    }
    if request.check {
        child.arg("--check");
    }
    for option in &request.mmtk {
        child.args(["--mmtk", &option.to_string()]);
    }
    let output = children::output(&mut child, ops).map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next_back().unwrap_or_default().trim_start_matches("et-collect: ").to_owned();
    Err(match output.status.code() {
        Some(code) if code == i32::from(TOO_SMALL) => ChildError::TooSmall { said },
        Some(code) if code == i32::from(CHECK_FAILED) => ChildError::Lost { said },
        Some(_) if !said.is_empty() => failed(said),
        _ => failed(output.status.to_string()),
    })
}
