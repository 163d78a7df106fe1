//! Where the trace of a run is: the runtime decides, and says nothing when all is well.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What the runtime calls a trace that nobody has named.
const DEFAULT: &str = "et-%p.ettrace";

/// What `traceFile` says, weakest place first; see docs/runtime-options.md.
#[derive(Clone, Debug)]
pub struct TraceFile {
    given: String,
    started: SystemTime,
}

impl TraceFile {
    /// What is given, from the weakest place to the strongest.
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        let given = given.into_iter().last().unwrap_or_else(|| DEFAULT.into());
        Self { given, started: SystemTime::now() }
    }

    /// The last `traceFile=` of `ET_OPTIONS`.
    pub fn in_variable(text: &str) -> Option<String> {
        let at = text.rfind("traceFile=")?;
        let value = &text[at + "traceFile=".len()..];
        // Options are joined by @; one that is part of a path has no name and = behind it.
        let end = value.match_indices('@').find(|(at, _)| {
            let name = value[at + 1..].split('=').next().unwrap_or_default();
            value[at + 1..].contains('=') && !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphabetic())
        });
        Some(value[..end.map_or(value.len(), |(at, _)| at)].to_owned())
    }

    /// The two lines on a run that has ended: where its trace is, and what to do with it.
    pub fn lines(&self, process: u32) -> [String; 2] {
        if self.given.starts_with(">(") {
            return [format!("the trace went to the command {}", self.given), "read it with et-trace".into()];
        }
        let path = PathBuf::from(self.given.replace("%p", &process.to_string()));
        let path = std::path::absolute(&path).unwrap_or(path);
        // Where another process was writing, the runtime takes a name of its own.
        let mut other = path.clone().into_os_string();
        other.push(format!(".{process}"));
        match [PathBuf::from(other), path.clone()].into_iter().find(|path| self.is_ours(path)) {
            Some(path) => {
                let size = fs::metadata(&path).map_or(0, |found| found.len());
                let path = quoted(&path);
                [format!("trace: {path} ({:.1} MB)", size as f64 / 1e6), format!("next: et-trace summary {path}")]
            }
            None => [
                format!("no trace was written to {}", path.display()),
                "the messages above tell why; with none of them, no JVM was started".into(),
            ],
        }
    }

    fn is_ours(&self, path: &Path) -> bool {
        // A pipe has no time of its own; file systems count time in coarser steps than the clock.
        let written = fs::metadata(path).and_then(|found| Ok((found.is_file(), found.modified()?)));
        written.is_ok_and(|(is_file, time)| !is_file || time + std::time::Duration::from_secs(1) >= self.started)
    }
}

/// As a shell takes it.
fn quoted(path: &Path) -> String {
    crate::jdk::quoted(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_place_wins() {
        let at = |given: &[&str]| TraceFile::new(given.iter().map(|text| (*text).to_owned())).given;
        assert_eq!(at(&[]), DEFAULT);
        assert_eq!(at(&["a", "b"]), "b");
    }

    #[test]
    fn the_variable_is_read() {
        let read = |text: &str| TraceFile::in_variable(text);
        assert_eq!(read("bufferSize=1m"), None);
        assert_eq!(read("traceFile=a@bufferSize=1m").as_deref(), Some("a"));
        assert_eq!(read("traceFile=me@home.ettrace").as_deref(), Some("me@home.ettrace"));
    }

    #[test]
    fn the_lines_tell_where_the_trace_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my trace-%p");
        let trace = TraceFile::new([path.display().to_string()]);
        assert!(trace.lines(7)[0].starts_with("no trace was written"));
        fs::write(folder.path().join("my trace-7"), "x").unwrap();
        let lines = trace.lines(7);
        assert!(lines[0].starts_with("trace: '") && lines[0].contains("my trace-7' (0.0 MB)"), "{lines:?}");
        assert!(lines[1].starts_with("next: et-trace summary '"), "{lines:?}");
        fs::write(folder.path().join("my trace-7.7"), "x").unwrap();
        assert!(trace.lines(7)[0].contains("my trace-7.7'"));
        assert!(TraceFile::new([">(cat)".to_owned()]).lines(1)[0].contains(">(cat)"));
    }
}
