//! Results about a snapshot as text.

use std::fmt::Write;

use super::paths::Path;
use super::report::{
    ClassLine, ClassPaths, Classes, DominatorLine, Dominators, HeapLine, HolderLine, Holders, ObjectLine, Paths,
};
use crate::table::table;
use et_names::units::{bytes, counted, number, percent};

fn head(heap: &HeapLine) -> String {
    let taken = &heap.taken;
    let mut text = format!("heap at {}: tick {}", taken.moment, number(taken.tick));
    if let Some(seconds) = taken.seconds {
        let _ = write!(text, ", {seconds:.3} s after the start");
    }
    let _ = writeln!(text, ", {} allocated by then", bytes(taken.allocated_bytes));
    let (objects, references) = (counted(heap.objects, "object"), counted(heap.references, "reference"));
    let _ = writeln!(text, "{objects}, {}, {references}\n", bytes(heap.bytes));
    text
}

fn class_rows(lines: &[ClassLine], all: u64) -> Vec<Vec<String>> {
    let row = |line: &ClassLine| {
        let retained = (bytes(line.retained_bytes), percent(line.retained_bytes, all));
        vec![retained.0, retained.1, bytes(line.bytes), number(line.objects), line.class.clone()]
    };
    lines.iter().map(row).collect()
}

fn and_more(out: &mut String, all: usize, shown: usize) {
    if all > shown {
        let _ = writeln!(out, "  and {} more", number((all - shown) as u64));
    }
}

pub fn render_classes(report: &Classes) -> String {
    let mut out = head(&report.heap);
    let rows = class_rows(&report.classes, report.heap.bytes);
    table(&mut out, 4, &["retained", "", "shallow", "objects", "class"], &rows);
    and_more(&mut out, report.class_count, report.classes.len());
    out
}

/// The top of the dominator tree, as text.
pub fn render_dominators(report: &Dominators) -> String {
    let mut out = head(&report.heap);
    out += "Objects that no other dominates, with the largest that they dominate\n";
    let mut rows = Vec::new();
    for line in &report.objects {
        push(&mut rows, line, 0, report.heap.bytes);
    }
    table(&mut out, 4, &["retained", "", "shallow", "object", "class"], &rows);
    and_more(&mut out, report.object_count, report.objects.len());
    out += "\nThe same objects by class\n";
    let rows = class_rows(&report.classes, report.heap.bytes);
    table(&mut out, 4, &["retained", "", "shallow", "objects", "class"], &rows);
    and_more(&mut out, report.class_count, report.classes.len());
    out
}

fn push(rows: &mut Vec<Vec<String>>, line: &DominatorLine, level: usize, all: u64) {
    let ObjectLine { object, class, site, bytes: size, retained_bytes } = &line.object;
    let mut class = format!("{}{class}", "  ".repeat(level));
    if let Some(held_by) = &line.held_by {
        let _ = write!(class, "  ({held_by})");
    } else if let Some(site) = site {
        let _ = write!(class, "  {site}");
    }
    rows.push(vec![bytes(*retained_bytes), percent(*retained_bytes, all), bytes(*size), object.clone(), class]);
    line.largest.iter().for_each(|below| push(rows, below, level + 1, all));
}

fn object(out: &mut String, line: &ObjectLine) {
    let _ = write!(out, "{} {}, {}", line.class, line.object, bytes(line.bytes));
    let _ = write!(out, ", retains {}", bytes(line.retained_bytes));
    if let Some(site) = &line.site {
        let _ = write!(out, ", allocated in {site}");
    }
    out.push('\n');
}

fn ways(out: &mut String, paths: &[Path], are_of_many: bool) {
    for path in paths {
        let _ = write!(out, "\n{}", path.root);
        if are_of_many {
            let _ = write!(out, ", to {}, {}", counted(path.objects, "object"), bytes(path.bytes));
        }
        out.push('\n');
        for step in &path.steps {
            let via = step.via.as_ref().map(|via| format!("{via} = ")).unwrap_or_default();
            let _ = writeln!(out, "  {via}{} {}", step.class, step.object);
        }
    }
}

/// The ways to an object, as text.
pub fn render_paths(report: &Paths) -> String {
    let mut out = head(&report.heap);
    object(&mut out, &report.object);
    ways(&mut out, &report.paths, false);
    out
}

/// The ways to the objects of a class, as text.
pub fn render_class_paths(report: &ClassPaths) -> String {
    let mut out = head(&report.heap);
    let class = &report.class;
    let objects = counted(class.objects, "object");
    let _ = write!(out, "{}: {objects}, {}", class.class, bytes(class.bytes));
    let _ = writeln!(out, ", retain {}", bytes(class.retained_bytes));
    ways(&mut out, &report.paths, true);
    out
}

/// What holds an object, as text.
pub fn render_holders(report: &Holders) -> String {
    let mut out = head(&report.heap);
    object(&mut out, &report.object);
    for root in &report.roots {
        let _ = writeln!(out, "{root}");
    }
    out.push('\n');
    let row = |line: &HolderLine| {
        let ObjectLine { object, class, site, retained_bytes, .. } = &line.holder;
        let at = site.as_ref().map(|site| format!("  {site}")).unwrap_or_default();
        vec![bytes(*retained_bytes), object.clone(), format!("{class}{}{at}", line.via)]
    };
    let rows: Vec<_> = report.holders.iter().map(row).collect();
    match rows.is_empty() {
        true => out += "No object holds it.\n",
        false => table(&mut out, 2, &["retained", "object", "held by"], &rows),
    }
    and_more(&mut out, report.holder_count, report.holders.len());
    out
}
