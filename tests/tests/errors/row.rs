//! One mistake: what is done, and what is said.

use anyhow::{Context, Result, bail, ensure};
use et_tests::pattern::{ANYTHING, matches};

#[derive(Debug, Default)]
pub struct Row {
    /// Short description.
    pub what: String,
    /// A program that it takes and that is not always built.
    pub needs: Option<String>,
    /// Shell commands that come before.
    pub given: Vec<String>,
    /// The shell command that fails.
    pub run: String,
    /// Expected exit code.
    pub code: i32,
    /// The lines on standard error.
    pub says: Vec<String>,
}

/// Parses a table. Rows are separated by empty lines:
///
/// ```text
/// # A jar that is cut off
/// given: head -c 200 good.jar > cut.jar
/// run: et-instrument cut.jar -o out.jar
/// code: 1
/// says: et-instrument: cut.jar: damaged jar: …
/// ```
pub fn parse(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for part in text.split("\n\n").map(str::trim).filter(|part| !part.is_empty()) {
        let mut row = Row::default();
        let mut code = None;
        for line in part.lines() {
            match line.split_once(' ').with_context(|| format!("{line:?} says nothing"))? {
                ("#", text) => row.what = text.to_owned(),
                ("needs:", text) => row.needs = Some(text.to_owned()),
                ("given:", text) => row.given.push(text.to_owned()),
                ("run:", text) => row.run = text.to_owned(),
                ("code:", text) => code = Some(text.parse().with_context(|| format!("{text} is no exit code"))?),
                ("says:", text) => row.says.push(text.to_owned()),
                _ => bail!("{line:?}: a line begins with #, needs:, given:, run:, code: or says:"),
            }
        }
        row.code = code.with_context(|| format!("{:?} has no code", row.what))?;
        ensure!(!row.what.is_empty() && !row.run.is_empty() && !row.says.is_empty(), "{row:?} is not whole");
        rows.push(row);
    }
    Ok(rows)
}

impl Row {
    /// Whether the output matches. A last line that is just `…` matches everything that follows.
    pub fn is_said(&self, lines: &[&str]) -> bool {
        let (patterns, has_rest) = match self.says.split_last() {
            Some((last, patterns)) if last.chars().eq([ANYTHING]) => (patterns, true),
            _ => (&*self.says, false),
        };
        let fits = lines.len() == patterns.len() || has_rest && lines.len() > patterns.len();
        fits && patterns.iter().zip(lines).all(|(pattern, line)| matches(pattern, line))
    }
}
