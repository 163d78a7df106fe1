//! Links between the pages of the documentation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// All pages in a folder and below.
pub fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(self::pages(&path)?);
        } else if is_page(&path) {
            pages.push(path);
        }
    }
    Ok(pages)
}

/// Their links lead somewhere, their anchors too.
pub fn lead_somewhere(pages: &[PathBuf]) -> Result<()> {
    let mut dead = Vec::new();
    for page in pages {
        let text = read(page)?;
        let folder = page.parent().context("a page lies in a folder")?;
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            let leads =
                target.exists() && (anchor.is_empty() || is_page(&target) && anchors(&read(&target)?).contains(anchor));
            if !leads {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    ensure!(dead.is_empty(), "links to what is not there:\n{}", dead.join("\n"));
    Ok(())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn read(page: &Path) -> Result<String> {
    fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))
}

/// The targets of links: `[text](link)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

/// As GitHub makes them of headings: lower case, without marks, hyphens for spaces.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        text.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}
