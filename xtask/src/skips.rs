//! What tests did not test, and why. Test runners count ignored tests and keep the reasons to themselves, and a test that leaves out
//! a part of its work is not even counted: so each notes it in a file, and `cargo xtask test` shows all of them.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::folders;
use crate::layout::Layout;

/// The notes of the tests.
#[derive(Clone, Debug)]
pub struct Skips {
    folder: PathBuf,
}

impl Skips {
    /// Those of this checkout.
    pub fn of(layout: &Layout) -> Self {
        Self::in_folder(layout.target.join("skipped"))
    }

    /// Those in a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Forgets those of earlier runs.
    pub fn clear(&self) -> Result<()> {
        folders::remove(&self.folder)
    }

    /// A test, or a part of it, was not done. The same note may come from several processes.
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

    /// All of them, a reason and the tests that it kept from being done; the empty text if there are none.
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
        let width = notes.iter().map(|(test, _)| test.chars().count()).max().unwrap_or(0);
        let lines: String = notes.iter().map(|(test, reason)| format!("  {test:width$}  {reason}\n")).collect();
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
        skips.clear().unwrap();
        skips.clear().unwrap();
        assert_eq!(skips.table().unwrap(), "");
    }
}
