//! A log in the trace format of TPTP's viewers; `docs/trcxml.xsd` is its schema.
//!
//! Any thread can add elements to a buffer; the thread for input and output writes them in that order, ten times per
//! second, or when there are many. The file always ends with its closing tag, which the next elements overwrite: after
//! `kill -9` it is well-formed, and only the last tenth of a second is missing.

mod definitions;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use et_jvm::sync::lock;
use et_trcxml::{END, START};
use rustc_hash::{FxHashMap, FxHashSet};

/// Number of buffered bytes at which the thread that adds an element writes them itself.
const MANY: usize = 1 << 20;

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    /// Threads and methods that are defined; objects and classes have tags.
    threads: FxHashSet<u32>,
    methods: FxHashMap<usize, u64>,
}

#[derive(Debug)]
struct Written {
    file: File,
    /// Where the closing tag begins.
    end: u64,
}

/// A log file with its buffer.
#[derive(Debug)]
pub struct XmlLog {
    waiting: Mutex<Waiting>,
    written: Mutex<Written>,
    has_failed: AtomicBool,
    path: PathBuf,
}

impl XmlLog {
    /// Makes the file; `%p` in its name is the process id.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = PathBuf::from(path.to_string_lossy().replace("%p", &std::process::id().to_string()));
        let file = File::create(&path)?;
        file.write_all_at(format!("{START}{END}").as_bytes(), 0)?;
        let written = Mutex::new(Written { file, end: START.len() as u64 });
        Ok(Self { waiting: Mutex::default(), written, has_failed: AtomicBool::new(false), path })
    }

    /// Adds one or more elements.
    pub fn put(&self, elements: &str) {
        let mut waiting = lock(&self.waiting);
        self.put_into(&mut waiting, elements);
    }

    fn put_into(&self, waiting: &mut Waiting, elements: &str) {
        if !self.has_failed.load(Ordering::Relaxed) {
            waiting.text.push_str(elements);
        }
    }

    /// Whether the buffer should be written now. Must not be called inside a collection's pause.
    pub fn is_full(&self) -> bool {
        lock(&self.waiting).text.len() >= MANY
    }

    /// Whether it could not be written any more.
    pub fn has_ended(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what waits. A message if that fails, once; nothing is written any more then.
    pub fn flush(&self) -> Option<String> {
        let mut written = lock(&self.written);
        let text = std::mem::take(&mut lock(&self.waiting).text);
        if text.is_empty() || self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let mut bytes = text.into_bytes();
        let length = bytes.len() as u64;
        bytes.extend_from_slice(END.as_bytes());
        let (done, failed) = write_at(&written.file, &bytes, written.end);
        match failed {
            None => {
                written.end += length;
                None
            }
            Some(error) => {
                self.has_failed.store(true, Ordering::Relaxed);
                // Existing elements are kept, if there is room for the closing tag after them.
                let room = done.saturating_sub(END.len()).min(length as usize);
                let whole = bytes[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                written.end += whole as u64;
                let _ = written.file.set_len(written.end);
                let _ = written.file.write_all_at(END.as_bytes(), written.end);
                Some(format!("cannot write {}: {error}; the log ends here", self.path.display()))
            }
        }
    }
}

/// Writes as much as goes: how much that was, and why it was not all.
fn write_at(file: &File, bytes: &[u8], at: u64) -> (usize, Option<io::Error>) {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], at + done as u64) {
            Ok(0) => return (done, Some(io::ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (done, Some(error)),
        }
    }
    (done, None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use et_trcxml::Element;

    use super::*;

    #[test]
    fn the_file_is_whole_at_any_time() {
        let folder = tempfile::tempdir().unwrap();
        let log = XmlLog::create(&folder.path().join("run-%p.trcxml")).unwrap();
        let path = folder.path().join(format!("run-{}.trcxml", std::process::id()));
        let text = || fs::read_to_string(&path).unwrap();
        assert!(text().ends_with("<TRACE>\n</TRACE>\n"));
        log.put(&Element::new("gcStart").end());
        assert!(!text().contains("gcStart"));
        assert_eq!(log.flush(), None);
        assert!(text().ends_with("<TRACE>\n<gcStart/>\n</TRACE>\n"));
        log.put(&Element::new("gcFinish").end());
        log.flush();
        assert!(text().ends_with("<gcStart/>\n<gcFinish/>\n</TRACE>\n"));
    }
}
