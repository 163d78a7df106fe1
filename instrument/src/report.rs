//! The closing summary of a command, as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use et_names::releases;
use et_names::units::{self, number};
use et_rewriter::rewrite::HookCounts;
use serde::{Deserialize, Serialize};

/// Everything that a command did.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Absolute path of the output.
    pub output: String,
    /// One per rewritten jar, folder, class or JDK.
    pub artifacts: Vec<ArtifactReport>,
    /// Total size of the input files in bytes.
    pub bytes_in: u64,
    /// Bytes of the files written (hard links do not count).
    pub bytes_out: u64,
    /// Elapsed time in seconds.
    pub seconds: f64,
    /// How to use the output, and what else there is to know.
    pub notes: Vec<String>,
    /// Warnings about what a run will not show although users may expect it. Printed even with `--quiet`.
    pub warnings: Vec<String>,
}

/// Statistics of an artifact.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactReport {
    pub name: String,
    /// Content hash in hexadecimal.
    pub hash: String,
    /// First id of its block.
    pub id_base: u32,
    /// Number of ids in its block.
    pub id_count: u32,
    /// Classes rewritten, those without hooks included.
    pub classes: u64,
    /// Classes that `--include`/`--exclude` left without hooks.
    pub excluded: u64,
    /// Methods with code in the rewritten classes.
    pub methods: u64,
    /// Number of hooks inserted.
    pub hooks: HookCounts,
    /// The newest feature release that classes were compiled for, if it is newer than all tested ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_than_tested: Option<u16>,
    /// Copied unchanged although they look like classes or archives.
    pub skipped: Vec<Skip>,
    /// Not in the output at all: what is neither a file nor a folder.
    pub left_out: Vec<Skip>,
    /// Methods that got fewer hooks than asked for.
    pub shortfalls: Vec<ShortfallReport>,
    /// Signature files that were removed: they signed the original.
    pub signatures_removed: Vec<String>,
    /// Total size of the original class files in bytes.
    pub class_bytes_in: u64,
    /// Bytes of class files written.
    pub class_bytes_out: u64,
}

/// Something that was not rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    /// Entry or file; empty for the artifact as a whole.
    pub entry: String,
    pub reason: String,
}

impl std::fmt::Display for Skip {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.entry.is_empty() {
            return out.write_str(&self.reason);
        }
        write!(out, "{}: {}", self.entry, self.reason)
    }
}

/// A method that went without some hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortfallReport {
    /// `java/lang/String.concat(Ljava/lang/String;)Ljava/lang/String;`
    pub method: String,
    pub hooks: String,
    pub why: String,
}

impl std::fmt::Display for ShortfallReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: no {} ({})", self.method, self.hooks, self.why)
    }
}

/// Maximum number of skipped entries and similar items in the text; JSON lists all.
const LISTED: usize = 10;

impl Report {
    /// Sets the elapsed time.
    pub fn took(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
    }

    /// Notes what `--check` looked at.
    pub fn checked(&mut self, summary: Option<String>) {
        self.notes.extend(summary.map(|summary| format!("checked: {summary}")));
    }

    /// The summary as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let sum = |field: fn(&ArtifactReport) -> u64| self.artifacts.iter().map(field).sum::<u64>();
        let mut hooks = HookCounts::default();
        self.artifacts.iter().for_each(|artifact| hooks += artifact.hooks);

        let _ = writeln!(out, "wrote {}", self.output);
        let classes = sum(|artifact| artifact.classes);
        let _ = write!(out, "  classes    {}", number(classes));
        match sum(|artifact| artifact.excluded) {
            0 => {}
            excluded => _ = write!(out, " ({} of them without hooks, as requested)", number(excluded)),
        }
        match self.artifacts.len() {
            0 | 1 => {}
            count => _ = write!(out, " in {count} artifacts"),
        }
        let _ = writeln!(out, "\n  methods    {}", number(sum(|artifact| artifact.methods)));
        let kinds = hooks.named().filter(|(_, count)| *count > 0);
        let kinds = kinds.map(|(name, count)| format!("{name} {}", number(count))).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "  hooks      {}{}", number(hooks.total()), wrap(&kinds));
        let class_bytes = sum(|artifact| artifact.class_bytes_in);
        let _ = writeln!(
            out,
            "  size       {} in, {} out; classes {} to {}",
            units::bytes(self.bytes_in),
            units::bytes(self.bytes_out),
            units::bytes(class_bytes),
            units::bytes(sum(|artifact| artifact.class_bytes_out))
        );
        let rate = units::bytes((class_bytes as f64 / self.seconds.max(1e-6)) as u64);
        let _ = writeln!(out, "  time       {:.2} s, {rate} of classes/s", self.seconds);

        for list in self.without_hooks().into_iter().chain([self.signatures()]) {
            list.write(&mut out, LISTED);
        }
        for line in self.notes.iter().cloned().chain(self.cautions()) {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// The messages with `--quiet`, one line each: what a run will not show.
    pub fn quiet_text(&self) -> Vec<String> {
        let lists = self.without_hooks();
        lists.iter().filter_map(List::line).chain(self.cautions()).collect()
    }

    /// The warnings, and those about classes of releases that were not tested.
    pub fn cautions(&self) -> impl Iterator<Item = String> {
        let newest = self.artifacts.iter().filter_map(|artifact| artifact.newer_than_tested).max();
        self.warnings.iter().cloned().chain(newest.and_then(releases::caution))
    }

    fn without_hooks(&self) -> [List; 3] {
        let skips = |skips: &[Skip]| skips.iter().map(Skip::to_string).collect();
        [
            self.list(UNCHANGED, |artifact| skips(&artifact.skipped)),
            self.list("left out", |artifact| skips(&artifact.left_out)),
            self.list(FEWER_HOOKS, |artifact| artifact.shortfalls.iter().map(ShortfallReport::to_string).collect()),
        ]
    }

    fn signatures(&self) -> List {
        self.list("signature files removed (they are valid for the original only)", |artifact| {
            artifact.signatures_removed.clone()
        })
    }

    fn list(&self, title: &'static str, lines: impl Fn(&ArtifactReport) -> Vec<String>) -> List {
        let many = self.artifacts.len() > 1;
        let lines = self.artifacts.iter().flat_map(|artifact| {
            let prefix = if many { format!("{}: ", artifact.name) } else { String::new() };
            lines(artifact).into_iter().map(move |line| format!("{prefix}{line}"))
        });
        List { title, lines: lines.collect() }
    }

    /// The summary as a JSON object.
    pub fn json(&self) -> String {
        // Plain structs of numbers and strings always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Heading of lists of skipped entries.
pub(crate) const UNCHANGED: &str = "copied unchanged";
/// And of methods that went without some hooks.
pub(crate) const FEWER_HOOKS: &str = "methods with fewer hooks";

/// A list of messages of one kind.
pub(crate) struct List {
    pub title: &'static str,
    pub lines: Vec<String>,
}

impl List {
    fn write(&self, out: &mut String, most: usize) {
        if self.lines.is_empty() {
            return;
        }
        let _ = writeln!(out, "{} {}:", number(self.lines.len() as u64), self.title);
        for line in self.lines.iter().take(most) {
            let _ = writeln!(out, "  {line}");
        }
        if self.lines.len() > most {
            let more = number((self.lines.len() - most) as u64);
            let _ = writeln!(out, "  … and {more} more; --report json lists all");
        }
    }

    /// A single line with the first message and the number of others; `None` if the list is empty.
    pub fn line(&self) -> Option<String> {
        let (first, rest) = self.lines.split_first()?;
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more", number(rest.len() as u64)) };
        Some(format!("{} {}: {first}{more}", number(self.lines.len() as u64), self.title))
    }
}

fn wrap(kinds: &str) -> String {
    if kinds.is_empty() { String::new() } else { format!(" ({kinds})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_was_skipped_and_json_says_all_of_it() {
        let skip = |index| Skip { entry: format!("a/B{index}.class"), reason: "too short".into() };
        let artifact = ArtifactReport {
            name: "a.jar".into(),
            hooks: HookCounts { entries: 3, sites: 2, ..HookCounts::default() },
            skipped: (0..12).map(skip).collect(),
            ..ArtifactReport::default()
        };
        let report = Report { artifacts: vec![artifact], ..Report::default() };
        let text = report.text();
        assert!(text.contains("hooks      5 (entry 3, new site 2)"), "{text}");
        assert!(text.contains("12 copied unchanged") && text.contains("… and 2 more"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["artifacts"][0]["skipped"].as_array().unwrap().len(), 12);
    }

    #[test]
    fn what_has_no_hooks_is_said_in_any_case() {
        let skip = |entry: &str| Skip { entry: entry.into(), reason: "damaged".into() };
        let artifact = ArtifactReport {
            skipped: vec![skip("A.class"), skip("B.class")],
            left_out: vec![Skip { entry: "fd".into(), reason: "neither a file nor a folder".into() }],
            ..ArtifactReport::default()
        };
        let warnings = vec!["--include x had no effect".to_owned()];
        let report = Report { artifacts: vec![artifact], warnings, ..Report::default() };
        let expected = [
            "2 copied unchanged: A.class: damaged, and 1 more",
            "1 left out: fd: neither a file nor a folder",
            "--include x had no effect",
        ];
        assert_eq!(report.quiet_text(), expected);
        let text = report.text();
        assert!(text.contains("1 left out:\n  fd: neither") && text.contains("--include x"), "{text}");
        assert!(Report { notes: vec!["run with".into()], ..Report::default() }.quiet_text().is_empty());
    }
}
