//! The layers of the project, as `docs/inside/layers.md` has them, held against manifests and code.

mod crates;
mod modules;
mod source;

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

/// Crates by folder: what each uses, and its name.
fn workspace(layout: &Layout) -> (crates::Table, std::collections::BTreeMap<String, String>) {
    let metadata = cargo(layout, &["metadata", "--no-deps", "--format-version", "1"]);
    crates::dependencies(&serde_json::from_str(&metadata).unwrap()).unwrap()
}

#[test]
fn crates_use_those_that_the_page_allows() {
    let layout = Layout::find().unwrap();
    let said = crates::table(&page(&layout), USES, 0).unwrap();
    let wrong = crates::differences(&said, &workspace(&layout).0);
    assert!(wrong.is_empty(), "docs/inside/layers.md and the manifests differ:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_to_stay_out_does() {
    let layout = Layout::find().unwrap();
    let names = workspace(&layout).1;
    let mut wrong = Vec::new();
    for (folder, unwanted) in crates::table(&page(&layout), STAYS_OUT, 1).unwrap() {
        let tree =
            cargo(&layout, &["tree", "--prefix", "none", "--edges", "normal,build", "--package", &names[&folder]]);
        assert!(tree.starts_with(&names[&folder]), "{tree}");
        let there = crates::brought_in(&tree, &unwanted);
        wrong.extend(
            there.iter().map(|other| format!("{folder}: {other} is among its dependencies (cargo tree tells why)")),
        );
    }
    for (folder, unwanted) in crates::table(&page(&layout), STAYS_OUT, 0).unwrap() {
        let modules = Modules::of_crate(&layout.repo.join(&folder)).unwrap();
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
    for folder in workspace(&layout).0.keys() {
        for circle in Modules::of_crate(&layout.repo.join(folder)).unwrap().circles() {
            wrong.push_str(&format!("{folder}:\n  {}\n", circle.uses.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "modules that use each other in a circle (move what both need to a third):\n{wrong}");
}
