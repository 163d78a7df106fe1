//! The flame graph of allocations as a flat table: what each method made itself, and with all that it called.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use et_analysis::report::{Page, Report};
use et_analysis::{Flame, FrameKind};

use crate::table::{Cell, Table, numbers, words};

/// Lines of the table.
const ROWS: usize = 150;
/// The weight of all that was allocated: others are of a part of it.
const ALLOCATED: usize = 0;

/// What a method made, in bytes and objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Made {
    own: (u64, u64),
    total: (u64, u64),
}

/// By method, which are known by name: what it made itself, and what was made under it, of which each stack counts once.
fn by_method(flame: &Flame) -> Vec<(&str, FrameKind, Made)> {
    let amount = |at: usize| {
        let frame = &flame.frames[at];
        let of = |amounts: &[u64]| amounts.get(ALLOCATED).copied().unwrap_or(0);
        (of(&frame.bytes), of(&frame.objects))
    };
    let is_method = |kind: FrameKind| matches!(kind, FrameKind::Program | FrameKind::Library | FrameKind::Jdk);
    let method = |at: usize| {
        let name = &flame.names[flame.frames[at].name as usize];
        is_method(name.kind).then(|| (without_line(&name.name), name.kind))
    };
    // Classes at the tip of a stack are what their caller made itself.
    let mut own: Vec<(u64, u64)> = (0..flame.frames.len()).map(amount).collect();
    for at in (1..flame.frames.len()).filter(|&at| method(at).is_some()) {
        let ((bytes, objects), above) = (amount(at), flame.frames[at].parent as usize);
        own[above] = (own[above].0.saturating_sub(bytes), own[above].1.saturating_sub(objects));
    }
    let mut methods: BTreeMap<&str, (FrameKind, Made)> = BTreeMap::new();
    for at in 1..flame.frames.len() {
        let Some((name, kind)) = method(at) else { continue };
        let mut above = std::iter::successors(Some(flame.frames[at].parent as usize), |&above| {
            (above > 0).then(|| flame.frames[above].parent as usize)
        });
        let is_nested = above.any(|above| method(above).is_some_and(|(other, _)| other == name));
        let (_, made) = methods.entry(name).or_insert((kind, Made::default()));
        let ((bytes, objects), own) = (amount(at), own[at]);
        made.own = (made.own.0 + own.0, made.own.1 + own.1);
        if !is_nested {
            made.total = (made.total.0 + bytes, made.total.1 + objects);
        }
    }
    methods.into_iter().map(|(name, (kind, made))| (name, kind, made)).collect()
}

/// A method without the line of the call at which it is.
fn without_line(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((method, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => method,
        _ => name,
    }
}

pub(super) fn methods(report: &Report) -> Table {
    let whole = report.summary.allocated.bytes;
    let mut all = by_method(&report.flames.by_context);
    all.sort_by_key(|(name, _, made)| (Reverse((made.own.0, made.total.0)), *name));
    let whose = |kind| match kind {
        FrameKind::Program => "program",
        FrameKind::Library => "library",
        _ => "JDK",
    };
    let row = |(name, kind, Made { own, total }): (&str, FrameKind, Made)| {
        vec![
            Cell::Name(name.to_owned()),
            Cell::Text(whose(kind).to_owned()),
            Cell::Bytes(own.0),
            Cell::share(own.0, whole),
            Cell::Count(own.1),
            Cell::Bytes(total.0),
            Cell::share(total.0, whole),
        ]
    };
    Table {
        page: Page::Allocation.id(),
        name: "methods",
        title: "Methods".into(),
        note: "The flame graph by method: what it allocates itself, and with all that it calls. What is too small to be seen in the graph counts for its caller."
            .into(),
        columns: vec![
            words("Method"),
            words("Whose"),
            numbers("Bytes", "Allocated by it"),
            numbers("Share", "Of all bytes allocated"),
            numbers("Objects", "Allocated by it"),
            numbers("Total", "Bytes allocated by it or under it"),
            numbers("Total share", "Of all bytes allocated"),
        ],
        rows: all.into_iter().take(ROWS).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use et_analysis::{Frame, FrameName};

    use super::*;

    #[test]
    fn a_method_counts_once_for_each_stack() {
        let names = [
            ("all", FrameKind::Root),
            ("a.Main.run:7", FrameKind::Program),
            ("a.Main.walk:9", FrameKind::Program),
            ("a.Node", FrameKind::Class),
            ("a.Main.walk:12", FrameKind::Program),
        ];
        let names = names.map(|(name, kind)| FrameName { name: name.to_owned(), kind }).to_vec();
        let frame = |(parent, name, bytes): (u32, u32, u64)| Frame {
            parent,
            name,
            bytes: vec![bytes, 0],
            objects: vec![bytes / 10, 0],
        };
        // run makes 30 itself, walk 70, in two frames of one stack.
        let frames = [(0, 0, 100), (0, 1, 100), (1, 2, 70), (2, 3, 30), (2, 4, 40), (4, 3, 40), (1, 3, 30)];
        let flame = Flame { names, frames: frames.map(frame).to_vec(), folded: 0 };
        let walk = Made { own: (70, 7), total: (70, 7) };
        let run = Made { own: (30, 3), total: (100, 10) };
        let expected = [("a.Main.run", FrameKind::Program, run), ("a.Main.walk", FrameKind::Program, walk)];
        assert_eq!(by_method(&flame), expected);
        assert_eq!(without_line("a.B.c"), "a.B.c");
    }
}
