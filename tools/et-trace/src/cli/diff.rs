//! `et-trace diff`: what changed between runs.

use std::path::{Path, PathBuf};

use clap::Args;
use et_analysis::diff::{Condition, Counted, Differ, Show, Side, render};
use et_report::{Difference, diff_page};

use super::analyses::Opened;
use super::{CliError, DeathsArg, InputArgs, PROGRAM};
use crate::bar::Bar;
use crate::output::{Kind, Output};
use et_cli::code::{FAILED, OK, USAGE};
use et_cli::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A run before the change, and one after it
    #[arg(num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["before", "after"])]
    traces: Vec<PathBuf>,
    /// Runs before the change: medians are compared, and a change counts if it exceeds the variation between runs
    #[arg(long, num_args = 1.., value_name = "TRACE", requires = "after")]
    before: Vec<PathBuf>,
    /// Runs after the change
    #[arg(long, num_args = 1.., value_name = "TRACE", requires = "before")]
    after: Vec<PathBuf>,
    /// Exit with code 1 if this holds: 'bytes > +10%', 'objects of java.lang.String > 5000'. METRIC [of CLASS] > LIMIT;
    /// metrics: bytes, objects, alive-bytes, alive-objects, peak-bytes
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
    /// Count a class in --fail-if that no run has as a class without objects, not as an error
    #[arg(long, requires = "fail_if")]
    allow_missing: bool,
    /// Leave out changes smaller than this share of all bytes, in percent
    #[arg(long, default_value_t = 0.1, value_name = "PERCENT", value_parser = percent)]
    least: f64,
    /// How deaths are determined
    #[arg(long, value_enum, default_value = "trace")]
    deaths: DeathsArg,
    /// Neither use nor make life tables
    #[arg(long)]
    no_lives: bool,
    /// How many rows of each table to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// List only rows with TEXT in the class or a method
    #[arg(long = "match", value_name = "TEXT")]
    matching: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page with flame graphs of what changed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an output file of any kind, not only a report
    #[arg(long, requires = "output")]
    force: bool,
}

/// Rows of the page's tables: they can be searched and sorted.
const ROWS: usize = 200;

fn percent(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

pub(crate) fn run(args: &DiffArgs) -> Result<u8, CliError> {
    let sides = match args.traces.as_slice() {
        [before, after] => [vec![before.clone()], vec![after.clone()]],
        _ => [args.before.clone(), args.after.clone()],
    };
    if sides.iter().any(Vec::is_empty) {
        return Err(CliError::NoSides);
    }
    let inputs: Vec<&Path> = sides.iter().flatten().map(PathBuf::as_path).collect();
    // Begun before the long work: a wrong path shows at once.
    let create = |path: &PathBuf| Output::create(path, Kind::Report, args.force, &inputs);
    let output = args.output.as_ref().map(create).transpose()?;
    let bar = Bar::new(true);
    let (mut has_deaths, mut tell_uses) = (true, Vec::new());
    let mut differ = Differ::default();
    let mut code = OK;
    for (side, traces) in [Side::Before, Side::After].into_iter().zip(&sides) {
        for trace in traces {
            let input = InputArgs::of(trace.clone(), args.deaths, args.no_lives);
            let opened = Opened::new(&input, &bar)?;
            differ.add(side, &opened.source, &opened.population).map_err(CliError::Rows)?;
            has_deaths &= opened.population.has_deaths;
            tell_uses.push(opened.population.has_uses);
            code = code.max(opened.finish());
        }
    }
    drop(bar);
    if has_deaths && tell_uses.iter().any(|tells| *tells != tell_uses[0]) {
        PROGRAM.say(format_args!(
            "warning: some traces have calls and others do not, where objects held only by local variables count as dead: compare what is alive with care"
        ));
    }
    let missing = args.fail_if.iter().filter(|_| !args.allow_missing);
    let missing: Vec<_> =
        missing.filter_map(|condition| Some((condition, condition.missing_class(&differ)?))).collect();
    for (condition, class) in &missing {
        let like = differ.class_like(class).map_or_else(String::new, |like| format!(": is it {like}?"));
        PROGRAM.say(format_args!(
            "--fail-if '{condition}': no run has objects of {class}{like} (--allow-missing counts it as none)"
        ));
    }
    if !missing.is_empty() {
        return Ok(USAGE);
    }
    if let Some(text) = args.matching.as_deref().filter(|text| !differ.has_name_with(text)) {
        PROGRAM.say(format_args!("note: --match '{text}': no class or method name in these runs contains it"));
    }
    let show = Show { least_share: args.least / 100.0, top: args.top, matching: args.matching.clone() };
    let diff = differ.diff(&show);
    if args.json {
        print_json(&diff)?;
    } else if output.is_none() {
        print(&render(&diff))?;
    }
    if let Some(output) = output {
        let [before, after] = sides.map(|side| side.iter().map(|path| path.display().to_string()).collect());
        let difference = Difference {
            diff: &differ.diff(&Show { top: args.top.max(ROWS), ..show }),
            allocated: differ.flame(Counted::Allocated),
            alive: has_deaths.then(|| differ.flame(Counted::Alive)),
            before,
            after,
        };
        output.write_whole(diff_page(&difference).as_bytes())?;
    }
    for condition in args.fail_if.iter().filter(|condition| condition.holds(&differ, &diff)) {
        PROGRAM.say(format_args!("--fail-if '{condition}' holds"));
        code = FAILED;
    }
    Ok(code)
}
