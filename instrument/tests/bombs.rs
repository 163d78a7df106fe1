//! Small archives that hold much: what is held in memory is counted, not guessed from the time it takes.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use common::{class, et_instrument, jar, runtime_dir};
use et_instrument::app;
use et_instrument::artifact::Settings;
use et_instrument::memory::Budget;
use et_instrument::progress::Progress;
use et_instrument::report::Report;
use et_instrument::verify;
use et_rewriter::filter::Filter;
use et_rewriter::rewrite::EventSet;
use et_tests_heap::{Counting, peak};

#[global_allocator]
static HEAP: Counting = Counting;

/// Where tests are threads of one process, what each holds can be counted only while the others wait.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const MB: usize = 1 << 20;
const BOMB: usize = 96 * MB;

/// Jars with a valid class and one entry of zeros: with nothing before them, with the magic number of a class, and with
/// that of an archive.
fn bombs() -> &'static [Vec<u8>; 3] {
    static BOMBS: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    BOMBS.get_or_init(|| {
        [("Zeros.class", &b""[..]), ("Long.class", b"\xca\xfe\xba\xbe\0\0\0\x34"), ("lib/x.jar", b"PK\x03\x04")].map(
            |(name, start)| {
                let mut content = vec![0; BOMB];
                content[..start.len()].copy_from_slice(start);
                jar(&[("A.class", class("A"), false), (name, content, false)])
            },
        )
    })
}

fn settings(memory: usize, check: bool) -> Settings {
    Settings {
        events: EventSet::ALL,
        counts: false,
        survival: None,
        leaves: true,
        filter: Filter::default(),
        strict: false,
        check,
        memory: Budget::of(memory as u64),
        progress: Progress::new(true),
    }
}

fn instrument(input: &Path, memory: usize, check: bool) -> (Report, usize) {
    let output = input.with_extension("out");
    let settings = settings(memory, check);
    let (report, peak) = peak(|| app::run(&[input.to_owned()], &output, true, None, &settings).unwrap());
    (report, peak)
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn skipped(report: &Report) -> Vec<String> {
    report.artifacts.iter().flat_map(|artifact| &artifact.skipped).map(ToString::to_string).collect()
}

#[test]
fn what_does_not_start_as_a_class_is_not_unpacked() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let input = written(folder.path(), "zeros.jar", &bombs()[0]);
    for check in [false, true] {
        // There is enough memory, but it is not even tried.
        let (report, peak) = instrument(&input, 4 * BOMB, check);
        assert!(peak < 16 * MB, "{peak}");
        let said = ["Zeros.class: byte 0: not a class file: it does not start with CAFEBABE"];
        assert_eq!((skipped(&report), report.artifacts[0].classes), (said.map(str::to_owned).to_vec(), 1));
    }
}

#[test]
fn what_is_larger_than_the_budget_is_left_as_it_is() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for (bomb, entry) in [(1, "Long.class"), (2, "lib/x.jar")] {
        let input = written(folder.path(), "long.jar", &bombs()[bomb]);
        let (report, peak) = instrument(&input, 8 * MB, true);
        assert!(peak < 16 * MB, "{peak}");
        let said = skipped(&report);
        let start = format!("{entry}: too large: 96.0 MiB unpacked, with ");
        assert!(said.len() == 1 && said[0].starts_with(&start), "{said:?}");
        assert_eq!(report.artifacts[0].classes, 1);
    }
}

#[test]
fn the_budget_is_one_for_all_threads() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut content = vec![0; 4 * MB];
    content[..8].copy_from_slice(b"\xca\xfe\xba\xbe\0\0\0\x34");
    let names: Vec<String> = (0..16).map(|number| format!("C{number:02}.class")).collect();
    let items: Vec<common::Item<'_>> = names.iter().map(|name| (name.as_str(), content.clone(), false)).collect();
    let inner = jar(&items);
    let input = written(folder.path(), "many.jar", &jar(&items));
    let fat =
        written(folder.path(), "fat.jar", &jar(&[("lib/a.jar", inner.clone(), true), ("lib/b.jar", inner, false)]));
    let threads = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
    for (path, classes) in [(input, 16), (fat, 32)] {
        let (report, peak) = threads.install(|| instrument(&path, 10 * MB, false));
        assert!(peak < 24 * MB, "{peak}");
        // The first two fit, whichever thread was faster; then they are found to be no classes.
        let said = skipped(&report);
        assert_eq!(said.len(), classes);
        let large = said.iter().filter(|said| said.contains(": too large: "));
        assert_eq!(large.count(), classes - 2, "{said:?}");
        assert!(!said[0].contains("too large") && !said[1].contains("too large"), "{said:?}");
    }
}

#[test]
fn verify_holds_no_more_than_the_budget() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let verify = |bomb: usize, all| {
        let input = written(folder.path(), "in.jar", &bombs()[bomb]);
        let options = verify::Options { all, memory: Budget::of(8 * MB as u64), progress: Progress::new(true) };
        let (verdict, peak) = peak(|| verify::run(&[input], &options));
        assert!(peak < 16 * MB, "{peak}");
        verdict.map(|verdict| verdict.findings.iter().map(|found| format!("{}: {}", found.entry, found.what)).collect())
    };
    let found: [Vec<String>; 3] = [0, 1, 2].map(|bomb| verify(bomb, true).unwrap());
    assert_eq!(found[0], ["Zeros.class: it does not start with CAFEBABE"]);
    assert!(found[1].len() == 1 && found[1][0].starts_with("Long.class: it is not checked: "), "{found:?}");
    assert!(found[2].len() == 1 && found[2][0].starts_with("lib/x.jar: it is not checked: "), "{found:?}");
    assert!(verify(0, false).is_err(), "nothing in it is instrumented");
}

#[test]
fn files_with_holes_are_not_read() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let classes = folder.path().join("classes");
    fs::create_dir(&classes).unwrap();
    fs::write(classes.join("A.class"), class("A")).unwrap();
    fs::File::create(classes.join("Hole.class")).unwrap().set_len(BOMB as u64).unwrap();
    let (report, peak) = instrument(&classes, 4 * BOMB, true);
    assert!(peak < 16 * MB, "{peak}");
    assert_eq!((skipped(&report).len(), report.artifacts[0].classes), (1, 1));
    assert_eq!(fs::metadata(folder.path().join("classes.out/Hole.class")).unwrap().len(), BOMB as u64);
}

/// Looks like an instrumented JDK, with a shell script as its java.
fn scripted_jdk(home: &Path, script: &str) {
    for (path, content) in [
        ("lib/modules", "no image".to_owned()),
        ("lib/elephant-tracks/names.etn", String::new()),
        ("et.args", format!("-c\n\"{script}\"\n")),
    ] {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::copy("/bin/sh", home.join("bin/java")).unwrap();
}

#[test]
fn a_program_runs_although_its_jars_are_bombs() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    scripted_jdk(&root.join("jdk"), "echo it runs; exit 7");
    for (number, bomb) in bombs().iter().enumerate() {
        written(root, &format!("{number}.jar"), bomb);
    }
    written(root, "broken.jar", b"PK no archive");
    // Four times what the bombs hold would be needed; a fifth of that there is.
    let limit = 4 * BOMB / 5 / 1024;
    let script = format!(
        "ulimit -v {limit}; exec \"$0\" run --cache-dir cache -- jdk/bin/java -cp 0.jar:1.jar:2.jar:broken.jar Main"
    );
    for _ in 0..2 {
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .arg(et_instrument().get_program())
            .current_dir(root)
            .env("ET_RUNTIME_DIR", root.join("runtime"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{said}");
        assert_eq!(output.stdout, b"it runs\n");
        let first =
            format!("et-instrument: 4 copied unchanged: {}/0.jar: Zeros.class: byte 0: not a class", root.display());
        assert!(said.contains(&first), "{said}");
    }
}
