//! Texts in any dialect as input, followed by a names file.

use et_analysis::summary;
use et_reader::source::{Deaths, Reading, Source};
use et_reader::text::{Dialect, Holders, TextNames, TextTrace};
use et_reader::text_writer;

use crate::{Plain, Random, Target, summarize};

pub const TARGET: Target = Target {
    name: "text",
    inputs: "text",
    longest: 6000,
    compares: false,
    memory_ratio: 1 << 12,
    run,
    mutate: Some(mutate),
    mend: None,
};

/// The line between the text and its names file.
pub const NAMES: &[u8] = b"\n=names=\n";

fn split(data: &[u8]) -> (&[u8], Option<&[u8]>) {
    match data.windows(NAMES.len()).position(|window| window == NAMES) {
        Some(at) => (&data[..at], Some(&data[at + NAMES.len()..])),
        None => (data, None),
    }
}

fn run(data: &[u8]) {
    let (text, names) = split(data);
    let names = names.and_then(|names| TextNames::read(names).expect("a slice can be read").ok());
    let text = TextTrace::from_text(text, names.clone());
    let _ = summary::text_info(&text);
    let source = Source::from(text);
    let _ = et_validate::validate(&source, Deaths::Trace, 3);
    if let Some(summary) = summarize(&source) {
        let _ = summary::render(&summary);
    }
    let _ = text_writer::write(&source, Dialect::Oracle, Reading::default(), std::io::sink());
    for dialect in [Dialect::Et, Dialect::Replayer] {
        for deaths in [Deaths::Trace, Deaths::None] {
            let reading = Reading { deaths, ..Reading::default() };
            let holders = Holders::Always;
            let mut written = Vec::new();
            if text_writer::write_with(&source, dialect, reading, holders, &mut written).is_err() {
                return;
            }
            // The first writing normalizes it; after that nothing changes.
            let back = TextTrace::from_text(written.as_slice(), names.clone()).into();
            let mut again = Vec::new();
            text_writer::write_with(&back, dialect, reading, holders, &mut again)
                .expect("what was written can be read");
            assert_same(&written, &again);
        }
    }
}

/// Panics at the first line that is another.
pub(crate) fn assert_same(written: &[u8], again: &[u8]) {
    if written == again {
        return;
    }
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (lines(written), lines(again));
    let at = one.iter().zip(&other).position(|(one, other)| one != other).unwrap_or(one.len().min(other.len()));
    panic!("line {} was {:?} and is now {:?}", at + 1, one.get(at), other.get(at));
}

/// Changes lines: takes one away, writes one twice, moves one, has a field say what another does.
fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = data.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    for _ in 0..=random.below(3) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(6) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => plain(&mut lines[at]),
            _ => {
                let donor: Vec<&[u8]> = lines[other].split(|&byte| byte == b' ').collect();
                let word = random.pick(&donor)?.to_vec();
                let mut words: Vec<&[u8]> = lines[at].split(|&byte| byte == b' ').collect();
                let place = random.below(words.len());
                words[place] = &word;
                lines[at] = words.join(&b' ');
            }
        }
    }
    Some(lines.join(&b'\n'))
}
