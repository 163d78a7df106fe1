//! Tables of what survives collections, in traces without deaths.

use et_analysis::report::Page;
use et_analysis::survival::{SurvivalPart, SurvivorLine, WalkLine};

use crate::table::{Cell, Column, Table, numbers, words};

/// Maximum number of walks that are listed.
const WALKS: usize = 100;

pub fn tables(survival: &SurvivalPart) -> Vec<Table> {
    let (all, objects) = survival.judged();
    let survived = survival.survived.iter().map(|line| {
        vec![
            Cell::Ranked(line.text(), line.from.into()),
            Cell::Bytes(line.amount.bytes),
            Cell::share(line.amount.bytes, all),
            Cell::Count(line.amount.objects),
            Cell::share(line.amount.objects, objects),
        ]
    });
    let step = survival.walks.len().div_ceil(WALKS).max(1);
    let walks = survival.walks.iter().rev().step_by(step).map(walk).rev();
    let lines = |lines: &[SurvivorLine]| lines.iter().map(|line| survivors(line, survival)).collect();
    vec![
        table(
            "survived",
            "Collections survived",
            "How many collections objects survived for certain.",
            vec![
                words("Collections"),
                numbers("Bytes", ""),
                numbers("Share", "Of all bytes of which it is known"),
                numbers("Objects", ""),
                numbers("Share of objects", ""),
            ],
            survived.collect(),
        ),
        table(
            "survivors",
            "Survivors by class",
            "Classes of which most bytes survived at least one collection.",
            columns(vec![words("Class")]),
            lines(&survival.classes),
        ),
        table(
            "survivor-sites",
            "Survivors by site",
            "Lines of code that made what survived at least one collection.",
            columns(vec![words("Site"), words("Allocates")]),
            lines(&survival.sites),
        ),
        table(
            "walks",
            "Walks through the heap",
            "When the runtime looked at what was still there.",
            vec![
                numbers("At", "Seconds since the start"),
                numbers("Took", ""),
                numbers("Collections", "Number of collections that were over"),
                numbers("Allocated", "Bytes allocated so far"),
                numbers("Bytes", "What was there"),
                numbers("Objects", ""),
            ],
            walks.collect(),
        ),
    ]
}

fn columns(mut first: Vec<Column>) -> Vec<Column> {
    first.extend([
        numbers("Survived", "Bytes that survived at least one collection"),
        numbers("Share", "Of all that survived one"),
        numbers("Of its own", "Of the bytes that were made there"),
        numbers("Objects", "Objects that survived at least one collection"),
        numbers("In the middle", "Bytes that were there in the middle of the walks"),
        numbers("At the last walk", "Bytes that were there then"),
    ]);
    first
}

fn survivors(line: &SurvivorLine, survival: &SurvivalPart) -> Vec<Cell> {
    let mut row = vec![Cell::Name(line.site.clone().unwrap_or_else(|| line.ty.clone()))];
    row.extend(line.site.is_some().then(|| Cell::Name(line.ty.clone())));
    row.extend([
        Cell::Bytes(line.survived.bytes),
        Cell::share(line.survived.bytes, survival.at_least_one.bytes),
        Cell::share(line.survived.bytes, line.made.bytes),
        Cell::Count(line.survived.objects),
        Cell::Bytes(line.in_the_middle.bytes),
        Cell::Bytes(line.at_the_end.bytes),
    ]);
    row
}

fn walk(walk: &WalkLine) -> Vec<Cell> {
    vec![
        Cell::Seconds(walk.seconds),
        Cell::Seconds(walk.walk_seconds),
        Cell::Count(walk.collections.into()),
        Cell::Bytes(walk.made_bytes),
        Cell::Bytes(walk.alive.bytes),
        Cell::Count(walk.alive.objects),
    ]
}

fn table(
    name: &'static str,
    title: &'static str,
    note: &'static str,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
) -> Table {
    Table { page: Page::Lifetimes.id(), name, title: title.into(), note: note.into(), columns, rows }
}
