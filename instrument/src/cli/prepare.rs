//! `et-instrument prepare`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use et_names::escape::{Json, Lines};

use super::error::Error;
use super::program::ProgramArgs;
use super::{Format, Rule};
use crate::progress::Progress;
use crate::run::PrepareJob;

/// What `prepare` takes.
#[derive(Debug, Args)]
pub(super) struct PrepareArgs {
    /// The JDK to run the program on [default: that of java]
    #[arg(long, value_name = "HOME")]
    java_home: Option<PathBuf>,
    /// Jars and folders of the program, as for java -cp; @FILE reads the list from a file
    #[arg(long, visible_alias = "cp", value_name = "LIST")]
    class_path: Option<String>,
    #[command(flatten)]
    program: ProgramArgs,
    /// How to report the copies
    #[arg(long, value_enum, default_value_t = Format::Text)]
    report: Format,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

impl PrepareArgs {
    /// Prepares, and says where all is.
    pub(super) fn execute(&self, rules: &[Rule]) -> Result<ExitCode, Error> {
        let start = Instant::now();
        let job = PrepareJob {
            java_home: self.java_home.clone(),
            class_path: self.class_path.clone(),
            cache_dir: self.program.cache_dir.clone(),
            runtime_dir: self.program.runtime.runtime_dir.clone(),
        };
        let progress = Progress::new_or_lines(self.quiet);
        let mut ready = self.program.work(rules, progress, |settings| job.run(settings))?;
        ready.seconds = start.elapsed().as_secs_f64();
        // A closed pipe is not an error: the work is done.
        let _ = match self.report {
            Format::Json => writeln!(std::io::stdout(), "{}", Json(ready.json())),
            Format::Text => write!(std::io::stdout(), "{}", Lines(ready.text())),
        };
        Ok(ExitCode::SUCCESS)
    }
}
