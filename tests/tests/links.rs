//! Links between the pages of the documentation lead somewhere, their anchors too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::layout::Layout;

#[test]
fn links_lead_somewhere() -> Result<()> {
    let layout = Layout::find()?;
    let mut pages = vec![layout.repo.join("README.md")];
    for folder in ["docs", "docs/inside", "examples/gradle", "examples/maven", "examples/leaky-cache"] {
        for entry in fs::read_dir(layout.repo.join(folder))? {
            pages.push(entry?.path());
        }
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    let mut dead = Vec::new();
    for page in &pages {
        let text = read(page)?;
        let folder = page.parent().context("a page lies in a folder")?;
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            let leads = target.exists() && (anchor.is_empty() || is_page && anchors(&read(&target)?).contains(anchor));
            if !leads {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    Ok(())
}

fn read(page: &PathBuf) -> Result<String> {
    fs::read_to_string(page).with_context(|| format!("cannot read {}", Path::display(page)))
}

/// What stands in the brackets of `[text](link)`.
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
