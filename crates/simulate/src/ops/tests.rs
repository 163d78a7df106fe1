use super::*;
use crate::testing::{all, bytes_of, death, node, nodes, open, put, put_static, reader_of};

fn some() -> Vec<Op> {
    let bytes = |handle, size| Op::Birth { handle, class: 2, size, slots: 0, site: 9, initial: true };
    // An array whose size does not follow from its length, and objects whose size takes more than one word.
    let odd = Op::Birth { handle: 5, class: 1, size: 800, slots: 3, site: 2, initial: false };
    vec![
        Op::Thread { thread: 1 },
        Op::Tick { tick: 1 << 40 },
        node(1),
        nodes(2, 1000),
        bytes(3, 24),
        bytes(4, 1 << 36),
        odd,
        put(2, 999, 1),
        put(5, 2, 5),
        put_static(0, 2),
        Op::Touch { handle: 2 },
        put_static(3, 0),
        death(5),
        Op::Thread { thread: 0 },
    ]
}

#[test]
fn what_is_written_is_read() {
    let mut reader = reader_of(&some());
    assert_eq!(all(&mut reader), some());
    assert_eq!(all(&mut reader), some(), "and again");
    assert_eq!(reader.operations(), 14);
    let tables = reader.tables();
    assert_eq!((tables.handles, tables.static_fields), (5, 4));
}

/// More operations than fit into one buffer.
#[test]
fn long_files_are_read_to_their_end() {
    let ops: Vec<Op> =
        (0..100_000u32).flat_map(|at| [node(at % 7 + 1), put(at % 7 + 1, 0, 0), death(at % 7 + 1)]).collect();
    let mut reader = reader_of(&ops);
    assert!(reader.ops_bytes() > 1 << 20);
    assert_eq!(all(&mut reader), ops);
}

#[test]
fn an_operation_takes_sixteen_bytes_at_most() {
    let usual: Vec<Op> = some().into_iter().filter(|op| !matches!(op, Op::Birth { handle: 4 | 5, .. })).collect();
    for op in usual {
        let with_births: Vec<Op> = [node(1), nodes(2, 1000), nodes(5, 3)].into_iter().chain([op]).collect();
        let bytes = |ops: &[Op]| reader_of(ops).ops_bytes();
        assert!(bytes(&with_births) - bytes(&with_births[..3]) <= 16, "{op:?}");
    }
}

#[test]
fn files_that_are_cut_anywhere_are_refused() {
    let bytes = bytes_of(&some());
    assert!(open(&bytes).is_ok());
    for length in 0..bytes.len() {
        let said = open(&bytes[..length]).map(drop).unwrap_err();
        let expected = if length < 8 { "not an operations file" } else { "cut off: it has" };
        assert!(said.contains(expected) && !said.contains('\n'), "{length}: {said}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(open(&longer).map(drop).unwrap_err().contains("bytes, 1 too many"));
}

#[test]
fn files_with_a_changed_byte_are_refused() {
    let bytes = bytes_of(&some());
    for at in 0..bytes.len() {
        let mut bent = bytes.clone();
        bent[at] ^= 0x40;
        let said = open(&bent).map(drop).unwrap_err();
        let expected = match at {
            0..8 => "not an operations file",
            8..12 => "of format version",
            _ => "damaged",
        };
        assert!(said.contains(expected), "{at}: {said}");
    }
}

#[test]
fn files_of_other_versions_and_machines_are_refused() {
    let mut bytes = bytes_of(&some());
    bytes[8] = 9;
    let said = open(&bytes).map(drop).unwrap_err();
    assert_eq!(said, "test.ops: operations of format version 9, this tool reads version 1: prepare the trace again");
    // All numbers of the header in the other byte order.
    let mut other = bytes_of(&some());
    other[8..12].reverse();
    other[12..16].reverse();
    other[16..64].chunks_mut(8).for_each(<[u8]>::reverse);
    let said = open(&other).map(drop).unwrap_err();
    assert_eq!(said, "test.ops: written on a machine with another byte order: prepare the trace again");
}

/// Correct checksums do not prove operations valid.
#[test]
fn operations_that_name_nothing_are_refused() {
    let with_tables = |ops: &[Op], change: fn(&mut Tables)| {
        let mut tables = reader_of(&some()).tables().clone();
        change(&mut tables);
        let mut writer = OpsWriter::new(tempfile::tempfile().unwrap(), Layout::default()).unwrap();
        for op in ops {
            match op {
                Op::Birth { .. } => writer.birth(op, &tables.classes[0]).unwrap(),
                op => writer.push(*op).unwrap(),
            }
        }
        let mut reader = OpsReader::of_file("test.ops".as_ref(), writer.finish(&tables).unwrap()).unwrap();
        loop {
            match reader.next_op() {
                Ok(Some(_)) => {}
                Ok(None) => return String::new(),
                Err(error) => return error.to_string(),
            }
        }
    };
    assert_eq!(with_tables(&[node(1)], |_| {}), "");
    let said = "test.ops: the operations file is damaged: operation 1 is invalid: prepare the trace again";
    for op in [
        node(6),
        Op::Birth { handle: 1, class: 3, size: 16, slots: 0, site: 0, initial: false },
        put(6, 0, 1),
        put(1, 0, 6),
        put_static(4, 1),
        put_static(0, 6),
        death(0),
        death(6),
        Op::Touch { handle: 6 },
        Op::Thread { thread: 2 },
    ] {
        assert_eq!(with_tables(&[node(1), op], |_| {}), said, "{op:?}");
    }
}

/// Table contents determine how much memory a replay takes.
#[test]
fn tables_that_cannot_be_are_refused() {
    let said = |change: fn(&mut Tables)| {
        let mut tables = reader_of(&some()).tables().clone();
        change(&mut tables);
        let mut writer = OpsWriter::new(tempfile::tempfile().unwrap(), Layout::default()).unwrap();
        for op in [node(1), node(2), node(3), node(4), node(5), put_static(3, 0)] {
            match op {
                Op::Birth { .. } => writer.birth(&op, &tables.classes[0]).unwrap(),
                op => writer.push(op).unwrap(),
            }
        }
        let opened = OpsReader::of_file("test.ops".as_ref(), writer.finish(&tables).unwrap());
        opened.map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert_eq!(said(|_| {}), "");
    for change in [
        |tables: &mut Tables| tables.handles = 100,
        |tables: &mut Tables| tables.handles = u32::MAX,
        |tables: &mut Tables| tables.static_fields = u32::MAX,
        |tables: &mut Tables| tables.classes[0].slots = u32::MAX,
        |tables: &mut Tables| tables.layout.reference_bytes = 0,
        |tables: &mut Tables| tables.layout.header_bytes = 1 << 31,
        |tables: &mut Tables| tables.layout.array_base = u32::MAX,
    ] {
        assert!(said(change).contains("its tables do not match its operations"), "{}", said(change));
    }
}
