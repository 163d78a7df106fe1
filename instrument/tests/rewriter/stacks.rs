//! Hooks for stacks: what the runtime reads out of rewritten code is what the names table says.

use et_rewriter::classfile::{ClassFile, Constant};
use et_rewriter::hooks::stacks::TrackedCode;
use et_rewriter::rewrite::EventSet;

use super::fixtures::{FIRST, Fixture};

/// The code in the content of a `Code` attribute (JVMS §4.7.3).
fn code(info: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes([info[4], info[5], info[6], info[7]]) as usize;
    &info[8..8 + length]
}

#[test]
fn frames_are_told_from_the_code() {
    let (mut tracked, mut sites) = (0, 0);
    for mut fixture in Fixture::all() {
        fixture.options.events = "all,stacks".parse().unwrap();
        let rewritten = fixture.rewrite();
        let class = ClassFile::read(&rewritten.bytes).unwrap();
        let constant = |index: u16| match class.pool.loadable(index).ok()? {
            Constant::Long(value) => Some(value),
            Constant::Integer(value) => Some(value.into()),
            _ => None,
        };
        for (number, method) in (0..).zip(&class.methods) {
            let Some(attribute) = method.attribute("Code") else { continue };
            let code = code(attribute.info);
            let found = TrackedCode::read(code, constant);
            let of_method = |site: &u32| rewritten.names.sites[(site - FIRST.site) as usize].method == number;
            let Some(found) = found else { continue };
            tracked += 1;
            assert!(of_method(&found.first_site), "{}: {found:?}", fixture.name);
            for &(pc, index) in &found.sites {
                sites += 1;
                assert!(of_method(&(found.first_site + index)), "{}: {found:?}", fixture.name);
                // invokevirtual to invokedynamic
                assert!((0xb6..=0xba).contains(&code[pc as usize]), "{} at {pc}", fixture.name);
                assert_eq!(found.site_at(pc), Some(index));
            }
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
    assert!(tracked > 100 && sites > 500, "{tracked} methods with {sites} sites");
}
