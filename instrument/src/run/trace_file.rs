//! Where the trace of a run is: the runtime decides, and says nothing when all is well.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use et_format::trace_path;
use et_names::TRACE_MAGIC;

/// Value of the `traceFile` option after applying precedence; see docs/runtime-options.md.
#[derive(Clone, Debug)]
pub struct TraceFile {
    given: String,
    /// State of an existing file before the run.
    before: Option<(SystemTime, u64)>,
    started: SystemTime,
}

impl TraceFile {
    /// Takes the values in order of increasing precedence.
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        // Without a name it has the usual one, as with none given.
        let given = given.into_iter().last().filter(|given| !given.is_empty());
        let given = given.unwrap_or_else(|| trace_path::DEFAULT.into());
        Self { before: state(Path::new(&given)), given, started: SystemTime::now() }
    }

    /// Where it goes, as given.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The last `traceFile=` of `ET_OPTIONS`.
    pub fn in_variable(text: &str) -> Option<String> {
        let at = text.rfind("traceFile=")?;
        let value = &text[at + "traceFile=".len()..];
        // Options are joined by @; an @ within a path is not followed by a name and =.
        let end = value.match_indices('@').find(|(at, _)| {
            let name = value[at + 1..].split('=').next().unwrap_or_default();
            value[at + 1..].contains('=') && !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphabetic())
        });
        Some(value[..end.map_or(value.len(), |(at, _)| at)].to_owned())
    }

    /// The two lines about a finished run: where its trace is, and what to do with it. `was_begun`: the runtime has
    /// reported a trace that only its reader can see.
    pub fn lines(&self, process: u32, was_begun: bool) -> [String; 2] {
        let command = self.given.strip_prefix('>').map(|command| trace_path::of_process(command, process));
        if let Some(command) = command {
            return went_to(&format!("the command {command}"), was_begun);
        }
        let path = PathBuf::from(trace_path::of_process(&self.given, process));
        let path = std::path::absolute(&path).unwrap_or(path);
        if fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return went_to(&path.display().to_string(), was_begun);
        }
        // If another process was writing to the file, the runtime chose another name.
        match [trace_path::beside_busy(&path, process), path.clone()].into_iter().find(|path| self.is_ours(path)) {
            Some(path) => {
                let size = fs::metadata(&path).map_or(0, |found| found.len());
                let is_oracle = start(&path).is_ok_and(|start| trace_path::starts_oracle(&start));
                let path = quoted(&path);
                let next = match is_oracle {
                    true => "it is a table for other programs: et-trace does not read dialect oracle".to_owned(),
                    false => format!("next: et-trace summary {path}"),
                };
                [format!("trace: {path} ({})", et_names::units::bytes(size)), next]
            }
            None => [format!("no trace was written to {}", path.display()), WHY_NOT.into()],
        }
    }

    fn is_ours(&self, path: &Path) -> bool {
        let Some((time, length)) = state(path) else { return false };
        let is_trace =
            start(path).is_ok_and(|start| start.starts_with(&TRACE_MAGIC) || trace_path::starts_text(&start));
        // File systems count time in coarser steps than the clock.
        let is_new = time + Duration::from_secs(2) >= self.started;
        is_trace && is_new && self.before != Some((time, length))
    }
}

/// Message if there is no trace.
/// The trace file of an option that may name a folder: one that exists, or anything that ends with a slash.
pub fn in_folder(given: &str) -> String {
    let is_folder = !given.starts_with('>') && (given.ends_with('/') || Path::new(given).is_dir());
    if !is_folder {
        return given.to_owned();
    }
    format!("{}/{}", given.trim_end_matches('/'), trace_path::DEFAULT)
}

const WHY_NOT: &str = "the messages above say why; if there are none, no JVM was started. If they mention damaged files, run et-instrument cache clear";

/// The lines about a trace that went to a pipe.
fn went_to(reader: &str, was_begun: bool) -> [String; 2] {
    match was_begun {
        true => [format!("the trace went to {reader}"), "read it with et-trace".into()],
        false => [format!("no trace went to {reader}"), WHY_NOT.into()],
    }
}

/// Enough bytes of a file to determine its kind.
fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(trace_path::TEXT_START as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Modification time and size, which change when the file is written.
fn state(path: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((found.modified().ok()?, found.len()))
}

/// Quoted for a shell.
pub(super) fn quoted(path: &Path) -> String {
    crate::jdk::quoted(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_place_wins() {
        let at = |given: &[&str]| TraceFile::new(given.iter().map(|text| (*text).to_owned())).given;
        assert_eq!(at(&[]), trace_path::DEFAULT);
        assert_eq!(at(&["a", "b"]), "b");
        assert_eq!(at(&["a", ""]), trace_path::DEFAULT);
    }

    #[test]
    fn a_folder_holds_traces_by_their_usual_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let expected = format!("{path}/{}", trace_path::DEFAULT);
        assert_eq!([in_folder(&path), in_folder(&format!("{path}/"))], [expected.clone(), expected]);
        assert_eq!(in_folder("none/"), format!("none/{}", trace_path::DEFAULT));
        assert_eq!(
            [in_folder("/"), in_folder("a.ettrace"), in_folder(">(cat > /)")],
            ["/et-%p.ettrace", "a.ettrace", ">(cat > /)"]
        );
    }

    #[test]
    fn the_variable_is_read() {
        let read = |text: &str| TraceFile::in_variable(text);
        assert_eq!(read("bufferSize=1m"), None);
        assert_eq!(read("traceFile=a@bufferSize=1m").as_deref(), Some("a"));
        assert_eq!(read("traceFile=me@home.ettrace").as_deref(), Some("me@home.ettrace"));
    }

    #[test]
    fn an_old_trace_is_not_this_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ettrace");
        fs::write(&path, [&TRACE_MAGIC[..], b"just now"].concat()).unwrap();
        let trace = TraceFile::new([path.display().to_string()]);
        let lines = trace.lines(7, false);
        assert!(lines[0].starts_with("no trace was written") && lines[1].ends_with("et-instrument cache clear"));
        fs::write(&path, [&TRACE_MAGIC[..], b"and a new one"].concat()).unwrap();
        assert!(trace.lines(7, false)[0].starts_with("trace: "));
    }

    #[test]
    fn the_lines_tell_where_the_trace_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my trace-%p");
        let trace = TraceFile::new([path.display().to_string()]);
        assert!(trace.lines(7, false)[0].starts_with("no trace was written"));
        fs::write(folder.path().join("my trace-7"), "").unwrap();
        assert!(trace.lines(7, false)[0].starts_with("no trace was written"), "the JVM did not come to write");
        fs::write(folder.path().join("my trace-7"), TRACE_MAGIC).unwrap();
        let lines = trace.lines(7, false);
        assert!(lines[0].starts_with("trace: '") && lines[0].contains("my trace-7' (8 B)"), "{lines:?}");
        assert!(lines[1].starts_with("next: et-trace summary '"), "{lines:?}");
        fs::write(folder.path().join("my trace-7.7"), TRACE_MAGIC).unwrap();
        assert!(trace.lines(7, false)[0].contains("my trace-7.7'"));
        fs::write(folder.path().join("my trace-8"), "timestamp,event_type,object_id,").unwrap();
        let lines = trace.lines(8, false);
        assert!(lines[0].starts_with("trace: '") && lines[1].contains("does not read dialect oracle"), "{lines:?}");
    }

    #[test]
    fn what_went_to_a_reader_is_what_the_runtime_says() {
        let at = |given: &str, was_begun| TraceFile::new([given.to_owned()]).lines(1, was_begun).join("; ");
        assert_eq!(at(">(cat > %p)", true), "the trace went to the command (cat > 1); read it with et-trace");
        assert!(at(">(cat)", false).starts_with("no trace went to the command (cat); the messages above say why"));
        assert_eq!(at("/dev/null", true), "the trace went to /dev/null; read it with et-trace");
        assert!(at("/dev/null", false).starts_with("no trace went to /dev/null; "));
        let folder = tempfile::tempdir().unwrap();
        let lines = at(&folder.path().display().to_string(), false);
        assert!(lines.starts_with("no trace was written to /"), "a folder is no trace: {lines}");
    }
}
