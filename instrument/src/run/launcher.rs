//! Which JDK a program belongs to.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::RunError;
use crate::jdk::{self, JdkError, JdkHome};

/// A launcher in a JDK.
#[derive(Debug)]
pub struct Launcher {
    pub jdk: JdkHome,
    /// Path relative to the JDK: `bin/java`.
    pub path: PathBuf,
}

/// Where to search for programs.
#[derive(Debug, Default)]
pub struct Surroundings<'a> {
    /// Value of `PATH`.
    pub path: Option<&'a OsStr>,
    /// Value of `JAVA_HOME`.
    pub java_home: Option<&'a OsStr>,
}

impl Launcher {
    /// Finds the program that a shell would run, or the one in `JAVA_HOME`, and its JDK.
    pub fn find(program: &OsStr, surroundings: &Surroundings<'_>) -> Result<Self, RunError> {
        let found = if Path::new(program).components().count() > 1 {
            PathBuf::from(program)
        } else {
            let in_path =
                std::env::split_paths(surroundings.path.unwrap_or_default()).map(|folder| folder.join(program));
            let in_home = surroundings.java_home.map(|home| Path::new(home).join("bin").join(program));
            let mut candidates = in_path.chain(in_home);
            let program = program.to_string_lossy().into_owned();
            candidates.find(|path| is_executable(path)).ok_or(RunError::NotFound { program })?
        };
        let path = fs::canonicalize(&found).map_err(|source| RunError::NoFile { path: found, source })?;
        let mut start = [0; 2];
        let read = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
        let no_launcher = |why: &str| RunError::NotALauncher { path: path.clone(), why: why.into() };
        if read.is_ok() && start == *b"#!" {
            return Err(RunError::Script { path });
        }
        // bin/java, and jre/bin/java of a JDK 8.
        let home = path.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent);
        let home = home.ok_or_else(|| no_launcher("it is not in the bin folder of a JDK"))?;
        let home = match home.parent() {
            Some(whole) if home.ends_with("jre") && whole.join("jre/lib/rt.jar").is_file() => whole,
            _ => home,
        };
        if !home.join("lib/modules").exists() && home.join("lib/runtime/lib/modules").is_file() {
            return Err(no_launcher("it starts an application made by jpackage, see docs/images.md"));
        }
        let jdk = JdkHome::find(home).map_err(|error| match error {
            JdkError::Home { home, why } => no_launcher(&format!("{}: {why}", home.display())),
            other => other.into(),
        })?;
        let path = path.strip_prefix(&jdk.path).unwrap_or(&path).to_owned();
        Ok(Self { jdk, path })
    }

    /// Whether it is `java` itself: the only one with a class path of a program, and without `-J`.
    pub fn is_java(&self) -> bool {
        self.path.file_name().is_some_and(|name| name == "java")
    }
}

/// What was probably meant if the program cannot be run: a jar, a source file or a class without `java` before it.
pub fn meant(program: &OsStr) -> Option<RunError> {
    let program = program.to_str()?;
    let words = match Path::new(program).extension().and_then(OsStr::to_str) {
        Some("jar") => format!("-jar {}", jdk::quoted(program)),
        Some("java") => jdk::quoted(program),
        Some("class") => jdk::quoted(program.strip_suffix(".class")?),
        _ if is_class_name(program) => jdk::quoted(program),
        _ => return None,
    };
    Some(RunError::NoLauncher { program: program.to_owned(), words })
}

/// As classes are named that can be run: `Main`, `com.acme.Main`.
fn is_class_name(name: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && part.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$'))
    };
    let simple = name.rsplit('.').next().unwrap_or_default();
    name.split('.').all(is_name) && simple.starts_with(char::is_uppercase)
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(path: &Path, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn jdk(home: &Path) {
        program(&home.join("bin/java"), "ELF");
        program(&home.join("lib/modules"), "");
    }

    #[test]
    fn the_jdk_is_found_by_path_by_links_and_by_java_home() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        jdk(&root.join("one"));
        jdk(&root.join("two"));
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        symlink(root.join("one/bin/java"), root.join("alternative")).unwrap();
        symlink(root.join("alternative"), root.join("usr/bin/java")).unwrap();
        let (bin, two) = (root.join("usr/bin"), root.join("two"));
        let both = Surroundings { path: Some(bin.as_os_str()), java_home: Some(two.as_os_str()) };
        let found = Launcher::find("java".as_ref(), &both).unwrap();
        assert_eq!((found.jdk.path.clone(), found.path.as_path()), (root.join("one"), Path::new("bin/java")));
        assert!(found.is_java());
        let home_only = Surroundings { java_home: Some(two.as_os_str()), ..Surroundings::default() };
        assert_eq!(Launcher::find("java".as_ref(), &home_only).unwrap().jdk.path, two);
        let given = root.join("two/bin/java");
        assert_eq!(Launcher::find(given.as_os_str(), &both).unwrap().jdk.path, two);
    }

    #[test]
    fn what_java_is_to_run_is_no_program() {
        let said = |program: &str| meant(program.as_ref()).map(|error| error.to_string());
        let expected = |program: &str, words: &str| {
            Some(format!("{program} is not a program: put java before it: et-instrument run -- java {words} …"))
        };
        assert_eq!(said("Main"), expected("Main", "Main"));
        assert_eq!(said("com.acme.Main$1"), expected("com.acme.Main$1", "'com.acme.Main$1'"));
        assert_eq!(said("lib/app.jar"), expected("lib/app.jar", "-jar lib/app.jar"));
        assert_eq!(said("Hello.java"), expected("Hello.java", "Hello.java"));
        assert_eq!(said("Main.class"), expected("Main.class", "Main"));
        for other in ["none", "./gradlew", "python3", "com.acme.main", "java", "A B", ""] {
            assert_eq!(said(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_launcher_is_one_clear_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        program(&root.join("shims/java"), "#!/bin/sh\nexec java");
        program(&root.join("tool"), "ELF");
        program(&root.join("tools/bin/java"), "ELF");
        program(&root.join("shop/bin/shop"), "ELF");
        program(&root.join("shop/lib/runtime/lib/modules"), "");
        fs::write(root.join("shims/javac"), "not executable").unwrap();
        let shims = root.join("shims");
        let surroundings = Surroundings { path: Some(shims.as_os_str()), java_home: None };
        let fails = |program: &OsStr| Launcher::find(program, &surroundings).unwrap_err();
        for (program, code, said) in [
            ("java".into(), 126, "is a script"),
            ("javac".into(), 127, "JAVA_HOME"),
            (root.join("none").into_os_string(), 127, "No such file"),
            (root.join("tool").into_os_string(), 126, "is not in the bin folder"),
            (root.join("tools/bin/java").into_os_string(), 126, "lib/modules"),
            (root.join("shop/bin/shop").into_os_string(), 126, "made by jpackage"),
        ] {
            let error = fails(&program);
            let message = error.to_string();
            assert!(message.contains(said) && !message.contains('\n'), "{message}");
            assert_eq!(error.exit_code(), code, "{message}");
        }
    }
}
