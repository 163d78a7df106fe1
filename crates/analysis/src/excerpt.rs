//! Lines of source, as pages show them at sites.

use serde::Serialize;

/// The line of a site, with some lines around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// Path of the file, where it was found.
    pub file: String,
    /// Number of the line.
    pub line: u32,
    /// Number of the first of `lines`.
    pub first: u32,
    /// The line is among them. They have no control characters.
    pub lines: Vec<String>,
}

impl Excerpt {
    /// The line itself, without its indentation.
    pub fn text(&self) -> &str {
        let at = self.line.saturating_sub(self.first) as usize;
        self.lines.get(at).map_or("", |line| line.trim())
    }

    /// The lines with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &str)> {
        (self.first..).zip(self.lines.iter().map(String::as_str))
    }
}
