//! Output files of et-trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use et_reader::TraceFile;
use et_reader::text::starts;
use et_system::files::output;

pub use et_system::files::output::{Output, OutputError};

/// Kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text in any dialect.
    Text,
    Names,
    /// A recovered trace. One that a run left is not replaced.
    Recovered,
    /// A profile for another tool, which nothing shows to be ours.
    Profile,
    Report,
    HeapDump,
}

impl output::Kind for Kind {
    const INPUT: &'static str = "the trace itself (or the other output)";
    const PREFIX: &'static str = ".et-trace-";

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("a text of a trace"),
            Self::Names => Some("a names file"),
            Self::Recovered => Some("a recovered trace"),
            Self::Profile => None,
            Self::Report => Some("a report"),
            Self::HeapDump => Some("a heap dump"),
        }
    }

    fn is_at(self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        File::open(path)?.take(128).read_to_end(&mut start)?;
        let is_xml = || start.windows(starts::TPTP.len()).any(|text| text == starts::TPTP.as_bytes());
        let starts_with = |text: &str| start.starts_with(text.as_bytes());
        Ok(start.is_empty()
            || match self {
                Self::Text => {
                    starts_with(starts::TEXT) || starts_with(starts::ORACLE) || (starts_with("<?xml") && is_xml())
                }
                Self::Names => starts_with(starts::NAMES),
                // An empty file can always be replaced.
                Self::Profile => false,
                Self::Report => starts_with(et_report::START),
                Self::HeapDump => starts_with("JAVA PROFILE 1.0."),
                Self::Recovered => TraceFile::open(path).is_ok_and(|trace| trace.is_recovered()),
            })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_when_the_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let begin = |force| Output::create(&path, Kind::Text, force, &[]);
        let names = || fs::read_dir(&folder).unwrap().count();
        let mut new = begin(false).unwrap();
        new.write_all(b"half").unwrap();
        assert_eq!(names(), usize::from(!new.is_nameless()));
        drop(new);
        assert_eq!(names(), 0, "what was not finished is gone");
        let old = format!("{}et\n", starts::TEXT);
        fs::write(&path, &old).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut new = begin(false).unwrap();
        new.write_all(b"other").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), old);
        new.finish().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("other", 1));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        // It is no longer one of our files.
        let error = begin(false).unwrap_err().to_string();
        assert!(
            error.ends_with("is not a text of a trace: write to another file, or replace it with --force"),
            "{error}"
        );
        begin(true).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn links_stay_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut new = Output::create(&link, Kind::Names, false, &[]).unwrap();
        new.write_all(b"names").unwrap();
        new.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"names");
        let error = Output::create(&link, Kind::Text, true, &[&target]).unwrap_err();
        assert!(matches!(error, OutputError::SameFile { .. }), "{error}");
        Output::create(Path::new("/dev/null"), Kind::Text, false, &[]).unwrap().finish().unwrap();
        assert!(Path::new("/dev/null").exists());
    }
}
