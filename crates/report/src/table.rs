//! The tables of a report, as pages and texts show them.

use et_analysis::diff::{more, more_bytes};
use et_names::units::{bytes, number, seconds};

/// What is in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name out of the program.
    Name(String),
    /// Words.
    Text(String),
    /// A size.
    Bytes(u64),
    /// A number of things.
    Count(u64),
    /// 0 to 1; `None`: of nothing.
    Share(Option<f64>),
    /// A time.
    Seconds(f64),
    /// A mean.
    Mean(f64),
    /// So many bytes more, or less.
    MoreBytes(i64),
    /// So many more, or less.
    More(i64),
    /// Words with a number by which they are sorted.
    Ranked(String, f64),
    /// Values over time, drawn.
    Course(Vec<u64>),
    /// Not known, or not there.
    Nothing,
}

impl Cell {
    /// Part of a whole.
    pub fn share(part: u64, whole: u64) -> Self {
        Self::Share((whole > 0).then(|| part as f64 / whole as f64))
    }

    /// As people read it.
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
            Self::Share(None) | Self::Course(_) | Self::Nothing => String::new(),
        }
    }

    /// By which rows are sorted; `None`: by its text.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Bytes(count) | Self::Count(count) => Some(*count as f64),
            Self::Share(share) => Some(share.unwrap_or(-1.0)),
            Self::Seconds(value) | Self::Mean(value) => Some(*value),
            Self::MoreBytes(by) | Self::More(by) => Some(*by as f64),
            Self::Ranked(_, rank) => Some(*rank),
            Self::Course(values) => values.last().map(|last| *last as f64),
            Self::Name(_) | Self::Text(_) | Self::Nothing => None,
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// What it means, if the heading does not say it all.
    pub help: &'static str,
    /// Whether it is of numbers.
    pub is_number: bool,
}

/// Rows of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The page that it is on.
    pub page: &'static str,
    /// What it is called there.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// What it shows, and how that is known.
    pub note: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows; the first cell is what a row is about.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// How commands and links call it: `lifetimes/classes`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.page, self.name)
    }

    /// What a row is found by.
    pub fn key(row: &[Cell]) -> String {
        row.first().map(Cell::text).unwrap_or_default()
    }

    /// Only the rows in which that stands.
    #[must_use]
    pub fn matching(mut self, text: &str) -> Self {
        self.rows.retain(|row| row.iter().any(|cell| cell.text().contains(text)));
        self
    }

    /// As text, in columns.
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
        // Numbers first, in columns; then names, which may be long.
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

/// A column of names or words.
pub(crate) fn words(title: &'static str) -> Column {
    Column { title, help: "", is_number: false }
}

/// A column of numbers.
pub(crate) fn numbers(title: &'static str, help: &'static str) -> Column {
    Column { title, help, is_number: true }
}
