//! `et-instrument run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{Rule, filter_of, pool};
use crate::artifact::Settings;
use crate::error::Error;
use crate::progress::Progress;
use crate::rewrite::EventSet;
use crate::run::RunJob;

/// What `run` takes.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Where the trace goes; %p becomes the process id [default: et-%p.ettrace in the current folder]
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Hook classes of the program that match, such as com.acme.** or *Service; the first --include or --exclude that
    /// matches decides
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Leave classes of the program that match without hooks
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// What to hook: alloc, update, method, exception, all; joined by commas
    #[arg(long, default_value = "all", value_name = "LIST")]
    events: EventSet,
    /// Leave the program where it is: its classes get their hooks while it runs
    #[arg(long)]
    in_place: bool,
    /// Where instrumented JDKs and programs are kept [default: elephant-tracks in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Folder with libet_runtime.so and the heap-proxy jars [default: $ET_RUNTIME_DIR, or beside this program]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Threads to rewrite with [default: one per processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// The program: java …, javac …, with all its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl RunArgs {
    /// Runs the program; its exit code is ours.
    pub(super) fn execute(&self, rules: &[Rule]) -> Result<ExitCode, Error> {
        let progress = Progress::new(self.quiet);
        let filter = filter_of(rules)?;
        let settings =
            Settings { events: self.events, filter, strict: false, check: false, progress: progress.clone() };
        let job = RunJob {
            command: self.command.clone(),
            trace: self.trace.clone(),
            cache_dir: self.cache_dir.clone(),
            runtime_dir: self.runtime_dir.clone(),
            in_place: self.in_place,
            quiet: self.quiet,
        };
        let done = pool(self.jobs)?.install(|| job.run(&settings));
        progress.finish();
        done.map(ExitCode::from)
    }

    /// `env` has 125 for its own failures, so that they are not taken for the program's.
    pub(super) fn exit_code(error: &Error) -> u8 {
        match error.exit_code() {
            1 => 125,
            other => other,
        }
    }
}
