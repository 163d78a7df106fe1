//! Reads the output with the crate `jvm-hprof`.

use std::collections::BTreeMap;

use jvm_hprof::heap_dump::{FieldValue, SubRecord};
use jvm_hprof::{IdSize, RecordTag, parse_hprof};

use super::super::tests::{at, list, open};
use super::*;

/// The content of a heap dump, by names.
#[derive(Debug, Default, PartialEq)]
struct Read {
    /// Names of classes by id, with the superclass, static fields and bytes of an object.
    classes: BTreeMap<u64, (String, Option<u64>, u32)>,
    /// Class and slot of each reference of each object.
    references: BTreeMap<u64, Vec<(String, u64)>>,
    instances: BTreeMap<u64, u64>,
    arrays: BTreeMap<u64, usize>,
    roots: Vec<(&'static str, u64)>,
    stacks: Vec<usize>,
    texts: Vec<String>,
    segments: usize,
}

fn read(dump: &[u8]) -> Read {
    let hprof = parse_hprof(dump).unwrap();
    let (mut read, mut texts, mut names) = (Read::default(), BTreeMap::new(), BTreeMap::new());
    let mut segments = Vec::new();
    for record in hprof.records_iter().map(Result::unwrap) {
        match record.tag() {
            RecordTag::Utf8 => {
                let utf8 = record.as_utf_8().unwrap().unwrap();
                texts.insert(utf8.name_id().id(), utf8.text_as_str().unwrap().to_owned());
            }
            RecordTag::LoadClass => {
                let class = record.as_load_class().unwrap().unwrap();
                names.insert(class.class_obj_id().id(), texts[&class.class_name_id().id()].clone());
            }
            RecordTag::StackTrace => {
                let trace = record.as_stack_trace().unwrap().unwrap();
                read.stacks.push(trace.frame_ids().count());
            }
            RecordTag::HeapDumpSegment => segments.push(record),
            _ => {}
        }
    }
    read.segments = segments.len();
    // Name, type of each field, by class.
    let mut fields: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for segment in &segments {
        let segment = segment.as_heap_dump_segment().unwrap().unwrap();
        for sub in segment.sub_records().map(Result::unwrap) {
            match sub {
                SubRecord::Class(class) => {
                    let id = class.obj_id().id();
                    let above = class.super_class_obj_id().map(|id| id.id());
                    read.classes.insert(id, (names[&id].clone(), above, class.instance_size_bytes()));
                    fields.insert(id, class.instance_field_descriptors().map(Result::unwrap).collect());
                    for field in class.static_fields().map(Result::unwrap) {
                        if let FieldValue::ObjectId(Some(target)) = field.value() {
                            let slot = format!("static {}", texts[&field.name_id().id()]);
                            read.references.entry(id).or_default().push((slot, target.id()));
                        }
                    }
                }
                SubRecord::Instance(instance) => {
                    let id = instance.obj_id().id();
                    read.instances.insert(id, instance.class_obj_id().id());
                    let (mut rest, mut class) = (*instance.fields(), Some(instance.class_obj_id().id()));
                    while let Some(at) = class {
                        for field in &fields[&at] {
                            let (left, value) = field.field_type().parse_value(rest, IdSize::U64).unwrap();
                            rest = left;
                            if let FieldValue::ObjectId(Some(target)) = value {
                                let slot = texts[&field.name_id().id()].clone();
                                read.references.entry(id).or_default().push((slot, target.id()));
                            }
                        }
                        class = read.classes[&at].1;
                    }
                    assert!(rest.is_empty(), "all fields are those of the classes");
                }
                SubRecord::ObjectArray(array) => {
                    let id = array.obj_id().id();
                    let elements: Vec<_> = array.elements(IdSize::U64).map(Result::unwrap).collect();
                    read.arrays.insert(id, elements.len());
                    read.instances.insert(id, array.array_class_obj_id().id());
                    for (index, element) in elements.iter().enumerate() {
                        if let Some(target) = element {
                            read.references.entry(id).or_default().push((index.to_string(), target.id()));
                        }
                    }
                }
                SubRecord::PrimitiveArray(array) => {
                    let bytes = array.bytes().into_iter().flatten().map(Result::unwrap);
                    read.arrays.insert(array.obj_id().id(), bytes.inspect(|&byte| assert_eq!(byte, 0)).count());
                }
                SubRecord::GcRootUnknown(root) => read.roots.push(("unknown", root.obj_id().id())),
                SubRecord::GcRootThreadObj(_) => read.roots.push(("thread", 0)),
                SubRecord::GcRootJniGlobal(root) => read.roots.push(("global", root.obj_id().id())),
                SubRecord::GcRootJniLocalRef(root) => read.roots.push(("local", root.obj_id().id())),
                SubRecord::GcRootJavaStackFrame(root) => read.roots.push(("frame", root.obj_id().id())),
                SubRecord::GcRootSystemClass(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    read.texts = texts.into_values().collect();
    read
}

fn dumped(source: &Source, snapshot: &Snapshot<'_>, segment: u64) -> (Dumped, Vec<u8>) {
    let mut out = Vec::new();
    (write_in_segments(source, snapshot, &mut out, segment).unwrap(), out)
}

#[test]
fn a_heap_dump_is_read_by_others() {
    let source = open(list().finish());
    let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
    let (dumped, bytes) = dumped(&source, &snapshot, SEGMENT);
    let read = read(&bytes);
    assert_eq!(read.texts[0], NOTE);
    let class = |name: &str| read.classes.iter().find(|(_, class)| class.0 == name).map(|(&id, _)| id).unwrap();
    let node = class("shop/Node");
    assert_eq!((node, read.classes[&node].2), (0x12, 16), "two references");
    assert_eq!(read.classes[&node].1, Some(class("java/lang/Object")));
    assert_eq!(read.classes[&0x14].1, Some(0x13), "java.lang.ref.Reference");
    let field = |name: &str, target| (name.to_owned(), target);
    let expected: BTreeMap<u64, Vec<_>> = [
        (0xa, vec![field("next", 0xb), field("data", 0xf)]),
        (0xb, vec![field("next", 0xc)]),
        (0xc, vec![field("data", 0xf)]),
        (0xd, vec![field("next", 0xe)]),
        (0x20, vec![field("referent", 0xc)]),
        (node, vec![field("static head", 0xa), field("static weak", 0x20)]),
    ]
    .into();
    assert_eq!(read.references, expected);
    assert_eq!(read.arrays, [(0xf, 1000)].into());
    assert_eq!(read.roots, [("frame", 0x21), ("local", 0xd)]);
    // The one without frames, and that of the thread: main, run and mark.
    assert_eq!(read.stacks, [0, 3]);
    // All six mirrors are classes, and so is that of byte[], whose mirror is in no record.
    assert_eq!((dumped.classes, dumped.objects), (7, snapshot.len() as u64));
    assert_eq!(read.classes.len(), 7);
    assert_eq!(read.instances.len() + read.arrays.len() + 6, snapshot.len());
    let references: usize = read.references.values().map(Vec::len).sum();
    assert_eq!(references as u64, snapshot.reference_count());
}

/// However short the parts are, they hold the same.
#[test]
fn a_heap_dump_may_have_many_parts() {
    let source = open(list().finish());
    let snapshot = at(&source, "method:shop.Node.mark#1").unwrap();
    let whole = read(&dumped(&source, &snapshot, SEGMENT).1);
    assert_eq!(whole.segments, 2, "classes, and objects");
    for segment in [1, 100, 1000] {
        let parts = read(&dumped(&source, &snapshot, segment).1);
        assert!(parts.segments > 2, "{}", parts.segments);
        assert_eq!(Read { segments: 2, ..parts }, whole);
    }
}

/// Of a text without names too: fields are numbers then, and the static field's class is made up.
#[test]
fn a_heap_dump_of_a_text_has_the_same_references() {
    use et_reader::text::{Dialect, Holders};
    use et_reader::text_writer::write_with;
    let source = open(list().finish());
    let mut text = Vec::new();
    write_with(&source, Dialect::Et, Default::default(), Holders::Always, &mut text).unwrap();
    let text = Source::from_bytes(text).unwrap();
    let (one, other) = (at(&source, "tick:13").unwrap(), at(&text, "tick:13").unwrap());
    let targets = |source: &Source, snapshot: &Snapshot<'_>| {
        let read = read(&dumped(source, snapshot, SEGMENT).1);
        let mut all: Vec<u64> = read.references.values().flatten().map(|&(_, target)| target).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(targets(&text, &other), targets(&source, &one));
}
