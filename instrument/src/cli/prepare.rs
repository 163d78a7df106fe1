//! `et-instrument prepare`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::{Format, Rule, filter_of, pool};
use crate::artifact::Settings;
use crate::error::Error;
use crate::progress::Progress;
use crate::rewrite::EventSet;
use crate::run::PrepareJob;

/// What `prepare` takes.
#[derive(Debug, Args)]
pub(super) struct PrepareArgs {
    /// The JDK that the program is to run on [default: that of java]
    #[arg(long, value_name = "HOME")]
    java_home: Option<PathBuf>,
    /// Jars and folders of the program, as java -cp takes them; @FILE for a list in a file
    #[arg(long, visible_alias = "cp", value_name = "LIST")]
    class_path: Option<String>,
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
    /// Where instrumented JDKs and programs are kept [default: elephant-tracks in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Folder with libet_runtime.so and the heap-proxy jars [default: $ET_RUNTIME_DIR, or beside this program]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Threads to rewrite with [default: one per processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// How to report where the copies are
    #[arg(long, value_enum, default_value_t = Format::Text)]
    report: Format,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

impl PrepareArgs {
    /// Prepares, and says where all is.
    pub(super) fn execute(&self, rules: &[Rule]) -> Result<ExitCode, Error> {
        let start = Instant::now();
        let progress = Progress::new_or_lines(self.quiet);
        let filter = filter_of(rules)?;
        let settings =
            Settings { events: self.events, filter, strict: false, check: false, progress: progress.clone() };
        let job = PrepareJob {
            java_home: self.java_home.clone(),
            class_path: self.class_path.clone(),
            cache_dir: self.cache_dir.clone(),
            runtime_dir: self.runtime_dir.clone(),
        };
        let done = pool(self.jobs)?.install(|| job.run(&settings));
        progress.finish();
        let mut ready = done?;
        ready.seconds = start.elapsed().as_secs_f64();
        match self.report {
            Format::Json => println!("{}", ready.json()),
            Format::Text => print!("{}", ready.text()),
        }
        Ok(ExitCode::SUCCESS)
    }
}
