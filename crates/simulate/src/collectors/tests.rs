use super::*;
use crate::events::{ArenaId, Checker};
use crate::ops::{Amount, Op};
use crate::testing::{all, death, node, nodes, prepared, program, put, put_static, reader_of};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Records all events.
#[derive(Default)]
struct Kept(Vec<(u64, Event)>);

impl Observer for Kept {
    fn event(&mut self, operation: u64, event: &Event) {
        self.0.push((operation, *event));
    }
}

/// A list whose second node is dropped; an array that holds a node for a while; a node that only a local holds, with a
/// reused handle; a cycle that dies.
fn story() -> Vec<Op> {
    vec![
        node(1),          // 0: a, the static field's
        put_static(0, 1), // 1
        node(2),          // 2: b
        put(1, 0, 2),     // 3: a holds b
        node(3),          // 4: c
        nodes(4, 2),      // 5: d, an array of 24 bytes
        put(4, 0, 3),     // 6: d holds c
        put_static(1, 4), // 7
        put(4, 0, 0),     // 8: and no more
        death(3),         // 9: c
        node(3),          // 10: e
        put(3, 0, 4),     // 11: e holds d
        put(1, 0, 0),     // 12: a holds b no more
        death(2),         // 13: b
        node(2),          // 14: f
        node(5),          // 15: g
        put(2, 0, 5),     // 16: f holds g
        put(5, 0, 2),     // 17: g holds f
        death(2),         // 18: f
        death(5),         // 19: g
        node(6),          // 20: h
        death(3),         // 21: e
    ]
}

/// Events of the story as text; addresses are relative to the beginning of the heap.
fn told(config: Config) -> Vec<String> {
    let (mut ops, mut kept) = (reader_of(&story()), Kept::default());
    let report = simulate(&mut ops, &config, &mut kept).unwrap();
    let mut checker = Checker::default();
    let at = |address: u64| address - world::BASE;
    let line = |(operation, event): &(u64, Event)| {
        checker.push(*operation, event).unwrap();
        let what = match *event {
            Event::NewArena { arena, .. } => format!("new_arena({})", arena.0),
            Event::DeleteArena { arena } => format!("delete_arena({})", arena.0),
            Event::NewObject { arena, object, class, size } => {
                assert_eq!(size, [16, 24][class as usize]);
                format!("new_object({}, {}, {class})", arena.0, at(object))
            }
            Event::DeleteObject { arena, object } => format!("delete_object({}, {})", arena.0, at(object)),
            Event::MoveObject { arena, object, new_arena, new_object } => {
                format!("move_object({}, {}, {}, {})", arena.0, at(object), new_arena.0, at(new_object))
            }
        };
        format!("{operation} {what}")
    };
    let lines = kept.0.iter().map(line).collect();
    let end = Amount { objects: checker.objects(), bytes: checker.bytes() };
    assert_eq!(report.at_end, end);
    assert_eq!(end.bytes, 56 + report.leaked.bytes);
    lines
}

/// Counts collections, and moves and deletes outside of them.
#[derive(Default)]
struct Collections {
    is_inside: bool,
    count: u64,
    outside: u64,
}

impl Observer for Collections {
    fn event(&mut self, _operation: u64, event: &Event) {
        let is_birth = matches!(event, Event::NewArena { .. } | Event::NewObject { .. });
        self.outside += u64::from(!self.is_inside && !is_birth);
        assert!(!(self.is_inside && matches!(event, Event::NewObject { .. })), "born inside a collection");
    }

    fn collection_begins(&mut self) {
        assert!(!std::mem::replace(&mut self.is_inside, true), "two at once");
    }

    fn collection_ends(&mut self, _used: Amount) {
        assert!(std::mem::replace(&mut self.is_inside, false), "it has not begun");
        self.count += 1;
    }
}

#[test]
fn collections_hold_what_collectors_do() {
    for collector in Collector::ALL {
        let mut seen = Collections::default();
        let report = simulate(&mut reader_of(&story()), &Config::new(collector, 256), &mut seen).unwrap();
        assert!(!seen.is_inside);
        assert_eq!(seen.count, report.full_collections + report.minor_collections, "{}", collector.name());
        // Reference counting frees outside of collections.
        assert_eq!(seen.outside > 0, collector == Collector::ReferenceCounting, "{}", collector.name());
    }
}

/// "Only one heap arena is needed. The collector sends a delete_object event when returning dead objects to the free-pool."
#[test]
fn mark_sweep_returns_objects_to_the_free_pool() {
    let expected = [
        "0 new_arena(1)",
        "0 new_object(1, 0, 0)",
        "2 new_object(1, 16, 0)",
        "4 new_object(1, 32, 0)",
        "5 new_object(1, 48, 1)",
        "10 new_object(1, 72, 0)",
        "14 delete_object(1, 16)",
        "14 delete_object(1, 32)",
        "14 new_object(1, 16, 0)",
        "15 new_object(1, 32, 0)",
        "20 delete_object(1, 16)",
        "20 delete_object(1, 32)",
        "20 new_object(1, 16, 0)",
        "22 delete_object(1, 72)",
    ];
    assert_eq!(told(Config::new(Collector::MarkSweep, 96)), expected);
}

/// "The collector would issue a move_object event in order to perform compaction: only one heap arena is used."
#[test]
fn mark_compact_moves_within_its_arena() {
    let expected = [
        "0 new_arena(1)",
        "0 new_object(1, 0, 0)",
        "2 new_object(1, 16, 0)",
        "4 new_object(1, 32, 0)",
        "5 new_object(1, 48, 1)",
        "10 new_object(1, 72, 0)",
        "14 delete_object(1, 16)",
        "14 delete_object(1, 32)",
        "14 move_object(1, 48, 1, 16)",
        "14 move_object(1, 72, 1, 40)",
        "14 new_object(1, 56, 0)",
        "15 new_object(1, 72, 0)",
        "20 delete_object(1, 56)",
        "20 delete_object(1, 72)",
        "20 new_object(1, 56, 0)",
        "22 delete_object(1, 40)",
        "22 move_object(1, 56, 1, 40)",
    ];
    assert_eq!(told(Config::new(Collector::MarkCompact, 96)), expected);
}

/// "Two new_arena events to create two heap arenas; … move_object as it scavenges the live objects; … a delete_arena event to delete the
/// old heap arena; … a new_arena event using the same arena id."
#[test]
fn copying_deletes_the_arena_it_has_left() {
    let expected = [
        "0 new_arena(1)",
        "0 new_arena(2)",
        "0 new_object(1, 0, 0)",
        "2 new_object(1, 16, 0)",
        "4 new_object(1, 32, 0)",
        "5 new_object(1, 48, 1)",
        "10 new_object(1, 72, 0)",
        "14 move_object(1, 0, 2, 96)",
        "14 move_object(1, 48, 2, 112)",
        "14 move_object(1, 72, 2, 136)",
        "14 delete_arena(1)",
        "14 new_arena(1)",
        "14 new_object(2, 152, 0)",
        "15 new_object(2, 168, 0)",
        "20 move_object(2, 96, 1, 0)",
        "20 move_object(2, 112, 1, 16)",
        "20 move_object(2, 136, 1, 40)",
        "20 delete_arena(2)",
        "20 new_arena(2)",
        "20 new_object(1, 56, 0)",
        "22 move_object(1, 0, 2, 96)",
        "22 move_object(1, 16, 2, 112)",
        "22 move_object(1, 56, 2, 136)",
        "22 delete_arena(1)",
        "22 new_arena(1)",
    ];
    assert_eq!(told(Config::new(Collector::Copying, 192)), expected);
}

/// "A new_arena event to create a heap arena for each generation; … move_object as live objects are scavenged from a younger generation to
/// an older; … all garbage in a heap arena is implicitly freed when the collector sends a delete_arena event to delete the youngest."
#[test]
fn generations_are_arenas() {
    let expected = [
        "0 new_arena(1)",
        "0 new_arena(2)",
        "0 new_object(1, 0, 0)",
        "2 new_object(1, 16, 0)",
        "4 new_object(1, 32, 0)",
        "5 move_object(1, 0, 2, 64)",
        "5 move_object(1, 32, 2, 80)",
        "5 move_object(1, 16, 2, 96)",
        "5 delete_arena(1)",
        "5 new_arena(1)",
        "5 new_object(1, 0, 1)",
        "10 new_object(1, 24, 0)",
        "14 new_object(1, 40, 0)",
        "15 delete_object(2, 80)",
        "15 delete_object(2, 96)",
        "15 move_object(1, 0, 2, 80)",
        "15 move_object(1, 40, 2, 104)",
        "15 move_object(1, 24, 2, 120)",
        "15 delete_arena(1)",
        "15 new_arena(1)",
        "15 new_object(1, 0, 0)",
        "20 new_object(1, 16, 0)",
        "22 delete_object(2, 104)",
        "22 delete_object(2, 120)",
        "22 move_object(1, 16, 2, 104)",
        "22 delete_arena(1)",
        "22 new_arena(1)",
    ];
    let config = Config { nursery: Some(64), ..Config::new(Collector::Generational, 160) };
    assert_eq!(told(config), expected);
}

/// "A delete_object event when the reference count of an object drops to zero." The cycle stays.
#[test]
fn counting_frees_at_once_and_leaks_cycles() {
    let start = [
        "0 new_arena(1)",
        "0 new_object(1, 0, 0)",
        "2 new_object(1, 16, 0)",
        "4 new_object(1, 32, 0)",
        "5 new_object(1, 48, 1)",
        "9 delete_object(1, 32)",
        "10 new_object(1, 32, 0)",
        "13 delete_object(1, 16)",
        "14 new_object(1, 16, 0)",
        "15 new_object(1, 72, 0)",
    ];
    let leaking = ["20 new_object(1, 88, 0)", "21 delete_object(1, 32)"];
    assert_eq!(told(Config::new(Collector::ReferenceCounting, 112)), [&start[..], &leaking[..]].concat());
    let mended =
        ["20 delete_object(1, 16)", "20 delete_object(1, 72)", "20 new_object(1, 16, 0)", "21 delete_object(1, 32)"];
    let config = Config { backup_trace: true, ..Config::new(Collector::ReferenceCounting, 96) };
    assert_eq!(told(config), [&start[..], &mended[..]].concat());
}

#[test]
fn a_heap_that_is_too_small_is_told_of_and_the_smallest_found() {
    let mut ops = reader_of(&story());
    let config = Config::new(Collector::ReferenceCounting, 96);
    let said = simulate(&mut ops, &config, &mut ()).unwrap_err().to_string();
    let expected =
        "a heap of 96 B is too small for reference-counting: at operation 20 there is no room for an object of 16 B";
    assert_eq!(said, expected);
    let many: Vec<Op> = (1..5000).map(node).collect();
    let mut ops = reader_of(&many);
    for (collector, times) in [(Collector::MarkSweep, 1), (Collector::MarkCompact, 1), (Collector::Copying, 2)] {
        let smallest = smallest_heap(&mut ops, &Config::new(collector, 0)).unwrap();
        let exact = 4999 * 16 * times;
        assert!((exact..exact + 1024).contains(&smallest), "{collector:?}: {smallest}, not {exact}");
        assert!(simulate(&mut ops, &Config::new(collector, smallest), &mut ()).is_ok());
        assert!(simulate(&mut ops, &Config::new(collector, exact - 16), &mut ()).is_err());
    }
}

/// Old garbage keeps young garbage alive until the old generation is collected.
#[test]
fn old_garbage_holds_young_garbage() {
    let mut ops = vec![node(1)];
    // The nursery holds four nodes; the first moves to the old generation.
    ops.extend((2..6).map(node));
    ops.extend([put(1, 0, 5), death(2), death(3), death(4), death(1), death(5)]);
    ops.extend((2..6).map(node));
    let config = Config { nursery: Some(64), ..Config::new(Collector::Generational, 64 + 1024) };
    let (mut ops, mut kept) = (reader_of(&ops), Kept::default());
    let report = simulate(&mut ops, &config, &mut kept).unwrap();
    let moved: Vec<u64> = report.collections.iter().map(|one| one.moved.objects).collect();
    // First all four; then node 5, referred to by dead node 1 only, and three new ones; at the end these slide over
    // the garbage, and the last leaves the nursery.
    assert_eq!(moved, [4, 4, 4]);
    assert_eq!((report.at_end.objects, report.leaked.objects), (4, 0));
}

/// Correct checksums do not prove operations consistent: a live object that refers to a dead one is refused.
#[test]
fn operations_that_let_the_living_hold_the_dead_are_refused() {
    let said = "test.ops: the operations file is damaged: operation";
    for ops in [
        vec![node(1), node(2), put(1, 0, 2), death(2)],
        vec![node(1), node(2), put(1, 0, 2), death(2), node(2)],
        vec![node(1), put_static(0, 1), death(1), node(1), put_static(0, 0)],
        vec![node(1), node(1)],
        vec![node(1), death(1), death(1)],
        vec![node(1), put(1, 1, 1)],
    ] {
        for collector in [Collector::MarkSweep, Collector::MarkCompact, Collector::Copying, Collector::Generational] {
            let error = simulate(&mut reader_of(&ops), &Config::new(collector, 1024), &mut ()).unwrap_err();
            assert!(error.to_string().starts_with(said), "{collector:?} {ops:?}: {error}");
        }
    }
}

#[test]
fn sizes_are_read() {
    let peak = Peak { bytes: 1000, ..Peak::default() };
    let bytes = |text: &str| text.parse::<HeapSize>().map(|size| size.bytes(&peak)).ok();
    assert_eq!(bytes("2x"), Some(2000));
    assert_eq!(bytes("1.5x"), Some(1488));
    assert_eq!(bytes("1e300x"), Some(1 << 46));
    assert_eq!(["64", "1k", "1M", "2g"].map(bytes), [Some(64), Some(1024), Some(1 << 20), Some(2 << 30)]);
    assert_eq!(["1.5k", "64KB", "1.5 MiB"].map(bytes), [Some(1536), Some(65536), Some(3 << 19)]);
    // Smaller sizes are rounded up.
    assert_eq!(["1", "0.001x"].map(bytes), [Some(16); 2]);
    // The suggested size can be typed.
    for (size, typed) in [(16, "16"), (1024, "1k"), (22_222 << 10, "22222k"), ((22_222 << 10) + 16, "22755344")] {
        assert_eq!((HeapSize::Bytes(size).typed().as_str(), bytes(typed)), (typed, Some(size)));
    }
    assert_eq!(["2xB", "64mii", "64mbB", "1e3k", "+64m", "1..5k"].map(bytes), [None; 6]);
    assert_eq!(
        [
            "",
            "x",
            "0",
            "-1x",
            "0x",
            "nanx",
            "infx",
            "infm",
            "MiB",
            "9999t",
            "99999999999999999999g",
            "17179869183g",
            "ä"
        ]
        .map(bytes),
        [None; 13]
    );
}

/// Replays events and operations side by side: at any time each live object is where its events say.
fn follow(ops: &[Op], events: &[(u64, Event)]) -> Result<Checker, TestCaseError> {
    let mut checker = Checker::default();
    let mut ids: BTreeMap<u32, (ArenaId, u64)> = BTreeMap::new();
    let mut names: BTreeMap<u64, u32> = BTreeMap::new();
    let mut events = events.iter().peekable();
    for (at, op) in (0..).zip(ops).map(|(at, op)| (at, Some(op))).chain([(ops.len() as u64, None)]) {
        while let Some((_, event)) = events.next_if(|(when, _)| *when == at) {
            if let Err(wrong) = checker.push(at, event) {
                return Err(TestCaseError::fail(wrong.to_string()));
            }
            match (*event, op) {
                (Event::NewObject { arena, object, .. }, Some(Op::Birth { handle, .. })) => {
                    prop_assert_eq!(ids.insert(*handle, (arena, object)), None);
                    names.insert(object, *handle);
                }
                (Event::NewObject { .. }, _) => return Err(TestCaseError::fail("an object that nobody made")),
                (Event::MoveObject { object, new_arena, new_object, .. }, _) => {
                    // In generations, garbage moves too.
                    if let Some(handle) = names.remove(&object) {
                        ids.insert(handle, (new_arena, new_object));
                        names.insert(new_object, handle);
                    }
                }
                _ => {}
            }
        }
        if let Some(Op::Death { handle }) = op
            && let Some((_, object)) = ids.remove(handle)
        {
            names.remove(&object);
        }
        for (handle, (_, object)) in &ids {
            prop_assert!(checker.has(*object), "operation {}: {} is gone", at, handle);
        }
    }
    prop_assert_eq!(events.next(), None);
    Ok(checker)
}

fn config() -> impl Strategy<Value = Config> {
    let collector = prop::sample::select(Collector::ALL.to_vec());
    (collector, 8..60u64, 1..12u64, any::<bool>()).prop_map(|(collector, heap, nursery, backup_trace)| Config {
        collector,
        heap: heap * 64,
        nursery: (nursery < 10).then_some(nursery * 32),
        backup_trace,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// For any program: no live object is lost, no dead one survives a full collection, and all events are valid.
    #[test]
    fn programs_at_random_run_on_all_collectors(text in program(), config in config()) {
        let mut reader = prepared(&text);
        let ops = all(&mut reader);
        let mut kept = Kept::default();
        let report = match simulate(&mut reader, &config, &mut kept) {
            Ok(report) => report,
            Err(SimulateError::TooSmall { .. }) => {
                let smallest = smallest_heap(&mut reader, &config).unwrap();
                prop_assert!(smallest > config.heap);
                let config = Config { heap: smallest, ..config };
                kept = Kept::default();
                simulate(&mut reader, &config, &mut kept).unwrap()
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let checker = follow(&ops, &kept.0)?;
        let at_end = reader.tables().totals.at_end;
        prop_assert_eq!(checker.objects(), report.at_end.objects);
        prop_assert_eq!(checker.bytes(), report.at_end.bytes);
        prop_assert_eq!(report.at_end.bytes - report.leaked.bytes, at_end.bytes);
        if config.collector != Collector::ReferenceCounting || config.backup_trace {
            prop_assert_eq!(report.at_end, at_end);
        }
        // Number of live objects before each operation.
        let mut alive = vec![0u64];
        for op in &ops {
            let now = alive[alive.len() - 1];
            alive.push(match op {
                Op::Birth { .. } => now + 1,
                Op::Death { .. } => now - 1,
                _ => now,
            });
        }
        for done in report.collections.iter().filter(|done| done.kind == CollectionKind::Full) {
            prop_assert_eq!(done.after.objects, alive[done.operation as usize]);
            prop_assert_eq!(done.reached.objects, done.after.objects);
        }
    }
}
