//! Licenses of the libraries that the tools and the runtime contain, and the list of these libraries ([`components`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::components::{self, Package};
use crate::assets;
use crate::command;
use crate::layout::Layout;

/// Name of the list of libraries.
pub(super) const FILE: &str = "THIRD-PARTY-NOTICES";
/// The notices of the Rust distribution about the standard library and its dependencies.
const OF_RUST: (&str, &str) = ("share/doc/rust/COPYRIGHT-library.html", "THIRD-PARTY-NOTICES-rust-library.html");

/// The folder for everything about licenses.
const PACKED: [&str; 8] = [
    "et-instrument",
    "et-trace",
    "et-replay",
    "et-monitor",
    "et-jvmpi",
    "et-runtime-native",
    "et-jvmpi-host",
    "et-monitor-agent",
];

/// Prefixes of the names of license files, in upper case.
const BEGINNINGS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Names and contents of the files to pack.
pub(super) fn of(layout: &Layout) -> Result<Vec<(&'static str, String)>> {
    let mut metadata = command::cargo(&layout.repo);
    metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &of_rustc("host: ")?]);
    let metadata = command::read(&mut metadata)?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata did not print JSON")?;
    let packages = linked(&metadata)?;
    let (mut notices, mut all) = (text(&packages)?, String::new());
    for libraries in assets::LIBRARIES {
        let file = libraries.vendor(layout).join("LICENSES");
        let texts = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        notices.push_str(&format!("\nPages of the {} contain the libraries below.\n\n{texts}", libraries.of));
        all.push_str(&texts);
    }
    let mut files =
        vec![(FILE, notices), (components::FILE, components::text(&packages, &of_rustc("release: ")?, &all)?)];
    let sysroot = command::read(Command::new("rustc").args(["--print", "sysroot"]))?;
    // A compiler from another source may lack it; the list names the library in any case.
    if let Ok(of_rust) = fs::read_to_string(Path::new(sysroot.trim()).join(OF_RUST.0)) {
        files.push((OF_RUST.1, of_rust));
    }
    Ok(files)
}

/// Writes the list of components beside the packages, too.
pub(super) fn list_of_components(layout: &Layout, output: &Path) -> Result<PathBuf> {
    let (name, text) =
        of(layout)?.into_iter().find(|(name, _)| *name == components::FILE).context("no list of components")?;
    let path = output.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// What the compiler says of itself after this word.
fn of_rustc(word: &str) -> Result<String> {
    let version = command::read(Command::new("rustc").arg("-vV"))?;
    let found = version.lines().find_map(|line| line.strip_prefix(word));
    Ok(found.with_context(|| format!("rustc -vV has no line {word}"))?.to_owned())
}

/// All third-party packages with code in the packaged files; not those used only during compilation.
fn linked(metadata: &Value) -> Result<BTreeSet<Package>> {
    let list = |value: &'static str| metadata[value].as_array().into_iter().flatten();
    let packages: HashMap<&str, &Value> =
        list("packages").filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata says nothing of dependencies")?;
    let nodes: HashMap<&str, &Value> = nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let is_packed = |package: &Value| PACKED.iter().any(|name| package["name"] == *name) && package["source"].is_null();
    let mut open: Vec<&str> = packages.iter().filter(|(_, package)| is_packed(package)).map(|(id, _)| *id).collect();
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        let package = packages.get(id).with_context(|| format!("cargo metadata does not describe {id}"))?;
        let kinds = package["targets"].as_array().into_iter().flatten().flat_map(|target| target["kind"].as_array());
        let at_compile_time = kinds.flatten().any(|kind| kind == "proc-macro");
        if at_compile_time || !seen.insert(id) {
            continue;
        }
        if !package["source"].is_null() {
            found.insert(described(package)?);
        }
        let node = nodes.get(id).with_context(|| format!("cargo metadata does not say what {id} depends on"))?;
        open.extend(
            node["deps"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|needed| is_linked(needed))
                .filter_map(|needed| needed["pkg"].as_str()),
        );
    }
    Ok(found)
}

/// Whether a dependency is a normal one, not of tests or build scripts.
fn is_linked(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
}

fn described(package: &Value) -> Result<Package> {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let manifest = PathBuf::from(text("manifest_path"));
    Ok(Package {
        name: text("name"),
        version: text("version"),
        licence: text("license"),
        authors: authors.collect::<Vec<_>>().join(", "),
        repository: text("repository"),
        folder: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
    })
}

fn text(packages: &BTreeSet<Package>) -> Result<String> {
    let mut list = String::new();
    // Each license text appears once, with all packages that it belongs to.
    let mut licences: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let title = format!("{} {}", package.name, package.version);
        let licence = if package.licence.is_empty() { "no licence is named" } else { &package.licence };
        let _ = writeln!(list, "{title}\n    {licence}");
        for more in [&package.authors, &package.repository] {
            if !more.is_empty() {
                let _ = writeln!(list, "    {more}");
            }
        }
        let files = licence_files(&package.folder)?;
        if files.is_empty() {
            list += "    It comes without the text of its licence.\n";
        }
        for file in files {
            let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.strip_prefix(&package.folder)?.display();
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim_matches('\n').to_owned();
            licences.entry(text).or_default().push(format!("{title}: {name}"));
        }
    }
    let line = "=".repeat(80);
    let mut text = format!(
        "Elephant Tracks contains the libraries below. Where a licence has alternatives (\"OR\", \"/\"), any of them may be\n\
         chosen. Their texts follow the list.\n\n\
         The Rust standard library\n    MIT OR Apache-2.0\n    https://github.com/rust-lang/rust\n{list}"
    );
    let mut licences: Vec<(String, Vec<String>)> = licences.into_iter().collect();
    licences.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (licence, of) in licences {
        let _ = write!(text, "\n{line}\n{}\n{line}\n\n{}\n", of.join("\n"), licence.trim_end());
    }
    Ok(text)
}

/// License files anywhere in the package: it may contain libraries with their own licenses.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            if path.is_dir() {
                folders.push(path);
            } else if BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !name.ends_with(".RS") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, folder: &Path) -> Package {
        let (version, licence) = ("1.0".into(), "0BSD".into());
        Package {
            name: name.into(),
            version,
            licence,
            authors: String::new(),
            repository: String::new(),
            folder: folder.into(),
        }
    }

    #[test]
    fn no_package_is_dropped_and_no_text_is_there_twice() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for name in ["a", "b/c-library", "none"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("a/LICENSE-MIT"), "Permission is granted\r\n").unwrap();
        fs::write(folder.join("b/c-library/COPYING"), "\nPermission is granted\n").unwrap();
        fs::write(folder.join("b/license.rs"), "fn main() {}").unwrap();
        let packages = ["a", "b", "none"].map(|name| package(name, &folder.join(name)));
        let text = text(&BTreeSet::from(packages)).unwrap();
        assert!(text.contains("none 1.0\n    0BSD\n    It comes without the text"), "{text}");
        assert!(text.contains("\na 1.0: LICENSE-MIT\nb 1.0: c-library/COPYING\n"), "{text}");
        assert_eq!(text.matches("Permission is granted").count(), 1);
        assert!(!text.contains("fn main"));
    }

    #[test]
    fn only_what_is_linked_in_is_named() {
        let package = |name: &str, kind: &str, source: Value| {
            serde_json::json!({"id": name, "name": name, "version": "1", "license": "MIT", "source": source,
                "manifest_path": "/x/Cargo.toml", "targets": [{"kind": [kind]}]})
        };
        let registry = || Value::from("registry");
        let needs = |name: &str, kind: Value| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let deps = [
            needs("linked", Value::Null),
            needs("derive", Value::Null),
            needs("tests", "dev".into()),
            needs("cc", "build".into()),
        ];
        let node = |name: &str, deps: &[Value]| serde_json::json!({"id": name, "deps": deps});
        let metadata = serde_json::json!({
            "packages": [
                package("et-trace", "lib", Value::Null),
                package("linked", "lib", registry()),
                package("derive", "proc-macro", registry()),
                package("tests", "lib", registry()),
                package("cc", "lib", registry()),
            ],
            "resolve": {"nodes": [node("et-trace", &deps), node("linked", &[])]},
        });
        let found = linked(&metadata).unwrap();
        assert_eq!(found.iter().map(|package| package.name.as_str()).collect::<Vec<_>>(), ["linked"]);
    }
}
