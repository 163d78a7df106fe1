//! `et-trace heap`: the heap as it was at a moment of the run.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use et_analysis::changes::{self, AtRoots, By, ChangesError};

use super::analyses::{Opened, answer};
use super::moments::{tick_of, timeline};
use super::{CliError, DeathsArg, InputArgs, LifeTable, PROGRAM, completeness, warn, warn_of_lives};
use crate::bar::Bar;
use crate::output::{Kind, Output};
use et_analysis::heap::{self, HeapError, Matching, Moment, Request, Snapshot, Watched};
use et_analysis::{QueryError, object};
use et_cli::{print, print_json};
use et_names::units::counted;
use et_reader::population::{Groups, Population};
use et_reader::record::ObjectId;
use et_reader::references::References;
use et_reader::resolve::Lost;
use et_reader::source::{Deaths, Reading, Source};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-trace heap app.ettrace                                  classes of what is alive at the end
  et-trace heap app.ettrace --at 40% --dominators            what holds the most when 40 % of all calls have happened
  et-trace heap app.ettrace --at method:com.acme.Main.run#3  when the method is entered for the third time
  et-trace heap app.ettrace --path-to 1f3a                   why that object is alive
  et-trace heap app.ettrace --path-to com.acme.Session       why those of a class are, in ways that look alike
  et-trace heap app.ettrace --match 'com.acme.*' --dominators   the largest of the program's objects
  et-trace heap app.ettrace --diff 40% 60% --by site         what came, what went and what stayed
  et-trace heap app.ettrace --diff 40% 60% --by root         the same by what holds it: which static field grew
  et-trace heap app.ettrace --at 12.5s --hprof app.hprof     a heap dump for Eclipse MAT, VisualVM and others")]
pub(super) struct HeapArgs {
    /// The trace: a file written by the runtime, a text of dialect et or replayer, or - for standard input
    trace: PathBuf,
    /// Names file with the names behind the ids of a text (written by `text --names`)
    #[arg(long, value_name = "FILE")]
    with_names: Option<PathBuf>,
    /// The moment: 40% (of calls and returns), 12.5s, tick:N, bytes:N (allocated), method:com.acme.Main.run#3 (third
    /// entry), or end
    #[arg(long, value_name = "MOMENT", default_value = "end")]
    at: Moment,
    /// Show objects, bytes and retained bytes by class (the default)
    #[arg(long, group = "view")]
    classes: bool,
    /// Show the objects that retain the most: the top of the dominator tree, by object and by class
    #[arg(long, group = "view")]
    dominators: bool,
    /// Show why this object, or the objects of this class, are alive: the shortest paths from static fields, stacks and the VM. An
    /// object's id is hexadecimal, as in texts of the trace and in --dominators; in the name of a class * is any text
    #[arg(long, group = "view", value_name = "OBJECT|CLASS")]
    path_to: Option<Wanted>,
    /// Show what holds this object directly: fields, elements, static fields, stacks
    #[arg(long, group = "view", value_name = "OBJECT")]
    holders: Option<ObjectId>,
    /// Show what came, what went and what stayed between two moments
    #[arg(long, group = "view", num_args = 2, value_names = ["MOMENT", "MOMENT"], conflicts_with_all = ["at", "hprof"])]
    diff: Option<Vec<Moment>>,
    /// What --diff groups objects by
    #[arg(long, value_enum, default_value = "class", requires = "diff")]
    by: ByArg,
    /// Only objects of classes with this name, as reports write it; * is any text. Shows paths that contain such
    /// an object, holders that are one, and dominators that no other such object dominates
    #[arg(long = "match", value_name = "CLASS")]
    matching: Option<String>,
    /// How many classes, objects or paths to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Write a heap dump (HPROF 1.0.2): references and array lengths are exact, contents of primitive fields and arrays
    /// are zero
    #[arg(long, value_name = "FILE", conflicts_with = "matching")]
    hprof: Option<PathBuf>,
    /// Replace an output file of any kind, not only a heap dump
    #[arg(long, requires = "hprof")]
    force: bool,
    /// Read the trace even if tables beside it tell what was alive: they do not tell what only stacks hold
    #[arg(long)]
    stacks: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder of the life table, which saves computed deaths for later commands [default: TRACE.lives]
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_lives")]
    lives: Option<PathBuf>,
    /// Neither use nor make a life table: compute deaths for this command only
    #[arg(long)]
    no_lives: bool,
}

/// An object or a class.
#[derive(Clone, Debug)]
struct Wanted {
    /// If it can be one: `cafe` may be a class, too.
    id: Option<ObjectId>,
    name: String,
}

impl FromStr for Wanted {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self { id: text.parse().ok(), name: text.to_owned() })
    }
}

impl HeapArgs {
    /// The object that is asked for, if it is one.
    fn object(&self) -> Option<ObjectId> {
        self.holders.or(self.path_to.as_ref()?.id)
    }
}

/// What two moments are compared by.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ByArg {
    Class,
    /// Where the objects were made
    Site,
    /// The methods that were running when they were made
    Context,
    /// What they are reached from on the shortest path from outside: a static field, a thread, a stack
    Root,
}

impl ByArg {
    /// What rows tell; `None`: it takes the heaps of both moments.
    fn by_rows(self) -> Option<By> {
        match self {
            Self::Class => Some(By::Class),
            Self::Site => Some(By::Site),
            Self::Context => Some(By::Context),
            Self::Root => None,
        }
    }
}

pub(super) fn run(args: &HeapArgs) -> Result<u8, CliError> {
    let input = InputArgs {
        trace: args.trace.clone(),
        with_names: args.with_names.clone(),
        deaths: DeathsArg::Trace,
        lives: args.lives.clone(),
        no_lives: args.no_lives,
    };
    if let Some([from, to]) = args.diff.as_deref() {
        return match args.by.by_rows() {
            Some(by) => diff(&input, args, [from, to], by),
            None => diff_by_root(&input, args, [from, to]),
        };
    }
    let bar = Bar::new(true);
    let (source, lives) = input.open(&bar)?;
    source.tells_objects()?;
    // Begun before the long work: a wrong path shows at once.
    let begin = |path: &PathBuf| Output::create(path, Kind::HeapDump, args.force, &[&args.trace]);
    let output = args.hprof.as_ref().map(begin).transpose()?;
    let tables = if args.stacks { None } else { Tables::kept(&source, lives.as_deref())? };
    let (snapshot, by_tables) = at(&source, lives.as_deref(), tables.as_ref(), &args.at, args.object())?;
    let dumped = output.map(|output| dump(&source, &snapshot, output)).transpose()?;
    drop(bar);
    warn_of_lives(lives.as_deref());
    let dominance = || heap::dominance(&snapshot);
    let matching = matching(&snapshot, args);
    let of_no_object = |id: ObjectId| -> Result<CliError, CliError> {
        let watched = match &by_tables {
            Some((tables, tick)) => object::fate(&tables.population, id, *tick).map_err(CliError::Rows)?,
            None => snapshot.taken().watched,
        };
        Ok(gone(id, &snapshot, watched).into())
    };
    match (args.holders, &args.path_to, &args.hprof) {
        (Some(id), _, _) => {
            let Some(node) = snapshot.find(id) else { return Err(of_no_object(id)?) };
            let holders = heap::holders(&snapshot, &dominance(), node, &matching, args.top);
            if args.json { print_json(&holders)? } else { print(&heap::render_holders(&holders))? }
        }
        (None, Some(wanted), _) => match wanted.id.and_then(|id| snapshot.find(id)) {
            Some(node) => {
                let paths = heap::paths_to(&snapshot, &dominance(), node, &matching, args.top);
                if args.json { print_json(&paths)? } else { print(&heap::render_paths(&paths))? }
            }
            None => {
                let paths = heap::paths_to_class(&snapshot, &dominance(), &wanted.name, &matching, args.top);
                match (paths, wanted.id) {
                    (Some(paths), _) if args.json => print_json(&paths)?,
                    (Some(paths), _) => print(&heap::render_class_paths(&paths))?,
                    (None, Some(id)) => return Err(of_no_object(id)?),
                    (None, None) => {
                        let (class, moment) = (wanted.name.clone(), snapshot.taken().moment.clone());
                        return Err(HeapError::NoSuchClass { class, moment }.into());
                    }
                }
            }
        },
        (None, None, _) if args.dominators => {
            let dominators = heap::dominators_of(&snapshot, &dominance(), &matching, args.top);
            if args.json { print_json(&dominators)? } else { print(&heap::render_dominators(&dominators))? }
        }
        (None, None, Some(_)) if !args.classes && !args.json => {}
        (None, None, _) => {
            let classes = heap::classes(&snapshot, &dominance(), &matching, args.top);
            if args.json { print_json(&classes)? } else { print(&heap::render_classes(&classes))? }
        }
    }
    if let (Some(dumped), Some(path)) = (dumped, &args.hprof) {
        let (objects, classes) = (counted(dumped.objects, "object"), counted(dumped.classes, "class"));
        let line =
            format!("{}: {objects}, {classes}; contents of primitive fields and arrays are zero", path.display());
        // Standard output is for what was asked for.
        if args.json {
            PROGRAM.say(format_args!("{line}"))
        } else {
            print(&format!("{line}\n"))?
        }
        if dumped.cut_arrays > 0 {
            let arrays = counted(dumped.cut_arrays, "array");
            PROGRAM.say(format_args!("note: {arrays} of more than 4 GiB cut short: the format allows no more"));
        }
    }
    if by_tables.is_some() {
        say_by_tables();
    }
    let taken = snapshot.taken();
    warn(&source, &taken.warnings);
    Ok(completeness(&source, taken.lost))
}

/// The tables beside a trace, which know what was alive without a reading.
struct Tables {
    population: Population,
    /// In the order of time, if they are kept in it.
    by_time: Option<Box<dyn Groups>>,
    references: Box<dyn References>,
}

impl Tables {
    /// The tables, if they are there: making them would take longer than reading up to the moment.
    fn kept(source: &Source, lives: Option<&LifeTable>) -> Result<Option<Self>, CliError> {
        let has_rows = |lives: &LifeTable| lives.manifest().is_some_and(|manifest| manifest.has_rows());
        let is_kept = |lives: &&LifeTable| has_rows(lives) && lives.trouble().is_none();
        let Some(lives) = lives.filter(is_kept) else { return Ok(None) };
        let population = et_lives::population(source, Some(lives), Reading::default())?;
        let Some(references) = et_lives::kept_references(lives, &population) else { return Ok(None) };
        Ok(Some(Self { population, by_time: et_lives::kept_by_time(lives), references }))
    }

    /// The tick of a moment; `None` if the tables do not tell it. They do not tell in which order things happened before the first call
    /// or return, up to which there is little to read.
    fn tick(&self, source: &Source, lives: Option<&LifeTable>, moment: &Moment) -> Result<Option<u64>, CliError> {
        Ok(tick_of(source, lives, &self.population, moment)?.filter(|&tick| tick > 0))
    }

    fn take<'a>(&self, source: &'a Source, moment: &Moment, tick: u64) -> Result<Snapshot<'a>, CliError> {
        let objects = self.by_time.as_deref().unwrap_or(&*self.population.groups);
        let resident = heap::resident(source, &self.population, objects, &*self.references, tick);
        let mut snapshot = resident.map_err(CliError::Rows)?.snapshot;
        snapshot.called(moment);
        Ok(snapshot)
    }
}

fn say_by_tables() {
    PROGRAM.say(format_args!(
        "note: answered from the tables beside the trace, which do not tell what stacks hold (--stacks reads the trace)"
    ));
}

/// The tables that told a heap, and the tick of the moment; `None`: the trace was read.
type ByTables<'t> = Option<(&'t Tables, u64)>;

/// The heap at a moment: from the tables, which are returned with the tick then, or by a reading, in which an object is watched.
fn at<'a, 't>(
    source: &'a Source,
    lives: Option<&LifeTable>,
    tables: Option<&'t Tables>,
    moment: &Moment,
    watch: Option<ObjectId>,
) -> Result<(Snapshot<'a>, ByTables<'t>), CliError> {
    if let Some(tables) = tables
        && let Some(tick) = tables.tick(source, lives, moment)?
    {
        return Ok((tables.take(source, moment, tick)?, Some((tables, tick))));
    }
    Ok((take(source, lives, moment, watch)?, None))
}

/// The classes that are looked at.
fn matching(snapshot: &Snapshot<'_>, args: &HeapArgs) -> Matching {
    let matching = Matching::new(snapshot, args.matching.as_deref());
    if let Some(pattern) = args.matching.as_deref().filter(|_| matching.is_none()) {
        say_no_class(pattern, &snapshot.taken().moment);
    }
    matching
}

fn say_no_class(pattern: &str, moment: &str) {
    PROGRAM.say(format_args!("note: --match '{pattern}': nothing of such a class is alive at {moment}"));
}

/// Compares two moments by what objects are reached from: this takes the heap at both.
fn diff_by_root(input: &InputArgs, args: &HeapArgs, moments: [&Moment; 2]) -> Result<u8, CliError> {
    let bar = Bar::new(true);
    let (source, lives) = input.open(&bar)?;
    source.tells_objects()?;
    let tables = if args.stacks { None } else { Tables::kept(&source, lives.as_deref())? };
    let mut are_by_tables = false;
    let mut lost = Lost::default();
    let mut ticks = Vec::new();
    let mut side = |moment: &Moment| -> Result<(AtRoots, Vec<String>), CliError> {
        let (snapshot, by_tables) = at(&source, lives.as_deref(), tables.as_ref(), moment, None)?;
        are_by_tables |= by_tables.is_some();
        let taken = snapshot.taken();
        lost = taken.lost;
        ticks.push(taken.tick);
        Ok((AtRoots::of(&snapshot, args.matching.as_deref()), taken.warnings.clone()))
    };
    let [(first, _), (second, warnings)] = [side(moments[0])?, side(moments[1])?];
    drop(bar);
    if ticks[0] > ticks[1] {
        let [from, to] = moments.map(ToString::to_string);
        return Err(CliError::Lacks { path: args.trace.clone(), what: QueryError::Order { from, to }.to_string() });
    }
    let found = changes::changes_by_root(moments, [first, second], args.top);
    warn_of_lives(lives.as_deref());
    if args.json {
        print_json(&found)?
    } else {
        print(&changes::render(&found))?
    }
    if are_by_tables {
        say_by_tables();
    }
    warn(&source, &warnings);
    Ok(completeness(&source, lost))
}

/// Compares two moments, by the rows of objects.
fn diff(input: &InputArgs, args: &HeapArgs, moments: [&Moment; 2], by: By) -> Result<u8, CliError> {
    let class = args.matching.as_deref();
    let find = |opened: &Opened| {
        let by_time = opened.lives.as_deref().and_then(et_lives::kept_by_time);
        let objects = by_time.as_deref().unwrap_or(&*opened.population.groups);
        let found = changes::changes(&opened.population, objects, opened.labels(), moments, by, class, args.top);
        found.map_err(|error| match error {
            ChangesError::Rows(error) => CliError::Rows(error),
            error => CliError::Lacks { path: args.trace.clone(), what: error.to_string() },
        })
    };
    answer(input, args.json, find, changes::render)
}

/// Makes the life table on the way, if there is to be one: what follows is faster then.
fn take<'a>(
    source: &'a Source,
    lives: Option<&LifeTable>,
    moment: &Moment,
    watch: Option<ObjectId>,
) -> Result<Snapshot<'a>, CliError> {
    let read_on = lives.is_some_and(|lives| lives.manifest().is_none() && lives.trouble().is_none());
    let mut request = Request { moment: moment.clone(), read_on, watch, ..Request::default() };
    let needs_times = matches!(moment, Moment::Percent(_) | Moment::Seconds(_));
    if needs_times && et_reader::source::deaths_unknown(source.events()).is_none() {
        let line = timeline(source, lives, if read_on { Deaths::Trace } else { Deaths::None })?;
        request.read_on = false;
        return Ok(heap::take_by(source, &request, &line)?);
    }
    Ok(heap::take(source, &request)?)
}

fn dump(source: &Source, snapshot: &Snapshot<'_>, mut output: Output) -> Result<heap::hprof::Dumped, CliError> {
    let dumped = heap::hprof::write(source, snapshot, &mut output).map_err(|error| output.error(error))?;
    output.finish()?;
    Ok(dumped)
}

fn gone(object: ObjectId, snapshot: &Snapshot<'_>, watched: Watched) -> HeapError {
    let (object, moment) = (format!("{:x}", object.0), snapshot.taken().moment.clone());
    match watched {
        Watched::Dead { tick } => HeapError::Dead { object, moment, tick },
        Watched::Alive | Watched::Unknown => HeapError::NoSuchObject { object, moment },
    }
}
