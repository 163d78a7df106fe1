//! Hooks for stacks: what the runtime reads out of rewritten code is what the names table says.

use et_names::Site;
use et_rewriter::classfile::{ClassFile, Constant};
use et_rewriter::code::{CodeAttribute, LineTable};
use et_rewriter::hooks::stacks::{Called, TrackedCall, TrackedCode};
use et_rewriter::rewrite::EventSet;

use super::fixtures::{FIRST, Fixture};

const INVOKESPECIAL: u8 = 0xb7;

/// The code in the content of a `Code` attribute (JVMS §4.7.3).
fn code(info: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes([info[4], info[5], info[6], info[7]]) as usize;
    &info[8..8 + length]
}

/// Checks what the code of a fixture's methods tells. Returns the number of methods and of calls that were told from it, constructors of new
/// objects and calls of `super(…)` separately.
fn check(fixture: &Fixture) -> [usize; 4] {
    let rewritten = fixture.rewrite();
    let class = ClassFile::read(&rewritten.bytes).unwrap();
    let constant = |index: u16| match class.pool.loadable(index).ok()? {
        Constant::Long(value) => Some(value),
        Constant::Integer(value) => Some(value.into()),
        _ => None,
    };
    let mut counts = [0; 4];
    for (number, method) in (0..).zip(&class.methods) {
        let Some(attribute) = method.attribute("Code") else { continue };
        let lines = LineTable::of(&CodeAttribute::read(attribute, &class.pool).unwrap().attributes);
        let code = code(attribute.info);
        let Some(found) = TrackedCode::read(code, constant) else { continue };
        let site = |index: u32| &rewritten.names.sites[(found.first_site + index - FIRST.site) as usize];
        counts[0] += 1;
        for &call in &found.calls {
            let TrackedCall { pc, index, called } = call;
            assert_eq!(site(index).method, number, "{}: {found:?}", fixture.name);
            assert_eq!(found.call_at(pc), Some(call));
            let target = u16::from_be_bytes([code[pc as usize + 1], code[pc as usize + 2]]);
            if !class.pool.member_ref(target).unwrap().class.starts_with(b"java/lang/HeapProxy") {
                // Calls of a line may share the site of the first; the hooks take whatever was before.
                assert_eq!(site(index).line, lines.line(pc), "{}: {call:?}", fixture.name);
            }
            let opcode = code[pc as usize];
            match called {
                Called::Other => {
                    // invokevirtual to invokedynamic
                    assert!((0xb6..=0xba).contains(&opcode), "{} at {pc}", fixture.name);
                    counts[1] += 1;
                }
                Called::ConstructorOfNew => {
                    let (object, constructor) = (site(index - 1), site(index));
                    assert_eq!((object.method, object.dimensions), (number, 0));
                    let class = object.descriptor.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap();
                    assert_eq!(constructor.descriptor, format!("{class}.<init>"), "{} at {pc}", fixture.name);
                    assert_eq!((constructor.dimensions, opcode), (Site::CALL, INVOKESPECIAL));
                    counts[2] += 1;
                }
                Called::Super => {
                    assert_eq!((method.name, opcode), (b"<init>".as_slice(), INVOKESPECIAL));
                    assert!(site(index).descriptor.ends_with(".<init>"));
                    counts[3] += 1;
                }
            }
        }
    }
    counts
}

#[test]
fn frames_are_told_from_the_code() {
    let mut all = [0; 4];
    for mut fixture in Fixture::all() {
        for events in ["all,stacks", "alloc,stacks"] {
            fixture.options.events = events.parse().unwrap();
            all.iter_mut().zip(check(&fixture)).for_each(|(sum, count)| *sum += count);
        }
        // The same class without: nothing is taken for such a hook.
        fixture.options.events = EventSet::ALL;
        let plain = fixture.rewrite();
        let class = ClassFile::read(&plain.bytes).unwrap();
        for method in &class.methods {
            let info = method.attribute("Code").map(|attribute| attribute.info);
            assert_eq!(info.and_then(|info| TrackedCode::read(code(info), |_| Some(0x1234_5678))), None);
        }
    }
    let [methods, others, constructors, supers] = all;
    assert!(methods > 200 && others > 800 && constructors > 50 && supers > 20, "{all:?}");
}
