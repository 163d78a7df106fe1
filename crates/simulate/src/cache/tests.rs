use super::*;
use crate::collectors::{Collector, Config, simulate};
use crate::testing::{death, node, nodes, put, reader_of};
use proptest::prelude::*;
use std::collections::VecDeque;

fn spec(text: &str) -> CacheSpec {
    text.parse().unwrap()
}

#[test]
fn caches_are_read() {
    let expected = CacheSpec { name: "l1".into(), bytes: 32 << 10, ways: 8, line: 64 };
    assert_eq!(spec("l1=32k,8,64"), expected);
    assert_eq!(spec("l2=1m,16,64").bytes, 1 << 20);
    for wrong in [
        "",
        "l1",
        "l1=32k",
        "l1=32k,8",
        "l1=32k,8,64,1",
        "=32k,8,64",
        "l1=0,8,64",
        "l1=32k,0,64",
        "l1=32k,8,60",
        "l1=32k,7,64",
        "l1=99999999999999999k,8,64",
        "l1=1024m,1,1",
    ] {
        assert!(wrong.parse::<CacheSpec>().is_err(), "{wrong}");
    }
    for (wrong, why) in [
        ("=32k,8,64", "NAME=BYTES,WAYS,LINE"),
        ("l1=32k,8,60", "a line of 60 bytes is not a power of two"),
        ("l1=0,8,64", "0 bytes are not a whole number of sets of 8 lines of 64 bytes"),
        ("l1=1g,1,1", "1073741824 lines are more than the 16777216 that can be simulated"),
    ] {
        assert!(wrong.parse::<CacheSpec>().unwrap_err().contains(why), "{wrong}");
    }
}

#[test]
fn levels_are_asked_for_whole_lines() {
    let checked = |texts: &[&str]| check(&texts.iter().map(|text| spec(text)).collect::<Vec<_>>());
    assert_eq!(checked(&["l1=32k,8,64", "l2=1m,16,64", "l3=8m,16,128"]), Ok(()));
    let said = checked(&["l1=32k,8,64", "l2=1m,16,32"]).unwrap_err().to_string();
    assert_eq!(
        said,
        "l2 has lines of 32 bytes, but l1, the level before it, has lines of 64: lines must not get shorter"
    );
    let said = checked(&["l1=32k,8,64", "l2=1m,16,64", "l1=1m,16,64"]).unwrap_err().to_string();
    assert_eq!(said, "two caches have the name l1");
    assert_eq!(spec("l2=1m,16,64").to_string(), "l2=1048576,16,64");
    assert_eq!(spec(&spec("l2=1m,16,64").to_string()), spec("l2=1m,16,64"));
}

/// A level named `tlb` is not the TLB that `--tlb` adds.
#[test]
fn a_level_can_be_called_tlb() {
    let mut reader = reader_of(&[node(1), node(2)]);
    let tables = reader.tables().clone();
    let mut caches = Caches::new(&[spec("tlb=64k,4,4096")], Some(4), &tables);
    simulate(&mut reader, &Config::new(Collector::MarkSweep, 1024), &mut caches).unwrap();
    let text = render(&caches.report("here".into(), &tables, 9));
    assert_eq!(text.matches("tlb misses").count(), 2, "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("tlb ")).count(), 2, "{text}");
}

/// An array of 64 KiB is written once, then its first element repeatedly: with any allocator each of its lines is
/// missed once.
#[test]
fn an_allocator_of_this_process_can_place_the_objects() {
    let mut ops = vec![nodes(1, 16 * 1024)];
    (0..100).for_each(|_| ops.extend([node(2), put(1, 0, 2), put(1, 0, 0), death(2)]));
    let specs = [spec("l1=32k,8,64"), spec("l2=1m,16,64")];
    let report = under::<crate::allocate::System>(&mut reader_of(&ops), "system", &specs, Some(64), 9).unwrap();
    assert_eq!(report.collector_accesses, 0);
    let lines = report.classes.iter().find(|line| line.name == "Node[]").unwrap();
    // The array may begin in the middle of a line.
    let written = (64 * 1024 + 16u64) / 64;
    assert!((written..written + 2).contains(&lines.misses[1]), "{lines:?}");
    assert!((written + 200..written + 203).contains(&lines.accesses), "{lines:?}");
    let nodes = report.classes.iter().find(|line| line.name == "Node").unwrap();
    assert!((100..=200).contains(&nodes.accesses) && nodes.misses[0] < 10, "{nodes:?}");
    assert!(report.tlb.is_some_and(|tlb| tlb.mutator_misses >= 16));
}

/// Reference model: each set is a queue of lines.
fn misses(spec: &CacheSpec, addresses: &[u64]) -> u64 {
    let mut sets = vec![VecDeque::new(); (spec.bytes / spec.line / spec.ways) as usize];
    let count = sets.len() as u64;
    let mut misses = 0;
    for address in addresses {
        let line = address / spec.line;
        let set: &mut VecDeque<u64> = &mut sets[(line % count) as usize];
        match set.iter().position(|&known| known == line) {
            Some(at) => _ = set.remove(at),
            None => misses += 1,
        }
        set.push_front(line);
        set.truncate(spec.ways as usize);
    }
    misses
}

proptest! {
    #[test]
    fn levels_replace_what_was_used_least_recently(
        ways in 1..5u64,
        sets in 1..5u64,
        addresses in prop::collection::vec(0..2000u64, 0..400),
    ) {
        let spec = CacheSpec { name: "l1".into(), bytes: ways * sets * 32, ways, line: 32 };
        let mut level = Level::new(&spec);
        let found = addresses.iter().filter(|&&address| !level.access(address)).count() as u64;
        prop_assert_eq!(found, misses(&spec, &addresses));
    }
}

/// An array twice as large as the first level is read by each collection: every line misses the first level and hits
/// the second.
#[test]
fn misses_are_told_by_level_class_and_phase() {
    // 2 KiB, 32 lines; first in the heap.
    let mut ops = vec![nodes(1, 508), node(2), put(1, 3, 2)];
    (0..100).for_each(|_| ops.extend([node(3), death(3)]));
    let mut reader = reader_of(&ops);
    let tables = reader.tables().clone();
    let mut caches = Caches::new(&[spec("l1=1k,2,64"), spec("l2=64k,4,64")], Some(4), &tables);
    let config = Config::new(Collector::MarkSweep, 2048 + 16 + 160);
    let done = simulate(&mut reader, &config, &mut caches).unwrap();
    let report = caches.report("here".into(), &tables, 9);
    let ([first, second], Some(tlb)) = (&report.levels[..], &report.tlb) else { panic!("{report:?}") };
    assert_eq!((&*first.name, &*second.name, &*tlb.name), ("l1", "l2", "tlb"));
    let all = report.mutator_accesses + report.collector_accesses;
    assert_eq!((first.accesses, tlb.accesses), (all, all));
    assert_eq!(second.accesses, first.mutator_misses + first.collector_misses);
    // Objects of 2 KiB, 16 and 160 bytes begin at a multiple of the line size of each level and of the page size.
    assert_eq!(second.mutator_misses + second.collector_misses, (2048u64 + 16 + 160).div_ceil(64));
    assert_eq!((tlb.mutator_misses, tlb.collector_misses), (1, 0));
    assert!(first.collector_misses >= 32 * done.full_collections, "{first:?}");
    let classes: Vec<&str> = report.classes.iter().map(|line| &*line.name).collect();
    assert_eq!(classes, ["Node[]", "Node"]);
    assert_eq!(report.classes[0].misses[1], 32);
    assert!(render(&report).contains("Node[]"));
}
