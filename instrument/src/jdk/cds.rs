//! A class data sharing archive for an instrumented JDK.
//!
//! The JVM only compares the *size* of `lib/modules` with the archive, so with a stale archive it would silently use
//! the old classes: archives are never copied, and a new one is dumped from the instrumented image.
//!
//! Its heap objects have identity hashes generated during the dump, which must not be generated again in a run. From
//! JDK 21 on, the dump therefore starts from another point of the sequence (`seed`). Where that is impossible, and in
//! earlier releases (JDK 17 has archived objects with hashes that no heap walk visits, and which hooks would take for
//! known), the archive must not contain heap objects. There is no flag for that; it depends on the collector: up to JDK
//! 24 only G1 archives objects, from 25 on all collectors that support compressed references do. There only ZGC
//! remains, whose archive works for runs with ZGC, and all others start without one.
//!
//! Nor must it contain classes generated during the dump: lambdas, and the `Holder` classes of method handles. They
//! would have no hooks. Without them a run generates its own lambdas, which the runtime instruments.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use et_format::trace_path;
use et_names::releases::since;

use super::args_file;
use super::error::JdkError;
use super::seed::MovedSeed;
use crate::files::FileError;

/// Log message of a JVM that archives no heap objects.
const NO_HEAP: &str = "Archived java heap is not supported";

/// An archive, and which runs it serves.
#[derive(Debug)]
pub struct Archive {
    /// Path of the archive.
    pub path: PathBuf,
    /// Whether it serves runs with the default collector.
    pub for_default_collector: bool,
    /// Total time of all attempts.
    pub time: Duration,
}

/// Classes that the VM loads when the runtime starts, besides those of the runtime, and that the JDK's class list
/// lacks. Names unknown to a release are ignored.
const LOADED_AT_START: [&str; 9] = [
    "java/io/Console",
    "java/lang/Class$AnnotationData",
    "java/lang/ClassValue$ClassValueMap",
    "java/lang/NoSuchFieldError",
    "sun/nio/ch/Interruptible",
    "sun/reflect/annotation/AnnotationType",
    "sun/reflect/generics/repository/AbstractRepository",
    "sun/reflect/generics/repository/ClassRepository",
    "sun/reflect/generics/repository/GenericDeclRepository",
];

/// How to start a JVM that dumps its archive. It exits before running anything, so any launcher will do.
#[derive(Debug)]
pub struct Starter {
    path: PathBuf,
    /// Whether it is `java`: other launchers need `-J` before options for the JVM.
    is_java: bool,
}

impl Starter {
    /// Images have the launchers that their maker has chosen, and those of jpackage have none.
    pub fn of(home: &Path) -> Option<Self> {
        /// The function that all launchers call in their shared library.
        const LAUNCH: &[u8] = b"JLI_Launch";
        let java = home.join("bin/java");
        if java.is_file() {
            return Some(Self { path: java, is_java: true });
        }
        let mut programs: Vec<PathBuf> =
            fs::read_dir(home.join("bin")).into_iter().flatten().flatten().map(|item| item.path()).collect();
        programs.sort();
        let is_launcher = |path: &PathBuf| {
            let content = fs::read(path).unwrap_or_default();
            content.starts_with(b"\x7fELF") && memchr::memmem::find(&content, LAUNCH).is_some()
        };
        programs.into_iter().find(is_launcher).map(|path| Self { path, is_java: false })
    }

    fn command(&self, options: &[String]) -> Command {
        let mut command = Command::new(&self.path);
        let prefix = if self.is_java { "" } else { "-J" };
        command.args(options.iter().map(|option| format!("{prefix}{option}")));
        command
    }
}

/// Dumps the default archive of the JDK at `home`; `None` if none is possible with unique ids. `proxies` are the
/// runtime's classes.
pub fn dump(home: &Path, starter: &Starter, feature: u16, proxies: &[String]) -> Result<Option<Archive>, JdkError> {
    let start = Instant::now();
    edit_class_list(home, proxies)?;
    if let Some(_until_dumped) =
        (feature >= since::ARCHIVED_OBJECTS_ARE_ROOTS).then(|| MovedSeed::in_jdk(home)).transpose()?.flatten()
    {
        run(starter, feature, "G1")?;
        if let Some(path) = dumped(home) {
            return Ok(Some(Archive { path, for_default_collector: true, time: start.elapsed() }));
        }
    }
    // For 25 the first is known to be in vain.
    let collectors: &[&str] = if feature >= since::ARCHIVES_ARE_AOT { &["Z"] } else { &["Parallel", "Z"] };
    for (attempt, collector) in collectors.iter().enumerate() {
        let log = match run(starter, feature, collector) {
            Ok(log) => log,
            // Some builds lack ZGC.
            Err(JdkError::Cds { .. }) if attempt > 0 => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(path) = dumped(home) else { continue };
        if log.contains(NO_HEAP) {
            let for_default_collector = *collector != "Z";
            return Ok(Some(Archive { path, for_default_collector, time: start.elapsed() }));
        }
        fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
    }
    Ok(None)
}

/// The archive that a dump has left.
fn dumped(home: &Path) -> Option<PathBuf> {
    let archives = ["classes.jsa", "classes_nocoops.jsa"].map(|name| home.join("lib/server").join(name));
    archives.into_iter().find(|path| path.is_file())
}

/// Takes what is made at the dump out of the JDK's list of classes to archive, and adds what the runtime needs. A list given
/// by option would not do: JDK 21 reads its own beside it, for the forms of method handles.
fn edit_class_list(home: &Path, proxies: &[String]) -> Result<(), FileError> {
    let path = home.join("lib/classlist");
    let Ok(list) = fs::read_to_string(&path) else { return Ok(()) };
    // The original has the same file, by a hard link.
    fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
    fs::write(&path, without_made(&list) + &listed(proxies)).map_err(FileError::at("write", &path))
}

/// Classes are listed by name, generated ones after an `@`.
fn without_made(list: &str) -> String {
    list.lines().filter(|line| !line.starts_with('@')).flat_map(|line| [line, "\n"]).collect()
}

/// Lines for the runtime's classes and for what they need.
fn listed(proxies: &[String]) -> String {
    let names = proxies.iter().map(String::as_str).chain(LOADED_AT_START);
    names.flat_map(|name| [name, "\n"]).collect()
}

fn run(starter: &Starter, feature: u16, collector: &str) -> Result<String, JdkError> {
    let fail = |why: String| JdkError::Cds { why };
    let mut options: Vec<String> = args_file::flags(feature).map(str::to_owned).collect();
    options.extend([format!("-XX:+Use{collector}GC"), "-Xshare:dump".into(), "-Xlog:cds*".into()]);
    if feature >= since::ARCHIVES_ARE_AOT {
        // The tag that the messages move to, bit by bit; older releases refuse unknown tags.
        options.push("-Xlog:aot*".into());
    }
    let mut command = starter.command(&options);
    // A user's options may name agents and collectors, and a program that is traced may prepare a JDK.
    for variable in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", trace_path::CHILDREN] {
        command.env_remove(variable);
    }
    let done = command.stdin(Stdio::null()).output().map_err(|error| fail(error.to_string()))?;
    crate::interrupt::check()?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    if done.status.success() {
        return Ok(said);
    }
    Err(fail(format!("{} ({})", reason(&said).unwrap_or("it said nothing"), done.status)))
}

/// The most informative line of the output.
fn reason(said: &str) -> Option<&str> {
    /// The error is in the line after this one.
    const HEADING: &str = "Error occurred during initialization of VM";
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().skip_while(|line| !line.to_lowercase().contains("error")).find(|line| *line != HEADING);
    error.or(lines.next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_launcher_starts_a_jvm() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        assert!(Starter::of(folder.path()).is_none());
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("app"), "#!/bin/sh\n# JLI_Launch").unwrap();
        fs::write(bin.join("keyless"), b"\x7fELF").unwrap();
        assert!(Starter::of(folder.path()).is_none());
        let words = |starter: Option<Starter>| format!("{:?}", starter.unwrap().command(&["-Xshare:dump".into()]));
        fs::write(bin.join("keytool"), b"\x7fELF JLI_Launch").unwrap();
        assert!(words(Starter::of(folder.path())).ends_with("/bin/keytool\" \"-J-Xshare:dump\""));
        fs::write(bin.join("java"), "").unwrap();
        assert!(words(Starter::of(folder.path())).ends_with("/bin/java\" \"-Xshare:dump\""));
    }

    #[test]
    fn the_line_that_says_most() {
        let heading = "Error occurred during initialization of VM\n";
        assert_eq!(reason(&format!("[info][cds] x\n{heading}Could not reserve\n")), Some("Could not reserve"));
        assert_eq!(reason("[info] x\n[error][cds] no room\ny\n"), Some("[error][cds] no room"));
        assert_eq!((reason(heading), reason("a\nb\n"), reason("")), (Some(heading.trim()), Some("b"), None));
    }

    #[test]
    fn the_list_is_without_what_the_dump_would_make_and_with_what_the_runtime_needs() {
        let folder = tempfile::tempdir().unwrap();
        let (original, copy) = (folder.path().join("classlist"), folder.path().join("copy"));
        let list =
            "# a comment\njava/lang/Object id: 0\n@lambda-proxy a/B run ()V\n@lambda-form-invoker X\na/B id: 1\n";
        fs::write(&original, list).unwrap();
        let proxies = ["java/lang/HeapProxy".to_owned()];
        edit_class_list(&copy, &proxies).unwrap();
        fs::create_dir_all(copy.join("lib")).unwrap();
        fs::hard_link(&original, copy.join("lib/classlist")).unwrap();
        edit_class_list(&copy, &proxies).unwrap();
        let edited = fs::read_to_string(copy.join("lib/classlist")).unwrap();
        let expected = "# a comment\njava/lang/Object id: 0\na/B id: 1\njava/lang/HeapProxy\n";
        assert_eq!(edited, expected.to_owned() + &listed(&[]));
        assert_eq!(fs::read_to_string(&original).unwrap(), list);
    }
}
