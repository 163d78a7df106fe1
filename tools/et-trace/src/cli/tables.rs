//! `et-trace tables`: traces as Parquet files.

use std::path::PathBuf;

use clap::Args;
use et_names::units::{bytes, counted};
use et_tables::{Converter, Options, TableName, Wanted};

use super::{CliError, ClockArg, DeathsArg, InputArgs, completeness, warn, warn_of_lives};
use crate::bar::Bar;
use et_cli::code::OK;
use et_cli::print;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-trace tables app.ettrace -o app.tables                      all tables
  et-trace tables app.ettrace -o app.tables --only objects,sites  only these, and the row of the run
  et-trace tables *.ettrace -o runs.tables                       several runs in one folder
  et-trace tables a.ettrace -o runs.tables --run before --label 1.4.2
  et-trace sql app.tables --query top_sites                      queries them")]
pub(super) struct TablesArgs {
    /// Traces: files written by the runtime, texts of dialect et or replayer, or - for standard input
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The folder to write to. Other runs in it are kept; the same run is replaced
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Write only these tables: objects, updates, refs, calls, counts, allocations_by_second, exceptions, threads, collections, classes,
    /// methods, fields, sites, contexts. The row of the run in trace is always written
    #[arg(long, value_delimiter = ',', value_name = "TABLE,…")]
    only: Vec<TableName>,
    /// Name of the run in the folder [default: the trace's name and its run id]
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Text for the column label: a release, a machine, a test
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Names file with the names behind the ids of a text (written by `text --names`)
    #[arg(long, value_name = "FILE")]
    with_names: Option<PathBuf>,
    /// How deaths are determined
    #[arg(long, value_enum, default_value = "trace")]
    deaths: DeathsArg,
    /// Folder of the life table, which saves computed deaths for later commands [default: TRACE.lives]
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_lives")]
    lives: Option<PathBuf>,
    /// Neither use nor make life tables
    #[arg(long)]
    no_lives: bool,
}

pub(super) fn run(args: &TablesArgs) -> Result<u8, CliError> {
    if args.traces.len() > 1 && (args.run.is_some() || args.lives.is_some()) {
        return Err(CliError::OneRun);
    }
    let mut code = OK;
    for trace in &args.traces {
        code = code.max(convert(args, trace.clone())?);
    }
    Ok(code)
}

fn convert(args: &TablesArgs, trace: PathBuf) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let input = InputArgs {
        trace,
        with_names: args.with_names.clone(),
        deaths: args.deaths,
        lives: args.lives.clone(),
        no_lives: args.no_lives,
    };
    let (source, lives) = input.open_for_rows(ClockArg::Et, &bar)?;
    let wanted = if args.only.is_empty() { Wanted::default() } else { Wanted::only(&args.only) };
    let needs_objects = wanted.need_objects();
    let options = Options { wanted, run: args.run.clone(), label: args.label.clone() };
    let converter = Converter::begin(&source, &args.output, options)?;
    let reading = input.reading(ClockArg::Et);
    let population = if needs_objects { Some(et_lives::population(&source, lives.as_deref(), reading)?) } else { None };
    let done = converter.convert(&source, population, reading)?;
    drop(bar);
    let (rows, size) = done.tables.iter().fold((0, 0), |sum, (_, rows, bytes)| (sum.0 + rows, sum.1 + bytes));
    let (tables, rows) = (counted(done.tables.len() as u64, "table"), counted(rows, "row"));
    print(&format!("{}: run {}, {tables}, {rows}, {}\n", args.output.display(), done.run, bytes(size)))?;
    warn_of_lives(lives.as_deref());
    warn(&source, &done.warnings);
    Ok(completeness(&source, done.lost))
}
