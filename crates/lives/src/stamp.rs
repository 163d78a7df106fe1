//! Detects whether a trace is still the file that its life table was made from.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use et_reader::TraceFile;
use serde::{Deserialize, Serialize};

use crate::folder::{self, Manifest};

/// File with the state of the trace when it was last found to be intact: any write to the trace changes that state.
pub const CHECKED: &str = "checked-1.json";

/// Identity and state of a file according to the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Reads the state of the file at that path.
    pub fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Keeps the state with a life table. If that fails, the trace is checked again the next time.
    pub fn keep(&self, folder: &Path, manifest: &Manifest) {
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = folder::keep(folder, manifest, CHECKED, &text);
        }
    }
}

/// Whether the trace has the same content as when the table was made. Reads its blocks only if the file seems to have
/// changed.
pub fn is_whole(trace: &TraceFile, stamp: Option<&Stamp>, folder: &Path, manifest: &Manifest) -> bool {
    let kept = folder::kept(folder, manifest, CHECKED).and_then(|text| serde_json::from_slice::<Stamp>(&text).ok());
    if kept.is_some() && kept.as_ref() == stamp {
        return true;
    }
    let is_whole = trace.is_whole();
    if let Some(stamp) = stamp.filter(|_| is_whole) {
        stamp.keep(folder, manifest);
    }
    is_whole
}
