//! `cargo xtask book`: all pages as one searchable book, made by mdBook.
//!
//! The chapters are those of `docs/README.md`, in its order. Pages keep their paths in the repository, so that links
//! work in both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::layout::Layout;
use crate::{command, pages};

const PROGRAM: &str = "mdbook";
/// The version to install if there is none.
const VERSION: &str = "0.5.4";

/// The page that lists all others.
pub const INDEX: &str = "docs/README.md";
const FRONT: &str = "README.md";

const CONFIG: &str = r#"[book]
title = "Elephant Tracks"
language = "en"
src = "src"

[output.html]
no-section-label = true
smart-punctuation = false
additional-css = ["book.css"]

[output.html.print]
enable = false

[output.html.search]
limit-results = 30
"#;

/// Tables of figures are wider than text; mdBook's default width is for text only.
const STYLE: &str = ":root { --content-max-width: 960px; }\n.content table { margin-inline-start: 0; }\n.content .table-wrapper { margin-block: 16px; }\n";

/// Builds the book, and checks all its links.
pub fn run(layout: &Layout) -> Result<()> {
    let (work, book) = (layout.target.join("book-work"), layout.target.join("book"));
    let program = program(layout)?;
    for outdated in [&work, &book] {
        if outdated.exists() {
            fs::remove_dir_all(outdated).with_context(|| format!("cannot remove {}", outdated.display()))?;
        }
    }
    stage(&layout.repo, &work.join("src"))?;
    write(&work.join("book.toml"), CONFIG)?;
    write(&work.join("book.css"), STYLE)?;
    command::quiet(Command::new(program).arg("build").arg("--dest-dir").arg(&book).arg(&work))?;
    check(&book)?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// Finds mdBook, or installs it.
fn program(layout: &Layout) -> Result<PathBuf> {
    if command::exists(PROGRAM) {
        return Ok(PROGRAM.into());
    }
    let tools = layout.target.join("tools");
    let program = tools.join("bin").join(PROGRAM);
    if !program.is_file() {
        eprintln!("installing mdBook {VERSION} in {}: a few minutes, once", tools.display());
        let mut install = command::cargo(&layout.repo);
        install.args(["install", PROGRAM, "--version", VERSION, "--locked", "--root"]).arg(&tools);
        command::run(&mut install)?;
    }
    Ok(program)
}

/// A chapter: its title in the index, and the path of its page in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
    title: String,
    page: PathBuf,
}

/// The chapters listed by the text of the index, by heading.
fn chapters(index: &str) -> Vec<(String, Vec<Chapter>)> {
    let mut parts: Vec<(String, Vec<Chapter>)> = Vec::new();
    for line in index.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            parts.push((heading.to_owned(), Vec::new()));
        } else if let Some((title, rest)) = line.strip_prefix("* [").and_then(|line| line.split_once("](")) {
            let page = rest.split(')').next().map(|link| Path::new("docs").join(link));
            let chapter = page.map(|page| Chapter { title: title.to_owned(), page });
            parts.last_mut().into_iter().for_each(|part| part.1.extend(chapter.clone()));
        }
    }
    parts
}

/// Pages of `docs/` that the index does not list, or lists twice.
pub fn unlisted(repo: &Path) -> Result<Vec<String>> {
    let listed = chapters(&pages::read(&repo.join(INDEX))?).into_iter().flat_map(|part| part.1);
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    listed.for_each(|chapter| *counts.entry(chapter.page).or_default() += 1);
    let mut wrong = Vec::new();
    for page in pages::in_folder(&repo.join("docs"))? {
        let page = page.strip_prefix(repo)?.to_owned();
        let expected = usize::from(page != Path::new(INDEX));
        let count = counts.get(&page).copied().unwrap_or(0);
        if count != expected {
            wrong.push(format!("{INDEX} lists {} {count} times", page.display()));
        }
    }
    Ok(wrong)
}

/// Copies all pages, and the files that they link to, to a folder for mdBook.
pub fn stage(repo: &Path, to: &Path) -> Result<()> {
    let parts = chapters(&pages::read(&repo.join(INDEX))?);
    let mut pending = vec![PathBuf::from(FRONT), PathBuf::from(INDEX)];
    pending.extend(parts.iter().flat_map(|part| &part.1).map(|chapter| chapter.page.clone()));
    let mut staged = BTreeSet::new();
    while let Some(file) = pending.pop() {
        if !staged.insert(file.clone()) {
            continue;
        }
        let target = to.join(in_book(&file));
        if !pages::is_page(&file) {
            copy(&repo.join(&file), &target)?;
            continue;
        }
        let mut text = text(repo, &file)?;
        let links: BTreeSet<String> = pages::links(&text).map(str::to_owned).collect();
        for link in links.iter().filter(|link| pages::is_relative(link) && !link.starts_with('#')) {
            let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(path, name)| (path, Some(name)));
            let linked = resolved(repo, &file, path)?;
            let ending = anchor.map(|name| format!("#{name}")).unwrap_or_default();
            let new = relative(&in_book(&file), &in_book(&linked));
            text = text.replace(&format!("]({link})"), &format!("]({new}{ending})"));
            pending.push(linked);
        }
        write(&target, &text)?;
    }
    write(&to.join("SUMMARY.md"), &summary(&parts, &staged, repo)?)
}

/// The list of chapters in mdBook's format; pages that are only linked by others come last.
fn summary(parts: &[(String, Vec<Chapter>)], staged: &BTreeSet<PathBuf>, repo: &Path) -> Result<String> {
    let mut list = format!(
        "# Summary\n\n[Elephant Tracks]({})\n[All pages]({})\n",
        in_book(Path::new(FRONT)).display(),
        in_book(Path::new(INDEX)).display()
    );
    for (heading, chapters) in parts {
        list += &format!("\n# {heading}\n\n");
        for Chapter { title, page } in chapters {
            list += &format!("- [{title}]({})\n", in_book(page).display());
        }
    }
    let listed: BTreeSet<&Path> = parts.iter().flat_map(|part| &part.1).map(|chapter| chapter.page.as_path()).collect();
    list += "\n# More\n\n";
    for page in staged.iter().filter(|page| pages::is_page(page)) {
        if listed.contains(page.as_path()) || [Path::new(FRONT), Path::new(INDEX)].contains(&page.as_path()) {
            continue;
        }
        let first = text(repo, page)?.lines().next().unwrap_or_default().to_owned();
        list += &format!("- [{}]({})\n", first.trim_start_matches('#').trim(), in_book(page).display());
    }
    Ok(list)
}

/// The text of a page. A folder without one gets a page with a list of its files.
fn text(repo: &Path, page: &Path) -> Result<String> {
    if repo.join(page).is_file() {
        return pages::read(&repo.join(page));
    }
    let folder = page.parent().context("the page of a folder is in it")?;
    let mut names = Vec::new();
    for entry in fs::read_dir(repo.join(folder)).with_context(|| format!("cannot read {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let files: String = names.iter().map(|name| format!("* [{name}]({name})\n")).collect();
    Ok(format!("# {}\n\n{files}", folder.display()))
}

/// The target of a link on a page, as a path in the repository. A link to a folder leads to its page.
fn resolved(repo: &Path, page: &Path, link: &str) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    for component in page.parent().unwrap_or(Path::new("")).join(link).components() {
        match component {
            Component::ParentDir => ensure!(path.pop(), "{}: {link} leads out of the repository", page.display()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    if repo.join(&path).is_dir() {
        path.push("README.md");
        return Ok(path);
    }
    ensure!(repo.join(&path).is_file(), "{}: {link} leads nowhere", page.display());
    Ok(path)
}

/// Path of a file in the book: servers and browsers look for `index` in a folder.
fn in_book(file: &Path) -> PathBuf {
    if file.ends_with("README.md") { file.with_file_name("index.md") } else { file.to_owned() }
}

/// A relative link from one file of the book to another.
fn relative(from: &Path, to: &Path) -> String {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count().min(from.len() - 1);
    let up = std::iter::repeat_n("..".to_owned(), from.len() - 1 - shared);
    let down = to[shared..].iter().map(|component| component.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// Fails if a link of the book does not lead to an existing file and element.
fn check(book: &Path) -> Result<()> {
    let mut found = Vec::new();
    html(book, &mut found)?;
    let mut texts = BTreeMap::new();
    for page in found {
        texts.insert(page.clone(), pages::read(&page)?);
    }
    let mut ids = BTreeMap::new();
    for (page, text) in &texts {
        ids.insert(page.clone(), values(text, "id").collect::<BTreeSet<_>>());
    }
    let mut dead = Vec::new();
    // The 404 page has absolute addresses.
    for (page, text) in texts.iter().filter(|(page, _)| !page.ends_with("404.html")) {
        let folder = page.parent().unwrap_or(book);
        for link in values(text, "href").chain(values(text, "src")).filter(|link| pages::is_relative(link)) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { Ok(page.clone()) } else { folder.join(path).canonicalize() };
            let leads = target
                .is_ok_and(|target| anchor.is_empty() || ids.get(&target).is_some_and(|ids| ids.contains(anchor)));
            if !leads {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    ensure!(dead.is_empty(), "dead links in the book:\n{}", dead.join("\n"));
    Ok(())
}

fn html(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            html(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path.canonicalize()?);
        }
    }
    Ok(())
}

/// The values of an attribute.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    html.match_indices(&start)
        .map(|(at, found)| &html[at + found.len()..])
        .filter_map(|rest| rest.split_once('"').map(|(value, _)| value))
        .collect::<Vec<_>>()
        .into_iter()
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_come_by_heading() {
        let index =
            "# Title\n\n* [no part](x.md)\n\n## One\n\n* [A](a.md): why\n* [B](sub/b.md)\n\n## Two\n\n* [C](c.md)\n";
        let parts = chapters(index);
        let shown: Vec<_> = parts
            .iter()
            .flat_map(|(part, all)| all.iter().map(move |it| format!("{part} {} {}", it.title, it.page.display())))
            .collect();
        assert_eq!(shown, ["One A docs/a.md", "One B docs/sub/b.md", "Two C docs/c.md"]);
    }

    #[test]
    fn links_are_relative_to_their_pages() {
        let link = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(link("docs/a.md", "docs/b.md"), "b.md");
        assert_eq!(link("docs/inside/a.md", "docs/b.md"), "../b.md");
        assert_eq!(link("docs/a.md", "index.md"), "../index.md");
        assert_eq!(link("index.md", "docs/index.md"), "docs/index.md");
    }

    #[test]
    fn the_page_of_a_folder_is_its_index() {
        assert_eq!(in_book(Path::new("docs/README.md")), Path::new("docs/index.md"));
        assert_eq!(in_book(Path::new("docs/a.md")), Path::new("docs/a.md"));
    }
}
