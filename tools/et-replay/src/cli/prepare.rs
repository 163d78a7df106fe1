//! `et-replay prepare`

use std::path::PathBuf;

use clap::Args;
use et_names::units::{bytes, counted, number};

use super::progress::Progress;
use super::{CliError, InputArgs, take};
use crate::output::{Kind, Output};
use et_cli::code::OK;
use et_cli::{print, print_json};
use et_simulate::prepare::Input;

#[derive(Debug, Args)]
pub(super) struct PrepareArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The operations file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an output file of any kind, not only an operations file
    #[arg(long)]
    force: bool,
    /// Print the tables of the operations file (totals, classes, sites) as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PrepareArgs) -> Result<u8, CliError> {
    let input = Input::open(&args.input.input, args.input.with_names.as_deref())?;
    // Created before the long work, so that a wrong path fails early.
    let mut output = Output::create(&args.output, Kind::Ops, args.force, &[&args.input.input])?;
    let file = output.file().try_clone().map_err(|source| output.error(source))?;
    let progress = Progress::new();
    let (prepared, code) = take(input, &args.input, &progress, file)
        .map_err(|error| error.writing(|source| output.error(source).into()))?;
    drop(progress);
    let size = prepared.file.metadata().map_err(|source| output.error(source))?.len();
    output.finish()?;
    if args.json {
        print_json(&prepared.tables)?;
        return Ok(code);
    }
    let totals = &prepared.tables.totals;
    let each = size as f64 / totals.operations.max(1) as f64;
    print(&format!(
        "{}: {} from {}, {} ({each:.1} bytes each)\n\
         {}: {} allocated; at most {} alive at a time, {} at the end\n",
        args.output.display(),
        counted(totals.operations, "operation"),
        counted(totals.records, "record"),
        bytes(size),
        counted(totals.births, "object"),
        bytes(totals.allocated.bytes),
        bytes(totals.peak.bytes),
        number(totals.at_end.objects),
    ))?;
    debug_assert!(code == OK || !prepared.tables.notes.is_empty());
    Ok(code)
}
