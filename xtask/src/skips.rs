//! Skipped tests, and the reasons. Test runners count ignored tests without showing the reasons, and do not count a
//! test that skips part of its work. So each test writes a note to a file, and `cargo xtask test` shows them all.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::folders;
use crate::layout::Layout;

/// Tests with the same reason, up to which each has a line.
const MANY: usize = 8;

/// The notes, one file each in a folder.
#[derive(Clone, Debug)]
pub struct Skips {
    folder: PathBuf,
}

impl Skips {
    /// The notes of this checkout.
    pub fn of(layout: &Layout) -> Self {
        Self::in_folder(layout.target.join("skipped"))
    }

    /// The notes in a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Deletes the notes of earlier runs.
    pub fn clear(&self) -> Result<()> {
        folders::remove(&self.folder)
    }

    /// Notes that a test, or a part of one, was skipped. Several processes may write the same note.
    pub fn note(&self, test: &str, reason: &str) -> Result<()> {
        let name: String = test.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = self.folder.join(name);
        let note = format!("{test}\t{}\n", reason.replace(['\n', '\t'], " "));
        if fs::read_to_string(&file).is_ok_and(|known| known == note) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        fs::write(&file, note).with_context(|| format!("cannot write {}", file.display()))
    }

    /// All notes as a table of tests and reasons; empty if there are none. Many tests with the same reason are one line.
    pub fn table(&self) -> Result<String> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            entries => entries.with_context(|| format!("cannot read {}", self.folder.display()))?,
        };
        let mut notes = Vec::new();
        for entry in entries {
            let note = fs::read_to_string(entry?.path())?;
            if let Some((test, reason)) = note.trim_end().split_once('\t') {
                notes.push((test.to_owned(), reason.to_owned()));
            }
        }
        if notes.is_empty() {
            return Ok(String::new());
        }
        notes.sort();
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (test, reason) in &notes {
            by_reason.entry(reason).or_default().push(test);
        }
        let mut rows: Vec<(String, &str)> = Vec::new();
        for (reason, tests) in by_reason {
            match tests.as_slice() {
                [first, others @ ..] if tests.len() > MANY => {
                    rows.push((format!("{first} and {} others", others.len()), reason));
                }
                few => rows.extend(few.iter().map(|test| ((*test).to_owned(), reason))),
            }
        }
        rows.sort();
        let width = rows.iter().map(|(test, _)| test.chars().count()).max().unwrap_or(0);
        let lines: String = rows.iter().map(|(test, reason)| format!("  {test:width$}  {reason}\n")).collect();
        Ok(format!("not tested: {}\n{lines}", notes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_become_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let skips = Skips::in_folder(folder.path().join("skips"));
        assert_eq!(skips.table().unwrap(), "");
        skips.note("jdk25::images", "JDK 25 has no jlink").unwrap();
        skips.note("jdk11::mode_z", "two\nlines").unwrap();
        skips.note("jdk11::mode_z", "two\nlines").unwrap();
        let table = skips.table().unwrap();
        assert_eq!(table, "not tested: 2\n  jdk11::mode_z  two lines\n  jdk25::images  JDK 25 has no jlink\n");
        for number in 10..30 {
            skips.note(&format!("jdk11::of_many_{number}"), "it takes long").unwrap();
        }
        let table = skips.table().unwrap();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[..2], ["not tested: 22", "  jdk11::mode_z                    two lines"]);
        assert_eq!(lines[2], "  jdk11::of_many_10 and 19 others  it takes long");
        skips.clear().unwrap();
        skips.clear().unwrap();
        assert_eq!(skips.table().unwrap(), "");
    }
}
