//! Sums of all fuzzing in this target folder.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use et_system::files::Whole;
use serde_json::{Map, Value, json};

/// The work of one slice, or of all slices of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Done {
    pub executions: u64,
    /// Seconds of processor time.
    pub processor: f64,
    /// Peak memory, in MB as libFuzzer counts them.
    pub peak: u64,
    /// Edges of the code that the corpus reached at the end.
    pub edges: u64,
    /// What was found, and the path of the input.
    pub found: Option<String>,
}

/// The sums, kept in a file.
#[derive(Debug, Default)]
pub(super) struct Record {
    path: PathBuf,
    sums: Map<String, Value>,
}

impl Record {
    /// Reads the sums of earlier runs.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let sums = match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Ok(Self { path: path.to_owned(), sums })
    }

    /// The sum of a target.
    pub(super) fn of(&self, target: &str) -> Done {
        let sum = self.sums.get(target).unwrap_or(&Value::Null);
        let number = |name: &str| sum[name].as_u64().unwrap_or(0);
        Done {
            executions: number("executions"),
            processor: sum["processor"].as_f64().unwrap_or(0.0),
            peak: number("peak"),
            edges: number("edges"),
            found: None,
        }
    }

    pub(super) fn add(&mut self, target: &str, done: &Done) {
        let sum = self.of(target);
        // An interrupted slice may not have printed it.
        let edges = if done.edges == 0 { sum.edges } else { done.edges };
        self.sums.insert(
            target.to_owned(),
            json!({
                "executions": sum.executions + done.executions,
                "processor": sum.processor + done.processor,
                "peak": sum.peak.max(done.peak),
                "edges": edges,
            }),
        );
    }

    /// Replaces the file atomically.
    pub(super) fn save(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.sums)?;
        let write = || {
            let mut file = Whole::create(&self.path, 0o644, ".record-")?;
            writeln!(file.file(), "{text}")?;
            file.finish()
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// The sums as a table, for the docs.
    pub(super) fn table(&self) -> String {
        let mut text = "| target | executions | processor time, s | peak memory | edges reached |\n\
                        |---|--:|--:|--:|--:|\n"
            .to_owned();
        for name in self.sums.keys() {
            let Done { executions, processor, peak, edges, .. } = self.of(name);
            // Unknown if no turn was completed.
            let edges = if edges == 0 { String::new() } else { in_groups(edges) };
            let executions = in_groups(executions);
            let seconds = in_groups(processor.round() as u64);
            text += &format!("| {name} | {executions} | {seconds} | {peak} MB | {edges} |\n");
        }
        text
    }
}

/// Groups digits: `1,234,567`.
fn in_groups(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_told_as_a_table() {
        let mut record = Record::default();
        let done = Done { executions: 1_000_000, processor: 3599.6, peak: 40, edges: 99, found: None };
        record.add("class", &done);
        record.add("class", &Done { executions: 12, processor: 0.5, peak: 50, edges: 0, found: None });
        let table = record.table();
        assert_eq!(table.lines().last(), Some("| class | 1,000,012 | 3,600 | 50 MB | 99 |"));
    }

    #[test]
    fn digits_stand_in_groups() {
        assert_eq!([0, 999, 1000, 123_456_789].map(in_groups), ["0", "999", "1,000", "123,456,789"]);
    }
}
