use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Events of every kind. About half of the numbers are small.
fn any_events() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let number = prop_oneof![any::<u32>(), 0..40u32];
    prop::collection::vec(number, 0..200).prop_map(any::events)
}

fn decode_all(mut bytes: &[u8]) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    while let Some((event, len)) = decode(bytes).unwrap() {
        events.push(event);
        bytes = &bytes[len..];
    }
    events
}

proptest! {
    #[test]
    fn events_come_back_as_they_were(events in any_events(), zeros in 0..5usize) {
        let count = events.len();
        let mut bytes = events.concat();
        let used = bytes.len();
        bytes.resize(used + zeros * WORD, 0);
        prop_assert_eq!(used_bytes(&bytes), used);
        let decoded = decode_all(&bytes);
        prop_assert_eq!(decoded.len(), count);
        let mut again = Vec::new();
        decoded.iter().for_each(|event| encode(event, &mut again));
        prop_assert_eq!(&again[..], &bytes[..used]);
    }

    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let used = used_bytes(&bytes);
        prop_assert!(used <= bytes.len());
        decode_all(&bytes[..used]);
        let _ = decode(&bytes);
    }
}

#[test]
fn the_encoding_is_the_documented_one() {
    let mut bytes = Vec::new();
    encode(&Event::Ticket(Ticket(0x12_3456_789a)), &mut bytes);
    assert_eq!(bytes, [7, 0x9a, 0x78, 0x56, 0x34, 0x12, 0, 0]);
    bytes.clear();
    encode(&Event::EntryOn { method: MethodId(1), receiver: ObjectHash(5) }, &mut bytes);
    assert_eq!(bytes, [6, 0, 0, 0, 5, 0, 0, 0]);
    bytes.clear();
    encode(&Event::Leaf { method: MethodId(1), receiver: ObjectHash(5) }, &mut bytes);
    assert_eq!(bytes, [6, 0, 0, 0, 5, 0, 0, 0x80]);
    bytes.clear();
    let targets = Targets::new(&[9, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    encode(&Event::PutElements { start: 3, array: ObjectHash(5), targets }, &mut bytes);
    assert_eq!(bytes, [15 << 2 | 3, 2, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn bits_above_an_id_are_dropped() {
    let words: [u32; 5] = [1 << 8 | kind::PUT_ELEMENTS << 2 | 3, 3, LEFT | 5, LEFT, 0];
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let Ok(Some((Event::PutElements { array, targets, .. }, _))) = decode(&bytes) else { panic!("no row") };
    assert_eq!((array, targets.iter().collect()), (ObjectHash(5), vec![ObjectHash::NULL]));
}

#[test]
fn a_row_of_elements_has_one_to_64_targets() {
    let first = |count: u32| count << 8 | kind::PUT_ELEMENTS << 2 | 3;
    assert_eq!([0, 1, 64, 65].map(|count| len_words(first(count))), [None, Some(4), Some(67), None]);
    assert_eq!(len_words(first(64)), Some(MAX_WORDS));
    assert!(Targets::new(&[]).is_none() && Targets::new(&[0; 6]).is_none() && Targets::new(&[0; 260]).is_none());
    assert!(matches!(decode(&first(0).to_le_bytes()), Err(EventError::Kind(_))));
}

#[test]
fn a_cut_event_is_not_counted_as_used() {
    let mut bytes = Vec::new();
    encode(&Event::Exit { method: MethodId(1) }, &mut bytes);
    encode(&Event::SuperCall { method: MethodId(1) }, &mut bytes);
    assert_eq!(used_bytes(&bytes[..8]), 4);
    assert!(matches!(decode(&bytes[4..8]), Err(EventError::CutOff { need: 2, have: 1, .. })));
}

/// `HeapProxyBuffer` writes first words itself: every one of its constants must match the table, and none may be
/// missing.
#[test]
fn the_java_hooks_use_the_same_numbers() {
    let java = include_str!("../../../../runtime-java/src/common/java/lang/HeapProxyBuffer.java");
    let written: BTreeMap<&str, u32> = java
        .lines()
        .filter_map(|line| line.trim().strip_prefix("static final int ")?.strip_suffix(" << 2 | 3;")?.split_once(" = "))
        .map(|(name, number)| (name, number.parse().expect("the number of a kind")))
        .collect();
    let defined: BTreeMap<&str, u32> = SHAPES.iter().map(|shape| (shape.constant, shape.kind)).collect();
    assert_eq!(written, defined);
    let bit = |kind: &str, part: &str| {
        let shape = SHAPES.iter().find(|shape| shape.constant == kind).expect("a kind");
        1_u32 << shape.payload.iter().find(|bits| bits.name == part).expect("a part of its payload").from
    };
    for (constant, kind, part) in [
        ("MADE_CONSTANT", "MADE", "constant"),
        ("MADE_FRESH", "MADE", "fresh"),
        ("NEW_KNOWN", "NEW", "known"),
        ("READ_FIELD", "PUT_FIELD", "if_changed"),
    ] {
        let line = format!("static final int {constant} = {} << 8 | {kind};", bit(kind, part));
        assert!(java.contains(&line), "{line}");
    }
    for line in [format!("MAX_ELEMENTS = {MAX_ELEMENTS};"), format!("LEFT = 1 << {};", LEFT.ilog2())] {
        assert!(java.contains(&line), "{line}");
    }
}
