//! All tables of a report.

mod methods;
mod monitors;
mod survival;

use et_analysis::heap::ClassLine;
use et_analysis::report::{Held, LifeLine, Page, Report, Retained, RetainedLine, RootLine};
use et_analysis::summary::{Amount, Origin};
use et_names::units::number;

use crate::table::{Cell, Column, Table, numbers, words};

/// The tables that have content in this report.
pub fn tables(report: &Report) -> Vec<Table> {
    let mut tables = vec![classes(report), sites(report), packages(report)];
    // Without callers each site would be a method of its own.
    tables.extend(report.has_contexts.then(|| methods::methods(report)));
    if report.has_deaths {
        tables.extend(report.retained_at_peak.iter().map(|retained| holders(retained, AT_PEAK, "at the peak")));
        tables.extend(report.retained.iter().map(|retained| holders(retained, AT_END, "at the end")));
        tables.extend(report.retained.iter().flat_map(|end| [by_root(report, end), retained_by_class(end)]));
        tables.extend([at_end(report), lives(report, true), lives(report, false)]);
        tables.extend([holding(report), growing(report), ways(report), arrays(report), collections(report)]);
        tables.push(exceptions(report));
    }
    if let Some(survival) = report.summary.survival.as_ref().filter(|_| !report.has_deaths) {
        tables.extend(survival::tables(survival));
    }
    tables.extend([threads(report), gcs(report)]);
    if let Some(contention) = &report.summary.contention {
        tables.extend(monitors::tables(contention));
    }
    tables
}

fn whose(origin: Option<Origin>) -> Cell {
    Cell::Text(
        match origin {
            Some(Origin::Program) => "program",
            Some(Origin::Library) => "library",
            Some(Origin::Jdk) => "JDK",
            None => "",
        }
        .into(),
    )
}

/// Live objects at the end, including initial objects.
fn live_at_the_end(report: &Report) -> u64 {
    report.alive.as_ref().and_then(|alive| alive.bytes.last().copied()).unwrap_or(0)
}

const ALIVE: Column = Column { title: "Alive", help: "Bytes alive at the end", is_number: true };

fn classes(report: &Report) -> Table {
    let whole = report.summary.allocated.bytes;
    let mut columns =
        vec![words("Class"), numbers("Bytes", ""), numbers("Share", "Of all bytes allocated"), numbers("Objects", "")];
    if report.has_deaths {
        columns.extend([ALIVE, numbers("Dead in 1 MiB", "Objects that died before another MiB was allocated")]);
    }
    Table {
        page: Page::Allocation.id(),
        name: "classes",
        title: "Classes".into(),
        note: "Classes whose objects take the most bytes.".into(),
        columns,
        rows: report.lifetimes.classes.iter().map(|line| allocated(line, whole, report.has_deaths, None)).collect(),
    }
}

fn sites(report: &Report) -> Table {
    let whole = report.summary.allocated.bytes;
    let mut columns = vec![
        words("Site"),
        words("Allocates"),
        words("Whose"),
        numbers("Bytes", ""),
        numbers("Share", "Of all bytes allocated"),
        numbers("Objects", ""),
    ];
    if report.has_deaths {
        columns.extend([ALIVE, numbers("Dead in 1 MiB", "Objects that died before another MiB was allocated")]);
    }
    let rows = report.lifetimes.sites.iter();
    Table {
        page: Page::Allocation.id(),
        name: "sites",
        title: "Sites".into(),
        note: "Lines of code that allocate. A site of the JDK also shows the method outside it that caused most of its allocations."
            .into(),
        columns,
        rows: rows.map(|line| allocated(line, whole, report.has_deaths, Some(line.origin))).collect(),
    }
}

fn allocated(line: &LifeLine, whole: u64, has_deaths: bool, site: Option<Option<Origin>>) -> Vec<Cell> {
    let mut row = vec![Cell::Name(line.name.clone())];
    if let Some(origin) = site {
        row.extend([Cell::Name(line.detail.clone()), whose(origin)]);
    }
    row.extend([Cell::Bytes(line.made.bytes), Cell::share(line.made.bytes, whole), Cell::Count(line.made.objects)]);
    if has_deaths {
        let young = line.young.get(1).map_or(0, |young| young.objects);
        row.extend([Cell::Bytes(line.alive.bytes), Cell::share(young, line.made.objects)]);
    }
    row
}

fn packages(report: &Report) -> Table {
    let whole = report.summary.allocated.bytes;
    let mut packages: Vec<_> = report.summary.packages.iter().collect();
    packages.sort_by_key(|line| std::cmp::Reverse(line.amount.bytes));
    let row = |line: &et_analysis::summary::PackageLine| {
        vec![
            Cell::Name(line.package.clone()),
            whose(Some(line.origin)),
            Cell::Bytes(line.amount.bytes),
            Cell::share(line.amount.bytes, whole),
            Cell::Count(line.amount.objects),
        ]
    };
    Table {
        page: Page::Allocation.id(),
        name: "packages",
        title: "Packages".into(),
        note: "Whose code caused allocations: what the JDK allocates for a method outside it counts for the package of that method.".into(),
        columns: vec![words("Package"), words("Whose"), numbers("Bytes", ""), numbers("Share", "Of all bytes allocated"), numbers("Objects", "")],
        rows: packages.into_iter().map(row).collect(),
    }
}

fn at_end(report: &Report) -> Table {
    let live = live_at_the_end(report);
    let mut lines: Vec<&LifeLine> = report.lifetimes.classes.iter().filter(|line| line.alive.objects > 0).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.alive.bytes));
    let row = |line: &LifeLine| {
        vec![
            Cell::Name(line.name.clone()),
            Cell::Bytes(line.alive.bytes),
            Cell::share(line.alive.bytes, live),
            Cell::Count(line.alive.objects),
            Cell::share(line.alive.objects, line.made.objects),
            Cell::share(line.stale.bytes, line.alive.bytes),
        ]
    };
    Table {
        page: Page::Alive.id(),
        name: "end",
        title: "Alive at the end".into(),
        note:
            "Objects made while tracing was on that are alive when the trace ends; shares are of all bytes alive then."
                .into(),
        columns: vec![
            words("Class"),
            numbers("Bytes", ""),
            numbers("Share", "Of all bytes alive at the end"),
            numbers("Objects", ""),
            numbers("Survived", "Share of all its objects that are alive at the end"),
            numbers("Idle", "Share of these bytes that was not used in the second half of the run"),
        ],
        rows: lines.into_iter().map(row).collect(),
    }
}

const RETAINS: Column =
    Column { title: "Retains", help: "Bytes that would be freed with it, including its own", is_number: true };

/// Names of the tables of what holds the heap.
pub(crate) const AT_END: &str = "end";
pub(crate) const AT_PEAK: &str = "peak";

fn holders(retained: &Retained, name: &'static str, when: &str) -> Table {
    let row = |line: &RetainedLine| {
        let indent = "· ".repeat(line.level as usize);
        let share = Cell::share(line.retained, retained.bytes);
        if line.object.is_none() {
            let text = format!("{indent}{} {}", number(line.objects), others(line));
            let class = if line.class.is_empty() { Cell::Nothing } else { Cell::Name(line.class.clone()) };
            let nothing = || Cell::Nothing;
            return vec![
                Cell::Name(text),
                class,
                nothing(),
                Cell::Bytes(line.retained),
                share,
                nothing(),
                nothing(),
                nothing(),
            ];
        }
        vec![
            Cell::Name(format!("{indent}{}", line.holder)),
            Cell::Name(line.class.clone()),
            line.site.clone().map_or(Cell::Nothing, Cell::Name),
            Cell::Bytes(line.retained),
            share,
            Cell::Bytes(line.bytes),
            Cell::Count(line.dominates),
            line.object.clone().map_or(Cell::Nothing, Cell::Text),
        ]
    };
    Table {
        page: Page::Holders.id(),
        name,
        title: format!("What holds the heap {when}"),
        note: "Objects that no other object dominates, each followed by the largest objects that it dominates, indented by a dot per level; the \
               others of a level, each below 0.5 % of the heap, are together, by class where that is more. The path to an object shows fields outside the JDK only."
            .into(),
        columns: vec![
            words("Held by"),
            words("Class"),
            words("Made in"),
            RETAINS,
            numbers("Share", "Of all bytes alive then"),
            numbers("Itself", "Its own bytes"),
            numbers("Dominates", "Objects that it dominates immediately"),
            words("Object"),
        ],
        rows: retained.objects.iter().map(row).collect(),
    }
}

/// What several small objects of a tree are called, without their number.
pub(crate) fn others(line: &RetainedLine) -> &'static str {
    match (line.class.is_empty(), line.objects) {
        (false, _) => "of one class",
        (true, 1) => "other",
        (true, _) => "others",
    }
}

fn by_root(report: &Report, end: &Retained) -> Table {
    let peak = report.retained_at_peak.as_ref().unwrap_or(end);
    let row = |line: &RootLine| {
        vec![
            Cell::Name(line.root.clone()),
            Cell::Bytes(line.retained),
            Cell::share(line.retained, end.bytes),
            Cell::Bytes(line.at_peak),
            Cell::share(line.at_peak, peak.bytes),
            Cell::Count(line.objects),
        ]
    };
    Table {
        page: Page::Holders.id(),
        name: "roots",
        title: "By root".into(),
        note: "Static fields, threads, running methods and the VM, with what would be freed without them. \"And others\": other roots, or objects \
               that they hold, lead there as well, and it would stay. A running method has only what nothing else holds."
            .into(),
        columns: vec![
            words("Held by"),
            numbers("At the end", "Bytes that would be freed without it at the end"),
            numbers("Share", "Of all bytes alive at the end"),
            numbers("At the peak", "The same when most was alive"),
            numbers("Share then", "Of all bytes alive at the peak"),
            numbers("Objects", "Objects that it holds at the end, without what these retain"),
        ],
        rows: report.roots.iter().map(row).collect(),
    }
}

fn retained_by_class(retained: &Retained) -> Table {
    let row = |line: &ClassLine| {
        vec![
            Cell::Name(line.class.clone()),
            Cell::Bytes(line.retained_bytes),
            Cell::share(line.retained_bytes, retained.bytes),
            Cell::Bytes(line.bytes),
            Cell::Count(line.objects),
        ]
    };
    Table {
        page: Page::Holders.id(),
        name: "classes",
        title: "Classes by what their objects retain at the end".into(),
        note: "What would be freed with the objects of a class, at least; nothing is counted twice.".into(),
        columns: vec![
            words("Class"),
            RETAINS,
            numbers("Share", "Of all bytes alive at the end"),
            numbers("Themselves", "Their own bytes"),
            numbers("Objects", ""),
        ],
        rows: retained.classes.iter().map(row).collect(),
    }
}

fn lives(report: &Report, of_classes: bool) -> Table {
    let (name, title) = if of_classes { ("classes", "Classes") } else { ("sites", "Sites") };
    let lines = if of_classes { &report.lifetimes.classes } else { &report.lifetimes.sites };
    let mut columns = vec![words(if of_classes { "Class" } else { "Site" })];
    if !of_classes {
        columns.push(words("Allocates"));
    }
    columns.extend([
        numbers("Bytes", "Bytes allocated"),
        numbers("Objects", ""),
        numbers("Mean age", "Bytes that the program allocated between birth and death, on average"),
    ]);
    if report.has_uses {
        columns.push(numbers(
            "Drag",
            "For objects that died: share of their time in memory after the last use, weighted by size",
        ));
    }
    if report.has_uses && report.has_contexts {
        columns.push(numbers("Stack", "Objects that died in the method that allocated them and were not seen by another thread: they could live on the stack"));
    }
    if report.has_uses {
        columns.extend([
            numbers("One thread", "Objects that only the allocating thread saw"),
            numbers(
                "Not used",
                "Objects on which no method was called after construction; arrays are judged only with --witness refs",
            ),
        ]);
    }
    let row = |line: &LifeLine| {
        let part = |part: Amount, whole: Amount| Cell::share(part.objects, whole.objects);
        let mut row = vec![Cell::Name(line.name.clone())];
        if !of_classes {
            row.push(Cell::Name(line.detail.clone()));
        }
        row.extend([
            Cell::Bytes(line.made.bytes),
            Cell::Count(line.made.objects),
            match line.alive.objects < line.made.objects {
                true => Cell::Bytes(line.mean_age_bytes as u64),
                false => Cell::Text("none died".into()),
            },
        ]);
        if report.has_uses {
            row.push(Cell::Share((line.alive.objects < line.made.objects).then_some(line.drag_share)));
        }
        if report.has_uses && report.has_contexts {
            row.push(part(line.on_stack, line.with_thread));
        }
        if report.has_uses {
            row.extend([part(line.in_thread, line.with_thread), part(line.unused, line.usable)]);
        }
        row
    };
    Table {
        page: Page::Lifetimes.id(),
        name,
        title: title.into(),
        note: "Shares are of the objects of the row. Choose a row to see the age of its objects at death.".into(),
        columns,
        rows: lines.iter().map(row).collect(),
    }
}

fn holding(report: &Report) -> Table {
    let live = live_at_the_end(report);
    let rows = report.suspects.holdings.iter().map(|holding| {
        let at = |index: usize| holding.course.get(index).copied().unwrap_or(0);
        let held = holding.held.as_ref();
        let name = |of: fn(&Held) -> String| held.map_or(Cell::Nothing, |held| Cell::Name(of(held)));
        vec![
            Cell::Name(holding.ways.join(" and ")),
            Cell::Bytes(at(3)),
            Cell::share(at(3), live),
            Cell::Bytes(at(0)),
            Cell::Bytes(at(1)),
            Cell::Bytes(at(2)),
            Cell::Bytes(holding.at_peak),
            held.map_or(Cell::Nothing, |held| Cell::Count(held.objects)),
            name(|held| held.class.clone()),
            name(|held| match &held.caller {
                Some(caller) => format!("{} for {caller}", held.site),
                None => held.site.clone(),
            }),
        ]
    });
    Table {
        page: Page::Suspects.id(),
        name: "holding",
        title: "What keeps growing".into(),
        note: "Objects that retain at least 2 % of the heap more at the end than in the middle of the run, and that grew in each part of \
               its second half, at no less than a third of the mean pace. What one of them holds does not count for another. \
               Where several objects hold what grew, all of them are listed."
            .into(),
        columns: vec![
            words("Held by"),
            numbers("Holds", "Bytes that would be freed with it at the end"),
            numbers("Share", "Of all bytes alive at the end"),
            numbers("Middle", "What it held in the middle of the run"),
            numbers("At 75 %", "What it held at three quarters of the run"),
            numbers("At 87.5 %", "What it held at seven eighths of the run"),
            numbers("At the peak", "What it held when most was alive"),
            numbers("Objects", "Of the class with most of the growth"),
            words("Of class"),
            words("Made in"),
        ],
        rows: rows.collect(),
    }
}

fn growing(report: &Report) -> Table {
    let live = live_at_the_end(report);
    let rows = report.suspects.growing.iter().map(|growth| {
        let held = growth.stored_in.iter().map(|holder| holder.field.clone()).collect::<Vec<_>>().join(", ");
        vec![
            Cell::Name(growth.site.clone()),
            Cell::Name(growth.class.clone()),
            Cell::Course(growth.bytes.clone()),
            Cell::Bytes(growth.middle.bytes),
            Cell::Bytes(growth.end.bytes),
            Cell::share(growth.end.bytes, live),
            Cell::share(growth.end.objects, growth.made.objects),
            Cell::Text(if growth.still_grows { "yes" } else { "" }.into()),
            Cell::Name(held),
            Cell::Name(growth.context.iter().take(8).cloned().collect::<Vec<_>>().join(" ← ")),
        ]
    });
    Table {
        page: Page::Suspects.id(),
        name: "growing",
        title: "Sites with more alive at the end".into(),
        note: "Sites with at least a fifth more alive at the end than in the middle of the run. \"Still grows\": live bytes grew in each part \
               of the second half, to the end. \"Last stored in\": the fields that most of their bytes were stored into last."
            .into(),
        columns: vec![
            words("Site"),
            words("Allocates"),
            numbers("Course", "Live bytes from start to end"),
            numbers("Middle", "Live bytes in the middle of the run"),
            numbers("End", "Live bytes at the end"),
            numbers("Share", "Of all bytes alive at the end"),
            numbers("Survived", "Share of all its objects that are alive at the end"),
            words("Still grows"),
            words("Last stored in"),
            words("Made in"),
        ],
        rows: rows.collect(),
    }
}

fn ways(report: &Report) -> Table {
    let rows = report.suspects.growing.iter().flat_map(|growth| {
        growth.ways.iter().map(|way| {
            vec![
                Cell::Name(growth.site.clone()),
                Cell::Name(growth.class.clone()),
                Cell::Count(way.objects),
                Cell::Name(way.text()),
            ]
        })
    });
    Table {
        page: Page::Suspects.id(),
        name: "ways",
        title: "What holds them at the end".into(),
        note: "The shortest paths from static fields, running methods and threads to objects of the first eight sites that still grow, \
               at most 10,000 objects of each."
            .into(),
        columns: vec![
            words("Site"),
            words("Allocates"),
            numbers("Objects", "Objects held through this path"),
            words("Held by"),
        ],
        rows: rows.collect(),
    }
}

fn arrays(report: &Report) -> Table {
    let rows = report.suspects.arrays.iter().map(|line| {
        vec![
            Cell::Name(line.owner.clone()),
            Cell::Name(line.class.clone()),
            Cell::Count(line.fill.arrays.objects),
            Cell::Bytes(line.fill.arrays.bytes),
            Cell::share(line.fill.filled, line.fill.slots),
            Cell::Count(line.fill.empty),
            Cell::Count(line.fill.sparse),
            Cell::Bytes(line.fill.wasted_bytes),
        ]
    });
    Table {
        page: Page::Suspects.id(),
        name: "arrays",
        title: "Arrays never filled".into(),
        note: "A heuristic for unused capacity: arrays of references, by the field that held them last (or else by site), with the maximum of elements that were not null at once. Arrays that existed when tracing began are not counted."
            .into(),
        columns: vec![
            words("Field or site"),
            words("Class"),
            numbers("Arrays", ""),
            numbers("Bytes", ""),
            numbers("Filled", "Elements that were not null at once, of all"),
            numbers("Empty", "Arrays that never held anything"),
            numbers("Sparse", "Arrays never filled by more than a quarter"),
            numbers("Unfilled", "Bytes of elements that were never filled"),
        ],
        rows: rows.collect(),
    }
}

fn collections(report: &Report) -> Table {
    let rows = report.suspects.collections.iter().map(|line| {
        vec![
            Cell::Name(line.class.clone()),
            Cell::Count(line.without.objects),
            Cell::share(line.without.objects, line.made.objects),
            Cell::Bytes(line.without.bytes),
            Cell::Count(line.made.objects),
        ]
    });
    Table {
        page: Page::Suspects.id(),
        name: "collections",
        title: "Collections never filled".into(),
        note: "A heuristic: classes of the program, of libraries and of java.util with an array field, where some objects had an array with elements and others never did."
            .into(),
        columns: vec![
            words("Class"),
            numbers("Without", "Objects that never had such an array"),
            numbers("Share", "Of all its objects"),
            numbers("Bytes", "Their own bytes"),
            numbers("Objects", ""),
        ],
        rows: rows.collect(),
    }
}

fn exceptions(report: &Report) -> Table {
    let rows = report.suspects.exceptions.iter().map(|line| {
        vec![
            Cell::Name(line.class.clone()),
            Cell::Name(line.thrown_in.clone()),
            line.caught_in.clone().map_or(Cell::Text("unknown".into()), Cell::Name),
            Cell::Count(line.count),
            Cell::Mean(line.frames),
            Cell::Text(if line.is_control_flow { "looks so" } else { "" }.into()),
        ]
    });
    Table {
        page: Page::Suspects.id(),
        name: "exceptions",
        title: "Exceptions".into(),
        note: "From where they are thrown to where they are caught. Control flow: thrown at least 100 times, and caught no more than 8 \
               methods further up."
            .into(),
        columns: vec![
            words("Class"),
            words("Thrown in"),
            words("Caught in"),
            numbers("Times", ""),
            numbers("Methods left", "Methods that it left on its way, on average"),
            words("Control flow"),
        ],
        rows: rows.collect(),
    }
}

fn threads(report: &Report) -> Table {
    let whole = report.summary.allocated.bytes;
    let mut threads: Vec<_> = report.summary.threads.iter().collect();
    threads.sort_by_key(|line| std::cmp::Reverse((line.allocated.bytes, line.records)));
    let row = |line: &et_analysis::summary::ThreadLine| {
        vec![
            Cell::Name(if line.name.is_empty() { format!("thread {}", line.id) } else { line.name.clone() }),
            Cell::Count(line.id.into()),
            Cell::Bytes(line.allocated.bytes),
            Cell::share(line.allocated.bytes, whole),
            Cell::Count(line.allocated.objects),
            Cell::Count(line.records),
            Cell::Text(if line.daemon { "daemon" } else { "" }.into()),
            Cell::Text(if line.ended { "ended" } else { "running at the end" }.into()),
        ]
    };
    Table {
        page: Page::Threads.id(),
        name: "threads",
        title: "Threads".into(),
        note: "Threads and what they allocated: the 500 that allocated the most, if there are more.".into(),
        columns: vec![
            words("Thread"),
            numbers("Id", ""),
            numbers("Bytes", "Bytes allocated"),
            numbers("Share", "Of all bytes allocated"),
            numbers("Objects", "Objects allocated"),
            numbers("Records", "Records of the trace that it caused"),
            words("Kind"),
            words("State"),
        ],
        rows: threads.into_iter().take(500).map(row).collect(),
    }
}

fn gcs(report: &Report) -> Table {
    let mut gcs: Vec<_> = report.summary.gcs.iter().enumerate().collect();
    gcs.sort_by(|(_, a), (_, b)| b.pause_seconds.total_cmp(&a.pause_seconds));
    gcs.truncate(200);
    gcs.sort_by_key(|(index, _)| *index);
    let row = |(index, gc): (usize, &et_analysis::summary::GcLine)| {
        vec![
            Cell::Name(format!("#{}", index + 1)),
            Cell::Seconds(gc.start_seconds),
            Cell::Seconds(gc.pause_seconds),
            Cell::Bytes(gc.heap_used_bytes),
            Cell::Bytes(gc.heap_committed_bytes),
        ]
    };
    Table {
        page: Page::Threads.id(),
        name: "collections",
        title: "Collections".into(),
        note: "Collections of the JVM while the program was traced: tracing takes time and memory, so an untraced run collects at other times. The 200 with the longest pauses, if there are more."
            .into(),
        columns: vec![
            words("Collection"),
            numbers("At", "Seconds since the start"),
            numbers("Pause", ""),
            numbers("Used", "Heap in use after it"),
            numbers("Committed", "Heap committed by the JVM"),
        ],
        rows: gcs.into_iter().map(row).collect(),
    }
}
