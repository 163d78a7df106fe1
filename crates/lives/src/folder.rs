//! The folder of a life table: it comes to its place whole or not at all, and is believed only if it fits.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use et_files::{nameless, parent};
use et_reader::TraceFile;
use et_reader::population::Moment;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::table::Written;

/// Says what is in the folder.
pub const MANIFEST: &str = "lives.json";
/// What the folder is, for whoever finds it.
const FORMAT: &str = "Elephant Tracks life table";
/// Of the tables' columns and what they mean.
const VERSION: u32 = 2;
/// How the names of folders begin that are not in their place.
const PREFIX: &str = ".et-lives-";

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// XXH3 of it, in hexadecimal.
    pub xxh3: String,
}

/// What the folder says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// What the folder is.
    pub format: String,
    /// Of the format.
    pub version: u32,
    /// Version of et-trace: what another works out may differ.
    pub tool: String,
    /// The run that the trace is of.
    pub run: String,
    /// Length of the trace.
    pub trace_bytes: u64,
    /// XXH3 of the headers of its blocks, the last included, in hexadecimal.
    pub trace_headers: String,
    /// Rows of the table.
    pub objects: u64,
    /// Calls that stand in their caller's context, because there were too many contexts.
    pub calls_without_context: u64,
    /// Where the trace ends: what the clock had counted.
    pub end_tick: u64,
    /// Bytes allocated by then.
    pub end_bytes: u64,
    /// The time by then, as objects' times are; none if the trace has no times.
    pub end_nanos: Option<u64>,
    /// The tables.
    pub files: Vec<TableFile>,
}

impl Manifest {
    /// Of a table of that trace.
    pub fn of(trace: &TraceFile, objects: u64, calls_without_context: u64, end: Moment, files: Vec<TableFile>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            run: trace.run().to_string(),
            trace_bytes: trace.size(),
            trace_headers: format!("{:016x}", headers(trace)),
            objects,
            calls_without_context,
            end_tick: end.tick,
            end_bytes: end.bytes,
            end_nanos: end.nanos,
            files,
        }
    }

    /// Where the trace ends.
    pub fn end(&self) -> Moment {
        Moment { tick: self.end_tick, bytes: self.end_bytes, nanos: self.end_nanos }
    }

    fn fits(&self, trace: &TraceFile) -> bool {
        let like = Self::of(trace, self.objects, self.calls_without_context, self.end(), Vec::new());
        *self == Self { files: self.files.clone(), ..like }
    }
}

/// A hash of all headers: they have the lengths of blocks, their checksums and their order.
fn headers(trace: &TraceFile) -> u64 {
    let mut hash = Xxh3::new();
    trace.blocks().iter().for_each(|block| hash.update(&block.header.encode()));
    hash.digest()
}

/// What is where a life table belongs.
#[derive(Debug)]
pub enum There {
    /// Nothing.
    Nothing,
    /// One that does not fit the trace, or is damaged.
    Unfit,
    /// Something else, which is nobody's to replace: what it is.
    Other(&'static str),
    /// One that fits, as far as its manifest tells.
    Fits(Manifest),
}

/// Looks.
pub fn look(folder: &Path, trace: &TraceFile) -> There {
    let Ok(metadata) = fs::metadata(folder) else {
        // A link that leads nowhere is somebody's, too.
        let is_there = fs::symlink_metadata(folder).is_ok();
        return if is_there { There::Other("is a dangling link") } else { There::Nothing };
    };
    if !metadata.is_dir() {
        return There::Other("exists and is not a life table");
    }
    // Strangers could tell us what they like, and have us write where they like.
    let of_trace = fs::metadata(trace.path()).map(|trace| trace.uid()).ok();
    if !is_mine(&metadata) && Some(metadata.uid()) != of_trace {
        return There::Other("belongs to another user");
    }
    let Ok(text) = fs::read(folder.join(MANIFEST)) else {
        return if names(folder).is_empty() { There::Unfit } else { There::Other("exists and is not a life table") };
    };
    let is_ours = text.windows(FORMAT.len()).any(|part| part == FORMAT.as_bytes());
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(manifest) if manifest.fits(trace) && manifest.files.iter().all(|file| has(folder, file)) => {
            There::Fits(manifest)
        }
        _ if !is_ours => There::Other("exists and is not a life table"),
        _ if !names(folder).iter().all(|name| is_of_table(name)) => {
            There::Other("does not match the trace and contains other files")
        }
        _ => There::Unfit,
    }
}

/// Whether we own it.
fn is_mine(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// How the names of files begin that commands keep with a table.
const KEPT: [&str; 4] = ["summary-", "report-", "timeline-", "checked-"];

/// Whether a file of that name is ours to remove with its folder.
fn is_of_table(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    name == MANIFEST
        || crate::TABLES.contains(&name)
        || KEPT.iter().any(|kind| name.starts_with(kind)) && name.ends_with(".json")
        || name.starts_with(PREFIX)
}

fn has(folder: &Path, file: &TableFile) -> bool {
    fs::metadata(folder.join(&file.name)).is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.bytes)
}

/// Opens a file of the folder, if all of it is as it was written.
pub fn open(folder: &Path, manifest: &Manifest, name: &str) -> io::Result<File> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("{name} is damaged"));
    let entry = manifest.files.iter().find(|file| file.name == name).ok_or_else(damaged)?;
    let mut file = File::open(folder.join(name))?;
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    if format!("{:016x}", hash.digest()) == entry.xxh3 { Ok(file) } else { Err(damaged()) }
}

/// A file for a table that will come into that folder: without a name, so that it is gone however the process ends.
pub fn nameless(folder: &Path) -> io::Result<File> {
    match nameless::create(parent(folder), 0o666)? {
        Some(file) => Ok(file),
        None => tempfile::tempfile_in(parent(folder)),
    }
}

/// What the manifest says of a table.
pub fn entry(name: &str, table: &Written) -> TableFile {
    TableFile { name: name.to_owned(), bytes: table.bytes, xxh3: format!("{:016x}", table.hash) }
}

/// Gives the tables their names, and the folder its place. If another command was quicker, its folder stays, unless it is the one
/// that was found to be damaged. Says what the folder that is there says of itself.
pub fn publish(
    folder: &Path,
    trace: &TraceFile,
    manifest: Manifest,
    tables: &[(&str, &Written)],
    damaged: Option<&Manifest>,
) -> io::Result<Manifest> {
    // As folders and files are made that nobody is to be kept from.
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
            // Its tables are as good, but their bytes may differ.
            There::Fits(there) if damaged != Some(&there) => return Ok(there),
            There::Other(what) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("the path {what}")));
            }
            There::Unfit | There::Fits(_) => {
                // It goes as a whole, too: nobody ever finds a part of one.
                let old = temporary()?;
                failed = fs::rename(folder, old.path()).err();
            }
            There::Nothing => {}
        }
        match fs::rename(new.path(), folder) {
            Ok(()) => {
                // What is no longer there cannot be removed.
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
    // A file system whose nameless files stay so.
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

/// What stands above something that is kept: its hash, and that of the manifest that it belongs to.
fn head(manifest: &Manifest, body: &[u8]) -> io::Result<String> {
    let manifest = serde_json::to_vec(manifest).map_err(io::Error::other)?;
    Ok(format!("{:016x} {:016x}", xxh3_64(body), xxh3_64(&manifest)))
}

/// Something that was worked out from the trace and is kept with its life table.
pub fn kept(folder: &Path, manifest: &Manifest, name: &str) -> Option<Vec<u8>> {
    let file = fs::read(folder.join(name)).ok()?;
    let at = file.iter().position(|&byte| byte == b'\n')?;
    let (there, body) = (&file[..at], &file[at + 1..]);
    (there == head(manifest, body).ok()?.as_bytes()).then(|| body.to_vec())
}

/// Keeps something with the life table.
pub fn keep(folder: &Path, manifest: &Manifest, name: &str, body: &[u8]) -> io::Result<()> {
    // Somebody else's table is read, and left as it is.
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
