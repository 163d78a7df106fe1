//! A real JVM has the last word: every rewritten class is loaded and verified, every `main` prints what it did before.

use std::path::{Path, PathBuf};
use std::process::Command;

use et_rewriter::rewrite::{EventSet, Witness};

use crate::common;
use crate::fixtures::Fixture;
use crate::generated;

/// JDKs with a compiler: `JAVA_HOME`, and where Linux distributions put them.
fn jdks() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    if let Ok(folder) = std::fs::read_dir("/usr/lib/jvm") {
        homes.extend(folder.flatten().map(|entry| entry.path()));
    }
    let mut homes: Vec<PathBuf> = homes
        .iter()
        .filter(|home| home.join("bin/javac").exists() && home.join("lib/modules").exists())
        .filter_map(|home| home.canonicalize().ok())
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

fn feature_version(home: &Path) -> u32 {
    let release = std::fs::read_to_string(home.join("release")).unwrap_or_default();
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
    version.and_then(|version| version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).unwrap_or(0)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn rewritten_classes_verify_and_run_as_before() {
    verify_and_run(|events| events);
}

#[test]
fn with_every_use_of_every_object_as_well() {
    verify_and_run(|events| events.with(Witness::All));
}

fn verify_and_run(events: impl Fn(EventSet) -> EventSet) {
    let jdks = jdks();
    if jdks.is_empty() {
        common::not_tested("rewritten classes in a JVM", "no JDK with a javac in JAVA_HOME or /usr/lib/jvm");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (originals, rewritten) = (folder.path().join("originals"), folder.path().join("rewritten"));
    std::fs::create_dir(&originals).unwrap();
    std::fs::create_dir(&rewritten).unwrap();
    let mut classes: Vec<(String, Vec<u8>, Vec<u8>)> = Fixture::all()
        .into_iter()
        .filter(|fixture| !fixture.is_jdk && fixture.name != "module-info")
        .map(|mut fixture| {
            fixture.options.events = events(fixture.options.events);
            let new = fixture.rewrite().bytes;
            (fixture.name, fixture.bytes, new)
        })
        .collect();
    classes.extend(generated::all().into_iter().map(|mut class| {
        class.options.events = events(class.options.events);
        let new = class.rewrite().bytes;
        (class.name, class.bytes, new)
    }));
    let count = classes.len();
    for (name, old, new) in classes {
        std::fs::write(originals.join(format!("{name}.class")), old).unwrap();
        std::fs::write(rewritten.join(format!("{name}.class")), new).unwrap();
    }
    // The JDKs side by side: most of the time goes to starting javac.
    let problems: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = jdks
            .iter()
            .map(|home| {
                let (folder, originals, rewritten) = (folder.path(), &originals, &rewritten);
                scope.spawn(move || check(home, folder, originals, rewritten, count))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the check ends")).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn check(home: &Path, folder: &Path, originals: &Path, rewritten: &Path, count: usize) -> Vec<String> {
    let version = feature_version(home);
    if version < 17 {
        let test = format!("rewritten classes in {}", home.display());
        common::not_tested(&test, "its Java is older than that of the fixtures");
        return Vec::new();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runtime = root.join("../runtime-java");
    let release = if version < 21 { "src/12" } else { "src/21" };
    let sources =
        ["src/common", "src/modules", release, "stubs/common", "stubs/modules"].map(|path| runtime.join(path));
    let out = folder.join(version.to_string());
    let patch: Vec<String> = sources.iter().map(|path| path.display().to_string()).collect();
    let mut files = Vec::new();
    sources.iter().for_each(|path| java_files(path, &mut files));
    run(Command::new(home.join("bin/javac"))
        .args(["-nowarn", "-Xlint:-options", "-XDignore.symbol.file", "-XDstringConcat=inline"])
        .arg(format!("--patch-module=java.base={}", patch.join(":")))
        .arg("-d")
        .arg(&out)
        .args(files));
    std::fs::remove_file(out.join("java/lang/Thread.class")).unwrap();
    std::fs::remove_dir_all(out.join("jdk")).unwrap();
    let text = run(Command::new(home.join("bin/java"))
        .args(["-XX:TieredStopAtLevel=1", "-Xshare:auto"])
        .arg(format!("--patch-module=java.base={}", out.display()))
        .arg(root.join("tests/rewriter/LinkAll.java"))
        .args([originals, rewritten]));
    let mut problems: Vec<String> =
        text.lines().filter(|line| line.starts_with("FAILED")).map(|line| format!("JDK {version}: {line}")).collect();
    let numbers = |line: &str| -> Vec<usize> { line.split(' ').filter_map(|word| word.parse().ok()).collect() };
    let sums = text.lines().filter(|line| line.starts_with("linked ")).map(numbers).next_back().unwrap_or_default();
    if !matches!(sums.as_slice(), &[linked, skipped, run] if linked + skipped == count && skipped < 5 && run > 20) {
        problems.push(format!("JDK {version}: {count} classes wanted, {}", text.lines().last().unwrap_or("nothing")));
    }
    problems
}

fn java_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the runtime's sources are there").flatten() {
        match entry.path() {
            path if path.is_dir() => java_files(&path, found),
            path => found.push(path),
        }
    }
}
