//! `et-trace export`: an allocation profile for another tool.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use et_analysis::alive;
use et_analysis::course::course;
use et_analysis::heap;
use et_analysis::profile::profile;
use et_names::EventSet;
use et_reader::source::{Source, deaths_of_heap, deaths_unknown};
use et_reader::{Thread, Trace};
use et_report::export::jfr::{self, Meaning, Recording};
use et_report::export::{About, Format, Tree, Weight};

use super::analyses::{Opened, lacks_walks, needs_calls, program, size};
use super::select::SelectUntilArgs;
use super::stacks::StacksArgs;
use super::{CliError, InputArgs, PROGRAM};
use crate::bar::Bar;
use crate::output::{Kind, Output};
use et_cli::Unwritten;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Protocol buffers for `go tool pprof`, Grafana Pyroscope and others; contains all weights at once
    Pprof,
    /// JSON for profiler.firefox.com
    Firefox,
    /// JSON for speedscope.app
    Speedscope,
    /// One line per stack, for inferno and flamegraph.pl
    Collapsed,
    /// A .heapprofile for the Memory panel of Chrome's DevTools
    Chrome,
    /// A recording for JDK Mission Control, IntelliJ and `jfr`, with threads, times and collections
    Jfr,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WeightArg {
    /// Bytes allocated
    Bytes,
    /// Objects allocated
    Objects,
    /// Bytes alive at the end
    AliveBytes,
    /// Objects alive at the end
    AliveObjects,
    /// Bytes that died young (--young)
    YoungBytes,
    /// Objects that died young (--young)
    YoungObjects,
    /// Bytes that survived at least one collection (runs with -Det.survival=5)
    SurvivedBytes,
    /// Objects that survived at least one collection (runs with -Det.survival=5)
    SurvivedObjects,
    /// Bytes times thousands of ticks between last use and death
    Drag,
}

impl FormatArg {
    /// The format of a profile without times; `None` for a recording.
    fn profile(self) -> Option<Format> {
        match self {
            Self::Pprof => Some(Format::Pprof),
            Self::Firefox => Some(Format::Firefox),
            Self::Speedscope => Some(Format::Speedscope),
            Self::Collapsed => Some(Format::Collapsed),
            Self::Chrome => Some(Format::Chrome),
            Self::Jfr => None,
        }
    }

    fn is_binary(self) -> bool {
        matches!(self, Self::Pprof | Self::Jfr)
    }
}

impl From<WeightArg> for Weight {
    fn from(arg: WeightArg) -> Self {
        match arg {
            WeightArg::Bytes => Self::Bytes,
            WeightArg::Objects => Self::Objects,
            WeightArg::AliveBytes => Self::AliveBytes,
            WeightArg::AliveObjects => Self::AliveObjects,
            WeightArg::YoungBytes => Self::YoungBytes,
            WeightArg::YoungObjects => Self::YoungObjects,
            WeightArg::SurvivedBytes => Self::SurvivedBytes,
            WeightArg::SurvivedObjects => Self::SurvivedObjects,
            WeightArg::Drag => Self::Drag,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    select: SelectUntilArgs,
    #[command(flatten)]
    stacks: StacksArgs,
    /// Format of the profile
    #[arg(long, value_enum)]
    to: FormatArg,
    /// Weight of the stacks; pprof shows this one first, and recordings of events have others as well
    #[arg(long, value_enum, default_value = "bytes")]
    weight: WeightArg,
    /// An object dies young if it dies before this much more is allocated
    #[arg(long, default_value = "1M", value_name = "SIZE", value_parser = size)]
    young: u64,
    /// How many of the objects alive at the end a recording has with what holds them, those that retain most
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u32).range(..=4096))]
    old_objects: u32,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &ExportArgs) -> Result<u8, CliError> {
    let is_terminal = io::stdout().is_terminal();
    if args.output.is_none() && args.to.is_binary() && is_terminal {
        return Err(CliError::Binary);
    }
    let bar = Bar::new(args.output.is_some() || !is_terminal);
    // A wrong path shows before the long work.
    let create = |path: &PathBuf| Output::create(path, Kind::Profile, args.force, &[&args.input.trace]);
    let mut output = args.output.as_ref().map(create).transpose()?;
    let (opened, selected) = Opened::new(&args.input, &bar)?.select(&args.select.selection())?;
    if let (WeightArg::SurvivedBytes | WeightArg::SurvivedObjects, None) = (args.weight, &opened.population.survival) {
        return Err(lacks_walks(&args.input, "--weight"));
    }
    if matches!(args.weight, WeightArg::Drag) && opened.population.has_deaths {
        needs_calls(&args.input, &opened, "--weight drag")?;
    }
    let stacks = args.stacks.shown();
    let opened = opened.show(&stacks);
    let mut about = about(&opened);
    about.comments.extend(selected.as_ref().map(|selected| format!("only what was allocated {}", selected.text())));
    about.comments.extend((!stacks.is_whole()).then(|| stacks.text()));
    let weight: Weight = args.weight.into();
    let run = run_of(&opened);
    let (population, naming) = (&opened.population, opened.source.naming());
    let made = match args.to.profile() {
        Some(format) => {
            let found = profile(population, naming, args.young).map_err(CliError::Rows)?;
            Made::Profile(Tree::of(&found, &population.contexts, opened.labels()), format)
        }
        None => {
            let found = course(population, naming, args.young).map_err(CliError::Rows)?;
            let meaning = Meaning { naming, contexts: &population.contexts, types: &population.types };
            let mut recording = Recording::new(&found, weight, &run, meaning);
            about.comments.extend(recording.left_out().notes());
            about.comments.extend(add_old_objects(
                &mut recording,
                &opened,
                selected.is_some(),
                args.old_objects as usize,
            )?);
            Made::Recording(Box::new(recording))
        }
    };
    let write = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        made.write(weight, &about, &mut out)?;
        out.flush()
    };
    match &mut output {
        Some(file) => write(file).map_err(|source| file.error(source))?,
        None => write(&mut io::stdout().lock()).map_err(Unwritten)?,
    }
    output.map_or(Ok(()), Output::finish)?;
    drop(bar);
    for comment in &about.comments {
        PROGRAM.say(format_args!("note: {comment}"));
    }
    Ok(opened.finish())
}

/// Adds the objects alive at the end that retain most; notes of what is not known of them.
fn add_old_objects(
    recording: &mut Recording<'_>,
    opened: &Opened,
    is_selected: bool,
    most: usize,
) -> Result<Vec<String>, CliError> {
    if most == 0 {
        return Ok(Vec::new());
    }
    if let Some(why) = deaths_unknown(opened.source.events()) {
        return Ok(vec![format!("no old objects: {why}")]);
    }
    if !opened.population.has_deaths {
        return Ok(vec!["no old objects: they are not known without deaths".to_owned()]);
    }
    let snapshot = heap::take(&opened.source, &heap::Request::default())?;
    let wanted = is_selected.then(|| alive(&opened.population)).transpose().map_err(CliError::Rows)?;
    let survivors = heap::survivors(&snapshot, &opened.population, wanted.as_ref(), most).map_err(CliError::Rows)?;
    recording.add_survivors(&snapshot, &survivors);
    let warnings = snapshot.taken().warnings.iter().filter(|warning| !opened.population.warnings.contains(warning));
    Ok(warnings.map(|warning| format!("old objects: {warning}")).collect())
}

/// What is to be written.
enum Made<'a> {
    Profile(Tree, Format),
    Recording(Box<Recording<'a>>),
}

impl Made<'_> {
    fn write(self, weight: Weight, about: &About, out: impl Write) -> io::Result<()> {
        match self {
            Self::Profile(tree, format) => et_report::export::write(&tree, format, weight, about, out),
            Self::Recording(recording) => {
                let what = format!("{}: weights are {}", about.program, weight.name());
                let notes: Vec<String> = std::iter::once(what).chain(about.comments.iter().cloned()).collect();
                recording.write(&notes, out)
            }
        }
    }
}

/// The run itself: threads, collections and times.
fn run_of(opened: &Opened) -> jfr::Run {
    let mut run = jfr::Run { nanos: opened.population.end.nanos.unwrap_or(0), ..jfr::Run::default() };
    let Source::Trace(trace) = &opened.source else { return run };
    let meta = trace.file.meta();
    run.start_unix_millis = meta.start_unix_millis;
    run.jvm_name.clone_from(&meta.jvm.name);
    run.jvm_version.clone_from(&meta.jvm.version);
    run.command.clone_from(&meta.command);
    run.pid = meta.pid;
    run.threads = trace.threads.iter().map(|thread| thread_of(trace, thread)).collect();
    run.collections = trace
        .gcs
        .iter()
        .map(|gc| jfr::Collection {
            start_nanos: gc.start_nanos,
            finish_nanos: gc.finish_nanos,
            heap_used: gc.heap_used,
            heap_committed: gc.heap_committed,
        })
        .collect();
    run
}

/// A thread, with the times of its first and last events, which are the nearest that the trace knows.
fn thread_of(trace: &Trace, thread: &Thread) -> jfr::Thread {
    let events = trace.file.thread(thread.index);
    let wall = |piece: Option<usize>| events.zip(piece).and_then(|(events, piece)| trace.file.wall(events, piece));
    let count = events.map_or(0, |events| events.len());
    let first = wall((count > 0).then_some(0)).map(|wall| wall.begin.0);
    let last = wall(count.checked_sub(1)).and_then(|wall| wall.end).map(|end| end.0);
    jfr::Thread {
        id: thread.index,
        name: thread.name.clone(),
        start_nanos: first.filter(|_| !thread.from_start),
        end_nanos: last.filter(|_| thread.end.is_some()),
    }
}

/// Metadata of the profile, including what the trace lacks.
fn about(opened: &Opened) -> About {
    let mut comments = Vec::new();
    let has_stacks = opened.source.trace().is_some_and(|trace| !trace.stacks.is_empty());
    if !opened.source.events().has(EventSet::METHOD) && !has_stacks {
        comments.push(
            "the trace has no calls: stacks are the allocating methods only (instrument with --events alloc,stacks, or all)"
                .to_owned(),
        );
    }
    if let Some(survival) = &opened.population.survival {
        let when =
            if survival.reaches_the_end() { "at the end" } else { "after the last collection that was looked at" };
        comments.push(format!("deaths are unknown: what a walk through the heap found {when} counts as alive"));
    } else if !opened.population.has_deaths {
        comments.push("deaths are unknown: all objects count as alive at the end".to_owned());
    }
    if opened.population.contexts.cut() > 0 {
        comments.push("too many calling contexts: the deepest stacks are cut".to_owned());
    }
    comments.extend(deaths_of_heap(opened.source.events()).filter(|_| opened.population.has_deaths));
    About { program: program(&opened.source), nanos: opened.population.end.nanos, comments }
}
