use et_names::{MethodId, SiteId};
use proptest::prelude::*;

use super::collector::{Collected, Fate};
use super::*;
use crate::event::{Event, ObjectHash, Ticket, encode};

fn object() -> impl Strategy<Value = ObjectHash> {
    (0..1u32 << 31).prop_map(ObjectHash)
}

#[test]
fn an_impossible_length_is_refused_before_memory_is_taken_for_it() {
    let mut block = Vec::new();
    write_block(&mut block, BlockKind::Events, Codec::Zstd, 1, 0, Ticket(1), &[7; 1 << 16]).unwrap();
    let header = BlockHeader::decode(&block).unwrap().unwrap();
    assert_eq!(header.codec, Codec::Zstd);
    let claims = BlockHeader { raw_len: MAX_BLOCK as u32, ..header };
    assert!(matches!(BlockHeader::decode(&claims.encode()), Err(FormatError::Header("raw length", _))));
}

#[test]
fn an_unknown_codec_is_said_by_its_number() {
    let (_, mut block) = packed_block();
    for unknown in [1, 3, 6] {
        block[5] = unknown;
        assert_eq!(BlockHeader::decode(&block), Err(FormatError::Codec(unknown)));
    }
}

/// A packed block of many events: its raw and its encoded bytes.
fn packed_block() -> (Vec<u8>, Vec<u8>) {
    let mut raw = Vec::new();
    for id in 0..3000 {
        let method = MethodId(1 + id % 7);
        encode(&Event::EntryOn { method, receiver: ObjectHash(1 + id * 7919 % 10_007) }, &mut raw);
        encode(&Event::Exit { method }, &mut raw);
    }
    let mut block = Vec::new();
    write_block(&mut block, BlockKind::Events, Codec::Packed, 1, 0, Ticket(1), &raw).unwrap();
    (raw, block)
}

#[test]
fn events_are_packed_and_come_back() {
    let (raw, block) = packed_block();
    let header = BlockHeader::decode(&block).unwrap().unwrap();
    let stored = &block[BLOCK_HEADER..];
    assert_eq!((header.codec, header.raw_len as usize), (Codec::Packed, raw.len()));
    assert_eq!(*header.unpack(stored).unwrap(), raw);
    let len = packed_len(&header, stored) as usize;
    assert!(stored.len() < len && len < raw.len() * 2 / 3, "{} {len} {}", stored.len(), raw.len());
}

/// No timestamps, only the first, and both.
fn walls() -> [Option<Wall>; 3] {
    let begin = Nanos(1 << 40);
    [None, Some(Wall { begin, end: None }), Some(Wall { begin, end: Some(Nanos((1 << 40) + 1)) })]
}

#[test]
fn blocks_tell_when_they_happened() {
    let (raw, _) = packed_block();
    for (codec, raw) in [(Codec::Packed, raw.as_slice()), (Codec::Zstd, &raw[..999]), (Codec::Stored, &raw[..99])] {
        for wall in walls() {
            let mut block = Vec::new();
            let new =
                NewBlock { kind: BlockKind::Events, codec, thread: 1, sequence: 0, first_ticket: Ticket(1), wall };
            BlockPacker::default().write(&mut block, new, raw).unwrap();
            let header = BlockHeader::decode(&block).unwrap().unwrap();
            assert_eq!((header.codec, BlockHeader::decode(&header.encode())), (codec, Ok(Some(header))));
            let stored = &mut block[BLOCK_HEADER..];
            assert_eq!((header.stored_len as usize, header.wall(stored)), (stored.len(), wall));
            assert_eq!(*header.unpack(stored).unwrap(), *raw);
            assert!((packed_len(&header, stored) as usize) <= raw.len());
            // The checksum covers the times.
            stored[0] ^= 1;
            assert!(matches!(header.unpack(stored), Err(FormatError::Checksum { .. })));
        }
    }
}

#[test]
fn flags_of_later_versions_and_times_without_room_are_refused() {
    let (_, mut block) = packed_block();
    block[6] = 2;
    assert_eq!(BlockHeader::decode(&block), Err(FormatError::Header("flags", 2)));
    block[6] = 1;
    block[16..20].copy_from_slice(&15u32.to_le_bytes());
    assert_eq!(BlockHeader::decode(&block), Err(FormatError::Header("stored length", 15)));
}

#[test]
fn a_packer_packs_what_it_can() {
    let (raw, _) = packed_block();
    let mut packer = BlockPacker::default();
    let mut codec_of = |kind, codec, raw: &[u8]| {
        let mut block = Vec::new();
        let new = NewBlock { kind, codec, thread: 1, sequence: 0, first_ticket: Ticket(1), wall: None };
        packer.write(&mut block, new, raw).unwrap();
        let header = BlockHeader::decode(&block).unwrap().unwrap();
        assert_eq!(*header.unpack(&block[BLOCK_HEADER..]).unwrap(), *raw);
        header.codec
    };
    assert_eq!(codec_of(BlockKind::Events, Codec::Packed, &raw), Codec::Packed);
    // Few events, bytes that are not events, half an event, and no events at all.
    assert_eq!(codec_of(BlockKind::Events, Codec::Packed, &raw[..120]), Codec::Zstd);
    assert_eq!(codec_of(BlockKind::Events, Codec::Packed, &[0; 9000]), Codec::Zstd);
    assert_eq!(codec_of(BlockKind::Events, Codec::Packed, &raw[..raw.len() - 8]), Codec::Zstd);
    assert_eq!(codec_of(BlockKind::Names, Codec::Packed, &raw), Codec::Zstd);
    assert_eq!(codec_of(BlockKind::Events, Codec::Zstd, &raw), Codec::Zstd);
    assert_eq!(codec_of(BlockKind::Events, Codec::Packed, &[1, 2, 3]), Codec::Stored);
}

/// Counts and stacks as the runtime writes them, many of each.
fn counts_and_stacks() -> [(BlockKind, Vec<u8>); 2] {
    let (mut counts, mut stacks) = (Vec::new(), Vec::new());
    event::encode(&Event::Ticket(Ticket(7)), &mut counts);
    for number in 0..13_000_u32 {
        // In an order like that of first uses: more or less at random.
        let site = SiteId(STACK | (number.wrapping_mul(2_654_435_761) >> 12));
        let (class, objects) = (ObjectHash(1 + number % 97), 1 + number % 5);
        encode(&Event::Counted { site, class, objects, units: 3 * objects }, &mut counts);
        StackRecord::Frame { number: 1 + number, caller: number, site: 9 }.encode(&mut stacks);
    }
    [(BlockKind::Events, counts), (BlockKind::Stacks, stacks)]
}

/// The events of a block, sorted: counts have no order.
fn sorted(raw: &[u8]) -> Vec<String> {
    let mut at = 0;
    let mut all: Vec<String> = std::iter::from_fn(|| {
        let (event, len) = event::decode(&raw[at..]).unwrap()?;
        at += len;
        Some(format!("{event:?}"))
    })
    .collect();
    all.sort();
    all
}

#[test]
fn counts_and_stacks_become_columns() {
    let mut packer = BlockPacker::default();
    for (kind, raw) in counts_and_stacks() {
        for (codec, expected) in
            [(Codec::Packed, Codec::Columns), (Codec::Zstd, Codec::Columns), (Codec::Stored, Codec::Stored)]
        {
            for wall in [None, Wall::from_fields(5, 9)] {
                let mut block = Vec::new();
                let new = NewBlock { kind, codec, thread: 1, sequence: 0, first_ticket: Ticket(7), wall };
                packer.write(&mut block, new, &raw).unwrap();
                let header = BlockHeader::decode(&block).unwrap().unwrap();
                let found = header.unpack(&block[BLOCK_HEADER..]).unwrap();
                assert_eq!((header.codec, found.len()), (expected, raw.len()));
                match kind {
                    BlockKind::Events => assert_eq!(sorted(&found), sorted(&raw)),
                    _ => assert_eq!(*found, *raw),
                }
            }
        }
        assert!(packer.events() == if kind == BlockKind::Events { 13_000 } else { 0 });
    }
}

/// However much columns shrink, readers take what is written.
#[test]
fn the_most_regular_columns_are_read() {
    let (mut counts, mut stacks) = (Vec::new(), Vec::new());
    for number in 0..300_000 {
        let (site, class) = (SiteId(1), ObjectHash(2));
        encode(&Event::Counted { site, class, objects: 1, units: 2 }, &mut counts);
        StackRecord::Frame { number: 1 + number, caller: number, site: 9 }.encode(&mut stacks);
    }
    for (kind, raw) in [(BlockKind::Events, counts), (BlockKind::Stacks, stacks)] {
        let mut block = Vec::new();
        write_block(&mut block, kind, Codec::Packed, 1, 0, Ticket(1), &raw).unwrap();
        let header = BlockHeader::decode(&block).unwrap().unwrap();
        assert_eq!(*header.unpack(&block[BLOCK_HEADER..]).unwrap(), raw, "{} bytes", block.len());
    }
}

#[test]
fn damaged_columns_are_errors() {
    for (kind, raw) in counts_and_stacks() {
        let mut block = Vec::new();
        write_block(&mut block, kind, Codec::Packed, 1, 0, Ticket(7), &raw).unwrap();
        let header = BlockHeader::decode(&block).unwrap().unwrap();
        let mut stored = block[BLOCK_HEADER..].to_vec();
        for raw_len in [0, header.raw_len - 1, header.raw_len + 20, u32::MAX] {
            assert!(BlockHeader { raw_len, ..header }.unpack(&stored).is_err(), "{raw_len}");
        }
        for kind in [BlockKind::Names, BlockKind::Gcs] {
            assert!(BlockHeader { kind, ..header }.unpack(&stored).is_err(), "{kind:?}");
        }
        stored[..4].fill(0xff);
        assert!(BlockHeader { crc: crc32fast::hash(&stored), ..header }.unpack(&stored).is_err());
    }
}

#[test]
fn events_are_counted_however_they_are_packed() {
    let (raw, _) = packed_block();
    let mut packer = BlockPacker::default();
    let mut counted = |kind, codec, raw: &[u8]| {
        let new = NewBlock { kind, codec, thread: 1, sequence: 0, first_ticket: Ticket(1), wall: None };
        packer.write(&mut Vec::new(), new, raw).unwrap();
        packer.events()
    };
    // A ticket does not count as an event.
    let mut with_ticket = raw.clone();
    event::encode(&event::Event::Ticket(Ticket(7)), &mut with_ticket);
    let count = event::count(&raw);
    assert!(count > 100);
    for codec in [Codec::Packed, Codec::Zstd, Codec::Stored] {
        assert_eq!(counted(BlockKind::Events, codec, &raw), count);
        assert_eq!(counted(BlockKind::Events, codec, &with_ticket), count);
        assert_eq!(counted(BlockKind::Names, codec, &raw), 0);
    }
}

#[test]
fn a_block_gets_its_number_later() {
    let (raw, mut block) = packed_block();
    BlockHeader::set_sequence(&mut block, 0x0102_0304_0506_0708);
    let header = BlockHeader::decode(&block).unwrap().unwrap();
    assert_eq!(header.sequence, 0x0102_0304_0506_0708);
    assert_eq!(*header.unpack(&block[BLOCK_HEADER..]).unwrap(), raw);
    BlockHeader::set_sequence(&mut [], 1);
}

/// Threads of a Java program pack on their own stacks, which may be nearly full: using more stack than documented would
/// crash this process.
#[test]
fn a_prepared_packer_needs_little_of_the_stack() {
    let (raw, _) = packed_block();
    let large: Vec<u8> = raw.iter().copied().cycle().take(raw.len() * (1 + (256 << 10) / raw.len())).collect();
    let [counts, stacks] = counts_and_stacks();
    for (kind, raw) in [(BlockKind::Events, large), counts, stacks] {
        let mut packer = BlockPacker::default();
        packer.prepare();
        // Stack that the thread itself needs.
        let thread = std::thread::Builder::new().stack_size(BlockPacker::STACK + (16 << 10));
        let sizes = thread.spawn(move || {
            [false, true].map(|is_hurried| {
                let mut block = Vec::new();
                let (codec, first_ticket) = (Codec::Packed, Ticket(1));
                packer.hurry(is_hurried);
                let new = NewBlock { kind, codec, thread: 1, sequence: 0, first_ticket, wall: None };
                packer.write(&mut block, new, &raw).unwrap();
                block.len()
            })
        });
        assert!(sizes.unwrap().join().unwrap().into_iter().all(|size| size > BLOCK_HEADER));
    }
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    // These pages are never touched, so they take no memory.
    let raw = vec![0; MAX_BLOCK + 1];
    for codec in [Codec::Stored, Codec::Zstd, Codec::Packed] {
        let mut out = Vec::new();
        let refused = write_block(&mut out, BlockKind::InitialObjects, codec, 0, 0, Ticket(0), &raw);
        assert_eq!((refused, out.len()), (Err(FormatError::TooLarge(raw.len())), 0));
    }
}

#[test]
fn a_hurried_packer_packs_as_well() {
    let (raw, _) = packed_block();
    let mut packer = BlockPacker::default();
    let mut sizes = Vec::new();
    for is_hurried in [false, true, false] {
        let mut block = Vec::new();
        packer.hurry(is_hurried);
        let (kind, codec, first_ticket) = (BlockKind::Events, Codec::Packed, Ticket(1));
        packer
            .write(&mut block, NewBlock { kind, codec, thread: 1, sequence: 0, first_ticket, wall: None }, &raw)
            .unwrap();
        let header = BlockHeader::decode(&block).unwrap().unwrap();
        assert_eq!(header.codec, Codec::Packed);
        assert_eq!(*header.unpack(&block[BLOCK_HEADER..]).unwrap(), raw);
        sizes.push(block.len());
    }
    assert!(sizes[0] == sizes[2] && sizes[0] < sizes[1], "{sizes:?}");
}

#[test]
fn damaged_packed_events_are_an_error() {
    let (raw, block) = packed_block();
    let header = BlockHeader::decode(&block).unwrap().unwrap();
    let stored = &block[BLOCK_HEADER..];
    let unpacked = |stored: &[u8], raw_len: usize| {
        let crc = crc32fast::hash(stored);
        let header = BlockHeader { crc, raw_len: raw_len as u32, stored_len: stored.len() as u32, ..header };
        header.unpack(stored).map(|raw| raw.len())
    };
    let message = |result: Result<usize, FormatError>| result.unwrap_err().to_string();
    assert_eq!(message(unpacked(stored, raw.len() + 4)), "block does not unpack: packed content ends too early");
    assert_eq!(
        message(unpacked(&[0xff; 4], raw.len())),
        "block does not unpack: 4294967295 bytes of packed content are too many"
    );
    assert!(message(unpacked(&stored[..2], raw.len())).starts_with("block does not unpack"));
    assert!(message(unpacked(&stored[..stored.len() / 2], raw.len())).starts_with("block does not unpack"));
    let claims = BlockHeader { raw_len: 1 << 25, ..header };
    assert!(matches!(BlockHeader::decode(&claims.encode()), Err(FormatError::Header("raw length", _))));
}

proptest! {
    #[test]
    fn blocks_come_back_as_they_were(
        raw in prop::collection::vec(0u8..4, 0..2000), is_zstd: bool, thread in 0..THREAD_LIMIT, sequence: u64, ticket: u64,
    ) {
        let codec = if is_zstd { Codec::Zstd } else { Codec::Stored };
        let mut file = Vec::new();
        write_block(&mut file, BlockKind::Events, codec, thread, sequence, Ticket(ticket), &raw).unwrap();
        let header = BlockHeader::decode(&file).unwrap().unwrap();
        prop_assert_eq!(BlockHeader::decode(&header.encode()).unwrap().unwrap(), header);
        prop_assert_eq!((header.thread, header.sequence, header.first_ticket), (thread, sequence, Ticket(ticket)));
        let stored = &file[BLOCK_HEADER..];
        prop_assert_eq!(stored.len(), header.stored_len as usize);
        prop_assert_eq!(header.unpack(stored).unwrap().into_owned(), raw);
        if let Some(at) = stored.len().checked_sub(1) {
            let mut damaged = stored.to_vec();
            damaged[at] ^= 1;
            let caught = matches!(header.unpack(&damaged), Err(FormatError::Checksum { .. }));
            prop_assert!(caught);
        }
    }

    #[test]
    fn class_records_come_back(
        ticket: u64, class in object(), superclass in object(), loader in object(),
        sizes in (any::<u32>(), any::<u32>(), any::<u32>()), signature in ".*",
    ) {
        let record = ClassRecord {
            ticket: Ticket(ticket), class, superclass, loader, signature,
            instance_size: sizes.0, mirror_size: sizes.1, flags: sizes.2,
        };
        let mut raw = Vec::new();
        record.encode(&mut raw);
        record.encode(&mut raw);
        prop_assert_eq!(ClassRecord::decode_block(&raw).unwrap(), vec![record.clone(), record]);
        prop_assert!(ClassRecord::decode_block(&raw[..raw.len() - 1]).is_err());
    }

    #[test]
    fn thread_records_come_back(
        ticket: u64, thread in 0..THREAD_LIMIT, object in object(), flags: u32, name in ".*",
        frames in prop::collection::vec((".*", ".*", ".*", object()), 0..5),
    ) {
        let frames = frames
            .into_iter()
            .map(|(class, method, descriptor, receiver)| InitialFrame { class, method, descriptor, receiver })
            .collect();
        let ticket = Ticket(ticket);
        let records =
            vec![ThreadRecord::Start { ticket, thread, object, flags, name, frames }, ThreadRecord::End { ticket, thread }];
        let mut raw = Vec::new();
        records.iter().for_each(|record| record.encode(&mut raw));
        prop_assert_eq!(ThreadRecord::decode_block(&raw).unwrap(), records);
    }

    #[test]
    fn readers_put_others_above_thread_indexes(above in THREAD_LIMIT..=u32::MAX, object in object()) {
        let mut block = Vec::new();
        write_block(&mut block, BlockKind::Events, Codec::Stored, above, 0, Ticket(1), &[]).unwrap();
        prop_assert!(BlockHeader::decode(&block).is_err());
        for record in [
            ThreadRecord::Start {
                ticket: Ticket(1), thread: above, object, flags: 0, name: String::new(), frames: Vec::new(),
            },
            ThreadRecord::End { ticket: Ticket(1), thread: above },
        ] {
            let mut raw = Vec::new();
            record.encode(&mut raw);
            prop_assert!(ThreadRecord::decode_block(&raw).is_err());
        }
    }

    #[test]
    fn gcs_and_initial_objects_come_back(
        values in prop::array::uniform6(any::<u64>()), a in object(), b in object(), c: u32, d: i32,
    ) {
        let gc = GcRecord {
            start: Ticket(values[0]), finish: Ticket(values[1]), start_nanos: values[2], finish_nanos: values[3],
            heap_used: values[4], heap_committed: values[5],
        };
        let mut raw = Vec::new();
        gc.encode(&mut raw);
        prop_assert_eq!(GcRecord::decode_block(&raw).unwrap(), vec![gc]);
        let object = InitialObject { object: a, class: b, size: c, length: d };
        raw.clear();
        object.encode(&mut raw);
        prop_assert_eq!(raw.len(), InitialObject::BYTES);
        prop_assert_eq!(InitialObject::decode_block(&raw).unwrap(), vec![object]);
    }

    #[test]
    fn what_the_collector_said_comes_back(
        said in prop::collection::vec((any::<bool>(), any::<u32>(), any::<u64>(), prop::collection::vec(object(), 0..9)), 1..4),
    ) {
        let said: Vec<_> = said
            .into_iter()
            .map(|(freed, share, by, objects)| {
                Collected { fate: if freed { Fate::Freed } else { Fate::Held }, share, by: Ticket(by), objects }
            })
            .collect();
        let mut raw = Vec::new();
        said.iter().for_each(|said| said.encode(&mut raw));
        prop_assert_eq!(&Collected::decode_block(&raw).unwrap(), &said);
        prop_assert!(Collected::decode_block(&raw[..raw.len() - 1]).is_err());
    }

    #[test]
    fn initial_references_come_back(
        fields in prop::collection::vec((object(), ".*", ".*"), 1..4),
        references in prop::collection::vec((object(), object(), 0..3, any::<u32>()), 0..20),
    ) {
        let fields: Vec<_> =
            fields.into_iter().map(|(class, name, descriptor)| InitialField { class, name, descriptor }).collect();
        let count = fields.len() as u32;
        let references = references
            .into_iter()
            .map(|(origin, target, kind, index)| InitialReference {
                origin, target,
                slot: match kind {
                    0 => InitialSlot::Field(index % count),
                    1 => InitialSlot::Static(index % count),
                    _ => InitialSlot::Element(index),
                },
            })
            .collect();
        let block = InitialReferences { fields, references };
        let mut raw = Vec::new();
        block.encode(&mut raw);
        prop_assert_eq!(InitialReferences::decode_block(&raw).unwrap(), block);
    }

    #[test]
    fn any_bytes_are_read_without_panic(raw in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ClassRecord::decode_block(&raw);
        let _ = ThreadRecord::decode_block(&raw);
        let _ = GcRecord::decode_block(&raw);
        let _ = Collected::decode_block(&raw);
        let _ = InitialObject::decode_block(&raw);
        let _ = InitialReferences::decode_block(&raw);
        let _ = BlockHeader::decode(&raw);
        let _ = check_file_header(&raw);
        let _ = decode_json::<Meta>(&raw);
        let _ = buffers::FileHeader::decode(&raw);
    }
}

#[test]
fn json_blocks_use_the_documented_names() {
    let end = End { reason: "VMDeath".into(), end_ticket: Ticket(7), blocks: 3, ..End::default() };
    let text = String::from_utf8(encode_json(&end)).unwrap();
    assert_eq!(text, r#"{"reason":"VMDeath","endTicket":7,"eventBytes":0,"blocks":3,"lostEvents":0,"seconds":0.0}"#);
    assert_eq!(decode_json::<End>(text.as_bytes()).unwrap(), end);
    let meta: Meta = decode_json(br#"{"pid":3,"startTicket":9,"jvm":{"name":"HotSpot"},"new":1}"#).unwrap();
    assert_eq!((meta.pid, meta.start_ticket, meta.jvm.name.as_str()), (3, Ticket(9), "HotSpot"));
}

#[test]
fn headers_of_files_are_checked() {
    let run = RunId::random();
    assert_eq!(check_file_header(&file_header(run)), Ok(run));
    assert_eq!(check_file_header(b"PK\x03\x04"), Err(FormatError::FileMagic));
    let mut newer = file_header(run);
    for (older, what) in [
        (1, "blocks had times"),
        (2, "there were leaves"),
        (3, "there were monitors"),
        (4, "there were stacks"),
        (5, "there were columns"),
    ] {
        newer[8] = older;
        assert_eq!(check_file_header(&newer), Ok(run), "what was written before {what}");
    }
    for other in [0, 7] {
        newer[8] = other;
        assert_eq!(check_file_header(&newer), Err(FormatError::Version(other.into())));
    }
    let header =
        buffers::FileHeader { chunk_size: 4096, chunk_count: 3, pid: 1, ticket: Ticket(1 << 40), run, chunks_at: 8192 };
    assert_eq!(buffers::FileHeader::decode(&header.encode()), Ok(header));
    let versions = (0..=3).filter(|&version| {
        let mut encoded = header.encode();
        encoded[8] = version;
        buffers::FileHeader::decode(&encoded).is_ok()
    });
    assert_eq!(versions.collect::<Vec<_>>(), [1, 2]);
    for wall in walls() {
        let chunk = buffers::ChunkHeader { state: buffers::STATE_FULL, thread: 4, sequence: 1 << 33, wall };
        assert_eq!(buffers::ChunkHeader::decode(&chunk.encode()), Some(chunk));
    }
}
