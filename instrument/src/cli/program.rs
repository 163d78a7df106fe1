//! Options shared by `run` and `prepare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::error::Error;
use super::shared::{HookArgs, Rule, RuntimeArgs, Threads, Told};
use crate::artifact::Settings;
use crate::progress::Progress;
use crate::run::RunError;

/// Presets of `--events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// How much is allocated, by stack and class: --events counts
    Counts,
    /// Each object with its stack, and how many collections it survives: --events alloc,stacks with -Det.survival=5
    Objects,
    /// Objects with their stacks, references, and when the heap drops each object: --events alloc,update,stacks
    References,
    /// Objects, references, calls, exceptions and exact deaths: --events all
    Everything,
}

impl Mode {
    fn events(self) -> Told {
        match self {
            Self::Counts => Told::COUNTS,
            Self::Objects => Told::STACKS,
            Self::References => Told::REFERENCES,
            Self::Everything => Told::ALL,
        }
    }

    /// The share of the time for walks through the heap, in percent.
    fn survival(self) -> Option<u32> {
        // Deaths tell more, and counts have no objects.
        (self == Self::Objects).then_some(5)
    }
}

/// How a program is to be rewritten, and where that is kept.
#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
    /// What the trace is to tell, in one word
    #[arg(long, value_enum, conflicts_with = "events")]
    mode: Option<Mode>,
    #[command(flatten)]
    hooks: HookArgs,
    /// Where instrumented JDKs and programs are cached [default: elephant-tracks in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    #[command(flatten)]
    threads: Threads,
}

impl ProgramArgs {
    /// Does something with these settings and that many threads.
    pub(super) fn work<T: Send>(
        &self,
        rules: &[Rule],
        progress: Progress,
        job: impl FnOnce(&Settings) -> Result<T, RunError> + Send,
    ) -> Result<T, Error> {
        let events = self.mode.map(Mode::events);
        let mut settings = self.hooks.settings_of(events.as_ref(), rules, progress.clone())?;
        settings.survival = self.mode.and_then(Mode::survival);
        let done = self.threads.pool().run(|| job(&settings));
        progress.finish();
        Ok(done?)
    }
}
