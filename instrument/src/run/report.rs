//! What the runtime tells of a trace that cannot be looked at, because it goes to a command or a pipe.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use et_format::trace_path;

use super::error::RunError;
use crate::files::FileError;

/// A file for one run, removed after it.
#[derive(Debug)]
pub struct Report(PathBuf);

impl Report {
    /// An empty one, in a folder of ours.
    pub fn new(folder: &Path) -> Result<Self, RunError> {
        let path =
            folder.join(format!("report-{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.map_err(FileError::at("write", &path))?;
        Ok(Self(path))
    }

    /// Where the runtime finds it.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether this process has begun a trace.
    pub fn tells_of(&self, process: u32) -> bool {
        let line = trace_path::report_line(process);
        fs::read_to_string(&self.0).is_ok_and(|text| text.split_inclusive('\n').any(|told| told == line))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn processes_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let report = Report::new(folder.path()).unwrap();
        let mut file = OpenOptions::new().append(true).open(report.path()).unwrap();
        for process in [417, 17] {
            file.write_all(trace_path::report_line(process).as_bytes()).unwrap();
        }
        assert_eq!([417, 17, 41, 7].map(|process| report.tells_of(process)), [true, true, false, false]);
        drop(report);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
