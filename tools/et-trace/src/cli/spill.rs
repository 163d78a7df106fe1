//! The folder to which DuckDB writes what has no room in memory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::signals::Signals;

/// A folder that only its user can look into, under a name that nobody could make before. It goes with this, and the process with it, if it
/// was sent a signal that ends it.
#[derive(Debug)]
pub(super) struct Spill {
    // Fields are dropped in this order.
    folder: TempDir,
    signals: Signals,
}

impl Spill {
    pub(super) fn new() -> io::Result<Self> {
        let signals = Signals::catch();
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("et-sql-").permissions(Permissions::from_mode(0o700)).tempdir()?;
        Ok(Self { folder, signals })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the process is to end.
    pub(super) fn is_unwanted(&self) -> bool {
        self.signals.caught().is_some()
    }
}
