use std::collections::BTreeMap;

use et_reader::made_in::Places;
use et_reader::population::{Columns, Rows};
use et_reader::record::AllocKind;

use super::*;
use crate::fold::in_order;
use crate::heap::{dominance, is_at, resident};
use crate::testing::{REAL, with_references};

/// All rows, group after group.
fn all(population: &Population) -> Rows {
    let mut all = Rows::default();
    in_order(population, Columns::ALL, |rows| all.append(rows.clone())).unwrap();
    all
}

/// Sums of the rows that meet a condition, by name.
fn sums(rows: &Rows, holds: impl Fn(usize) -> bool, name: impl Fn(usize) -> String) -> BTreeMap<String, Amount> {
    let mut sums: BTreeMap<String, Amount> = BTreeMap::new();
    (0..rows.len).filter(|&row| holds(row)).for_each(|row| sums.entry(name(row)).or_default().add(rows.size[row]));
    sums
}

fn lines(tree: &Tree) -> BTreeMap<String, Amount> {
    tree.lines.iter().map(|line| (line.key.clone(), line.amount)).collect()
}

fn query(by: &[Level], path: &[&str]) -> Query {
    let path = path.iter().map(|&key| key.to_owned()).collect();
    Query { by: by.to_vec(), path, ..Query::default() }
}

#[test]
fn groups_are_those_of_all_rows_one_by_one() {
    let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
    let objects = et_lives::by_time(None, &population).unwrap();
    let subject = Subject { source: &source, population: &population, objects: &*objects };
    let rows = all(&population);
    let labels = subject.labels();
    let class = |row: usize| labels.class(rows.class[row]);
    let package = |row: usize| match class(row).trim_end_matches("[]").rsplit_once('.') {
        Some((package, _)) => package.to_owned(),
        None if class(row).contains("[]") => "arrays of primitive types".to_owned(),
        // The trace does not say what these are.
        None => "classes that are not known".to_owned(),
    };
    let end = population.end.tick;
    let (from, to) = (end / 4, end / 2);
    let tick = end / 3;
    let resident = resident(&source, &population, &*objects, &*references, tick).unwrap();
    let dominance = dominance(&resident.snapshot);
    let alive = What::Alive(At { tick, objects: &*objects, resident: &resident, dominance: &dominance });
    let was_made = |row: usize| rows.kind[row] != AllocKind::Initial && (from..to).contains(&rows.birth_tick[row]);
    let has_died = |row: usize| died_at(&rows, row).is_some_and(|tick| (from..to).contains(&tick));
    let kinds: [(What<'_, '_>, &dyn Fn(usize) -> bool); 3] = [
        (alive, &|row| is_at(&rows, row, tick)),
        (What::Made { from, to }, &was_made),
        (What::Died { from, to }, &has_died),
    ];
    for (what, holds) in kinds {
        let find = |query: &Query| tree(subject, what, query, None, usize::MAX).unwrap();
        let by_class = find(&query(&[Level::Class], &[]));
        assert_eq!(lines(&by_class), sums(&rows, holds, class));
        assert!(by_class.lines.len() > 5);
        // The largest package, opened, has its classes.
        let by_package = find(&query(&[Level::Package, Level::Class], &[]));
        assert_eq!(lines(&by_package), sums(&rows, holds, package));
        let first = &by_package.lines[0];
        let opened = find(&query(&[Level::Package, Level::Class], &[&first.key]));
        assert_eq!(opened.total, first.amount);
        assert_eq!(lines(&opened), sums(&rows, |row| holds(row) && package(row) == first.key, class));
        // All levels but that which only moments have, one by one: nothing is lost or counted twice.
        for (_, level) in Level::ALL.into_iter().filter(|(_, level)| !level.is_of_moments()) {
            let found = find(&query(&[level], &[]));
            let mut total = Amount::default();
            found.lines.iter().for_each(|line| total += line.amount);
            assert_eq!((total, found.total), (by_class.total, by_class.total), "{level:?}");
            for line in &found.lines {
                let opened = find(&query(&[level], &[&line.key]));
                assert_eq!((opened.total, opened.lines.len()), (line.amount, 0), "{level:?} {}", line.key);
            }
        }
        // The objects of a group, in their order.
        let of_group = query(&[Level::Class], &[&by_class.lines[0].key]);
        let listed = list(subject, what, &of_group, Order::By(Sort::Birth), (1, 3)).unwrap();
        assert_eq!(listed.found, by_class.lines[0].amount);
        let mut births: Vec<(u64, u64)> = (0..rows.len)
            .filter(|&row| holds(row) && class(row) == by_class.lines[0].key)
            .map(|row| (rows.number[row], rows.object[row].0))
            .collect();
        births.sort_unstable();
        let ids: Vec<String> = births.iter().skip(1).take(3).map(|(_, id)| format!("{id:x}")).collect();
        let found: Vec<String> = listed.objects.iter().map(|object| object.id.clone()).collect();
        assert_eq!(found, ids);
    }
    // Conditions.
    let narrow = |filter: Filter| {
        let query = Query { filter, by: vec![Level::Class], path: Vec::new() };
        lines(&tree(subject, alive, &query, None, usize::MAX).unwrap())
    };
    let strings = narrow(Filter { class: Some("java.lang.S*".to_owned()), ..Filter::default() });
    assert_eq!(strings, sums(&rows, |row| is_at(&rows, row, tick) && class(row).starts_with("java.lang.S"), class));
    assert!(!strings.is_empty());
    let thread = rows.thread[rows.len / 2];
    let of_thread = narrow(Filter { thread: Some(thread.0), ..Filter::default() });
    assert_eq!(of_thread, sums(&rows, |row| is_at(&rows, row, tick) && rows.thread[row] == thread, class));
}

#[test]
fn groups_retain_what_their_objects_dominate() {
    let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
    let objects = et_lives::by_time(None, &population).unwrap();
    let subject = Subject { source: &source, population: &population, objects: &*objects };
    let resident = resident(&source, &population, &*objects, &*references, u64::MAX).unwrap();
    let dominance = dominance(&resident.snapshot);
    let what = What::Alive(At { tick: u64::MAX, objects: &*objects, resident: &resident, dominance: &dominance });
    let found = tree(subject, what, &query(&[Level::Class], &[]), None, usize::MAX).unwrap();
    let expected = crate::heap::classes(&resident.snapshot, &dominance, &crate::heap::Matching::all(), usize::MAX);
    // Mirrors are listed there with the classes that they are of.
    let expected: BTreeMap<String, u64> =
        expected.classes.into_iter().map(|line| (line.class, line.retained_bytes)).collect();
    let mut compared = 0;
    for line in found.lines.iter().filter(|line| line.name != "java.lang.Class") {
        assert_eq!(line.retained_bytes, expected.get(&line.name).copied(), "{}", line.name);
        compared += 1;
    }
    assert!(compared > 20);
    assert!(found.lines.is_sorted_by_key(|line| Reverse(line.retained_bytes)));
    assert!(found.retained_bytes.unwrap() >= found.total.bytes);
    // Each object has one owner at most: that which the tree tells.
    let owned = tree(subject, what, &query(&[Level::Owner], &[]), None, usize::MAX).unwrap();
    let mut total = Amount::default();
    owned.lines.iter().for_each(|line| total += line.amount);
    assert_eq!(total, found.total);
    // By retained size, the first are those that the dominator tree has first.
    let listed = list(subject, what, &query(&[], &[]), Order::Retained, (0, 5)).unwrap();
    let mut retained: Vec<u64> = dominance.retained[..resident.snapshot.len()].to_vec();
    retained.sort_unstable_by_key(|&bytes| Reverse(bytes));
    let found: Vec<u64> = listed.objects.iter().filter_map(|object| object.retained_bytes).collect();
    assert_eq!(found, retained[..5]);
}

#[test]
fn curves_and_the_timeline_are_sums_of_what_was_alive() {
    let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
    let objects = et_lives::by_time(None, &population).unwrap();
    let subject = Subject { source: &source, population: &population, objects: &*objects };
    let rows = all(&population);
    let end = population.end.tick;
    let course = Course::of(&population).unwrap();
    let resident = resident(&source, &population, &*objects, &*references, end).unwrap();
    let dominance = dominance(&resident.snapshot);
    let what = What::Alive(At { tick: end, objects: &*objects, resident: &resident, dominance: &dominance });
    let found = tree(subject, what, &query(&[Level::Site], &[]), Some(&course), usize::MAX).unwrap();
    let mut places = Places::new(source.naming());
    let mut site = |row| {
        let (place, _) = Spot::of(&rows, row).place(&mut places, &population);
        subject.labels().made_in(place)
    };
    let sites: Vec<String> = (0..rows.len).map(&mut site).collect();
    for line in &found.lines[..10] {
        let curve = line.curve.as_ref().unwrap();
        for (moment, &bytes) in (1..).zip(curve) {
            // The first tick that is not before that share of the run: where ticks are few, moments are between them.
            let tick = end * moment / 24;
            let at = |row: &usize| sites[*row] == line.key && is_at(&rows, *row, tick);
            let expected: u64 = (0..rows.len).filter(at).map(|row| rows.size[row]).sum();
            assert_eq!(bytes, expected, "{} at {tick}", line.key);
        }
        assert_eq!(curve.last(), Some(&line.amount.bytes), "{}", line.key);
    }
    for buckets in [1, 7, 400] {
        let line = timeline(&population, buckets).unwrap();
        assert_eq!(line.ticks.len(), buckets);
        assert!(line.ticks.is_sorted() && line.bytes.is_sorted());
        for (at, &tick) in line.ticks.iter().enumerate() {
            let alive = (0..rows.len).filter(|&row| is_at(&rows, row, tick));
            let (mut bytes, mut objects) = (0, 0);
            alive.for_each(|row| {
                bytes += rows.size[row];
                objects += 1;
            });
            assert_eq!((line.live[at], line.live_objects[at]), (bytes, objects), "bucket {at} of {buckets}");
        }
        assert_eq!(line.allocated.iter().sum::<u64>(), population.end.bytes);
        assert_eq!((line.bytes.last(), line.ticks.last()), (Some(&population.end.bytes), Some(&(end + 1))));
    }
}

#[test]
fn flame_graphs_have_all_that_is_asked_for() {
    let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
    let objects = et_lives::by_time(None, &population).unwrap();
    let subject = Subject { source: &source, population: &population, objects: &*objects };
    let tick = population.end.tick / 2;
    let resident = resident(&source, &population, &*objects, &*references, tick).unwrap();
    let dominance = dominance(&resident.snapshot);
    let alive = What::Alive(At { tick, objects: &*objects, resident: &resident, dominance: &dominance });
    for what in [alive, What::Made { from: 0, to: tick }] {
        let of = query(&[Level::Class], &["java.lang.String"]);
        let total = tree(subject, what, &of, None, 0).unwrap().total;
        assert!(total.objects > 0);
        for down in [Down::Callers, Down::Sites] {
            let graph = flame(subject, what, &of, down).unwrap();
            assert_eq!((graph.frames[0].bytes[0], graph.frames[0].objects[0]), (total.bytes, total.objects));
            assert!(graph.frames.iter().skip(1).all(|frame| frame.bytes[0] <= total.bytes));
            assert!(graph.names.iter().any(|name| name.name.contains("java.lang.String")));
        }
    }
}
