//! The folder of tables: `TABLE/run=NAME/part-00000.parquet`, and for each run a manifest, which is put in place last.
//! Files that no manifest lists do not count.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use et_columns::TableReader;
use et_system::files::Whole;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use crate::sheet::Part;
use crate::tables::ALL;

/// Folder of the manifests. Engines ignore names that begin with an underscore.
const RUNS: &str = "_runs";
/// Prefix of the names of incomplete folders.
const PREFIX: &str = ".et-tables-";
const FORMAT: &str = "Elephant Tracks tables";
/// Version of the folder's layout. Adding a column does not change it.
const VERSION: u32 = 1;

/// A Parquet file with its length and hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// Path relative to the folder: `calls/run=NAME/part-00000.parquet`.
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    /// XXH3 of the content, in hexadecimal.
    pub xxh3: String,
}

/// Description of a run in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    /// Version of et-trace.
    pub tool: String,
    /// Name of the run in this folder.
    pub run: String,
    /// Id that the runtime assigned to the run; `None` for a text.
    pub run_id: Option<String>,
    pub files: Vec<TableFile>,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    #[error("{path} exists and is not a folder of tables: write to another one", path = path.display())]
    NotOurs { path: PathBuf },
    #[error("{path} already has a different run named {run}: name this one with --run", path = path.display())]
    Taken { path: PathBuf, run: String },
    #[error("cannot write to {path}: {source}", path = path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{path} is not a folder of tables: write one with et-trace tables", path = path.display())]
    NoTables { path: PathBuf },
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is damaged: remove it, and convert the trace again", path = path.display())]
    Manifest { path: PathBuf },
    #[error("{path} is missing: convert the trace of run {run} again", path = path.display())]
    Missing { path: PathBuf, run: String },
    #[error("{path} is cut off: it has {there} bytes instead of {bytes}; convert the trace of run {run} again", path = path.display())]
    Length { path: PathBuf, run: String, there: u64, bytes: u64 },
    #[error("{path} is damaged: convert the trace of run {run} again", path = path.display())]
    Damaged { path: PathBuf, run: String },
    #[error("{path} belongs to a run whose conversion did not finish: convert its trace again, or remove it", path = path.display())]
    Incomplete { path: PathBuf },
    #[error("{path} was not written by et-trace tables: remove it from the folder", path = path.display())]
    Foreign { path: PathBuf },
}

/// A run that is being converted.
#[derive(Debug)]
pub struct Conversion {
    folder: PathBuf,
    /// Whether the folder was created for this run.
    is_new: bool,
    run: String,
    run_id: Option<String>,
    /// Removed with its content unless the conversion is completed.
    temporary: Option<TempDir>,
    /// Locked as long as the temporary folder is in use.
    lock: Option<File>,
}

impl Conversion {
    /// Starts the conversion of a run.
    pub fn begin(folder: &Path, run: &str, run_id: Option<&str>) -> Result<Self, FolderError> {
        let fail = |source| FolderError::Write { path: folder.to_owned(), source };
        let is_new = match fs::create_dir(folder) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_abandoned(folder).map_err(fail)?;
                let is_ours = folder.is_dir() && (folder.join(RUNS).is_dir() || is_empty(folder).map_err(fail)?);
                if !is_ours {
                    return Err(FolderError::NotOurs { path: folder.to_owned() });
                }
                false
            }
            Err(error) => return Err(fail(error)),
        };
        let run_id = run_id.map(str::to_owned);
        let mut conversion =
            Self { folder: folder.to_owned(), is_new, run: name_of(run), run_id, temporary: None, lock: None };
        let there = read_manifest(&conversion.manifest()).ok();
        if there.is_some_and(|there| there.run_id != conversion.run_id) {
            return Err(FolderError::Taken { path: folder.to_owned(), run: conversion.run.clone() });
        }
        let temporary = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder).map_err(fail)?;
        conversion.lock = Some(lock(temporary.path()).map_err(fail)?);
        conversion.temporary = Some(temporary);
        Ok(conversion)
    }

    /// Name of the run in the folder.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The temporary folder with a subfolder for each table.
    pub fn place(&self) -> &Path {
        self.temporary.as_ref().map_or(&self.folder, TempDir::path)
    }

    fn manifest(&self) -> PathBuf {
        self.folder.join(RUNS).join(format!("{}.json", self.run))
    }

    /// Moves the tables into place. Replaces earlier tables of the run.
    pub fn finish(mut self, tables: &[(&'static str, Vec<Part>)]) -> Result<(), FolderError> {
        let done = self.publish(tables);
        done.map_err(|source| FolderError::Write { path: self.folder.clone(), source })?;
        self.is_new = false;
        Ok(())
    }

    fn publish(&self, tables: &[(&'static str, Vec<Part>)]) -> io::Result<()> {
        let partition = format!("run={}", self.run);
        // First: whenever the conversion is killed, the folder is known to be one of tables.
        fs::create_dir_all(self.folder.join(RUNS))?;
        match fs::remove_file(self.manifest()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for table in ALL {
            let old = self.folder.join(table.name).join(&partition);
            if old.exists() {
                fs::rename(&old, self.place().join(format!("{}.old", table.name)))?;
            }
        }
        let mut files = Vec::new();
        for (table, parts) in tables {
            let folder = self.folder.join(table);
            fs::create_dir_all(&folder)?;
            fs::rename(self.place().join(table), folder.join(&partition))?;
            files.extend(parts.iter().map(|part| TableFile {
                path: format!("{table}/{partition}/{}", part.name),
                rows: part.rows,
                bytes: part.bytes,
                xxh3: format!("{:016x}", part.xxh3),
            }));
        }
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.run.clone(),
            run_id: self.run_id.clone(),
            files,
        };
        let text = serde_json::to_string_pretty(&manifest).map_err(io::Error::other)?;
        let mut file = Whole::create(&self.manifest(), 0o666, PREFIX)?;
        file.file().write_all(text.as_bytes())?;
        file.finish()
    }
}

impl Drop for Conversion {
    fn drop(&mut self) {
        self.temporary = None;
        if self.is_new {
            // Fails if there is something in it, which stays.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// A partition name that no engine misinterprets.
fn name_of(run: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = run.chars().map(plain).collect();
    if name.starts_with(|first: char| first.is_ascii_alphanumeric()) { name } else { format!("run{name}") }
}

/// Whether the folder has no content except conversions in progress.
fn is_empty(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if !is_temporary(&entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Lock file in a temporary folder: the system unlocks it however the process ends.
const LOCK: &str = "lock";

fn lock(temporary: &Path) -> io::Result<File> {
    let file = File::create_new(temporary.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

/// Removes what killed conversions left behind. One that has just begun has no lock file yet, and is left alone.
fn remove_abandoned(folder: &Path) -> io::Result<()> {
    // If it is not a folder, that is reported later.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if is_temporary(&entry.file_name())
            && let Ok(file) = File::open(entry.path().join(LOCK))
            && file.try_lock().is_ok()
        {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn read_manifest(path: &Path) -> io::Result<Manifest> {
    let manifest: Manifest = serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)?;
    let is_ours = manifest.format == FORMAT && manifest.version == VERSION;
    if is_ours { Ok(manifest) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// A complete folder of tables.
#[derive(Debug)]
pub struct Tables {
    folder: PathBuf,
    runs: Vec<Manifest>,
}

impl Tables {
    /// Opens a folder. Fails if a file is missing or has another length, or if there are other files.
    pub fn open(folder: &Path) -> Result<Self, FolderError> {
        let runs = folder.join(RUNS);
        if !runs.is_dir() {
            return Err(FolderError::NoTables { path: folder.to_owned() });
        }
        let mut tables = Self { folder: folder.to_owned(), runs: Vec::new() };
        for path in entries(&runs)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let manifest = read_manifest(&path).map_err(|_| FolderError::Manifest { path: path.clone() })?;
            tables.runs.push(manifest);
        }
        for (run, file) in tables.files() {
            let (path, run) = (folder.join(&file.path), run.run.clone());
            match fs::metadata(&path) {
                Ok(there) if there.len() == file.bytes => {}
                Ok(there) => return Err(FolderError::Length { path, run, there: there.len(), bytes: file.bytes }),
                Err(_) => return Err(FolderError::Missing { path, run }),
            }
        }
        tables.has_no_others()?;
        if tables.runs.is_empty() {
            return Err(FolderError::NoTables { path: folder.to_owned() });
        }
        Ok(tables)
    }

    fn files(&self) -> impl Iterator<Item = (&Manifest, &TableFile)> {
        self.runs.iter().flat_map(|run| run.files.iter().map(move |file| (run, file)))
    }

    /// Fails if there are other files, since engines read all files in the folder of a table.
    fn has_no_others(&self) -> Result<(), FolderError> {
        let known: BTreeSet<PathBuf> = self.files().map(|(_, file)| self.folder.join(&file.path)).collect();
        let is_data = |path: &Path| path.extension().is_some_and(|end| end == "parquet");
        for table in ALL {
            let folder = self.folder.join(table.name);
            let partitions = if folder.is_dir() { entries(&folder)? } else { Vec::new() };
            for partition in partitions {
                if !partition.is_dir() {
                    if is_data(&partition) {
                        return Err(FolderError::Foreign { path: partition });
                    }
                    continue;
                }
                let name = partition.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let is_run = |run: &Manifest| name.strip_prefix("run=") == Some(run.run.as_str());
                if name.starts_with("run=") && !self.runs.iter().any(is_run) {
                    return Err(FolderError::Incomplete { path: partition });
                }
                if let Some(path) = entries(&partition)?.into_iter().find(|path| is_data(path) && !known.contains(path))
                {
                    return Err(FolderError::Foreign { path });
                }
            }
        }
        Ok(())
    }

    /// Reads all files and compares their hashes.
    pub fn check(&self) -> Result<(), FolderError> {
        for (run, file) in self.files() {
            let path = self.folder.join(&file.path);
            let hash = hash_of(&path).map_err(|source| FolderError::Read { path: path.clone(), source })?;
            if format!("{hash:016x}") != file.xxh3 {
                return Err(FolderError::Damaged { path, run: run.run.clone() });
            }
        }
        Ok(())
    }

    /// Whether there is a file of that table.
    pub fn has(&self, table: &str) -> bool {
        self.files().any(|(_, file)| file.path.split('/').next() == Some(table))
    }

    /// Runs whose tables have no deaths.
    pub fn without_deaths(&self) -> Result<Vec<&str>, FolderError> {
        let mut runs = Vec::new();
        for (run, file) in self.files().filter(|(_, file)| file.path.starts_with("trace/")) {
            let path = self.folder.join(&file.path);
            let has_deaths = has_deaths(&path).map_err(|source| FolderError::Read { path, source })?;
            if !has_deaths {
                runs.push(run.run.as_str());
            }
        }
        Ok(runs)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The runs, sorted by name.
    pub fn runs(&self) -> &[Manifest] {
        &self.runs
    }
}

/// Reads whether the run has deaths from table `trace`.
fn has_deaths(path: &Path) -> io::Result<bool> {
    let table = TableReader::open(File::open(path)?)?;
    Ok(table.groups() > 0 && table.flags(0, "has_deaths")?.first() == Some(&Some(true)))
}

fn hash_of(path: &Path) -> io::Result<u64> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Xxh3::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.digest()),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut paths = read().map_err(|source| FolderError::Read { path: folder.to_owned(), source })?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two tables: the second is not there to be moved.
    #[test]
    fn a_conversion_that_stopped_in_the_middle_can_be_repeated() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("app.tables");
        let conversion = Conversion::begin(&folder, "app", None).unwrap();
        let calls = conversion.place().join("calls");
        fs::create_dir(&calls).unwrap();
        fs::write(calls.join("part-00000.parquet"), "rows").unwrap();
        conversion.finish(&[("calls", Vec::new()), ("updates", Vec::new())]).unwrap_err();
        assert!(matches!(Tables::open(&folder), Err(FolderError::Incomplete { .. })), "{:?}", Tables::open(&folder));

        let again = Conversion::begin(&folder, "app", None).unwrap();
        fs::create_dir(again.place().join("calls")).unwrap();
        again.finish(&[("calls", Vec::new())]).unwrap();
        assert_eq!(Tables::open(&folder).unwrap().runs().len(), 1);
    }

    #[test]
    fn a_folder_without_a_run_has_no_tables() {
        let temporary = tempfile::tempdir().unwrap();
        fs::create_dir(temporary.path().join(RUNS)).unwrap();
        assert!(matches!(Tables::open(temporary.path()), Err(FolderError::NoTables { .. })));
        assert!(Conversion::begin(temporary.path(), "app", None).is_ok());
    }
}
