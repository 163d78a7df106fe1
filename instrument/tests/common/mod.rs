//! Helpers for the tests of the command line.
#![allow(dead_code)] // each test file uses its part

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The command under test.
pub fn et_instrument() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_et-instrument"));
    command.env_remove("ET_RUNTIME_DIR");
    command
}

/// Runs the command in `folder`.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    et_instrument().current_dir(folder).args(arguments).output().unwrap()
}

/// Runs it; it must succeed. Returns the JSON report.
pub fn report(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = run(folder, &[arguments, &["--report", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs it; it must fail with exit code 1 and one line, which is returned, and leave no new file in `folder`.
pub fn failure(folder: &Path, arguments: &[&str]) -> String {
    let before = listing(folder);
    let output = run(folder, arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert_eq!(listing(folder), before, "{arguments:?} left something behind");
    message
}

/// All paths below a folder.
pub fn listing(folder: &Path) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter();
    all.map(|item| item.unwrap().into_path()).collect()
}

/// An empty class.
pub fn class(name: &str) -> Vec<u8> {
    class_of_version(name, 52)
}

/// A class with nothing in it, of a class file version.
pub fn class_of_version(name: &str, major: u16) -> Vec<u8> {
    let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0];
    out.extend(major.to_be_bytes());
    out.extend(5u16.to_be_bytes());
    for (index, text) in [(2u16, name), (4, "java/lang/Object")] {
        out.push(7);
        out.extend(index.to_be_bytes());
        out.push(1);
        out.extend((text.len() as u16).to_be_bytes());
        out.extend(text.as_bytes());
    }
    for value in [0x0021u16, 1, 3, 0, 0, 0, 0] {
        out.extend(value.to_be_bytes());
    }
    out
}

/// Content of a jar: name, content, stored rather than deflated.
pub type Item<'a> = (&'a str, Vec<u8>, bool);

/// A jar made by an independent writer.
pub fn jar(items: &[Item<'_>]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content, stored) in items {
        let method = if *stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let options = SimpleFileOptions::default().compression_method(method);
        if name.ends_with('/') {
            writer.add_directory(*name, options).unwrap();
        } else {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
    }
    writer.set_comment("made by a test").unwrap();
    writer.finish().unwrap().into_inner()
}

/// An entry as no library writes it.
#[derive(Clone, Default)]
pub struct RawEntry<'a> {
    pub name: &'a [u8],
    pub content: Vec<u8>,
    pub deflated: bool,
    pub flags: u16,
    pub local_extra: &'a [u8],
    pub central_extra: &'a [u8],
    pub comment: &'a [u8],
    /// Sizes after the data (flag bit 3 is set).
    pub descriptor: bool,
}

impl<'a> RawEntry<'a> {
    pub fn new(name: &'a str, content: Vec<u8>) -> Self {
        Self { name: name.as_bytes(), content, ..Self::default() }
    }
}

/// A zip archive of entries with all the freedom that the format gives.
pub fn raw_jar(entries: &[RawEntry<'_>]) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for entry in entries {
        let data = if entry.deflated {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&entry.content).unwrap();
            encoder.finish().unwrap()
        } else {
            entry.content.clone()
        };
        let offset = out.len() as u32;
        let flags = entry.flags | if entry.descriptor { 8 } else { 0 };
        let numbers = [crc32fast::hash(&entry.content), data.len() as u32, entry.content.len() as u32];
        let head = |out: &mut Vec<u8>, numbers: [u32; 3], extra: usize| {
            for value in [20, flags, if entry.deflated { 8 } else { 0 }, 0x1234, 0x5678] {
                out.extend(u16::to_le_bytes(value));
            }
            numbers.iter().for_each(|value| out.extend(value.to_le_bytes()));
            out.extend((entry.name.len() as u16).to_le_bytes());
            out.extend((extra as u16).to_le_bytes());
        };
        out.extend(b"PK\x03\x04");
        head(&mut out, if entry.descriptor { [0; 3] } else { numbers }, entry.local_extra.len());
        out.extend([entry.name, entry.local_extra, &data].concat());
        if entry.descriptor {
            out.extend(b"PK\x07\x08");
            numbers.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        central.extend(b"PK\x01\x02\x14\x03");
        head(&mut central, numbers, entry.central_extra.len());
        central.extend((entry.comment.len() as u16).to_le_bytes());
        central.extend([0; 4]);
        central.extend(0x81a4_0000_u32.to_le_bytes());
        central.extend(offset.to_le_bytes());
        central.extend([entry.name, entry.central_extra, entry.comment].concat());
    }
    let start = out.len() as u32;
    out.extend(&central);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((central.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend(b"\x07\0comment");
    out
}

/// Data offset, local extra field, central extra field and comment of an entry, read from the bytes directly.
pub fn raw_entry(jar: &[u8], name: &[u8]) -> (usize, Vec<u8>, Vec<u8>, Vec<u8>) {
    let number =
        |at: usize, length| (0..length).rev().fold(0, |value, index| value << 8 | usize::from(jar[at + index]));
    let mut at = number(jar.windows(4).rposition(|four| four == b"PK\x05\x06").unwrap() + 16, 4);
    loop {
        assert_eq!(&jar[at..at + 4], b"PK\x01\x02", "{} is not there", String::from_utf8_lossy(name));
        let (named, extra, comment) = (number(at + 28, 2), number(at + 30, 2), number(at + 32, 2));
        let extra_at = at + 46 + named;
        if &jar[at + 46..extra_at] == name {
            let local = number(at + 42, 4);
            let local_extra = local + 30 + number(local + 26, 2);
            let data = local_extra + number(local + 28, 2);
            let central = jar[extra_at..extra_at + extra].to_vec();
            let comment = jar[extra_at + extra..extra_at + extra + comment].to_vec();
            return (data, jar[local_extra..data].to_vec(), central, comment);
        }
        at = extra_at + extra + comment;
    }
}

/// Reads a jar with an independent reader.
pub fn open(bytes: &[u8]) -> ZipArchive<Cursor<&[u8]>> {
    ZipArchive::new(Cursor::new(bytes)).unwrap()
}

/// An entry's content, by an independent reader.
pub fn entry(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut archive = open(bytes);
    let mut content = Vec::new();
    archive.by_name(name).ok()?.read_to_end(&mut content).unwrap();
    Some(content)
}

/// A part of a test is not done: noted where `cargo xtask test` looks for what to list at its end (xtask/src/skips.rs).
pub fn not_tested(test: &str, reason: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("skipped");
    let name: String = test.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let noted = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(name), format!("{test}\t{reason}\n")));
    noted.unwrap_or_else(|error| panic!("{test}: {reason}; it cannot be noted: {error}"));
}

/// JDKs of this machine: `JAVA_HOME`, then those of the usual folder.
pub fn jdks() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    let usual = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut usual: Vec<PathBuf> = usual.map(|item| item.path()).collect();
    usual.sort();
    homes.extend(usual);
    homes = homes.into_iter().filter_map(|home| std::fs::canonicalize(home).ok()).collect();
    let mut seen = std::collections::HashSet::new();
    homes.retain(|home| home.join("lib/modules").is_file() && seen.insert(home.clone()));
    if homes.is_empty() {
        not_tested("et-instrument with a JDK", "no JDK with lib/modules in JAVA_HOME or /usr/lib/jvm");
    }
    homes
}

/// A folder with a runtime that does nothing.
pub fn runtime_dir(folder: &Path) -> PathBuf {
    let runtime = folder.join("runtime");
    std::fs::create_dir_all(&runtime).unwrap();
    std::fs::write(runtime.join("libet_runtime.so"), "not a library").unwrap();
    for variant in ["8", "11", "12", "21"] {
        let proxy = jar(&[("java/lang/HeapProxy.class", class("java/lang/HeapProxy"), false)]);
        std::fs::write(runtime.join(format!("heap-proxy-{variant}.jar")), proxy).unwrap();
    }
    runtime
}
