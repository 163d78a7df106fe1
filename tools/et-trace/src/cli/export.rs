//! `et-trace export`: an allocation profile for another tool.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use et_analysis::profile::profile;
use et_names::EventSet;
use et_report::export::{About, Format, Tree, Weight};

use super::analyses::{Opened, program, size};
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
    /// Bytes times thousands of ticks between last use and death
    Drag,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Pprof => Self::Pprof,
            FormatArg::Firefox => Self::Firefox,
            FormatArg::Speedscope => Self::Speedscope,
            FormatArg::Collapsed => Self::Collapsed,
            FormatArg::Chrome => Self::Chrome,
        }
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
            WeightArg::Drag => Self::Drag,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Format of the profile
    #[arg(long, value_enum)]
    to: FormatArg,
    /// Weight of the stacks; pprof shows this one first
    #[arg(long, value_enum, default_value = "bytes")]
    weight: WeightArg,
    /// An object dies young if it dies before this much more is allocated
    #[arg(long, default_value = "1M", value_name = "SIZE", value_parser = size)]
    young: u64,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &ExportArgs) -> Result<u8, CliError> {
    let is_terminal = io::stdout().is_terminal();
    if args.output.is_none() && args.to == FormatArg::Pprof && is_terminal {
        return Err(CliError::Binary);
    }
    let bar = Bar::new(args.output.is_some() || !is_terminal);
    // A wrong path shows before the long work.
    let create = |path: &PathBuf| Output::create(path, Kind::Profile, args.force, &[&args.input.trace]);
    let mut output = args.output.as_ref().map(create).transpose()?;
    let opened = Opened::new(&args.input, &bar)?;
    let found = profile(&opened.population, opened.source.naming(), args.young).map_err(CliError::Rows)?;
    let tree = Tree::of(&found, &opened.population.contexts, opened.labels());
    let about = about(&opened);
    let write = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        et_report::export::write(&tree, args.to.into(), args.weight.into(), &about, &mut out)?;
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

/// Metadata of the profile, including what the trace lacks.
fn about(opened: &Opened) -> About {
    let mut comments = Vec::new();
    if !opened.source.events().has(EventSet::METHOD) {
        comments.push(
            "the trace has no calls: stacks are the allocating methods only (instrument with --events all)".to_owned(),
        );
    }
    if !opened.population.has_deaths {
        comments.push("deaths are unknown: all objects count as alive at the end".to_owned());
    }
    if opened.population.contexts.cut() > 0 {
        comments.push("too many calling contexts: the deepest stacks are cut".to_owned());
    }
    About { program: program(&opened.source), nanos: opened.population.end.nanos, comments }
}
