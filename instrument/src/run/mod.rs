//! `et-instrument run`: a program of a JDK, traced, in one step.
//!
//! 1. [`launcher`] finds the JDK of the program.
//! 2. [`prepare`] finds its instrumented copy in the cache, or makes it.
//! 3. [`program`] puts rewritten copies in place of what the command line names ([`argfile`], [`java_line`], [`paths`]).
//! 4. [`child`] runs it, and [`trace_file`] tells where the trace is.

mod argfile;
mod child;
mod error;
mod java_line;
mod launcher;
mod paths;
mod prepare;
mod program;
mod trace_file;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use error::RunError;

use crate::artifact::Settings;
use crate::cache::Cache;
use crate::error::Error;
use crate::jdk::RuntimeDir;
use java_line::JavaOption;
use launcher::{Launcher, Surroundings};
use trace_file::TraceFile;

/// What to run, and how.
#[derive(Debug)]
pub struct RunJob {
    /// The program and its arguments: `java -jar app.jar`.
    pub command: Vec<OsString>,
    /// Where the trace goes, if said.
    pub trace: Option<String>,
    /// Where the cache is, if said.
    pub cache_dir: Option<PathBuf>,
    /// Where the runtime's parts are, if said.
    pub runtime_dir: Option<PathBuf>,
    /// Classes are not looked for before the run: they get their hooks when they are defined.
    pub in_place: bool,
    /// Say nothing but errors.
    pub quiet: bool,
}

impl RunJob {
    /// Runs it and returns its exit code.
    pub fn run(&self, settings: &Settings) -> Result<u8, Error> {
        let (name, arguments) =
            self.command.split_first().ok_or_else(|| Error::Usage("say what to run: java …".into()))?;
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let (path, java_home) = (variable("PATH"), variable("JAVA_HOME"));
        let surroundings = Surroundings { path: path.as_deref(), java_home: java_home.as_deref() };
        let launcher = Launcher::find(name, &surroundings)?;
        let say = |line: &str| {
            if !self.quiet {
                eprintln!("et-instrument: {line}");
            }
        };

        let cache = Cache::find(self.cache_dir.as_deref())?;
        cache.create()?;
        let runtime = RuntimeDir::find(self.runtime_dir.as_deref())?;
        let tool = prepare::tool(&cache, &runtime)?;
        let prepared = match prepare::at_hand(&launcher.jdk)? {
            Some(prepared) => prepared,
            None => prepare::prepare(&cache, &launcher.jdk, runtime.folder(), tool, settings, &say)?,
        };

        let mut own = Vec::new();
        own.extend(self.trace.iter().map(|trace| format!("-Det.traceFile={trace}")));
        let excluded = settings.filter.excluded();
        if !excluded.is_empty() {
            own.push(format!("-Det.dynamicExclude={}", excluded.join(",")));
        }
        let given = given_options(launcher.is_java());
        let mut command = Command::new(prepared.home.join(&launcher.path));
        let options = prepared.options.iter().chain(&own);
        let mut traces: Vec<String> = Vec::new();
        traces.extend(variable("ET_OPTIONS").and_then(|text| TraceFile::in_variable(&text.to_string_lossy())));
        let mut entry = None;
        if launcher.is_java() {
            let mut line = program::Line::of(arguments, given)?;
            if !self.in_place {
                let (used, done) = program::rewrite(&mut line, &cache, tool, settings)?;
                entry = Some(used);
                settings.progress.finish();
                done.notes.iter().for_each(|note| say(note));
                if let Some(text) = done.text() {
                    say(&format!("rewrote {text}"));
                }
            }
            traces.extend(trace_options(&line.inherited));
            traces.extend(self.trace.clone());
            traces.extend(trace_options(&line.java.options));
            command.args(options).args(line.java.arguments());
        } else {
            traces.extend(trace_options(&given));
            traces.extend(self.trace.clone());
            command.args(options.map(|option| format!("-J{option}"))).args(arguments);
        }
        settings.progress.finish();
        lead_to(&mut command, &prepared.home, java_home.is_some());
        crate::interrupt::check()?;
        let trace = TraceFile::new(traces);
        let ended = child::run(&mut command)?;
        drop(entry);
        if !self.quiet {
            // The program may have left the cursor within a line.
            if std::io::stderr().is_terminal() && std::io::stdout().is_terminal() {
                eprintln!();
            }
            trace.lines(ended.process).iter().for_each(|line| eprintln!("et-instrument: {line}"));
        }
        Ok(ended.code)
    }
}

/// A JVM that the program starts has the rewritten classes on its class path, and so must be the instrumented one.
fn lead_to(command: &mut Command, home: &Path, has_java_home: bool) {
    if has_java_home {
        command.env("JAVA_HOME", home);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(home.join("bin")).chain(std::env::split_paths(&path)));
    if let Ok(path) = path {
        command.env("PATH", path);
    }
}

/// Options in variables, which come before those of the command line: of any JVM, and of `java`.
fn given_options(is_java: bool) -> Vec<JavaOption> {
    let mut options = Vec::new();
    let read = |name: &str| java_line::variable_words(&std::env::var(name).unwrap_or_default());
    options.extend(java_line::JavaLine::options_of(read("JAVA_TOOL_OPTIONS")));
    if is_java {
        let words = read("JDK_JAVA_OPTIONS").into_iter().map(OsString::from).collect();
        let words = argfile::expand(words).unwrap_or_default();
        options.extend(java_line::JavaLine::parse(words).options);
    }
    options
}

fn trace_options(options: &[JavaOption]) -> impl Iterator<Item = String> + '_ {
    options.iter().filter(|option| option.name == "-Det.traceFile=").filter_map(|option| option.value.clone())
}
