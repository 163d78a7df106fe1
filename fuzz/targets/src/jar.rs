//! Whole jars: in, rewritten, out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use et_instrument::app::AppError;
use et_instrument::artifact::{Blocks, Settings, instrument};
use et_instrument::container::jar::{Findings, Jar, JarError};
use et_instrument::container::zip::{Archive, DEFLATED, Packed, STORED, Writer};
use et_instrument::memory::Budget;
use et_instrument::progress::Progress;
use et_names::{ArtifactKind, ENTRY_IN_JAR};
use et_rewriter::filter::Filter;
use et_rewriter::rewrite::EventSet;

use crate::{Plain, Random, Target, class};

pub const TARGET: Target = Target {
    name: "jar",
    inputs: "jar",
    longest: 16384,
    compares: true,
    memory_ratio: 1 << 13,
    run,
    mutate: Some(mutate),
    mend: None,
};

/// Default settings without options.
pub(crate) fn settings() -> Settings {
    Settings {
        events: EventSet::ALL,
        counts: false,
        survival: None,
        leaves: true,
        filter: Filter::default(),
        strict: false,
        check: false,
        memory: Budget::of(1 << 20),
        progress: Progress::new(true),
    }
}

/// The jar as the command line would write it; `None` if it is copied as it is.
fn rewrite(data: &[u8]) -> Result<Option<Vec<u8>>, AppError> {
    let settings = settings();
    let mut findings = Findings::new(settings.memory);
    let jar = Jar::scan(data, "fuzz.jar", &mut findings)?;
    let classes = jar.classes(&mut findings);
    let methods = jar.methods(findings.classes);
    let kind = ArtifactKind::Application;
    let pack = |index: usize, bytes| Packed::new(bytes, methods[index]);
    let done = instrument(&classes, "fuzz.jar", kind, &settings, &mut Blocks::default(), pack)?;
    if !jar.touched(&done.outcomes) {
        return Ok(None);
    }
    let signatures = jar.signatures(&done.outcomes).iter().filter(|name| !name.contains("!/")).count();
    let (entry, names) = (jar.names_entry("fuzz.jar"), done.names.encode());
    let (out, size) = jar.write(Vec::new(), &done.outcomes, Some((&entry, names))).expect("a vector takes everything");
    assert_eq!(size, out.len() as u64);
    let before = Archive::read(data).expect("it was read a moment ago").entries.len();
    let after = Archive::read(&out).unwrap_or_else(|error| panic!("the output: {error}")).entries.len();
    assert_eq!(after, before - signatures + 1, "each entry but the signatures, and the names table");
    Ok(Some(out))
}

fn run(data: &[u8]) {
    let Ok(Some(out)) = rewrite(data) else { return };
    let again = rewrite(data).expect("it was rewritten a moment ago");
    assert!(again.as_ref() == Some(&out), "the same input makes the same output");
    let twice = rewrite(&out).map(drop);
    assert!(matches!(twice, Err(AppError::Jar(JarError::AlreadyInstrumented(_)))), "{twice:?}");
    contents(data, &out);
}

/// What could be unpacked before can be unpacked afterwards.
fn contents(before: &[u8], after: &[u8]) {
    let (old, new) = (Archive::read(before), Archive::read(after));
    let (old, new) = (old.expect("it was read before"), new.expect("it was read before"));
    let mut rest = new.entries.iter().peekable();
    for entry in &old.entries {
        let Some(kept) = rest.next_if(|next| after[next.raw_name.clone()] == before[entry.raw_name.clone()]) else {
            continue; // a signature
        };
        if entry.content(before).is_ok() {
            kept.content(after).unwrap_or_else(|error| panic!("{}: {error}", kept.name));
        }
    }
    let table = rest.next().expect("the names table comes last");
    assert!(table.name == ENTRY_IN_JAR || table.name.ends_with(".etn"), "{}", table.name);
    let table = table.content(after).expect("the names table is whole");
    et_names::NamesTable::decode(&table).unwrap_or_else(|error| panic!("the names table: {error}"));
}

/// Changes the content, or the head, of one entry, and writes the archive anew around it.
fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let archive = Archive::read(data).ok()?;
    let chosen = random.below(archive.entries.len());
    // The writer is only a helper here; its behaviour for impossible input is not tested.
    let write = || -> std::io::Result<Vec<u8>> {
        let mut writer = Writer::like(Vec::new(), &archive, data)?;
        let mut random = random.clone();
        for (index, entry) in archive.entries.iter().enumerate() {
            match entry.content(data) {
                Ok(content) if index == chosen => {
                    let method = if random.one_in(2) { DEFLATED } else { STORED };
                    let changed = class::mutate(&content, &mut random, plain).unwrap_or_else(|| {
                        let mut changed = content.into_owned();
                        plain(&mut changed);
                        changed
                    });
                    match random.below(8) {
                        0 => writer.copy(entry, data)?,
                        1 => writer.add("META-INF/FUZZ.SF", &Packed::new(changed, method))?,
                        2 => writer.add("META-INF/MANIFEST.MF", &Packed::new(changed, method))?,
                        3 => writer.add("BOOT-INF/lib/more.jar", &Packed::new(data.to_vec(), method))?,
                        _ => writer.replace(entry, data, &Packed::new(changed, method))?,
                    }
                }
                _ => writer.copy(entry, data)?,
            }
        }
        Ok(writer.finish(&data[archive.comment.clone()])?.0)
    };
    catch_unwind(AssertUnwindSafe(write)).ok()?.ok()
}
