//! Whose objects die young? For each class the share of its bytes that died before another megabyte was allocated.
#![allow(clippy::print_stderr, reason = "an example: it has nothing but the reading library")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use et_reader::record::Record;
use et_reader::source::{Reading, Source};

const YOUNG: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: young TRACE")?;
    let source = Arc::new(Source::open(path.as_ref(), None)?);
    let (mut allocated, mut alive, mut classes) = (0, HashMap::new(), HashMap::new());
    let mut records = source.records(Reading::default());
    for batch in &mut records {
        for (record, at) in batch?.records() {
            match record {
                Record::Alloc(object) => {
                    allocated += object.size;
                    alive.insert(object.object, (object.ty, object.size, allocated));
                    let class = || (at.types.descriptor(object.ty).to_owned(), 0, 0);
                    classes.entry(object.ty).or_insert_with(class).1 += object.size;
                }
                Record::Death { object, .. } => {
                    let (ty, size, born) = alive.remove(object).ok_or("a death of an object that nobody made")?;
                    let young = classes.get_mut(&ty).filter(|_| allocated - born < YOUNG);
                    young.into_iter().for_each(|class| class.2 += size);
                }
                _ => {}
            }
        }
    }
    let ending = records.into_ending()?;
    ending.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    source.cut_off().into_iter().for_each(|cut| eprintln!("{cut}"));
    let lost = ending.outcome.lost;
    let mut classes: Vec<(String, u64, u64)> = classes.into_values().collect();
    classes.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    println!("{:>12} {:>7}  class", "bytes", "young");
    for (class, bytes, young) in classes.iter().take(20) {
        println!("{bytes:>12} {:>6.1}%  {class}", 100.0 * *young as f64 / (*bytes).max(1) as f64);
    }
    if lost.total() > 0 { Err(format!("events are missing: {lost}").into()) } else { Ok(()) }
}
