use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use super::*;
use crate::ops::{ClassKind, Op, Totals};
use crate::testing::{all, prepared, program};
use et_reader::record::{ObjectId, Record};
use proptest::prelude::*;

/// What records and operations have in common. Objects are numbered by birth, from 1; slots of an object in order of
/// first use.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Birth(u64),
    Store { origin: u64, slot: usize, target: u64 },
    Deaths(BTreeSet<u64>),
    Use(u64),
}

#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    births: u64,
    slots: BTreeMap<(u64, u32), usize>,
}

impl Steps {
    fn birth(&mut self, size: u64) -> u64 {
        self.births += 1;
        self.all.push(Step::Birth(size));
        self.births
    }

    fn store(&mut self, origin: u64, slot: u32, target: u64) {
        let next = self.slots.range((origin, 0)..(origin + 1, 0)).count();
        let slot = *self.slots.entry((origin, slot)).or_insert(next);
        self.all.push(Step::Store { origin, slot, target });
    }

    fn death(&mut self, object: u64) {
        match self.all.last_mut() {
            Some(Step::Deaths(all)) => _ = all.insert(object),
            _ => self.all.push(Step::Deaths([object].into())),
        }
    }

    /// Consecutive uses of an object count once.
    fn touch(&mut self, object: u64) {
        if self.all.last() != Some(&Step::Use(object)) {
            self.all.push(Step::Use(object));
        }
    }
}

fn of_records(text: &str) -> Vec<Step> {
    let (mut steps, mut births) = (Steps::default(), BTreeMap::new());
    let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
    let visit = |record: &Record, _: &et_reader::batch::At<'_>| {
        let number = |id: ObjectId, births: &BTreeMap<ObjectId, u64>| births.get(&id).copied().unwrap_or(0);
        match *record {
            Record::Alloc(alloc) => _ = births.insert(alloc.object, steps.birth(alloc.size)),
            Record::Update { origin, target, slot, .. } => {
                steps.store(number(origin, &births), slot.number(), number(target, &births));
            }
            Record::Death { object, .. } => steps.death(births[&object]),
            Record::Entry { receiver, .. } => steps.touch(births[&receiver]),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    source.for_each(Reading::default(), visit).unwrap();
    steps.all
}

fn of_ops(ops: &[Op]) -> Vec<Step> {
    let (mut steps, mut births) = (Steps::default(), BTreeMap::from([(0, 0)]));
    for op in ops {
        match *op {
            Op::Birth { handle, size, .. } => {
                let number = steps.birth(size);
                assert_eq!(births.insert(handle, number), None, "a handle that is in use");
            }
            Op::Update { origin, slot, target } => steps.store(births[&origin], slot, births[&target]),
            Op::UpdateStatic { field, target } => steps.store(0, field, births[&target]),
            Op::Death { handle } => steps.death(births.remove(&handle).unwrap()),
            Op::Touch { handle } => steps.touch(births[&handle]),
            Op::Thread { .. } | Op::Tick { .. } => {}
        }
    }
    steps.all
}

/// Consecutive uses by different threads are separate operations, and count once here.
fn without_repeats(mut steps: Vec<Step>) -> Vec<Step> {
    steps.dedup_by(|one, other| matches!(one, Step::Use(_)) && one == other);
    steps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn operations_are_what_the_records_say(text in program()) {
        let mut reader = prepared(&text);
        let ops = all(&mut reader);
        prop_assert_eq!(without_repeats(of_ops(&ops)), without_repeats(of_records(&text)));
        let totals = &reader.tables().totals;
        let count = |is: fn(&Op) -> bool| ops.iter().filter(|op| is(op)).count() as u64;
        prop_assert_eq!(totals.operations, ops.len() as u64);
        prop_assert_eq!(totals.births, count(|op| matches!(op, Op::Birth { .. })));
        prop_assert_eq!(totals.updates, count(|op| matches!(op, Op::Update { .. })));
        prop_assert_eq!(totals.static_updates, count(|op| matches!(op, Op::UpdateStatic { .. })));
        prop_assert_eq!(totals.deaths, count(|op| matches!(op, Op::Death { .. })));
        prop_assert_eq!(totals.touches, count(|op| matches!(op, Op::Touch { .. })));
        prop_assert_eq!(totals.at_end.objects, totals.births - totals.deaths);
        prop_assert_eq!((totals.put_off, totals.left_out, totals.sizes_unknown), (0, 0, 0));
        // The number of handles is the maximum number of objects alive.
        let (mut alive, mut most, mut bytes, mut peak) = (BTreeMap::new(), 0, 0, 0);
        for op in &ops {
            match *op {
                Op::Birth { handle, size, slots, .. } => {
                    alive.insert(handle, (size, slots));
                    bytes += size;
                }
                Op::Death { handle } => bytes -= alive.remove(&handle).unwrap().0,
                Op::Update { origin, slot, .. } => prop_assert!(slot < alive[&origin].1),
                _ => {}
            }
            most = most.max(alive.len());
            peak = peak.max(bytes);
        }
        prop_assert_eq!((reader.tables().handles as usize, totals.peak.bytes), (most, peak));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// By the clock, births and deaths are at the same tick as in the trace.
    #[test]
    fn the_clock_is_told_wherever_it_has_moved(text in program()) {
        let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
        let wanted = Wanted { touches: false, every_tick: true };
        let done = prepare(&source, wanted, tempfile::tempfile().unwrap()).unwrap();
        let mut reader = OpsReader::of_file(Path::new("t.ops"), done.file).unwrap();
        let (mut tick, mut births, mut deaths) = (0, Vec::new(), Vec::new());
        for op in all(&mut reader) {
            match op {
                Op::Tick { tick: now } => {
                    prop_assert!(now > tick, "{now} after {tick}");
                    tick = now;
                }
                Op::Birth { .. } => births.push(tick),
                Op::Death { .. } => deaths.push(tick),
                _ => {}
            }
        }
        let (mut told_births, mut told_deaths) = (Vec::new(), Vec::new());
        source
            .for_each(Reading::default(), |record, at| {
                match record {
                    Record::Alloc(_) => told_births.push(at.tick.0),
                    Record::Death { .. } => told_deaths.push(at.tick.0),
                    _ => {}
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        prop_assert_eq!((births, deaths), (told_births, told_deaths));
    }
}

fn totals(text: &str) -> Totals {
    prepared(&format!("# Elephant Tracks, dialect et\n{text}# lost 0\n")).tables().totals
}

/// In a text where an object dies while still referenced: it stays, with everything it holds, until the last reference
/// is gone.
#[test]
fn deaths_of_what_is_held_are_put_off() {
    let births =
        "# deaths trace\nN 1 10 LNode; 0 0 1\nN 2 10 LNode; 0 0 1\nN 3 10 LNode; 0 0 1\nU 0 1 2 5 1\nU 0 2 3 5 1\n";
    let of = |more: &str| {
        let text = format!("# Elephant Tracks, dialect et\n{births}{more}# lost 0\n");
        let mut reader = prepared(&text);
        let deaths = all(&mut reader).iter().filter(|op| matches!(op, Op::Death { .. })).count();
        (deaths, reader.tables().totals.put_off, reader.tables().totals.at_end.objects)
    };
    assert_eq!(of(""), (0, 0, 3));
    assert_eq!(of("D 2 1\nD 3 1\n"), (0, 2, 3));
    assert_eq!(of("D 3 1\nM 7 2 1\n"), (0, 1, 3));
    assert_eq!(of("D 2 1\nD 3 1\nU 2 1 0 5 1\n"), (2, 2, 1));
    assert_eq!(of("D 2 1\nD 3 1\nM 7 1 1\nD 1 1\n"), (3, 2, 0));
    assert_eq!(of("D 1 1\nD 2 1\nD 3 1\n"), (3, 0, 0));
    // A cycle dies at once.
    assert_eq!(of("U 0 3 1 5 1\nD 2 1\nD 3 1\nD 1 1\n"), (3, 0, 0));
}

#[test]
fn what_the_trace_does_not_explain_is_left_out() {
    let all = totals("A 1 18 [LNode; 0 2 1\nN 2 0 LNode; 0 0 1\nU 0 1 2 1 1\nU 0 1 2 2 1\nU 0 9 2 2 1\nM 7 9 1\n");
    assert_eq!((all.updates, all.left_out, all.sizes_unknown, all.touches), (1, 2, 1, 0));
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let said = |records: &str| {
        let text = format!("# Elephant Tracks, dialect et\n{records}# lost 0\n");
        let source = Source::from_bytes(text.into_bytes()).map_err(|error| error.to_string())?;
        let done = prepare(&source, Wanted::default(), tempfile::tempfile().unwrap());
        done.map(|done| done.tables.totals).map_err(|error| error.to_string())
    };
    let error = said("N 1 ffffffffffffffff LNode; 0 0 1\n").unwrap_err();
    assert!(error.contains("line 2: an object is larger than any JVM allocates"), "{error}");
    let error = said("A 1 0 [LNode; 0 ffffffff 1\nA 2 1000000008 [LNode; 0 0 1\n").unwrap_err();
    assert!(error.contains("line 3: an object is larger than any JVM allocates"), "{error}");
    // An array smaller than its elements gets the size that these need.
    let totals = said("A 1 18 [LNode; 0 100 1\n").unwrap();
    assert_eq!((totals.peak.bytes, totals.sizes_unknown), (16 + 4 * 256, 1));
}

/// Without a names file it is unknown that type 5 is a byte array, until one is too small for references.
#[test]
fn arrays_of_unknown_types_have_the_sizes_that_are_told() {
    let text = "# Elephant Tracks, dialect replayer\nA 1 24 5 0 1 1\nA 2 32 5 0 16 1\nA 3 24 5 0 2 1\nA 4 40 6 0 6 1\nU 4 1 2 1\nA 5 32 6 0 5 1\nU 5 1 3 1\nA 6 24 7 0 3 1\n# lost 0\n";
    let mut reader = prepared(text);
    let births: Vec<_> = all(&mut reader)
        .into_iter()
        .filter_map(|op| match op {
            Op::Birth { class, size, slots, .. } => Some((reader.tables().classes[class as usize].kind, size, slots)),
            _ => None,
        })
        .collect();
    let (references, numbers) = (ClassKind::References, ClassKind::Numbers);
    // Five references fit into 32 bytes with compact headers; this array has four.
    let ambiguous = [(references, 32, 4), (references, 24, 2)];
    assert_eq!(births[..4], [(references, 24, 1), (numbers, 32, 0), (numbers, 24, 0), (references, 40, 6)]);
    assert_eq!(births[4..], ambiguous);
    let totals = reader.tables().totals;
    assert_eq!((totals.sizes_unknown, totals.updates, totals.left_out, totals.allocated.bytes), (0, 2, 0, 176));
}

#[test]
fn a_trace_without_deaths_is_refused() {
    let text = "# Elephant Tracks, dialect et\n# events alloc,method\nN 1 10 LNode; 0 0 1\n# lost 0\n";
    let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
    let said = prepare(&source, Wanted::default(), tempfile::tempfile().unwrap()).map(drop).unwrap_err().to_string();
    assert!(said.contains("deaths cannot be computed") && said.ends_with("to replay the program"), "{said}");
}

fn oracle(text: &str) -> Result<(Vec<Op>, Tables), String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let done = prepare_oracle(Path::new("t.csv"), file, tempfile::tempfile().unwrap());
    let prepared = done.map_err(|error| error.to_string())?;
    let mut reader = OpsReader::of_file(Path::new("t.ops"), prepared.file).unwrap();
    Ok((all(&mut reader), prepared.tables))
}

#[test]
fn texts_of_dialect_oracle_are_births_and_deaths() {
    const HEADER: &str = "timestamp,event_type,object_id,size,site_id,thread_id,type_id\n";
    let (ops, tables) =
        oracle(&format!("{HEADER}0,alloc,5,20,3,1,9\n4,alloc,6,16,3,1,8\n5,free,5,20,3,2,9\n6,alloc,7,8,0,2,9\n"))
            .unwrap();
    let birth = |handle, class, size, site| Op::Birth { handle, class, size, slots: 0, site, initial: false };
    let thread = |thread| Op::Thread { thread };
    let expected =
        [thread(0), birth(1, 0, 24, 3), birth(2, 1, 16, 3), thread(1), Op::Death { handle: 1 }, birth(1, 0, 8, 0)];
    assert_eq!(ops, expected);
    assert_eq!((tables.handles, tables.totals.peak.bytes, tables.totals.at_end.bytes), (2, 40, 24));
    for (rows, said) in [
        (
            "0,alloc,5,20,3,1\n",
            "t.csv: line 2: not a row (a row is timestamp,event_type,object_id,size,site_id,thread_id,type_id)",
        ),
        ("0,alloc,5,18446744073709551615,3,1,9\n", "t.csv: line 2: an object is larger than any JVM allocates"),
        ("0,alloc,5,16,3,4294967296,9\n", "t.csv: line 2: not a row"),
        ("0,lend,5,20,3,1,9\n", "t.csv: line 2: not a row"),
        ("0,free,5,20,3,1,9\n", "t.csv: line 2: an object is freed that was not allocated"),
        ("0,alloc,5,20,3,1,9\n0,alloc,5,20,3,1,9\n", "t.csv: line 3: an object is allocated that was not freed"),
    ] {
        let error = oracle(&format!("{HEADER}{rows}")).unwrap_err();
        assert!(error.starts_with(said), "{error}");
    }
}
