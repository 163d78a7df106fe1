//! `et-instrument prepare`: all that `run` does before it starts a program, for build tools that start it themselves.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::RunError;
use super::launcher::{Launcher, Surroundings};
use super::prepare::Workplace;
use super::{excluded, paths, program, telling, variable};
use crate::artifact::Settings;
use crate::cache::program::Programs;
use crate::files::{FileError, Umask};
use crate::jdk::{self, JdkHome};

/// What to prepare.
#[derive(Debug)]
pub struct PrepareJob {
    /// The JDK, if said; else that of `java`.
    pub java_home: Option<PathBuf>,
    /// Jars and folders of the program, as `java -cp` takes them, or `@FILE` where such a list is.
    pub class_path: Option<String>,
    /// Where the cache is, if said.
    pub cache_dir: Option<PathBuf>,
    /// Where the runtime's parts are, if said.
    pub runtime_dir: Option<PathBuf>,
}

/// A prepared class path.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// The instrumented JDK: the folder with `bin`.
    pub java_home: PathBuf,
    /// Options for the JVM.
    pub options: Vec<String>,
    /// The class path, in its order.
    pub class_path: Vec<ClassPathEntry>,
    /// The originals of all jars and class files that had to be rewritten now.
    pub rewritten: Vec<PathBuf>,
    /// Number of jars among them.
    pub jars: usize,
    /// Number of class files among them.
    pub class_files: usize,
    /// Messages for the user.
    pub notes: Vec<String>,
    /// Elapsed time in seconds.
    pub seconds: f64,
    /// `2 jars and 1 class file`, if anything was rewritten.
    #[serde(skip)]
    rewrote: Option<String>,
}

/// An entry of the class path.
#[derive(Debug, Serialize)]
pub struct ClassPathEntry {
    /// Canonical path of the original.
    pub original: PathBuf,
    /// Path to use instead; the same as the original if that is to be used unchanged.
    pub copy: PathBuf,
}

impl PrepareJob {
    /// Brings the copies of the JDK and of the class path up to date.
    pub fn run(&self, settings: &Settings) -> Result<Ready, RunError> {
        // Cheap checks come before work that takes seconds.
        let (home, entries) = (self.home()?, self.entries()?);
        let _umask = Umask::tightened();
        let workplace = Workplace::find(self.cache_dir.as_deref(), self.runtime_dir.as_deref())?;
        let say = |line: &str| settings.progress.news(line);
        let prepared = workplace.jdk(&home, settings, &say)?;
        let cache = &workplace.cache;
        let entry = program::entry(cache, workplace.tool, settings, &say)?;
        let mut programs = Programs::new(&entry, cache.root(), settings, &say);
        let place = |original: &PathBuf| {
            let original = program::real(original);
            let copy = programs.place(&original)?.unwrap_or_else(|| original.clone());
            Ok(ClassPathEntry { original, copy })
        };
        let class_path = entries.iter().map(place).collect::<Result<_, RunError>>()?;
        let mut done = programs.finish()?;
        if let Some(missing) = done.lacks() {
            return Err(cache.not_there(missing).into());
        }
        done.notes.extend(
            done.warnings().into_iter().chain(settings.filter.unused_includes()).chain(settings.filter.of_jdk()),
        );
        Ok(Ready {
            options: prepared.options.iter().cloned().chain(excluded(settings)).chain(telling(settings)).collect(),
            java_home: prepared.home,
            class_path,
            rewrote: done.text(),
            rewritten: done.rewritten,
            jars: done.jars,
            class_files: done.files,
            notes: done.notes,
            seconds: 0.0,
        })
    }

    fn entries(&self) -> Result<Vec<PathBuf>, RunError> {
        match self.class_path.as_deref().map(|list| (list, list.strip_prefix('@'))) {
            None => Ok(Vec::new()),
            Some((_, Some(file))) => {
                let list = fs::read_to_string(file).map_err(FileError::at("read the class path", Path::new(file)))?;
                Ok(paths::class_path(list.trim_end_matches('\n')))
            }
            Some((list, None)) => Ok(paths::class_path(list)),
        }
    }

    fn home(&self) -> Result<JdkHome, RunError> {
        match &self.java_home {
            Some(home) => Ok(JdkHome::find(home)?),
            None => {
                let (path, java_home) = (variable("PATH"), variable("JAVA_HOME"));
                let surroundings = Surroundings { path: path.as_deref(), java_home: java_home.as_deref() };
                Ok(Launcher::find("java".as_ref(), &surroundings)?.jdk)
            }
        }
    }
}

impl Ready {
    /// The summary as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.notes.iter().for_each(|note| out += &format!("{note}\n"));
        if let Some(rewrote) = &self.rewrote {
            out += &format!("rewrote {rewrote}\n");
        }
        let shown = |path: &Path| jdk::quoted(&path.display().to_string());
        let options = self.options.iter().map(|option| jdk::quoted(option)).collect::<Vec<_>>().join(" ");
        out += &format!("run with: {} {options}", shown(&self.java_home.join("bin/java")));
        if !self.class_path.is_empty() {
            let copies: Vec<PathBuf> = self.class_path.iter().map(|entry| entry.copy.clone()).collect();
            out += &format!(" -cp {}", jdk::quoted(&paths::joined(&copies)));
        }
        out + "\n"
    }

    /// The result as a JSON object.
    pub fn json(&self) -> String {
        // Plain structs of numbers and strings can always be serialized; a path that is not valid Unicode is never
        // copied.
        serde_json::to_string(self).unwrap_or_default()
    }
}
