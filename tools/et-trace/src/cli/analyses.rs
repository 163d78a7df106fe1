//! The commands that say what became of objects: `objects`, `escape`, `correlate`, `connectivity`, `pretenure`, `shape`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use et_analysis::correlation::{self, By};
use et_analysis::heap::{self, Moment};
use et_analysis::objects::{self as listing, ObjectsError, Query, RetainedAt, Sort};
use et_analysis::{
    Labels, Selected, Selection, ShownStacks, Span, connectivity as connecting, escape as escaping,
    pretenure as pretenuring, shape,
};
use et_lives::{LifeTable, population};
use et_names::size as names;
use et_names::units::{bytes, counted};
use et_reader::population::Population;
use et_reader::references::References;
use et_reader::source::{Deaths, Reading, Source, deaths_unknown};
use serde::Serialize;

use super::moments::tick_of;
use super::select::select;
use super::stacks::show;
use super::{CliError, ClockArg, InputArgs, completeness, warn, warn_of_lives};
use crate::bar::Bar;
use et_cli::{print, print_json};

/// A trace with a row for each of its objects.
pub(crate) struct Opened {
    pub source: Source,
    pub population: Population,
    pub lives: Option<Arc<LifeTable>>,
}

impl Opened {
    /// Reads a trace, or its life table.
    pub fn new(input: &InputArgs, bar: &Bar) -> Result<Self, CliError> {
        let (source, lives) = input.open_for_rows(ClockArg::Et, bar)?;
        Self::of(input, source, lives)
    }

    /// The same for an analysis that says nothing without deaths.
    pub fn with_deaths(input: &InputArgs, bar: &Bar) -> Result<Self, CliError> {
        let lacks = |what| CliError::Lacks { path: input.trace.clone(), what };
        if Deaths::from(input.deaths) == Deaths::None {
            return Err(lacks("this command needs deaths: leave out --deaths none".to_owned()));
        }
        let (source, lives) = input.open_for_rows(ClockArg::Et, bar)?;
        source.tells_objects()?;
        if source.deaths(Deaths::Trace) == Deaths::None {
            let why = deaths_unknown(source.events()).unwrap_or_default();
            return Err(lacks(format!("{why}; instrument with --events all to know when objects die")));
        }
        Self::of(input, source, lives)
    }

    fn of(input: &InputArgs, source: Source, lives: Option<Arc<LifeTable>>) -> Result<Self, CliError> {
        let reading = Reading { deaths: input.deaths.into(), ..Reading::default() };
        let population = population(&source, lives.as_deref(), reading)?;
        Ok(Self { source, population, lives })
    }

    pub fn labels(&self) -> Labels<'_> {
        Labels::of(&self.source, &self.population)
    }

    /// Leaves out the objects that are not looked at; says what that is, if anything.
    pub fn select(self, selection: &Selection) -> Result<(Self, Option<Selected>), CliError> {
        let Self { source, population, lives } = self;
        let (population, selected) = select(selection, &source, population)?;
        Ok((Self { source, population, lives }, selected))
    }

    /// With stacks as they are to be shown.
    pub fn show(self, stacks: &ShownStacks) -> Self {
        let Self { source, population, lives } = self;
        let population = show(stacks, &source, population);
        Self { source, population, lives }
    }

    /// The stays of all references; the first time this takes a reading of the trace.
    pub fn references(&self) -> Result<Box<dyn References>, CliError> {
        Ok(et_lives::references(&self.source, self.lives.as_deref(), &self.population, Reading::default())?)
    }

    /// Says what is missing; the exit code.
    pub fn finish(&self) -> u8 {
        warn_of_lives(self.lives.as_deref());
        warn(&self.source, &self.population.warnings);
        completeness(&self.source, self.population.lost)
    }
}

/// How much is shown, and how.
#[derive(Debug, Args)]
struct ShowArgs {
    /// How many rows to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EscapeArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Refuses what only traces with calls tell.
pub(super) fn needs_calls(input: &InputArgs, opened: &Opened, what: &str) -> Result<(), CliError> {
    match opened.population.has_uses {
        true => Ok(()),
        false => {
            let what = format!("{what} needs calls, which are not in this trace: record with --mode everything");
            Err(CliError::Lacks { path: input.trace.clone(), what })
        }
    }
}

/// Opens a trace with known deaths, computes a result and prints it.
pub(super) fn answer<T: Serialize>(
    input: &InputArgs,
    json: bool,
    find: impl FnOnce(&Opened) -> Result<T, CliError>,
    render: impl FnOnce(&T) -> String,
) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let opened = Opened::with_deaths(input, &bar)?;
    let found = find(&opened)?;
    drop(bar);
    if json {
        print_json(&found)?
    } else {
        print(&render(&found))?
    }
    Ok(opened.finish())
}

pub(crate) fn escape(args: &EscapeArgs) -> Result<u8, CliError> {
    let needs_calls = |opened: &Opened| needs_calls(&args.input, opened, "this command");
    let find = |opened: &Opened| {
        needs_calls(opened)?;
        escaping::escape(&opened.population, opened.labels(), args.show.top).map_err(CliError::Rows)
    };
    answer(&args.input, args.show.json, find, escaping::render)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ByArg {
    /// Allocation site and class
    Site,
    /// Class
    Class,
    /// Calling context of the allocation, with site and class
    Context,
}

impl From<ByArg> for By {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::Site => Self::Site,
            ByArg::Class => Self::Class,
            ByArg::Context => Self::Context,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CorrelateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// How objects are grouped
    #[arg(long, value_enum, default_value = "site")]
    by: ByArg,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) fn correlate(args: &CorrelateArgs) -> Result<u8, CliError> {
    let find = |opened: &Opened| {
        correlation::correlation(&opened.population, opened.labels(), args.by.into(), args.show.top)
            .map_err(CliError::Rows)
    };
    answer(&args.input, args.show.json, find, correlation::render)
}

#[derive(Debug, Args)]
pub(crate) struct PretenureArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Sizes of the nursery: 4M, 512k
    #[arg(long, value_delimiter = ',', default_value = "1M,4M,16M,64M", value_name = "SIZE,…", value_parser = size)]
    nursery: Vec<u64>,
    #[command(flatten)]
    show: ShowArgs,
}

/// A size in bytes, and not nothing.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    names::size(text).filter(|&size| size > 0).ok_or_else(|| names::WRONG_SIZE.to_owned())
}

pub(crate) fn pretenure(args: &PretenureArgs) -> Result<u8, CliError> {
    let find = |opened: &Opened| {
        pretenuring::pretenuring(&opened.population, opened.labels(), args.nursery.clone(), args.show.top)
            .map_err(CliError::Rows)
    };
    answer(&args.input, args.show.json, find, pretenuring::render)
}

#[derive(Debug, Args)]
pub(crate) struct ConnectivityArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) fn connectivity(args: &ConnectivityArgs) -> Result<u8, CliError> {
    let find = |opened: &Opened| Ok(connecting::connectivity(&opened.source, opened.labels(), args.show.top)?);
    answer(&args.input, args.show.json, find, connecting::render)
}

#[derive(Debug, Args)]
pub(crate) struct ShapeArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Number of moments at which the heap is measured
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    moments: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn shape(args: &ShapeArgs) -> Result<u8, CliError> {
    let find = |opened: &Opened| Ok(shape::shapes(&opened.source, opened.population.end.bytes, args.moments)?);
    answer(&args.input, args.json, find, |shapes| shape::render(shapes))
}

/// A profile of a trace for other tools says what it is of.
pub(crate) fn program(source: &Source) -> String {
    source.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_all_tools() {
        assert_eq!(["4M", "4MB", "4 MiB", "4096k"].map(size), [Ok(4 << 20), Ok(4 << 20), Ok(4 << 20), Ok(4 << 20)]);
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert!(["", "M", "-1M", "0", "0.1", "99999999999G"].iter().all(|bad| size(bad).is_err()));
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SortArg {
    /// Largest first
    Size,
    /// First those during whose lives the program allocated most
    Age,
    /// First those that would free most, of those that are alive at the moment of --alive-at, or at the end
    Retained,
    /// First those that were kept longest after their last use
    Drag,
    /// In the order of their births
    Birth,
    /// In the order of their deaths
    Death,
    /// First those that survived most collections (runs with -Det.survival=5)
    Survived,
}

impl From<SortArg> for Sort {
    fn from(arg: SortArg) -> Self {
        match arg {
            SortArg::Size => Self::Size,
            SortArg::Age => Self::Age,
            SortArg::Retained => Self::Retained,
            SortArg::Drag => Self::Drag,
            SortArg::Birth => Self::Birth,
            SortArg::Death => Self::Death,
            SortArg::Survived => Self::Survived,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Moments are 40% (of calls and returns), 12.5s, tick:N, bytes:N (allocated) or end; ranges A..B, A.. or ..B.

Examples:
  et-trace objects app.ettrace --class shop.Order               the largest orders
  et-trace objects app.ettrace --class 'shop.*' --alive-at 40%  what of the shop was alive then
  et-trace objects app.ettrace --site 'shop.Page.<init>:*'      what a constructor allocated
  et-trace objects app.ettrace --alive-at 40% --sort retained   what held the most then
  et-trace objects app.ettrace --age 10M --sort drag            long-lived objects that were not used for long")]
pub(crate) struct ObjectsArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Objects of this class, as reports name it; * is any text
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Objects made at this site, as reports name it; * is any text
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Objects made while a method ran whose name contains this text
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// Objects made by this thread, by its number
    #[arg(long, value_name = "N")]
    thread: Option<u32>,
    /// Objects that were alive at this moment
    #[arg(long, value_name = "MOMENT")]
    alive_at: Option<Moment>,
    /// Objects made in this range
    #[arg(long, value_name = "RANGE")]
    born: Option<Span>,
    /// Objects that died in this range
    #[arg(long, value_name = "RANGE")]
    died: Option<Span>,
    /// Objects during whose lives more than that was allocated: 10M, 512k
    #[arg(long, value_name = "SIZE", value_parser = size)]
    age: Option<u64>,
    /// Objects that survived at least that many collections (runs with -Det.survival=5)
    #[arg(long, value_name = "N")]
    survived: Option<u32>,
    /// The order of the list
    #[arg(long, value_enum, default_value = "size")]
    sort: SortArg,
    /// For --sort retained: refuse if what was alive at the moment takes more memory than that
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4G")]
    memory: u64,
    #[command(flatten)]
    show: ShowArgs,
}

/// Memory that --sort retained takes for each object that is alive, with its references and its row.
const BYTES_EACH: u64 = 320;

/// What the objects retain that are alive at the moment of a query, which then needs no other condition for it.
fn retained(args: &ObjectsArgs, opened: &Opened, query: &mut Query) -> Result<RetainedAt, CliError> {
    let lacks = |what: String| CliError::Lacks { path: args.input.trace.clone(), what };
    let moment = query.alive_at.take().unwrap_or(Moment::End);
    let Opened { source, population, lives } = opened;
    let tick = tick_of(source, lives.as_deref(), population, &moment)?;
    let tick =
        tick.ok_or_else(|| lacks(format!("{moment}: what objects retain is known at 40%, 12.5s, tick:N or end")))?;
    let alive = listing::alive_at(population, &moment).map_err(|error| lacks(error.to_string()))?;
    let needed = alive.saturating_mul(BYTES_EACH);
    if needed > args.memory {
        let (objects, needed) = (counted(alive, "object"), bytes(needed));
        return Err(lacks(format!(
            "--sort retained: {objects} alive at {moment} may take {needed} of memory: choose another moment, or allow that much with --memory"
        )));
    }
    let references = opened.references()?;
    let resident =
        heap::resident(source, population, &*population.groups, &*references, tick).map_err(CliError::Rows)?;
    Ok(RetainedAt::of(resident))
}

/// The trace does not say what survives collections, which an option asks for.
pub(super) fn lacks_walks(input: &InputArgs, option: &str) -> CliError {
    let what = format!(
        "{option} needs walks through the heap, which are asked if deaths are not known (--deaths none): run with --mode objects, or -Det.survival=5"
    );
    CliError::Lacks { path: input.trace.clone(), what }
}

pub(crate) fn objects(args: &ObjectsArgs) -> Result<u8, CliError> {
    let mut query = Query {
        class: args.class.clone(),
        site: args.site.clone(),
        context: args.context.clone(),
        thread: args.thread,
        alive_at: args.alive_at.clone(),
        born: args.born.clone(),
        died: args.died.clone(),
        older_than: args.age,
        survived: args.survived,
        sort: args.sort.into(),
        top: args.show.top,
    };
    let bar = Bar::new(true);
    let opened = Opened::new(&args.input, &bar)?;
    opened.source.tells_objects()?;
    if let Some(option) = query.needs_deaths().filter(|_| !opened.population.has_deaths) {
        let path = args.input.trace.clone();
        return Err(CliError::Lacks { path, what: format!("{option} needs deaths, which are not known here") });
    }
    if query.sort == Sort::Drag {
        needs_calls(&args.input, &opened, "--sort drag")?;
    }
    if let Some(option) = query.needs_walks().filter(|_| opened.population.survival.is_none()) {
        return Err(lacks_walks(&args.input, option));
    }
    let retained = match query.sort {
        Sort::Retained => Some(retained(args, &opened, &mut query)?),
        _ => None,
    };
    let found =
        listing::objects(&opened.population, opened.labels(), &query, retained.as_ref()).map_err(
            |error| match error {
                ObjectsError::Rows(error) => CliError::Rows(error),
                ObjectsError::Query(error) => {
                    CliError::Lacks { path: args.input.trace.clone(), what: error.to_string() }
                }
            },
        )?;
    drop(bar);
    if args.show.json {
        print_json(&found)?
    } else {
        print(&listing::render(&found))?
    }
    Ok(opened.finish())
}
