use std::fs;
use std::path::{Path, PathBuf};

use et_names::FieldId;
use et_reader::model::ContextId;
use et_reader::record::Slot;
use et_reader::references::{Stay, Wanted};
use et_reader::source::TraceSource;
use et_reader::watch::Watcher;

use super::*;
use crate::attach;

/// A run of a real program, without the names of the JDK.
const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

fn stays(references: &dyn References, wanted: &Wanted) -> Vec<Stay> {
    let mut all = Vec::new();
    references.for_each(wanted, &mut |stay| all.push(*stay)).unwrap();
    all
}

/// The stays of a trace, and whether its events were read for them.
fn read(path: &Path) -> (Vec<Stay>, bool) {
    let mut trace = TraceSource::open(path).unwrap();
    let watcher = Watcher::watched();
    trace.file.watch(&watcher);
    let lives = attach(&mut trace, None);
    let source = Source::from(trace);
    let population = crate::population(&source, lives.as_deref(), Reading::default()).unwrap();
    let before = watcher.stage().map(|(stage, _)| stage.what);
    let references = references(&source, lives.as_deref(), &population, Reading::default()).unwrap();
    let all = stays(&*references, &Wanted::default());
    assert_eq!(all.len() as u64, references.len());
    (all, watcher.stage().map(|(stage, _)| stage.what) != before)
}

fn copied(folder: &Path) -> PathBuf {
    let trace = folder.join("a.ettrace");
    fs::copy(REAL, &trace).unwrap();
    // The life table is there: what is read from now on is for references.
    let mut opened = TraceSource::open(&trace).unwrap();
    let lives = attach(&mut opened, None);
    crate::population(&opened.into(), lives.as_deref(), Reading::default()).unwrap();
    trace
}

#[test]
fn the_table_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let trace = copied(folder.path());
    let (first, was_read) = read(&trace);
    assert!(was_read && first.len() > 1000, "{}", first.len());
    assert_eq!(read(&trace), (first, false));
}

#[test]
fn a_table_that_was_copied_is_used_and_a_damaged_one_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let trace = copied(folder.path());
    let (first, _) = read(&trace);
    let lives = folder.path().join("a.ettrace.lives");
    for name in [REFERENCES, REFERENCE_CONTEXTS] {
        let path = lives.join(name);
        let bytes = fs::read(&path).unwrap();
        // The same content in another file.
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&trace), (first.clone(), false), "{name}");
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 0x55;
        for content in [damaged, bytes[..bytes.len() / 2].to_vec(), Vec::new()] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, content).unwrap();
            assert_eq!(read(&trace), (first.clone(), true), "{name}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(read(&trace), (first.clone(), true), "{name}");
    }
    fs::write(lives.join("other"), "").unwrap();
    fs::remove_file(lives.join(crate::OBJECTS)).unwrap();
    assert_eq!(read(&trace).0, first, "a folder with other files is left alone");
}

#[test]
fn without_a_life_table_references_are_in_a_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let kept = read(&copied(folder.path())).0;
    let source = Source::from(TraceSource::open(REAL.as_ref()).unwrap());
    let population = crate::population(&source, None, Reading::default()).unwrap();
    let passing = references(&source, None, &population, Reading::default()).unwrap();
    // Contexts are numbered as they are met, by each way of making life tables in its order.
    let plain = |mut stay: Stay| {
        stay.from.context = ContextId::EMPTY;
        stay.to = stay.to.map(|(to, how)| (et_reader::references::Mark { context: ContextId::EMPTY, ..to }, how));
        stay
    };
    let passing: Vec<Stay> = stays(&*passing, &Wanted::default()).into_iter().map(plain).collect();
    assert_eq!(passing, kept.into_iter().map(plain).collect::<Vec<_>>());
}

/// The same trace with the life table in that folder.
fn opened(folder: &Path) -> (Source, Population, Box<dyn References>) {
    let mut trace = TraceSource::open(&copied(folder)).unwrap();
    let lives = attach(&mut trace, None);
    let source = Source::from(trace);
    let population = crate::population(&source, lives.as_deref(), Reading::default()).unwrap();
    let references = references(&source, lives.as_deref(), &population, Reading::default()).unwrap();
    (source, population, references)
}

#[test]
fn what_is_asked_for_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (_, population, references) = opened(folder.path());
    let all = stays(&*references, &Wanted::default());
    let check = |wanted: Wanted, holds: &dyn Fn(&Stay) -> bool| {
        let expected: Vec<Stay> = all.iter().filter(|stay| holds(stay)).copied().collect();
        assert_eq!(stays(&*references, &wanted), expected, "{wanted:?}");
        expected.len()
    };
    let end = population.end.tick;
    let mut found = 0;
    for at in (0..=end + 1).step_by((end / 50) as usize).chain([u64::MAX]) {
        found += check(Wanted { at: Some(at), ..Wanted::default() }, &|stay| stay.is_at(at));
        let overlaps = |stay: &Stay, from, to| stay.from.tick <= to && stay.to.is_none_or(|(end, _)| end.tick >= from);
        for to in [at, at.saturating_add(end / 7), u64::MAX] {
            let wanted = Wanted { within: Some(at..=to), ..Wanted::default() };
            found += check(wanted, &|stay| overlaps(stay, at, to));
        }
    }
    let is_of = |stay: &Stay, objects: &[u64]| {
        stay.origin.is_some_and(|origin| objects.contains(&origin)) || objects.contains(&stay.target)
    };
    for first in (0..population.objects).step_by((population.objects / 100) as usize) {
        let objects = vec![first, first + 1, first + 1000];
        found += check(Wanted { of: Some(objects.clone()), ..Wanted::default() }, &|stay| is_of(stay, &objects));
    }
    let fields = references.fields();
    assert_eq!(
        fields.iter().map(|(_, stays)| stays).sum::<u64>(),
        all.iter().filter(|stay| matches!(stay.slot, Slot::Field(_))).count() as u64
    );
    for pair in fields.chunks(2) {
        let ids: Vec<u32> = pair.iter().map(|(FieldId(id), _)| *id).collect();
        let is_one = |stay: &Stay| matches!(stay.slot, Slot::Field(field) if ids.contains(&field.0));
        found += check(Wanted { fields: Some(ids.clone()), ..Wanted::default() }, &is_one);
        let wanted = Wanted { fields: Some(ids.clone()), at: Some(end / 2), ..Wanted::default() };
        check(wanted, &|stay| is_one(stay) && stay.is_at(end / 2));
    }
    assert!(found > 10_000, "{found}");
}

/// Rows of references name objects by the numbers of the life table.
#[test]
fn numbers_are_those_of_the_objects() {
    let folder = tempfile::tempdir().unwrap();
    let (source, population, references) = opened(folder.path());
    let mut ids = vec![et_reader::record::ObjectId::NULL; population.objects as usize];
    for group in 0..population.groups.len() {
        let rows = population.groups.read(group, et_reader::population::Columns::ALL).unwrap();
        (0..rows.len).for_each(|row| ids[rows.number[row] as usize] = rows.object[row]);
    }
    let mut stored: Vec<_> = stays(&*references, &Wanted::default())
        .into_iter()
        .filter(|stay| stay.from.record > 0)
        .map(|stay| (stay.from.record, stay.origin.map(|origin| ids[origin as usize]), ids[stay.target as usize]))
        .collect();
    stored.sort();
    let (mut expected, mut record) = (Vec::new(), 0);
    source
        .for_each(Reading::default(), |told, at| {
            record += u64::from(!at.is_clearing && told.letter() != 'D');
            if let et_reader::record::Record::Update { origin, target, .. } = *told
                && !target.is_null()
            {
                expected.push((record, (!origin.is_null()).then_some(origin), target));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(!expected.is_empty());
    assert_eq!(stored, expected);
}
