//! What `run` and `prepare` take alike.

use std::path::PathBuf;

use clap::Args;

use super::{Rule, filter_of, pool};
use crate::artifact::Settings;
use crate::error::Error;
use crate::progress::Progress;
use crate::rewrite::{EventSet, Witness};

/// How a program is to be rewritten, and where that is kept.
#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
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
    /// Which uses of objects leave a record of their own: none, refs (reads of reference fields and elements) or all
    #[arg(long, default_value = "none", value_name = "WHICH")]
    witness: Witness,
    /// Where instrumented JDKs and programs are kept [default: elephant-tracks in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Folder with libet_runtime.so and the heap-proxy jars [default: $ET_RUNTIME_DIR, or beside this program]
    #[arg(long, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,
    /// Threads to rewrite with [default: one per processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
}

impl ProgramArgs {
    /// Does something with these settings and that many threads.
    pub(super) fn work<T: Send>(
        &self,
        rules: &[Rule],
        progress: Progress,
        job: impl FnOnce(&Settings) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let filter = filter_of(rules)?;
        let settings = Settings {
            events: self.events.with(self.witness),
            filter,
            strict: false,
            check: false,
            progress: progress.clone(),
        };
        let done = pool(self.jobs)?.install(|| job(&settings));
        progress.finish();
        done
    }
}
