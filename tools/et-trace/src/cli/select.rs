//! `--threads`, `--from` and `--to`: commands that look at some allocations only.

use clap::Args;
use et_analysis::heap::Moment;
use et_analysis::{Selected, Selection, Span};
use et_reader::population::Population;
use et_reader::source::Source;

use super::{CliError, PROGRAM};

/// By whom, and from when on.
#[derive(Debug, Args)]
struct StartArgs {
    /// Only what these threads allocated: their names, in which * is any text, or their numbers
    #[arg(long, value_delimiter = ',', value_name = "THREAD,…")]
    threads: Vec<String>,
    /// Only what was allocated after this moment: 40% (of calls and returns), 12.5s, tick:N or bytes:N (allocated)
    #[arg(long, value_name = "MOMENT")]
    from: Option<Moment>,
}

impl StartArgs {
    fn up_to(&self, to: Option<&Moment>) -> Selection {
        let span = Span { from: self.from.clone(), to: to.cloned() };
        Selection { threads: self.threads.clone(), span }
    }
}

/// Which allocations a command looks at.
#[derive(Debug, Args)]
pub(super) struct SelectArgs {
    #[command(flatten)]
    start: StartArgs,
    /// Only what was allocated up to this moment
    #[arg(long, value_name = "MOMENT")]
    to: Option<Moment>,
}

impl SelectArgs {
    pub fn selection(&self) -> Selection {
        self.start.up_to(self.to.as_ref())
    }
}

/// The same for a command whose option `--to` is another one.
#[derive(Debug, Args)]
pub(super) struct SelectUntilArgs {
    #[command(flatten)]
    start: StartArgs,
    /// Only what was allocated up to this moment
    #[arg(long, value_name = "MOMENT")]
    until: Option<Moment>,
}

impl SelectUntilArgs {
    pub fn selection(&self) -> Selection {
        self.start.up_to(self.until.as_ref())
    }
}

/// Leaves out of a population what is not looked at; says what is, if that is not all.
pub(super) fn select(
    selection: &Selection,
    source: &Source,
    population: Population,
) -> Result<(Population, Option<Selected>), CliError> {
    if selection.is_all() {
        return Ok((population, None));
    }
    let selected = selection.of(source, population);
    let lacks = |what: String| CliError::Lacks { path: source.path().to_owned(), what };
    let (population, selected) = selected.map_err(|error| lacks(error.to_string()))?;
    let slices = source.trace().filter(|trace| trace.only_counts());
    if let Some(slice) = slices.and_then(|trace| trace.file.meta().options.get("counts"))
        && !selection.span.is_all()
    {
        PROGRAM.say(format_args!(
            "note: the trace has counts in slices of {slice}: those that began in the range are in it (of a long run, those in a thousandth of it are one slice)"
        ));
    }
    Ok((population, Some(selected)))
}
