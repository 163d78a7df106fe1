//! Tables of monitor contention and waits.

use et_analysis::contention::{Contention, Stops, Times};
use et_analysis::report::Page;

use crate::table::{Cell, Column, Table, numbers, words};

pub fn tables(contention: &Contention) -> Vec<Table> {
    let classes = contention.classes.iter().map(|line| row(&[&line.class], line.times));
    let sites = contention.sites.iter().map(|line| row(&[&line.site, &line.class], line.times));
    let threads = contention.threads.iter().map(|line| {
        let mut row = row(&[&line.name], line.times);
        row.push(Cell::Seconds(line.held_up.seconds));
        row
    });
    let mut of_threads = columns(&["Thread"]);
    of_threads.push(numbers("Held up", "How long others waited for monitors that it held"));
    let owners = contention.owners.iter().map(|line| {
        let mut row = names(&[&line.class, &line.owner, &line.waiter]);
        row.extend(stops(line.contended));
        row
    });
    let of_owners = ["Class", "Held by", "Wanted by"].map(words).into_iter().chain(LATE);
    let longest = contention.longest.iter().map(|line| {
        let what = match (&line.owner, line.is_wait) {
            (_, true) => "wait".to_owned(),
            (Some(owner), false) => format!("held by {owner}"),
            (None, false) => "held by an unknown thread".to_owned(),
        };
        let open = if line.is_open { "unfinished at the end" } else { "" };
        vec![
            Cell::Name(line.thread.clone()),
            Cell::Name(format!("{}@{:x}", line.class, line.object)),
            Cell::Name(line.site.clone()),
            Cell::Text(what),
            Cell::Seconds(line.seconds),
            Cell::Seconds(line.begin),
            Cell::Text(open.into()),
        ]
    });
    let of_longest = vec![
        words("Thread"),
        words("Monitor"),
        words("Site"),
        words("What"),
        numbers("Time", ""),
        numbers("At", "Seconds since the start"),
        words("State"),
    ];
    let note = contention.line() + ".";
    vec![
        table("monitors", "Monitors by class", note, columns(&["Class"]), classes.collect()),
        table(
            "monitor-sites",
            "Monitors by site",
            "Where threads waited to enter monitors that others held, and where they called wait.".into(),
            columns(&["Site", "Class"]),
            sites.collect(),
        ),
        table(
            "monitor-threads",
            "Monitors by thread",
            "Threads that had to wait, and threads that made others wait.".into(),
            of_threads,
            threads.collect(),
        ),
        table(
            "monitor-owners",
            "Monitor owners",
            "Threads that held monitors that others waited to enter. An owner that left before it could be identified is unknown."
                .into(),
            of_owners.collect(),
            owners.collect(),
        ),
        table(
            "monitor-longest",
            "Longest at monitors",
            "The longest times spent waiting to enter monitors, then the longest calls of wait.".into(),
            of_longest,
            longest.collect(),
        ),
    ]
}

const LATE: [Column; 3] = [
    Column { title: "Late", help: "How often another thread held the monitor", is_number: true },
    Column { title: "In all", help: "Total time of these", is_number: true },
    Column { title: "Longest", help: "", is_number: true },
];

fn columns(first: &[&'static str]) -> Vec<Column> {
    let waits = [numbers("Waits", "Calls of wait"), numbers("Waited", "Their total time")];
    first.iter().copied().map(words).chain(LATE).chain(waits).collect()
}

fn names(names: &[&String]) -> Vec<Cell> {
    names.iter().map(|name| Cell::Name((*name).clone())).collect()
}

fn stops(stops: Stops) -> [Cell; 3] {
    [Cell::Count(stops.count), Cell::Seconds(stops.seconds), Cell::Seconds(stops.longest)]
}

fn row(first: &[&String], times: Times) -> Vec<Cell> {
    let mut row = names(first);
    row.extend(stops(times.contended));
    row.extend([Cell::Count(times.waits.count), Cell::Seconds(times.waits.seconds)]);
    row
}

fn table(name: &'static str, title: &str, note: String, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
    Table { page: Page::Threads.id(), name, title: title.into(), note, columns, rows }
}
