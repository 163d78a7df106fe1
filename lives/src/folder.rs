//! The folder of a life table: it comes to its place whole or not at all, and is believed only if it fits.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use et_trace::TraceFile;
use rustix::fs::{AtFlags, CWD, linkat};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::table::Written;

/// Says what is in the folder.
pub const MANIFEST: &str = "lives.json";
/// What the folder is, for whoever finds it.
const FORMAT: &str = "Elephant Tracks life table";
/// Of the tables' columns and what they mean.
const VERSION: u32 = 1;
/// How the names of folders begin that are not in their place.
const PREFIX: &str = ".et-lives-";

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
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
    /// Rows of the table.
    pub objects: u64,
    /// Calls that stand in their caller's context, because there were too many contexts.
    pub calls_without_context: u64,
    /// The tables.
    pub files: Vec<Entry>,
}

impl Manifest {
    /// Of a table of that trace.
    pub fn of(trace: &TraceFile, objects: u64, calls_without_context: u64, files: Vec<Entry>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            run: trace.run().to_string(),
            trace_bytes: trace.size(),
            objects,
            calls_without_context,
            files,
        }
    }

    fn fits(&self, trace: &TraceFile) -> bool {
        let like = Self::of(trace, self.objects, self.calls_without_context, Vec::new());
        *self == Self { files: self.files.clone(), ..like }
    }
}

/// What is where a life table belongs.
#[derive(Debug)]
pub enum There {
    /// Nothing.
    Nothing,
    /// One that does not fit the trace, or is damaged.
    Unfit,
    /// Something else, which is nobody's to replace.
    Other,
    /// One that fits, as far as its manifest tells.
    Fits(Manifest),
}

/// Looks.
pub fn look(folder: &Path, trace: &TraceFile) -> There {
    let Ok(metadata) = fs::symlink_metadata(folder) else { return There::Nothing };
    if !metadata.is_dir() && !folder.is_dir() {
        return There::Other;
    }
    let Ok(text) = fs::read(folder.join(MANIFEST)) else {
        let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
        return if is_empty { There::Unfit } else { There::Other };
    };
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(manifest) if manifest.format != FORMAT => There::Other,
        Ok(manifest) if manifest.fits(trace) && manifest.files.iter().all(|file| has(folder, file)) => {
            There::Fits(manifest)
        }
        Ok(_) => There::Unfit,
        // Damaged, but ours.
        Err(_) if memory_has(&text, FORMAT.as_bytes()) => There::Unfit,
        Err(_) => There::Other,
    }
}

fn memory_has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn has(folder: &Path, file: &Entry) -> bool {
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
    tempfile::tempfile_in(parent(folder))
}

fn parent(folder: &Path) -> &Path {
    folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the manifest says of a table.
pub fn entry(name: &str, table: &Written) -> Entry {
    Entry { name: name.to_owned(), bytes: table.bytes, xxh3: format!("{:016x}", table.hash) }
}

/// Gives the tables their names, and the folder its place. If another command was quicker, its folder stays.
pub fn publish(folder: &Path, trace: &TraceFile, manifest: &Manifest, tables: &[(&str, &Written)]) -> io::Result<()> {
    let new = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent(folder))?;
    for (name, table) in tables {
        name_file(&table.file, &new.path().join(name), table.bytes)?;
    }
    let text = serde_json::to_string_pretty(manifest).map_err(io::Error::other)?;
    fs::write(new.path().join(MANIFEST), text + "\n")?;
    set_mode(new.path());
    for _ in 0..3 {
        match look(folder, trace) {
            There::Fits(_) => return Ok(()),
            There::Other => {
                let what = format!("{} is there already and is no life table", folder.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
            There::Unfit => {
                // It goes as a whole, too: nobody ever finds a part of one.
                let old = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent(folder))?;
                let _ = fs::rename(folder, old.path());
            }
            There::Nothing => {}
        }
        if fs::rename(new.path(), folder).is_ok() {
            // What is no longer there cannot be removed.
            let _ = new.keep();
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{} keeps changing", folder.display())))
}

/// A temporary folder is for its owner only; this one is whosever the umask says it is.
fn set_mode(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let probe = folder.join("probe");
    if fs::create_dir(&probe).is_ok() {
        if let Ok(metadata) = probe.metadata() {
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(metadata.permissions().mode() & 0o777));
        }
        let _ = fs::remove_dir(&probe);
    }
}

fn name_file(file: &File, path: &Path, bytes: u64) -> io::Result<()> {
    let in_proc = format!("/proc/self/fd/{}", file.as_raw_fd());
    if linkat(CWD, &in_proc, CWD, path, AtFlags::SYMLINK_FOLLOW).is_ok() {
        // As a file of a user's is made.
        return set_file_mode(path);
    }
    // A file system whose nameless files stay so.
    let mut copy = File::create(path)?;
    let mut at = 0;
    let mut buffer = vec![0; 1 << 18];
    while at < bytes {
        let read = std::os::unix::fs::FileExt::read_at(file, &mut buffer, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_all(&buffer[..read])?;
        at += read as u64;
    }
    Ok(())
}

fn set_file_mode(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let probe = path.with_extension("probe");
    let mode = File::create(&probe)?.metadata()?.permissions().mode() & 0o777;
    fs::remove_file(&probe)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Where the life table of a trace is, if nobody says otherwise: beside it.
pub fn beside(trace: &Path) -> PathBuf {
    let mut name = trace.file_name().unwrap_or(OsStr::new("trace")).to_owned();
    name.push(".lives");
    trace.with_file_name(name)
}

/// Something that was worked out from the life table and is kept with it.
pub fn kept(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let file = fs::read(folder.join(name)).ok()?;
    let at = file.iter().position(|&byte| byte == b'\n')?;
    let (head, body) = (std::str::from_utf8(&file[..at]).ok()?, &file[at + 1..]);
    let hash = xxhash_rust::xxh3::xxh3_64(body);
    (head == format!("{:016x}", hash)).then(|| body.to_vec())
}

/// Keeps something with the life table.
pub fn keep(folder: &Path, name: &str, body: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder)?;
    writeln!(file, "{:016x}", xxhash_rust::xxh3::xxh3_64(body))?;
    file.write_all(body)?;
    let path = folder.join(name);
    file.persist(&path).map_err(|error| error.error)?;
    set_file_mode(&path)
}
