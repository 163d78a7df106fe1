//! Compares the layers of the project in `docs/inside/layers.md` with manifests and code.

mod crates;
mod modules;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use modules::Modules;
use xtask::command;
use xtask::layout::Layout;

const USES: &str = "| crate | job | uses |";
const STAYS_OUT: &str = "| crate | crates | paths |";

fn cargo(layout: &Layout, args: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command::read(Command::new(cargo).args(args).arg("--offline").current_dir(&layout.repo)).unwrap()
}

fn page(layout: &Layout) -> String {
    fs::read_to_string(layout.repo.join("docs/inside/layers.md")).unwrap()
}

/// Workspaces besides the root.
const BESIDE: [&str; 3] = ["tools/et-collect", "tools/et-allocate", "fuzz"];

/// The crates of all workspaces.
fn workspaces(layout: &Layout) -> crates::Crates {
    let mut found = crates::Crates::default();
    for folder in ["."].iter().chain(&BESIDE) {
        let manifest = format!("{folder}/Cargo.toml");
        let metadata = cargo(layout, &["metadata", "--no-deps", "--format-version", "1", "--manifest-path", &manifest]);
        found.add(&layout.repo.to_string_lossy(), &serde_json::from_str(&metadata).unwrap()).unwrap();
    }
    found
}

#[test]
fn no_workspace_is_forgotten() {
    let layout = Layout::find().unwrap();
    let listed =
        command::read(Command::new("git").args(["ls-files", "*Cargo.toml"]).current_dir(&layout.repo)).unwrap();
    let known: Vec<String> = workspaces(&layout).0.into_values().map(|it| it.folder).collect();
    // Files known to git may have been deleted from the folder.
    let there = listed.lines().filter(|path| layout.repo.join(path).exists());
    let folders = there.filter_map(|path| path.strip_suffix("/Cargo.toml"));
    let unknown: Vec<&str> = folders.filter(|folder| !known.iter().any(|it| it == folder)).collect();
    assert!(unknown.is_empty(), "in no workspace that this test knows: {unknown:?}");
}

#[test]
fn folder_package_and_command_have_one_name() {
    let wrong = workspaces(&Layout::find().unwrap()).misnamed();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_explains_each_folder_at_the_top() {
    let layout = Layout::find().unwrap();
    let listed = command::read(Command::new("git").arg("ls-files").current_dir(&layout.repo)).unwrap();
    let folders: BTreeSet<&str> = listed.lines().filter_map(|path| path.split_once('/')).map(|(top, _)| top).collect();
    let folders: BTreeSet<&str> =
        folders.into_iter().filter(|it| !it.starts_with('.') && layout.repo.join(it).exists()).collect();
    assert!(folders.len() <= 15, "{folders:?}");
    let readme = fs::read_to_string(layout.repo.join("README.md")).unwrap();
    let missing: Vec<&&str> = folders
        .iter()
        .filter(|it| !readme.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{it}/`"))))
        .collect();
    assert!(missing.is_empty(), "README.md, \"Find your way\", has no line for {missing:?}");
}

#[test]
fn crates_use_those_that_the_page_allows() {
    let layout = Layout::find().unwrap();
    let said = crates::table(&page(&layout), USES, 0).unwrap();
    let wrong = crates::differences(&said, &workspaces(&layout).uses());
    assert!(wrong.is_empty(), "docs/inside/layers.md and the manifests differ:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_to_stay_out_does() {
    let layout = Layout::find().unwrap();
    let all = workspaces(&layout).0;
    let mut wrong = Vec::new();
    for (folder, unwanted) in crates::table(&page(&layout), STAYS_OUT, 1).unwrap() {
        let package = &all[&folder].package;
        let tree = cargo(&layout, &["tree", "--prefix", "none", "--edges", "normal,build", "--package", package]);
        assert!(tree.starts_with(package), "{tree}");
        let there = crates::brought_in(&tree, &unwanted);
        wrong.extend(
            there.iter().map(|other| format!("{folder}: {other} is among its dependencies (cargo tree tells why)")),
        );
    }
    for (folder, unwanted) in crates::table(&page(&layout), STAYS_OUT, 0).unwrap() {
        let modules = Modules::of_crate(&layout.repo.join(&all[&folder].folder)).unwrap();
        for path in &unwanted {
            let there = modules.naming(path);
            wrong.extend(there.iter().map(|module| format!("{folder}: {module} names {path}")));
        }
    }
    assert!(wrong.is_empty(), "docs/inside/layers.md says that these stay out:\n{}", wrong.join("\n"));
}

#[test]
fn modules_do_not_use_each_other_in_circles() {
    let layout = Layout::find().unwrap();
    let mut wrong = String::new();
    for folder in workspaces(&layout).0.into_values().map(|it| it.folder) {
        for circle in Modules::of_crate(&layout.repo.join(&folder)).unwrap().circles() {
            wrong.push_str(&format!("{folder}:\n  {}\n", circle.uses.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "modules that use each other in a circle (move what both need to a third):\n{wrong}");
}
