//! Initial objects are found by their mark words, with the same result as by tags.

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::{self, Run, Setup};
use et_tests::record::{ObjectId, What};
use xtask::jdks::Jdk;

/// Name and options, and the Java versions that know them.
const VARIANTS: [(&str, u32, &[&str]); 6] = [
    ("serial", 11, &["-XX:+UseSerialGC"]),
    ("parallel", 11, &["-XX:+UseParallelGC"]),
    ("z", 15, &["-XX:+UseZGC"]),
    ("shenandoah", 15, &["-XX:+UseShenandoahGC"]),
    ("compact_headers", 25, &["-XX:+UseCompactObjectHeaders"]),
    ("inflated_locks", 21, &["-XX:+UnlockExperimentalVMOptions", "-XX:LockingMode=0"]),
];

/// Everything that the interpreter alone does, and so in each run.
const BOTH: [&str; 2] = ["-Xint", "-Xmx64m"];
const LATE: &str = "-Det.start=method:Initial.begin";

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (name, since, options) in VARIANTS {
        trials.extend(lab::on_each_jdk_unless(
            name,
            move |lab, jdk| obstacle(lab, jdk, since, options),
            move |lab, jdk| same(lab, jdk, name, options, &[LATE], 10),
        ));
    }
    trials.extend(lab::on_each_jdk("from_the_start", |lab, jdk| same(lab, jdk, "start", &[], &[], 10)));
    trials.extend(lab::on_each_jdk("in_many_blocks", in_many_blocks));
    trials.extend(lab::on_each_jdk("many_locks", |lab, jdk| same(lab, jdk, "locks", &[], &[LATE], 100)));
    lab::run(trials).exit_code()
}

/// Not all builds have all collectors.
fn obstacle(lab: &Lab, jdk: &Jdk, since: u32, options: &[&str]) -> Option<String> {
    match jdk.feature < since {
        true => Some(format!("Java {} has no {}", jdk.feature, options.join(" "))),
        false => lab.refusal(jdk, options),
    }
}

/// Objects by type, size and length; references by the types of both ends.
type Picture = BTreeMap<Vec<String>, usize>;

fn same(lab: &Lab, jdk: &Jdk, name: &str, options: &[&str], traced: &[&str], waited: usize) -> Result<()> {
    let threads = format!("-Dwaited={waited}");
    let both = [&BOTH, options, &[&threads]].concat();
    // Strings of the JVM hold these names: they are of one length.
    let walked = |way: &str| {
        let environment = [("ET_TEST_WALKS", way)];
        let setup = Setup { both: &both, traced, environment: &environment, ..Setup::default() };
        let run = Run::with(lab, jdk, &format!("initial_{name}_{way}"), "facts/Initial", setup)?;
        let summary = run.summary(lab)?;
        let walked = walked(&summary["problems"])?;
        // That the heap was walked, and of ZGC's references, where no field declares the lock, that it was not found.
        let expected = 1 + usize::from(name == "z" && jdk.feature >= 25);
        ensure!(program::problems(&summary).len() == expected, "{}", summary["problems"]);
        let picture = picture(lab, &run)?;
        run.clean()?;
        Ok((walked, picture))
    };
    let ((by_tags, expected), (by_marks, found)) = (walked("tags")?, walked("mark")?);
    ensure!(by_tags.0 == "tags", "by {}", by_tags.0);
    ensure!(by_marks.0 == "mark words", "by {}", by_marks.0);
    // Objects that threads wait for have a number meanwhile; where there are too many, they are tagged.
    ensure!(by_marks.1 <= 2, "{} walks", by_marks.1);
    if options.is_empty() {
        let (by_both, after_gaps) = walked("both")?;
        ensure!(by_both.0 == "tags", "by {}", by_both.0);
        ensure!(after_gaps == expected, "a walk by mark words before those by tags changes what they find");
    }
    let of_mirror = ["Ljava/lang/Class;", "Ljava/lang/ref/SoftReference;"].map(str::to_owned).to_vec();
    ensure!(traced.is_empty() || expected.contains_key(&of_mirror), "nothing that only a class mirror refers to");
    let frames = expected.get(["run", "LInitial$Waited;"].map(str::to_owned).as_slice()).copied();
    ensure!(frames == Some(waited), "{frames:?} frames of {waited}");
    ensure!(expected.values().sum::<usize>() > 10_000, "{} objects and references", expected.len());
    let differences: Vec<String> = expected
        .keys()
        .chain(found.keys())
        .filter(|key| expected.get(*key) != found.get(*key))
        .map(|key| format!("{key:?}: {:?} by tags, {:?} by mark words", expected.get(key), found.get(key)))
        .collect();
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// What exceeds a block goes to several: objects that no hook has seen before the start, and more than the first range
/// of ids.
fn in_many_blocks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let both = [&BOTH[..], &["-Dwaited=1", "-Dmany=50000"]].concat();
    let written = |bytes: &str| {
        let environment = [("ET_TEST_WALKS", "mark"), ("ET_TEST_INITIAL_BLOCK", bytes)];
        let setup = Setup { both: &both, traced: &[LATE], environment: &environment, ..Setup::default() };
        let run = Run::with(lab, jdk, &format!("initial_blocks_{bytes}"), "facts/Initial", setup)?;
        let [objects, references] = blocks(&fs::read(&run.trace)?)?;
        let (counts, largest) = ((objects.len(), references.len()), objects.into_iter().chain(references).max());
        let walked = walked(&run.summary(lab)?["problems"])?;
        ensure!(walked.0 == "mark words" && walked.1 <= 2, "{} walks by {}", walked.1, walked.0);
        let picture = picture(lab, &run)?;
        run.clean()?;
        Ok((picture, counts, largest))
    };
    let (expected, counts, _) = written("33554432")?;
    ensure!(counts == (1, 1), "{counts:?} blocks");
    let (found, counts, largest) = written("00065536")?;
    ensure!(counts.0 > 10 && counts.1 > 10, "{counts:?} blocks");
    ensure!(largest.is_some_and(|bytes| bytes < 66_000), "{largest:?} bytes");
    ensure!(found == expected, "what is in many blocks is not what is in one");
    let nodes = found.iter().filter(|(key, _)| key.len() == 3 && key[0] == "LInitial$Node;").map(|(_, count)| count);
    ensure!(nodes.sum::<usize>() > 50_000, "the many objects are missing");
    Ok(())
}

/// The unpacked sizes of the blocks of initial objects and of references (docs/inside/trace-file.md).
fn blocks(trace: &[u8]) -> Result<[Vec<u32>; 2]> {
    const FILE_HEADER: usize = 16;
    const BLOCK_HEADER: usize = 40;
    const KINDS: [u8; 2] = [7, 8];
    let mut sizes = [Vec::new(), Vec::new()];
    let mut rest = trace.get(FILE_HEADER..).context("no trace")?;
    while let Some((header, after)) = rest.split_at_checked(BLOCK_HEADER) {
        ensure!(header.starts_with(b"ETBK"), "no block {} bytes before the end", rest.len());
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if let Some(kind) = KINDS.iter().position(|kind| *kind == header[4]) {
            sizes[kind].push(word(12));
        }
        rest = after.get(word(16) as usize..).context("the last block is cut off")?;
    }
    Ok(sizes)
}

/// How the heap was walked, and how often.
fn walked(problems: &serde_json::Value) -> Result<(String, u64)> {
    const SAID: &str = "the heap was walked by ";
    let problems = problems.as_array().context("no problems")?;
    let said = problems.iter().find_map(|problem| Some((problem["what"].as_str()?.strip_prefix(SAID)?, problem)));
    let (by, problem) = said.context("the trace does not say how the heap was walked")?;
    Ok((by.to_owned(), problem["count"].as_u64().context("no count")?))
}

fn picture(lab: &Lab, run: &Run) -> Result<Picture> {
    let trace = run.read(lab)?;
    let mut picture = Picture::new();
    for record in &trace.records.all {
        if let What::Born { kind: 'I', size, descriptor, length, .. } = &record.what {
            *picture.entry(vec![descriptor.to_string(), size.to_string(), length.to_string()]).or_default() += 1;
        }
    }
    let objects = &trace.records.descriptors;
    for record in &trace.records.all {
        if let What::Entry { method, receiver } = record.what
            && trace.names.methods.get(&method).is_some_and(|method| method.name == "run")
            && let Some(receiver) = objects.get(&receiver)
        {
            *picture.entry(vec!["run".into(), receiver.to_string()]).or_default() += 1;
        }
    }
    let type_of = |id: &str| -> Result<String> {
        let id = ObjectId(u64::from_str_radix(id, 16)?);
        Ok(objects.get(&id).map_or("none", |descriptor| descriptor).to_owned())
    };
    for comment in &trace.records.comments {
        // The position in an array may depend on hashes, and so may the order of entries in a map's bucket.
        if let ["ref", origin, _, target] = comment.split(' ').collect::<Vec<_>>()[..] {
            let (mut origin, target) = (type_of(origin)?, type_of(target)?);
            if ["HashMap$Node;", "HashMap$Entry;"].iter().any(|entry| target.ends_with(entry)) {
                origin = "a map".into();
            }
            *picture.entry(vec![origin, target]).or_default() += 1;
        }
    }
    Ok(picture)
}
