use et_names::{FieldRefId, MethodId, SiteId};
use proptest::prelude::*;

use super::streams::Streams;
use super::{Packer, UnpackError, Unpacker};
use crate::event::{self, Event, ObjectHash, encode};

fn packed(events: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(Packer::default().pack(events, &mut out));
    out
}

fn unpacked(packed: &[u8], len: usize) -> Result<Vec<u8>, UnpackError> {
    let mut events = vec![0; len];
    Unpacker::default().unpack(packed, &mut events).map(|()| events)
}

fn encoded<'a>(events: impl IntoIterator<Item = Event<'a>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    events.into_iter().for_each(|event| encode(&event, &mut bytes));
    bytes
}

/// Events of every kind. Their numbers are mostly small, so that many are predicted.
fn events(numbers: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![8 => 1..8u32, 1 => Just(0), 1 => any::<u32>(), 1 => Just(u32::MAX)];
    proptest::collection::vec(number, numbers).prop_map(|numbers| event::any::events(numbers).concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_packed_comes_back(events in events(0..1600), repeats in 1..4usize) {
        let bytes = events.repeat(repeats);
        prop_assert_eq!(unpacked(&packed(&bytes), bytes.len()).unwrap(), bytes);
    }

    #[test]
    fn damage_is_an_error_or_other_events(
        bytes in events(1..400),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut packed = packed(&bytes);
        let at = at.index(packed.len());
        packed[at] = byte;
        if cut {
            packed.truncate(at);
        }
        let _ = unpacked(&packed, bytes.len());
    }

    #[test]
    fn no_streams_make_it_panic(packed in proptest::collection::vec(any::<u8>(), 0..400), words in 0..300usize) {
        let mut header = Vec::new();
        let quarter = packed.len() / 4;
        let part = |index: usize| &packed[index * quarter..][..quarter];
        Streams { codes: part(0), further: part(1), controls: part(2), values: part(3) }.write(&mut header);
        let _ = unpacked(&header, 4 * words);
    }
}

#[test]
fn packers_forget_the_last_block() {
    let loops = |method: u32| {
        let call = [Event::Entry { method: MethodId(method) }, Event::Exit { method: MethodId(method) }];
        encoded((0..500).flat_map(|_| call))
    };
    let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
    for bytes in [loops(7), loops(9), loops(7), Vec::new()] {
        let mut out = Vec::new();
        assert!(packer.pack(&bytes, &mut out));
        assert_eq!(out, packed(&bytes));
        let mut back = vec![0; bytes.len()];
        unpacker.unpack(&out, &mut back).unwrap();
        assert_eq!(back, bytes);
    }
}

#[test]
fn a_loop_costs_next_to_nothing() {
    let mut hash = 1;
    let bytes = encoded((0..3200).flat_map(|_| {
        hash = (u64::from(hash) * 16807 % 0x7fff_ffff) as u32;
        let object = ObjectHash(hash);
        [
            Event::New { site: SiteId(5), object, class: ObjectHash(77), known: false },
            Event::EntryOn { method: MethodId(6), receiver: object },
            Event::Exit { method: MethodId(6) },
            Event::PutStatic { field: FieldRefId(8), target: object },
        ]
    }));
    // One byte for each event, and one more for each that is neither an entry nor an exit: what follows the most
    // recently created object differs from what followed the one before.
    assert!(packed(&bytes).len() < 3200 * 6 + 150);
    let call = [Event::Entry { method: MethodId(1) }, Event::Exit { method: MethodId(1) }];
    assert!(packed(&encoded(call).repeat(3200)).len() < 3200 * 2 / 64 + 50);
    let leaf = |method, receiver| Event::Leaf { method: MethodId(method), receiver: ObjectHash(receiver) };
    let leaves = [leaf(1, 5), leaf(2, 0), leaf(3, 6), leaf(4, 0)];
    assert!(packed(&encoded(leaves).repeat(800)).len() < 3200 / 64 + 70);
}

#[test]
fn what_are_no_whole_events_is_not_packed() {
    let new = Event::New { site: SiteId(5), object: ObjectHash(6), class: ObjectHash(7), known: false };
    let bytes = encoded([Event::Exit { method: MethodId(1) }, new]);
    for damaged in [&bytes[..bytes.len() - 1], &bytes[..bytes.len() - 4], &[0; 8], &[0xff; 8]] {
        assert!(!Packer::default().pack(damaged, &mut Vec::new()));
    }
}

#[test]
fn damaged_streams_are_reported_with_what_is_wrong() {
    let bytes = encoded((1..90).map(|id| Event::Exit { method: MethodId(id * 77) }));
    let packed = packed(&bytes);
    let error = |packed: &[u8], len| unpacked(packed, len).unwrap_err();
    assert_eq!(error(&packed[..10], bytes.len()), UnpackError::CutOff);
    assert_eq!(error(&packed[..packed.len() - 4], bytes.len()), UnpackError::CutOff);
    assert_eq!(error(&packed, bytes.len() - 4), UnpackError::Length);
    assert_eq!(error(&packed, bytes.len() + 4), UnpackError::CutOff);
    assert_eq!(error(&packed, bytes.len() - 3), UnpackError::Length);
    let streams = |codes: &[u8]| {
        let mut out = Vec::new();
        Streams { codes, further: &[], controls: &[], values: &[] }.write(&mut out);
        out
    };
    assert_eq!(error(&streams(&[100]), 4), UnpackError::Code(100));
    assert_eq!(error(&streams(&[0]), 4), UnpackError::Event(0));
}

/// Traces of format version 2 have no leaf events and must still unpack to the bytes that were packed.
#[test]
fn events_without_leaves_are_packed_as_before_there_were_any() {
    let mut seed = 1;
    let mut next = |limit: u32| {
        seed = (u64::from(seed) * 16807 % 0x7fff_ffff) as u32;
        // Mostly small numbers, so that many are predicted.
        let limit = if seed % 5 == 0 { limit } else { limit.min(40) };
        seed % limit + 1
    };
    let mut events = Vec::new();
    for _ in 0..20_000 {
        let (method, object) = (MethodId(next(1 << 29)), ObjectHash(next(0x7fff_fff0)));
        events.push(match next(9) % 9 {
            0..=2 => Event::EntryOn { method, receiver: object },
            3 => Event::Entry { method },
            4..=5 => Event::Exit { method },
            6 => Event::PutField {
                field: FieldRefId(method.0),
                origin: object,
                target: ObjectHash(7),
                if_changed: false,
            },
            7 => Event::New { site: SiteId(method.0), object, class: ObjectHash(77), known: false },
            _ => Event::Made { object, class: ObjectHash(9), length: -1, fresh: true, constant: false },
        });
    }
    let packed = packed(&encoded(events));
    assert_eq!((packed.len(), crc32fast::hash(&packed)), (187224, 2376276703));
}
