//! Reports of the runtime: about a trace that goes to a command or a pipe and so cannot be checked, and about traces of JVMs that
//! the program has started.

use std::fs;
use std::path::{Path, PathBuf};

use et_format::trace_path::{self, Child};

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

    /// What JVMs tell that the program has started.
    pub fn children(&self) -> Vec<Child> {
        let text = fs::read(&self.0).unwrap_or_default();
        // The end of a line that is being written is missing.
        text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| Child::read(line.strip_suffix(b"\n")?)).collect()
    }

    /// Whether this process has begun a trace.
    pub fn tells_of(&self, process: u32) -> bool {
        let line = trace_path::report_line(process);
        fs::read(&self.0)
            .is_ok_and(|text| text.split_inclusive(|byte| *byte == b'\n').any(|told| told == line.as_bytes()))
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
        let child = Child::Traced { process: 9, path: "/x/a b.ettrace".into() };
        file.write_all(&child.line()).unwrap();
        file.write_all(b"untraced 1").unwrap();
        assert_eq!(report.children(), [child]);
        assert_eq!([417, 17, 41, 7].map(|process| report.tells_of(process)), [true, true, false, false]);
    }
}
