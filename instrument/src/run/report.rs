//! Reports of the runtime about a trace that goes to a command or a pipe and so cannot be checked.

use std::fs;
use std::path::{Path, PathBuf};

use et_format::trace_path;

use super::scratch::Scratch;
use crate::files::FileError;

/// The report file of a run.
#[derive(Debug)]
pub struct Report(PathBuf);

impl Report {
    /// Creates an empty file.
    pub fn new(scratch: &Scratch) -> Result<Self, FileError> {
        scratch.write("report", "").map(Self)
    }

    /// The path, which is passed to the runtime.
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
    fn processes_are_distinguished() {
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
