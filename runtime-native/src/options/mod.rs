//! The options of a run (`docs/runtime-options.md`): their sources and their meaning.

mod list;
mod trigger;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use et_format::trace_path;
use et_names::size::size;
use et_rewriter::filter::{Filter, PatternError};
use thiserror::Error;

use crate::ids::Scheme;
use crate::live::{Wanted, WantedError};

pub use list::{Described, OPTIONS, OUTDATED};
use trigger::duration;
pub use trigger::{MethodName, NoTrigger, Trigger};

/// Environment variable with options in the agent string's form.
pub const VARIABLE: &str = "ET_OPTIONS";
/// System properties with this prefix are options.
pub const PROPERTY_PREFIX: &str = "et.";

const DIALECTS: [&str; 4] = ["et", "replayer", "oracle", "tptp"];
const DEFAULT_BUFFERS: usize = 8 << 20;
const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);
const MIN_BUFFERS: usize = 64 << 10;
const MAX_BUFFERS: usize = 2 << 30;
const MAX_WRITERS: u32 = 64;
const DEFAULT_STACKS: u32 = 8_000_000;
const MAX_STACKS: u32 = 100_000_000;
/// Lengths of slices of counts.
const SHORTEST_SLICE: Duration = Duration::from_millis(10);
const LONGEST_SLICE: Duration = Duration::from_secs(3600);
/// Walks through the heap must not take more of the time than the program, in percent.
const MAX_SURVIVAL: u32 = 50;
/// The share is an `int` of HeapProxy.
const MAX_SHARE: u32 = i32::MAX as u32;
/// Maximum number of options files that name each other; more are taken for a cycle.
const MAX_FILES: usize = 16;

/// Why the options cannot be used.
#[derive(Debug, Error)]
pub enum OptionError {
    #[error("unknown option {0:?}; there are {list}", list = list::names())]
    Unknown(String),
    #[error("option {0:?} has no value: write name=value, joined by @")]
    NoValue(String),
    #[error("bufferSize={0} is not a size between 64k and 2g: write 512k, 16m or 1g")]
    BufferSize(String),
    #[error("patience={0} is not a time: write 500ms, 90s or 5m")]
    Patience(String),
    /// `traceFile=>…` without the brackets.
    #[error("traceFile={0} is not a command: write traceFile=>(command)")]
    Command(String),
    #[error("format={0}: write trace or text")]
    Format(String),
    #[error("dialect={0}; there are {list}", list = DIALECTS.join(", "))]
    Dialect(String),
    /// An option that describes the text, without `format=text`.
    #[error("option {0} needs format=text")]
    NoText(&'static str),
    /// `start` or `stop` is neither a time nor a method nor a file.
    #[error("{name}={value}: {error}")]
    Trigger {
        /// The option: `start` or `stop`.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it could be.
        error: NoTrigger,
    },
    #[error("dynamic={0}: write on or off")]
    Dynamic(String),
    #[error("writers={0}: write auto, or a number of threads from 1 to {MAX_WRITERS}")]
    Writers(String),
    #[error("stacks={0}: write a number of frames from 1 to {MAX_STACKS}")]
    Stacks(String),
    #[error("counts={0}: write off, or how long a slice is, from 10ms to 60m: counts=1s")]
    Counts(String),
    /// `counts` together with an option that is about single objects.
    #[error("counts have no objects: leave out {0}, or counts")]
    CountsWith(&'static str),
    #[error(
        "survival={0}: write how much of the time walks through the heap may take, in percent: 0 (none) to {MAX_SURVIVAL}"
    )]
    Survival(String),
    #[error("monitors={0}: write on or off")]
    Monitors(String),
    #[error("discard={0}: write on or off")]
    Discard(String),
    #[error("ids={0}: write auto, mark, hash or tags")]
    Ids(String),
    #[error("deaths={0}: write trace, gc, or gc/N to ask the collector about one object in N")]
    Deaths(String),
    /// Options of the agent for monitors that contradict each other.
    #[error(transparent)]
    Live(#[from] WantedError),
    /// `dynamicExclude` has a malformed pattern.
    #[error("dynamicExclude: {0}")]
    Pattern(#[from] PatternError),
    /// The options file cannot be read.
    #[error("cannot read optionsFile {path}: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// Options files name each other in a cycle.
    #[error("optionsFile: more than {MAX_FILES} files name one another")]
    TooManyFiles,
}

/// Destination of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file or a named pipe.
    File(PathBuf),
    /// To the standard input of a shell command.
    Command(String),
}

/// The text to write instead of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Dialect of the text, by its name in `et-trace text`.
    pub dialect: String,
    /// The names file; by default beside the text.
    pub names: Option<PathBuf>,
    /// The `et-trace` that makes the text; by default the installed one.
    pub tool: Option<PathBuf>,
}

/// The options of this run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Destination of the trace.
    pub target: Target,
    /// The text to write instead of the trace (`format=text`).
    pub text: Option<Text>,
    /// When tracing begins; by default with the program.
    pub start: Option<Trigger>,
    /// When tracing ends; by default with the program.
    pub stop: Option<Trigger>,
    /// Initial size of the event buffers in bytes. They grow if threads own most of them.
    pub buffer_bytes: usize,
    /// How long to wait for the reader of a pipe.
    pub patience: Duration,
    /// Further places to search for names tables.
    pub names: Vec<PathBuf>,
    /// Whether classes created at run time are rewritten.
    pub dynamic: bool,
    /// How objects get their ids; if that does not work, another way is used.
    pub ids: Scheme,
    /// Which classes created at run time are rewritten.
    pub dynamic_filter: Filter,
    /// `deaths=gc/N`: the collector is asked about one object in N.
    pub collector: Option<NonZeroU32>,
    /// Maximum number of the runtime's threads that pack events; by default half the number of processors.
    pub writers: Option<u32>,
    /// Whether contention for monitors and waits are recorded.
    pub monitors: bool,
    /// How many frames of different stacks are kept apart.
    pub stacks: u32,
    /// Allocations are only counted, in slices of this length.
    pub counts: Option<Duration>,
    /// How much of the time may be spent on looking what has survived, in percent; `None`: none.
    pub survival: Option<u32>,
    /// The agent for monitors, if it is part of the run.
    pub live: Option<Wanted>,
    /// Whether events are discarded instead of written.
    pub discard: bool,
    /// All options given, as recorded in the trace.
    pub given: BTreeMap<String, String>,
    /// Messages to the user about outdated options.
    pub notes: Vec<String>,
}

/// Sources of options, weakest first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The value of the environment variable [`VARIABLE`].
    pub variable: String,
    /// System properties with the prefix removed.
    pub properties: Vec<(String, String)>,
    /// The agent string: what follows `=` in `-agentpath`.
    pub agent: String,
}

impl Options {
    /// Reads the options of process `pid`. Later options and those of stronger sources win.
    pub fn read(sources: &Sources, pid: u32) -> Result<Self, OptionError> {
        let mut given = Given::default();
        given.text(&sources.variable)?;
        for (name, value) in &sources.properties {
            given.set(name, value)?;
        }
        given.text(&sources.agent)?;
        given.options(pid)
    }

    /// Whether tracing begins or ends with a method.
    pub fn names_methods(&self) -> bool {
        [&self.start, &self.stop].into_iter().any(|trigger| matches!(trigger, Some(Trigger::Method(_))))
    }
}

#[derive(Default)]
struct Given {
    values: BTreeMap<String, String>,
    files: usize,
}

impl Given {
    /// Options separated by `@`. An `@` in a mail address or path is no separator: a name and `=` must follow.
    fn text(&mut self, text: &str) -> Result<(), OptionError> {
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.match_indices('@').map(|(at, _)| at).find(|at| starts_option(&rest[at + 1..]));
            let (option, next) = match end {
                Some(at) => (&rest[..at], &rest[at + 1..]),
                None => (rest, ""),
            };
            self.option(option)?;
            rest = next;
        }
        Ok(())
    }

    fn option(&mut self, option: &str) -> Result<(), OptionError> {
        match option.split_once('=') {
            Some((name, value)) => self.set(name.trim(), value.trim()),
            None => Err(OptionError::NoValue(option.to_owned())),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        if !list::is_known(name) {
            return Err(OptionError::Unknown(name.to_owned()));
        }
        if name == "optionsFile" {
            return self.file(PathBuf::from(value));
        }
        self.values.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    fn file(&mut self, path: PathBuf) -> Result<(), OptionError> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(OptionError::TooManyFiles);
        }
        let text = fs::read_to_string(&path).map_err(|error| OptionError::File { path, error })?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.text(line)?;
        }
        Ok(())
    }

    fn options(self, pid: u32) -> Result<Options, OptionError> {
        let value = |name: &str| self.values.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let target = match value("traceFile") {
            None => Target::File(trace_path::of_process(trace_path::DEFAULT, pid).into()),
            Some(text) => match text.strip_prefix('>') {
                None => Target::File(trace_path::of_process(text, pid).into()),
                Some(command) => match command.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
                    Some(command) => Target::Command(trace_path::of_process(command, pid)),
                    None => return Err(OptionError::Command(text.to_owned())),
                },
            },
        };
        let text = match value("format") {
            None | Some("trace") => None,
            Some("text") => Some(Text {
                dialect: match value("dialect") {
                    None => DIALECTS[0].to_owned(),
                    Some(dialect) if DIALECTS.contains(&dialect) => dialect.to_owned(),
                    Some(other) => return Err(OptionError::Dialect(other.to_owned())),
                },
                names: value("namesFile").map(|path| trace_path::of_process(path, pid).into()),
                tool: value("traceTool").map(PathBuf::from),
            }),
            Some(other) => return Err(OptionError::Format(other.to_owned())),
        };
        if let Some(name) = ["dialect", "traceTool"].into_iter().find(|name| text.is_none() && value(name).is_some()) {
            return Err(OptionError::NoText(name));
        }
        let buffer_bytes = match value("bufferSize") {
            None => DEFAULT_BUFFERS,
            Some(text) => size(text)
                .and_then(|bytes| usize::try_from(bytes).ok())
                .filter(|bytes| (MIN_BUFFERS..=MAX_BUFFERS).contains(bytes))
                .ok_or_else(|| OptionError::BufferSize(text.to_owned()))?,
        };
        let patience = match value("patience") {
            None => DEFAULT_PATIENCE,
            Some(text) => duration(text).ok_or_else(|| OptionError::Patience(text.to_owned()))?,
        };
        let trigger = |name| {
            let given = value(name).map(|text| (text, text.parse()));
            given
                .map(|(text, read)| read.map_err(|error| OptionError::Trigger { name, value: text.to_owned(), error }))
                .transpose()
        };
        let (start, stop) = (trigger("start")?, trigger("stop")?);
        let names = value("names").map(|list| std::env::split_paths(list).collect()).unwrap_or_default();
        let switch = |name, default| match value(name) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(other) => Err(other.to_owned()),
        };
        let dynamic = switch("dynamic", true).map_err(OptionError::Dynamic)?;
        let monitors = switch("monitors", false).map_err(OptionError::Monitors)?;
        let discard = switch("discard", false).map_err(OptionError::Discard)?;
        let stacks = match value("stacks") {
            None => DEFAULT_STACKS,
            Some(text) => {
                let number = text.parse().ok().filter(|number| (1..=MAX_STACKS).contains(number));
                number.ok_or_else(|| OptionError::Stacks(text.to_owned()))?
            }
        };
        let counts = match value("counts") {
            None | Some("off") => None,
            Some(text) => {
                let slice = duration(text).filter(|slice| (SHORTEST_SLICE..=LONGEST_SLICE).contains(slice));
                Some(slice.ok_or_else(|| OptionError::Counts(text.to_owned()))?)
            }
        };
        let survival = match value("survival") {
            None => None,
            Some(text) => {
                let percent = text.parse().ok().filter(|percent: &u32| *percent <= MAX_SURVIVAL);
                Some(percent.ok_or_else(|| OptionError::Survival(text.to_owned()))?).filter(|percent| *percent > 0)
            }
        };
        let about_objects = [
            ("format=text", text.is_some()),
            ("deaths=gc", value("deaths").is_some_and(|text| text != "trace")),
            ("survival", survival.is_some()),
        ];
        if let Some((with, _)) = about_objects.into_iter().find(|(_, is_given)| *is_given && counts.is_some()) {
            return Err(OptionError::CountsWith(with));
        }
        let writers = match value("writers") {
            None | Some("auto") => None,
            Some(text) => {
                let number = text.parse().ok().filter(|number| (1..=MAX_WRITERS).contains(number));
                Some(number.ok_or_else(|| OptionError::Writers(text.to_owned()))?)
            }
        };
        let collector = match value("deaths") {
            None | Some("trace") => None,
            Some(text) => Some(share(text).ok_or_else(|| OptionError::Deaths(text.to_owned()))?),
        };
        let ids = match value("ids") {
            None | Some("auto" | "mark") => Scheme::MarkWord,
            Some("hash") => Scheme::Drawn,
            Some("tags") => Scheme::Tags,
            Some(other) => return Err(OptionError::Ids(other.into())),
        };
        let mut dynamic_filter = Filter::default();
        for pattern in value("dynamicExclude").into_iter().flat_map(|list| list.split(',')) {
            dynamic_filter.push(false, pattern.trim())?;
        }
        let mut notes = Vec::new();
        for (name, why) in OUTDATED {
            // For a text, the option still names the names file.
            if self.values.contains_key(name) && (text.is_none() || name != "namesFile") {
                notes.push(format!("option {name} is no longer needed: {why}"));
            }
        }
        Ok(Options {
            target,
            text,
            start,
            stop,
            buffer_bytes,
            patience,
            names,
            dynamic,
            dynamic_filter,
            ids,
            collector,
            writers,
            monitors,
            stacks,
            counts,
            survival,
            live: Wanted::read(value)?,
            discard,
            given: self.values,
            notes,
        })
    }
}

fn starts_option(text: &str) -> bool {
    let name = text.trim_start().bytes().take_while(u8::is_ascii_alphabetic).count();
    name > 0 && text.trim_start().as_bytes().get(name) == Some(&b'=')
}

/// `gc` or `gc/N`.
fn share(text: &str) -> Option<NonZeroU32> {
    match text.strip_prefix("gc")? {
        "" => Some(NonZeroU32::MIN),
        rest => rest.strip_prefix('/')?.parse().ok().filter(|share: &NonZeroU32| share.get() <= MAX_SHARE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(text: &str) -> Result<Options, OptionError> {
        Options::read(&Sources { agent: text.into(), ..Sources::default() }, 77)
    }

    #[test]
    fn defaults() {
        let options = agent("").unwrap();
        assert_eq!(options.target, Target::File("et-77.ettrace".into()));
        assert_eq!(options.buffer_bytes, 8 << 20);
        assert!(options.notes.is_empty());
    }

    #[test]
    fn sizes_are_those_of_all_tools() {
        let bytes = |size: &str| agent(&format!("bufferSize={size}")).map(|options| options.buffer_bytes).ok();
        assert_eq!(["64MB", "1.5m", "4 MiB"].map(bytes), [Some(64 << 20), Some(3 << 19), Some(4 << 20)]);
        assert_eq!(["63k", "3g", "16777216T", "many"].map(bytes), [None; 4]);
    }

    #[test]
    fn options_are_joined_by_at_signs() {
        let options = agent("traceFile=/x/me@home-%p.ettrace@bufferSize=512K@names=a:b").unwrap();
        assert_eq!(options.target, Target::File("/x/me@home-77.ettrace".into()));
        assert_eq!(options.buffer_bytes, 512 << 10);
        assert_eq!(options.names, [PathBuf::from("a"), PathBuf::from("b")]);
    }

    #[test]
    fn a_command_takes_the_trace() {
        let options = agent("traceFile=>(zstd -q > t-%p.zst)@bufferSize=1m").unwrap();
        assert_eq!(options.target, Target::Command("zstd -q > t-77.zst".into()));
        assert!(matches!(agent("traceFile=>zstd"), Err(OptionError::Command(_))));
    }

    #[test]
    fn the_trace_may_be_written_as_text() {
        assert_eq!(agent("format=trace").unwrap().text, None);
        let options = agent("format=text@traceFile=>(gzip > %p.gz)@namesFile=n-%p").unwrap();
        let text = Text { dialect: "et".into(), names: Some("n-77".into()), tool: None };
        assert_eq!((options.text, options.target), (Some(text), Target::Command("gzip > 77.gz".into())));
        assert!(options.notes.is_empty());
        let text = agent("format=text@dialect=oracle@traceTool=/opt/et-trace").unwrap().text.unwrap();
        assert_eq!((text.dialect.as_str(), text.tool), ("oracle", Some("/opt/et-trace".into())));
        assert!(matches!(agent("format=csv"), Err(OptionError::Format(_))));
        assert!(agent("format=text@dialect=latin").unwrap_err().to_string().contains("replayer"));
        assert!(matches!(agent("dialect=et"), Err(OptionError::NoText("dialect"))));
    }

    #[test]
    fn the_agent_string_wins_over_properties_and_these_over_the_variable() {
        let sources = Sources {
            variable: "traceFile=a@bufferSize=1m".into(),
            properties: vec![("traceFile".into(), "b".into()), ("names".into(), "n".into())],
            agent: "traceFile=c".into(),
        };
        let options = Options::read(&sources, 1).unwrap();
        assert_eq!(options.target, Target::File("c".into()));
        assert_eq!((options.buffer_bytes, options.names.len()), (1 << 20, 1));
        let without_agent = Options::read(&Sources { agent: String::new(), ..sources }, 1).unwrap();
        assert_eq!(without_agent.target, Target::File("b".into()));
    }

    #[test]
    fn an_options_file_stands_where_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("options");
        fs::write(&path, "# a comment\n\ntraceFile=from-file\nbufferSize=2m\n").unwrap();
        let options = agent(&format!("traceFile=before@optionsFile={}@bufferSize=1m", path.display())).unwrap();
        assert_eq!(options.target, Target::File("from-file".into()));
        assert_eq!(options.buffer_bytes, 1 << 20);
        fs::write(&path, format!("optionsFile={}\n", path.display())).unwrap();
        let circle = agent(&format!("optionsFile={}", path.display()));
        assert!(matches!(circle, Err(OptionError::TooManyFiles)));
        let missing = agent("optionsFile=/no/such/file").unwrap_err().to_string();
        assert!(missing.starts_with("cannot read optionsFile /no/such/file: "), "{missing}");
    }

    #[test]
    fn mistakes_are_named() {
        let unknown = agent("tracefile=x").unwrap_err().to_string();
        assert!(unknown.contains("\"tracefile\"") && unknown.contains("traceFile"), "{unknown}");
        assert!(matches!(agent("traceFile"), Err(OptionError::NoValue(_))));
        for bad in ["12q", "1k", "-5m", "9g", "", "99999999999999999999g"] {
            let result = agent(&format!("bufferSize={bad}"));
            assert!(bad.is_empty() || matches!(result, Err(OptionError::BufferSize(_))), "{bad}");
        }
    }

    #[test]
    fn classes_made_at_run_time_may_be_left_alone() {
        assert!(agent("").unwrap().dynamic && agent("dynamic=on").unwrap().dynamic);
        assert!(!agent("dynamic=off").unwrap().dynamic);
        assert!(matches!(agent("dynamic=no"), Err(OptionError::Dynamic(_))));
        assert_eq!(agent("").unwrap().ids, Scheme::MarkWord);
        assert_eq!(agent("ids=tags").unwrap().ids, Scheme::Tags);
        assert!(matches!(agent("ids=none"), Err(OptionError::Ids(_))));
        let filter = agent("dynamicExclude=com.acme.gen.**, *Proxy").unwrap().dynamic_filter;
        assert!(!filter.hooks("com/acme/gen/A") && !filter.hooks("a/FooProxy") && filter.hooks("com/acme/A"));
        assert!(matches!(agent("dynamicExclude=a["), Err(OptionError::Pattern(_))));
    }

    #[test]
    fn monitors_may_be_told_of() {
        assert!(!agent("").unwrap().monitors && agent("monitors=on").unwrap().monitors);
        assert_eq!(agent("monitors=all").unwrap_err().to_string(), "monitors=all: write on or off");
    }

    #[test]
    fn allocations_may_be_counted() {
        assert_eq!((agent("").unwrap().counts, agent("counts=off").unwrap().counts), (None, None));
        assert_eq!(agent("counts=100ms").unwrap().counts, Some(Duration::from_millis(100)));
        for bad in ["on", "1ms", "2000m"] {
            let line = agent(&format!("counts={bad}")).unwrap_err().to_string();
            assert!(line.starts_with(&format!("counts={bad}: write off, ")), "{line}");
        }
        for with in ["format=text", "deaths=gc"] {
            let line = agent(&format!("counts=1s@{with}")).unwrap_err().to_string();
            assert!(line.contains(with), "{line}");
        }
    }

    #[test]
    fn writers_may_be_few() {
        assert_eq!((agent("").unwrap().writers, agent("writers=auto").unwrap().writers), (None, None));
        assert_eq!((agent("writers=1").unwrap().writers, agent("writers=64").unwrap().writers), (Some(1), Some(64)));
        for bad in ["0", "65", "-1", "all", "2.5"] {
            let line = agent(&format!("writers={bad}")).unwrap_err().to_string();
            assert_eq!(line, format!("writers={bad}: write auto, or a number of threads from 1 to 64"));
        }
    }

    #[test]
    fn tracing_may_wait() {
        let options = agent("start=method:a.B.run@stop=after:2s").unwrap();
        assert!(matches!(options.start, Some(Trigger::Method(_))) && matches!(options.stop, Some(Trigger::After(_))));
        assert!(options.names_methods() && !agent("start=after:1s").unwrap().names_methods());
        let error = agent("start=soon").unwrap_err().to_string();
        assert!(error.starts_with("start=soon: write method:"), "{error}");
    }

    #[test]
    fn the_collector_may_be_asked_about_deaths() {
        let share = |text: &str| agent(text).map(|options| options.collector.map_or(0, NonZeroU32::get));
        assert_eq!((share("").unwrap(), share("deaths=trace").unwrap()), (0, 0));
        assert_eq!((share("deaths=gc").unwrap(), share("deaths=gc/16").unwrap()), (1, 16));
        for bad in ["none", "gc/", "gc/0", "gc/-1", "gc16", "gc/2147483648"] {
            let line = share(&format!("deaths={bad}")).unwrap_err().to_string();
            assert!(line.starts_with(&format!("deaths={bad}: write ")), "{line}");
        }
    }

    #[test]
    fn old_options_are_taken_with_a_note() {
        let options = agent("classPath=x@javaPath=y@namesFile=z").unwrap();
        assert_eq!(options.notes.len(), 3);
    }
}
