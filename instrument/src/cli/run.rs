//! `et-instrument run`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::error::Error;
use super::program::ProgramArgs;
use super::{Rule, mistakes};
use crate::progress::Progress;
use crate::run::{JvmpiJob, RunJob};

/// What `run` takes.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Where the trace goes: a file, whose %p is replaced by the process id, or a folder [default: et-%p.ettrace in the current folder]
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    #[command(flatten)]
    program: ProgramArgs,
    /// Do not copy the program: instrument its classes when they are defined
    #[arg(long)]
    in_place: bool,
    /// Do not trace the JVMs that the program starts
    #[arg(long)]
    no_children: bool,
    /// Run the program untraced, with a JVMPI profiler: its library, then a colon and its options
    #[arg(long, value_name = "LIBRARY[:OPTIONS]")]
    #[arg(conflicts_with_all = ["trace", "in_place", "no_children", "include", "exclude", "events", "mode", "witness"])]
    jvmpi: Option<String>,
    /// Report method entries and exits through hooks, on an instrumented copy of the JDK, for profilers that enable these events
    #[arg(long, requires = "jvmpi")]
    hooks: bool,
    /// Print only errors and what is not instrumented
    #[arg(long, short)]
    quiet: bool,
    /// The program, java … or javac …, with all its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

impl RunArgs {
    /// Runs the program; its exit code is ours.
    pub(super) fn execute(&self, rules: &[Rule]) -> Result<ExitCode, Error> {
        let first = self.command.first().and_then(|word| word.to_str()).filter(|word| word.starts_with('-'));
        if let Some((word, option)) = first.and_then(|word| Some((word, mistakes::like_option(word)?))) {
            let name = word.split('=').next().unwrap_or(word);
            return Err(Error::Usage(format!("run has no option {name}: a similar one is {option}")));
        }
        if let Some(agent) = &self.jvmpi {
            let job = JvmpiJob {
                command: self.command.clone(),
                agent: agent.clone(),
                runtime_dir: self.program.runtime.runtime_dir.clone(),
                hooks: self.hooks,
                cache_dir: self.program.cache_dir.clone(),
                quiet: self.quiet,
            };
            let progress = Progress::new(self.quiet);
            return self.program.work(rules, progress, |settings| job.run(settings)).map(ExitCode::from);
        }
        let job = RunJob {
            command: self.command.clone(),
            trace: self.trace.clone(),
            cache_dir: self.program.cache_dir.clone(),
            runtime_dir: self.program.runtime.runtime_dir.clone(),
            in_place: self.in_place,
            children: !self.no_children,
            quiet: self.quiet,
        };
        self.program.work(rules, Progress::new(self.quiet), |settings| job.run(settings)).map(ExitCode::from)
    }

    /// 125, like `env`, for failures before the program has started, to distinguish them from the program's exit codes.
    pub(super) fn exit_code(error: &Error) -> u8 {
        match error.exit_code() {
            1 => 125,
            other => other,
        }
    }
}
