//! The folder to which DuckDB writes what has no room in memory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::signals::Signals;

/// A private folder with an unpredictable name. Removed when this is dropped, and when the process is ended by a
/// signal.
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
