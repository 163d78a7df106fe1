//! Output files of et-replay.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use et_system::files::output;

use et_columns::TableReader;

use et_simulate::events::{CSV_HEADER, PARQUET_NAME};
use et_simulate::ops;

pub use et_system::files::output::{Output, OutputError};

/// Number of leading bytes that identify a file's kind.
const START: usize = 32;

/// Kind of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An operations file.
    Ops,
    /// Events as CSV.
    Events,
    /// Events as a Parquet table.
    EventsTable,
    /// Curves as an HTML page.
    Page,
    /// Curves as SVG.
    Svg,
}

impl output::Kind for Kind {
    const INPUT: &'static str = "the input itself";
    const PREFIX: &'static str = ".et-replay-";

    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Ops => "an operations file",
            Self::Events => "events of a simulation",
            Self::EventsTable => "a table of a simulation's events",
            Self::Page => "a page of curves",
            Self::Svg => "a drawing",
        })
    }

    fn is_at(self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        File::open(path)?.take(START as u64).read_to_end(&mut start)?;
        Ok(start.is_empty()
            || match self {
                Self::Ops => start.starts_with(&ops::MAGIC),
                Self::Page => start.starts_with(b"<!DOCTYPE html><html"),
                Self::Svg => start.starts_with(b"<svg "),
                Self::EventsTable => {
                    TableReader::open(File::open(path)?).is_ok_and(|table| table.name() == PARQUET_NAME)
                }
                Self::Events => start.starts_with(CSV_HEADER.as_bytes().get(..START).unwrap_or_default()),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn only_files_of_the_same_kind_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, input) = (folder.path().join("a.csv"), folder.path().join("a.ops"));
        fs::write(&input, ops::MAGIC).unwrap();
        let write = |force| -> Result<(), String> {
            let mut file = Output::create(&path, Kind::Events, force, &[&input]).map_err(|error| error.to_string())?;
            writeln!(file.file(), "{CSV_HEADER}").unwrap();
            file.finish().map_err(|error| error.to_string())
        };
        assert_eq!(write(false), Ok(()));
        assert_eq!(write(false), Ok(()), "its own kind");
        fs::write(&path, "mine").unwrap();
        assert!(
            write(false)
                .unwrap_err()
                .ends_with("is not events of a simulation: write to another file, or replace it with --force")
        );
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert_eq!(write(true), Ok(()));
        let same = Output::create(&input, Kind::Ops, true, &[&input]).map(drop).unwrap_err();
        assert!(matches!(same, OutputError::SameFile { .. }));
        assert!(Output::create(folder.path(), Kind::Ops, true, &[&input]).is_err());
        assert!(Output::create(&folder.path().join("none/x"), Kind::Ops, true, &[&input]).is_err());
        // A device is written to, not replaced.
        Output::create(Path::new("/dev/null"), Kind::Ops, true, &[&input]).unwrap().finish().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
