//! Usage errors: the tables in `tests/errors` state the message and exit code for each; nothing is left behind.
//! `docs/troubleshooting.md` has a cause and a remedy for each of these messages, and no others.
//!
//! `cargo test -p et-tests --test errors run` tests the tables with `run` in their names.

mod documented;
mod place;
mod row;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use libtest_mimic::Trial;
use xtask::jdks::Jdk;
use xtask::layout::Layout;

use place::Place;
use row::Row;

/// The files of `tests/errors`, and whether their rows start JVMs.
const TABLES: [(&str, bool); 8] = [
    ("instrument", false),
    ("jdk", false),
    ("run", true),
    ("trace", true),
    ("replay", true),
    ("jvmpi", true),
    ("runtime", true),
    ("monitor", false),
];
/// Differences between JDKs have separate tests.
const FEATURE: u32 = 17;

fn main() -> ExitCode {
    let mut trials: Vec<Trial> = TABLES
        .into_iter()
        .map(|(table, traced)| {
            lab::on_jdk_unless(FEATURE, table, |_, _| None, move |lab, jdk| try_out(lab, jdk, table, traced))
        })
        .collect();
    trials.push(Trial::test("documented", || lab::outcome(documented())));
    lab::run(trials).exit_code()
}

fn rows(layout: &Layout, table: &str) -> Result<Vec<Row>> {
    let path = layout.repo.join("tests/errors").join(table).with_extension("txt");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    row::parse(&text).with_context(|| path.display().to_string())
}

fn try_out(lab: &Lab, jdk: &Jdk, table: &str, traced: bool) -> Result<()> {
    let place = Place::set_up(lab, jdk, table, traced)?;
    let mut wrong = String::new();
    for row in rows(&lab.layout, table)? {
        if let Some(program) = &row.needs
            && let Err(reason) = lab.has(program)
        {
            lab.not_tested(&format!("errors::{table}: {}", row.what), &reason);
            continue;
        }
        if let Err(error) = place.check(&row) {
            wrong += &format!("\n# {}\n{error:#}\n", row.what);
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    place.clean()
}

fn documented() -> Result<()> {
    let layout = Layout::find()?;
    let mut all = Vec::new();
    for (table, _) in TABLES {
        all.extend(rows(&layout, table)?);
    }
    let page = fs::read_to_string(layout.repo.join("docs/troubleshooting.md")).context("docs/troubleshooting.md")?;
    documented::compare(&page, &all)?;
    documented::plugins(&layout.repo)
}
