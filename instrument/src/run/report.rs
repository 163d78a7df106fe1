//! What the runtime tells of a trace that cannot be looked at, because it goes to a command or a pipe.

use std::fs;
use std::path::{Path, PathBuf};

use et_format::trace_path;

use super::scratch::Scratch;
use crate::files::FileError;

/// A file of one run.
#[derive(Debug)]
pub struct Report(PathBuf);

impl Report {
    /// An empty one.
    pub fn new(scratch: &Scratch) -> Result<Self, FileError> {
        scratch.write("report", "").map(Self)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    #[test]
    fn processes_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path()).unwrap();
        let report = Report::new(&scratch).unwrap();
        let mut file = OpenOptions::new().append(true).open(report.path()).unwrap();
        for process in [417, 17] {
            file.write_all(trace_path::report_line(process).as_bytes()).unwrap();
        }
        assert_eq!([417, 17, 41, 7].map(|process| report.tells_of(process)), [true, true, false, false]);
    }
}
