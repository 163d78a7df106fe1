//! The report of `verify`.

use std::fmt;

use et_names::units::{self, counted};
use serde::Serialize;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Jar, image, folder or class file, as given or as found below it.
    pub place: String,
    /// Entry in it; nested jars with `!/`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// `name(descriptor)` of the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Offset in the method's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// Description of the problem.
    pub what: String,
}

/// Findings of an artifact that are listed for people.
pub const LISTED: usize = 20;

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.place)?;
        if !self.entry.is_empty() {
            write!(out, "{}: ", self.entry)?;
        }
        if let Some(method) = &self.method {
            write!(out, "{method}: ")?;
        }
        if let Some(offset) = self.offset {
            write!(out, "offset {offset}: ")?;
        }
        // Names in messages come from the input, and may hold anything.
        one_line(out, &self.what)
    }
}

fn one_line(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|character| match character {
        control if control.is_control() => write!(out, "{}", control.escape_default()),
        other => write!(out, "{other}"),
    })
}

/// What was verified, and the result.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Jars, folders, class files, images.
    pub artifacts: u64,
    /// Number of classes checked.
    pub classes: u64,
    /// Number of their methods.
    pub methods: u64,
    /// Their total size in bytes.
    pub class_bytes: u64,
    /// Classes that carry no mark of the rewriter; checked only if asked for.
    pub unmarked: u64,
    /// Classes that `cafebabe` refuses although they are legal.
    pub known_refusals: u64,
    /// Number of entries with verified checksums.
    pub entries: u64,
    /// Elapsed time in seconds.
    pub seconds: f64,
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// The findings as text, one line each: only a few for each artifact, since the same problem may be in all of its
    /// classes.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for of_one in self.findings.chunk_by(|one, next| one.place == next.place) {
            lines.extend(of_one.iter().take(LISTED).map(Finding::to_string));
            if of_one.len() > LISTED {
                let more = counted((of_one.len() - LISTED) as u64, "finding");
                lines.push(format!("{}: … and {more} more; --report json lists all", of_one[0].place));
            }
        }
        lines
    }

    /// The closing line for people.
    pub fn summary(&self) -> String {
        let mut out = match self.findings.len() as u64 {
            0 => "no findings".to_owned(),
            count => counted(count, "finding"),
        };
        out.push_str(&format!(
            " in {} ({}, {}) of {}, {:.2} s",
            counted(self.classes, "class"),
            counted(self.methods, "method"),
            units::bytes(self.class_bytes),
            counted(self.artifacts, "artifact"),
            self.seconds
        ));
        if self.unmarked > 0 {
            out.push_str(&format!("; {} not instrumented, left alone", counted(self.unmarked, "class")));
        }
        out
    }

    /// The report as a JSON object.
    pub fn json(&self) -> String {
        // Plain structs of numbers and strings always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_in_many_classes_does_not_hide_the_others() {
        let finding = |place: &str, entry: String| Finding {
            place: place.into(),
            entry,
            method: None,
            offset: None,
            what: "cut off".into(),
        };
        let many = (0..1234 + LISTED).map(|number| finding("a.jar", format!("C{number}.class")));
        let findings = many.chain([finding("b.jar", "D.class".into())]).collect();
        let lines = Verdict { findings, ..Verdict::default() }.lines();
        assert_eq!(lines.len(), LISTED + 2);
        assert_eq!(lines[LISTED], "a.jar: … and 1,234 findings more; --report json lists all");
        assert_eq!(lines[LISTED + 1], "b.jar: D.class: cut off");
    }
}
