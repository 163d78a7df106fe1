//! The tables of a report, for pages and text.

use et_analysis::Excerpt;
use et_analysis::diff::{more, more_bytes};
use et_names::units::{bytes, number, seconds};

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name from the program.
    Name(String),
    Text(String),
    /// A number of bytes.
    Bytes(u64),
    /// A number of items.
    Count(u64),
    /// A fraction from 0 to 1; `None` if the whole is 0.
    Share(Option<f64>),
    /// A time in seconds.
    Seconds(f64),
    Mean(f64),
    /// A change in bytes.
    MoreBytes(i64),
    /// A change in the number of items.
    More(i64),
    /// Text with a number by which it is sorted.
    Ranked(String, f64),
    /// Values over time, drawn as a chart.
    Course(Vec<u64>),
    /// A line of source with those around it.
    Source(Excerpt),
    /// Unknown or missing.
    Nothing,
}

impl Cell {
    /// The fraction `part` / `whole`.
    pub fn share(part: u64, whole: u64) -> Self {
        Self::Share((whole > 0).then(|| part as f64 / whole as f64))
    }

    /// Formats the value for display.
    pub fn text(&self) -> String {
        match self {
            Self::Name(text) | Self::Text(text) | Self::Ranked(text, _) => text.clone(),
            Self::Bytes(count) => bytes(*count),
            Self::Count(count) => number(*count),
            Self::Share(Some(share)) => format!("{:.1} %", share * 100.0),
            Self::Seconds(value) => seconds(*value),
            Self::Mean(value) => format!("{value:.1}"),
            Self::MoreBytes(by) => more_bytes(*by),
            Self::More(by) => more(*by),
            Self::Source(excerpt) => excerpt.text().to_owned(),
            Self::Share(None) | Self::Course(_) | Self::Nothing => String::new(),
        }
    }

    /// The number by which rows are sorted; `None`: by the text.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Bytes(count) | Self::Count(count) => Some(*count as f64),
            Self::Share(share) => Some(share.unwrap_or(-1.0)),
            Self::Seconds(value) | Self::Mean(value) => Some(*value),
            Self::MoreBytes(by) | Self::More(by) => Some(*by as f64),
            Self::Ranked(_, rank) => Some(*rank),
            Self::Course(values) => values.last().map(|last| *last as f64),
            Self::Name(_) | Self::Text(_) | Self::Source(_) | Self::Nothing => None,
        }
    }
}

/// A column with its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub title: &'static str,
    /// Explanation; empty if the heading is enough.
    pub help: &'static str,
    /// Whether it contains numbers.
    pub is_number: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the page that it is on.
    pub page: &'static str,
    /// Name of the table, unique on the page.
    pub name: &'static str,
    pub title: String,
    /// What it shows, and where the data comes from.
    pub note: String,
    pub columns: Vec<Column>,
    /// Rows; the first cell is the subject.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Identifier in commands and links: `lifetimes/classes`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.page, self.name)
    }

    /// Text by which a row is found.
    pub fn key(row: &[Cell]) -> String {
        row.first().map(Cell::text).unwrap_or_default()
    }

    /// Keeps only the rows that contain the text.
    #[must_use]
    pub fn matching(mut self, text: &str) -> Self {
        self.rows.retain(|row| row.iter().any(|cell| cell.text().contains(text)));
        self
    }

    /// Renders the table as text, in columns.
    pub fn render(&self) -> String {
        let titles = self.columns.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>();
        let shown: Vec<usize> = (0..titles.len())
            .filter(|&at| !self.rows.iter().any(|row| matches!(row.get(at), Some(Cell::Course(_)))))
            .collect();
        let lines: Vec<Vec<String>> = std::iter::once(titles)
            .chain(self.rows.iter().map(|row| row.iter().map(Cell::text).collect()))
            .map(|line: Vec<String>| shown.iter().map(|&at| line.get(at).cloned().unwrap_or_default()).collect())
            .collect();
        let widths: Vec<usize> =
            (0..shown.len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
        let mut text = format!("{} ({})\n", self.title, self.id());
        if self.rows.is_empty() {
            text += "nothing\n";
            return text;
        }
        // Columns of numbers first; then names, which may be long.
        let (numbers, names): (Vec<usize>, Vec<usize>) =
            (0..shown.len()).partition(|&at| self.columns[shown[at]].is_number);
        for line in &lines {
            let numbers = numbers.iter().map(|&at| format!("{:>width$}", line[at], width = widths[at]));
            let names = names.iter().map(|&at| line[at].clone()).filter(|name| !name.is_empty());
            text += numbers.chain(names).collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
        text
    }
}

/// Creates a column of names or text.
pub(crate) fn words(title: &'static str) -> Column {
    Column { title, help: "", is_number: false }
}

/// Creates a column of numbers.
pub(crate) fn numbers(title: &'static str, help: &'static str) -> Column {
    Column { title, help, is_number: true }
}
