//! Checks that tests leave the work tree as it was: their files belong in `target` or in temporary folders. Files that `.gitignore`
//! hides count as well.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::command;

/// The changed, untracked and ignored files of a work tree, as git lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree(BTreeSet<String>);

impl WorkTree {
    /// Reads the state of the work tree that contains a folder.
    ///
    /// # Errors
    ///
    /// Fails if git is not installed, or if the folder is not in a work tree, as for sources from an archive.
    pub fn look(folder: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(folder).args(["status", "--porcelain", "-z", "--no-renames"]);
        let output = command::quiet(git.args(["--untracked-files=all", "--ignored=matching"]))?;
        let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(Self(entries.map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()))
    }

    /// New or changed files in `later`: two letters as in `git status`, and the path.
    pub fn new_in(&self, later: &Self) -> Vec<String> {
        later.0.difference(&self.0).cloned().collect()
    }

    /// Fails if any file is new or changed.
    pub fn ensure_unchanged(&self, folder: &Path) -> Result<()> {
        let new = self.new_in(&Self::look(folder)?);
        ensure!(new.is_empty(), "tests must not change the work tree, but left: {}", new.join(", "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_comes_is_seen_whether_it_is_ignored_or_not() {
        if !command::exists("git") {
            // As `cargo xtask test`, which reports it in its table.
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(folder.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
            command::quiet(git.args(arguments)).unwrap();
        };
        git(&["init", "-q"]);
        fs::write(at(".gitignore"), "*.ettrace\n/target\n").unwrap();
        fs::write(at("kept"), "1").unwrap();
        fs::create_dir(at("target")).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "t"]);
        fs::write(at("mine"), "work that is not committed").unwrap();
        let before = WorkTree::look(folder.path()).unwrap();
        fs::write(at("target/made"), "").unwrap();
        fs::write(at("mine"), "more of it").unwrap();
        before.ensure_unchanged(folder.path()).unwrap();
        fs::write(at("kept"), "2").unwrap();
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/.attach_pid1"), "").unwrap();
        fs::write(at("t.ettrace"), "").unwrap();
        let after = WorkTree::look(folder.path()).unwrap();
        // The second letter: changed in the work tree.
        assert_eq!(before.new_in(&after), [" M kept", "!! t.ettrace", "?? sub/.attach_pid1"]);
        let error = before.ensure_unchanged(folder.path()).unwrap_err().to_string();
        assert!(error.contains("sub/.attach_pid1"), "{error}");
    }
}
