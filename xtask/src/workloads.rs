//! The real programs of `tests/workloads.sh`: their inputs, and their command lines for plain and instrumented runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::Jdk;
use crate::layout::{Layout, Tools};

/// The system's folder of the jars that the workloads use.
pub const SHARE_JAVA: &str = "/usr/share/java";

/// Size of the work in tests, in percent.
pub const TEST_SCALE: u32 = 2;

/// Path of the script.
pub fn script(layout: &Layout) -> PathBuf {
    layout.repo.join("tests/workloads.sh")
}

/// The Debian packages that the nine programs need.
pub fn packages(layout: &Layout) -> Result<Vec<String>> {
    listed(layout, "packages")
}

/// The Debian packages that the programs in other languages need.
pub fn language_packages(layout: &Layout) -> Result<Vec<String>> {
    listed(layout, "language-packages")
}

fn listed(layout: &Layout, verb: &str) -> Result<Vec<String>> {
    let listed = command::read(Command::new("bash").arg(script(layout)).arg(verb))?;
    Ok(listed.split_whitespace().map(str::to_owned).collect())
}

/// A program of the script.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name in the script.
    pub name: &'static str,
    /// What the script compiles for it, if anything: a folder of classes, or a jar.
    pub driver: Option<&'static str>,
    /// Names of its jars, without `.jar`.
    pub jars: &'static [&'static str],
    /// Optional jars on its class path, which not every Debian release has.
    pub optional_jars: &'static [&'static str],
    /// What it writes below the scratch folder `out`, if anything.
    pub output: Option<&'static str>,
    /// Names of the jars for compiling it, without `.jar`.
    pub compiler_jars: &'static [&'static str],
    /// Whether startup alone produces too many records for computing deaths: its trace is validated without them.
    pub long_start: bool,
}

/// A program that needs only the JDK.
const BARE: Workload = Workload {
    name: "",
    driver: None,
    jars: &[],
    optional_jars: &[],
    output: None,
    compiler_jars: &[],
    long_start: false,
};

const TOMCAT: Workload = Workload {
    jars: &["tomcat10-embed-core", "tomcat10-embed-el", "tomcat10-embed-jasper", "jakarta-annotation-api"],
    optional_jars: &["tomcat10-juli"],
    ..BARE
};

const KOTLIN: &[&str] = &["kotlin-stdlib", "kotlinx-coroutines-core", "atomicfu"];

/// Programs in other languages (including XSLT), and code unlike that of `javac`: obfuscated, or for Java 1.1.
pub const LANGUAGES: [Workload; 8] = [
    Workload { name: "kotlin", driver: Some("WordsKt"), jars: KOTLIN, compiler_jars: &["kotlin-compiler"], ..BARE },
    Workload {
        name: "scala",
        driver: Some("Words"),
        jars: &["scala-library"],
        compiler_jars: &["scala-compiler"],
        ..BARE
    },
    Workload { name: "groovy", jars: &["groovy-all"], long_start: true, ..BARE },
    Workload { name: "clojure", jars: &["clojure"], long_start: true, ..BARE },
    Workload { name: "jruby", jars: &["jruby-core"], long_start: true, ..BARE },
    Workload { name: "saxon", jars: &["Saxon-HE"], output: Some("saxon.html"), long_start: true, ..BARE },
    Workload {
        name: "proguard",
        driver: Some("Guarded.jar"),
        compiler_jars: &["proguard", "kotlin-compiler", "kotlin-stdlib", "kotlinx-coroutines-core", "atomicfu"],
        ..BARE
    },
    Workload { name: "java1", driver: Some("Old"), compiler_jars: &["eclipse-jdt-core"], ..BARE },
];

/// The nine programs and a variant with more threads, in the order of tests and benchmarks.
pub const ALL: [Workload; 10] = [
    Workload { name: "javac", output: Some("javac"), long_start: true, ..BARE },
    Workload { name: "h2", driver: Some("SqlRun"), jars: &["h2"], ..BARE },
    Workload {
        name: "xalan",
        jars: &["xalan2", "xercesImpl", "serializer"],
        optional_jars: &["xml-apis"],
        output: Some("xalan.html"),
        ..BARE
    },
    Workload {
        name: "luindex",
        driver: Some("Luc"),
        jars: &["lucene-core-4.10.4", "lucene-analyzers-common-4.10.4", "lucene-queries-4.10.4"],
        ..BARE
    },
    Workload {
        name: "antlr4",
        jars: &["antlr4", "antlr4-runtime", "stringtemplate4", "antlr3-runtime", "treelayout"],
        output: Some("a4"),
        ..BARE
    },
    Workload {
        name: "ecj",
        jars: &["eclipse-jdt-core"],
        optional_jars: &[
            "eclipse-core-contenttype",
            "eclipse-core-jobs",
            "eclipse-core-resources",
            "eclipse-core-runtime",
            "eclipse-equinox-common",
            "eclipse-equinox-preferences",
            "eclipse-osgi",
            "eclipse-text",
        ],
        output: Some("ecj"),
        ..BARE
    },
    Workload { name: "jython", jars: &["jython"], ..BARE },
    Workload { name: "math3", driver: Some("M3"), jars: &["commons-math3"], ..BARE },
    Workload { name: "tomcat", driver: Some("Tom"), ..TOMCAT },
    Workload { name: "tomcat_threads", driver: Some("TomThreads"), ..TOMCAT },
];

/// Many threads and class loaders, for readers: 100,000 threads, a million virtual ones and 10,000 loaders at full
/// size.
const CROWDS: [Workload; 4] = [
    Workload { name: "threads", driver: Some("Threads"), ..BARE },
    Workload { name: "virtual_threads", driver: Some("Threads"), ..BARE },
    Workload { name: "loaders", driver: Some("Loaders"), ..BARE },
    Workload { name: "loaders_kept", driver: Some("Loaders"), ..BARE },
];

/// The programs that tests run on a JDK. All would take longer than all other tests: `cargo xtask programs --languages` runs them on 17 and 25.
pub fn in_tests(feature: u32) -> Vec<Workload> {
    let names: &[&str] = match feature {
        17 => &["h2", "groovy"],
        25 => &["xalan", "ecj", "tomcat_threads"],
        _ => &["antlr4"],
    };
    with_languages().filter(|workload| names.contains(&workload.name)).collect()
}

/// The nine programs, without the variant of one of them that has more threads.
pub fn nine() -> Vec<Workload> {
    ALL.into_iter().filter(|workload| workload.name != "tomcat_threads").collect()
}

/// The programs with the given names; without names, all of [`ALL`].
pub fn chosen(names: &[String]) -> Result<Vec<Workload>> {
    if names.is_empty() { Ok(ALL.to_vec()) } else { names.iter().map(|name| Workload::named(name)).collect() }
}

/// The nine, and those in other languages.
pub fn with_languages() -> impl Iterator<Item = Workload> {
    ALL.into_iter().chain(LANGUAGES)
}

impl Workload {
    /// The workload of that name.
    pub fn named(name: &str) -> Result<Self> {
        let all = || with_languages().chain(CROWDS);
        let known = || all().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
        all()
            .find(|workload| workload.name == name)
            .with_context(|| format!("no workload named {name:?}; there are {}", known()))
    }

    /// Paths of its jars in the system.
    pub fn installed_jars(&self) -> Vec<PathBuf> {
        let all = self.jars.iter().chain(self.optional_jars).map(|jar| in_share_java(jar));
        all.filter(|jar| jar.exists()).collect()
    }

    /// The first required jar that is not installed, if any.
    pub fn missing_jar(&self) -> Option<PathBuf> {
        self.jars.iter().chain(self.compiler_jars).map(|jar| in_share_java(jar)).find(|jar| !jar.exists())
    }
}

fn in_share_java(jar: &str) -> PathBuf {
    Path::new(SHARE_JAVA).join(format!("{jar}.jar"))
}

/// Runs workloads on one JDK, with their inputs in a folder of their own.
#[derive(Clone, Debug)]
pub struct Runner {
    script: PathBuf,
    home: PathBuf,
    scale: u32,
    javac: PathBuf,
    sources: Option<PathBuf>,
}

impl Runner {
    /// `compiler` compiles the drivers; `jdk` runs the programs. The inputs of `javac` and `ecj` are sources of the
    /// JDK, its own if it includes them.
    pub fn new(layout: &Layout, work: &Path, scale: u32, compiler: &Jdk, jdk: &Jdk) -> Result<Self> {
        let javac = compiler.javac().with_context(|| format!("{} has no javac", compiler.home.display()))?;
        let sources = [jdk, compiler].map(|jdk| jdk.home.join("lib/src.zip")).into_iter().find(|zip| zip.exists());
        Ok(Self { script: script(layout), home: work.join(format!("jdk-{}", jdk.version)), scale, javac, sources })
    }

    /// Why a workload cannot run here; `None` if it can.
    pub fn obstacle(&self, workload: &Workload, jdk: &Jdk) -> Option<String> {
        if let Some(jar) = workload.missing_jar() {
            return Some(format!("{} is not installed", jar.display()));
        }
        if workload.name == "javac" && jdk.javac().is_none() {
            return Some(format!("JDK {} has no compiler", jdk.version));
        }
        if workload.name == "virtual_threads" && jdk.feature < 21 {
            return Some(format!("JDK {} has no virtual threads", jdk.version));
        }
        if ["javac", "ecj"].contains(&workload.name) && self.sources.is_none() {
            return Some("no JDK here came with lib/src.zip".into());
        }
        None
    }

    fn command(&self, verb: &str, workload: &Workload, java: &Path) -> Command {
        let mut command = Command::new("bash");
        command.arg(&self.script).arg(verb).arg(workload.name);
        command.env("WL_HOME", &self.home).env("WL_SCALE", self.scale.to_string());
        command.env("JAVA", java).env("JAVAC", &self.javac);
        // Options that the user has set for other purposes must not apply.
        for name in
            ["JAVA_OPTS_EXTRA", "SHARE_JAVA", "WL_CLASSES", "WL_BASE_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"]
        {
            command.env_remove(name);
        }
        if let Some(sources) = &self.sources {
            command.env("JDK_SRC_ZIP", sources);
        }
        command
    }

    /// Creates the inputs of a workload.
    pub fn prepare(&self, workload: &Workload, java: &Path) -> Result<()> {
        fs::create_dir_all(&self.home).with_context(|| format!("cannot make {}", self.home.display()))?;
        command::quiet(&mut self.command("prep", workload, java)).map(drop)
    }

    /// The command of a plain run.
    pub fn plain(&self, workload: &Workload, java: &Path) -> Command {
        self.command("run", workload, java)
    }

    /// The command of an instrumented run, with additional JVM options.
    pub fn rewritten(
        &self,
        workload: &Workload,
        java: &Path,
        parts: &RewrittenParts,
        jvm_options: &[String],
    ) -> Command {
        let mut command = self.command("run", workload, java);
        command.env("SHARE_JAVA", &parts.jars).env("WL_CLASSES", &parts.drivers);
        command.env("JAVA_OPTS_EXTRA", jvm_options.join(" "));
        command
    }

    /// The files written by a workload in its last run, with checksums, sorted by name.
    pub fn written(&self, workload: &Workload) -> Result<Vec<(String, u64)>> {
        let Some(output) = workload.output else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        checksums(&self.home.join("out").join(output), &mut files)?;
        files.sort();
        Ok(files)
    }

    /// Instruments the jars and the driver of a workload into `into`, each time anew: it takes seconds.
    pub fn instrument(
        &self,
        workload: &Workload,
        tools: &Tools,
        into: &Path,
        options: &[&str],
    ) -> Result<RewrittenParts> {
        let parts = RewrittenParts { jars: into.join("share-java"), drivers: into.join("drivers") };
        let _ = fs::remove_dir_all(into);
        for folder in [&parts.jars, &parts.drivers] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let rewrite = |from: &Path, to: &Path| {
            let mut instrument = Command::new(tools.et_instrument());
            command::quiet(instrument.args(options).arg(from).arg("-o").arg(to)).map(drop)
        };
        for jar in workload.installed_jars() {
            // Under the name in the class path, not that of the version which it links to.
            rewrite(&jar, &parts.jars.join(jar.file_name().context("a jar has a name")?))?;
        }
        if let Some(driver) = workload.driver {
            rewrite(&self.home.join("cls").join(driver), &parts.drivers.join(driver))?;
        }
        Ok(parts)
    }
}

/// The rewritten jars and driver classes of a workload.
#[derive(Clone, Debug)]
pub struct RewrittenParts {
    /// Replaces `/usr/share/java`.
    pub jars: PathBuf,
    /// Replaces the folder of drivers.
    pub drivers: PathBuf,
}

fn checksums(path: &Path, into: &mut Vec<(String, u64)>) -> Result<()> {
    use std::hash::{DefaultHasher, Hasher};
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            checksums(&entry?.path(), into)?;
        }
    } else {
        let mut hasher = DefaultHasher::new();
        hasher.write(&fs::read(path).with_context(|| format!("cannot read {}", path.display()))?);
        into.push((path.display().to_string(), hasher.finish()));
    }
    Ok(())
}
