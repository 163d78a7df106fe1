//! Checks that everything the documentation refers to exists: pages, anchors, files of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use xtask::layout::Layout;
use xtask::{book, command, pages};

/// Files that readers are asked to create.
const TO_WRITE: [&str; 1] = ["tests/java/Locks.java"];

#[test]
fn links_lead_somewhere() -> Result<()> {
    pages::lead_somewhere(&pages::all(&Layout::find()?.repo)?)
}

#[test]
fn the_index_lists_each_page_once() -> Result<()> {
    let wrong = book::unlisted(&Layout::find()?.repo)?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn links_lead_somewhere_in_the_book() -> Result<()> {
    let folder = tempfile::tempdir()?;
    book::stage(&Layout::find()?.repo, folder.path())?;
    let pages = pages::in_folder(folder.path())?;
    pages::lead_somewhere(&pages)?;
    let summary = fs::read_to_string(folder.path().join("SUMMARY.md"))?;
    for page in &pages {
        let path = page.strip_prefix(folder.path())?.display().to_string();
        let count = summary.matches(&format!("]({path})")).count();
        assert_eq!(count, usize::from(path != "SUMMARY.md"), "{path}:\n{summary}");
    }
    Ok(())
}

#[test]
fn files_that_pages_name_are_there() -> Result<()> {
    let repo = Layout::find()?.repo;
    let listed = tracked(&repo)?;
    let tops: BTreeSet<String> =
        listed.iter().filter_map(|path| path.split_once('/')).map(|(top, _)| top.to_owned()).collect();
    let mut wrong = Vec::new();
    for page in pages::all(&repo)? {
        let text = fs::read_to_string(&page)?;
        let named = pages::paths(&text, &tops).filter(|path| !TO_WRITE.contains(path));
        // Not what only this working tree has, such as a folder that moved and left an empty one behind.
        let is_tracked = |path: &str| {
            let path = path.trim_end_matches('/');
            listed.iter().any(|file| file == path || file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
        };
        let missing = named.filter(|path| !is_tracked(path));
        wrong.extend(missing.map(|path| format!("{}: {path}", page.display())));
        let is_there = |source: &str| listed.iter().any(|path| path == source || path.ends_with(&format!("/{source}")));
        let missing = pages::sources(&text).filter(|source| !is_there(source));
        wrong.extend(missing.map(|source| format!("{}: {source}", page.display())));
    }
    assert!(wrong.is_empty(), "not in the repository:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn packages_tests_and_examples_of_cargo_are_there() -> Result<()> {
    let repo = Layout::find()?.repo;
    let listed = tracked(&repo)?;
    let folders = packages(&repo, &listed)?;
    let mut wrong = Vec::new();
    for page in pages::all(&repo)? {
        for words in pages::cargo(&fs::read_to_string(&page)?) {
            let options = words.iter().take_while(|word| *word != "--").zip(words.iter().skip(1));
            let mut folder = None;
            for (option, value) in options {
                let is_there = match option.as_str() {
                    "-p" | "--package" => {
                        folder = folders.get(value);
                        folder.is_some()
                    }
                    "--test" | "--example" => folder.is_none_or(|folder| {
                        let file = format!("{folder}/{}s/{value}", option.trim_start_matches('-'));
                        listed.iter().any(|path| *path == format!("{file}.rs") || *path == format!("{file}/main.rs"))
                    }),
                    _ => true,
                };
                if !is_there {
                    wrong.push(format!("{}: {}: no {value}", page.display(), words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The folders of all packages.
fn packages(repo: &Path, listed: &[String]) -> Result<BTreeMap<String, String>> {
    let mut folders = BTreeMap::new();
    for manifest in listed.iter().filter(|path| path.ends_with("/Cargo.toml") && repo.join(path).is_file()) {
        let text = fs::read_to_string(repo.join(manifest))?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let folder = manifest.trim_end_matches("/Cargo.toml").to_owned();
        folders.extend(name.map(|name| (name.to_owned(), folder)));
    }
    Ok(folders)
}

#[test]
fn pages_that_sources_name_are_there() -> Result<()> {
    let repo = Layout::find()?.repo;
    let mut wrong = Vec::new();
    for file in tracked(&repo)? {
        // The changelog names files as of each version.
        if file == "CHANGELOG.md" || file == "xtask/src/pages.rs" || file == "xtask/src/book.rs" {
            continue;
        }
        let Ok(text) = fs::read_to_string(repo.join(&file)) else { continue };
        let missing = pages::mentioned(&text).filter(|page| !repo.join(page).is_file());
        wrong.extend(missing.map(|page| format!("{file}: {page}")));
    }
    assert!(wrong.is_empty(), "no such page:\n{}", wrong.join("\n"));
    Ok(())
}

fn tracked(repo: &Path) -> Result<Vec<String>> {
    let listed = command::read(Command::new("git").arg("ls-files").current_dir(repo))?;
    Ok(listed.lines().map(str::to_owned).collect())
}
