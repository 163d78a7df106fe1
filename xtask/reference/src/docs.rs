//! The tables in `docs/` that are defined by the code: options, columns, events.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::{events, markdown, plugins, runtime, with_subcommands};

/// Markers around the generated table in a page with other content.
const MARKS: [&str; 2] =
    ["<!-- cargo xtask docs writes this table: begin -->\n", "<!-- cargo xtask docs writes this table: end -->"];

/// Updates the pages.
pub fn write(repo: &Path) -> Result<()> {
    for (name, text) in pages(repo)? {
        let path = repo.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The up-to-date content of each page, by its path in the repository.
fn pages(repo: &Path) -> Result<[(&'static str, String); 5]> {
    let between = |name: &'static str, table: &str| -> Result<(&'static str, String)> {
        let path = repo.join(name);
        let old = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((name, with_table(&old, table).with_context(|| format!("{name} has no {MARKS:?}"))?))
    };
    let runtime_options = between("docs/runtime-options.md", &runtime::table())?;
    let tables = between("docs/tables.md", &et_tables::docs::markdown())?;
    let events = between("docs/inside/events.md", &events::table())?;
    let lives = between("docs/inside/lives.md", &et_lives::tables::objects::TABLE.markdown())?;
    Ok([("docs/options.md", options(repo)?), runtime_options, tables, events, lives])
}

fn with_table(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some(format!("{before}{}{table}{}{after}", MARKS[0], MARKS[1]))
}

/// All options of the tools, the runtime and the plugins.
fn options(repo: &Path) -> Result<String> {
    let mut page = String::from(
        "# All options\n\n\
         [`et-instrument`](#et-instrument) instruments and runs programs, [`et-trace`](#et-trace) reads traces,\n\
         [`et-replay`](#et-replay) replays them on simulated collectors, allocators and caches, [`et-monitor`](#et-monitor) shows what\n\
         running VMs do, [`et-jvmpi`](#et-jvmpi) drives profilers of Java 1.2 to 5 from a trace.\n\
         [A traced run](#a-traced-run) has its own options, and so do [Gradle](#gradle) and [Maven](#maven) builds.\n\
         Every command has `--help`, and the tools have `--version`. `cargo xtask docs` generates this page from the code\n\
         that parses the options.\n\n",
    );
    for tool in &crate::tools() {
        for command in with_subcommands(tool) {
            let heading = if command.get_name() == tool.get_name() { "##" } else { "###" };
            page += &markdown::command(command, heading);
        }
    }
    let _ = writeln!(
        page,
        "## A traced run\n\n\
         Options of the JVM; [runtime-options.md](runtime-options.md) describes other ways to pass them.\n\n{}",
        runtime::table()
    );
    page += &plugins::gradle(repo)?;
    page += "\n";
    page += &plugins::maven(repo)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_up_to_date() {
        let repo = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for (name, text) in pages(repo).unwrap() {
            let written = fs::read_to_string(repo.join(name)).unwrap_or_default();
            let differs = written.lines().zip(text.lines()).find(|(old, new)| old != new);
            assert!(written == text, "{name} is out of date: run cargo xtask docs. First difference: {differs:?}");
        }
    }

    #[test]
    fn a_table_takes_its_place_between_the_marks() {
        let page = format!("before\n{}old\n{}\nafter\n", MARKS[0], MARKS[1]);
        let expected = format!("before\n{}| new |\n{}\nafter\n", MARKS[0], MARKS[1]);
        assert_eq!(with_table(&page, "| new |\n"), Some(expected));
        assert_eq!(with_table("no marks", "x"), None);
    }
}
