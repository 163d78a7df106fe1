//! The lines of a report's sites.

use et_analysis::Excerpt;
use et_analysis::report::{Page, Report};
use et_report::{Cell, Column, Excerpts, Table, tables};
use serde::Serialize;

use super::{SourceFiles, Sources};

/// A site with its line, for `--json`.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct SiteLine<'a> {
    site: &'a str,
    #[serde(flatten)]
    excerpt: Excerpt,
}

/// The lines of all sites that a report names, by their names.
pub(in crate::cli) fn excerpts(report: &Report, files: &SourceFiles, sources: &mut Sources) -> Excerpts {
    let mut found = Excerpts::default();
    let mut add = |name: &str| {
        if !found.contains_key(name)
            && let Some(excerpt) = sources.excerpt(files, name)
        {
            found.insert(name.to_owned(), excerpt);
        }
    };
    for row in tables(report).iter().flat_map(|table| &table.rows) {
        for cell in row {
            if let Cell::Name(name) = cell {
                add(name);
            }
        }
    }
    report.lifetimes.sites.iter().for_each(|site| add(&site.name));
    report.alive.iter().flat_map(|alive| &alive.sites).for_each(|site| add(&site.name));
    for frame in report.flames.by_context.names.iter().chain(&report.flames.by_site.names) {
        // A class, and the site that made it.
        frame.name.split("  ").for_each(&mut add);
    }
    for finding in &report.findings {
        finding.says.codes().for_each(&mut add);
    }
    found
}

/// The sites of a report that have a line, and how many have none.
pub(in crate::cli) fn site_lines<'r>(report: &'r Report, excerpts: &Excerpts) -> (Vec<SiteLine<'r>>, usize) {
    let sites = &report.lifetimes.sites;
    let line = |site: &'r str| Some(SiteLine { site, excerpt: excerpts.get(site)?.clone() });
    let lines: Vec<_> = sites.iter().filter_map(|site| line(&site.name)).collect();
    let missing = sites.len() - lines.len();
    (lines, missing)
}

/// These sites as a table.
pub(in crate::cli) fn table(lines: &[SiteLine<'_>]) -> Table {
    let row = |SiteLine { site, excerpt }: &SiteLine<'_>| {
        let at = format!("{}:{}", excerpt.file, excerpt.line);
        vec![Cell::Name((*site).to_owned()), Cell::Text(at), Cell::Source(excerpt.clone())]
    };
    Table {
        page: Page::Allocation.id(),
        name: "source",
        title: "Source".into(),
        note: "The lines of the sites above, from the sources given with --source. A line opens those around it."
            .into(),
        columns: ["Site", "File", "Line"].map(|title| Column { title, help: "", is_number: false }).into(),
        rows: lines.iter().map(row).collect(),
    }
}
