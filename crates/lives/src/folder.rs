//! The folder of a life table: it is put in place atomically, and is used only if it belongs to the trace.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use et_columns::Written;
use et_reader::TraceFile;
use et_reader::blocks::Late;
use et_reader::population::Moment;
use et_system::files::{nameless, parent};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::tables;

/// The file that describes the folder.
pub const MANIFEST: &str = "lives.json";
/// Description of the folder, for users who find it.
const FORMAT: &str = "Elephant Tracks life table";
/// Version of the folder and of the meanings of columns. Raise it when a column changes its meaning; a changed set of columns is noticed without
/// ([`Manifest::columns`]).
const VERSION: u32 = 3;
/// Prefix of the names of folders that are not in place yet.
const PREFIX: &str = ".et-lives-";

/// A file in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3 of the content, in hexadecimal.
    pub xxh3: String,
}

/// Description of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always the same: names the format, for users who open the file.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Version of et-trace; another version may compute different results.
    pub tool: String,
    /// XXH3 of the schemas of all tables, in hexadecimal.
    #[serde(default)]
    pub columns: String,
    /// Id of the run that the trace belongs to.
    pub run: String,
    /// Length of the trace in bytes.
    pub trace_bytes: u64,
    /// XXH3 of all block headers of the trace, in hexadecimal.
    pub trace_headers: String,
    /// Number of rows of the table of objects.
    pub objects: u64,
    /// Number of calls attributed to their caller's context because there were too many contexts.
    pub calls_without_context: u64,
    /// Clock at the end of the trace.
    pub end_tick: u64,
    /// Bytes allocated by the end of the trace.
    pub end_bytes: u64,
    /// Rows that are not in order.
    #[serde(default)]
    pub late: Late,
    /// Time at the end of the trace in nanoseconds since the start of the run; `None` if the trace has no times.
    pub end_nanos: Option<u64>,
    pub files: Vec<TableFile>,
}

impl Manifest {
    /// Creates the manifest for a table of that trace.
    pub fn of(
        trace: &TraceFile,
        objects: u64,
        calls_without_context: u64,
        end: Moment,
        late: Late,
        files: Vec<TableFile>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            columns: format!("{:016x}", tables::schemas(&tables::ALL)),
            run: trace.run().to_string(),
            trace_bytes: trace.size(),
            trace_headers: format!("{:016x}", headers(trace)),
            objects,
            calls_without_context,
            end_tick: end.tick,
            end_bytes: end.bytes,
            end_nanos: end.nanos,
            late,
            files,
        }
    }

    /// Whether there are tables. Of traces that tell nothing but births, whose rows are made when they are needed, only results are kept.
    pub fn has_rows(&self) -> bool {
        !self.files.is_empty()
    }

    /// The end of the trace.
    pub fn end(&self) -> Moment {
        Moment { tick: self.end_tick, bytes: self.end_bytes, nanos: self.end_nanos }
    }

    fn fits(&self, trace: &TraceFile) -> bool {
        let like = Self::of(trace, self.objects, self.calls_without_context, self.end(), self.late.clone(), Vec::new());
        *self == Self { files: self.files.clone(), ..like }
    }
}

/// Hash of all headers, which contain the lengths, checksums and order of the blocks.
fn headers(trace: &TraceFile) -> u64 {
    let mut hash = Xxh3::new();
    trace.blocks().iter().for_each(|block| hash.update(&block.header.encode()));
    hash.digest()
}

/// What is in the place of a life table.
#[derive(Debug)]
pub enum There {
    Nothing,
    /// A life table that does not belong to the trace, or is damaged.
    Unfit,
    /// Something else, which must not be replaced: a description of it.
    Other(&'static str),
    /// A life table that belongs to the trace, according to its manifest.
    Fits(Box<Manifest>),
}

/// Examines the folder.
pub fn look(folder: &Path, trace: &TraceFile) -> There {
    let Ok(metadata) = fs::metadata(folder) else {
        // A dangling link is not ours to replace either. What is no link was put there just now.
        let is_link = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink());
        return if is_link { There::Other("is a dangling link") } else { There::Nothing };
    };
    if !metadata.is_dir() {
        return There::Other("exists and is not a life table");
    }
    // Other users could forge the content, or direct our writes elsewhere.
    let of_trace = fs::metadata(trace.path()).map(|trace| trace.uid()).ok();
    if !is_mine(&metadata) && Some(metadata.uid()) != of_trace {
        return There::Other("belongs to another user");
    }
    let text = match fs::read(folder.join(MANIFEST)) {
        Ok(text) => text,
        Err(error) => {
            let names = names(folder);
            // Another process has just put its own table in the place of an old one.
            let is_new = error.kind() == io::ErrorKind::NotFound && names.iter().any(|name| name == MANIFEST);
            let is_table = names.is_empty() || is_new;
            return if is_table { There::Unfit } else { There::Other("exists and is not a life table") };
        }
    };
    let is_ours = text.windows(FORMAT.len()).any(|part| part == FORMAT.as_bytes());
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(manifest) if manifest.fits(trace) && manifest.files.iter().all(|file| has(folder, file)) => {
            There::Fits(Box::new(manifest))
        }
        _ if !is_ours => There::Other("exists and is not a life table"),
        _ if !names(folder).iter().all(|name| is_of_table(name)) => {
            There::Other("does not match the trace and contains other files")
        }
        _ => There::Unfit,
    }
}

/// Whether this process's user is the owner.
fn is_mine(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Prefixes of the names of files that commands keep with a table.
const KEPT: [&str; 8] =
    ["observed-", "summary-", "report-", "timeline-", "checked-", "references-", "by-time-", "births-"];

/// Whether a file with that name may be removed with its folder.
fn is_of_table(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    name == MANIFEST
        || crate::TABLES.contains(&name)
        || crate::ADDED.contains(&name)
        || name.starts_with("heaps-") && name.ends_with(".bin")
        || KEPT.iter().any(|kind| name.starts_with(kind)) && name.ends_with(".json")
        || name.starts_with(PREFIX)
}

fn has(folder: &Path, file: &TableFile) -> bool {
    fs::metadata(folder.join(&file.name)).is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.bytes)
}

/// Opens a file of the folder. Fails if its length or hash is not that in the manifest.
pub fn open(folder: &Path, manifest: &Manifest, name: &str) -> io::Result<File> {
    let entry = manifest.files.iter().find(|file| file.name == name);
    open_as(folder, entry.ok_or_else(|| damaged(name))?)
}

fn damaged(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name} is damaged"))
}

/// Opens a file of the folder. Fails if its content is not as that entry says.
pub fn open_as(folder: &Path, entry: &TableFile) -> io::Result<File> {
    let mut file = File::open(folder.join(&entry.name))?;
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    if format!("{:016x}", hash.digest()) == entry.xxh3 { Ok(file) } else { Err(damaged(&entry.name)) }
}

/// Creates a file for a table in that folder: unnamed, so that it vanishes however the process ends.
pub fn nameless(folder: &Path) -> io::Result<File> {
    match nameless::create(parent(folder), 0o666)? {
        Some(file) => Ok(file),
        None => tempfile::tempfile_in(parent(folder)),
    }
}

/// The manifest's entry for a table.
pub fn entry(name: &str, table: &Written) -> TableFile {
    TableFile { name: name.to_owned(), bytes: table.bytes, xxh3: format!("{:016x}", table.hash) }
}

/// Names the tables and puts the folder in place. If another command was faster, its folder stays, unless it is the one
/// that was found to be damaged. Returns the manifest of the folder that is now in place.
pub fn publish(
    folder: &Path,
    trace: &TraceFile,
    manifest: Manifest,
    tables: &[(&str, &Written)],
    damaged: Option<&Manifest>,
) -> io::Result<Manifest> {
    // With the usual permissions, limited by the umask.
    let folder_mode = Permissions::from_mode(0o777);
    let temporary =
        || tempfile::Builder::new().prefix(PREFIX).permissions(folder_mode.clone()).tempdir_in(parent(folder));
    let new = temporary()?;
    for (name, table) in tables {
        name_file(&table.file, &new.path().join(name), table.bytes)?;
    }
    let text = serde_json::to_string_pretty(&manifest).map_err(io::Error::other)?;
    fs::write(new.path().join(MANIFEST), text + "\n")?;
    let mut failed = None;
    for _ in 0..3 {
        match look(folder, trace) {
            // Its tables are equivalent, but their bytes may differ.
            There::Fits(there) if damaged != Some(&there) && (there.has_rows() || !manifest.has_rows()) => {
                return Ok(*there);
            }
            There::Other(what) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("the path {what}")));
            }
            There::Unfit | There::Fits(_) => {
                // Moved away as a whole, so that there is never a partial folder.
                let old = temporary()?;
                failed = fs::rename(folder, old.path()).err();
            }
            There::Nothing => {}
        }
        match fs::rename(new.path(), folder) {
            Ok(()) => {
                // The temporary folder has been moved, so there is nothing to remove.
                let _ = new.keep();
                return Ok(manifest);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| io::ErrorKind::WouldBlock.into()))
}

fn name_file(file: &File, path: &Path, bytes: u64) -> io::Result<()> {
    if nameless::name(file, path).is_ok() {
        return Ok(());
    }
    // A file system on which unnamed files cannot be named.
    let mut copy = File::create(path)?;
    let mut at = 0;
    let mut buffer = vec![0; 1 << 18];
    while at < bytes {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_all(&buffer[..read])?;
        at += read as u64;
    }
    Ok(())
}

/// Puts a table into a life table that is in place already. Returns whether it did: the folder of another user is left as it is.
pub fn add(folder: &Path, name: &str, table: &Written) -> io::Result<bool> {
    if !is_mine(&fs::metadata(folder)?) {
        return Ok(false);
    }
    let place = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
    let path = place.path().join(name);
    name_file(&table.file, &path, table.bytes)?;
    fs::rename(path, folder.join(name))?;
    Ok(true)
}

/// Header of a kept file: hash of the content, and hash of the manifest that it belongs to.
fn head(manifest: &Manifest, body: &[u8]) -> io::Result<String> {
    let manifest = serde_json::to_vec(manifest).map_err(io::Error::other)?;
    Ok(format!("{:016x} {:016x}", xxh3_64(body), xxh3_64(&manifest)))
}

/// Reads a result that is kept with the life table; `None` if there is none, or if it is damaged or belongs to another
/// table.
pub fn kept(folder: &Path, manifest: &Manifest, name: &str) -> Option<Vec<u8>> {
    let file = fs::read(folder.join(name)).ok()?;
    let at = file.iter().position(|&byte| byte == b'\n')?;
    let (there, body) = (&file[..at], &file[at + 1..]);
    (there == head(manifest, body).ok()?.as_bytes()).then(|| body.to_vec())
}

/// Keeps a result with the life table.
pub fn keep(folder: &Path, manifest: &Manifest, name: &str, body: &[u8]) -> io::Result<()> {
    // The table of another user is read but not changed.
    if !is_mine(&fs::metadata(folder)?) {
        return Ok(());
    }
    let mode = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().prefix(PREFIX).permissions(mode).tempfile_in(folder)?;
    writeln!(file, "{}", head(manifest, body)?)?;
    file.write_all(body)?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}
