//! The messages in `docs/troubleshooting.md` are those in the tables: none that does not occur, and all that do.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use et_tests::pattern::{ANYTHING, matches};

use crate::row::Row;

/// Quoted messages are code in the first column of tables.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")))
        .map(|(text, _)| text)
}

/// Prefixes such as `et-instrument: ` and `elephant-tracks: ` are omitted on the page.
fn by_our_programs(line: &str) -> Option<&str> {
    ["et-instrument: ", "et-trace: ", "et-replay: ", "et-monitor: ", "et-jvmpi: ", "monitor: ", "elephant-tracks: "]
        .iter()
        .find_map(|program| line.strip_prefix(program))
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

/// Where messages of the plugins come from. Running the build tools for each would take minutes, so what does not vary in a
/// message is looked for in the sources.
const SOURCES: [&str; 5] = [
    "gradle-plugin/src/main",
    "maven-plugin/src/main",
    "gradle-plugin/src/main/java/org/elephanttracks/plugin",
    "instrument/src/cache/error.rs",
    "instrument/src/jdk/error.rs",
];

/// The messages that the pages of the plugins have in tables headed `message`.
pub fn plugins(repo: &Path) -> Result<()> {
    let mut sources = String::new();
    for source in SOURCES {
        read_all(&repo.join(source), &mut sources)?;
    }
    let mut wrong = String::new();
    for page in ["docs/gradle.md", "docs/maven.md"] {
        let text = fs::read_to_string(repo.join(page)).with_context(|| page)?;
        let tables = text.split("\n\n").filter(|part| part.starts_with("| message |"));
        let messages: Vec<&str> = tables.flat_map(quoted).collect();
        ensure!(messages.len() > 4, "{page} has no table of messages");
        for message in messages {
            for piece in message.split(ANYTHING).map(str::trim).filter(|piece| !piece.is_empty()) {
                // In the source, the colon before the reason is separate.
                if !sources.contains(piece.trim_start_matches([':', ' ']).trim_end_matches([':', ' '])) {
                    wrong += &format!("\n{page}: nobody says {piece:?} of `{message}`");
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}

fn read_all(path: &Path, text: &mut String) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            read_all(&entry?.path(), text)?;
        }
    } else {
        text.push_str(&fs::read_to_string(path).with_context(|| path.display().to_string())?);
    }
    Ok(())
}
