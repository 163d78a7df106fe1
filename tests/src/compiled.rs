//! Compiled test programs: each once, for all tests and all JDKs, since `javac` takes longer than most of the programs.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::command;
use xtask::jdks::{self, Jdk};

use crate::lab::Lab;

/// How programs are compiled: with all that debuggers want, and no word about what is deprecated.
const OPTIONS: [&str; 4] = ["-g", "-nowarn", "-encoding", "UTF-8"];

/// A JDK whose compiler supports that release: the default one if it does.
pub fn compiler(lab: &Lab, release: u32) -> Option<Jdk> {
    let others = jdks::find(&lab.layout).into_iter().filter(|jdk| jdk.javac().is_some());
    std::iter::once(lab.compiler.clone()).chain(others).find(|jdk| jdk.feature >= release)
}

/// The classes of a source file. Shared with other tests, so they must not be changed. Concurrent processes share one
/// compilation.
pub fn classes(lab: &Lab, source: &Path, release: u32) -> Result<PathBuf> {
    classes_with(lab, source, release, None)
}

/// As [`classes`], for a source that uses a library.
pub fn classes_with(lab: &Lab, source: &Path, release: u32, library: Option<&Path>) -> Result<PathBuf> {
    let compiler = compiler(lab, release).with_context(|| format!("no JDK with a javac for Java {release} found"))?;
    let name = source.file_stem().with_context(|| format!("{} has no name", source.display()))?.to_string_lossy();
    let text = fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
    let hash = hash(&(source, text, release, &compiler.home, &compiler.version));

    let cache = lab.layout.target.join("e2e/compiled");
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let classes = cache.join(format!("{name}-{hash:016x}"));
    // Programs in different folders may have the same name: the whole path decides what is outdated.
    let lock_path = cache.join(format!("{name}-{:016x}.lock", self::hash(&(source, release))));
    let lock = File::options().create(true).append(true).open(&lock_path);
    let lock = lock.with_context(|| format!("cannot write {}", lock_path.display()))?;
    lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
    if classes.is_dir() {
        return Ok(classes);
    }
    // The folder has its name only once it is whole.
    let unfinished = classes.with_extension("new");
    let _ = fs::remove_dir_all(&unfinished);
    let mut compile = compiler.compile()?;
    compile.args(OPTIONS).arg("--release").arg(release.to_string()).arg("-d").arg(&unfinished).arg(source);
    if let Some(library) = library {
        compile.arg("-cp").arg(library);
    }
    command::quiet(&mut compile)?;
    fs::rename(&unfinished, &classes).with_context(|| format!("cannot make {}", classes.display()))?;
    forget_the_last(&lock_path, &classes)?;
    Ok(classes)
}

/// The lock's file names the classes that it was held for last: those of a source that has changed since are removed.
fn forget_the_last(lock: &Path, classes: &Path) -> Result<()> {
    let last = fs::read_to_string(lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let last = Path::new(&last);
    if last.parent() == classes.parent() && last != classes {
        let _ = fs::remove_dir_all(last);
    }
    fs::write(lock, classes.display().to_string()).with_context(|| format!("cannot write {}", lock.display()))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
