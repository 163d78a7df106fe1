//! Where a run writes its trace: the runtime decides, and `run` looks there afterwards.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
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

/// Environment variable with which `run` has the JVMs traced that its program starts: their options, in the form of the
/// agent's string. Empty: they cannot be traced, and only tell of themselves.
pub const CHILDREN: &str = "ET_CHILDREN";

/// The agent's string in an instrumented JDK's own options. An agent with it does nothing without [`CHILDREN`].
pub const CHILD_AGENT: &str = "children";

/// What a JVM that the program has started tells of itself, in the file of [`REPORT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Child {
    /// It has begun a trace in this file.
    Traced { process: u32, path: PathBuf },
    /// Its trace would have had no place of its own.
    Untraced { process: u32 },
}

impl Child {
    /// The line in the report. It begins with a word, unlike [`report_line`].
    pub fn line(&self) -> Vec<u8> {
        match self {
            Self::Traced { process, path } => {
                let mut line = format!("traced {process} ").into_bytes();
                line.extend_from_slice(path.as_os_str().as_bytes());
                line.push(b'\n');
                line
            }
            Self::Untraced { process } => format!("untraced {process}\n").into_bytes(),
        }
    }

    /// Reads a line without its end; `None` if it tells of something else.
    pub fn read(line: &[u8]) -> Option<Self> {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let kind = words.next()?;
        let process = str::from_utf8(words.next()?).ok()?.parse().ok()?;
        match (kind, words.next()) {
            (b"traced", Some(path)) => Some(Self::Traced { process, path: OsStr::from_bytes(path).into() }),
            (b"untraced", None) => Some(Self::Untraced { process }),
            _ => None,
        }
    }
}

/// Where the traces of the JVMs go that a program starts whose own trace goes to `given`: each has its process id in its name.
/// A command that does not take one can have one trace only.
pub fn of_children(given: &str) -> Option<String> {
    if given.contains("%p") {
        return Some(given.to_owned());
    }
    if given.starts_with('>') {
        return None;
    }
    let path = Path::new(given);
    let mut name = path.file_stem()?.to_str()?.to_owned() + ".%p";
    if let Some(extension) = path.extension() {
        name = name + "." + extension.to_str()?;
    }
    path.with_file_name(name).to_str().map(str::to_owned)
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
    fn children_have_places_of_their_own() {
        let places = ["/x/et-%p.ettrace", "/x/app.ettrace", "/x/app", ">(cat > %p)", ">(cat)"].map(of_children);
        let expected =
            [Some("/x/et-%p.ettrace"), Some("/x/app.%p.ettrace"), Some("/x/app.%p"), Some(">(cat > %p)"), None];
        assert_eq!(places.each_ref().map(Option::as_deref), expected);
    }

    #[test]
    fn what_children_tell_is_read_back() {
        for child in [Child::Traced { process: 7, path: "/my traces/a.ettrace".into() }, Child::Untraced { process: 8 }]
        {
            let line = child.line();
            assert_eq!(Child::read(line.strip_suffix(b"\n").unwrap()), Some(child));
        }
        for other in ["417", "", "traced", "traced 7", "untraced 7 x", "traced x /a"] {
            assert_eq!(Child::read(other.as_bytes()), None, "{other}");
        }
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
