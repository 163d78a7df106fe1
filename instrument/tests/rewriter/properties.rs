//! Properties of reading, editing and rewriting over the fixtures, their damaged forms and random insertions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use et_rewriter::classfile::{Attribute, ClassFile, Member, PoolBuilder};
use et_rewriter::code::opcode::*;
use et_rewriter::code::{
    CodeAttribute, CodeEditor, EditError, Instruction, StackMap, VerificationType as Type, opcode,
};
use et_rewriter::rewrite::{ClassError, Plan};
use proptest::prelude::*;

use crate::fixtures::{FIRST, Fixture};
use crate::generated;

/// Class files to work on, with their options.
fn classes() -> &'static [Fixture] {
    static CLASSES: std::sync::OnceLock<Vec<Fixture>> = std::sync::OnceLock::new();
    CLASSES.get_or_init(|| {
        let mut all = Fixture::all();
        let small = generated::all().into_iter().filter(|class| class.bytes.len() < 5_000);
        all.extend(small.map(|class| Fixture {
            name: class.name,
            bytes: class.bytes,
            options: class.options,
            hooked: true,
            show: Vec::new(),
            tail: 0,
            is_jdk: false,
        }));
        all
    })
}

fn frames(class: &ClassFile<'_>, method: &Member<'_>, code: &CodeAttribute<'_>) -> Option<StackMap> {
    let receiver = (!method.is_static()).then_some(match method.name {
        b"<init>" if !class.super_name.is_empty() => Type::UninitializedThis,
        _ => Type::Object(class.this_class),
    });
    let table = code.attribute("StackMapTable").filter(|_| class.major >= 50)?;
    let initial = StackMap::initial_locals(receiver, method.descriptor, |_| Ok::<_, ()>(0)).unwrap();
    Some(StackMap::read(table, initial, code).unwrap())
}

/// Calls `check` with each method that has code.
fn each_method(fixture: &Fixture, mut check: impl FnMut(&ClassFile<'_>, &Member<'_>, &Attribute<'_>)) {
    let class = ClassFile::read(&fixture.bytes).unwrap();
    for method in &class.methods {
        if let Some(attribute) = method.attribute("Code") {
            check(&class, method, attribute);
        }
    }
}

#[test]
fn an_edit_of_nothing_changes_nothing() {
    for fixture in classes() {
        each_method(fixture, |class, method, attribute| {
            let code = CodeAttribute::read(attribute, &class.pool).unwrap();
            let mut pool = PoolBuilder::new(&class.pool);
            let map = frames(class, method, &code);
            let written = CodeEditor::new(&code).finish(map, &mut pool).unwrap();
            let again = Attribute { info: &written, ..*attribute };
            let again = CodeAttribute::read(&again, &class.pool).unwrap();
            assert!(again.code == code.code && again.exceptions == code.exceptions, "{}", fixture.name);
            assert_eq!((again.max_stack, again.max_locals), (code.max_stack, code.max_locals));
            for (one, other) in code.attributes.iter().zip(&again.attributes) {
                assert_eq!(one.name, other.name);
                if one.name != b"StackMapTable" {
                    assert!(one.info == other.info, "{}: {:?}", fixture.name, String::from_utf8_lossy(one.name));
                }
            }
        });
    }
}

#[test]
fn frames_are_written_as_they_were_read() {
    let mut count = 0;
    for fixture in classes() {
        each_method(fixture, |class, method, attribute| {
            let code = CodeAttribute::read(attribute, &class.pool).unwrap();
            let Some(map) = frames(class, method, &code) else { return };
            let written = map.write();
            let table = Attribute { info: &written, ..*code.attribute("StackMapTable").unwrap() };
            let again = StackMap::read(&table, map.initial_locals.clone(), &code).unwrap();
            assert_eq!(again.frames, map.frames);
            assert!(written.len() <= code.attribute("StackMapTable").unwrap().info.len(), "never longer than it was");
            count += map.frames.len();
        });
    }
    assert!(count > 50, "{count} frames");
}

/// An insertion: index of the instruction, whether behind or before it, code.
#[derive(Clone, Copy, Debug)]
struct Insertion {
    at: prop::sample::Index,
    behind: bool,
    code: &'static [u8],
}

fn insertion() -> impl Strategy<Value = Insertion> {
    let snippets: [&[u8]; 4] = [&[NOP], &[NOP, NOP, NOP], &[ICONST_2, POP], &[LCONST_1, SIPUSH, 1, 2, POP, POP2]];
    (any::<prop::sample::Index>(), any::<bool>(), prop::sample::select(snippets.to_vec()))
        .prop_map(|(at, behind, code)| Insertion { at, behind, code })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn insertions_leave_everything_else_right(
        class in any::<prop::sample::Index>(),
        insertions in prop::collection::vec(insertion(), 0..40),
        at_entry in any::<bool>(),
    ) {
        each_method(class.get(classes()), |class, method, attribute| {
            let code = CodeAttribute::read(attribute, &class.pool).unwrap();
            check_insertions(class, method, attribute, &code, &insertions, at_entry);
        });
    }
}

/// The expected result of insertions in a method, computed instruction by instruction.
struct Expected {
    /// By old pc: where branches to it, and ranges from it, lead.
    targets: BTreeMap<u32, u32>,
    /// New position of each instruction, by old pc.
    instructions: BTreeMap<u32, u32>,
    length: u32,
}

fn check_insertions(
    class: &ClassFile<'_>,
    method: &Member<'_>,
    attribute: &Attribute<'_>,
    code: &CodeAttribute<'_>,
    insertions: &[Insertion],
    at_entry: bool,
) {
    let mut editor = CodeEditor::new(code);
    let mut before: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut behind: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    if at_entry {
        editor.at_entry(&[NOP], 0);
        behind.entry(0).or_default().push(NOP);
    }
    for insertion in insertions {
        let instruction = insertion.at.get(&code.instructions);
        if insertion.behind && !opcode::ends_block(instruction.opcode) {
            editor.behind(instruction, insertion.code, 3);
            behind.entry(instruction.next_pc()).or_default().extend_from_slice(insertion.code);
        } else {
            editor.before(instruction, insertion.code, 3);
            before.entry(instruction.pc).or_default().extend_from_slice(insertion.code);
        }
    }
    let mut pool = PoolBuilder::new(&class.pool);
    let map = frames(class, method, code);
    let written = match editor.finish(map.clone(), &mut pool) {
        Ok(written) => written,
        Err(EditError::TooLarge(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let new = Attribute { info: &written, ..*attribute };
    let new = CodeAttribute::read(&new, &class.pool).unwrap();
    assert!(new.code.len() < 32_768, "no branch is widened in the fixtures");

    let mut expected = Expected { targets: BTreeMap::new(), instructions: BTreeMap::new(), length: 0 };
    let mut rest = new.instructions.iter();
    let mut at = 0;
    let mut take = |bytes: &[u8], at: &mut u32| {
        let end = *at + bytes.len() as u32;
        while *at < end {
            let found = rest.next().unwrap();
            assert_eq!(found.pc, *at);
            let from = bytes.len() - (end - *at) as usize;
            assert_eq!(found.bytes, &bytes[from..from + found.bytes.len()], "an insertion as it was given");
            *at = found.next_pc();
        }
        assert_eq!(*at, end);
    };
    let mut pairs: Vec<(&Instruction<'_>, u32)> = Vec::new();
    for old in &code.instructions {
        take(behind.get(&old.pc).map_or(&[][..], Vec::as_slice), &mut at);
        expected.targets.insert(old.pc, at);
        take(before.get(&old.pc).map_or(&[][..], Vec::as_slice), &mut at);
        expected.instructions.insert(old.pc, at);
        pairs.push((old, at));
        let length = match old.opcode {
            TABLESWITCH | LOOKUPSWITCH => 1 + (3 - at as usize % 4) + old.switch_body().len(),
            _ => old.bytes.len(),
        };
        at += length as u32;
        // The next instruction of the new code is checked below; skip it here.
        let slice = &new.code[expected.instructions[&old.pc] as usize..at as usize];
        take(slice, &mut { expected.instructions[&old.pc] });
    }
    let end = code.code.len() as u32;
    take(behind.get(&end).map_or(&[][..], Vec::as_slice), &mut at);
    assert_eq!(at as usize, new.code.len());
    expected.targets.insert(end, at);
    expected.length = at;

    let found: BTreeMap<u32, &Instruction<'_>> = new.instructions.iter().map(|found| (found.pc, found)).collect();
    for (old, at) in pairs {
        let new = found[&at];
        assert_eq!((old.opcode, old.wide), (new.opcode, new.wide));
        let targets: Vec<u32> = old.targets().map(|target| expected.targets[&(target as u32)]).collect();
        assert_eq!(targets, new.targets().map(|target| target as u32).collect::<Vec<_>>());
        if targets.is_empty() {
            assert_eq!(old.bytes, new.bytes);
        }
    }
    for (old, new) in code.exceptions.iter().zip(&new.exceptions) {
        let moved = |pc: u16| expected.targets[&pc.into()] as u16;
        assert_eq!((moved(old.start), moved(old.end), moved(old.handler)), (new.start, new.end, new.handler));
        assert_eq!(old.catch_type, new.catch_type);
    }
    assert_eq!(code.exceptions.len(), new.exceptions.len());
    tables(code, &new, &expected);
    let (Some(old), Some(new)) = (map, frames(class, method, &new)) else { return };
    assert_eq!(old.frames.len(), new.frames.len());
    for (old, new) in old.frames.iter().zip(&new.frames) {
        assert_eq!(expected.targets[&old.pc], new.pc);
        let moved = |kind: &Type| match kind {
            Type::Uninitialized(pc) => Type::Uninitialized(expected.instructions[&(*pc).into()] as u16),
            kind => *kind,
        };
        assert_eq!(old.locals.iter().map(moved).collect::<Vec<_>>(), new.locals);
        assert_eq!(old.stack.iter().map(moved).collect::<Vec<_>>(), new.stack);
    }
}

/// Line numbers and local variables, where they point to instructions.
fn tables(old: &CodeAttribute<'_>, new: &CodeAttribute<'_>, expected: &Expected) {
    let columns = |bytes: &[u8]| -> Vec<u32> {
        bytes[2..].chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]).into()).collect()
    };
    for (one, other) in old.attributes.iter().zip(&new.attributes) {
        let width = match one.name {
            b"LineNumberTable" => 2,
            b"LocalVariableTable" | b"LocalVariableTypeTable" => 5,
            _ => continue,
        };
        let (was, is) = (columns(one.info), columns(other.info));
        assert_eq!(was.len(), is.len());
        for (was, is) in was.chunks(width).zip(is.chunks(width)) {
            let (Some(&start), ends) = (expected.targets.get(&was[0]), width == 5) else { continue };
            assert_eq!(is[0], start);
            if ends && expected.targets.contains_key(&(was[0] + was[1])) {
                assert_eq!(is[0] + is[1], expected.targets[&(was[0] + was[1])]);
            }
            assert!(!ends || is[0] + is[1] <= expected.length);
        }
    }
}

/// A change of one byte: a position (counted from the end of the file, where the code is, or anywhere) and a value.
fn damage() -> impl Strategy<Value = (bool, prop::sample::Index, u8)> {
    let value = prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 2, 0x7f, 0x80, 0xff, 0xfe])];
    (prop::bool::weighted(0.8), any::<prop::sample::Index>(), value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_classes_are_refused_or_rewritten_but_never_panic(
        class in any::<prop::sample::Index>(),
        changes in prop::collection::vec(damage(), 1..5),
        cut in prop::option::weighted(0.05, any::<prop::sample::Index>()),
        hooked in prop::bool::weighted(0.95),
        // Old versions go through the other data flow.
        is_old in prop::bool::weighted(0.3),
    ) {
        let fixture = class.get(classes());
        let mut bytes = fixture.bytes.clone();
        let behind_pool = behind_pool(&bytes);
        if is_old {
            bytes[7] = 48;
        }
        for (in_code, place, value) in changes {
            let start = if in_code { behind_pool } else { 0 };
            let at = start + place.index(bytes.len() - start);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let started = Instant::now();
        let result = Plan::new(&bytes, hooked, &fixture.options).and_then(|plan| {
            let counts = plan.counts();
            plan.rewrite(FIRST, &fixture.options).map(|done| (done, counts))
        });
        prop_assert!(started.elapsed() < Duration::from_secs(5), "took {:?}", started.elapsed());
        match result {
            Ok((rewritten, counts)) => {
                prop_assert_eq!(rewritten.names.sites.len() as u32, counts.sites);
                prop_assert_eq!(rewritten.names.field_refs.len() as u32, counts.field_refs);
                // The output can be parsed again, down to the last instruction.
                let again = ClassFile::read(&rewritten.bytes).unwrap();
                let is_hooked = !rewritten.names.flags.has(et_names::ClassFlags::NOT_HOOKED);
                for method in again.methods.iter().filter(|_| is_hooked) {
                    if let Some(attribute) = method.attribute("Code") {
                        CodeAttribute::read(attribute, &again.pool).unwrap();
                    }
                }
            }
            Err(ClassError::AlreadyInstrumented { .. }) => prop_assert!(false, "nothing was instrumented"),
            Err(error) => prop_assert!(!error.to_string().contains(&usize::MAX.to_string()), "{}", error),
        }
    }
}

/// Offset of what follows the constant pool.
fn behind_pool(bytes: &[u8]) -> usize {
    let class = ClassFile::read(bytes).unwrap();
    let members = class.fields.iter().chain(&class.methods);
    let first = members.map(|member| member.bytes.as_ptr() as usize - bytes.as_ptr() as usize).min();
    first.unwrap_or(bytes.len() / 2)
}
