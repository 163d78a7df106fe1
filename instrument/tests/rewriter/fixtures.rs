//! The class files under `tests/fixtures`, each with the options that its source asks for.

use std::path::{Path, PathBuf};

use et_rewriter::rewrite::{EventSet, FirstIds, Options, Plan, Rewritten};

/// First ids that make the kinds distinguishable in a disassembly.
pub const FIRST: FirstIds = FirstIds { class: 1, method: 1000, field: 1, site: 2000, field_ref: 3000 };

/// A class file and what the comment lines at the top of its source say.
pub struct Fixture {
    /// File name without `.class`.
    pub name: String,
    pub bytes: Vec<u8>,
    pub options: Options,
    pub hooked: bool,
    /// Methods to show; all but `main` if empty.
    pub show: Vec<String>,
    /// Number of lines to show at the end of each method.
    pub tail: usize,
    /// Whether it is a class of the JDK, which cannot be loaded beside the real one.
    pub is_jdk: bool,
}

pub fn options(events: EventSet) -> Options {
    Options { events, jdk: false, artifact_hash: 0x1234_5678_9abc_def0, base: 1000, leaves: true, all_hooked: true }
}

pub fn rewrite(bytes: &[u8], options: &Options) -> Rewritten {
    Plan::new(bytes, true, options).expect("the class is read").rewrite(FIRST, options).expect("it is rewritten")
}

impl Fixture {
    fn read(path: &Path) -> Self {
        let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let outer = stem.split('$').next().unwrap_or_default();
        let source = std::fs::read_to_string(path.with_file_name(format!("{outer}.java"))).unwrap_or_default();
        let mut fixture = Self {
            name: stem,
            bytes: std::fs::read(path).expect("the fixture is readable"),
            options: options(EventSet::ALL),
            hooked: true,
            show: Vec::new(),
            tail: usize::MAX,
            is_jdk: false,
        };
        for line in source.lines().map_while(|line| line.strip_prefix("// ")) {
            match line.split_once(": ").unwrap_or((line, "")) {
                ("events", events) => fixture.options.events = events.parse().expect("events are known"),
                ("witness", which) => {
                    let witness = which.parse().expect("witnesses are known");
                    fixture.options.events = fixture.options.events.with(witness);
                }
                ("show", methods) => fixture.show.extend(methods.split(' ').map(str::to_owned)),
                ("tail", lines) => fixture.tail = lines.parse().expect("a number of lines"),
                ("excluded", "") => fixture.hooked = false,
                ("jdk", "") => (fixture.is_jdk, fixture.options.jdk) = (true, true),
                _ => {}
            }
        }
        fixture
    }

    /// All of them, in order of their paths.
    pub fn all() -> Vec<Self> {
        let mut paths = Vec::new();
        class_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"), &mut paths);
        paths.sort();
        assert!(paths.len() > 30, "fixtures are missing");
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub fn plan(&self) -> Plan<'_> {
        Plan::new(&self.bytes, self.hooked, &self.options).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    pub fn rewrite(&self) -> Rewritten {
        self.plan().rewrite(FIRST, &self.options).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

fn class_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of fixtures is there") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            class_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "class") {
            found.push(path);
        }
    }
}
