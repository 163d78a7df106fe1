//! The forms of types: a hash of their sources, which changes with each field. The build script works them out; tests look at how.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Crates that define types of a report.
const CRATES: [&str; 4] = ["analysis", "format", "names", "reader"];

/// All types by name, each with its attributes, fields and variants. Types of one name in different modules are one entry:
/// the form then changes more often than it would have to, which costs nothing but a second computation.
#[derive(Default)]
pub(super) struct Types(BTreeMap<String, String>);

impl Types {
    /// Those of the crates beside this one.
    pub(super) fn of_workspace() -> io::Result<Self> {
        let mut types = Self::default();
        for folder in folders() {
            let mut files = sources(&folder)?;
            files.sort();
            for file in files {
                types.add(&fs::read_to_string(file)?);
            }
        }
        Ok(types)
    }

    /// The source is formatted by rustfmt: an item that starts at the left margin ends with a line that is a brace there.
    pub(super) fn add(&mut self, source: &str) {
        let mut attributes = String::new();
        let mut lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        while let Some(line) = lines.next() {
            let item = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
            let name = item.strip_prefix("struct ").or(item.strip_prefix("enum "));
            if let Some(name) = name {
                let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
                let mut text = format!("{attributes}{item}\n");
                if line.ends_with('{') {
                    lines.by_ref().take_while(|line| *line != "}").for_each(|line| text += &format!("{line}\n"));
                }
                *self.0.entry(name[..end].to_owned()).or_default() += &text;
            }
            match line.starts_with("#[serde") {
                true => attributes += &format!("{line}\n"),
                false if line.starts_with("#[") => {}
                false => attributes.clear(),
            }
        }
    }

    /// The form of a type and of all types that its fields have; `None` if there is no such type.
    pub(super) fn form(&self, root: &str) -> Option<String> {
        self.0.contains_key(root).then(|| hash(&self.closure(root)))
    }

    /// A type and all types that its fields have.
    pub(super) fn closure(&self, root: &str) -> String {
        let mut known = BTreeSet::new();
        let mut pending = vec![root];
        while let Some(name) = pending.pop() {
            if let Some((name, text)) = self.0.get_key_value(name)
                && known.insert(name.as_str())
            {
                pending.extend(text.lines().map(without_variant).flat_map(words));
            }
        }
        known.iter().map(|name| self.0[*name].as_str()).collect()
    }
}

/// The folders whose sources define the types.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    CRATES.iter().map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(name).join("src"))
}

/// All files of Rust below a folder.
fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// A line of a type without the name of the variant that it begins with: there may be another type of that name.
fn without_variant(line: &str) -> &str {
    match line.strip_prefix("    ") {
        Some(variant) if variant.starts_with(char::is_uppercase) => variant.trim_start_matches(char::is_alphanumeric),
        _ => line,
    }
}

/// FNV-1a, of which the value does not depend on the version of the standard library.
fn hash(text: &str) -> String {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}
