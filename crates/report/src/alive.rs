//! Tables of what was alive at a moment. The page computes the same in its script for any moment that is selected
//! there.

use et_analysis::report::{Page, Report, Series};

use crate::table::{Cell, Table, numbers, words};

/// Classes, sites and contexts of what was alive at the moment with that number; empty if deaths are unknown.
pub fn alive_at(report: &Report, moment: usize) -> Vec<Table> {
    let Some(alive) = &report.alive else { return Vec::new() };
    let Some(at) = alive.moments.get(moment) else { return Vec::new() };
    let whole = alive.bytes.get(moment).copied().unwrap_or_default();
    let note = format!("At tick {}, when {} bytes had been allocated.", at.tick, at.bytes);
    let table = |name, title: &str, first, second: Option<&'static str>, lines: &[Series]| {
        let mut columns = vec![words(first)];
        columns.extend(second.map(words));
        columns.extend([numbers("Bytes", ""), numbers("Share", "Of all bytes alive then"), numbers("Objects", "")]);
        let mut shown: Vec<(&Series, u64, u64)> = lines
            .iter()
            .filter_map(|line| Some((line, *line.bytes.get(moment)?, *line.objects.get(moment)?)))
            .filter(|(_, _, objects)| *objects > 0)
            .collect();
        shown.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
        let row = |(line, bytes, objects): (&Series, u64, u64)| {
            let mut row = vec![Cell::Name(line.name.clone())];
            row.extend(second.map(|_| Cell::Name(line.detail.clone())));
            row.extend([Cell::Bytes(bytes), Cell::share(bytes, whole), Cell::Count(objects)]);
            row
        };
        Table {
            page: Page::Alive.id(),
            name,
            title: title.to_owned(),
            note: note.clone(),
            columns,
            rows: shown.into_iter().map(row).collect(),
        }
    };
    vec![
        table("classes", "Classes alive then", "Class", None, &alive.classes),
        table("sites", "Sites alive then", "Site", Some("Allocates"), &alive.sites),
        table("contexts", "Contexts alive then", "Class", Some("Made in"), &alive.contexts),
    ]
}
