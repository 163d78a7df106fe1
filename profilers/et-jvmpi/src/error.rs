//! Why a replay failed: one line.

use std::path::PathBuf;

use et_reader::source::SourceError;
use et_simulate::collectors::SimulateError;
use et_simulate::ops::OpsError;
use et_simulate::prepare::PrepareError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ReplayError {
    #[error(transparent)]
    Read(#[from] SourceError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error("{error}; the smallest that works is --heap {smallest}")]
    TooSmall { error: SimulateError, smallest: String },
    #[error("{path}: a text does not have the classes with their fields and methods that an agent is told of: replay the trace that it was made from", path = path.display())]
    Text { path: PathBuf },
    #[error("operations have no room in a temporary file in {folder} (TMPDIR names another folder): {0}", folder = std::env::temp_dir().display())]
    Temporary(std::io::Error),
    #[error("{0}")]
    Agent(String),
    #[error("{agent} has not asked for the interface: its JVM_OnLoad has to call GetEnv")]
    NotAsked { agent: String },
    #[error("{path}: the trace does not read as it did before: was it replaced meanwhile?", path = path.display())]
    Changed { path: PathBuf },
}
