//! Output under a temporary name beside the target, renamed when it is complete.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use et_names::units::counted;
use thiserror::Error;

use crate::artifact::Settings;
use crate::files::{FileError, absolute, unguessable};
use crate::interrupt::{Interrupted, Unfinished};
use crate::verify::{self, Finding, Verdict, VerifyError};

/// Every output folder contains one of these folders, by which `--force` recognizes what it may replace.
pub const MARKS: [&str; 2] = ["META-INF/elephant-tracks", "lib/elephant-tracks"];

/// Why an output was not put in its place.
#[derive(Debug, Error)]
pub enum StagingError {
    /// The output already exists.
    #[error("{path} exists: choose another -o, or pass --force to replace it")]
    Exists { path: PathBuf },
    /// `--force` would delete a folder that this tool did not make.
    #[error("{path} exists and was not made by et-instrument, so --force does not replace it: remove it first")]
    NotOurs { path: PathBuf },
    /// It was not when this run began.
    #[error("{path} was created by another run in the meantime: the output of this run was discarded")]
    Overtaken {
        /// The output.
        path: PathBuf,
    },
    /// Output and input are entangled.
    #[error("output {output} {how} input {input}: choose another -o")]
    Entangled {
        output: PathBuf,
        /// `is the same as`, `lies inside`, `contains`.
        how: &'static str,
        input: PathBuf,
    },
    /// `--check` found problems.
    #[error("{} in the output for {output}: nothing was written; please report this and attach the input",
        counted(findings.len() as u64, "finding"))]
    Check { output: PathBuf, findings: Vec<Finding> },
    /// The check itself failed.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A file of the output could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Interrupted by Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Fails if the output is the input, is inside of it, or contains it.
pub fn refuse_entangled(input: &Path, output: &Path) -> Result<(), StagingError> {
    let (from, to) = (absolute(input)?, absolute(output)?);
    let how = if from == to {
        "is the same as"
    } else if to.starts_with(&from) {
        "lies inside"
    } else if from.starts_with(&to) {
        "contains"
    } else {
        return Ok(());
    };
    Err(StagingError::Entangled { output: output.to_owned(), how, input: input.to_owned() })
}

/// An output being built. Dropped without [`commit`](Self::commit), it leaves nothing behind.
#[derive(Debug)]
pub struct Staging {
    part: Unfinished,
    target: PathBuf,
    there: There,
    force: bool,
}

/// What was at the target when work began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Nothing,
    /// Or a link: a rename replaces it.
    File,
    EmptyFolder,
    /// An output of this tool, to be replaced.
    Folder,
}

impl Staging {
    /// Prepares the output beside `target`, which must not exist unless `force`. Missing parent folders are created at
    /// the end.
    pub fn new(target: &Path, force: bool) -> Result<Self, StagingError> {
        let target = absolute(target)?;
        let existing = fs::symlink_metadata(&target).ok();
        let there = match &existing {
            None => There::Nothing,
            Some(metadata) if metadata.is_dir() => {
                let empty = fs::read_dir(&target).map_err(FileError::at("read", &target))?.next().is_none();
                if !empty && !force {
                    return Err(StagingError::Exists { path: target });
                }
                if !empty && !MARKS.iter().any(|mark| target.join(mark).is_dir()) {
                    return Err(StagingError::NotOurs { path: target });
                }
                if empty { There::EmptyFolder } else { There::Folder }
            }
            Some(_) if !force => return Err(StagingError::Exists { path: target }),
            Some(metadata) if metadata.is_file() || metadata.is_symlink() => There::File,
            // A device, a pipe: nothing that an output could take the place of.
            Some(_) => return Err(StagingError::NotOurs { path: target }),
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut beside = target.parent().unwrap_or(Path::new("/"));
        while !beside.is_dir() {
            // Said before the work, not at its end.
            if beside.symlink_metadata().is_ok() {
                let why = io::Error::other(format!("{} is not a folder", beside.display()));
                return Err(FileError { what: "write", path: target, source: why }.into());
            }
            match beside.parent() {
                Some(parent) => beside = parent,
                None => break,
            }
        }
        let prefix = format!(".{name}.et-part-");
        remove_orphans(beside, &prefix);
        // In a shared folder, other users must not be able to guess the name and create it first.
        let part = beside.join(format!("{prefix}{}-{:016x}", std::process::id(), unguessable()));
        Ok(Self { part: Unfinished::new(part), target, there, force })
    }

    /// Path of the folder or file under construction.
    pub fn path(&self) -> &Path {
        self.part.path()
    }

    /// Absolute path of the final output.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Puts the target's name into an error that speaks of the temporary one.
    pub fn explain(&self, error: FileError) -> FileError {
        let path = match error.path.strip_prefix(self.path()) {
            Ok(rest) if rest.as_os_str().is_empty() => self.target.clone(),
            Ok(rest) => self.target.join(rest),
            Err(_) => return error,
        };
        FileError { path, ..error }
    }

    /// Verifies the output if requested. Problems that were already in the inputs were copied unchanged, and are not
    /// findings.
    pub fn check(&self, settings: &Settings, inputs: &[PathBuf]) -> Result<Option<Verdict>, StagingError> {
        if !settings.check {
            return Ok(None);
        }
        let options = verify::Options { all: false, memory: settings.memory, progress: settings.progress.clone() };
        let mut verdict = match verify::run(&[self.path().to_owned()], &options) {
            Ok(verdict) => verdict,
            // Nothing was rewritten, so there is nothing to check; the report says that.
            Err(VerifyError::NoClasses { .. } | VerifyError::NotInstrumented { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !verdict.findings.is_empty() {
            let before = verify::run(inputs, &options).map(|verdict| verdict.findings).unwrap_or_default();
            let before: HashSet<_> = before.iter().map(|known| (known.entry.as_str(), known.what.as_str())).collect();
            verdict.findings.retain(|found| !before.contains(&(found.entry.as_str(), found.what.as_str())));
        }
        if verdict.findings.is_empty() {
            return Ok(Some(verdict));
        }
        let (part, target) = (self.path().display().to_string(), self.target.display().to_string());
        for finding in &mut verdict.findings {
            if let Some(rest) = finding.place.strip_prefix(&part) {
                finding.place = format!("{target}{rest}");
            }
        }
        Err(StagingError::Check { output: self.target.clone(), findings: verdict.findings })
    }

    /// Moves the output into place.
    pub fn commit(self) -> Result<(), StagingError> {
        self.commit_with(None)
    }

    /// Moves it into place, and a file that belongs to it: from where it was built to where it goes.
    pub fn commit_with(self, beside: Option<(&Path, &Path)>) -> Result<(), StagingError> {
        crate::interrupt::check()?;
        let target = &self.target;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(FileError::at("create", parent))?;
        }
        let old = crate::interrupt::put_in_place(|| -> Result<_, StagingError> {
            let old = match self.there {
                // Something created by another process in the meantime must not be replaced.
                There::Nothing if !self.force => rename_to_nothing(self.path(), target).map(|()| None),
                There::Nothing | There::File | There::EmptyFolder => rename(self.path(), target).map(|()| None),
                There::Folder => self.swap(),
            }?;
            if let Some((from, to)) = beside {
                fs::rename(from, to).map_err(FileError::at("write", to))?;
            }
            Ok((vec![target.clone()], old))
        })?;
        match old {
            Some(old) => Ok(fs::remove_dir_all(old.path()).map_err(FileError::at("remove", old.path()))?),
            None => Ok(()),
        }
    }

    /// A non-empty folder cannot be replaced by renaming: the old one is moved aside first. Returns its new path, to be
    /// removed.
    fn swap(&self) -> Result<Option<PathBuf>, StagingError> {
        let target = &self.target;
        let mut old = self.path().as_os_str().to_owned();
        old.push("-old");
        let old = PathBuf::from(old);
        match fs::rename(target, &old) {
            // Another process has removed it, or is just replacing it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return rename(self.path(), target).map(|()| None),
            done => done.map_err(FileError::at("replace", target))?,
        }
        if let Err(error) = rename(self.path(), target) {
            match fs::rename(&old, target) {
                Ok(()) => {}
                Err(_) => remove(&old),
            }
            return Err(error);
        }
        Ok(Some(old))
    }
}

/// Replaces a file or an empty folder; a folder that is not empty is a separate error.
fn rename(from: &Path, to: &Path) -> Result<(), StagingError> {
    fs::rename(from, to).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => {
            StagingError::Overtaken { path: to.to_owned() }
        }
        _ => FileError::at("write", to)(error).into(),
    })
}

fn rename_to_nothing(from: &Path, to: &Path) -> Result<(), StagingError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(StagingError::Overtaken { path: to.to_owned() }),
        // Not every file system has it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename(from, to),
        Err(error) => Err(FileError::at("write", to)(error.into()).into()),
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        remove(self.path());
    }
}

/// Removes what killed runs for the same target have left, and anything with our own process id.
fn remove_orphans(folder: &Path, prefix: &str) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = item.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else { continue };
        let Some((number, random)) = rest.split_once('-') else { continue };
        // `-old` is what `--force` was replacing: the user may want it back after killing that run. A names table that
        // belongs to the output has an extension.
        let random = random.split('.').next().unwrap_or_default();
        let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(process) = number.parse::<u32>().ok().filter(|_| is_random) else { continue };
        let procfs = Path::new("/proc");
        let is_gone = procfs.join("self").exists() && !procfs.join(number).exists();
        if is_gone || process == std::process::id() {
            remove(&item.path());
        }
    }
}

fn remove(path: &Path) {
    // Best effort: after a commit it is already gone, and errors cannot be reported in a drop.
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_without_a_commit() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b/out.jar");
        let staging = Staging::new(&target, false).unwrap();
        fs::write(staging.path(), "x").unwrap();
        drop(staging);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let staging = Staging::new(&target, false).unwrap();
        fs::write(staging.path(), "x").unwrap();
        staging.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"x");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn others_cannot_create_files_where_it_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, target) = (folder.path().join("victim"), folder.path().join("out"));
        fs::write(&victim, "precious").unwrap();
        // A guessable name: that of the output, and the process id.
        let known = folder.path().join(format!(".out.et-part-{}", std::process::id()));
        std::os::unix::fs::symlink(&victim, &known).unwrap();
        let staging = Staging::new(&target, false).unwrap();
        assert!(fs::symlink_metadata(staging.path()).is_err(), "nothing is there yet");
        fs::write(staging.path(), "x").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        let random = |staging: &Staging| staging.path().to_string_lossy().rsplit_once('-').unwrap().1.to_owned();
        let again = Staging::new(&folder.path().join("other"), false).unwrap();
        assert_ne!(random(&staging), random(&again));
    }

    #[test]
    fn what_killed_runs_have_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        // No process has the first number; the second is one of a run that is not ours to disturb.
        let names = [
            "4194305-0123456789abcdef",
            "4194305-0123456789abcdef.etnames",
            "1-0123456789abcdef",
            "4194305-0123456789abcdef-old",
            "4194305",
        ];
        let left = names.map(|name| folder.path().join(format!(".out.et-part-{name}")));
        left.iter().for_each(|path| fs::write(path, "").unwrap());
        let _staging = Staging::new(&folder.path().join("out"), false).unwrap();
        assert_eq!(left.map(|path| path.exists()), [false, false, true, true, true]);
    }

    #[test]
    fn of_two_runs_one_reports_that_the_other_was_faster() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        // Another process uses another name for its output under construction.
        let other = |staging: &mut Staging| {
            staging.part = Unfinished::new(folder.path().join("other"));
        };
        let make: [fn(&Path); 2] =
            [|path| fs::create_dir_all(path.join(MARKS[0])).unwrap(), |path| fs::write(path, "x").unwrap()];
        for (round, make) in make.into_iter().enumerate() {
            let first = Staging::new(&target, false).unwrap();
            let mut second = Staging::new(&target, false).unwrap();
            other(&mut second);
            make(first.path());
            make(second.path());
            first.commit().unwrap();
            let message = second.commit().unwrap_err().to_string();
            assert!(message.contains("another run") && !message.contains("os error"), "{round}: {message}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{round}");
            remove(&target);
        }
        // With --force the last one stays, and the first loses its folder.
        fs::create_dir_all(target.join(MARKS[0])).unwrap();
        let first = Staging::new(&target, true).unwrap();
        let mut second = Staging::new(&target, true).unwrap();
        other(&mut second);
        make[0](first.path());
        make[0](second.path());
        fs::write(second.path().join("second"), "").unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        assert!(target.join("second").is_file());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_signal_sees_the_old_output_or_the_new_one() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        fs::create_dir_all(target.join(MARKS[0])).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let mut rounds = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let (is_there, left) = crate::interrupt::as_a_signal(|unfinished| {
                        let items = fs::read_dir(folder.path()).unwrap().map(|item| item.unwrap().path());
                        let left =
                            items.filter(|item| *item != target && !unfinished.contains(item)).collect::<Vec<_>>();
                        (target.join(MARKS[0]).is_dir(), left)
                    });
                    assert!(is_there && left.is_empty(), "{is_there} {left:?}");
                    rounds += 1;
                }
                rounds
            });
            for _ in 0..300 {
                let staging = Staging::new(&target, true).unwrap();
                fs::create_dir_all(staging.path().join(MARKS[0])).unwrap();
                staging.commit().unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
            assert!(looks.join().unwrap() > 0);
        });
    }

    #[test]
    fn force_replaces_only_files_and_folders_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        fs::create_dir_all(target.join("precious")).unwrap();
        assert!(matches!(Staging::new(&target, false), Err(StagingError::Exists { .. })));
        assert!(matches!(Staging::new(&target, true), Err(StagingError::NotOurs { .. })));
        assert!(matches!(Staging::new(Path::new("/dev/null"), true), Err(StagingError::NotOurs { .. })));
        fs::create_dir_all(target.join(MARKS[0])).unwrap();
        let staging = Staging::new(&target, true).unwrap();
        fs::create_dir(staging.path()).unwrap();
        staging.commit().unwrap();
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
