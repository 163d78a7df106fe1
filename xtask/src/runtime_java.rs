//! Compiles `java.lang.HeapProxy` for each range of Java versions: `runtime-java/README.md` has the same commands
//! to type by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::layout::TEST_JAR;
use crate::{command, folders};

/// Ranges of Java versions with separate classes, named after the first version.
const VARIANTS: [Variant; 4] = [
    Variant { name: "8", level: "8", modular: false },
    Variant { name: "11", level: "11", modular: true },
    Variant { name: "12", level: "11", modular: true },
    Variant { name: "21", level: "11", modular: true },
];

struct Variant {
    name: &'static str,
    /// Source and target level.
    level: &'static str,
    /// Whether it is compiled as a patch of `java.base`; level 8 does not support modules.
    modular: bool,
}

/// Writes `heap-proxy-8.jar`, `heap-proxy-11.jar`, … to `out_dir`. `javac_home` is a JDK 17 or later.
pub fn build(javac_home: &Path, repo: &Path, out_dir: &Path) -> Result<()> {
    for variant in &VARIANTS {
        let sources = repo.join("runtime-java");
        let classes = out_dir.join(format!("heap-proxy-{}", variant.name));
        folders::empty(&classes)?;
        command::quiet(&mut variant.javac(javac_home, &sources, &classes)?)?;
        // The stubs of JDK classes are only for compilation; they must never reach a JVM.
        for stub in variant.stubs(&sources) {
            for file in java_files(&stub)? {
                let class = classes.join(file.strip_prefix(&stub)?).with_extension("class");
                fs::remove_file(&class).with_context(|| format!("javac did not write {}", class.display()))?;
            }
        }
        let jar = out_dir.join(format!("heap-proxy-{}.jar", variant.name));
        pack(javac_home, &jar, &classes, "java/lang")?;
    }
    jvmpi_proxy(javac_home, repo, out_dir)
}

/// Writes `heap-proxy-jvmpi.jar`: only the class, for JDK 11 and later.
fn jvmpi_proxy(javac_home: &Path, repo: &Path, out_dir: &Path) -> Result<()> {
    let (sources, classes) = (repo.join("runtime-java/src/jvmpi"), out_dir.join("heap-proxy-jvmpi"));
    folders::empty(&classes)?;
    let mut javac = Command::new(javac_home.join("bin/javac"));
    javac.args(["-nowarn", "-Xlint:-options", "-g", "-source", "11", "-target", "11", "-d"]).arg(&classes);
    javac.arg("--patch-module").arg(concat("java.base=", sources.clone().into()));
    command::quiet(javac.args(java_files(&sources)?))?;
    pack(javac_home, &out_dir.join("heap-proxy-jvmpi.jar"), &classes, "java/lang")
}

/// Writes `et-ddm.jar`, for programs that send their own chunks to a monitor, for Java 8 and later.
pub fn ddm(javac_home: &Path, repo: &Path, out_dir: &Path) -> Result<PathBuf> {
    let classes = out_dir.join("classes");
    folders::empty(&classes)?;
    let mut javac = Command::new(javac_home.join("bin/javac"));
    javac.args(["--release", "8", "-Xlint:-options", "-g", "-d"]).arg(&classes);
    command::quiet(javac.args(java_files(&repo.join("profilers/monitor-agent/java"))?))?;
    let jar = out_dir.join("et-ddm.jar");
    pack(javac_home, &jar, &classes, "org")?;
    Ok(jar)
}

/// Writes `et-test.jar`, with which tests count allocations, for Java 11 and later.
pub fn test_library(javac_home: &Path, repo: &Path, out_dir: &Path) -> Result<PathBuf> {
    let sources = repo.join("runtime-java/test-library");
    let (stubs, classes) = (sources.join("stubs"), out_dir.join("classes"));
    // What instrumented JDKs have, and what JUnit has: only for compilation.
    let (base, junit) = (out_dir.join("base"), out_dir.join("junit"));
    for folder in [&base, &junit, &classes] {
        folders::empty(folder)?;
    }
    let compile = |out: &Path, patch: &Path, sources: &Path| -> Result<()> {
        let mut javac = Command::new(javac_home.join("bin/javac"));
        javac.args([
            "-Xlint:all,-options,-missing-explicit-ctor,-exports",
            "-Werror",
            "-source",
            "11",
            "-target",
            "11",
            "-g",
            "-encoding",
            "UTF-8",
        ]);
        javac.arg("-d").arg(out).arg("--patch-module").arg(concat("java.base=", patch.to_owned().into()));
        javac.arg("-cp").arg(&junit).args(java_files(sources)?);
        command::quiet(&mut javac)?;
        Ok(())
    };
    compile(&base, &stubs, &stubs.join("java"))?;
    compile(&junit, &base, &stubs.join("org"))?;
    compile(&classes, &base, &sources.join("src"))?;
    let jar = out_dir.join(TEST_JAR);
    pack(javac_home, &jar, &classes, "org")?;
    Ok(jar)
}

fn pack(javac_home: &Path, jar: &Path, classes: &Path, folder: &str) -> Result<()> {
    let mut pack = Command::new(javac_home.join("bin/jar"));
    // Reproducible: a fixed time, and no manifest, which would contain the version of the JDK.
    pack.args(["--create", "--no-manifest", "--date=2000-01-01T00:00:00+00:00", "--file"]).arg(jar);
    command::quiet(pack.arg("-C").arg(classes).arg(folder))?;
    Ok(())
}

impl Variant {
    fn sources(&self, root: &Path) -> Vec<PathBuf> {
        let folders = ["common", if self.modular { "modules" } else { "" }, self.name];
        folders.iter().filter(|name| !name.is_empty()).map(|name| root.join("src").join(name)).collect()
    }

    fn stubs(&self, root: &Path) -> Vec<PathBuf> {
        let folders: &[&str] = if self.modular { &["common", "modules"] } else { &["common", "8"] };
        folders.iter().map(|name| root.join("stubs").join(name)).collect()
    }

    fn javac(&self, home: &Path, root: &Path, classes: &Path) -> Result<Command> {
        let folders = [self.sources(root), self.stubs(root)].concat();
        let mut javac = Command::new(home.join("bin/javac"));
        // Without `inline`, string concatenation would become an invokedynamic, which this class must not contain.
        javac.args(["-nowarn", "-Xlint:-options", "-XDignore.symbol.file", "-XDstringConcat=inline", "-g"]);
        javac.args(["-source", self.level, "-target", self.level]).arg("-d").arg(classes);
        if self.modular {
            let patch = std::env::join_paths(&folders).context("the name of a folder contains a colon")?;
            javac.arg("--patch-module").arg(concat("java.base=", patch));
        }
        for folder in &folders {
            javac.args(java_files(folder)?);
        }
        Ok(javac)
    }
}

fn concat(prefix: &str, rest: std::ffi::OsString) -> std::ffi::OsString {
    let mut all = std::ffi::OsString::from(prefix);
    all.push(rest);
    all
}

/// The sources in a folder and below.
pub(crate) fn java_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "java") {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        bail!("{} contains no Java sources", folder.display());
    }
    files.sort();
    Ok(files)
}
