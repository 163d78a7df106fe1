//! Runs every target on its seeds, on the kept corpus, and on some mutations of both. Finding something new is
//! libFuzzer's work; this sees that what was found and mended stays so.
#![allow(clippy::print_stderr, reason = "tests tell what they do")]

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use et_fuzz_targets::{Random, Target, seeds};

/// Number of mutations of each input.
const MUTATIONS: u32 = 20;

fn replay(target: &Target) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.inputs);
    let mut inputs = seeds::of(target.inputs);
    assert!(!inputs.is_empty(), "{} has no seeds", target.name);
    // Git keeps no empty folders: a target for which nothing is kept has none.
    for entry in fs::read_dir(&corpus).into_iter().flatten() {
        let path = entry.unwrap().path();
        inputs.push((path.display().to_string(), fs::read(&path).unwrap()));
    }
    for (name, input) in &inputs {
        eprintln!("{name}");
        (target.run)(input);
        for seed in 0..MUTATIONS {
            let random = RefCell::new(Random::new(seed));
            let plain = |bytes: &mut Vec<u8>| damage(bytes, &mut random.borrow_mut());
            let mut own = Random::new(!seed);
            let mutated = target.mutate.and_then(|mutate| mutate(input, &mut own, &plain)).unwrap_or_else(|| {
                let mut bytes = input.clone();
                plain(&mut bytes);
                bytes
            });
            (target.run)(&mutated);
        }
    }
}

/// Some bytes changed, some added or taken away.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            bytes.push(random.number() as u8);
        }
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.insert(at, random.number() as u8),
            1 => drop(bytes.remove(at)),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => bytes.truncate(at),
            _ => bytes[at] = random.number() as u8,
        }
    }
}

#[test]
fn class() {
    replay(&et_fuzz_targets::class::TARGET);
}

#[test]
fn rewriter() {
    replay(&et_fuzz_targets::rewriter::TARGET);
}

#[test]
fn jar() {
    replay(&et_fuzz_targets::jar::TARGET);
}

#[test]
fn jimage() {
    replay(&et_fuzz_targets::jimage::TARGET);
}

#[test]
fn trace() {
    replay(&et_fuzz_targets::trace::TARGET);
}

#[test]
fn trace_text() {
    replay(&et_fuzz_targets::trace::TEXT);
}

#[test]
fn compare() {
    replay(&et_fuzz_targets::trace::COMPARE);
}

#[test]
fn recover() {
    replay(&et_fuzz_targets::trace::RECOVER);
}

#[test]
fn heap() {
    replay(&et_fuzz_targets::trace::HEAP);
}

#[test]
fn text() {
    replay(&et_fuzz_targets::text::TARGET);
}

#[test]
fn names() {
    replay(&et_fuzz_targets::names::TARGET);
}

#[test]
fn ddm() {
    replay(&et_fuzz_targets::ddm::TARGET);
}
