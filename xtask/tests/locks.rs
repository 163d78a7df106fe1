//! Crates with separate workspaces have separate lock files. Their entries for our crates must match the manifests,
//! otherwise `cargo xtask build`, which does not update lock files, fails where no other test detects it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Packages without a source, which are our own, and their dependencies.
fn ours(lock: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value =
            |key: &str| package.lines().find_map(|line| line.strip_prefix(key)).map(|text| text.trim_matches('"'));
        let (Some(name), None) = (value("name = "), value("source = ")) else { continue };
        let needed = package.lines().filter_map(|line| line.strip_prefix(" \""));
        // A name, followed by a version if there are several.
        let needed = needed.filter_map(|line| line.split(['"', ' ']).next()).map(str::to_owned);
        found.insert(name.to_owned(), needed.collect());
    }
    found
}

/// The dependencies in the manifest of a folder, without those of tests and optional features.
fn needed(folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let lines =
        text.lines().skip_while(|line| *line != "[dependencies]").skip(1).take_while(|line| !line.starts_with('['));
    let lines = lines.filter(|line| !line.starts_with('#') && !line.contains("optional = true"));
    lines.filter_map(|line| line.split(['.', ' ']).next()).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The folders of our crates, by name.
fn folders(repo: &Path) -> BTreeMap<String, PathBuf> {
    let parents = ["", "crates", "tools", "profilers", "tests", "fuzz", "xtask"].map(|parent| repo.join(parent));
    let folders = parents.iter().flat_map(|parent| fs::read_dir(parent).unwrap()).map(|entry| entry.unwrap().path());
    let name = |folder: &Path| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        Some(text.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').to_owned())
    };
    folders.filter_map(|folder| Some((name(&folder)?, folder))).collect()
}

#[test]
fn lock_files_apart_follow_the_manifests() {
    let repo = env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let repo = Path::new(&repo).parent().unwrap();
    let folders = folders(repo);
    for apart in ["tools/et-collect", "tools/et-allocate", "fuzz"] {
        let locked = ours(&fs::read_to_string(repo.join(apart).join("Cargo.lock")).unwrap());
        assert!(locked.len() >= 6, "{apart}: {:?}", locked.keys());
        for (name, needs) in &locked {
            let folder =
                folders.get(name).unwrap_or_else(|| panic!("{apart}/Cargo.lock has {name}, which is in no folder"));
            let missing: Vec<_> = needed(folder).difference(needs).cloned().collect();
            assert!(
                missing.is_empty(),
                "{apart}/Cargo.lock: {name} needs {missing:?}: cargo update --manifest-path {apart}/Cargo.toml -p {name}"
            );
        }
    }
}

#[test]
fn a_lock_file_is_read() {
    let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1\"\nsource = \"registry\"\n\n[[package]]\nname = \"et-b\"\n\
                version = \"1\"\ndependencies = [\n \"a\",\n \"c 2.0.0\",\n]\n";
    let expected = BTreeMap::from([("et-b".to_owned(), BTreeSet::from(["a".to_owned(), "c".to_owned()]))]);
    assert_eq!(ours(lock), expected);
}
