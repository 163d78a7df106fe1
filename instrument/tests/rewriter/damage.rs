//! `verify` finds nothing in what the rewriter makes, and finds each damage that is done to it.

use et_instrument::verify::class::{Opinion, check, is_marked};
use et_rewriter::classfile::ClassFile;
use et_rewriter::code::CodeAttribute;
use et_rewriter::code::opcode::{is_conditional, *};
use proptest::prelude::*;

use crate::fixtures::Fixture;
use crate::generated;

/// Rewritten classes with their names.
fn rewritten() -> &'static [(String, Vec<u8>)] {
    static CLASSES: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    CLASSES.get_or_init(|| {
        let fixtures = Fixture::all().into_iter().map(|fixture| (fixture.name.clone(), fixture.rewrite().bytes));
        let generated = generated::all().into_iter().map(|class| (class.name.clone(), class.rewrite().bytes));
        fixtures.chain(generated).collect()
    })
}

/// A class whose debug tables are deliberately wrong: the rewriter passes them on.
const ODD: &str = "OddTables";

#[test]
fn rewritten_classes_are_sound() {
    for (name, bytes) in rewritten() {
        let checked = check(bytes);
        if name == ODD {
            assert!(!checked.faults.is_empty());
            continue;
        }
        assert!(checked.faults.is_empty(), "{name}: {:#?}", checked.faults);
        assert!(checked.opinion == Opinion::Second, "{name}: {:?}", checked.opinion);
        assert_eq!(checked.mark.is_some(), is_marked(bytes), "{name}");
    }
}

/// A class with one thing wrong.
struct Damage {
    what: String,
    bytes: Vec<u8>,
}

/// Overwrites bytes of a class.
fn patched(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + value.len()].copy_from_slice(value);
    out
}

/// Where the deltas of a StackMapTable's frames are: offset in the attribute, and whether it has two bytes.
fn deltas(info: &[u8]) -> Vec<(usize, bool)> {
    let u16 = |at: usize| usize::from(u16::from_be_bytes([info[at], info[at + 1]]));
    let types = |mut at: usize, count: usize| {
        for _ in 0..count {
            at += if matches!(info[at], 7 | 8) { 3 } else { 1 };
        }
        at
    };
    let (mut at, mut found) = (2, Vec::new());
    for _ in 0..u16(0) {
        let kind = info[at];
        found.push(if kind < 128 { (at, false) } else { (at + 1, true) });
        at = match kind {
            0..=63 => at + 1,
            64..=127 => types(at + 1, 1),
            247 => types(at + 3, 1),
            252..=254 => types(at + 3, usize::from(kind - 251)),
            255 => {
                let stack = types(at + 5, u16(at + 3));
                types(stack + 2, u16(stack))
            }
            _ => at + 3,
        };
    }
    found
}

/// Each damage that can be done to a class so that no JVM could take it.
fn damages(bytes: &[u8]) -> Vec<Damage> {
    let class = ClassFile::read(bytes).unwrap();
    let mut all = Vec::new();
    let mut add = |what: String, at: usize, value: &[u8]| all.push(Damage { what, bytes: patched(bytes, at, value) });
    for method in &class.methods {
        let Some(attribute) = method.attribute("Code") else { continue };
        let name = String::from_utf8_lossy(method.name);
        let code = CodeAttribute::read(attribute, &class.pool).unwrap();
        let length = code.code.len();
        let starts: Vec<usize> = code.instructions.iter().map(|instruction| instruction.pc as usize).collect();
        // Where no instruction starts: inside of one, else at the end.
        let hole = (0..length).find(|at| starts.binary_search(at).is_err()).unwrap_or(length);
        for instruction in &code.instructions {
            let (pc, at) = (instruction.pc as usize, code.offset + instruction.pc as usize);
            let place = format!("{name} at {pc}: opcode {}", instruction.opcode);
            let by = hole as i32 - pc as i32;
            match instruction.opcode {
                op if is_conditional(op) || matches!(op, GOTO | JSR) => {
                    if let Ok(by) = i16::try_from(by) {
                        add(format!("{place} jumps into an instruction"), at + 1, &by.to_be_bytes());
                    }
                }
                GOTO_W | JSR_W => add(format!("{place} jumps into an instruction"), at + 1, &by.to_be_bytes()),
                TABLESWITCH | LOOKUPSWITCH => {
                    for offset in instruction.switch_offsets() {
                        add(format!("{place} jumps into an instruction"), at + offset, &by.to_be_bytes());
                    }
                    let count = instruction.switch_offsets().next().unwrap() + 4;
                    add(format!("{place} has a huge table"), at + count, &[0x7f, 0xff, 0xff, 0xff]);
                }
                GETSTATIC..=INVOKEDYNAMIC | NEW | ANEWARRAY | CHECKCAST | INSTANCEOF | LDC_W | MULTIANEWARRAY => {
                    add(format!("{place} uses constant 0"), at + 1, &[0, 0]);
                    add(format!("{place} uses a constant that does not exist"), at + 1, &[0xff, 0xff]);
                }
                LDC => add(format!("{place} uses constant 0"), at + 1, &[0]),
                ILOAD..=ALOAD if !instruction.wide && code.max_locals <= 255 => {
                    add(format!("{place} loads from nowhere"), at + 1, &[0xff]);
                }
                _ => {}
            }
            add(format!("{place} becomes no instruction"), at, &[0xcb]);
        }
        let table = code.offset + length + 2;
        for (row, entry) in code.exceptions.iter().enumerate() {
            let at = table + 8 * row;
            let hole = (hole as u16).to_be_bytes();
            if usize::from(u16::from_be_bytes(hole)) < length {
                add(format!("{name}: handler {row} starts inside an instruction"), at, &hole);
                add(format!("{name}: handler {row} ends inside an instruction"), at + 2, &hole);
            }
            add(format!("{name}: handler {row} is empty"), at + 2, &entry.start.to_be_bytes());
            add(format!("{name}: handler {row} is outside"), at + 4, &(length as u16).to_be_bytes());
            add(format!("{name}: handler {row} catches no class"), at + 6, &[0xff, 0xfe]);
        }
        if code.max_stack > 0 {
            let from = attribute.offset;
            add(format!("{name}: max_stack 0"), from, &[0, 0]);
        }
        if code.max_locals > 0 && (!method.is_static() || !method.descriptor.starts_with(b"()")) {
            add(format!("{name}: max_locals 0"), attribute.offset + 2, &[0, 0]);
        }
        let longer = (attribute.info.len() as u32 + 1).to_be_bytes();
        add(format!("{name}: Code is longer than it is"), attribute.offset - 4, &longer);
        for table in &code.attributes {
            let (from, what) = (table.offset, String::from_utf8_lossy(table.name));
            match table.name {
                b"LineNumberTable" if hole < length => {
                    add(format!("{name}: {what}"), from + 2, &(hole as u16).to_be_bytes());
                }
                b"LocalVariableTable" | b"LocalVariableTypeTable" if hole < length && table.info.len() > 2 => {
                    add(format!("{name}: {what} start"), from + 2, &(hole as u16).to_be_bytes());
                    add(format!("{name}: {what} index"), from + 10, &[0xff, 0xff]);
                }
                b"StackMapTable" if class.major >= 51 => {
                    for (delta, wide) in deltas(table.info) {
                        let at = from + delta;
                        let byte = bytes[at];
                        if wide {
                            let moved = u16::from_be_bytes([byte, bytes[at + 1]]) + 1;
                            add(format!("{name}: the frame at byte {delta} is moved"), at, &moved.to_be_bytes());
                        } else if byte % 64 < 63 {
                            add(format!("{name}: the frame at byte {delta} is moved"), at, &[byte + 1]);
                        }
                    }
                    add(format!("{name}: a frame more than there are"), from + 1, &[table.info[1].wrapping_add(1)]);
                }
                _ => {}
            }
            let shorter = (table.info.len() as u32).wrapping_sub(1).to_be_bytes();
            add(format!("{name}: {what} is shorter than it is"), from - 4, &shorter);
        }
    }
    // Duplicates a method.
    if let [first, ..] = class.methods.as_slice() {
        let at = first.bytes.as_ptr() as usize - bytes.as_ptr() as usize;
        let count = (class.methods.len() as u16 + 1).to_be_bytes();
        let twice = [&bytes[..at - 2], &count, first.bytes, &bytes[at..]].concat();
        all.push(Damage { what: "a method twice".into(), bytes: twice });
    }
    if let [first, ..] = class.fields.as_slice() {
        let at = first.bytes.as_ptr() as usize - bytes.as_ptr() as usize;
        let count = (class.fields.len() as u16 + 1).to_be_bytes();
        let twice = [&bytes[..at - 2], &count, first.bytes, &bytes[at..]].concat();
        all.push(Damage { what: "a field twice".into(), bytes: twice });
    }
    all.push(Damage { what: "a byte too many".into(), bytes: [bytes, &[0]].concat() });
    all.push(Damage { what: "a byte too few".into(), bytes: bytes[..bytes.len() - 1].to_vec() });
    all
}

#[test]
fn each_damage_is_found() {
    let mut count = 0;
    for (name, bytes) in rewritten() {
        // Large ones hold the same, many times over.
        if bytes.len() > 20_000 {
            continue;
        }
        for damage in damages(bytes) {
            assert!(!check(&damage.bytes).faults.is_empty(), "{name}: {} is not found", damage.what);
            count += 1;
        }
    }
    assert!(count > 5_000, "only {count} damages");
}

#[test]
fn findings_say_where() {
    let (_, bytes) = rewritten().iter().find(|(name, _)| name == "Exceptions").expect("the fixture is there");
    let found = damages(bytes).into_iter().find(|damage| damage.what.contains("jumps into an instruction")).unwrap();
    let fault = &check(&found.bytes).faults[0];
    assert!(fault.method.is_some() && fault.offset.is_some(), "{fault:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bytes, an answer comes, and soon.
    #[test]
    fn any_bytes_will_do(
        class in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let small: Vec<&(String, Vec<u8>)> = rewritten().iter().filter(|(_, bytes)| bytes.len() < 20_000).collect();
        let mut bytes = class.get(&small).1.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(!check(&bytes).faults.is_empty());
        }
        let _ = check(&bytes);
    }
}
