//! Artifacts instrumented before the run. The trace gets names only of classes that the program loads, each with its
//! record: a JDK has thirty thousand classes, and few programs load two thousand.

use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::{io, mem};

use et_jvm::sync::lock;
use et_names::{ClassEntries, DecodeError, MOST_UNPACKED, NamesTable, Source};

/// A names table, and its name in messages.
#[derive(Debug)]
pub struct Artifact {
    pub name: String,
    pub classes: Classes,
}

/// A names table on disk.
#[derive(Debug)]
pub struct OnDisk(pub File);

impl Source for OnDisk {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// The table of a JDK stays on disk; tables in jars are read into memory.
#[derive(Debug)]
pub enum Classes {
    OnDisk(ClassEntries<OnDisk>),
    InMemory(ClassEntries<Vec<u8>>),
}

impl Classes {
    fn take(&mut self, names: &[String], left: &mut usize) -> Result<Option<Vec<u8>>, DecodeError> {
        let names = names.iter().map(String::as_str);
        let names = match self {
            Self::OnDisk(entries) => entries.take(names)?,
            Self::InMemory(entries) => entries.take(names)?,
        };
        readable(names, left)
    }

    fn take_rest(&mut self, left: &mut usize) -> Result<Option<Vec<u8>>, DecodeError> {
        match self {
            // Reading all names of a JDK would delay the program.
            Self::OnDisk(entries) => entries.take_rest(),
            Self::InMemory(entries) => readable(entries.take_rest()?, left),
        }
    }

    /// Whether this is the artifact, and it lacks a class of that name.
    fn lacks(&self, name: &str, artifact: u64) -> bool {
        match self {
            Self::OnDisk(entries) => entries.artifact().hash == artifact && !entries.has(name),
            Self::InMemory(entries) => entries.artifact().hash == artifact && !entries.has(name),
        }
    }
}

/// Checks a names table: readers would reject a trace with a malformed one.
fn readable(names: Option<Vec<u8>>, left: &mut usize) -> Result<Option<Vec<u8>>, DecodeError> {
    if let Some(names) = &names {
        decode(names, left)?;
    }
    Ok(names)
}

/// Decodes a names table. A jar is untrusted input, and this is the program's memory: the uncompressed size of names
/// is subtracted from `left`, to which each table adds several times its own size.
pub fn decode(names: &[u8], left: &mut usize) -> Result<NamesTable, DecodeError> {
    const EXPANSION: usize = 16;
    *left = left.saturating_add(names.len().saturating_mul(EXPANSION)).min(MOST_UNPACKED);
    NamesTable::decode_within(names, left)
}

/// Classes whose names must go to the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Classes by internal name.
    names: Vec<String>,
    /// Classes made from the bytes of a class of an artifact under any name: the flight recorder renames them.
    made: Vec<(String, u64)>,
    /// Whether all classes are wanted.
    is_all: bool,
}

/// A class that is prepared before the first virtual thread runs. From then on JVMTI does not report the preparation
/// of all classes: those prepared by virtual threads are missing.
const OF_VIRTUAL_THREADS: &str = "java/lang/VirtualThread$VThreadContinuation";

impl Wanted {
    fn add(&mut self, name: &str) {
        self.is_all |= name == OF_VIRTUAL_THREADS;
        self.names.push(name.to_owned());
    }

    /// Names tables of these classes.
    fn of(&self, classes: &mut Classes, left: &mut usize) -> Result<Option<Vec<u8>>, DecodeError> {
        // The class may have been renamed, and its original is unknown.
        let was_renamed = self.made.iter().any(|(name, artifact)| classes.lacks(name, *artifact));
        if self.is_all || was_renamed { classes.take_rest(left) } else { classes.take(&self.names, left) }
    }
}

/// Something to queue for the trace.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// A names table for the trace.
    Names(Vec<u8>),
    /// A problem: a table that has become unreadable.
    Problem(String),
}

/// The artifacts of the run.
#[derive(Debug, Default)]
pub struct Artifacts {
    state: Mutex<State>,
}

enum State {
    /// The search for tables is not finished; these classes were loaded meanwhile.
    Unknown(Wanted),
    Known(Known),
}

struct Known {
    artifacts: Vec<Artifact>,
    /// Bytes that further names in the trace may take, uncompressed.
    left: usize,
}

/// Limit for tables with an index; the other half is for those without.
pub const SHARE: usize = MOST_UNPACKED / 2;

impl Default for State {
    fn default() -> Self {
        Self::Unknown(Wanted::default())
    }
}

impl Debug for State {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(wanted) => write!(out, "Unknown({wanted:?})"),
            Self::Known(known) => write!(out, "Known({})", known.artifacts.len()),
        }
    }
}

impl Artifacts {
    /// Sets all artifacts. Returns the names of classes loaded so far.
    pub fn found(&self, artifacts: Vec<Artifact>) -> Vec<Told> {
        let mut state = lock(&self.state);
        let before = mem::replace(&mut *state, State::Known(Known { artifacts, left: SHARE }));
        match (before, &mut *state) {
            (State::Unknown(wanted), State::Known(known)) => known.told(&wanted),
            _ => Vec::new(),
        }
    }

    /// A class with this descriptor was loaded. Returns its names.
    pub fn loaded(&self, descriptor: &str) -> Vec<Told> {
        // Arrays have no names of their own.
        let Some(name) = descriptor.strip_prefix('L').and_then(|name| name.strip_suffix(';')) else {
            return Vec::new();
        };
        self.want(|wanted| wanted.add(name))
    }

    /// A class is made from the bytes of this class of an artifact. If it is hidden, the VM may rename it.
    pub fn made_of(&self, name: &str, artifact: u64) -> Vec<Told> {
        self.want(|wanted| {
            wanted.add(name);
            wanted.made.push((name.to_owned(), artifact));
        })
    }

    fn want(&self, add: impl FnOnce(&mut Wanted)) -> Vec<Told> {
        match &mut *lock(&self.state) {
            State::Unknown(wanted) => {
                add(wanted);
                Vec::new()
            }
            State::Known(known) => {
                let mut wanted = Wanted::default();
                add(&mut wanted);
                known.told(&wanted)
            }
        }
    }
}

impl Known {
    fn told(&mut self, wanted: &Wanted) -> Vec<Told> {
        let Self { artifacts, left } = self;
        let mut all = Vec::new();
        artifacts.retain_mut(|artifact| match wanted.of(&mut artifact.classes, left) {
            Ok(names) => {
                all.extend(names.map(Told::Names));
                true
            }
            Err(error) => {
                let line = format!("{}: {error}; the trace will lack names", artifact.name);
                all.push(Told::Problem(line));
                false
            }
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use et_names::{ArtifactKind, ClassNames, EventSet, Opened};

    use super::*;

    fn file(name: &str, base: u32, classes: &[&str]) -> Vec<u8> {
        let artifact = et_names::Artifact {
            hash: base.into(),
            base,
            name: name.into(),
            kind: ArtifactKind::Application,
            events: EventSet::ALL,
        };
        let mut table = NamesTable::new(artifact);
        classes.iter().for_each(|name| table.push(&ClassNames { name: (*name).into(), ..ClassNames::default() }));
        table.encode()
    }

    fn artifact(name: &str, bytes: Vec<u8>) -> Artifact {
        let Ok(Opened::ByClass(entries)) = ClassEntries::open(bytes) else { panic!("no table by class") };
        Artifact { name: name.into(), classes: Classes::InMemory(entries) }
    }

    fn classes(told: &[Told]) -> Vec<String> {
        let mut names = Vec::new();
        for told in told {
            let Told::Names(bytes) = told else { panic!("{told:?}") };
            let table = NamesTable::decode(bytes).unwrap();
            names.extend(table.classes.iter().map(|class| table.str(class.name).to_owned()));
        }
        names
    }

    #[test]
    fn names_take_no_more_memory_than_there_is_for_them() {
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (state >> 24) as u8 % 26)
        });
        let long: String = noise.take(8000).chain(std::iter::repeat_n('x', 8 << 20)).collect();
        let bomb = file("bomb.jar", 5_000_000, &["a/A", &long]);
        let plain = file("a.jar", 6_000_000, &["a/A", "a/B"]);
        let mut left = SHARE;
        let read = std::iter::repeat_with(|| decode(&bomb, &mut left)).take_while(Result::is_ok).count();
        assert!((10..20).contains(&read), "{read}");
        assert!(matches!(decode(&bomb, &mut left), Err(DecodeError::TooMuch)));
        // A table whose saved size is within its own contribution can always be read.
        assert!((0..1000).all(|_| decode(&plain, &mut left).is_ok()));
    }

    #[test]
    fn classes_go_to_the_trace_once_and_when_they_are_loaded() {
        let artifacts = Artifacts::default();
        assert_eq!(artifacts.loaded("La/Early;"), []);
        assert_eq!(artifacts.loaded("[La/Late;"), []);
        let all = ["a/Early", "a/Late", "a/Never", OF_VIRTUAL_THREADS];
        let two =
            vec![artifact("one", file("one", 100, &all)), artifact("two", file("two", 200, &["a/Late", "b/Other"]))];
        assert_eq!(classes(&artifacts.found(two)), ["a/Early"]);
        assert_eq!(classes(&artifacts.loaded("La/Late;")), ["a/Late", "a/Late"]);
        assert_eq!(artifacts.loaded("La/Late;"), []);
        assert_eq!(artifacts.loaded("La/Unknown;"), []);
        // The loading of classes by virtual threads is not reported.
        let rest = classes(&artifacts.loaded(&format!("L{OF_VIRTUAL_THREADS};")));
        assert_eq!(rest, ["a/Never", OF_VIRTUAL_THREADS, "b/Other"]);
        assert_eq!(artifacts.loaded("La/Never;"), []);
    }

    #[test]
    fn all_classes_of_an_artifact_go_to_the_trace_if_one_was_renamed() {
        let artifacts = Artifacts::default();
        let known =
            vec![artifact("one", file("one", 100, &["a/A", "a/B"])), artifact("two", file("two", 200, &["b/C"]))];
        assert_eq!(artifacts.made_of("a/A", 100), []);
        assert_eq!(classes(&artifacts.found(known)), ["a/A"], "it is called what it was");
        assert_eq!(artifacts.made_of("a/A", 100), []);
        assert_eq!(artifacts.made_of("c/D", 7), [], "nobody has that artifact");
        assert_eq!(classes(&artifacts.made_of("relocated/A", 100)), ["a/B"]);
        // The same if its table was not found yet.
        let artifacts = Artifacts::default();
        assert_eq!(artifacts.made_of("relocated/C", 200), []);
        let known = vec![artifact("one", file("one", 100, &["a/A"])), artifact("two", file("two", 200, &["b/C"]))];
        assert_eq!(classes(&artifacts.found(known)), ["b/C"]);
    }

    /// The table is found, and its first class reports a problem.
    fn told_to_be_damaged(artifacts: &Artifacts, bytes: Vec<u8>) {
        assert_eq!(artifacts.found(vec![artifact("one.jar", bytes)]), []);
        let told = artifacts.loaded("La/A;");
        assert!(
            matches!(&told[..], [Told::Problem(line)] if line.starts_with("one.jar: names table is damaged")),
            "{told:?}"
        );
    }

    #[test]
    fn a_table_that_cannot_be_read_any_more_is_a_problem_once() {
        let artifacts = Artifacts::default();
        let mut bytes = file("one", 100, &["a/A"]);
        // Offsets far beyond the end.
        let at = bytes.len() - 2;
        bytes[at] = 0xff;
        told_to_be_damaged(&artifacts, bytes);
        assert_eq!(artifacts.loaded("La/A;"), []);
    }

    #[test]
    fn a_class_that_readers_would_refuse_does_not_go_to_the_trace() {
        let artifacts = Artifacts::default();
        let mut bytes = file("one", 100, &["a/A", "a/B"]);
        let frame = [0x28, 0xb5, 0x2f, 0xfd];
        let at = bytes.windows(4).position(|window| window == frame).unwrap();
        bytes[at] = 0;
        told_to_be_damaged(&artifacts, bytes);
    }
}
