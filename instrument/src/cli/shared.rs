//! Options shared by several subcommands.

use std::path::PathBuf;

use clap::{ArgMatches, Args};
use et_rewriter::filter::{self, Filter};
use et_rewriter::rewrite::{EventSet, Witness};
use et_system::threads::Pool;

use super::error::Error;
use crate::artifact::Settings;
use crate::memory::Budget;
use crate::progress::Progress;

/// A rule of the filter: whether it includes, and its pattern.
pub(super) type Rule = (bool, String);

/// What a run tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    events: EventSet,
    /// Allocations are only counted.
    counts: bool,
}

impl Told {
    /// All kinds of events.
    pub(super) const ALL: Self = Self { events: EventSet::ALL, counts: false };
    /// Allocations with their stacks.
    pub(super) const STACKS: Self = Self { events: EventSet::ALLOC.or(EventSet::STACKS), counts: false };
    pub(super) const REFERENCES: Self = Self { events: Self::STACKS.events.or(EventSet::UPDATE), counts: false };
    /// The same, counted.
    pub(super) const COUNTS: Self = Self { counts: true, ..Self::STACKS };
}

impl std::str::FromStr for Told {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == COUNTS {
            return Ok(Self::COUNTS);
        }
        if text.split(',').any(|word| word.trim() == COUNTS) {
            return Err("counts are without other events: use --events counts alone".to_owned());
        }
        Ok(Self { events: text.parse()?, counts: false })
    }
}

/// The value of `--events` that stands for no events.
const COUNTS: &str = "counts";

/// Which classes get hooks, and which hooks they get.
#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// Hook classes that match, such as com.acme.**, java.util.HashMap or *Service; the first matching --include or
    /// --exclude decides
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Do not hook classes that match
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// What to hook: alloc, update, method, exception, all, and stacks for the call stack of each allocation; separated by commas. Or
    /// counts: only how much is allocated, by stack and class
    #[arg(long, default_value = "all", value_name = "LIST")]
    events: Told,
    /// Which uses of objects get a record of their own: none, refs (reads of reference fields and elements) or all
    #[arg(long, default_value = "none", value_name = "WHICH")]
    witness: Witness,
    /// Also hook the entry and exit of methods that only return a value, for tests
    #[arg(long, hide = true)]
    no_leaves: bool,
}

impl HookArgs {
    /// Settings that are neither strict nor checked; `rules` has includes and excludes in their order.
    pub(super) fn settings(&self, rules: &[Rule], progress: Progress) -> Result<Settings, Error> {
        self.settings_of(None, rules, progress)
    }

    /// The same with other events, if there are any.
    pub(super) fn settings_of(
        &self,
        events: Option<&Told>,
        rules: &[Rule],
        progress: Progress,
    ) -> Result<Settings, Error> {
        let Told { events, counts } = *events.unwrap_or(&self.events);
        Ok(Settings {
            events: events.with(self.witness),
            counts,
            survival: None,
            leaves: !self.no_leaves,
            filter: filter_of(rules)?,
            strict: false,
            check: false,
            memory: Budget::of_machine(),
            progress,
        })
    }
}

/// Includes and excludes in the order of the command line, which the derived structs do not keep.
pub(super) fn rules(matches: &ArgMatches) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (id, include) in [("include", true), ("exclude", false)] {
        if matches.try_contains_id(id).is_err() {
            continue; // a subcommand without such options
        }
        let indices = matches.indices_of(id).into_iter().flatten();
        let patterns = matches.get_many::<String>(id).into_iter().flatten();
        rules.extend(indices.zip(patterns).map(|(index, pattern)| (index, (include, pattern.clone()))));
    }
    rules.sort_by_key(|(index, _)| *index);
    rules.into_iter().map(|(_, rule)| rule).collect()
}

fn filter_of(rules: &[Rule]) -> Result<Filter, Error> {
    let mut filter = Filter::default();
    for (include, pattern) in rules {
        let pushed = filter.push(*include, pattern);
        pushed.map_err(|error| Error::Usage(format!("{} {error}", filter::option(*include))))?;
    }
    Ok(filter)
}

/// Where the parts of the runtime are.
#[derive(Debug, Args)]
pub(super) struct RuntimeArgs {
    /// Folder with libet_runtime.so and the heap-proxy jars [default: $ET_RUNTIME_DIR, or the installed one]
    #[arg(long, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,
}

/// How many work at once.
#[derive(Debug, Args)]
pub(super) struct Threads {
    /// Threads to use [default: one per processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
}

impl Threads {
    /// A pool with the requested number of threads, or fewer if the system refuses more.
    pub(super) fn pool(&self) -> Pool {
        Pool::new(self.jobs)
    }
}
