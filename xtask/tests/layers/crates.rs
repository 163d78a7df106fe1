//! Crates according to `docs/inside/layers.md`, and according to their manifests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Folders of crates, each with a set of names.
pub type Table = BTreeMap<String, BTreeSet<String>>;

/// The rows of the table with these headings: the first column, and the words in backticks of the last column, or of
/// the one `from_end` before it.
pub fn table(text: &str, headings: &str, from_end: usize) -> Result<Table> {
    let rows = text.lines().skip_while(|line| *line != headings).skip(2).take_while(|line| line.starts_with('|'));
    let rows: Table = rows
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            let first = words(cells[0]).next().unwrap_or_default().to_owned();
            (first, words(cells[cells.len() - 1 - from_end]).map(str::to_owned).collect())
        })
        .collect();
    ensure!(!rows.is_empty(), "no table with the headings {headings}");
    Ok(rows)
}

/// The words in backticks.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Folders that only group crates, and are not part of a crate's name.
const GROUPS: [&str; 4] = ["crates/", "tools/", "profilers/", "xtask/"];

/// A crate according to its manifest.
#[derive(Debug)]
pub struct Crate {
    /// Folder, relative to the root of the repository.
    pub folder: String,
    /// Name of the package.
    pub package: String,
    /// Names of its programs.
    pub programs: Vec<String>,
    /// Whether it has a library.
    pub is_library: bool,
    uses: BTreeSet<String>,
}

/// The name of a crate on the page: its folder without the group.
fn key(folder: &str) -> &str {
    GROUPS.iter().find_map(|group| folder.strip_prefix(group)).unwrap_or(folder)
}

/// Crates by their names on the page.
#[derive(Debug, Default)]
pub struct Crates(pub BTreeMap<String, Crate>);

impl Crates {
    /// Adds the crates of a workspace from the output of `cargo metadata --no-deps`. `repo` is the root of the
    /// repository.
    pub fn add(&mut self, repo: &str, metadata: &Value) -> Result<()> {
        let folder = |path: &Value| {
            let path = path.as_str()?.strip_prefix(repo)?.trim_start_matches('/');
            Some(path.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned())
        };
        for package in metadata["packages"].as_array().context("no packages")? {
            let own = folder(&package["manifest_path"]).context("a package without a folder")?;
            let needed = package["dependencies"].as_array().into_iter().flatten();
            let needed = needed.filter(|needed| needed["kind"] != "dev").filter_map(|needed| folder(&needed["path"]));
            let targets = || package["targets"].as_array().into_iter().flatten();
            let is = |target: &Value, kind: &str| {
                target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|it| it == kind))
            };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let described = Crate {
                package: text(&package["name"]),
                programs: targets().filter(|it| is(it, "bin")).map(|it| text(&it["name"])).collect(),
                is_library: targets().any(|it| is(it, "lib") || is(it, "rlib")),
                uses: needed.map(|other| key(&other).to_owned()).collect(),
                folder: own,
            };
            self.0.insert(key(&described.folder).to_owned(), described);
        }
        Ok(())
    }

    /// The dependencies of each crate.
    pub fn uses(&self) -> Table {
        self.0.iter().map(|(key, described)| (key.clone(), described.uses.clone())).collect()
    }

    /// One line for each crate that is not named after its folder.
    pub fn misnamed(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, described) in &self.0 {
            let name = key.replace('/', "-");
            let name = if name == "xtask" || name.starts_with("et-") { name } else { format!("et-{name}") };
            if described.package != name {
                lines.push(format!("{}: its package is {}, not {name}", described.folder, described.package));
            }
            if !key.starts_with("et-") {
                continue;
            }
            if described.programs != [name.as_str()] {
                lines
                    .push(format!("{}: its programs are {:?}, not {name} alone", described.folder, described.programs));
            }
            if !described.is_library {
                lines.push(format!("{}: a command is a library and a main.rs that calls it", described.folder));
            }
        }
        lines
    }
}

/// One line for each difference.
pub fn differences(said: &Table, found: &Table) -> Vec<String> {
    let mut lines = Vec::new();
    for folder in said.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let (Some(may), Some(does)) = (said.get(folder), found.get(folder)) else {
            let which = if said.contains_key(folder) { "has no Cargo.toml" } else { "has no row in the table" };
            lines.push(format!("{folder} {which}"));
            continue;
        };
        lines
            .extend(does.difference(may).map(|other| format!("{folder} may not use {other}, but its Cargo.toml does")));
        lines.extend(
            may.difference(does).map(|other| format!("{folder} does not use {other}: take it out of the table")),
        );
    }
    let unknown = said.values().flatten().filter(|other| !found.contains_key(*other));
    lines.extend(unknown.map(|other| format!("{other} is no crate of the workspace")));
    lines
}

/// The crates of `unwanted` in the output of `cargo tree --prefix none`.
pub fn brought_in(tree: &str, unwanted: &BTreeSet<String>) -> Vec<String> {
    let there: BTreeSet<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    unwanted.iter().filter(|name| there.contains(name.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\n| crate | job | uses |\n|---|---|---|\n| `a` | x | |\n| `b` | `y` | `a` |\n\nMore\n";

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_table_is_read() {
        let read = table(TEXT, "| crate | job | uses |", 0).unwrap();
        assert_eq!(read, Table::from([("a".to_owned(), set(&[])), ("b".to_owned(), set(&["a"]))]));
        assert!(table(TEXT, "| crate | uses |", 0).is_err());
    }

    #[test]
    fn a_dependency_that_no_row_allows_is_told() {
        let said = table(TEXT, "| crate | job | uses |", 0).unwrap();
        let package = |folder: &str, needed: Value| serde_json::json!({"name": folder, "manifest_path": format!("/w/{folder}/Cargo.toml"), "dependencies": needed});
        let on = |folder: &str, kind: Value| serde_json::json!([{"path": format!("/w/{folder}"), "kind": kind}]);
        let metadata = |a: Value, b: Value| {
            let metadata = serde_json::json!({"packages": [package("crates/a", a), package("b", b)]});
            let mut crates = Crates::default();
            crates.add("/w", &metadata).unwrap();
            crates.uses()
        };
        let none = serde_json::json!([]);
        assert!(differences(&said, &metadata(none.clone(), on("crates/a", Value::Null))).is_empty());
        assert!(
            differences(&said, &metadata(on("b", "dev".into()), on("crates/a", Value::Null))).is_empty(),
            "only for tests"
        );
        assert_eq!(
            differences(&said, &metadata(on("b", Value::Null), none)),
            ["a may not use b, but its Cargo.toml does", "b does not use a: take it out of the table"]
        );
    }

    #[test]
    fn a_crate_that_is_not_named_after_its_folder_is_told() {
        let misnamed = |folder: &str, name: &str, kinds: Value| {
            let targets: Vec<Value> = kinds
                .as_array()
                .unwrap()
                .iter()
                .map(|kind| serde_json::json!({"name": name, "kind": [kind]}))
                .collect();
            let manifest = format!("/w/{folder}/Cargo.toml");
            let package =
                serde_json::json!({"name": name, "manifest_path": manifest, "dependencies": [], "targets": targets});
            let mut crates = Crates::default();
            crates.add("/w", &serde_json::json!({"packages": [package]})).unwrap();
            crates.misnamed()
        };
        let right = serde_json::json!(["lib", "bin"]);
        assert!(misnamed("tools/et-trace", "et-trace", right.clone()).is_empty());
        assert!(misnamed("crates/names", "et-names", serde_json::json!(["lib"])).is_empty());
        assert!(misnamed("tests/heap", "et-tests-heap", serde_json::json!(["lib"])).is_empty());
        assert_eq!(misnamed("tools/et-trace", "et-trace-cli", right).len(), 2);
        let no_library = "tools/et-trace: a command is a library and a main.rs that calls it";
        assert_eq!(misnamed("tools/et-trace", "et-trace", serde_json::json!(["bin"])), [no_library]);
    }

    #[test]
    fn a_crate_that_comes_with_another_is_told() {
        let tree = "et-runtime-native v0.1.0 (/w/runtime-native)\nserde v1.0.0\nclap v4.0.0\n";
        assert_eq!(brought_in(tree, &set(&["clap", "parquet"])), ["clap"]);
    }
}
