//! Compiles `java.lang.HeapProxy` for each range of Java versions: `runtime-java/README.md` has the same commands
//! to type by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;

/// The ranges of Java versions that need classes of their own, named after the first.
const VARIANTS: [Variant; 3] = [
    Variant { name: "8", level: "8", modular: false },
    Variant { name: "11", level: "11", modular: true },
    Variant { name: "21", level: "11", modular: true },
];

struct Variant {
    name: &'static str,
    /// Source and target level.
    level: &'static str,
    /// Compiled as a patch of `java.base`; level 8 knows no modules.
    modular: bool,
}

/// Writes `heap-proxy-8.jar`, `heap-proxy-11.jar` and `heap-proxy-21.jar` to `out_dir`. `javac_home` is a JDK 17 or
/// later.
pub fn build(javac_home: &Path, repo: &Path, out_dir: &Path) -> Result<()> {
    for variant in &VARIANTS {
        let sources = repo.join("runtime-java");
        let classes = out_dir.join(format!("heap-proxy-{}", variant.name));
        if classes.exists() {
            fs::remove_dir_all(&classes).with_context(|| format!("cannot empty {}", classes.display()))?;
        }
        fs::create_dir_all(&classes).with_context(|| format!("cannot make {}", classes.display()))?;
        command::quiet(&mut variant.javac(javac_home, &sources, &classes)?)?;
        // The stand-in for Thread has done its work; it must never reach a JVM.
        fs::remove_file(classes.join("java/lang/Thread.class")).context("javac did not compile the stand-in Thread")?;
        if variant.name == "11" {
            anonymous(javac_home, &sources, &classes)?;
        }
        let jar = out_dir.join(format!("heap-proxy-{}.jar", variant.name));
        let mut pack = Command::new(javac_home.join("bin/jar"));
        // A fixed time, and no manifest with the version of the packing JDK: the same sources give the same bytes.
        pack.args(["--create", "--no-manifest", "--date=2000-01-01T00:00:00+00:00", "--file"]).arg(&jar);
        command::quiet(pack.arg("-C").arg(&classes).arg("java"))?;
    }
    Ok(())
}

/// What JDK 11 to 16 need besides: it calls a method that the compiling JDK no longer has.
fn anonymous(home: &Path, sources: &Path, classes: &Path) -> Result<()> {
    let (own, stubs) = (sources.join("src/11-only"), sources.join("stubs/11-only"));
    let mut javac = javac(home, "11", classes);
    let patch = std::env::join_paths([classes, &own, &stubs]).context("a folder's name holds a colon")?;
    javac.arg("--patch-module").arg(concat("java.base=", patch));
    javac.args(java_files(&own.join("java/lang"))?).args(java_files(&stubs.join("jdk/internal/misc"))?);
    command::quiet(&mut javac)?;
    fs::remove_dir_all(classes.join("jdk")).context("javac did not compile the stand-in Unsafe")
}

/// javac with what all of the runtime is compiled with.
fn javac(home: &Path, level: &str, classes: &Path) -> Command {
    let mut javac = Command::new(home.join("bin/javac"));
    // Without `inline`, string concatenation would be an invokedynamic; none is written, and none may be.
    javac.args(["-nowarn", "-Xlint:-options", "-XDignore.symbol.file", "-XDstringConcat=inline", "-g"]);
    javac.args(["-source", level, "-target", level]).arg("-d").arg(classes);
    javac
}

impl Variant {
    fn javac(&self, home: &Path, sources: &Path, classes: &Path) -> Result<Command> {
        let mut folders = vec![sources.join("src/common")];
        if self.modular {
            folders.push(sources.join("src/9"));
        }
        folders.extend([sources.join("src").join(self.name), sources.join("stubs").join(self.name)]);
        let mut javac = javac(home, self.level, classes);
        if self.modular {
            let patch = std::env::join_paths(&folders).context("a folder's name holds a colon")?;
            javac.arg("--patch-module").arg(concat("java.base=", patch));
        }
        for folder in &folders {
            javac.args(java_files(&folder.join("java/lang"))?);
        }
        Ok(javac)
    }
}

fn concat(prefix: &str, rest: std::ffi::OsString) -> std::ffi::OsString {
    let mut all = std::ffi::OsString::from(prefix);
    all.push(rest);
    all
}

fn java_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "java") {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("{} holds no Java sources", folder.display());
    }
    files.sort();
    Ok(files)
}
