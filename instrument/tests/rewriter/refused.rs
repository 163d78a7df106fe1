//! Classes that a JVM rejects must not become acceptable by hooks, which enlarge the stack and move what tables refer
//! to: such a class is left unchanged. The checks of `verify`, which share no code with the rewriter, determine what is
//! wrong.

use et_instrument::verify::class::check;
use et_rewriter::classfile::{Attribute, ClassFile};
use et_rewriter::code::CodeAttribute;
use et_rewriter::rewrite::Plan;

use crate::fixtures::{FIRST, Fixture};
use crate::generated;

/// Description of the change to a class, and the resulting class.
type Mutant = (String, Vec<u8>);

fn patched(bytes: &[u8], at: usize, value: u16) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + 2].copy_from_slice(&value.to_be_bytes());
    out
}

/// Room taken away, and rows of tables that lead outside the code.
fn mutants(bytes: &[u8]) -> Vec<Mutant> {
    let class = ClassFile::read(bytes).unwrap();
    let mut found = Vec::new();
    for method in &class.methods {
        let Some(attribute) = method.attributes.iter().find(|attribute| attribute.name == b"Code") else { continue };
        let code = CodeAttribute::read(attribute, &class.pool).unwrap();
        let name = String::from_utf8_lossy(method.name);
        let mut add = |what: &str, at: usize, value: u16| {
            found.push((format!("{name}: {what} {value}"), patched(bytes, at, value)));
        };
        for less in 1..=code.max_stack.min(4) {
            add("max_stack", attribute.offset, code.max_stack - less);
        }
        for less in 1..=code.max_locals.min(4) {
            add("max_locals", attribute.offset + 2, code.max_locals - less);
        }
        let length = code.code.len() as u16;
        for table in &code.attributes {
            let rows = |width: usize| rows_of(table, width);
            match table.name {
                b"LineNumberTable" => {
                    for at in rows(4) {
                        [length, length + 1, u16::MAX].into_iter().for_each(|start| add("line", at, start));
                    }
                    add("rows of lines", table.offset, 7000);
                }
                b"LocalVariableTable" | b"LocalVariableTypeTable" => {
                    for at in rows(10) {
                        [length, u16::MAX].into_iter().for_each(|start| add("variable's start", at, start));
                        [length + 1, u16::MAX].into_iter().for_each(|length| add("variable's length", at + 2, length));
                        [code.max_locals, u16::MAX]
                            .into_iter()
                            .for_each(|index| add("variable's index", at + 8, index));
                    }
                    add("rows of variables", table.offset, 7000);
                }
                _ => {}
            }
        }
    }
    found
}

fn rows_of(table: &Attribute<'_>, width: usize) -> impl Iterator<Item = usize> + use<> {
    let (offset, count) = (table.offset, (table.info.len() - 2) / width);
    (0..count).map(move |row| offset + 2 + row * width)
}

#[test]
fn no_fault_is_hidden_by_hooks() {
    let fixtures = Fixture::all().into_iter().filter(|fixture| fixture.hooked);
    let fixtures = fixtures.map(|fixture| (fixture.name, fixture.bytes, fixture.options));
    let generated = generated::all().into_iter().map(|class| (class.name, class.bytes, class.options));
    let (mut refused, mut hidden) = (0, Vec::new());
    for (name, bytes, options) in fixtures.chain(generated) {
        if !check(&bytes).faults.is_empty() {
            continue; // wrong already
        }
        for (what, mutant) in mutants(&bytes) {
            let faults = check(&mutant).faults;
            if faults.is_empty() {
                continue; // more than the class needed
            }
            refused += 1;
            let rewritten = Plan::new(&mutant, true, &options).and_then(|plan| plan.rewrite(FIRST, &options));
            if rewritten.is_ok_and(|done| check(&done.bytes).faults.is_empty()) {
                hidden.push(format!("{name}: {what}: {:?}", faults[0]));
            }
        }
    }
    assert!(refused > 2000, "{refused} mutants");
    assert!(
        hidden.is_empty(),
        "{} of {refused} are hidden, such as\n{}",
        hidden.len(),
        hidden[..hidden.len().min(40)].join("\n")
    );
}
