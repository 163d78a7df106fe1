//! The messages of `docs/troubleshooting.md` are those of the tables: none that nobody says, and all that our programs say.

use anyhow::{Result, ensure};
use et_tests::pattern::matches;

use crate::row::Row;

/// Quoted messages stand in the first column of tables, as code.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")))
        .map(|(text, _)| text)
}

/// `et-instrument: `, `elephant-tracks: ` and the like are left out on the page.
fn by_our_programs(line: &str) -> Option<&str> {
    ["et-instrument: ", "et-trace: ", "elephant-tracks: "].iter().find_map(|program| line.strip_prefix(program))
}

pub fn compare(page: &str, rows: &[Row]) -> Result<()> {
    let quoted: Vec<String> = quoted(page).map(|message| message.replace("\\|", "|")).collect();
    let said = || rows.iter().flat_map(|row| &row.says);
    let mut wrong = String::new();
    for message in &quoted {
        if !said().any(|line| matches(message, by_our_programs(line).unwrap_or(line))) {
            wrong += &format!("\nno row of tests/errors says `{message}`");
        }
    }
    for line in said().filter_map(|line| by_our_programs(line)) {
        if !quoted.iter().any(|message| matches(message, line)) {
            wrong += &format!("\ndocs/troubleshooting.md does not have `{line}`");
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}
