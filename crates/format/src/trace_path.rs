//! Where a run writes its trace: the runtime decides, and `run` looks there afterwards.

use std::path::{Path, PathBuf};

/// Trace file name if the user gives none.
pub const DEFAULT: &str = "et-%p.ettrace";

/// Expands `traceFile` for a process: `%p` is replaced by its id.
pub fn of_process(given: &str, process: u32) -> String {
    given.replace("%p", &process.to_string())
}

/// Where a trace goes if another process is writing to `path`: `app.ettrace` becomes `app.4711.ettrace`.
pub fn beside_busy(path: &Path, process: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{process}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Environment variable with the path of a file in which the runtime tells `run` that a trace goes to a place that
/// cannot be checked afterwards.
pub const REPORT: &str = "ET_RUN_REPORT";

/// The line that the runtime appends to that file. It has the process id, since child processes inherit the variable.
pub fn report_line(process: u32) -> String {
    format!("{process}\n")
}

/// Number of bytes at the start of a file that are enough to recognize a trace as text.
pub const TEXT_START: usize = 32;

/// Whether a file that starts like this is the output of `et-trace text` in any dialect.
pub fn starts_text(start: &[u8]) -> bool {
    start.starts_with(b"# Elephant Tracks, dialect ") || starts_oracle(start)
}

/// Whether the text is in the dialect `oracle`, which `et-trace` cannot read back.
pub fn starts_oracle(start: &[u8]) -> bool {
    start.starts_with(b"timestamp,event_type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_names_of_its_own() {
        assert_eq!(of_process("/x/%p-%p.zst", 7), "/x/7-7.zst");
        assert_eq!(beside_busy(Path::new("a/b.ettrace"), 7), Path::new("a/b.7.ettrace"));
        assert_eq!(beside_busy(Path::new("b"), 7), Path::new("b.7"));
    }

    #[test]
    fn a_text_shows_in_its_first_bytes() {
        for text in ["# Elephant Tracks, dialect et\n", "timestamp,event_type,object_id"] {
            assert!(starts_text(text.as_bytes()), "{text}");
        }
        for other in ["", "#!/bin/sh\n", "# Elephant", "PK\u{3}\u{4}", "timestamp,value"] {
            assert!(!starts_text(other.as_bytes()), "{other}");
        }
    }
}
