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
    #[error("{path}: a text lacks the fields and methods of classes, which agents need: replay the trace that it was made from", path = path.display())]
    Text { path: PathBuf },
    #[error("no space for the operations in a temporary file in {folder} (set TMPDIR to use another folder): {0}", folder = std::env::temp_dir().display())]
    Temporary(std::io::Error),
    #[error("{0}")]
    Agent(String),
    #[error("{agent} did not request the interface: its JVM_OnLoad must call GetEnv")]
    NotAsked { agent: String },
    #[error("{path}: the trace changed while it was read: was it replaced?", path = path.display())]
    Changed { path: PathBuf },
}
