//! Options shared by `run` and `prepare`.

use std::path::PathBuf;

use clap::Args;

use super::error::Error;
use super::shared::{HookArgs, Rule, RuntimeArgs, Threads};
use crate::artifact::Settings;
use crate::progress::Progress;
use crate::run::RunError;

/// How a program is to be rewritten, and where that is kept.
#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
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
        let settings = self.hooks.settings(rules, progress.clone())?;
        let done = self.threads.pool().run(|| job(&settings));
        progress.finish();
        Ok(done?)
    }
}
