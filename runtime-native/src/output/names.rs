//! Finds the names tables of everything that the program may load.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use et_names::{ArtifactKind, ClassEntries, DecodeError, ENTRY_IN_JAR, IdBlock, Opened, PATH_IN_JDK};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::base::report::say;
use crate::output::artifacts::{self, Artifact, Classes, OnDisk};
use crate::output::queue::Queue;

const MANIFEST: &str = "META-INF/MANIFEST.MF";

/// Where to look for names tables.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The JDK's folder, `java.home`.
    pub java_home: PathBuf,
    /// Jars and folders of the class path, the module path, and option `names`.
    pub paths: Vec<PathBuf>,
}

impl Places {
    /// Adds the entries of a class path, as in `java.class.path`.
    pub fn add_list(&mut self, list: &str) {
        self.paths.extend(std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()));
    }
}

/// Finds each table once. Names of classes that the program loads go to the trace.
pub fn find(places: &Places, queue: &Queue) {
    let mut tables =
        Tables { queue, seen: HashSet::new(), blocks: Vec::new(), artifacts: Vec::new(), left: artifacts::SHARE };
    let own = places.java_home.join(PATH_IN_JDK);
    if let Ok(file) = File::open(&own) {
        tables.add_jdk(&own, file);
    }
    let mut done = HashSet::new();
    let mut waiting: Vec<PathBuf> = places.paths.iter().rev().cloned().collect();
    // Tables of instrumented jmods, in an image linked from them.
    waiting.extend(own.parent().map(children).unwrap_or_default().into_iter().filter(|path| *path != own));
    while let Some(path) = waiting.pop() {
        if !done.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
            continue;
        }
        if path.is_dir() {
            match plain_file(&path.join(ENTRY_IN_JAR)) {
                Some(file) => tables.add(&path, read_table(file, LARGEST)),
                // A module path entry may be a folder of jars and module folders; a class path entry may contain
                // classes that were instrumented one by one, with their tables beside them.
                None => waiting.extend(children(&path)),
            }
        } else if is_table(&path) {
            if let Some(file) = plain_file(&path) {
                tables.add(&path, read_table(file, LARGEST));
            }
        } else if let Some(jar) = Jar::open(&path) {
            if let Some(table) = jar.names {
                tables.add(&path, table);
            }
            waiting.extend(jar.class_path);
        }
    }
    queue.artifacts(tables.artifacts);
}

/// Opens a regular file.
fn plain_file(path: &Path) -> Option<File> {
    if fs::metadata(path).ok()?.is_file() { File::open(path).ok() } else { None }
}

/// Whether the file is a names table by itself: `names.etn`, `Foo.class.etn`.
fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "etn")
}

/// Maximum number of folders searched below a class path entry, which may be `.` in a large tree.
const MOST_FOLDERS: usize = 10_000;

/// Modules in a folder without a table of its own, and names tables in it or below: tables of classes instrumented one
/// by one are in the folders of their packages.
fn children(folder: &Path) -> Vec<PathBuf> {
    let is_module =
        |path: &Path| path.extension().is_some_and(|ext| ext == "jar") || path.join("module-info.class").exists();
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut next = 0;
    while next < folders.len().min(MOST_FOLDERS) {
        for entry in fs::read_dir(&folders[next]).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_table(&path) || (next == 0 && is_module(&path)) {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !path.join(PATH_IN_JDK).exists() {
                // Symbolic links, which may form cycles, are not followed, and other JDKs are not entered.
                folders.push(path);
            }
        }
        next += 1;
    }
    found.sort();
    found
}

struct Tables<'a> {
    queue: &'a Queue,
    seen: HashSet<u64>,
    blocks: Vec<(IdBlock, String)>,
    artifacts: Vec<Artifact>,
    /// Bytes that further tables may take in the trace if they go there whole, uncompressed.
    left: usize,
}

impl Tables<'_> {
    /// Adds the table of the JDK, whose ids do not overlap with others. It is large, and stays on disk.
    fn add_jdk(&mut self, path: &Path, file: File) {
        match ClassEntries::open(OnDisk(file)) {
            Ok(Opened::ByClass(entries)) => self.artifacts.push(artifact(path, Classes::OnDisk(entries))),
            Ok(Opened::Whole(_)) => _ = fs::read(path).map(|bytes| self.queue.names(bytes)),
            Err(error) => self.damaged(path, &error),
        }
    }

    fn add(&mut self, path: &Path, table: Result<Vec<u8>, DecodeError>) {
        match table.and_then(ClassEntries::open) {
            Ok(Opened::ByClass(entries)) => {
                if self.is_new(path, entries.artifact(), entries.block()) {
                    self.artifacts.push(artifact(path, Classes::InMemory(entries)));
                }
            }
            // From an earlier version of the tool.
            Ok(Opened::Whole(bytes)) => match artifacts::decode(&bytes, &mut self.left) {
                Ok(table) => {
                    if self.is_new(path, &table.artifact, table.block()) {
                        self.queue.names(bytes);
                    }
                }
                Err(error) => self.damaged(path, &error),
            },
            Err(error) => self.damaged(path, &error),
        }
    }

    fn damaged(&self, path: &Path, error: &DecodeError) {
        let line = format!("{}: {error}; the trace will not have its names", path.display());
        say(&line);
        self.queue.problem(line, 1);
    }

    /// False if the table is a copy of one already added.
    fn is_new(&mut self, path: &Path, artifact: &et_names::Artifact, block: IdBlock) -> bool {
        if !self.seen.insert(artifact.hash) {
            return false;
        }
        let name = match artifact.kind {
            ArtifactKind::Jdk => format!("JDK {}", artifact.name),
            _ => path.display().to_string(),
        };
        for (other, other_name) in &self.blocks {
            if block.overlaps(*other) {
                let line = format!(
                    "{name} and {other_name} use the same ids, their methods and sites are mixed up: \
                     instrument one of them again with --id-base"
                );
                say(&line);
                self.queue.problem(line, 1);
            }
        }
        self.blocks.push((block, name));
        true
    }
}

fn artifact(path: &Path, classes: Classes) -> Artifact {
    Artifact { name: path.display().to_string(), classes }
}

/// Maximum size of a table in bytes; that of a JDK with 30,000 classes has some 10 MB.
const LARGEST: u64 = 256 << 20;
/// Maximum ratio of a table's size to its compressed size in a jar, since tables are compressed already. A jar is
/// untrusted input, and this is the program's memory.
const EXPANSION: u64 = 64;
/// Bytes that a table may have in addition.
const SMALL: u64 = 1 << 20;
/// Bytes read of a manifest: its main section comes first.
const MANIFEST_START: u64 = 1 << 20;

/// Reads a table up to a maximum size. Stops early if it does not begin like one.
fn read_table(mut from: impl Read, limit: u64) -> Result<Vec<u8>, DecodeError> {
    let mut bytes = Vec::new();
    let mut read_up_to = |size: u64, bytes: &mut Vec<u8>| {
        let more = size - bytes.len() as u64;
        from.by_ref().take(more).read_to_end(bytes).map_err(DecodeError::Compression)
    };
    read_up_to(et_names::MAGIC.len() as u64, &mut bytes)?;
    if bytes != et_names::MAGIC {
        return Err(DecodeError::Magic);
    }
    read_up_to(limit + 1, &mut bytes)?;
    if bytes.len() as u64 > limit {
        let what = format!("it is larger than any that et-instrument writes, more than {} MB", limit >> 20);
        return Err(DecodeError::Compression(io::Error::other(what)));
    }
    Ok(bytes)
}

/// The relevant content of a jar.
struct Jar {
    names: Option<Result<Vec<u8>, DecodeError>>,
    /// `Class-Path` of the manifest.
    class_path: Vec<PathBuf>,
}

impl Jar {
    /// `None` if it is no readable archive: the JVM reports that, or ignores it.
    fn open(path: &Path) -> Option<Self> {
        let file = plain_file(path)?;
        let size = file.metadata().ok()?.len();
        let mut archive = ZipArchive::new(BufReader::new(file)).ok()?;
        let names = match archive.by_name(ENTRY_IN_JAR) {
            Ok(entry) => {
                // The size in an entry may be forged.
                let stored = entry.compressed_size().min(size);
                let limit = stored.saturating_mul(EXPANSION).saturating_add(SMALL).min(LARGEST);
                Some(read_table(entry, limit))
            }
            Err(ZipError::FileNotFound) => None,
            Err(error) => Some(Err(DecodeError::Compression(error.into()))),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let class_path = manifest(&mut archive)
            .map(|manifest| class_path(&String::from_utf8_lossy(&manifest)))
            .unwrap_or_default()
            .into_iter()
            .map(|name| folder.join(name))
            .collect();
        Some(Self { names, class_path })
    }
}

fn manifest(archive: &mut ZipArchive<BufReader<File>>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    archive.by_name(MANIFEST).ok()?.take(MANIFEST_START).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The names in the `Class-Path` of a manifest's main section. A line that begins with a space continues the previous
/// one.
fn class_path(manifest: &str) -> Vec<PathBuf> {
    let mut value = String::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.is_empty() {
            break;
        }
        match line.strip_prefix(' ') {
            Some(more) if inside => value.push_str(more),
            Some(_) => {}
            None => {
                let header = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("Class-Path"));
                inside = header.is_some();
                if let Some((_, text)) = header {
                    value.push_str(text.trim_start());
                }
            }
        }
    }
    // URLs relative to the jar; the only other scheme that the JVM accepts is `file:`.
    let names = value.split(' ').filter(|name| !name.is_empty());
    names.map(et_names::class_path::decoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_format::{BlockKind, ClassRecord};
    use et_names::{Artifact, ClassNames, EventSet, MethodNames, NamesTable};
    use std::io::Write;

    fn table(hash: u64, base: u32) -> Vec<u8> {
        let artifact =
            Artifact { hash, base, name: "a.jar".into(), kind: ArtifactKind::Application, events: EventSet::ALL };
        let mut table = NamesTable::new(artifact);
        let method = || MethodNames { name: "m".into(), descriptor: "()V".into(), access: 0, line: 0 };
        let methods = (0..10).map(|_| method()).collect();
        table.push(&ClassNames { name: "A".into(), methods, ..ClassNames::default() });
        table.encode()
    }

    fn jar(path: &Path, entries: &[(&str, &[u8])]) {
        let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
        for (name, bytes) in entries {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
    }

    /// Number of names tables in the trace of a program that loads one class, and the other blocks.
    fn found(places: &Places) -> (usize, Vec<(BlockKind, Vec<u8>)>) {
        let queue = Queue::default();
        queue.class(&ClassRecord { signature: "LA;".into(), ..ClassRecord::default() });
        find(places, &queue);
        (queue.take_names().len(), queue.take_blocks())
    }

    #[test]
    fn tables_of_jdk_jars_folders_and_class_paths_are_found_once() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("jdk/lib/elephant-tracks")).unwrap();
        fs::write(at("jdk").join(PATH_IN_JDK), table(1, 1)).unwrap();
        fs::create_dir_all(at("classes/META-INF/elephant-tracks")).unwrap();
        fs::write(at("classes").join(ENTRY_IN_JAR), table(2, 5_000_000)).unwrap();
        fs::create_dir_all(at("mods")).unwrap();
        jar(&at("mods/m.jar"), &[(ENTRY_IN_JAR, &table(3, 6_000_000))]);
        let manifest = b"Manifest-Version: 1.0\r\nClass-Path: lib/b%20%c3%A9.j\r\n ar mods/m.jar gone%zz%.jar\r\n\r\n";
        jar(&at("a.jar"), &[(MANIFEST, manifest), ("x/Y.class", b"")]);
        fs::create_dir_all(at("lib")).unwrap();
        jar(&at("lib/b é.jar"), &[(ENTRY_IN_JAR, &table(4, 7_000_000)), (MANIFEST, b"Class-Path: ../a.jar\n")]);
        fs::write(at("damaged.jar"), b"no zip").unwrap();
        let mut places = Places { java_home: at("jdk"), ..Places::default() };
        fs::create_dir_all(at("singles/com/acme")).unwrap();
        fs::write(at("singles/Main.class.etn"), table(5, 8_000_000)).unwrap();
        fs::write(at("singles/com/acme/Deep.class.etn"), table(6, 9_000_000)).unwrap();
        fs::write(at("jdk/lib/elephant-tracks/module.etn"), table(7, 10_000_000)).unwrap();
        fs::create_dir_all(at("singles/another-jdk/lib/elephant-tracks")).unwrap();
        fs::write(at("singles/another-jdk").join(PATH_IN_JDK), table(8, 11_000_000)).unwrap();
        for name in ["a.jar", "classes", "mods", "damaged.jar", "classes", "singles"] {
            places.add_list(at(name).to_str().unwrap());
        }
        assert_eq!(found(&places), (7, vec![]));
    }

    #[test]
    fn overlapping_blocks_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let mut places = Places::default();
        for (name, base) in [("a.jar", 5_000_000), ("b.jar", 5_000_009), ("c.jar", 5_000_019)] {
            jar(&root.path().join(name), &[(ENTRY_IN_JAR, &table(base.into(), base))]);
            places.paths.push(root.path().join(name));
        }
        let (_, blocks) = found(&places);
        let problems: Vec<_> = blocks.iter().filter(|(kind, _)| *kind == BlockKind::Problem).collect();
        assert_eq!(problems.len(), 1);
        let text = String::from_utf8_lossy(&problems[0].1);
        assert!(text.contains("a.jar") && text.contains("b.jar") && !text.contains("c.jar"), "{text}");
    }

    #[test]
    fn of_an_entry_that_unpacks_to_a_great_deal_little_is_read() {
        let root = tempfile::tempdir().unwrap();
        let zeros = |start: &[u8]| [start, &vec![0; 64 << 20]].concat();
        let path = |name: &str| root.path().join(name);
        jar(&path("zeros.jar"), &[(ENTRY_IN_JAR, &zeros(b"")), (MANIFEST, b"Class-Path: good.jar\n\n")]);
        jar(&path("start.jar"), &[(ENTRY_IN_JAR, &zeros(b"ETNAMES\0"))]);
        let manifest = zeros(b"Class-Path: good.jar\n\n");
        jar(&path("good.jar"), &[(ENTRY_IN_JAR, &table(1, 5_000_000)), (MANIFEST, &manifest)]);
        fs::create_dir_all(path("folder/META-INF/elephant-tracks")).unwrap();
        File::create(path("folder").join(ENTRY_IN_JAR)).unwrap().set_len(4 << 30).unwrap();
        // Claims a compressed size of two gigabytes.
        let mut forged = fs::read(path("start.jar")).unwrap();
        let directory = forged.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
        forged[directory + 20..directory + 24].copy_from_slice(&(i32::MAX as u32).to_le_bytes());
        fs::write(path("forged.jar"), forged).unwrap();
        fs::create_dir_all(path("other").join(ENTRY_IN_JAR)).unwrap();
        let paths: Vec<PathBuf> = ["zeros.jar", "start.jar", "folder", "forged.jar", "other"].map(path).into();
        let (names, blocks) = found(&Places { paths, ..Places::default() });
        assert_eq!(names, 1);
        let problems: Vec<_> = blocks.iter().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect();
        for (name, why) in [
            ("zeros.jar", "not a names table"),
            ("start.jar", "names table is damaged: it is larger than any that et-instrument writes"),
            ("forged.jar", "names table is damaged: it is larger than any that et-instrument writes"),
            ("folder", "not a names table"),
        ] {
            let of = problems.iter().find(|text| text.contains(name)).unwrap_or_else(|| panic!("{name}: {problems:?}"));
            assert!(of.contains(why), "{of}");
        }
        assert_eq!(problems.len(), 4, "{problems:?}");
        // Reading an endless input stops early.
        assert!(matches!(read_table(io::repeat(0), LARGEST), Err(DecodeError::Magic)));
        let endless = read_table(et_names::MAGIC.chain(io::repeat(0)), 3 << 20).unwrap_err().to_string();
        assert!(endless.contains("more than 3 MB"), "{endless}");
        let Jar { class_path, .. } = Jar::open(&path("good.jar")).unwrap();
        assert_eq!(class_path, [path("good.jar")]);
    }

    #[test]
    fn a_damaged_table_is_a_problem() {
        let root = tempfile::tempdir().unwrap();
        jar(&root.path().join("a.jar"), &[(ENTRY_IN_JAR, b"ETNAMES\0")]);
        let (names, blocks) = found(&Places { paths: vec![root.path().join("a.jar")], ..Places::default() });
        assert_eq!((names, blocks.len()), (0, 1));
        assert_eq!(blocks[0].0, BlockKind::Problem);
    }
}
