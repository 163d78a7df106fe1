//! `et-instrument run`: traces a program of a JDK in one step.
//!
//! 1. [`launcher`] finds the JDK of the program.
//! 2. [`prepare`] finds its instrumented copy in the cache, or creates it.
//! 3. [`program`] replaces what the command line refers to by instrumented copies ([`argfile`], [`java_line`],
//!    [`paths`]).
//! 4. [`child`] runs it, and [`trace_file`] reports where the trace is, and [`children`] where those of JVMs are that it has
//!    started.
//!
//! The user's options about archives are removed ([`left_out`]); files for the JVM are in a temporary folder
//! ([`scratch`]).
//!
//! [`jvmpi`] runs a program with a profiler instead, without a trace.
//! [`ahead`] does the first three steps for build tools, which start programs themselves.

mod ahead;
mod argfile;
mod child;
mod children;
mod error;
mod java_line;
mod jvmpi;
mod launcher;
mod left_out;
mod long_line;
mod paths;
mod prepare;
mod program;
mod report;
mod scratch;
mod script;
mod stacks;
mod trace_file;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use ahead::{PrepareJob, Ready};
pub use error::RunError;
pub use jvmpi::JvmpiJob;

use et_format::trace_path;
use java_line::JavaOption;
use launcher::{Launcher, Surroundings};
use left_out::LeftOut;
use prepare::Workplace;
use report::Report;
use scratch::Scratch;
use trace_file::TraceFile;

use crate::archives;
use crate::artifact::Settings;
use crate::cache::entry::CacheEntry;
use crate::files::{FileError, Umask};

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
    /// Whether the JVMs are traced that the program starts.
    pub children: bool,
    /// Print errors only.
    pub quiet: bool,
}

/// The arguments after the name of the program, without those that are removed.
enum Given {
    Java(program::Line),
    /// Arguments of another launcher.
    Other(Vec<OsString>),
}

/// A command, and what is to live as long as it runs.
#[derive(Debug)]
struct Assembled {
    words: Vec<OsString>,
    /// Values of the trace file option, lowest precedence first.
    traces: Vec<String>,
    _entry: Option<CacheEntry>,
}

/// Returns a function that writes lines to standard error unless `is_quiet`.
fn teller(settings: &Settings, is_quiet: bool) -> impl Fn(&str) {
    move |line| {
        if !is_quiet {
            settings.progress.say(&format!("et-instrument: {line}"));
        }
    }
}

impl RunJob {
    /// Runs it and returns its exit code.
    pub fn run(&self, settings: &Settings) -> Result<u8, RunError> {
        let (name, arguments) = first_word(&self.command)?;
        let (path, java_home) = (variable("PATH"), variable("JAVA_HOME"));
        let surroundings = Surroundings { path: path.as_deref(), java_home: java_home.as_deref() };
        let launcher = match Launcher::find(name, &surroundings) {
            Ok(launcher) => launcher,
            Err(RunError::Script { path }) if self.children && !script::is_shim(&path) => {
                return self.script(&path, arguments, &surroundings, settings);
            }
            Err(error) => return Err(launcher::meant(name).unwrap_or(error)),
        };

        let (umask, workplace, scratch) = self.begin(settings)?;
        let say = teller(settings, self.quiet);
        // Errors are detected before work that takes seconds.
        let mut left_out = LeftOut::new(&scratch);
        let variables = left_out.of_variables()?;
        let given = match launcher.is_java() {
            true => Given::Java(program::Line::of(arguments, given_options(true))?.without(&mut left_out)?),
            false => Given::Other(left_out.of_launcher(arguments)?),
        };
        left_out.line().iter().for_each(|line| say(line));
        let prepared = workplace.jdk(&launcher.jdk, settings, &say)?;
        let mut options = prepared.options.clone();
        let any = given_options(false);
        let java = if launcher.is_java() { given_options(true).split_off(any.len()) } else { Vec::new() };
        stacks::fit(&mut options, &any, &java);
        options.extend(self.options(settings));
        let assembled = match given {
            Given::Java(line) => self.java(line, options, &workplace, &scratch, settings)?,
            Given::Other(arguments) => self.other(&arguments, options),
        };
        settings.progress.finish();
        drop(umask);

        let mut command = Command::new(prepared.home.join(&launcher.path));
        LeftOut::set(variables, &mut command);
        command.args(&assembled.words);
        lead_to(&mut command, &prepared.home, java_home.is_some());
        crate::interrupt::check()?;
        let in_variable = variable("ET_OPTIONS").and_then(|text| TraceFile::in_variable(&text.to_string_lossy()));
        let trace = TraceFile::new(in_variable.into_iter().chain(assembled.traces.iter().cloned()));
        let report = Report::new(&scratch)?;
        command.env(trace_path::REPORT, report.path());
        children::set(
            &mut command,
            self.children.then(|| trace.given()),
            excluded_classes(settings).as_deref(),
            &about_objects(settings),
        );
        let ended = child::run(&mut command)?;
        children::lines(&report.children()).iter().for_each(|line| say(line));
        trace.lines(ended.process, report.tells_of(ended.process)).iter().for_each(|line| say(line));
        Ok(ended.code)
    }

    /// Runtime options that correspond to our own.
    fn options(&self, settings: &Settings) -> impl Iterator<Item = String> {
        let program = typed(&self.command);
        let trace = self.trace().map(|trace| format!("-Det.traceFile={trace}"));
        trace.into_iter().chain(excluded(settings)).chain(telling(settings)).chain([format!("-Det.program={program}")])
    }

    /// What comes first, whatever is run: where work is done, and what keeps its files from others while it is prepared.
    fn begin(&self, settings: &Settings) -> Result<(Umask, Workplace, Scratch), RunError> {
        settings.filter.of_jdk().for_each(|line| warn(settings, &line));
        self.make_trace_folder()?;
        let umask = Umask::tightened();
        let workplace = Workplace::find(self.cache_dir.as_deref(), self.runtime_dir.as_deref())?;
        let scratch = Scratch::new(workplace.cache.root())?;
        Ok((umask, workplace, scratch))
    }

    /// Makes the folder of traces, if that is what was given.
    fn make_trace_folder(&self) -> Result<(), FileError> {
        let folder =
            self.trace.as_deref().filter(|given| given.ends_with('/') && !given.starts_with('>')).map(Path::new);
        folder.map_or(Ok(()), |folder| fs::create_dir_all(folder).map_err(FileError::at("create", folder)))
    }

    /// Where the trace goes, if said. In a folder it has the usual name.
    fn trace(&self) -> Option<String> {
        self.trace.as_deref().map(trace_file::in_folder)
    }

    /// `java`: with rewritten copies of what it is to run.
    fn java(
        &self,
        mut line: program::Line,
        options: Vec<String>,
        workplace: &Workplace,
        scratch: &Scratch,
        settings: &Settings,
    ) -> Result<Assembled, RunError> {
        let Workplace { cache, tool, .. } = workplace;
        stacks::scale(&mut line.java.options);
        let mut entry = None;
        if !self.in_place {
            let say = teller(settings, self.quiet);
            let (used, done) = program::rewrite(&mut line, cache, *tool, settings, &say)?;
            entry = Some(used);
            settings.progress.finish();
            if let Some(missing) = done.lacks() {
                let why = "its owner can make one with et-instrument prepare; until then classes are instrumented when they are defined";
                say(&format!("the cache {} has no copy of {missing}: {why}", cache.root().display()));
            }
            done.notes.iter().for_each(|note| say(note));
            let about_rules = settings.filter.unused_includes();
            done.warnings().into_iter().chain(about_rules).for_each(|line| warn(settings, &line));
            if let Some(text) = done.text() {
                say(&format!("rewrote {text}"));
            }
        }
        let given = trace_options(&line.inherited).chain(self.trace());
        let traces = given.chain(trace_options(&line.java.options)).collect();
        let own = long_line::arguments(line.java, scratch)?;
        let words = options.into_iter().map(OsString::from).chain(own).collect();
        Ok(Assembled { words, traces, _entry: entry })
    }

    /// Other launchers have no program class path, and pass arguments after `-J` on to the JVM.
    fn other(&self, arguments: &[OsString], options: Vec<String>) -> Assembled {
        let own = options.into_iter().map(|option| OsString::from(format!("-J{option}")));
        let words = own.chain(arguments.iter().map(stacks::scaled_word)).collect();
        let traces = trace_options(&given_options(false)).chain(self.trace()).collect();
        Assembled { words, traces, _entry: None }
    }
}

/// The program, and its arguments.
fn first_word(command: &[OsString]) -> Result<(&OsString, &[OsString]), RunError> {
    let (name, arguments) =
        command.split_first().ok_or_else(|| RunError::Usage("no program given: et-instrument run -- java …".into()))?;
    if let Some(option) = name.to_str().filter(|name| name.starts_with('-')) {
        let why = format!("{option} is not a program: put java before it: et-instrument run -- java {option} …");
        return Err(RunError::Usage(why));
    }
    Ok((name, arguments))
}

/// A command as it was typed, for people: what runs has paths of the cache in it.
fn typed(command: &[OsString]) -> String {
    // Class paths may be as long as they like.
    const ROOM: usize = 500;
    let words: Vec<String> = command.iter().map(|word| crate::jdk::quoted(&word.to_string_lossy())).collect();
    let text = words.join(" ");
    match text.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Classes excluded from instrumentation must not be instrumented at run time either.
fn excluded(settings: &Settings) -> Option<String> {
    excluded_classes(settings).map(|excluded| format!("-Det.dynamicExclude={excluded}"))
}

fn excluded_classes(settings: &Settings) -> Option<String> {
    let excluded = settings.filter.excluded().join(",");
    (!excluded.is_empty()).then_some(excluded)
}

/// What the runtime is to tell of objects, as options of the JVM.
fn telling(settings: &Settings) -> impl Iterator<Item = String> {
    about_objects(settings).into_iter().map(|option| format!("-Det.{option}"))
}

/// The same as options of the runtime: how long slices of counts are, how much of the time it may look what survives.
fn about_objects(settings: &Settings) -> Vec<String> {
    let counts = settings.counts.then(|| "counts=1s".to_owned());
    counts.into_iter().chain(settings.survival.map(|percent| format!("survival={percent}"))).collect()
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Warnings about missing hooks are always printed.
fn warn(settings: &Settings, line: &str) {
    settings.progress.say(&format!("et-instrument: {line}"));
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
    let read = |name: &str| -> Vec<String> {
        let text = std::env::var(name).unwrap_or_default();
        archives::words(&text).into_iter().map(|word| word.text).collect()
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_reported_as_it_was_typed() {
        let told = |words: &[&str]| typed(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(told(&["java", "-jar", "my app.jar", "a\nb"]), "java -jar 'my app.jar' $'a\\x0ab'");
        assert_eq!(told(&["java", &"ä".repeat(1000)]).chars().count(), 501);
    }
}
