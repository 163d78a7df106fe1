//! The rewriter: a byte of options, then a class file.

use et_instrument::verify;
use et_names::ClassFlags;
use et_rewriter::classfile::{ClassFile, Malformed, Member};
use et_rewriter::code::{CodeAttribute, StackMap, VerificationType};
use et_rewriter::rewrite::{ClassError, EventSet, FirstIds, Options, Plan, Witness};

use crate::{Plain, Random, Target, class};

pub const TARGET: Target = Target {
    name: "rewriter",
    inputs: "rewriter",
    longest: 16384,
    compares: true,
    memory_ratio: 1 << 12,
    run,
    mutate: Some(mutate),
    mend: None,
};

/// Flag: the class belongs to a JDK.
pub(crate) const JDK: u8 = 0x10;
/// Flag: all witnesses.
pub(crate) const WITNESS_ALL: u8 = 0x80;
/// Flag: the class is excluded.
const EXCLUDED: u8 = 0x20;

const FIRST: FirstIds = FirstIds { class: 1, method: 1000, field: 1, site: 2000, field_ref: 3000 };

/// Decodes the options from a byte: events in the low bits, witnesses in the high ones, of which both together say stacks as well.
fn options(byte: u8) -> Options {
    let words = [(1, "alloc"), (2, "update"), (4, "method"), (8, "exception")];
    let words: Vec<&str> = words.iter().filter(|(bit, _)| byte & bit != 0).map(|(_, word)| *word).collect();
    let events: EventSet = words.join(",").parse().unwrap_or(EventSet::ALL);
    let witness = [Witness::None, Witness::Refs, Witness::All, Witness::All][usize::from(byte >> 6)];
    let has_stacks = byte >> 6 == 3 && events.has(EventSet::ALLOC);
    let events = if has_stacks { events.or(EventSet::STACKS) } else { events };
    Options {
        events: events.with(witness),
        jdk: byte & JDK != 0,
        artifact_hash: 0x1234_5678_9abc_def0,
        base: 1000,
        leaves: true,
        all_hooked: true,
    }
}

fn run(data: &[u8]) {
    let Some((&byte, data)) = data.split_first() else { return };
    let options = options(byte);
    let rewrite = || {
        let plan = Plan::new(data, byte & EXCLUDED == 0, &options)?;
        let counts = plan.counts();
        plan.rewrite(FIRST, &options).map(|done| (done, counts))
    };
    match rewrite() {
        Ok((done, counts)) => {
            let again = rewrite().map(|(done, _)| done).expect("it was rewritten a moment ago");
            assert!(done.bytes == again.bytes && done.names == again.names, "the same input makes the same output");
            assert_eq!(done.names.methods.len() as u32, counts.methods);
            assert_eq!(done.names.fields.len() as u32, counts.fields);
            assert_eq!(done.names.sites.len() as u32, counts.sites);
            assert_eq!(done.names.field_refs.len() as u32, counts.field_refs);
            let is_hooked = !done.names.flags.has(ClassFlags::NOT_HOOKED);
            output(data, &done.bytes, is_hooked);
            if done.bytes != data {
                let twice = Plan::new(&done.bytes, true, &options).map(drop);
                assert!(
                    matches!(twice, Err(ClassError::AlreadyInstrumented { artifact: 0x1234_5678_9abc_def0, .. })),
                    "{twice:?}"
                );
            }
        }
        Err(ClassError::Malformed(error) | ClassError::InMethod { error, .. }) => {
            assert!(error.offset != usize::MAX, "{error}: it does not say where");
        }
        Err(ClassError::AlreadyInstrumented { .. }) => {}
    }
}

/// The output can be parsed again, down to the last instruction, including its frames if those of the input could be.
/// If `et-instrument verify` finds no problem in the input, it finds none in the output.
fn output(input: &[u8], bytes: &[u8], is_hooked: bool) {
    let before = ClassFile::read(input).unwrap_or_else(|error| panic!("the input: {error}"));
    let after = ClassFile::read(bytes).unwrap_or_else(|error| panic!("the output: {error}"));
    for (old, new) in before.methods.iter().zip(&after.methods).filter(|_| is_hooked) {
        let Some(attribute) = new.attribute("Code") else { continue };
        let code = CodeAttribute::read(attribute, &after.pool).unwrap_or_else(|error| panic!("the output: {error}"));
        let old_code = old.attribute("Code").and_then(|attribute| CodeAttribute::read(attribute, &before.pool).ok());
        if old_code.is_some_and(|old_code| frames(&before, old, &old_code).is_ok()) {
            frames(&after, new, &code).unwrap_or_else(|error| panic!("the output: {error}"));
        }
    }
    if verify::class::check(input).faults.is_empty() {
        let faults = verify::class::check(bytes).faults;
        assert!(faults.is_empty(), "the output: {faults:?}");
    }
}

fn frames(class: &ClassFile<'_>, method: &Member<'_>, code: &CodeAttribute<'_>) -> Result<(), Malformed> {
    let Some(table) = code.attribute("StackMapTable").filter(|_| class.major >= 50) else { return Ok(()) };
    let receiver = (!method.is_static()).then_some(VerificationType::Object(class.this_class));
    let initial = StackMap::initial_locals(receiver, method.descriptor, |_| Ok::<_, Malformed>(0))?;
    StackMap::read(table, initial, code).map(drop)
}

fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let (&options, class) = data.split_first()?;
    let options = if random.one_in(16) { random.below(64) as u8 } else { options };
    let mut out = vec![options];
    out.extend(class::mutate(class, random, plain)?);
    Some(out)
}
