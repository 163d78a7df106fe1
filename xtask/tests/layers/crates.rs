//! What `docs/inside/layers.md` says of crates, and what their manifests do.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Folders of crates, with what belongs to each.
pub type Table = BTreeMap<String, BTreeSet<String>>;

/// The rows of the table that has these headings: its first column, and the words between backticks in the last but `from_end`.
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

/// What stands between backticks.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The workspace's crates and those of them that each needs, by folder, from what `cargo metadata --no-deps` prints.
pub fn dependencies(metadata: &Value) -> Result<(Table, BTreeMap<String, String>)> {
    let root = metadata["workspace_root"].as_str().context("no workspace root")?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let folder = |path: &Value| {
        let path = path.as_str()?.strip_prefix(root)?.trim_start_matches('/');
        Some(path.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned())
    };
    let (mut table, mut names) = (Table::new(), BTreeMap::new());
    for package in packages {
        let own = folder(&package["manifest_path"]).context("a package without a folder")?;
        names.insert(own.clone(), package["name"].as_str().unwrap_or_default().to_owned());
        let needed = package["dependencies"].as_array().into_iter().flatten();
        let needed = needed.filter(|needed| needed["kind"] != "dev").filter_map(|needed| folder(&needed["path"]));
        table.insert(own, needed.collect());
    }
    Ok((table, names))
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

/// Those of `unwanted` that `cargo tree --prefix none` lists.
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
            let metadata = serde_json::json!({"workspace_root": "/w", "packages": [package("a", a), package("b", b)]});
            dependencies(&metadata).unwrap().0
        };
        let none = serde_json::json!([]);
        assert!(differences(&said, &metadata(none.clone(), on("a", Value::Null))).is_empty());
        assert!(
            differences(&said, &metadata(on("b", "dev".into()), on("a", Value::Null))).is_empty(),
            "only for tests"
        );
        assert_eq!(
            differences(&said, &metadata(on("b", Value::Null), none)),
            ["a may not use b, but its Cargo.toml does", "b does not use a: take it out of the table"]
        );
    }

    #[test]
    fn a_crate_that_comes_with_another_is_told() {
        let tree = "et-runtime v0.1.0 (/w/runtime-native)\nserde v1.0.0\nclap v4.0.0\n";
        assert_eq!(brought_in(tree, &set(&["clap", "parquet"])), ["clap"]);
    }
}
