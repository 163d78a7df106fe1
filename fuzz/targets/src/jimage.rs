//! JDK images: read, searched, rewritten, written, read again.

use et_instrument::artifact::{Blocks, ClassInput, ClassOutcome, instrument};
use et_instrument::container::jimage::{Image, ImageError, ImageWriter};
use et_names::ArtifactKind;

use crate::{Plain, Random, Target, class, jar};

pub const TARGET: Target = Target {
    name: "jimage",
    inputs: "jimage",
    longest: 16384,
    compares: true,
    memory_ratio: 1 << 13,
    run,
    mutate: Some(mutate),
    mend: None,
};

fn run(data: &[u8]) {
    let _ = rewrite(data);
}

fn rewrite(data: &[u8]) -> Result<(), ImageError> {
    let image = Image::read(data)?;
    let resources = image.resources()?;
    for resource in &resources {
        let _ = image.content(resource);
        if let Some(found) = image.find(&resource.name)? {
            assert_eq!(found.name, resource.name);
        }
    }
    let indexes: Vec<usize> = (0..resources.len()).filter(|index| resources[*index].is_class()).collect();
    let classes: Vec<ClassInput<'_>> = indexes
        .iter()
        .map(|index| ClassInput {
            label: resources[*index].name.clone(),
            bytes: image.content(&resources[*index]).map_err(|error| error.to_string()),
        })
        .collect();
    let settings = jar::settings();
    let done = instrument(&classes, "fuzz", ArtifactKind::Jdk, &settings, &mut Blocks::default(), |_, bytes| bytes);
    let Ok(done) = done else { return Ok(()) };

    let mut writer = ImageWriter::new(image, resources.clone());
    for (index, outcome) in indexes.into_iter().zip(done.outcomes) {
        if let ClassOutcome::New(bytes) = outcome {
            writer.replace(index, bytes);
        }
    }
    let is_added = writer.add_class("java.base", "java/lang", "HeapProxy", vec![1, 2, 3]).is_ok();
    let mut out = Vec::new();
    let written = writer.write(&mut out)?.expect("a vector takes everything");
    assert_eq!(written, out.len() as u64);

    let fail = |error: ImageError| -> ! { panic!("the output: {error}") };
    let copy = Image::read(&out).unwrap_or_else(|error| fail(error));
    let again = copy.resources().unwrap_or_else(|error| fail(error));
    assert_eq!(again.len(), resources.len() + usize::from(is_added));
    for (resource, new) in resources.iter().zip(&again) {
        assert_eq!(resource.name, new.name);
        copy.content(new).unwrap_or_else(|error| fail(error));
    }
    if is_added {
        let all = again.iter().all(|resource| copy.find(&resource.name).is_ok_and(|found| found.is_some()));
        assert!(all, "everything is found");
    }
    Ok(())
}

/// Changes a class, or the tables.
fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let image = Image::read(data).ok()?;
    let resources = image.resources().ok()?;
    if random.one_in(2) {
        // Changes a word in the tables.
        let mut out = data.to_vec();
        let at = 4 * random.below(out.len().min(4096) / 4);
        let word = out.get_mut(at..at + 4)?;
        let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let value = match random.below(4) {
            0 => value.wrapping_add(random.below(9) as u32).wrapping_sub(4),
            1 => random.below(data.len()) as u32,
            2 => value ^ 1 << random.below(32),
            _ => value.swap_bytes(),
        };
        word.copy_from_slice(&value.to_le_bytes());
        return Some(out);
    }
    let chosen = random.below(resources.len());
    let content = image.content(resources.get(chosen)?).ok()?.into_owned();
    let changed = class::mutate(&content, random, plain).unwrap_or_else(|| {
        let mut changed = content;
        plain(&mut changed);
        changed
    });
    let mut writer = ImageWriter::new(image, resources);
    writer.replace(chosen, changed);
    let mut out = Vec::new();
    writer.write(&mut out).ok()?.ok()?;
    Some(out)
}
