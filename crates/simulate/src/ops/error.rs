//! Errors of operations files.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::format::VERSION;

/// Why operations cannot be read or written.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum OpsError {
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path}: not an operations file: it does not start with ETOPS (et-replay prepare makes one from a trace)", path = path.display())]
    NotOps { path: PathBuf },
    #[error("{path}: operations of format version {found}, this tool reads version {VERSION}: prepare the trace again", path = path.display())]
    Version { path: PathBuf, found: u32 },
    #[error("{path}: written on a machine with another byte order: prepare the trace again", path = path.display())]
    ByteOrder { path: PathBuf },
    #[error("{path}: the operations file is cut off: it has {found} bytes, not {expected}: prepare the trace again", path = path.display())]
    CutOff { path: PathBuf, found: u64, expected: u64 },
    #[error("{path}: the operations file has {found} bytes, {more} too many: prepare the trace again", path = path.display(), more = found - expected)]
    TooLong { path: PathBuf, found: u64, expected: u64 },
    #[error("{path}: the operations file is damaged: {what}: prepare the trace again", path = path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("more than {most} objects are alive at once: an operations file cannot name them", most = super::format::MOST_HANDLES)]
    TooMany,
    #[error("an object of {0} bytes: larger than any JVM allocates: the trace is wrong")]
    TooLarge(u64),
    #[error("cannot write the operations: {0}")]
    Write(#[from] io::Error),
}
